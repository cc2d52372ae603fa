"""How often the right program is chosen by tests that nobody has checked: what `codea1 eval best-of-n` does.

As soon as a problem has all its tests, every program of it runs on every test. Nobody says which tests are right:
where programs are chosen in earnest, nobody knows.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from codea1_env.evaluation.asking import TestEvaluation
from codea1_env.evaluation.choosing import CHOICES, CHOSEN, RANDOM, Matrix
from codea1_env.evaluation.programs import CodeResults, JudgedProgram
from codea1_env.evaluation.statistics import mean_over_problems, written
from codea1_env.evaluation.suites.running import run_once
from codea1_env.evaluation.suites.samples import SuiteSample, SuiteTest, read_suite
from codea1_env.evaluation.task import EvaluationError
from codea1_env.problems import Problem
from codea1_env.rendering.display import counted
from codea1_env.sandbox import Limits, Outcome, Sandbox, TestResult

UNKNOWN = "?"
"""Sign of a test that could not be judged on a program."""


@dataclass(frozen=True)
class Tests:
    """The distinct tests of a problem, in the order in which they were first written."""

    __test__ = False  # pytest would collect a class of this name

    tests: tuple[SuiteTest, ...]
    weights: tuple[int, ...]
    unusable: int
    """Tests that cannot be run, or that never call the program."""


@dataclass(frozen=True)
class ProgramRun:
    """One program, to be run on all tests of its problem."""

    task_id: str
    index: int
    code: str
    right: bool
    tests: Tests
    programs: int


@dataclass(frozen=True)
class ChosenProgram:
    """What is chosen of the programs of a problem."""

    matrix: Matrix
    tests: Tests
    chances: Mapping[str, float]


def tests_of(
    problem: Problem, suites: Sequence[SuiteSample], num_tests: int, sandbox: Sandbox
) -> Tests:
    """The tests of all suites for a problem, of each suite the first ones."""
    written: Counter[str] = Counter()
    usable: dict[str, SuiteTest] = {}
    unusable = 0
    for suite in suites:
        read = read_suite(suite, problem.entry_point, num_tests, sandbox)
        for test in read.tests:
            if test.fault is None:
                usable.setdefault(test.text, test)
                written[test.text] += 1
            else:
                unusable += 1
        unusable += len(read.dropped)
    return Tests(tuple(usable.values()), tuple(written.values()), unusable)


LIMITS = Limits(
    call_cpu_time=1.0, call_wall_time=5.0, run_cpu_time=5.0, run_wall_time=30.0, calls_per_test=1
)
"""What a program may use for a test, and for all tests of its problem together. Some programs never end."""


@dataclass(kw_only=True, eq=False)
class BestOfN(TestEvaluation[ProgramRun, Mapping[str, str]]):
    """Choose among programs by generated tests: how often the chosen one is right, with and without.

    The programs are those of a finished `codea1 eval code`, whose verdicts say which are right; the choice does not
    see them, nor the reference. Choices: CodeT's dual execution agreement, and the program that passes the most
    tests. Writes samples.jsonl (the tests), verdicts.jsonl (which program passes which) and report.json.
    """

    kind = "best-of-n"
    unit = "programs"
    figure = "CodeT"
    defaults = {"num_samples": 32}  # noqa: RUF012  never changed
    fixed = ("problems", "split", "packages")
    help = {"num_samples": "Answers per problem that an agent writes."}  # noqa: RUF012  never changed

    programs: Annotated[Path, tyro.conf.arg(metavar="DIR")]
    """Result folder of `codea1 eval code`. The problems are those of that evaluation."""
    white_box: bool = False
    """Show the tester a program with each question, those of the problem in turn, as in the Code-A1 paper; otherwise
    it writes tests from the problem alone, as in CodeT."""
    judged: Mapping[str, Sequence[JudgedProgram]] = field(init=False, default_factory=dict)
    excluded: dict[str, str] = field(init=False, default_factory=dict)
    chosen: dict[str, ChosenProgram] = field(init=False, default_factory=dict)
    """Task -> what was chosen, where all programs ran."""
    unjudged: int = field(init=False, default=0)
    """Programs that could not be judged on a test: no choice is made among them."""
    _open: list[tuple[ProgramRun, str]] = field(init=False, default_factory=list)

    def adopt(self, run: Path | None, given: Set[str]) -> dict[str, Any]:
        """Return the problems of the evaluation whose programs these are."""
        results = CodeResults(self.programs)
        same = {name: results.settings[name] for name in ("problems", "split", "max_problems")}
        return same | {"packages": results.packages}

    def settings(self, asked: bool) -> dict[str, Any]:
        """All that choices depend on."""
        return {
            "programs": str(self.programs),
            "programs_sha256": CodeResults(self.programs).digest(),
            **({"white_box": self.white_box} if asked else {}),
            "num_tests": self.num_tests,
            "seconds_per_test": LIMITS.call_cpu_time,
            "seconds_per_program": LIMITS.run_cpu_time,
        }

    def load(self, problems: Sequence[Problem]) -> dict[str, int]:
        """Read the programs."""
        reading = [problem.task_id for problem in problems if problem.stdin_tests]
        if reading:
            raise EvaluationError(
                f"expect problems whose programs tests can call, actually the programs of {reading[0]} read standard "
                "input"
            )
        results = CodeResults(self.programs)
        self.excluded = results.excluded
        self.take(problems, results.programs(problems))
        if not self.problems:
            raise EvaluationError(
                f"expect programs to choose from in {self.programs}, actually: none"
            )
        return {}

    def take(
        self, problems: Sequence[Problem], programs: Mapping[str, Sequence[JudgedProgram]]
    ) -> None:
        """Take the problems that have programs."""
        self.judged = programs
        super().load([each for each in problems if programs.get(each.task_id)])

    def faults(self) -> dict[str, str]:
        """Return what the evaluation of the programs found."""
        return self.excluded

    def shown(self, problem: Problem, index: int) -> str:
        """For a white box, the programs of the problem in turn."""
        programs = self.judged[problem.task_id]
        return programs[index % len(programs)].code if self.white_box else ""

    def expected(self, counts: Mapping[str, int]) -> int:
        """All programs of problems with tests."""
        return sum(len(self.judged[task]) for task in self.problems if counts.get(task))

    def group(
        self, samples: Iterator[SuiteSample], counts: Mapping[str, int]
    ) -> Iterator[ProgramRun]:
        """Yield the programs of each problem, in the order of the problems, as soon as all its tests are there."""
        suites: defaultdict[str, list[SuiteSample]] = defaultdict(list)
        left = [task for task in self.problems if counts.get(task)]
        for sample in samples:
            suites[sample.task_id].append(sample)
            while left and len(suites[left[0]]) == counts[left[0]]:
                task = left.pop(0)
                problem, programs = self.problems[task], self.judged[task]
                tests = tests_of(problem, suites.pop(task), self.num_tests, self.sandbox)
                for index, each in enumerate(programs):
                    yield ProgramRun(task, index, each.code, each.right, tests, len(programs))

    def key(self, sample: ProgramRun) -> Hashable:
        """Equal programs run once."""
        return sample.task_id, sample.code

    def judge(self, problem: Problem, sample: ProgramRun) -> Mapping[str, str]:
        """Run a program: a "1" for each test that it passes, a "0" for each other, UNKNOWN for what was not judged."""
        code = f"{problem.preamble}\n\n{sample.code}" if problem.preamble else sample.code
        tests = sample.tests.tests
        result = run_once(code, tests, problem.entry_point, LIMITS, self.sandbox)
        return {"passed": "".join(map(_sign, result.tests))}

    def add(self, sample: ProgramRun, verdict: Mapping[str, str]) -> None:
        """Count one more program; those of a problem come one after the other."""
        self.total += 1
        self._open.append((sample, verdict["passed"]))
        if len(self._open) < sample.programs:
            return
        known = [(each.right, signs) for each, signs in self._open if UNKNOWN not in signs]
        self.unjudged += len(self._open) - len(known)
        self._open.clear()
        if not known:
            self.excluded[sample.task_id] = "none of its programs could be judged on the tests"
            return
        right, passed = zip(*known, strict=True)
        matrix = Matrix(right, passed, sample.tests.weights)
        self.verdicts[sample.task_id] = [{"passed": signs} for signs in passed]
        chances = {name: choose(matrix) for name, choose in CHOICES.items()}
        self.chosen[sample.task_id] = ChosenProgram(matrix, sample.tests, chances)

    def so_far(self) -> list[float]:
        """How often CodeT's choice is right."""
        return [each.chances["codet"] for each in self.chosen.values()]

    def _means(self, less: str = "") -> dict[str, dict[str, float]]:
        """Name of a choice -> how often it is right; less another one, problem by problem."""
        found = [each.chances for each in self.chosen.values()]
        return {
            name: dataclasses.asdict(
                mean_over_problems([each[name] - each.get(less, 0.0) for each in found])
            )
            for name in CHOICES
            if found and name != less
        }

    def summary(self) -> dict[str, Any]:
        """How often choices are right, and what they have over a random one."""
        chosen = self.chosen.values()
        return {
            "scored": len(chosen),
            "undecided": sum(each.chances[RANDOM] in (0.0, 1.0) for each in chosen),
            "programs": self.total - self.unjudged,
            **({"unjudged": self.unjudged} if self.unjudged else {}),
            "tests": sum(sum(each.tests.weights) for each in chosen),
            "distinct_tests": sum(len(each.tests.tests) for each in chosen),
            "unusable_tests": sum(each.tests.unusable for each in chosen),
            "figures": self._means(),
            "gains": self._means(RANDOM),
        }

    def result(self, task: str) -> dict[str, Any]:
        """Return what was chosen."""
        found = self.chosen[task]
        right = found.matrix.right
        counts = {"programs": len(right), "right": sum(right), "tests": sum(found.tests.weights)}
        return {**counts, **found.chances}

    def table(self, report: Mapping[str, Any]) -> list[list[str]]:
        """Return a row for each choice."""
        gains = report["gains"]
        rows = [
            [CHOSEN[name], written(each), written(gains[name]) if name in gains else ""]
            for name, each in report["figures"].items()
        ]
        return [["chosen", "right [95%]", "gain [95%, paired]"], *rows]

    def lines(self, report: Mapping[str, Any]) -> list[str]:
        """Programs and tests."""
        unjudged = report.get("unjudged", 0)
        return [
            f"{counted(report['programs'], 'programs')} of {counted(report['scored'], 'problems')}; in {report['undecided']} of these all are "
            "right or all are wrong, so that no choice matters",
            f"{counted(report['tests'], 'tests')}, {report['distinct_tests']} different ones; {report['unusable_tests']} more could "
            "not be run, or never call the program",
            *([f"Left out, not judged: {counted(unjudged, 'programs')}"] if unjudged else []),
        ]


def _sign(result: TestResult) -> str:
    if result.outcome is Outcome.UNJUDGED:
        return UNKNOWN
    return "1" if result.passed else "0"
