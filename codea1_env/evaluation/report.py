"""Writes report.json, the same for all evaluations: what each adds is its `summary` and its `result` of a problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codea1_env.evaluation.result_folder import VERSION
from codea1_env.evaluation.task import Evaluation


def build_report(
    evaluation: Evaluation[Any, Any], settings: Mapping[str, Any], unknown: Mapping[str, int]
) -> dict[str, Any]:
    """All that is known at the end, as report.json has it. Equal verdicts give equal reports.

    Args:
        evaluation: It has all its verdicts.
        settings: How samples were made and judged.
        unknown: Tasks of the files that the problem set has not.
    """
    faults = evaluation.faults()
    left = evaluation.problems.keys() - faults.keys() - evaluation.verdicts.keys()
    return {
        "version": VERSION,
        **({"kind": evaluation.kind} if evaluation.kind else {}),
        "settings": dict(settings),
        **evaluation.summary(),
        "excluded": faults,
        "missing": [task for task in evaluation.problems if task in left],
        "unknown": dict(unknown),
        "results": {
            task: {
                **evaluation.result(task),
                "digest": evaluation.digest(evaluation.problems[task]),
            }
            for task in evaluation.scored
        },
    }
