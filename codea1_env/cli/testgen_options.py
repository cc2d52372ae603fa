"""What is asked of `codea1 testgen` for code of one's own, the agent that proposes tests, and what is said of findings."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console

from codea1_env.agents.llm.completions import BackendError
from codea1_env.agents.llm.prompts import WORDINGS
from codea1_env.cli.errors import FailureError, InputError, library_errors
from codea1_env.cli.eval_agents import check_agent, is_language_model, player_of
from codea1_env.cli.eval_display import print_lines
from codea1_env.cli.eval_options import AskingOptions
from codea1_env.cli.parsing import SandboxLevel
from codea1_env.evaluation.runner import AgentOf
from codea1_env.rendering.display import clean
from codea1_env.rollout import AnswerError, ask
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import observe
from codea1_env.support.plugins import digest_of
from codea1_env.testgen.findings import one_line
from codea1_env.testgen.folders import SuiteOptions
from codea1_env.testgen.function import FunctionSuite
from codea1_env.testgen.modules import TargetError
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

    def exit_code(self, findings: int) -> int:
        """0, or 1 if there are findings on which to fail."""
        return 1 if findings and self.fail_on == "findings" else 0


@dataclass(frozen=True, kw_only=True)
class MachineOptions:
    """What code of one's own runs with, where no agent is asked."""

    seed: int = 0
    """Of made-up calls."""
    workers: int | None = None
    """Sandbox processes that work at the same time; None for one per core. Has no influence on the results."""
    sandbox_level: SandboxLevel = None
    json: bool = False
    """Print what was found as one JSON object."""

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise ValueError(f"Expect --seed to be at least 0, actually: {self.seed}")
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"Expect --workers to be at least 1, actually: {self.workers}")

    @property
    def cores(self) -> int:
        """Sandbox processes."""
        return self.workers or len(os.sched_getaffinity(0))


@contextmanager
def own_code_errors() -> Iterator[None]:
    """Tell a user in one line what is wrong with code of one's own, or with an agent."""
    try:
        with library_errors():
            yield
    except TargetError as error:
        raise InputError(lowered(str(error))) from error
    except BackendError as error:
        raise FailureError(str(error)) from error


def lowered(text: str) -> str:
    """Return a message of a library as this command prints it."""
    return text[:1].lower() + text[1:]


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
    print_lines(lines, console)


Asker = Callable[[Target], list[str]]
"""Gives the answers of an agent for a function or class."""


@dataclass(frozen=True, kw_only=True)
class OwnCodeOptions(FindingOptions, AskingOptions):
    """How tests for code of one's own are written."""

    agent: Annotated[str | None, tyro.conf.arg(metavar="NAME_OR_PATH")] = None
    """Who proposes tests beside calls that are made up: a language model, the address of an OpenAI-compatible server, the
    folder of a training run, or FILE.py:NAME; see docs/evaluation.md."""
    num_samples: Annotated[int, tyro.conf.arg(aliases=["-n"], metavar="N")] = 8
    """Answers of an agent for each function or class."""
    num_tests: int = 8
    """Tests that a language model is asked for in an answer."""
    timeout: Annotated[float, tyro.conf.arg(metavar="SECONDS")] = 20.0
    """How long tests of one function or class are looked for; then the best so far are written."""
    seed: int = 0
    """Of made-up calls, and of an agent's draws."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("num_tests")
        check_timeout(self.timeout)

    def suites(self, agent: Asker | None) -> SuiteOptions:
        """How tests are written."""
        return SuiteOptions(
            workers=self.cores,
            level=self.sandbox_level,
            packages=self.packages,
            seed=self.seed,
            timeout=self.timeout,
            against=self.against,
            all_findings=self.all_findings,
            agent=agent,
        )


def check_timeout(seconds: float) -> None:
    """Refuse what is no time."""
    if not 0 < seconds < 1e6:
        raise ValueError(f"Expect --timeout to be a number of seconds above 0, actually: {seconds}")


def asker(command: OwnCodeOptions, sandbox: Sandbox, stack: ExitStack) -> Asker | None:
    """Return the agent, which is loaded when it is asked for the first time.

    Args:
        command: Who is asked, and how.
        sandbox: Where a scripted agent runs what it must.
        stack: Closed when nobody is asked any more.

    Returns:
        None if nobody is asked: what "boundary" would write is made up anyway.

    Raises:
        InputError: There is no such agent, or it cannot write tests for a function that it does not know.
    """
    name = command.agent
    if name in (None, "boundary"):
        return None
    if name == "golden":
        raise InputError(
            "expect an agent that writes tests, actually: 'golden', which knows only tests of problem sets. Leave "
            "--agent out, or name a language model"
        )
    check_agent("tester", name)
    asking = command.asking(WORDINGS[command.prompts](command.num_tests), command.num_tests)
    players: list[AgentOf] = []

    def answers(target: Target) -> list[str]:
        if not players:
            players.append(player_of("tester", name, [target.problem], sandbox, asking, stack))
        seen = observe(target.problem, code=target.core, turn=1)
        try:
            return ask(players[0](command.seed), "tester", [seen] * command.num_samples)
        except AnswerError as error:
            raise InputError(str(error)) from error

    return answers


def settings_of(command: OwnCodeOptions) -> dict[str, Any]:
    """Return what tests depend on beside the code, for a result folder."""
    names = ["seed", "timeout", "against", "all_findings"]
    found: dict[str, Any] = {}
    if command.agent is not None:
        names += ["agent", "num_samples", "num_tests"]
        if digest := digest_of(command.agent):
            found["agent_sha256"] = digest[:16]
        if is_language_model("tester", command.agent):
            names += [
                "model",
                "request",
                "prompts",
                "temperature",
                "top_p",
                "max_completion_length",
            ]
    return found | {name: getattr(command, name) for name in names}
