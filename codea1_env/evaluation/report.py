"""What report.json has, the same for all evaluations, and what answers took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codea1_env.evaluation.result_folder import USAGE, VERSION, ResultFolder
from codea1_env.evaluation.task import Evaluation
from codea1_env.rendering.display import counted

USED = ("answers", "untold", "prompt_tokens", "completion_tokens", "truncated")
"""What a row of usage.jsonl counts of a batch of answers."""


def build_report(
    evaluation: Evaluation[Any, Any], settings: Mapping[str, Any], unknown: Mapping[str, int]
) -> dict[str, Any]:
    """All that is known at the end. Equal verdicts give equal reports."""
    own = evaluation
    left = own.problems.keys() - own.faults().keys() - own.verdicts.keys()
    return {
        "version": VERSION,
        **({"kind": own.kind} if own.kind else {}),
        "settings": dict(settings),
        **own.summary(),
        "excluded": own.faults(),
        "missing": [task for task in own.problems if task in left],
        "unknown": dict(unknown),
        "results": {
            task: {**own.result(task), "digest": own.digest(own.problems[task])}
            for task in own.scored
        },
    }


def usage_of(folder: ResultFolder) -> dict[str, int] | None:
    """All that answers took, as report.json has it; None if no player said so."""
    rows = folder.rows(USAGE)
    return {name: sum(row[name] for row in rows) for name in USED} if rows else None


def usage_lines(report: Mapping[str, Any]) -> list[str]:
    """Return the same in words."""
    used = report.get("usage")
    if not used:
        return []
    answers, untold, tokens = used["answers"], used["untold"], used["completion_tokens"]
    if answers == untold:
        return [f"Tokens: the server told none of its {answers} answers"]
    of = f", without {counted(untold, 'answers')} that the server told none of" if untold else ""
    return [
        f"Tokens of {counted(answers, 'answers')}: {used['prompt_tokens']} of prompts, {tokens} of answers, "
        f"{tokens / (answers - untold):.0f} each{of}; {counted(used['truncated'], 'answers')} cut off"
    ]
