"""Figures of an evaluation of tests, from the scores of suites."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from codea1_env.evaluation.pass_at_k import mean_over_problems
from codea1_env.evaluation.programs.report import TooFewSamplesError
from codea1_env.evaluation.result_folder import VERSION
from codea1_env.evaluation.statistics import Estimate
from codea1_env.evaluation.suites.figures import estimate, names, values_of
from codea1_env.evaluation.suites.samples import SuiteSample, suite_digest
from codea1_env.evaluation.suites.score import ProblemCheck, SuiteScore
from codea1_env.problems import Problem
from codea1_env.reading.invalid_reasons import InvalidReason, missing_package

DEFAULT_K = (1, 2, 5)
MISSING = "missing"
"""Kind of a test that was asked for and not written."""


@dataclass
class SuiteTally:
    """Collects scores as they come."""

    num_tests: int
    """Tests that were asked for."""
    scores: dict[str, list[SuiteScore]] = field(default_factory=dict)
    """Task -> scores of its suites, of problems that can be used."""
    kinds: Counter[str] = field(default_factory=Counter)
    """Kind of fault, or "right", or "missing" -> tests."""
    packages: Counter[str] = field(default_factory=Counter)
    """Package that is not installed -> tests that import it."""
    repeated: int = 0
    """Right tests that say the same as an earlier one of their suite."""
    empty: Counter[str] = field(default_factory=Counter)
    """Why answers have no test -> answers."""
    late: int = 0
    """Tests after those that count."""
    excluded: dict[str, str] = field(default_factory=dict)
    """Task -> why it cannot be used, where it has suites."""
    total: int = 0
    """Suites so far."""
    repeated_suites: int = 0
    """Suites that have the same tests as an earlier one of their problem."""

    def add(self, sample: SuiteSample, score: SuiteScore) -> None:
        """Count one score."""
        self.total += 1
        if score.excluded:
            self.excluded[sample.task_id] = score.excluded
            return
        before = self.scores.setdefault(sample.task_id, [])
        texts = [test.text for test in score.tests]
        self.repeated_suites += any(texts == [test.text for test in each.tests] for each in before)
        before.append(score)
        for test in score.tests:
            self.kinds[test.fault or "right"] += 1
            package = missing_package(test.reason)
            if test.fault == InvalidReason.NOT_INSTALLED.value and package:
                self.packages[package] += 1
        self.kinds[InvalidReason.UNPARSABLE.value] += len(score.dropped)
        self.kinds[MISSING] += self.num_tests - len(score.tests)
        self.repeated += sum(test.repeats for test in score.tests)
        self.late += score.late
        if score.empty:
            self.empty[score.empty] += 1

    def estimate(self) -> Estimate | None:
        """Pass@k for all tests that were asked for, of the problems so far; None if there is none yet."""
        if not self.scores:
            return None
        k = self.num_tests
        return mean_over_problems(
            [
                sum(score.right(k) for score in each) / (k * len(each))
                for each in self.scores.values()
            ]
        )


def check_ks(k: Sequence[int] | None, num_tests: int) -> tuple[int, ...]:
    """The k that this number of tests allows.

    Args:
        k: What was asked for; None for those of `DEFAULT_K` that are possible, and the number itself.
        num_tests: Tests that a suite is asked for.

    Raises:
        TooFewSamplesError: A k is above the number of tests, or below 1.

    Example:
        >>> check_ks(None, 3)
        (1, 2, 3)
    """
    if k is None:
        return tuple(sorted({num_tests, *(each for each in DEFAULT_K if each <= num_tests)}))
    for each in k:
        if not 1 <= each <= num_tests:
            raise TooFewSamplesError(
                f"Expect every k to be between 1 and the number of tests that are asked for, actually: k={each}, "
                f"and {num_tests} tests. Ask for a smaller k, or for more tests with --num-tests."
            )
    return tuple(sorted(set(k)))


def build_suite_report(
    settings: Mapping[str, Any],
    problems: Sequence[Problem],
    checks: Mapping[str, ProblemCheck],
    tally: SuiteTally,
    k: Sequence[int] | None,
    unknown: Mapping[str, int],
) -> dict[str, Any]:
    """All that is known at the end, as report.json has it. Equal scores give equal reports.

    Args:
        settings: How the suites were made and judged.
        problems: The problem set.
        checks: Task -> whether it can be used.
        tally: The scores.
        k: See `check_ks`.
        unknown: Tasks of the files that the problem set has not.

    Raises:
        TooFewSamplesError: See `check_ks`.
    """
    ks = check_ks(k, tally.num_tests)
    faults = {task_id: check.fault for task_id, check in checks.items() if check.fault}
    faults |= tally.excluded
    usable = [problem for problem in problems if problem.task_id not in faults]
    scored = [problem for problem in usable if problem.task_id in tally.scores]
    values = {each.task_id: values_of(tally.scores[each.task_id], ks) for each in scored}
    figures = {name: estimate(list(values.values()), name) for name in names(ks)}
    pools = {
        each.task_id: programs
        for each in scored
        if (programs := tally.scores[each.task_id][0].pool.programs)
    }
    return {
        "version": VERSION,
        "kind": "tests",
        "settings": dict(settings),
        "problems": len(problems),
        "scored": len(scored),
        "samples": tally.total,
        "figures": {
            name: dataclasses.asdict(value) for name, value in figures.items() if value is not None
        },
        "tests": dict(sorted((+tally.kinds).items())),
        "not_installed": dict(sorted(tally.packages.items())),
        "repeated": tally.repeated,
        "repeated_suites": tally.repeated_suites,
        "without_tests": dict(sorted(tally.empty.items())),
        "late": tally.late,
        "mutants": sum(tally.scores[problem.task_id][0].mutants for problem in scored),
        "wrong_programs": {
            "programs": sum(pools.values()),
            "problems": len(pools),
            "problems_unchecked": sum(checks[task_id].wrong is None for task_id in pools),
        },
        "excluded": {p.task_id: faults[p.task_id] for p in problems if p.task_id in faults},
        "missing": [p.task_id for p in usable if p.task_id not in tally.scores],
        "unknown": dict(unknown),
        "results": {
            problem.task_id: {
                "samples": len(tally.scores[problem.task_id]),
                "values": values[problem.task_id],
                "digest": suite_digest(problem),
            }
            for problem in scored
        },
    }
