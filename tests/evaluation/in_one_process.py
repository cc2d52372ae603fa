"""An evaluation of `codea1 eval` in this process, and a player: what the tests of them share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from codea1_env.agents import FixedAgent
from codea1_env.evaluation.runner import EvaluationRun, build_report
from codea1_env.evaluation.task import Evaluation
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import Observation
from codea1_env.support.jobs import Jobs


class InFolder(EvaluationRun[Any, Any]):
    """The run of an evaluation that has its problems."""

    def __init__(self, own: Any, sandbox: Sandbox, folder: Jobs) -> None:
        own.begin(sandbox)
        super().__init__(own, folder)
        self.own: Evaluation[Any, Any] = own

    def report(self, unknown: Mapping[str, int] | None = None) -> dict[str, Any]:
        return build_report(self.own, {}, unknown or {})


def ignore(sample: Any, verdict: Any) -> None:
    """Take no notice of a verdict."""


class Says(FixedAgent):
    """Answers the same always, but for the name of the function."""

    def __init__(self, text: str) -> None:
        self.text = text

    def act(self, observations: Sequence[Observation]) -> list[str]:
        return [self.text.replace("NAME", each["entry_point"]) for each in observations]
