"""Diagnostics on the page and in DIAGNOSE.md: expectation, result and curve of each experiment, and a radar of all by their tags."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from codea1_env.baselines.diagnose.experiments import EXPERIMENTS
from codea1_env.baselines.diagnose.scores import came
from codea1_env.evaluation.statistics import Estimate
from codea1_env.report.charts import Chart, drawn, radar_spec
from codea1_env.report.folders import Diagnosed
from codea1_env.report.sheet import Cell, Sheet, Value, cell, markdown
from codea1_env.support.jobs import FolderError

_SPOKES = 3
"""Tags from which on a radar has a shape."""


def _sheets(found: Diagnosed) -> list[Sheet]:
    rows = [["experiment", "question", "expected before the runs", "came", "refuted if"]]
    for each in found.experiments:
        told = came(each["rows"][0]["row"], each["control"], each["signs"])
        row = [each["name"], each["question"], each["expected"], told if each["expected"] else ""]
        rows.append([*row, each["refuted_by"] + _not_run(each)])
    return [
        Sheet.of(rows, f"{found.name}: expected and come"),
        *(_rows(found, each) for each in found.experiments),
    ]


def _not_run(experiment: Mapping[str, Any]) -> str:
    there = {each["row"] for each in experiment["rows"]}
    own = EXPERIMENTS.get(experiment["name"])
    left = [row for row in (own.rows if own else ()) if row not in there]
    return f" Not in this run: {', '.join(left)}." if left and experiment["refuted_by"] else ""


def signs(found: Diagnosed) -> Counter[str]:
    """Number of signs as expected, of others, and of those that cannot be told."""
    return Counter(
        "cannot be told"
        if each["came"] is None
        else "as expected"
        if each["came"] == each["expected"]
        else "otherwise"
        for one in found.experiments
        for each in one["signs"]
    )


def _rows(found: Diagnosed, experiment: dict[str, Any]) -> Sheet:
    own = {each["row"]: each for each in found.scores if each["experiment"] == experiment["name"]}
    nothing = experiment["tells_nothing"]
    settings = [f"{s} (tells nothing)" if s in nothing else s for s in experiment["settings"]]
    rows: list[list[Value]] = [["row", *settings, "area [95%]", "failed"]]
    for each in experiment["rows"]:
        score, area = own[each["row"]], None
        if score["area"] is not None:
            area = Estimate(*(float(score[key]) for key in ("area", "low", "high")))
        control = each["row"] == experiment["control"]
        name = each["row"] + (" (control)" if control else "")
        cells = [_setting(each, setting) for setting in experiment["settings"]]
        shown = cell(area)._replace(text="control") if control else area
        rows.append([name, *cells, shown, "; ".join(each["failures"]) or "none"])
    note = (
        f"Score of the measure {experiment['measure']!r}, the mean over seeds: 0 is random play, 1 the oracle. Columns: "
        f"{experiment['knob']}. In brackets the difference from the control, with * where the 95% interval excludes 0; nothing "
        "is corrected for the number of comparisons. "
        "Area: mean difference over the columns, with its interval over seeds; none where rows are expected on both sides."
    )
    if nothing:
        beaten = "; ".join(f"{setting} (by {who})" for setting, who in nothing.items())
        note += f" A bad row beats GRPO at {beaten}: these columns tell nothing of an algorithm."
    return Sheet.of(rows, f"{found.name}: {experiment['name']}", note)


def _setting(row: dict[str, Any], setting: str) -> Cell:
    value, difference = row["means"][setting], row["differences"].get(setting)
    if value is None:
        return Cell("failed" if row["failures"] else "-", float("-inf"))
    text = f"{round(float(value), 3) + 0.0:.3f}"  # no -0.000
    if difference is not None:
        seen = difference["low"] > 0 or difference["high"] < 0
        text += f" ({difference['value']:+.3f}{'*' if seen else ''})"
    return Cell(text, float(value))


def _charts(found: Diagnosed) -> Iterator[Chart]:
    yield from _radar(found)
    for each in found.experiments:
        points = [
            {"setting": setting, "value": float(value), "row": row["row"]}
            for row in each["rows"]
            for setting, value in row["means"].items()
            if value is not None
        ]
        if points:
            note = f"Score over the knob: {each['knob']}. Dashed: the control, {each['control']}."
            rows = [row["row"] for row in each["rows"]]
            spec = drawn(points, rows, each["control"], each["settings"])
            yield Chart(f"{found.name}: {each['name']}", note, spec)


def _radar(found: Diagnosed) -> Iterator[Chart]:
    areas: dict[str, dict[str, float]] = {}
    for each in found.scores:
        if each["area"] is not None:
            areas.setdefault(each["row"], {})[each["tag"]] = float(each["area"])
    tags = list(dict.fromkeys(each["tag"] for each in found.scores))
    shown = {row: own for row, own in areas.items() if len(own) >= _SPOKES}
    if not shown:
        return
    limit = max(abs(area) for own in shown.values() for area in own.values()) or 1.0
    points = []
    for row, own in shown.items():
        there = [tag for tag in tags if tag in own]
        for order, tag in enumerate([*there, there[0]]):
            x, y = _place(tags, tag, 0.5 + own[tag] / limit / 2)
            points.append(
                {"row": row, "order": order, "tag": tag, "area": own[tag], "x": x, "y": y}
            )
    note = (
        f"Signed areas by tag: the dashed ring is the control, the outer one +{limit:.3f}, the centre -{limit:.3f}. Rows with "
        "three tags or more; a row has no corner where it was not run, or is the control."
    )
    yield Chart(f"{found.name}: radar", note, radar_spec(points, _rings(tags), list(shown)))


def _rings(tags: Sequence[str]) -> list[dict[str, Any]]:
    rings = []
    for radius, ring in ((0.5, "control"), (1.0, "outer")):
        for order, tag in enumerate([*tags, tags[0]]):
            x, y = _place(tags, tag, radius)
            name = tag if radius == 1 and order < len(tags) else ""
            rings.append({"ring": ring, "order": order, "name": name, "x": x, "y": y})
    return rings


def _place(tags: Sequence[str], tag: str, radius: float) -> tuple[float, float]:
    angle = 2 * math.pi * tags.index(tag) / len(tags)
    return radius * math.sin(angle), radius * math.cos(angle)


def diagnosis(found: Diagnosed) -> str:
    """Text of DIAGNOSE.md: for each experiment question, table, expectation, and what came."""
    lines = ["# What a learned adversary is good for", ""]
    for each in found.experiments:
        sheet = _rows(found, each)
        lines += [
            f"## {each['name']}",
            "",
            f"{each['question']} {sheet.note}",
            "",
            *markdown(sheet),
            "",
        ]
        if each["expected"]:
            told = came(each["rows"][0]["row"], each["control"], each["signs"])
            lines += [
                f"- Expected: {each['expected']}",
                f"- Refuted if: {each['refuted_by']}",
                f"- {told}",
            ]
        lines.append("")
    return "\n".join(lines)


def diagnosed_section(found: Sequence[Diagnosed]) -> tuple[list[Sheet], list[Chart]]:
    """Return tables and charts of folders."""
    tables: list[Sheet] = []
    curves: list[Chart] = []
    for each in found:
        try:
            tables += _sheets(each)
            curves += _charts(each)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FolderError(
                f"Expect the scores of {each.name} as `codea1 bench diagnose` writes them, actually: {error!r:.100}"
            ) from error
    return tables, curves
