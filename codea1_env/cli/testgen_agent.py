"""The agent that proposes tests for code of one's own, and the options that it shares with all that writes such tests."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated, Any

import tyro

from codea1_env.agents.llm.prompts import WORDINGS
from codea1_env.cli.errors import InputError
from codea1_env.cli.eval_agents import check_agent, is_language_model, player_of
from codea1_env.cli.eval_options import AskingOptions
from codea1_env.cli.testgen_findings import FindingOptions
from codea1_env.evaluation.runner import AgentOf
from codea1_env.rollout import AnswerError, ask
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import observe
from codea1_env.support.plugins import digest_of
from codea1_env.testgen.target import Target

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
        if not 0 < self.timeout < 1e6:
            raise ValueError(
                f"Expect --timeout to be a number of seconds above 0, actually: {self.timeout}"
            )


def asker(command: OwnCodeOptions, sandbox: Sandbox, stack: ExitStack) -> Asker | None:
    """The agent, which is loaded when it is asked for the first time.

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
    """What tests depend on beside the code, for a result folder."""
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
