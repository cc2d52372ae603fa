"""Evaluations on the page: figures with bars, problems that failed, and their answers for the browser."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from codea1_env.evaluation.runner import SAMPLES
from codea1_env.evaluation.selection import CHOICES
from codea1_env.evaluation.statistics import Estimate, figures_in
from codea1_env.evaluation.suites.figures import in_words
from codea1_env.rendering.display import clean, counted, counted_of
from codea1_env.report.episode_log import EpisodeSample
from codea1_env.report.folders import EvaluationResult
from codea1_env.report.sheet import Sheet, Value, bar_cell, folded_cell
from codea1_env.support.logs import every_line
from codea1_env.training.metrics import Row

_LISTED = 50
"""Problems that are listed as failed."""


def evaluation_sheets(evaluations: Sequence[EvaluationResult]) -> Iterator[Sheet]:
    """Yield two tables for each kind of evaluation: a row for each figure, and a row for each folder."""
    for kind in dict.fromkeys(map(kind_of, evaluations)):
        members = [each for each in evaluations if kind_of(each) == kind]
        figures = [figures_of(each) for each in members]
        rows: list[list[Value]] = []
        note = "Brackets and lines: 95% intervals over problems. Bars: from 0 to 1"
        for name in dict.fromkeys(name for each in figures for name in each):
            least = -1.0 if (kind, name) == ("tests", "mu") else 0.0
            note += ", of mu from -1 to 1" if least else ""
            bars = (bar_cell(of.get(name), least) for of in figures)
            rows.append([words_of(kind, name), *bars])
        if rows:
            headings = ["figure", *(clean(each.name) for each in members)]
            yield Sheet.of([headings, *rows], f"Evaluations: {clean(kind)}", f"{note}.")
        rows = [["folder", "agent", "problems", "state", "command"]]
        for each in members:
            agent = str(each.settings.get("agent", "samples of a file"))
            problems, command = problems_of(each.settings), folded_cell(each.command)
            rows.append([each.name, agent, problems, _state(each), command])
        yield Sheet.of(rows, f"Folders: {clean(kind)}")
    yield from _failed(evaluations)


def problems_of(settings: Mapping[str, Any]) -> str:
    """Return the problem set, a file without its folders."""
    return PurePath(str(settings.get("problems", "-"))).name


def words_of(kind: str, name: str) -> str:
    """A figure's name in words, for suites of tests."""
    return in_words(name) if kind == "tests" else name


def _failed(evaluations: Sequence[EvaluationResult]) -> Iterator[Sheet]:
    rows: list[tuple[float, list[Value]]] = []
    of = 0
    for each in evaluations:
        shares: dict[str, list[float]] = {}
        for verdict in each.verdicts:
            if verdict is not None and (share := _right(verdict)) is not None:
                shares.setdefault(str(verdict.get("task_id")), []).append(share)
        of += len(shares)
        for task, found in shares.items():
            if (mean := sum(found) / len(found)) < 1:
                rows.append((mean, [task, mean, len(found), each.name]))
    if rows:
        rows.sort(key=lambda row: row[0])
        note = "Below: the answers. Share: right programs, or right tests of all tests."
        if len(rows) > _LISTED:
            note = f"The {_LISTED} worst. {note}"
        headings: list[Value] = ["problem", "share right", "answers", "folder"]
        shown = [headings, *(row for _, row in rows[:_LISTED])]
        yield Sheet.of(shown, f"Problems with wrong answers: {len(rows)} of {of}", note)


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

    def answers() -> Iterator[Row]:
        with (each.path / SAMPLES).open("rb") as file:
            for right, number, place in sorted(order):
                file.seek(ends[place])
                row = _answer(page, json.loads(file.readline()), each.verdicts[place] or {}, right)
                yield row | {"run": run, "step": number, "order": place}

    page.rows += page.fit(answers(), limit)[0]


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
    found = figures_in(each.report.get("figures", {}))
    match each.report.get("selection"):
        case {"figures": dict(chosen)}:
            found |= {CHOICES.get(name, name): it for name, it in figures_in(chosen).items()}
    return {name: value for name, value in found.items() if value is not None}
