"""The page: what it is about with three figures, sections with tables and charts, and the browser of episodes.

All of it stands in one file. Its policy lets the browser load nothing, and run only the scripts whose digests it names:
should any text ever get through unescaped, it could do nothing.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from importlib.resources import files
from typing import Any, NamedTuple

import codea1_env
from codea1_env.baselines.bench.score_table import SKILLS, Table, command, nobody_learned
from codea1_env.rendering.display import clean, counted, counted_of, short_names
from codea1_env.report import charts, evaluations, tables
from codea1_env.report.benchmarks import benchmark_sheets, leading
from codea1_env.report.charts import Chart
from codea1_env.report.diagnostics import diagnosed_section, signs
from codea1_env.report.episode_log import (
    SAMPLE_BYTES,
    EpisodeLog,
    EpisodeSample,
    embedded,
    sample,
    scan,
)
from codea1_env.report.folders import (
    Benchmark,
    Diagnosed,
    EvaluationResult,
    Findings,
    RunGroup,
    by_difference,
    grouped,
)
from codea1_env.report.sheet import Sheet, Value, folded_cell, with_values
from codea1_env.report.tables import from_to
from codea1_env.support.extras import require
from codea1_env.training.run_folder import EPISODES
from codea1_env.training.summary import start_and_end

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
        evaluations.add_answers(episodes, each, number, share // len(found.evaluations))
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
        Section(
            "evaluations", "Evaluations", "", list(evaluations.evaluation_sheets(found.evaluations))
        ),
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
    return [
        *runs,
        *({"name": each.name, "kind": evaluations.kind_of(each)} for each in found.evaluations),
    ]


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


_FIGURES = 3
_OF_RUNS = {
    "held_out/pass_rate": "held-out tests that the coder passes",
    "held_out/kill_rate": "held-out mutants that the tester kills",
    "held_out/new_kill_rate": "of those that copying does not kill",
    "tester/validity": "validity of suites",
}
_SIGNS = {
    "as expected": "signs as expected before the runs",
    "otherwise": "signs other than expected",
    "cannot be told": "signs that cannot be told: too few seeds",
}
_OF_TESTS = ("pass", "mut", "Mul")


class PageSubject(NamedTuple):
    """One thing that a page is about, or all of them together."""

    title: str
    command: str = ""
    figures: Sequence[tuple[str, str]] = ()
    """Values with what they are."""
    folder: str = ""
    """Where the title does not say so."""
    of: str = ""
    """What all figures are of."""
    warning: str = ""
    about: str = ""


def headline(found: Findings, groups: Sequence[RunGroup]) -> tuple[PageSubject, Sheet | None]:
    """Return the top of a page, and a table of what it is about where that is more than one thing."""
    subjects = list(_subjects(found, groups))
    written = [
        child.lstat().st_mtime
        for path in found.paths
        for child in path.iterdir()
        if child.suffix != ".html"
    ]
    # Of the results, and not of a page among them.
    day = datetime.fromtimestamp(max(written)).strftime("%Y-%m-%d %H:%M, ") if written else ""
    versions = {str(each.settings["codea1_env"]) for each in found.evaluations if "codea1_env" in each.settings}  # fmt: skip
    about = clean(f"{day}codea1_env {', '.join(sorted(versions)) or codea1_env.__version__}")
    if len(subjects) == 1:
        (one,) = subjects
        shown = one._replace(title=clean(one.title), command=clean(one.command), about=about)
        return shown._replace(figures=one.figures[:_FIGURES]), None
    kinds = dict.fromkeys(each.title.partition(":")[0].partition(",")[0] for each in subjects)
    title = f"Report of {len(subjects)} results: {', '.join(kinds)}"
    return PageSubject(title, about=about), _contents(subjects)


def _contents(subjects: Sequence[PageSubject]) -> Sheet:
    rows: list[list[Value]] = [["result", "figures", "warning", "command"]]
    for each in subjects:
        name = each.title + (f" ({each.folder})" if each.folder else "")
        figures = "; ".join(f"{value} {what}" for value, what in each.figures[:_FIGURES]) + each.of
        rows.append([name, figures, each.warning, folded_cell(each.command)])
    return Sheet.of(rows, "What this page is about")


def _subjects(found: Findings, groups: Sequence[RunGroup]) -> Iterator[PageSubject]:
    yield from map(_benchmark, found.benchmarks)
    yield from map(_diagnosed, found.diagnostics)
    yield from map(_evaluation, found.evaluations)
    yield from map(_group, groups)


def _benchmark(each: Benchmark) -> PageSubject:
    table, done = Table(each.results), f"{len(each.results)} of {each.wanted}"
    names = {name: clean(shown) for name, shown in short_names(table.entries).items()}
    failed = len(each.results) - len(table.results)
    figures = [(done, "runs done" + (f", {failed} failed" if failed else ""))]
    figures += [found for skill in SKILLS if (found := leading(table, names, skill))]
    title = f"Benchmark: {each.name}"
    if len(each.results) < each.wanted:
        title += f", not finished: {done} runs"
    warning = "" if table.results else "No run has a result yet."
    if said := nobody_learned(table):
        warning = " ".join(said).replace("`", "")
    return PageSubject(title, command(each.config), figures, warning=warning)


def _diagnosed(each: Diagnosed) -> PageSubject:
    found = signs(each)
    figures = [
        (f"{found[sign]} of {found.total()}", what) for sign, what in _SIGNS.items() if found
    ]
    failed = sum(len(row["failures"]) for one in each.experiments for row in one["rows"])
    warning = f"{counted(failed, 'runs')} failed." if failed else ""
    return PageSubject(f"Diagnostics: {each.name}", each.command, figures, warning=warning)


def _evaluation(each: EvaluationResult) -> PageSubject:
    figures = evaluations.figures_of(each)
    # Of tests, one figure of each kind: that of all tests of a suite.
    whole = {name.partition("@")[0]: name for name in figures if name.count("@") == 1}
    main = [whole[name] for name in _OF_TESTS if name in whole]
    names = main if len(main) == _FIGURES else list(figures)[:_FIGURES]
    kind, who = evaluations.kind_of(each), str(each.settings.get("agent", "samples of a file"))
    title = f"Evaluation, {kind}: {who} on {evaluations.problems_of(each.settings)}"
    shown = [(str(figures[name]), evaluations.words_of(kind, name)) for name in names]
    return PageSubject(title, each.command, shown, each.name, part_of(each.report))


def part_of(report: Mapping[str, Any]) -> str:
    """The number of problems behind the figures, if it is a part of the set; "" for all.

    Example:
        >>> part_of({"scored": 5, "problems": 5, "problems_of_set": 128})
        ', 5 of 128 problems'
        >>> part_of({"scored": 5, "problems_of_set": 128, "settings": {"max_problems": 5}})
        ', 5 of 128 problems (--max-problems 5)'
    """
    scored, problems = report.get("scored"), report.get("problems_of_set", report.get("problems"))
    if not isinstance(scored, int) or not isinstance(problems, int) or scored >= problems:
        return ""
    most = report.get("settings", {}).get("max_problems")
    part = counted_of(scored, problems, "problems")
    return f", {part}" + (f" (--max-problems {most})" if most else "")


def _group(group: RunGroup) -> PageSubject:
    config = group.runs[0].config
    ends = [start_and_end(run.metrics) for run in group.runs if run.metrics]
    cells = {name: from_to([(a[name], b[name]) for a, b in ends]) for name in _OF_RUNS}
    figures = [(cell.text, _OF_RUNS[name]) for name, cell in cells.items() if cell.text != "-"]
    players = f"{config.coder.player} against {config.tester.player}"
    title = f"Training: {group.name}, {config.problems}, {players}"
    return PageSubject(title, f"codea1 train --config {group.runs[0].name}/config.toml", figures)
