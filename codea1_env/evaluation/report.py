"""What report.json has, the same for all evaluations, with figures by a field of the samples and what answers took.

Samples of a file may have fields of their own:

    {"task_id": "HumanEval/0", "solution": "def ...", "student": "anna", "week": 3}

Short plain values stay in verdicts.jsonl. A figure of a group is that of an evaluation which has only its samples.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from codea1_env.evaluation.result_folder import USAGE, VERSION, ResultFolder
from codea1_env.evaluation.samples import SamplesError
from codea1_env.evaluation.task import Evaluation

USED = ("answers", "untold", "prompt_tokens", "completion_tokens", "truncated")
"""What a row of usage.jsonl counts of a batch of answers."""
CONTENT = frozenset(["task_id", "solution", "completion", "tests", "test_list", "answer"])
"""Fields that say what a sample is."""
MAX_GROUPS = 1000
"""Each has figures with intervals of its own."""
_LONGEST = 200
"""Characters of a text that is a label; longer ones stay in samples.jsonl."""


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
        "excluded": own.left_out(),
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
    of = f", without {untold} answers that the server told none of" if untold else ""
    return [
        f"Tokens of {answers} answers: {used['prompt_tokens']} of prompts, {tokens} of answers, "
        f"{tokens / (answers - untold):.0f} each{of}; {used['truncated']} answers were cut off"
    ]


def own_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a sample that are kept with its verdict: short texts, numbers, flags and None.

    Example:
        >>> own_fields({"task_id": "a", "solution": "", "student": "anna", "log": ["long"]})
        {'student': 'anna'}
    """
    return {k: value for k, value in row.items() if k not in CONTENT and _is_label(value)}


def check_fields(
    evaluation: Evaluation[Any, Any], fields: Sequence[str], samples: Sequence[Any]
) -> None:
    """Refuse fields that samples cannot be divided by."""
    if fields and type(evaluation).group is not Evaluation.group:
        raise SamplesError(
            "Expect --by with an evaluation that judges each sample by itself, actually this one does not. Leave it out."
        )
    known = dict.fromkeys(name for each in samples for name in each.row if name not in CONTENT)
    for name in fields:
        if name not in known:
            raise SamplesError(
                f"Expect --by to name a field that the samples have of their own, actually: {name!r:.80}. "
                f"They have: {', '.join(map(repr, list(known)[:30])) or 'none'}."
            )
        for each in samples:
            if not _is_label(each.row.get(name)):
                raise SamplesError(
                    f"Expect {name!r:.80} to be a text of at most {_LONGEST} characters, a number or a flag in every "
                    f"sample, for --by, actually {each.row[name]!r:.80} in sample {each.index} of {each.task_id}."
                )
        number = len({_key(each, name) for each in samples})
        if number > MAX_GROUPS:
            raise SamplesError(
                f"Expect --by to name a field with at most {MAX_GROUPS} different values, actually {name!r:.80} has "
                f"{number}."
            )


def figures_by(
    evaluation: Evaluation[Any, Any], fields: Sequence[str], samples: Sequence[Any]
) -> dict[str, list[dict[str, Any]]]:
    """Return field -> the figures of each group of samples, sorted by value; None is the value of those without the field."""
    scored = set(evaluation.scored)
    found = {}
    for name in dict.fromkeys(fields):
        groups: dict[str, list[Any]] = {}
        for each in samples:
            groups.setdefault(_key(each, name), []).append(each)
        values = sorted((json.loads(key) for key in groups), key=_order)
        found[name] = [
            _group(evaluation, value, [s for s in groups[json.dumps(value)] if s.task_id in scored])
            for value in values
        ]
    return found


def _group(evaluation: Evaluation[Any, Any], value: Any, samples: Sequence[Any]) -> dict[str, Any]:
    verdicts: dict[str, list[Any]] = {}
    for each in samples:
        verdict = evaluation.verdicts[each.task_id][each.index]
        verdicts.setdefault(each.task_id, []).append(verdict)
    part = copy.copy(evaluation)
    part.verdicts = verdicts
    counts = {"value": value, "problems": len(verdicts), "samples": len(samples)}
    return {**counts, "figures": part.figures() if verdicts else {}}


def _key(sample: Any, name: str) -> str:
    """Different for 1, 1.0 and true, which are equal in Python."""
    return json.dumps(sample.row.get(name))


def _order(value: Any) -> tuple[int, float, str]:
    if value is None:
        return 2, 0.0, ""
    return (1, 0.0, value) if isinstance(value, str) else (0, float(value), "")


def _is_label(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return abs(value) < 1 << 63  # a flag is one, too
    return value is None or (isinstance(value, str) and len(value) <= _LONGEST)
