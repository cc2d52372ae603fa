"""Tables of figures by a field of the samples."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape

from codea1_env.evaluation.statistics import Estimate, percent
from codea1_env.evaluation.task import Evaluation
from codea1_env.rendering.display import clean

SHOWN = 50
"""Groups of a table."""


def table_of_groups(
    evaluation: Evaluation[Any, Any], field: str, groups: Sequence[Mapping[str, Any]]
) -> list[list[str]]:
    """The main figures of the first groups of a report as rows of texts, the headings first."""
    found = [evaluation.main_figures(each["figures"]) for each in groups]
    names = list(dict.fromkeys(name for each in found for name in each))
    unit = ", percent [95%]" if evaluation.in_percent else " [95%]"
    write = percent if evaluation.in_percent else _plain
    rows = [
        [
            _label(group["value"]),
            str(group["problems"]),
            str(group["samples"]),
            *(write(each.get(name)) for name in names),
        ]
        for group, each in zip(groups[:SHOWN], found, strict=False)
    ]
    headings = [_label(field), "problems", evaluation.unit, *(f"{name}{unit}" for name in names)]
    return [headings, *rows]


def _label(value: Any) -> str:
    """A value of somebody's file, safe to show."""
    text = value if isinstance(value, str) else "(none)" if value is None else json.dumps(value)
    return escape(clean(text).replace("\n", "\\n"))


def _plain(figure: Mapping[str, float] | None) -> str:
    return str(Estimate(**figure)) if figure else "-"
