"""What the check of a problem set can find, and its report."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class FindingKind(enum.Enum):
    """What can be wrong with a problem."""

    BROKEN_ROW = "broken-row"
    """The row cannot be read, or its fields have wrong types."""
    DUPLICATE_ID = "duplicate-id"
    """Another row has the same task_id."""
    UNPARSABLE_REFERENCE = "unparsable-reference"
    """The reference is not a Python program."""
    MISSING_ENTRY_POINT = "missing-entry-point"
    """The reference does not define the function that is asked for."""
    REFERENCE_FAILS = "reference-fails"
    """The reference does not run, or fails one of its own tests."""
    BROKEN_CONTRACT = "broken-contract"
    """The contract does not run, or refuses a golden test."""
    NON_DETERMINISTIC = "non-deterministic"
    """Two runs of the reference differ."""
    NO_REFERENCE = "no-reference"
    """There is no reference: the problem can be evaluated on, but not be played."""
    NO_TESTS = "no-tests"
    """There is nothing to judge a program by."""
    DUPLICATE_PROMPT = "duplicate-prompt"
    """Another row shows the coder the same text: the two cannot be told apart in play."""
    CHECKER_FAILS = "checker-fails"
    """The problem's checker raises, ends late or returns something else than True or False."""
    OLD_LAYOUT = "old-layout"
    """The row has a `test_program`, as earlier versions wrote it; how it was read is said."""
    JUDGED_INSIDE = "judged-inside"
    """Some tests are no data: they share a process with the program, which can forge their verdict."""
    SLOW_REFERENCE = "slow-reference"
    """A test of the reference takes longer than the usual limit of a test."""
    WEAK_TESTS = "weak-tests"
    """Half of the programs with one small fault pass the tests."""
    NOT_PLAYABLE = "not-playable"
    """`codea1 train` and `codea1 play` refuse the problem, or the whole set, as it is; evaluations can use it."""

    @property
    def is_warning(self) -> bool:
        """Whether a set with this finding can still be used."""
        return self in (
            FindingKind.NO_REFERENCE,
            FindingKind.NO_TESTS,
            FindingKind.DUPLICATE_PROMPT,
            FindingKind.SLOW_REFERENCE,
            FindingKind.OLD_LAYOUT,
            FindingKind.JUDGED_INSIDE,
            FindingKind.WEAK_TESTS,
            FindingKind.NOT_PLAYABLE,
        )


@dataclass(frozen=True)
class ProblemFinding:
    """One thing that is wrong, and where."""

    kind: FindingKind
    where: str
    """File and line."""
    task_id: str
    """Empty if the row could not be read."""
    message: str
    """What was expected, what came, what to do."""

    def __str__(self) -> str:
        level = "warning" if self.kind.is_warning else "error"
        name = f" {self.task_id}:" if self.task_id else ""
        return f"{self.where}: {level} [{self.kind.value}]{name} {self.message}"


@dataclass(frozen=True)
class ValidationReport:
    """What the check of a problem set found."""

    source: str
    problems: int
    """Rows that could be read."""
    tests: int
    findings: tuple[ProblemFinding, ...]

    @property
    def errors(self) -> tuple[ProblemFinding, ...]:
        """The findings that make a problem useless."""
        return tuple(finding for finding in self.findings if not finding.kind.is_warning)

    @property
    def warnings(self) -> tuple[ProblemFinding, ...]:
        """The other findings."""
        return tuple(finding for finding in self.findings if finding.kind.is_warning)

    @property
    def ok(self) -> bool:
        """Whether there are no errors."""
        return not self.errors
