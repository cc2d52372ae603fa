"""The evaluations of `codea1 eval`, run in this process: what the tests of them share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console

from codea1_env.cli.eval_display import print_report
from codea1_env.evaluation import best_of_n, programs, report
from codea1_env.evaluation.programs import JudgedProgram
from codea1_env.evaluation.result_folder import ResultFolder
from codea1_env.evaluation.runner import AgentOf, EvaluationPlan, EvaluationRun
from codea1_env.evaluation.suites import evaluation as suites
from codea1_env.evaluation.suites.judging import SuiteJudge
from codea1_env.evaluation.task import Evaluation
from codea1_env.problems import Problem
from codea1_env.sandbox import Sandbox

Stop = Callable[[], bool]
Watch = Callable[[Any, Any], None]


def never() -> bool:
    return False


class Tally:
    """Samples with their verdicts, for a report."""

    def __init__(self, num_tests: int = 5) -> None:
        self.num_tests = num_tests
        self.rows: list[tuple[Any, Any]] = []

    def add(self, sample: Any, verdict: Any) -> None:
        self.rows.append((sample, verdict))

    @property
    def total(self) -> int:
        return len(self.rows)

    def fill(self, evaluation: Evaluation[Any, Any]) -> Evaluation[Any, Any]:
        for sample, verdict in self.rows:
            evaluation.add(sample, verdict)
        return evaluation


OutcomeTally = SuiteTally = Tally


class BestOfNTally(Tally):
    @property
    def chosen(self) -> Mapping[str, Any]:
        evaluation = best_of_n.BestOfN(programs="")  # type: ignore[arg-type]
        self.fill(evaluation)
        return evaluation.chosen


class CodeEvaluation:
    def __init__(
        self,
        problems: Sequence[Problem],
        sandbox: Sandbox,
        folder: ResultFolder,
        stop: Stop = never,
    ) -> None:
        self.own = programs.CodeEvaluation()
        self.own.load(problems)
        self.own.begin(sandbox)
        self.run = EvaluationRun(self.own, folder, stop)
        self.run_references = self.run.check
        self.judge_file = self.run.judge_file
        self.judge_agent = self.run.judge_agent

    @property
    def references(self) -> Mapping[str, Any]:
        return self.own.checks

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_sandbox":
            self.own.sandbox = value
        super().__setattr__(name, value)


class SuiteEvaluation:
    def __init__(
        self,
        problems: Sequence[Problem],
        suite_judge: SuiteJudge,
        folder: ResultFolder,
        stop: Stop = never,
        threads: int = 2,
    ) -> None:
        self.own = suites.SuiteEvaluation(num_tests=suite_judge._num_tests)
        self.own.load(problems)
        self.own.begin(suite_judge._sandbox)
        self.own.suite_judge = suite_judge
        self.run = EvaluationRun(self.own, folder, stop, threads)
        self.judge_file = self.run.judge_file
        self.judge_agent = self.run.judge_agent

    def run_checks(self) -> Mapping[str, Any]:
        self.run.check()
        return self.own.checks


class BestOfN:
    def __init__(
        self,
        problems: Sequence[Problem],
        programs: Mapping[str, Sequence[JudgedProgram]],
        sandbox: Sandbox,
        folder: ResultFolder,
        num_tests: int,
        stop: Stop = never,
    ) -> None:
        self.own = best_of_n.BestOfN(programs="", num_tests=num_tests)  # type: ignore[arg-type]
        self.own.take(problems, programs)
        self.own.begin(sandbox)
        self.problems = self.own.problems
        self.run = EvaluationRun(self.own, folder, stop)
        self.run_file = self.run.judge_file

    def run_agent(
        self, tester: AgentOf, plan: EvaluationPlan, watch: Watch, *, white_box: bool
    ) -> None:
        self.own.white_box = white_box
        self.run.judge_agent(tester, plan, watch)


def build_report(
    settings: Mapping[str, Any],
    problems: Sequence[Problem],
    references: Mapping[str, Any],
    tally: Tally,
    k: Sequence[int] | None,
    unknown: Mapping[str, int],
) -> dict[str, Any]:
    own = programs.CodeEvaluation(k=None if k is None else tuple(k))
    own.load(problems)
    own.checks = dict(references)
    return report.build_report(tally.fill(own), settings, unknown)


def build_suite_report(
    settings: Mapping[str, Any],
    problems: Sequence[Problem],
    checks: Mapping[str, Any],
    tally: Tally,
    k: Sequence[int] | None,
    unknown: Mapping[str, int],
) -> dict[str, Any]:
    own = suites.SuiteEvaluation(k=None if k is None else tuple(k), num_tests=tally.num_tests)
    own.load(problems)
    own.checks = dict(checks)
    return report.build_report(tally.fill(own), settings, unknown)


def build_best_of_n_report(
    settings: Mapping[str, Any],
    problems: Mapping[str, Problem],
    tally: Tally,
    excluded: Mapping[str, str],
    missing: Sequence[str],
    unknown: Mapping[str, int],
) -> dict[str, Any]:
    own = best_of_n.BestOfN(programs="")  # type: ignore[arg-type]
    own.problems = dict(problems)
    own.excluded = dict(excluded)
    built = report.build_report(tally.fill(own), settings, unknown)
    assert built["missing"] == list(missing)
    return built


def print_suite_report(shown: Mapping[str, Any], console: Console) -> None:
    print_report(suites.SuiteEvaluation(), shown, console)
