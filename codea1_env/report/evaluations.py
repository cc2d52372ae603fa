"""Evaluations on the page: figures with bars, problems that failed, and their answers for the browser."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from codea1_env.evaluation.runner import SAMPLES
from codea1_env.evaluation.selection import CHOICES
from codea1_env.evaluation.statistics import Estimate
from codea1_env.evaluation.suites.figures import in_words
from codea1_env.rendering.display import clean, counted, counted_of
from codea1_env.report.episode_log import EpisodeSample, embedded
from codea1_env.report.folders import EvaluationResult
from codea1_env.report.sheet import Cell, Sheet, bar_cell, command_cell, figure_cell, text_cell
from codea1_env.support.logs import every_line
from codea1_env.training.metrics import Row

_LISTED = 50
"""Problems that are listed as failed."""


def evaluation_sheets(evaluations: Sequence[EvaluationResult]) -> Iterator[Sheet]:
    """Yield two tables for each kind of evaluation: a row for each figure, and a row for each folder."""
    for kind in dict.fromkeys(map(kind_of, evaluations)):
        members = [each for each in evaluations if kind_of(each) == kind]
        figures = [figures_of(each) for each in members]
        names = dict.fromkeys(name for each in figures for name in each)
        if names:
            note = "Brackets and lines: 95% intervals over problems. Bars: from 0 to 1"
            rows = []
            for name in names:
                least = -1.0 if (kind, name) == ("tests", "mu") else 0.0
                note += ", of mu from -1 to 1" if least else ""
                cells = (bar_cell(of.get(name), least) for of in figures)
                rows.append([text_cell(words_of(kind, name)), *cells])
            headings = ["figure", *(clean(each.name) for each in members)]
            yield Sheet(f"Evaluations: {clean(kind)}", f"{note}.", headings, rows)
        yield Sheet(
            f"Folders: {clean(kind)}",
            "",
            ["folder", "agent", "problems", "state", "command"],
            [_folder_row(each) for each in members],
        )
    yield from _failed(evaluations)


def _folder_row(each: EvaluationResult) -> list[Cell]:
    settings = each.settings
    return [
        text_cell(each.name),
        text_cell(str(settings.get("agent", "samples of a file"))),
        text_cell(problems_of(settings)),
        text_cell(_state(each)),
        command_cell(each.command) if each.command else Cell("-"),
    ]


def problems_of(settings: Mapping[str, Any]) -> str:
    """Return the problem set, a file without its folders."""
    return PurePath(str(settings.get("problems", "-"))).name


def words_of(kind: str, name: str) -> str:
    """A figure's name in words, for suites of tests."""
    return in_words(name) if kind == "tests" else name


def _failed(evaluations: Sequence[EvaluationResult]) -> Iterator[Sheet]:
    rows, of = [], 0
    for each in evaluations:
        shares: dict[str, list[float]] = {}
        for verdict in each.verdicts:
            if verdict is not None and (share := _right(verdict)) is not None:
                shares.setdefault(str(verdict.get("task_id")), []).append(share)
        of += len(shares)
        for task, found in shares.items():
            if (mean := sum(found) / len(found)) < 1:
                number = Cell(str(len(found)), len(found))
                rows.append([text_cell(task), figure_cell(mean), number, text_cell(each.name)])
    if rows:
        rows.sort(key=lambda row: row[1].order or 0.0)
        note = "Below: the answers. Share: right programs, or right tests of all tests."
        if len(rows) > _LISTED:
            note = f"The {_LISTED} worst. {note}"
        title = f"Problems with wrong answers: {len(rows)} of {of}"
        yield Sheet(title, note, ["problem", "share right", "answers", "folder"], rows[:_LISTED])


def _right(verdict: Mapping[str, Any]) -> float | None:
    """The share of an answer that is right; None where the verdict does not say so."""
    if isinstance(verdict.get("outcome"), str):
        return float(verdict["outcome"] == "pass")
    tests = verdict.get("tests")
    if isinstance(tests, list) and all(isinstance(test, dict) for test in tests):
        return sum(not test.get("fault") for test in tests) / len(tests) if tests else 0.0
    return None


def add_answers(page: EpisodeSample, each: EvaluationResult, run: int, limit: int) -> None:
    """Let a page have as many answers of an evaluation as fit: one wrong one of each problem first, right ones last."""
    lines = [(row is not None, end) for row, end in every_line(each.path / SAMPLES)]
    ends = [0, *(end for _, end in lines)]
    order = [
        (share == 1, number if type(number := verdict.get("sample")) is int else 0, place)
        for place, (verdict, (whole, _)) in enumerate(zip(each.verdicts, lines, strict=False))
        if whole and verdict is not None and (share := _right(verdict)) is not None
    ]
    if not order:
        return
    page.total += len(order)
    drawn: list[Row] = []
    used = 0
    with (each.path / SAMPLES).open("rb") as file:
        for right, number, place in sorted(order):
            file.seek(ends[place])
            answer = json.loads(file.readline())
            before = page.texts.bytes + page.tests.bytes
            row = _answer(page, answer, each.verdicts[place] or {}, right) | {
                "run": run,
                "step": number,
            }
            used += len(embedded(row)) + page.texts.bytes + page.tests.bytes - before
            if used > limit:
                break
            drawn.append(row | {"order": place})
    page.rows += drawn


def _answer(page: EpisodeSample, sample: Row, verdict: Row, right: bool) -> Row:
    row: Row = {
        "task": page.text(str(verdict.get("task_id"))), "winner": "right" if right else "wrong",
        "history": [], "suites": [],
    }  # fmt: skip
    if isinstance(outcome := verdict.get("outcome"), str):
        code = sample.get("solution", sample.get("completion", ""))
        row |= {"outcome": clean(outcome), "code": page.text(str(code))}
        return row | {"message": page.text(str(verdict.get("message", "")))}
    tests = [page.test(_shown(each)) for each in verdict["tests"]]
    number = sum(not each.get("fault") for each in verdict["tests"])
    row |= {"outcome": f"{counted_of(number, len(tests), 'tests')} right", "tests": tests}
    return row | {"answer": page.text(str(sample.get("answer", "")))}


def _shown(test: Row) -> Row:
    fault = test.get("fault")
    how = {"status": str(fault)} if fault else {"status": "kept", "outcome": "pass"}
    return {"test": str(test.get("text", "")), "reason": str(test.get("reason") or ""), **how}


def kind_of(each: EvaluationResult) -> str:
    """Return the kind of an evaluation, in words where it is not known yet."""
    return str(each.report.get("kind", "code")) if each.report else "not finished"


def _state(each: EvaluationResult) -> str:
    damaged = each.verdicts.count(None)
    whole = len(each.verdicts) - damaged
    state = counted(whole, "verdicts")
    state += "" if each.report else " so far, not finished"
    return state + (f", {counted(damaged, 'damaged lines')}" if damaged else "")


def figures_of(each: EvaluationResult) -> dict[str, Estimate]:
    """Return the figures of an evaluation by name."""
    found = _flat(each.report.get("figures", {}))
    match each.report.get("selection"):
        case {"figures": dict(chosen)}:
            found |= {CHOICES.get(name, name): value for name, value in _flat(chosen).items()}
    return found


def _flat(figures: Mapping[str, Any], before: str = "") -> dict[str, Estimate]:
    """Figures by name, also of those that stand in groups, as those of base tests do."""
    found: dict[str, Estimate] = {}
    for name, value in figures.items():
        match value:
            case {"value": float(middle), "low": float(low), "high": float(high)}:
                found[f"{before}{name}"] = Estimate(middle, low, high)
            case dict():
                found |= _flat(value, "" if name == "all" else f"{name}: ")
    return found
