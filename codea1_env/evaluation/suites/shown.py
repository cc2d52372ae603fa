"""The report of an evaluation of tests as texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from codea1_env.evaluation.statistics import percent

_REASONS = 3
"""Reasons that are shown of many."""


def table_of_suites(report: Mapping[str, Any]) -> list[list[str]]:
    """A row for each figure, a column for each k."""
    figures = report["figures"]
    ks = [name.removeprefix("pass@") for name in figures if name.startswith("pass@")]
    rows = [
        [name, *(percent(figures.get(_at(name, k))) for k in ks)]
        for name in dict.fromkeys(_at(name, "k") for name in figures if "@" in name)
    ]
    return [["percent [95%]", *(f"k = {k}" for k in ks)], *rows]


def lines_of_suites(report: Mapping[str, Any]) -> list[str]:
    """What was wrong with tests, and what they do on wrong programs."""
    kinds = ", ".join(f"{name} {number}" for name, number in report["tests"].items())
    lines = [f"{report['mutants']} mutants. Tests: {kinds}"]
    if report["not_installed"]:
        found = ", ".join(f"{name} ({n})" for name, n in report["not_installed"].items())
        lines.append(
            f"Imported by tests, and not there: {found}. --packages NAME allows what is installed"
        )
    if report["without_tests"]:
        counts = Counter(report["without_tests"])
        why = "; ".join(f"{reason} ({n})" for reason, n in counts.most_common(_REASONS))
        lines.append(f"{counts.total()} answers have no test, most often: {why}")
    for name, text in {
        "repeated": "right tests repeat an earlier one of their suite; they count",
        "repeated_suites": "suites repeat another of their problem; they count",
        "late": "tests come after those that were asked for, and do not count",
    }.items():
        lines += [f"{report[name]} {text}"] if report[name] else []
    return lines + _powers(report)


def _at(name: str, k: str) -> str:
    """The name of a figure for another k."""
    figure, _, *rest = name.split("@")
    return "@".join([figure, k, *rest])


def _powers(report: Mapping[str, Any]) -> list[str]:
    """What tests do on wrong programs."""
    pool, figures = report["wrong_programs"], report["figures"]
    if not pool["problems"]:
        return ["No problem has wrong programs, so that p_01 and p_00 are not known"]
    shown = ", ".join(
        f"{name} {percent(figures[name])}"
        for name in ("p_u", "p_01", "p_00", "mu")
        if name in figures
    )
    found = shown or "no test ran on them"
    lines = [f"On {pool['programs']} wrong programs of {pool['problems']} problems: {found}"]
    if pool["problems_unchecked"]:
        lines.append(
            f"{pool['problems_unchecked']} of these problems have no golden tests that say which mutants are "
            "wrong: all are taken, so that p_01 is too high there, and p_00 too low"
        )
    return lines
