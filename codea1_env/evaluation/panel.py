"""What a tester can do, on programs that do not change while it trains.

A panel has rows. Rows of planted faults are a ladder: on the lowest rung tests find the fault without the program, on the
next who copies a number of its text, on the highest only who works the value out. Half of the problems and most kinds of
faults are never trained on. Beside them stand the same programs shown blind, wrong programs that a model wrote, mutants that
copies of the examples do not kill, and right programs, for the share of tests that are right.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources

from codea1_env.evaluation.held_out import attacked, hold_out
from codea1_env.evaluation.planting import Planter
from codea1_env.evaluation.statistics import Estimate, share
from codea1_env.oracle import BrokenReferenceError
from codea1_env.problem_sets.expected import NoValueError, golden_statements
from codea1_env.problems import Problem, load_problems
from codea1_env.reading.examples import split_examples
from codea1_env.referee import Referee, Round, Verdict
from codea1_env.rollout import Agent
from codea1_env.sandbox import AnalysisError, Outcome, Sandbox

SIZE = 24
"""Programs of a row."""
ROWS: Mapping[str, str] = {
    "blind": "faults on large numbers, which blind tests find",
    "copied_seen": "a number of the text, trained kinds and problems",
    "copied_unseen": "a number of the text, other problems",
    "copied_new": "a number of the text, other problems and kinds",
    "worked_out_unseen": "next to a number of the text, other problems",
    "worked_out_new": "to be worked out, other problems and kinds",
    "shown_blind": "the same as 'other problems and kinds', without the program",
    "written": "wrong programs that a model wrote",
    "new_mutants": "mutants that copies of the examples do not kill",
    "valid": "right programs: tests that are right",
}
"""Name -> what its programs are wrong on. Every row but the last counts programs that a suite breaks; it counts tests."""
RUN_ROWS = ("copied_new", "shown_blind", "valid")
"""Rows that a training run measures. `codea1 eval tests --panel` measures all of them."""
_PLANTED = {
    "blind": (("above",), "eval"),
    "copied_seen": (("equal", "table", "range"), "train"),
    "copied_unseen": (("equal", "table", "range"), "eval"),
    "copied_new": (("either", "text"), "eval"),
    "worked_out_unseen": (("after",), "eval"),
    "worked_out_new": (("between", "minus", "digits"), "eval"),
}
"""Row -> its kinds of faults, and the split of the problems."""
_SHOWN_BLIND = "copied_new"
"""Row whose programs are asked about without being shown."""
_NONE = "the problems that are not trained on have none"
_EACH = 3
"""Mutants of a problem at most: more would be much alike."""
_DRAWN = 12
"""Mutants of a problem that the examples are tried on: they kill most."""
_AT_ONCE = 8
_GOLDEN = 4
"""Golden tests that tell whether a reference can judge tests."""


@dataclass(frozen=True)
class PanelProgram:
    """A program of a row."""

    row: str
    problem: Problem
    code: str
    kind: str = ""
    """Kind of its planted fault."""
    instead: str | None = None
    """What the tester sees in the place of the program; None for the program."""

    @property
    def shown(self) -> str:
        """What the tester sees."""
        return self.code if self.instead is None else self.instead


@dataclass(frozen=True)
class PanelCount:
    """What a tester did on a row."""

    hits: int
    """Programs that its suites break; tests that are right, of right programs."""
    of: int
    """Programs, or tests, that could be judged."""
    right: int = 0
    """Of the hits, those by a test that states the right value; others claim that the fault is right."""

    @property
    def share(self) -> Estimate | None:
        """The share with its 95% interval; None of nothing."""
        return share(self.hits, self.of) if self.of else None

    def __str__(self) -> str:
        return f"{self.hits} of {self.of}"

    def __add__(self, other: PanelCount) -> PanelCount:
        return PanelCount(self.hits + other.hits, self.of + other.of, self.right + other.right)


@dataclass(frozen=True)
class Panel:
    """Programs to be broken, always the same ones of a seed."""

    programs: tuple[PanelProgram, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Row -> why it has no programs."""
    unusable: Mapping[str, str] = field(default_factory=dict)
    """Task id -> why its reference can judge no test."""

    @property
    def digest(self) -> str:
        """A short text that changes with the programs."""
        parts = [(each.row, each.problem.task_id, each.code, each.shown) for each in self.programs]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    def measure(self, tester: Agent, referee: Referee) -> dict[str, PanelCount]:
        """Let a tester write one suite against each program.

        A suite breaks a program by any test that attacks, as in the game: also by one whose value the referee corrects.
        """
        programs = [(each.problem, each.code) for each in self.programs]
        rounds = attacked(tester, programs, [each.shown for each in self.programs], referee)
        pairs = zip(self.programs, referee.judge(rounds), strict=True)
        return add_up((each.row, count_of(each, verdict)) for each, verdict in pairs)


def count_of(program: PanelProgram, verdict: Verdict) -> PanelCount:
    """Count what one suite did on a program."""
    return _right_tests(verdict) if program.row == "valid" else _broken(verdict)


def add_up(counts: Iterable[tuple[str, PanelCount]]) -> dict[str, PanelCount]:
    """Add up the counts of each row."""
    found: dict[str, PanelCount] = {}
    for row, count in counts:
        found[row] = found.get(row, PanelCount(0, 0)) + count
    return found


def _broken(verdict: Verdict) -> PanelCount:
    tests = [test for suite in verdict.suites for test in suite.tests]
    broke = [test for test in tests if test.broke]
    if broke:
        return PanelCount(1, 1, int(any(test.status == "kept" for test in broke)))
    unknown = any(test.outcome is Outcome.UNJUDGED for test in tests)
    return PanelCount(0, int(not unknown))


def _right_tests(verdict: Verdict) -> PanelCount:
    suite = verdict.suites[0]
    kept = sum(test.status == "kept" for test in suite.tests)
    return PanelCount(kept, kept + suite.outcome.invalid, kept)


def draw_panel(
    problems: Sequence[Problem],
    trained: Sequence[Problem],
    referee: Referee,
    seed: int,
    size: int = SIZE,
    rows: Collection[str] = tuple(ROWS),
) -> Panel:
    """Draw a panel: planted faults of the set `planted`, and what `problems` have that are not `trained` on.

    Args:
        problems: The source of a run. Mutants and right programs are of those that are not trained on. Wrong programs of a
            model are of bundled problems, whatever the source is.
        trained: What the run trains on.
        referee: Judges as the run does.
        seed: Draws.
        size: Programs of a row at most.
        rows: What is drawn. A row has the same programs whatever others are.
    """
    names = {each.task_id for each in trained}
    others = [each for each in problems if each.task_id not in names and each.reference.strip()]
    sound = _Sound(referee)
    makers: dict[str, Callable[[random.Random], list[PanelProgram]]] = {
        "written": lambda rng: _written(names, rng, size),
        "new_mutants": lambda rng: _mutants(others, sound, rng, size),
        "valid": lambda rng: _right(others, sound, rng, size),
    }
    programs = _planted(referee.sandbox, seed, size, rows)
    for row, make in makers.items():
        if row in rows:
            programs += make(random.Random(f"{seed} {row}"))
    found = {each.row for each in programs}
    missing = {row: _NONE for row in ROWS if row in rows and row not in found}
    unusable = {name: fault for name, fault in sound.faults.items() if fault}
    return Panel(tuple(programs), missing, unusable)


@dataclass(frozen=True)
class _Sound:
    """Knows of which problems the reference can judge tests."""

    referee: Referee
    faults: dict[str, str] = field(default_factory=dict)
    """Task id -> why it cannot; "" if it can."""

    def of(self, problems: Sequence[Problem]) -> list[Problem]:
        """Return those problems whose golden tests are right tests in the game."""
        for problem in problems:
            if problem.task_id not in self.faults:
                self.faults[problem.task_id] = _fault_of(problem, self.referee)
        return [each for each in problems if not self.faults[each.task_id]]


def _fault_of(problem: Problem, referee: Referee) -> str:
    try:
        tests = golden_statements(problem, referee.sandbox)[:_GOLDEN]
        [verdict] = referee.judge([Round(problem, problem.reference, [tests])])
    except (NoValueError, BrokenReferenceError, AnalysisError, TypeError) as error:
        return str(error)
    count = _right_tests(verdict)
    if not count.of or count.hits:
        return ""
    return f"its golden tests are no valid tests: {verdict.suites[0].tests[0].reason}"


def _planted(sandbox: Sandbox, seed: int, size: int, rows: Collection[str]) -> list[PanelProgram]:
    problems = load_problems("planted")
    planter = Planter(problems, sandbox)
    found: list[PanelProgram] = []
    for row, (kinds, split) in _PLANTED.items():
        if row not in rows and not (row == _SHOWN_BLIND and "shown_blind" in rows):
            continue
        rng = random.Random(f"{seed} {row}")
        known = [each for each in problems if each.metadata["split"] == split]
        times = -(-size // len(known))
        order = [each for _ in range(times) for each in rng.sample(known, len(known))]
        asked = [(each, kinds[i % len(kinds)]) for i, each in enumerate(order[:size])]
        for (problem, kind), made in zip(asked, planter.plant(asked, rng), strict=True):
            if made is not None:
                found.append(PanelProgram(row, problem, made.code, kind))
    blind = [each for each in found if each.row == _SHOWN_BLIND]
    found += [replace(each, row="shown_blind", instead="") for each in blind]
    return [each for each in found if each.row in rows]


def _written(trained: set[str], rng: random.Random, size: int) -> list[PanelProgram]:
    """Draw programs of SmolLM2-135M for bundled problems, which their golden tests fail."""
    by_name = {
        each.task_id: each for each in load_problems("starter") if each.task_id not in trained
    }
    file = resources.files("codea1_env.problem_sets").joinpath("starter", "written.jsonl")
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    found = [
        PanelProgram("written", by_name[row["task_id"]], code)
        for row in rows
        if row["task_id"] in by_name
        for code in row["programs"]
    ]
    return rng.sample(found, min(size, len(found)))


def _mutants(
    problems: Sequence[Problem], sound: _Sound, rng: random.Random, size: int
) -> list[PanelProgram]:
    found: list[PanelProgram] = []
    order = rng.sample(list(problems), len(problems))
    while order and len(found) < size:
        some, order = order[:_AT_ONCE], order[_AT_ONCE:]
        drawn: list[PanelProgram] = []
        for split in hold_out(sound.of(some), sound.referee.sandbox):
            mutants = [*split.mutants, *split.train_mutants]
            mutants = rng.sample(mutants, min(_DRAWN, len(mutants)))
            drawn += [PanelProgram("new_mutants", split.problem, code) for code in mutants]
        kept: Counter[str] = Counter()
        copies = [Round(each.problem, each.code, [_examples(each.problem)]) for each in drawn]
        for each, verdict in zip(drawn, sound.referee.judge(copies), strict=True):
            if _broken(verdict) == PanelCount(0, 1) and kept[each.problem.task_id] < _EACH:
                kept[each.problem.task_id] += 1
                found.append(each)
    return found[:size]


def _examples(problem: Problem) -> list[str]:
    return split_examples(problem.prompt, problem.entry_point)[1]


def _right(
    problems: Sequence[Problem], sound: _Sound, rng: random.Random, size: int
) -> list[PanelProgram]:
    drawn = rng.sample(list(problems), min(size, len(problems)))
    return [PanelProgram("valid", each, each.reference) for each in sound.of(drawn)]
