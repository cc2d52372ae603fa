"""Evaluations by name: those that `codea1 eval` has, and yours."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from codea1_env.evaluation.task import Evaluation
from codea1_env.support.plugins import find

AnyEvaluation = type[Evaluation[Any, Any]]

BUILT_IN = {
    "code": "codea1_env.evaluation.programs:CodeEvaluation",
    "tests": "codea1_env.evaluation.suites.evaluation:SuiteEvaluation",
}
"""Name -> where it is; loaded when it is asked for."""


def find_evaluation(name: str) -> AnyEvaluation:
    """Return the evaluation of a name in `BUILT_IN`, or of FILE.py:NAME or module:NAME.

    Raises:
        TypeError: What is there is no evaluation.
        ValueError: There is nothing of this name.
    """
    if name not in BUILT_IN and ":" not in name:
        raise ValueError(
            f"Expect an evaluation to be {', '.join(BUILT_IN)} or FILE.py:NAME, actually: {name!r}"
        )
    found: AnyEvaluation = find(BUILT_IN.get(name, name), "evaluation")
    check_evaluation(name, found)
    if "kind" not in vars(found):
        found.kind = found.__name__
    return found


def check_evaluation(name: str, evaluation: object) -> None:
    """Refuse what is no evaluation."""
    what = f"Expect the evaluation {name!r}"
    if not isinstance(evaluation, type) or not issubclass(evaluation, Evaluation):
        raise TypeError(
            f"{what} to be a class that extends ProgramEvaluation or TestEvaluation, actually: {evaluation!r:.200}. "
            "Give the class itself, not what it makes."
        )
    parameters = inspect.signature(evaluation.judge).parameters
    fields = {each.name for each in dataclasses.fields(evaluation)}
    annotated = vars(evaluation).get("__annotations__", {}).items()
    options = [key for key, kind in annotated if "ClassVar" not in str(kind) and key not in fields]
    if getattr(evaluation, "role", None) not in ("coder", "tester"):
        fault = "to have the role 'coder' or 'tester', actually it has none. Extend ProgramEvaluation or TestEvaluation."
    elif evaluation.judge is Evaluation.judge:
        fault = "to judge, actually it has no method for that. Define judge(self, problem, sample)."
    elif len(parameters) != 3:
        fault = f"to have judge(self, problem, sample), actually: judge({', '.join(parameters)}). Change its parameters."
    elif options:
        fault = (
            f"to be a dataclass, since it has options, actually {', '.join(options)} would be none. Put "
            "@dataclass(kw_only=True, eq=False) above the class."
        )
    else:
        return
    raise TypeError(f"{what} {fault}")
