"""Curves of metrics, and charts of these as Vega-Lite specifications. Their colours of text and grid come from the page: it may be light or dark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from codea1_env.evaluation.statistics import mean_over_runs
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.report.folders import RunGroup
from codea1_env.support.extras import require
from codea1_env.training.metrics import slug


class _Altair:
    """The package altair, loaded where it is used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(require("altair", "report"), name)


alt: Any = _Altair()
Spec = dict[str, Any]
_COLOURS = ("#3b82f6", "#e8710a", "#12a594", "#d6409f", "#8e6cef", "#a18a00", "#e5484d", "#6b7f99")
"""Told apart on light and on dark ground."""
_HEIGHT = 220
_BAND_RUNS = 5
"""Runs from which on an interval is drawn; below, each run is a thin line."""
_FEW = 12
"""Steps up to which a curve shows its points: a line through two of them says more than was measured."""
_POINTS = 200
"""Points of a curve at most: beyond that, one point is the mean of several steps."""
_TICKS = 5
"""About so many labels of a horizontal axis."""

Point = dict[str, Any]
"""step, value, and low and high where there are five runs or more."""


class Chart(NamedTuple):
    """A chart with what is said about it."""

    title: str
    note: str
    spec: Spec


class _Measure(NamedTuple):
    metric: str
    title: str
    note: str
    control: str = ""
    """A metric that could refute it; "start" for its own first value."""
    share: bool = True
    alike: str = ""
    """Charts with the same word here have the same axis."""


REWARDS = (
    _Measure("reward/coder/mean", "Reward of the coder", "Mean over programs. What a better tester does lowers it."),
    _Measure("reward/tester/mean", "Reward of the tester", "Mean over suites. What a better coder does lowers it."),
    _Measure("tester/validity", "Validity of suites", "One of the two terms of the tester's reward."),
    _Measure("tester/copied", "Copied tests", "Share of tests whose call the problem's text shows."),
)  # fmt: skip
HELD_OUT = tuple(
    measure
    for where, of in (("held_out", "held-out"), ("unseen", "other problems'"))
    for measure in (
        _Measure(f"{where}/pass_rate", f"Coder: {of} golden tests passed", "Dashed: before the first step.", "start"),
        _Measure(
            f"{where}/kill_rate", f"Tester: {of} mutants killed", "Dashed: by copying the examples of the problem's text.",
            f"{where}/copier_kill_rate",
        ),
        _Measure(
            f"{where}/new_kill_rate", f"Tester: {of} mutants killed that copies do not kill",
            "Copying has 0 here. Dashed: before the first step.", "start",
        ),
    )
)  # fmt: skip
BOOK = (
    _Measure("book/size", "Tests in the Mistake Book", "After each step.", share=False),
    _Measure("book/added", "Tests that came", "In a step.", share=False, alike="book"),
    _Measure(
        "book/removed", "Tests that left the book", "In a step: programs pass them now, or the page was full.",
        share=False, alike="book",
    ),
    _Measure("book/pass_rate", "Replayed tests that passed", "Share of them."),
    _Measure("book/share_of_breaks", "Breaking tests from the book", "Share of all distinct tests that broke a program."),
    _Measure(
        "past/pass_rate", "Old mistakes that stay mended",
        "Share of tests that once broke a program and pass now; the rest is unlearned, or forgotten.",
    ),
)  # fmt: skip


def measures(groups: Sequence[RunGroup], wanted: Sequence[_Measure]) -> Iterator[Chart]:
    """Yield a chart for each measure that some run has: a line for each group, with its interval."""
    names = [group.name for group in groups]
    found: list[tuple[_Measure, list[Point]]] = []
    tops: dict[str, float] = {}
    for each in wanted:
        rows: list[Point] = []
        for group in groups:
            points = curve(group, each.metric, share=each.share)
            rows += [{**point, "group": group.name, "line": "measured"} for point in points]
            rows += _single_runs(group, each.metric)
            if each.control == "start":
                dashed = [{"step": p["step"], "value": points[0]["value"]} for p in points]
            else:
                dashed = curve(group, each.control) if each.control else []
            rows += [{**point, "group": group.name, "line": "control"} for point in dashed]
        if rows:
            found.append((each, rows))
            highest = max(float(row.get("high") or row["value"]) for row in rows)
            tops[each.alike] = max(highest, tops.get(each.alike, highest))
    for each, rows in found:
        top = 1.0 if each.share else (tops[each.alike] or None) if each.alike else None
        yield Chart(each.title, each.note, _lines(rows, names, top))


def curve(group: RunGroup, metric: str, *, share: bool = False) -> list[Point]:
    """Return the curve of a metric; empty where no run has it.

    The interval, from five runs on, is a 95% interval over runs, by Student's t. It says nothing of other problems.
    """
    binned = _binned(group, metric)
    points = []
    for step in sorted(set().union(*binned)):
        values = [each[step] for each in binned if step in each]
        point: Point = {"step": step, "value": sum(values) / len(values)}
        if len(values) >= _BAND_RUNS:
            found = mean_over_runs(values)
            point |= {
                "low": max(0.0, found.low) if share else found.low,
                "high": min(1.0, found.high) if share else found.high,
            }
        points.append(point)
    return points


def _binned(group: RunGroup, metric: str) -> list[dict[int, float]]:
    width = 1 + max((run.step for run in group.runs), default=0) // _POINTS
    return [
        bin_means(((row["step"], row[metric]) for row in run.metrics if metric in row), width)
        for run in group.runs
    ]


def _single_runs(group: RunGroup, metric: str) -> list[Point]:
    if not 1 < len(group.runs) < _BAND_RUNS:
        return []
    return [
        {"step": step, "value": value, "group": group.name, "line": "run", "seed": run.config.seed}
        for run, means in zip(group.runs, _binned(group, metric), strict=True)
        for step, value in means.items()
    ]


def bin_means(values: Iterable[tuple[int, float]], width: int) -> dict[int, float]:
    """Return the means of values over so many steps each, by the last of these steps; step 0 stands alone.

    Example:
        >>> bin_means([(0, 5.0), (1, 1.0), (2, 3.0), (3, 4.0)], 2)
        {0: 5.0, 2: 2.0, 4: 4.0}
    """
    found: dict[int, list[float]] = {}
    for step, value in values:
        found.setdefault(-(-step // width) * width, []).append(value)
    return {step: sum(each) / len(each) for step, each in found.items()}


def invalid_tests(groups: Sequence[RunGroup]) -> Iterator[Chart]:
    """For each group the invalid tests of a suite, by reason."""
    for group in groups:
        rows = [
            {"step": point["step"], "value": point["value"], "reason": reason.value}
            for reason in InvalidReason
            for point in curve(group, f"tester/invalid/{slug(reason)}")
        ]
        seen = {row["reason"] for row in rows if row["value"] > 0}
        if seen:
            shown = [row for row in rows if row["reason"] in seen]
            names = [reason.value for reason in InvalidReason if reason.value in seen]
            yield Chart(group.name, "Mean number in a suite.", _areas(shown, names))


def drawn(
    points: Sequence[Point], rows: Sequence[str], control: str, settings: Sequence[str]
) -> Spec:
    """Return curves over the settings of a knob, that of the control dashed."""
    dashed = alt.condition(alt.FieldEqualPredicate(field="row", equal=control), alt.value([5, 4]), alt.value([1, 0]))  # fmt: skip
    chart = _chart(points).mark_line(point=True).encode(
        x=alt.X("setting:N", sort=list(settings), title=None, axis=alt.Axis(labelAngle=0)),
        y=alt.Y("value:Q", title=None),
        color=alt.Color("row:N", scale=_scale(rows), title=None),
        strokeDash=dashed,
        tooltip=["row:N", "setting:N", *_numbers("value")],
    )  # fmt: skip
    return _spec(chart)


def radar_spec(points: Sequence[Point], rings: Sequence[Point], rows: Sequence[str]) -> Spec:
    """Return polygons around a centre, whose corners are already placed."""
    scale = alt.Scale(domain=[-1.25, 1.25])
    place = {"x": alt.X("x:Q", axis=None, scale=scale), "y": alt.Y("y:Q", axis=None, scale=scale)}
    ground = _chart(rings, height=320).encode(**place)
    net = ground.mark_line(strokeWidth=0.8, color="#888").encode(
        order="order:Q",
        strokeDash=alt.StrokeDash("ring:N", scale=alt.Scale(domain=["control", "outer"], range=[[5, 4], [1, 0]]), legend=None),
    )  # fmt: skip
    names = ground.transform_filter("datum.name != ''").mark_text(color="#888", dy=-8)
    lines = _chart(points, height=320).mark_line(point=True).encode(
        **place,
        order="order:Q",
        color=alt.Color("row:N", scale=_scale(rows), title=None),
        tooltip=["row:N", "tag:N", *_numbers("area")],
    )  # fmt: skip
    return _spec(net + names.encode(text="name:N") + lines)


def _lines(rows: Sequence[Point], groups: Sequence[str], top: float | None = None) -> Spec:
    legend = alt.Legend() if len(groups) > 1 else None  # a single one needs no name beside it
    base = _chart(rows).encode(
        x=alt.X("step:Q", axis=_axis(tickMinStep=1, format="d")),
        color=alt.Color("group:N", scale=_scale(groups), legend=legend, title=None),
    )
    # Charts beside each other have the same axis; a reward may be below 0.
    low = min(float(row.get("low") or row["value"]) for row in rows)
    axis = (
        alt.Scale(zero=True, nice=True)
        if top is None
        else alt.Scale(domain=[min(0.0, low), top], nice=top > 1)
    )
    value = alt.Y("value:Q", title=None, scale=axis)
    few = len({row["step"] for row in rows}) <= _FEW
    line = base.transform_filter("datum.line != 'run'").mark_line(strokeWidth=1.8, point=few)
    line = line.encode(
        y=value,
        strokeDash=alt.StrokeDash(
            "line:N",
            scale=alt.Scale(domain=["measured", "control"], range=[[1, 0], [5, 4]]),
            legend=None,
        ),
        tooltip=["group:N", "line:N", "step:Q", *_numbers("value", "low", "high")],
    )
    if any(row["line"] == "run" for row in rows):
        single = base.transform_filter("datum.line == 'run'")
        single = single.mark_line(strokeWidth=0.8, opacity=0.5, point=few)
        tips = ["group:N", "seed:N", "step:Q", *_numbers("value")]
        line = single.encode(y=value, detail="seed:N", tooltip=tips) + line
    if any("low" in row for row in rows):
        band = base.transform_filter("isValid(datum.low)").mark_area(opacity=0.2, line=False)
        line = band.encode(y="low:Q", y2="high:Q", detail="line:N") + line
    return _spec(line)


def _areas(rows: Sequence[Point], names: Sequence[str]) -> Spec:
    chart = _chart(rows).mark_area().encode(
        x=alt.X("step:Q", axis=_axis(tickMinStep=1, format="d")),
        y=alt.Y("value:Q", title=None),
        color=alt.Color("reason:N", scale=_scale(names), title=None),
        tooltip=["reason:N", "step:Q", *_numbers("value")],
    )  # fmt: skip
    return _spec(chart)


def _numbers(*names: str) -> list[Any]:
    return [alt.Tooltip(f"{name}:Q", format=".3f") for name in names]


def _chart(rows: Sequence[Point], height: int = _HEIGHT) -> Any:
    rounded = [
        {k: round(v, 5) if isinstance(v, float) else v for k, v in row.items()} for row in rows
    ]
    return alt.Chart(alt.InlineData(values=rounded), width="container", height=height)


def _axis(**more: Any) -> Any:
    """Return a horizontal axis whose labels have room where several charts stand beside each other."""
    return alt.Axis(tickCount=_TICKS, labelOverlap=True, **more)


def _scale(names: Sequence[str]) -> Any:
    return alt.Scale(
        domain=list(names), range=[_COLOURS[i % len(_COLOURS)] for i in range(len(names))]
    )


def _spec(chart: Any) -> Spec:
    spec: Spec = chart.to_dict()
    spec.pop("config", None)  # the page's own
    return spec
