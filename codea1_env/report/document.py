"""The page: sections with tables and charts, and the browser of episodes.

All of it stands in one file. Its policy lets the browser load nothing, and run only the scripts whose digests it names:
should any text ever get through unescaped, it could do nothing.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files

from codea1_env.report import charts, result_tables, tables
from codea1_env.report.cells import Sheet
from codea1_env.report.charts import Chart
from codea1_env.report.embedding import embedded
from codea1_env.report.episode_log import EpisodeLog, scan
from codea1_env.report.episodes import EpisodeSample, sample
from codea1_env.report.folders import Findings
from codea1_env.report.runs import RunGroup, grouped
from codea1_env.support.extras import require
from codea1_env.training.run_folder import EPISODES


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    name: str
    title: str
    note: str
    sheets: Sequence[Sheet] = field(default_factory=list)
    charts: Sequence[Chart] = field(default_factory=list)


def check_extras() -> None:
    """Refuse to begin where a package is missing that the page needs.

    Raises:
        MissingExtraError: One is.
    """
    for name in ("altair", "jinja2", "vl_convert"):
        require(name, "report")


def document(found: Findings) -> str:
    """The page as HTML."""
    groups = grouped(found.runs)
    logs = [scan(run) for group in groups for run in group.runs]
    episodes = sample(logs)
    of_runs = [  # one that has only begun has nothing to show in most tables
        dataclasses.replace(section, sheets=[sheet for sheet in section.sheets if sheet.rows])
        for section in _of_runs(groups, logs)
    ]
    sections = [*_of_results(found), *of_runs]
    shown = [section for section in sections if section.sheets or section.charts]
    return _render(groups, shown, episodes)


def _of_results(found: Findings) -> list[Section]:
    boards = [result_tables.leaderboard_sheet(each) for each in found.benchmarks]
    maps = [charts.heat_map(result) for _, result in found.cross_plays]
    names = [name for name, _ in found.cross_plays]
    return [
        Section("leaderboard", "Benchmarks", "A click on a heading sorts.", boards),
        Section(
            "evaluations",
            "Evaluations",
            "A click on a heading sorts.",
            list(result_tables.evaluation_sheets(found.evaluations)),
        ),
        Section(
            "cross-play",
            "Cross-play",
            "Every coder against every tester.",
            charts=[chart._replace(title=name) for name, chart in zip(names, maps, strict=True)],
        ),
    ]


def _of_runs(groups: Sequence[RunGroup], logs: Sequence[EpisodeLog]) -> list[Section]:
    if not groups:
        return []
    replays = {log.run.path: log.replays for log in logs}
    damaged = {
        log.run.path: {**log.run.damaged, **({EPISODES: log.damaged} if log.damaged else {})}
        for log in logs
    }
    runs = [log.run for log in logs]
    by_group = [[replays[run.path] for run in group.runs] for group in groups]
    differing = tables.other_settings(groups)
    return [
        Section(
            "overview",
            "Overview",
            "Runs that differ only by their seed are one group; a second run of a seed is in another.",
            [tables.overview(groups, damaged), tables.side_by_side(groups), differing],
        ),
        Section(
            "held-out",
            "What is held back",
            "No reward uses it. Each measure stands beside what could refute it.",
            charts=list(charts.measures(groups, charts.HELD_OUT)),
        ),
        Section(
            "rewards",
            "Rewards",
            "Each player's reward depends on the other: it may fall while both learn.",
            charts=list(charts.measures(groups, charts.REWARDS)),
        ),
        Section(
            "invalid",
            "Invalid tests",
            "By the reason why they do not count.",
            charts=list(charts.invalid_tests(groups)),
        ),
        Section(
            "book",
            "Mistake Book",
            "What broke programs is replayed until they pass it.",
            [
                sheet
                for sheet in (
                    tables.replay_counts(logs),
                    tables.came_back(runs, [log.replays for log in logs]),
                )
                if sheet.rows
            ],
            [*charts.measures(groups, charts.BOOK), *charts.ages(groups, by_group)],
        ),
        Section(
            "time",
            "Time and tokens",
            "Wall-clock time, which differs from machine to machine.",
            [tables.time_and_tokens(groups)],
            list(charts.phases(groups)),
        ),
    ]


def _render(groups: Sequence[RunGroup], sections: Sequence[Section], found: EpisodeSample) -> str:
    jinja2 = require("jinja2", "report")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_file),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    safe = jinja2.utils.markupsafe.Markup
    scripts = [
        require("vl_convert", "report").javascript_bundle(),
        _file("drawing.js"),
        _file("episodes.js"),
    ]
    runs = [
        {
            "name": run.name,
            "alpha": run.config.alpha,
            "tests": run.config.num_tests,
            "rewards": run.config.rewards,
        }
        for group in groups
        for run in group.runs
    ]
    specs = [chart.spec for section in sections for chart in section.charts]
    page: str = environment.get_template("page.html").render(
        policy="; ".join(
            [
                "default-src 'none'",
                "style-src 'unsafe-inline'",
                "img-src data:",
                f"script-src {' '.join(map(_digest, scripts))}",
            ]
        ),
        style=safe(_file("style.css")),
        scripts=[safe(script) for script in scripts],
        sections=sections,
        specs=safe(embedded(specs)),
        episodes=safe(embedded({**found.data(), "runs": runs})),
        shown=len(found.rows),
        total=found.total,
    )
    return page


def _file(name: str) -> str:
    return (files("codea1_env.report") / "page" / name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
