"""What stands on top of the page: what it is about, when and how that was made, and three figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

import codea1_env
from codea1_env.baselines.bench.ranking import command
from codea1_env.evaluation.cross_play import CrossPlay
from codea1_env.rendering.display import clean
from codea1_env.report.evaluations import (
    figures_of,
    kind_of,
    problems_of,
    words_of,
)
from codea1_env.report.folders import Benchmark, EvaluationResult, Findings
from codea1_env.report.runs import RunGroup
from codea1_env.report.tables import from_to, leaderboard_sheet
from codea1_env.training.summary import start_and_end

_FIGURES = 3
_OF_RUNS = {
    "held_out/pass_rate": "held-out tests that the coder passes",
    "held_out/kill_rate": "held-out mutants that the tester kills",
    "held_out/new_kill_rate": "of those that copying does not kill",
    "tester/validity": "validity of suites",
}
_OF_TESTS = ("pass", "mut", "Mul")


class PageSubject(NamedTuple):
    """One thing that a page is about, or all of them together."""

    title: str
    command: str = ""
    figures: Sequence[tuple[str, str]] = ()
    """Values with what they are."""
    about: str = ""


def headline(found: Findings, groups: Sequence[RunGroup]) -> PageSubject:
    """Return the top of a page."""
    subjects = list(_subjects(found, groups))
    first = subjects[0] if subjects else PageSubject("Code-A1 report")
    title = first.title + (f", and {len(subjects) - 1} more" if subjects[1:] else "")
    written = [child.lstat().st_mtime for path in found.paths for child in path.iterdir()]
    # Of the results: equal folders give equal pages.
    day = datetime.fromtimestamp(max(written)).strftime("%Y-%m-%d %H:%M, ") if written else ""
    versions = {str(each.settings["codea1_env"]) for each in found.evaluations if "codea1_env" in each.settings}  # fmt: skip
    about = f"{day}codea1_env {', '.join(sorted(versions)) or codea1_env.__version__}"
    figures = [figure for subject in subjects for figure in subject.figures]
    return PageSubject(clean(title), clean(first.command), figures[:_FIGURES], clean(about))


def _subjects(found: Findings, groups: Sequence[RunGroup]) -> Iterator[PageSubject]:
    yield from map(_benchmark, found.benchmarks)
    for each in found.diagnostics:
        failed = sum(len(row["failures"]) for one in each.experiments for row in one["rows"])
        numbers = (len(each.experiments), len(each.scores), failed)
        what = ("experiments", "scores", "failed runs")
        yield PageSubject(
            f"Diagnostics: {each.name}", "", [*zip(map(str, numbers), what, strict=True)]
        )
    yield from map(_evaluation, found.evaluations)
    for name, played in found.cross_plays:
        yield _cross_play(name, played)
    yield from map(_group, groups)


def _benchmark(each: Benchmark) -> PageSubject:
    figures = [(f"{len(each.results)} of {each.wanted}", "runs done")]
    for column, what in ((1, "highest pass rate of a coder"), (3, "highest kill rate of a tester")):
        rows = [
            row
            for row in leaderboard_sheet(each).rows
            if row[column].text != "-" and row[-1].folded
        ]
        if rows:
            best = max(rows, key=lambda row: row[column].order or 0)
            figures.append((best[column].text, f"{what}: {best[0].text}"))
    return PageSubject(f"Benchmark: {each.name}", command(each.config), figures)


def _evaluation(each: EvaluationResult) -> PageSubject:
    figures = figures_of(each)
    # Of tests, one figure of each kind: that of all tests of a suite.
    whole = {name.partition("@")[0]: name for name in figures if name.count("@") == 1}
    main = [whole[name] for name in _OF_TESTS if name in whole]
    names = main if len(main) == _FIGURES else list(figures)[:_FIGURES]
    kind, who = kind_of(each), str(each.settings.get("agent", "samples of a file"))
    title = f"Evaluation, {kind}: {who} on {problems_of(each.settings)}"
    part = part_of(each.report)
    shown = [(str(figures[name]), words_of(kind, name) + part) for name in names]
    return PageSubject(title, each.command, shown)


def part_of(report: Mapping[str, Any]) -> str:
    """Return how many problems the figures are of, where these are a part of the set; "" for all.

    Example:
        >>> part_of({"scored": 5, "problems": 5, "problems_of_set": 128})
        ', 5 of 128 problems'
    """
    scored, problems = report.get("scored"), report.get("problems_of_set", report.get("problems"))
    if not isinstance(scored, int) or not isinstance(problems, int) or scored >= problems:
        return ""
    return f", {scored} of {problems} problems"


def _cross_play(name: str, played: CrossPlay) -> PageSubject:
    rates = played.win_rates
    coders, testers = rates.mean(axis=1), 1 - rates.mean(axis=0)
    best, worst = int(np.argmax(coders)), int(np.argmax(testers))
    figures = [
        (f"{coders[best]:.3f}", f"unbroken programs of the strongest coder: {played.coders[best]}"),
        (f"{testers[worst]:.3f}", f"broken programs, strongest tester: {played.testers[worst]}"),
        (str(int(played.games.sum())), "games"),
    ]
    return PageSubject(f"Cross-play: {name}", "", figures)


def _group(group: RunGroup) -> PageSubject:
    config = group.runs[0].config
    ends = [start_and_end(run.metrics) for run in group.runs if run.metrics]
    cells = {name: from_to([(a[name], b[name]) for a, b in ends]) for name in _OF_RUNS}
    figures = [(cell.text, _OF_RUNS[name]) for name, cell in cells.items() if cell.text != "-"]
    players = f"{config.coder.player} against {config.tester.player}"
    title = f"Training: {group.name}, {config.problems}, {players}"
    return PageSubject(title, f"codea1 train --config {group.runs[0].name}/config.toml", figures)
