"""What is known of a problem before tests of it are judged, and of a suite afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from codea1_env.evaluation.suites.coverage import Coverage
from codea1_env.evaluation.task import ProblemFault
from codea1_env.reading.invalid_reasons import InvalidReason

_FAILS = frozenset(
    {
        InvalidReason.UNPARSABLE,
        InvalidReason.WRONG_VALUE,
        InvalidReason.RAISES,
        InvalidReason.NOT_INSTALLED,
        InvalidReason.TIMEOUT,
        InvalidReason.LIMIT,
        InvalidReason.UNENCODABLE,
    }
)
"""Faults of tests that the reference does not pass. The others say nothing about programs, right or wrong."""


@dataclass(frozen=True)
class ProblemCheck(ProblemFault):
    """Whether tests of a problem can be judged, and by which wrong programs."""

    wrong: tuple[int, ...] | None = None
    """Numbers of the wrong programs among the candidates: those that fail golden tests. None where the problem has
    no golden tests that could say it."""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """What `row` made."""
        wrong = None if row["wrong"] is None else tuple(row["wrong"])
        return cls(row["task_id"], row["fault"], wrong)


@dataclass(frozen=True)
class JudgedTest:
    """One test of a suite."""

    text: str
    fault: str
    """Value of a `InvalidReason`; empty if the test is right."""
    reason: str
    repeats: bool = False
    """Whether it says the same as an earlier right test of the suite. It counts all the same."""
    missing_module: str | None = None
    """The module that it imports and that is not there; rows have it of such tests only."""

    @property
    def fails(self) -> bool:
        """Whether the reference does not pass it. Of tests that are not right, the others say nothing."""
        return bool(self.fault) and InvalidReason(self.fault) in _FAILS


@dataclass(frozen=True)
class PoolRuns:
    """Runs of tests on wrong programs, and how many of them passed."""

    programs: int = 0
    right_runs: int = 0
    right_passed: int = 0
    wrong_runs: int = 0
    wrong_passed: int = 0


@dataclass(frozen=True)
class SuiteScore:
    """What came of one suite. All of it follows from the suite and its problem."""

    excluded: str = ""
    """Why the problem cannot be used; empty if it can."""
    tests: tuple[JudgedTest, ...] = ()
    """The tests that count, in the order of the suite."""
    late: int = 0
    """Tests after those that count."""
    dropped: tuple[str, ...] = ()
    """Why parts of an answer that were meant as tests are none."""
    empty: str = ""
    """Why an answer has no test; empty if it has some."""
    mutants: int = 0
    killed: tuple[int, ...] = ()
    """For each place of a suite, how many mutants the test there kills that no right test before it kills."""
    coverage: tuple[Coverage, ...] = ()
    """For each place, what the right tests up to there cover of the reference together."""
    pool: PoolRuns = PoolRuns()

    def right(self, k: int) -> int:
        """Right tests among the first k."""
        return sum(not test.fault for test in self.tests[:k])

    def row(self) -> dict[str, Any]:
        """As a row of a file."""
        if self.excluded:
            return {"excluded": self.excluded}
        row = asdict(self)
        del row["excluded"]
        for test in row["tests"]:
            if test["missing_module"] is None:
                del test["missing_module"]
        return row

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> SuiteScore:
        """What `row` made."""
        if "excluded" in row:
            return cls(row["excluded"])
        return cls(
            tests=tuple(JudgedTest(**test) for test in row["tests"]),
            late=row["late"],
            dropped=tuple(row["dropped"]),
            empty=row["empty"],
            mutants=row["mutants"],
            killed=tuple(row["killed"]),
            coverage=tuple(Coverage(**each) for each in row["coverage"]),
            pool=PoolRuns(**row["pool"]),
        )
