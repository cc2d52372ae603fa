"""What an agent proposes for a function: tests that predict, and calls that are worth a trial whatever they give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codea1_env.evaluation.test_programs.splitting import read_test_programs
from codea1_env.problem_sets.fuzz import Call
from codea1_env.reading.calls import literal_calls
from codea1_env.sandbox import AnalysisError, Sandbox


@dataclass(frozen=True)
class Proposals:
    """What was read in the answers of an agent."""

    answers: int
    tests: tuple[str, ...]
    """As often as they were proposed."""
    unread: tuple[tuple[str, str], ...]
    """What no test was made of, with the reason."""

    def calls(self, name: str, sandbox: Sandbox, but: Sequence[str] = ()) -> list[Call]:
        """The calls in the tests.

        Args:
            name: The function that is called.
            sandbox: Where texts are parsed.
            but: Tests that ask what is right: their calls are left out.
        """
        doubtful = calls_in(but, name, sandbox)
        return [call for call in calls_in(self.tests, name, sandbox) if call not in doubtful]


@dataclass(frozen=True)
class Predictions:
    """What became of the tests that an agent wrote, each as often as it was written."""

    answers: int
    tests: int
    right: int
    """Those that the program passes."""
    wrong: int
    """Those that fail: another value, an exception, no end."""
    useless: int
    """What says nothing about the program."""
    reason: str = ""
    """Why the first of these does not."""

    @property
    def in_words(self) -> str:
        """For the screen."""
        first = f" (the first: {self.reason})" if self.reason else ""
        return (
            f"{self.tests} tests in {self.answers} answers: {self.right} right, {self.wrong} wrong, "
            f"{self.useless} of no use{first}"
        )


def read_proposals(answers: Sequence[str], name: str, sandbox: Sandbox) -> Proposals:
    """Read the answers of an agent for a function or class of this name."""
    suites = read_test_programs([(answer, name) for answer in answers], sandbox)
    tests = tuple(test for suite in suites for test in suite.tests)
    unread = tuple((rest.text, rest.reason) for suite in suites for rest in suite.rest)
    return Proposals(len(answers), tests, unread)


def calls_in(texts: Sequence[str], name: str, sandbox: Sandbox) -> list[Call]:
    """The calls with literal arguments in texts."""
    try:
        found: list[Call] = sandbox.analyse(literal_calls, list(texts), name)
    except AnalysisError:  # they were only a hint
        return []
    return found
