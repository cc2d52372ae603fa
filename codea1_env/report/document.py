"""The page: sections with tables and charts, and the browser of episodes.

All of it stands in one file. Its policy lets the browser load nothing, and run only the scripts whose digests it names:
should any text ever get through unescaped, it could do nothing.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any, NamedTuple

from codea1_env.report import charts, tables
from codea1_env.report.benchmarks import benchmark_sheets
from codea1_env.report.charts import Chart
from codea1_env.report.diagnostics import diagnosed_section
from codea1_env.report.episode_log import (
    SAMPLE_BYTES,
    EpisodeLog,
    EpisodeSample,
    embedded,
    sample,
    scan,
)
from codea1_env.report.evaluations import add_answers, evaluation_sheets, kind_of
from codea1_env.report.folders import Findings
from codea1_env.report.headline import PageSubject, headline
from codea1_env.report.runs import RunGroup, by_difference, grouped
from codea1_env.report.tables import Sheet, with_values
from codea1_env.support.extras import require
from codea1_env.training.run_folder import EPISODES

_BROWSED = (("episodes", "answers"), ("run", "folder"), ("step", "sample"), ("winner", "result"))
"""What the browser shows of runs, and of evaluations; and by what it filters."""
_RUNS = ("overview", "held-out", "rewards", "invalid", "book", "time")
_DIAGNOSED = "What was expected was written before the runs. Every row stands beside the control that could refute it."


class Section(NamedTuple):
    """A part of the page."""

    name: str
    title: str
    note: str
    sheets: Sequence[Sheet] = ()
    charts: Sequence[Chart] = ()

    @property
    def columns(self) -> int:
        """Charts beside each other, so that none stands alone."""
        number = len(self.charts)
        return min(number, 4 if number % 3 == 1 else 3)


def check_extras() -> None:
    """Refuse to begin where a package is missing that the page needs."""
    for name in ("altair", "jinja2", "vl_convert"):
        require(name, "report")


def document(found: Findings) -> str:
    """Return the page as HTML."""
    groups = by_difference(grouped(found.runs))
    logs = [scan(run) for group in groups for run in group.runs]
    share = SAMPLE_BYTES // 2 if logs and found.evaluations else SAMPLE_BYTES
    episodes = sample(logs, share)
    for number, each in enumerate(found.evaluations, start=len(logs)):
        add_answers(episodes, each, number, share // len(found.evaluations))
    sections = [*_of_results(found), *(_of_runs(groups, logs) if groups else ())]
    top, contents = headline(found, groups)
    if contents:
        sections.insert(0, Section("contents", "In short", "", [contents]))
    if contents and len(found.paths) > len(found.runs):
        of = f"Training: {', '.join(group.name for group in groups)}. "
        sections = [
            each._replace(note=of + each.note) if each.name in _RUNS else each for each in sections
        ]
    # A run that has only begun has nothing to show in most tables.
    tidied = [
        each._replace(sheets=[with_values(sheet) for sheet in each.sheets if sheet.rows])
        for each in sections
    ]
    shown = [section for section in tidied if section.sheets or section.charts]
    return _render(top, _players(found, groups), shown, episodes)


def _of_results(found: Findings) -> list[Section]:
    boards = [sheet for each in found.benchmarks for sheet in benchmark_sheets(each)]
    return [
        Section("leaderboard", "Benchmarks", "", boards),
        Section("diagnostics", "Diagnostics", _DIAGNOSED, *diagnosed_section(found.diagnostics)),
        Section("evaluations", "Evaluations", "", list(evaluation_sheets(found.evaluations))),
    ]


def _of_runs(groups: Sequence[RunGroup], logs: Sequence[EpisodeLog]) -> list[Section]:
    damaged = {
        log.run.path: {**log.run.damaged, **({EPISODES: log.damaged} if log.damaged else {})}
        for log in logs
    }
    overview = [
        tables.side_by_side(groups), tables.other_settings(groups), tables.health_signs(groups), tables.overview(groups, damaged),
    ]  # fmt: skip
    held_out, rewards, book = (
        list(charts.measures(groups, wanted))
        for wanted in (charts.HELD_OUT, charts.REWARDS, charts.BOOK)
    )
    time = [tables.time_and_tokens(groups)]
    return [Section(name, title, note, *parts) for name, title, note, *parts in (
        ("overview", "Overview", "Runs that differ only by their seed are one group; a second run of a seed is in another.", overview),
        ("held-out", "What is held back", "No reward uses it. Each measure stands beside what could refute it.", (), held_out),
        ("rewards", "Rewards", "Each player's reward depends on the other: it may fall while both learn.", (), rewards),
        ("invalid", "Invalid tests", "By the reason why they do not count.", (), list(charts.invalid_tests(groups))),
        ("book", "Mistake Book", "What broke programs is replayed until they pass it.", (), book),
        ("time", "Time and tokens", "Wall-clock time, which differs from machine to machine.", time),
    )]  # fmt: skip


def _players(found: Findings, groups: Sequence[RunGroup]) -> list[dict[str, Any]]:
    configs = [(run.name, run.config) for group in groups for run in group.runs]
    runs = [
        {"name": name, "alpha": of.alpha, "tests": of.num_tests, "rewards": of.rewards}
        for name, of in configs
    ]
    return [*runs, *({"name": each.name, "kind": kind_of(each)} for each in found.evaluations)]


def _render(
    top: PageSubject, runs: list[dict[str, Any]], sections: Sequence[Section], found: EpisodeSample
) -> str:
    jinja2 = require("jinja2", "report")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_file),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    safe = jinja2.utils.markupsafe.Markup
    bundle = require("vl_convert", "report").javascript_bundle()
    scripts = [bundle, _file("drawing.js"), _file("episodes.js")]
    both = [any(key in each for each in runs) for key in ("alpha", "kind")]
    words = [[name for name, there in zip(pair, both, strict=True) if there] for pair in _BROWSED]
    browser, *labels = (" or ".join(each).capitalize() for each in words)
    browser = browser.replace(" or ", " and ")
    page: str = environment.get_template("page.html").render(
        policy="default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src {' '.join(map(_digest, scripts))}",
        style=safe(_file("style.css")),
        scripts=[safe(script) for script in scripts],
        top=top,
        sections=sections,
        specs=safe(embedded([chart.spec for section in sections for chart in section.charts])),
        episodes=safe(embedded({**found.data(), "runs": runs})),
        browser=browser,
        labels=labels,
        shown=len(found.rows),
        total=found.total,
    )
    return page


def _file(name: str) -> str:
    return (files("codea1_env.report") / "page" / name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
