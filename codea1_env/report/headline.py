"""What stands on top of the page: what it is about, when and how that was made, and three figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import codea1_env
from codea1_env.baselines.bench.ranking import command, nobody_learned
from codea1_env.baselines.bench.score_table import SKILLS, Table
from codea1_env.rendering.display import clean, counted, counted_of, short_names
from codea1_env.report.benchmarks import leading
from codea1_env.report.diagnostics import signs
from codea1_env.report.evaluations import (
    figures_of,
    kind_of,
    problems_of,
    words_of,
)
from codea1_env.report.folders import Benchmark, Diagnosed, EvaluationResult, Findings
from codea1_env.report.runs import RunGroup
from codea1_env.report.tables import Cell, Sheet, command_cell, from_to, text_cell
from codea1_env.training.summary import start_and_end

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
    rows = [
        [
            text_cell(each.title + (f" ({each.folder})" if each.folder else "")),
            text_cell(
                "; ".join(f"{value} {what}" for value, what in each.figures[:_FIGURES]) + each.of
            ),
            text_cell(each.warning),
            command_cell(each.command) if each.command else Cell("-"),
        ]
        for each in subjects
    ]
    return Sheet("What this page is about", "", ["result", "figures", "warning", "command"], rows)


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
    figures = figures_of(each)
    # Of tests, one figure of each kind: that of all tests of a suite.
    whole = {name.partition("@")[0]: name for name in figures if name.count("@") == 1}
    main = [whole[name] for name in _OF_TESTS if name in whole]
    names = main if len(main) == _FIGURES else list(figures)[:_FIGURES]
    kind, who = kind_of(each), str(each.settings.get("agent", "samples of a file"))
    title = f"Evaluation, {kind}: {who} on {problems_of(each.settings)}"
    shown = [(str(figures[name]), words_of(kind, name)) for name in names]
    return PageSubject(title, each.command, shown, each.name, part_of(each.report))


def part_of(report: Mapping[str, Any]) -> str:
    """Return how many problems the figures are of, where these are a part of the set; "" for all.

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
