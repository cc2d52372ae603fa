"""`codea1 sandbox doctor`: what keeps programs in, found out by trying."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from codea1_env.cli.parsing import parse
from codea1_env.cli.tables import print_sheet
from codea1_env.rendering.progress import say
from codea1_env.report.sheet import Sheet
from codea1_env.sandbox import LevelUnavailableError
from codea1_env.sandbox.inside.confine.confinement import LEVELS
from codea1_env.sandbox.levels import LevelReport, examine, strongest_level


@dataclass(frozen=True)
class DoctorCommand:
    """Try every layer of the sandbox on this machine, level by level.

    A confined child attempts what its level forbids. Exit code 1 if no level contains hostile programs here.
    """

    json: bool = False
    """Print what was found as one JSON object instead of a table."""


def doctor(arguments: Sequence[str]) -> int:
    """Run `codea1 sandbox doctor`; returns 1 if no level contains hostile programs."""
    command = parse(DoctorCommand, arguments, name="sandbox doctor")
    reports = [examine(level) for level in LEVELS]
    try:
        default, problem = strongest_level(), ""
    except LevelUnavailableError as error:
        default, problem = None, str(error)
    if command.json:
        levels = [dataclasses.asdict(report) | {"works": report.works} for report in reports]
        print(json.dumps({"default": default, "levels": levels}))
    else:
        console = Console(soft_wrap=True, highlight=False, markup=False)
        print_sheet(_sheet(reports), console)
        for report in reports:
            for name, what in report.found.items():
                if not what.startswith(("allowed", "denied")):
                    say(console, f"{report.level}: {name}: {what}")
        for report in reports:
            if not report.works:
                say(console, f"{report.level}: {report.error}. {report.remedy}".rstrip())
        say(console, problem or f"Sandbox() uses the level {default!r} here.")
    return 0 if default else 1


def _sheet(reports: Sequence[LevelReport]) -> Sheet:
    rows = [["at this level a child may", *(report.level for report in reports)]]
    for act in dict.fromkeys(act for report in reports for act in report.found):
        found = [report.found.get(act, "") for report in reports]
        if all(what.startswith(("allowed", "denied")) for what in filter(None, found)):
            # The error number is in the output of --json.
            rows.append([act, *(what.split(" (")[0] for what in found)])
    return Sheet.of(rows, note="Empty: not tried, since the level does not forbid it")
