"""What an evaluation of tests prints at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from codea1_env.cli.eval_display import left_out, percent, print_lines

_REASONS = 3
"""Reasons that are shown of many."""


def print_suite_report(report: Mapping[str, Any], console: Console) -> None:
    """Print figures of an evaluation of tests, what was wrong with tests, and all settings."""
    figures = report["figures"]
    ks = [name.removeprefix("pass@") for name in figures if name.startswith("pass@")]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("percent [95%]", no_wrap=True)
    for k in ks:
        table.add_column(f"k = {k}", justify="right")
    at_k = dict.fromkeys(_at(name, "k") for name in figures if "@" in name)
    for name in at_k:
        table.add_row(name, *(percent(figures.get(_at(name, k))) for k in ks))
    console.print(table, highlight=False)
    kinds = ", ".join(f"{name} {number}" for name, number in report["tests"].items())
    lines = [
        f"{report['samples']} suites for {report['scored']} of {report['problems']} problems, "
        f"{report['mutants']} mutants. Tests: {kinds}"
    ]
    if report["not_installed"]:
        names = ", ".join(f"{name} ({n})" for name, n in report["not_installed"].items())
        lines.append(
            f"Imported by tests, and not there: {names}. --packages NAME allows what is installed"
        )
    if report["without_tests"]:
        counts = Counter(report["without_tests"])
        why = "; ".join(f"{reason} ({n})" for reason, n in counts.most_common(_REASONS))
        lines.append(f"{counts.total()} answers have no test, most often: {why}")
    repeated = [
        f"{report['repeated']} right tests repeat an earlier one of their suite"
        if report["repeated"]
        else "",
        f"{report['repeated_suites']} suites repeat another of their problem"
        if report["repeated_suites"]
        else "",
    ]
    lines += [f"{each}; they count" for each in repeated if each]
    if report["late"]:
        lines.append(
            f"{report['late']} tests come after those that were asked for, and do not count"
        )
    lines += _powers(report)
    print_lines([*lines, *left_out(report)], console)


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
