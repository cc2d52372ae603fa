"""How many tests are right, and what the right ones are worth: what `codea1 eval tests` does.

First the references are tried, which finds problems that cannot be used, and wrong programs are looked for.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from codea1_env.evaluation.asking import TestEvaluation
from codea1_env.evaluation.samples import SuiteSample, read_samples
from codea1_env.evaluation.suites.figures import (
    WORDS,
    estimate,
    names,
    values_of,
)
from codea1_env.evaluation.suites.scores import ProblemCheck, SuiteJudge, SuiteScore, kind_of
from codea1_env.evaluation.task import EvaluationError, Question
from codea1_env.judging.verdicts import GAME_LIMITS
from codea1_env.problems import Problem
from codea1_env.reading.fences import answer_in, python_in
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.rendering.display import counted
from codea1_env.rollout import Agent
from codea1_env.sandbox import Sandbox
from codea1_env.support.plugins import digest_of

DEFAULT_K = (1, 2, 5)
_REASONS = 3
"""Reasons that are shown of many."""
_ODD = {
    "unreadable": ("tests", "unreadable: no call with the value that it returns (wrong)"),
    "repeated": ("right tests", "repeating an earlier one of the suite (counted)"),
    "repeated_suites": ("suites", "repeating another of the problem (counted)"),
    "late": ("tests", "after those that were asked for (not counted)"),
}
"""Numbers of the report, in words."""
MISSING = "missing"
"""Kind of a test that was asked for and not written."""


@dataclass(kw_only=True, eq=False)
class SuiteEvaluation(TestEvaluation[SuiteSample, SuiteScore]):
    """Judge tests: pass@k, mut@k and Mul as UnLeakedTestBench and the Code-A1 paper have them, with intervals.

    A tester is shown each problem and its reference, as the program under test. Language models draw at
    temperature 0.7 and top_p 0.95. Writes samples.jsonl, verdicts.jsonl and report.json to the result folder.
    """

    kind = "tests"
    check_type = ProblemCheck
    verdict_type = SuiteScore
    default_tests = 5
    num_tests: Annotated[int, tyro.conf.arg(metavar="K")] = 0
    """Tests that a suite is asked for; 0 for as many as in the agent's run, or 5. Those after them do not count; those that
    are missing count as wrong."""
    k: Annotated[tuple[int, ...] | None, tyro.conf.arg(metavar="K")] = None
    """Look at the first K tests of each suite; None for 1, 2 and 5 as far as --num-tests allows, and that number."""
    protocol: Literal["suite", "rounds"] = "suite"
    """How an agent is asked: once for all tests; or for one test at a time, with the earlier ones before its eyes, as
    UnLeakedTestBench does."""
    wrong_programs: Annotated[Path | None, tyro.conf.arg(metavar="FILE.jsonl")] = None
    """Programs in the format of `codea1 eval code`; those that the golden tests of their problem fail are what
    p_01 and p_00 are measured on. None for up to 20 mutants of each reference."""

    panel: bool = False
    """Meet the panel instead, which has options of its own: `codea1 eval tests --panel --help`."""

    suite_judge: SuiteJudge = field(init=False, repr=False)
    ks: tuple[int, ...] = field(init=False, default=())
    _programs: dict[str, list[str]] | None = field(init=False, default=None)

    def settings(self, asked: bool) -> dict[str, Any]:
        """All that scores depend on."""
        found: dict[str, Any] = {"num_tests": self.num_tests}
        if asked:
            found["protocol"] = self.protocol
        if (path := self.wrong_programs) is not None:
            found |= {"wrong_programs": str(path), "wrong_programs_sha256": digest_of(str(path))}
        return found | {"time_limit": GAME_LIMITS.call_cpu_time}

    def load(self, problems: Sequence[Problem]) -> dict[str, int]:
        """Read the wrong programs."""
        super().load(problems)
        self.ks = check_ks(self.k, self.num_tests)
        self.figure = f"pass@{self.ks[-1]}"
        if self.wrong_programs is None:
            return {}
        self._programs = {}
        pool = read_samples(self.wrong_programs, problems)
        for sample in pool.samples:
            self._programs.setdefault(sample.task_id, []).append(sample.code)
        return dict(pool.unknown)

    def begin(self, sandbox: Sandbox) -> None:
        """Make the judge."""
        super().begin(sandbox)
        self.suite_judge = SuiteJudge(sandbox, self.num_tests, self._programs)

    def check(self, problem: Problem) -> ProblemCheck:
        """Look for a reference that runs, and for wrong programs."""
        return self.suite_judge.check(problem)

    @property
    def one_by_one(self) -> bool:
        """Whether an answer is one test, and earlier ones are shown."""
        return self.protocol == "rounds"

    def shown(self, problem: Problem, index: int) -> str:
        """The reference, as the program under test."""
        return problem.reference

    def write(self, agent: Agent, batch: Sequence[Question]) -> list[Mapping[str, Any]]:
        """Ask for tests, once or in rounds."""
        if not self.one_by_one:
            return super().write(agent, batch)
        written: list[list[str]] = [[] for _ in batch]
        for _ in range(self.num_tests):
            shown = ["\n\n".join(map(_code, answers)) for answers in written]
            for answers, answer in zip(written, self.ask(agent, batch, shown), strict=True):
                answers.append(answer)
        return [
            {"task_id": each.problem.task_id, "tests": answers}
            for each, answers in zip(batch, written, strict=True)
        ]

    def key(self, sample: SuiteSample) -> Hashable:
        """Suites that are the same word for word are judged once."""
        return sample.task_id, repr(sample.content)

    def judge(self, problem: Problem, sample: SuiteSample) -> SuiteScore:
        """Judge a suite."""
        return self.suite_judge.judge(problem, self.checks[problem.task_id], sample)

    def values(self, verdicts: Sequence[SuiteScore]) -> Mapping[str, float | None]:
        """Values of one problem."""
        return values_of(verdicts, self.ks)

    def figures(self) -> dict[str, Any]:
        """All figures that some problem has."""
        values = [self.values(self.verdicts[task]) for task in self.scored]
        found = {name: estimate(values, name) for name in names(self.ks)}
        return {name: dataclasses.asdict(each) for name, each in found.items() if each is not None}

    def summary(self) -> dict[str, Any]:
        """Counts of the faults of tests, and of the programs that they were tried on."""
        suites = [self.verdicts[task] for task in self.scored]
        scores = [score for each in suites for score in each]
        tests = [test for score in scores for test in score.tests]
        kinds = Counter(kind_of(test) or "right" for test in tests)
        kinds[MISSING] = self.num_tests * len(scores) - len(tests)
        distinct = [{tuple(test.text for test in score.tests) for score in each} for each in suites]
        pools = {each: n for each in self.scored if (n := self.verdicts[each][0].pool.programs)}
        return super().summary() | {
            "tests": dict(sorted((+kinds).items())),
            "unreadable": kinds[InvalidReason.UNREADABLE.value],
            "repeated": sum(test.status == "duplicate" for test in tests),
            "repeated_suites": len(scores) - sum(map(len, distinct)),
            "without_tests": _counted(score.empty for score in scores),
            "late": sum(score.late for score in scores),
            "mutants": sum(each[0].mutants for each in suites),
            "wrong_programs": {
                "programs": sum(pools.values()),
                "problems": len(pools),
                "problems_unchecked": sum(self.checks[task].wrong is None for task in pools),
            },
        }

    def faults(self) -> dict[str, str]:
        """Why problems cannot be used: found by their check, or by a suite."""
        said = {task: each[0].excluded for task, each in self.verdicts.items() if each[0].excluded}
        found = super().faults() | said
        return {task: found[task] for task in self.problems if task in found}

    def digest(self, problem: Problem) -> str:
        """Other than of programs: golden tests decide nothing."""
        parts = (
            problem.prompt, problem.entry_point, problem.reference, problem.preamble, problem.contract, problem.compare,
            problem.atol, problem.checker,
        )  # fmt: skip
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]

    def lines(self, report: Mapping[str, Any]) -> list[str]:
        """Faults of tests, and figures of wrong programs, in words."""
        kinds = ", ".join(f"{name} {number}" for name, number in report["tests"].items())
        mutants = counted(report["mutants"], "mutants")
        lines = [f"{super().lines(report)[0]}, {mutants}. Tests: {kinds}"]
        if report["without_tests"]:
            counts = Counter(report["without_tests"])
            why = "; ".join(f"{reason} ({n})" for reason, n in counts.most_common(_REASONS))
            lines.append(f"{counted(counts.total(), 'answers')} without a test, most often: {why}")
        odd = [(report[name], *words) for name, words in _ODD.items() if report[name]]
        lines += [f"{counted(number, what)} {text}" for number, what, text in odd]
        shown = {name.partition("@")[0] for name in report["figures"]} | {*report["figures"]}
        said = [f"{name} {words}" for name, words in WORDS.items() if name in shown]
        lines.append(
            f"In words: {'; '.join(said)}. @k: of the first k; @pass: of answers with a right test"
        )
        pool = report["wrong_programs"]
        programs = counted(pool["programs"], "wrong programs")
        of = f"p_01 and p_00: on {programs} of {counted(pool['problems'], 'problems')}"
        lines.append(of if pool["problems"] else "p_01 and p_00: no problem has wrong programs")
        if pool["problems_unchecked"]:
            lines.append(
                f"{pool['problems_unchecked']} of these problems have no golden tests that say which mutants are "
                "wrong: all are taken, so that p_01 is too high there, and p_00 too low"
            )
        return lines


def _counted(names: Iterable[str | None]) -> dict[str, int]:
    return dict(sorted(Counter(name for name in names if name).items()))


def _code(answer: str) -> str:
    answer = answer_in(answer)
    return "\n".join([block.code for block in python_in(answer)] or [answer]).strip()


def check_ks(k: Sequence[int] | None, num_tests: int) -> tuple[int, ...]:
    """Take the k that this number of tests allows.

    Example:
        >>> check_ks(None, 3)
        (1, 2, 3)
    """
    if k is None:
        return tuple(sorted({num_tests, *(each for each in DEFAULT_K if each <= num_tests)}))
    for each in k:
        if not 1 <= each <= num_tests:
            raise EvaluationError(
                f"Expect every k to be between 1 and the number of tests that are asked for, actually: k={each}, "
                f"and {num_tests} tests. Ask for a smaller k, or for more tests with --num-tests."
            )
    return tuple(sorted(set(k)))
