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
    "best-of-n": "codea1_env.evaluation.best_of_n:BestOfN",
    "cross-play": "codea1_env.evaluation.cross_play:CrossPlayEvaluation",
    "suites": "codea1_env.testgen.problem_suites:ProblemSuites",
}
"""Name -> where it is; loaded when it is asked for."""
_TAKEN = ("run", "compare")
_registered: dict[str, AnyEvaluation] = {}


def register_evaluation(name: str, evaluation: AnyEvaluation) -> None:
    """Give an evaluation of yours a name for `find_evaluation`, and so for `codea1 eval`.

    Args:
        name: What to call it; reports have it as `kind`.
        evaluation: A class that extends `ProgramEvaluation` or `TestEvaluation`.

    Raises:
        TypeError: It is no such class, or does not say what it must.
        ValueError: Something else has this name, or it is no name.
    """
    if not isinstance(name, str) or not name.replace("-", "_").isidentifier():
        raise ValueError(
            f"Expect the name of an evaluation to be letters, digits, - and _, actually: {name!r:.80}. Choose another."
        )
    if name in evaluation_names() or name in _TAKEN:
        raise ValueError(
            f"Expect a name for the evaluation that is free, actually {name!r} is taken. Choose another."
        )
    check_evaluation(name, evaluation)
    if "kind" not in vars(evaluation):
        evaluation.kind = name
    _registered[name] = evaluation


def evaluation_names() -> list[str]:
    """All names that `find_evaluation` knows.

    Example:
        >>> evaluation_names()[:3]
        ['code', 'tests', 'best-of-n']
    """
    return [*BUILT_IN, *_registered]


def find_evaluation(name: str) -> AnyEvaluation:
    """Return the evaluation of this name.

    Args:
        name: One of `evaluation_names`, or FILE.py:NAME or module:NAME of a class.

    Raises:
        TypeError: What is there is no evaluation.
        ValueError: There is nothing of this name.
    """
    if name in _registered:
        return _registered[name]
    if name not in BUILT_IN and ":" not in name:
        raise ValueError(
            f"Expect an evaluation to be {', '.join(evaluation_names())} or FILE.py:NAME, actually: {name!r}"
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
