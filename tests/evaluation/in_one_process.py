"""An evaluation of `codea1 eval` in this process: what the tests of them share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from codea1_env.evaluation.report import build_report
from codea1_env.evaluation.result_folder import ResultFolder
from codea1_env.evaluation.runner import EvaluationRun
from codea1_env.evaluation.task import Evaluation
from codea1_env.sandbox import Sandbox


class InFolder(EvaluationRun[Any, Any]):
    """The run of an evaluation that has its problems."""

    def __init__(
        self,
        own: Any,
        sandbox: Sandbox,
        folder: ResultFolder,
        stop: Callable[[], bool] = lambda: False,
        threads: int = 2,
    ) -> None:
        own.begin(sandbox)
        super().__init__(own, folder, stop, threads)
        self.own: Evaluation[Any, Any] = own

    def report(self, unknown: Mapping[str, int] | None = None) -> dict[str, Any]:
        return build_report(self.own, {}, unknown or {})


def ignore(sample: Any, verdict: Any) -> None:
    """Take no notice of a verdict."""
