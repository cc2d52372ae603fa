"""`codea1 report`: one page about runs, benchmarks and evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.markup import escape

from codea1_env.cli.errors import InputError
from codea1_env.cli.parsing import parse
from codea1_env.cli.tables import say
from codea1_env.support.extras import MissingExtraError
from codea1_env.support.logs import write_whole


@dataclass(frozen=True)
class ReportCommand:
    """Write one HTML page, which needs no network and no other file.

    Runs that differ only by their seed are one group, with intervals over seeds; other groups stand beside each other.
    Of a run that is still going the page shows what it has logged so far.
    """

    folders: Annotated[
        tuple[Path, ...],
        tyro.conf.Positional,
        tyro.conf.arg(metavar="FOLDER ...", help_behavior_hint="(one or more)"),
    ]
    """Folders of runs (`codea1 train`), and of `codea1 bench algorithms`, `codea1 bench diagnose` and `codea1 eval`."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="FILE")] = Path("report.html")
    """The page."""
    force: bool = False
    """Write over --output if it exists."""


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 report`; returns the exit code."""
    command = parse(ReportCommand, arguments, name="report")
    if not command.folders:
        raise InputError("expect the folder of a run, a benchmark or an evaluation, actually: none")
    if command.output.is_dir():
        raise InputError(f"expect --output to be a file, actually {command.output} is a folder")
    if command.output.exists() and not command.force:
        raise InputError(
            f"expect --output to be a new file, actually {command.output} exists. Name another, or add --force"
        )
    if not command.output.absolute().parent.is_dir():
        raise InputError(
            f"expect --output to be a file in a folder, actually there is no {command.output.parent}"
        )
    # Here, so that a wrong word is told before all that is read.
    from codea1_env.report.document import check_extras, document
    from codea1_env.report.folders import ReportError, read_folders

    try:
        check_extras()
        said = "Reading " + ", ".join(map(str, command.folders))
        with Console(stderr=True).status(escape(said)):  # nothing, where no terminal is
            page = document(read_folders(command.folders))
    except (MissingExtraError, ReportError) as error:
        raise InputError(str(error)) from error
    write_whole(command.output, page)
    say(Console(), f"Wrote {command.output} ({len(page) / 1e6:.1f} MB)")
    return 0
