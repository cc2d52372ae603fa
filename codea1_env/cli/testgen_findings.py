"""What `codea1 testgen` says about findings, and the options that decide which count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import tyro
from rich.console import Console

from codea1_env.rendering.display import clean
from codea1_env.sandbox import Sandbox
from codea1_env.testgen.earlier import Earlier, read_earlier
from codea1_env.testgen.findings import one_line
from codea1_env.testgen.function import FunctionSuite
from codea1_env.testgen.target import Target

_SHOWN = 20
"""Findings that are printed."""


@dataclass(frozen=True, kw_only=True)
class FindingOptions:
    """Which findings there are, and what follows from them."""

    against: Annotated[str | None, tyro.conf.arg(metavar="GIT_REV")] = None
    """Compare with this commit, branch or tag: calls that give something else than then are findings."""
    all_findings: bool = False
    """Findings of the kinds that mostly are no mistakes count, too: exceptions that nobody announces, properties that
    nearly always hold, predictions of an agent that are wrong. Otherwise they are questions."""
    fail_on: Literal["findings", "nothing"] = "findings"
    """What makes the exit code 1."""

    def earlier(self, target: Target, sandbox: Sandbox) -> Earlier | None:
        """The version to compare with; None if none is named, or the function is new."""
        return None if self.against is None else read_earlier(target, self.against, sandbox)

    def exit_code(self, findings: int) -> int:
        """0, or 1 if there are findings on which to fail."""
        return 1 if findings and self.fail_on == "findings" else 0


def show_findings(suite: FunctionSuite, console: Console, where: str = "found: ") -> None:
    """Print findings, each with a line that shows it, and the number of questions."""
    lines = []
    for finding in suite.findings[:_SHOWN]:
        lines += [f"{where}{clean(str(finding))}", f"  {clean(one_line(finding, suite.target))}"]
    if len(suite.findings) > _SHOWN:
        lines.append(f"and {len(suite.findings) - _SHOWN} more")
    if suite.questions:
        number = len(suite.questions)
        lines.append(
            f"{number} question{'s' if number > 1 else ''}, such as: {clean(str(suite.questions[0]))} "
            "(--all-findings shows all)"
        )
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
