"""Settings of a run of an experiment, and its Mistake Book: the game's, half of it, or one with other rules."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from codea1_env.judging.verdicts import Verdict
from codea1_env.mistake_book import BookChange, MistakeBook
from codea1_env.problem_sets.cells import CellsConfig
from codea1_env.problems import Problem

BookName = Literal["mistakes", "half", "uniform", "quality", "passing", "separating"]


class HalfBook(MistakeBook):
    """A book that replays half as many tests."""

    def tests(self, task_id: str, limit: int | None = None) -> list[str]:
        """Tests of a problem, at most half of the limit."""
        return super().tests(task_id, None if limit is None else limit // 2)


class PassingBook(MistakeBook):
    """Control: a book that replays as many tests, which break nothing.

    A test enters when programs of a step make its call and all pass it. It leaves when it breaks one, or when it is stale.
    """

    def update(self, *_: object, **__: object) -> BookChange:
        """Enter nothing: this book holds no mistakes."""
        return BookChange(0, 0, 0)

    def fill(self, verdicts: Iterable[Verdict]) -> None:
        """Enter those tests of a step that broke nothing."""
        passed: dict[str, list[str]] = {}
        leaving: dict[str, set[str]] = {}
        for verdict in verdicts:
            new = [test for suite in verdict.suites for test in suite.tests if test.attacks]
            passed.setdefault(verdict.task_id, []).extend(test.text for test in new if test.passed)
            broke = {test.text for test in (*new, *verdict.history) if test.broke}
            leaving.setdefault(verdict.task_id, set()).update(broke, verdict.stale)
        for task_id, texts in passed.items():
            out = leaving[task_id]
            gone = [text for text in out for _ in range(self.frequency(task_id, text))]
            super().update(task_id, [text for text in texts if text not in out], gone)


class SeparatingBook(MistakeBook):
    """A book of tests that separate programs, as EvolveCoder keeps them: one that no program of a step passes leaves."""

    def update(
        self,
        task_id: str,
        failed: Iterable[str] = (),
        passed: Iterable[str] = (),
        unpassed: Iterable[str] = (),
    ) -> BookChange:
        """Enter and remove tests as the book of the game does, and remove those of `unpassed`."""
        gone = [text for text in unpassed for _ in range(self.frequency(task_id, text))]
        return super().update(task_id, failed, [*passed, *gone])


def make_book(name: BookName) -> MistakeBook:
    """Return an empty book: the game's, half of it, one with another way to replay or to forget, or the control."""
    if name == "uniform" or name == "quality":
        return MistakeBook(replay=name)
    books = {"half": HalfBook, "passing": PassingBook, "separating": SeparatingBook}
    return books.get(name, MistakeBook)()


def stale_share(book: MistakeBook, problems: Sequence[Problem]) -> float:
    """Share of the book's tests that the reference contradicts; 0 for an empty book."""
    stale = [text not in problem.tests for problem in problems for text in book.tests(problem.task_id)]  # fmt: skip
    return sum(stale) / max(1, len(stale))


TesterName = Literal["tabular", "random", "fixed", "golden", "golden-fresh", "iid", "oracle", "other-programs"]  # fmt: skip


@dataclass(frozen=True)
class PlayConfig:
    """Settings of a run of an experiment."""

    world: CellsConfig = field(default_factory=CellsConfig)
    steps: int = 60
    num_generations: int = 8
    num_suites: int = 4
    num_tests: int = 2
    tester: TesterName = "tabular"
    learns: bool = True
    """Whether a tabular tester learns."""
    carried: float = 0.1
    """Share of what a tabular tester learns against a program that goes to all programs of the problem. The fault sets here
    have nothing in common; on real problems mutants do, and there the default of `TabularAgent` is larger."""
    black_box: bool = False
    use_book: bool = True
    suite_selection: Literal["max-variance", "all"] = "max-variance"
    algorithm: str = "grpo"
    """Algorithm of both players."""
    player: str = ""
    """Class of one's own, which plays both roles instead of tables; "" for none."""
    algorithm_args: Mapping[str, Any] = field(default_factory=dict)
    rewards: str = "code-a1"
    alpha: float = 0.5
    coder_rate: float = 2.0
    tester_rate: float = 16.0
    hidden: int = 0
    """Fault sets that the golden tester never sees."""
    judged: float = 1.0
    """Share of steps that the reference judges; in the others the coder's first program does."""
    handicap: float = 0.0
    """How much smaller the logits of right programs are at the start."""
    noise: Literal["none", "independent", "pair", "program"] = "none"
    """What the errors of verdicts depend on: nothing, program and call, or the program alone. See `Noise`."""
    wrong: float = 0.0
    """Rate of wrong verdicts of both kinds together: 1 less Youden's J."""
    wrong_are: Literal["both", "passes", "failures"] = "both"
    """Verdicts that are wrong: half of them passes that should be failures, all, or none."""
    past: Literal["none", "coder", "tester", "both"] = "none"
    """Who answers half of the questions as it was earlier, see `WithPast`."""
    shuffled: bool = False
    """The rewards of the suites against a program are shuffled among them: a control."""
    lesson: Literal["paid", "negated", "random"] = "paid"
    """What both players learn from: what they were paid, less than nothing of it, or numbers drawn at random. Controls."""
    shared: float | None = None
    """Share of the features that problems share, of players that are linear; None for tables."""
    phase: int = 0
    """Steps after which a tester that learns, or draws at random, has the tests of the other half of the fault sets; 0 for all
    tests always."""
    changes: bool = False
    """Whether the reference of every third problem changes in the middle."""
    book: BookName = "mistakes"
    """What is replayed, see `make_book`."""
    overlap: Fraction | None = None
    """Share of kinds of faults that training and the programs of `measure_kinds` have in common; None: none are measured."""
    kinds: Literal["overlap", "random-half"] = "overlap"
    """Which kinds these programs have, see `KindsConfig`."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.overlap is not None:
            dataclasses.replace(self.world, families=2 * self.world.families)  # there are as many
        if self.num_tests > self.world.C:
            raise ValueError(
                f"Expect suites of at most the {self.world.C} tests of a pool, actually: {self.num_tests}"
            )
