"""`codea1 testgen FILE.py`, `FOLDER` or `PACKAGE`: tests for all public functions and classes."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich import box
from rich.console import Console
from rich.table import Table

from codea1_env.cli.errors import INTERRUPTED, FailureError, InputError
from codea1_env.cli.eval_display import print_lines
from codea1_env.cli.parsing import parse
from codea1_env.cli.testgen_options import (
    Asker,
    OwnCodeOptions,
    asker,
    own_code_errors,
    settings_of,
)
from codea1_env.evaluation.result_folder import REPORT, FolderError, FolderKind, ResultFolder
from codea1_env.rendering.display import clean
from codea1_env.sandbox import Sandbox
from codea1_env.support.bars import progress_bar
from codea1_env.support.stopping import stop_request
from codea1_env.testgen.earlier import file_at
from codea1_env.testgen.folders import file_names, row_of, write_suites
from codea1_env.testgen.modules import PublicNames, check_public, places_named
from codea1_env.testgen.stated import Predictions
from codea1_env.testgen.written_file import pytest_file

_RESULTS = "results.jsonl"
_KIND = FolderKind("tests of a folder", "testgen.json", 1)
_SHOWN = 40
"""Functions and reasons that are printed."""


@dataclass(frozen=True, kw_only=True)
class FolderCommand(OwnCodeOptions):
    """Write tests for all public functions and classes of a file, a folder or a package.

    Each gets a pytest file in the result folder. What is done stays done: after Ctrl-C or a kill, --resume goes on.
    Exit code 1: done, with findings. With --export problems it makes a problem set; add --help to see how.
    """

    target: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="FILE.py|FOLDER|PACKAGE")]
    """What is to be tested. Files of tests, and names that begin with _, are left out."""
    output_dir: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """The result folder: a new one. None for one in runs/ with the time in its name."""
    resume: bool = False
    """Go on with --output-dir."""


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 testgen FOLDER`; returns the exit code."""
    command = parse(FolderCommand, arguments, name="testgen")
    if command.resume and command.output_dir is None:
        raise InputError("expect --output-dir DIR with --resume: the result folder to go on with")
    path = command.output_dir or Path("runs") / time.strftime("testgen-%Y%m%d-%H%M%S")
    console = Console(stderr=command.json)
    settings = {"target": command.target, **settings_of(command)}
    try:
        with ExitStack() as stack:
            stack.enter_context(own_code_errors())
            analyst = stack.enter_context(Sandbox(packages=()))
            agent = asker(command, analyst, stack)
            places = places_named(command.target, analyst)
            check_public(places, command.target)
            if command.against is not None:
                file_at(places[0].path, command.against)  # which says what is wrong
            with ResultFolder(path, settings, resume=command.resume, kind=_KIND) as folder:
                stopped = _write(command, places, folder, analyst, console, agent)
                report = _report(folder.rows(_RESULTS), places)
                folder.write(REPORT, report)
    except FolderError as error:
        raise InputError(str(error)) from error
    except FailureError as error:
        raise FailureError(f"{error}. To go on, add: --resume --output-dir {path}") from error
    except KeyboardInterrupt:
        stopped, report = True, {}
    if command.json and report:
        print(json.dumps(report))
    elif report:
        _show(report, console)
    if stopped:
        console.print(
            f"Stopped. To go on, add: --resume --output-dir {path}", highlight=False, soft_wrap=True
        )
        return INTERRUPTED
    if not command.json:
        console.print(f"Result folder: {path}", highlight=False, soft_wrap=True)
    if not report["written"] and not report["findings"]:
        reason = report["results"][0]["reason"]
        raise InputError(f"expect a function or class that can be tested, actually: {reason}")
    return command.exit_code(report["findings"])


def _write(
    command: FolderCommand,
    places: Sequence[PublicNames],
    folder: ResultFolder,
    analyst: Sandbox,
    console: Console,
    agent: Asker | None,
) -> bool:
    """Write what is left; returns whether somebody has stopped it."""
    done = frozenset(str(row["target"]) for row in folder.rows(_RESULTS))
    labels = [place.label(name) for place in places for name in place.names]
    left = len(set(labels) - done)
    options = command.suites(agent)
    with stop_request() as stop, progress_bar(console, "tests") as bar:
        task = bar.add_task("tests", total=left, state="")
        for place in places:
            bar.update(task, state=clean(place.label()))
            files = file_names(place)
            for written in write_suites(place, options, analyst, done):
                suite, file = written.suite, ""
                if suite and (suite.tests or suite.findings or suite.questions):
                    file = files[written.label]
                    text = pytest_file(suite, folder.path / file, analyst)
                    (folder.path / file).write_text(text, encoding="utf-8")
                row = row_of(written, file)
                folder.append(_RESULTS, [row])
                bar.advance(task)
                if not console.is_terminal and not command.json:
                    print_lines([clean(_line(row))], console)
                if stop.requested:
                    return True
    return False


def _line(row: Mapping[str, Any]) -> str:
    what = (
        f"{row['tests']} tests kill {row['killed']} of {row['mutants']}"
        if row["file"]
        else row["reason"]
    )
    return f"{row['target']}: {what}"


def _report(rows: Sequence[Mapping[str, Any]], places: Sequence[PublicNames]) -> dict[str, Any]:
    written = [row for row in rows if row["file"]]
    return {
        "results": list(rows),
        "targets": sum(len(place.names) for place in places),
        "written": len(written),
        "tests": sum(row["tests"] for row in rows),
        "mutants": sum(row["mutants"] for row in written),
        "killed": sum(row["killed"] for row in written),
        "findings": sum(len(row["findings"]) for row in rows),
    }


def _sum(rows: Sequence[Mapping[str, Any]]) -> Predictions:
    """Return what an agent wrote for all functions."""
    names = ("answers", "tests", "right", "wrong", "useless")
    reason = next(filter(None, (row["reason"] for row in rows)), "")
    return Predictions(**{name: sum(row[name] for row in rows) for name in names}, reason=reason)


def _show(report: Mapping[str, Any], console: Console) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("function or class", overflow="fold")
    for name in ("tests", "mutants", "killed", "findings", "seconds"):
        table.add_column(name, justify="right")
    rows = [row for row in report["results"] if row["file"] or row["findings"]]
    for row in rows[:_SHOWN]:
        table.add_row(
            clean(row["target"]), str(row["tests"]), str(row["mutants"]), str(row["killed"]),
            str(len(row["findings"])), f"{row['seconds']:.1f}",
        )  # fmt: skip
    if len(rows) > _SHOWN:
        table.add_row(f"and {len(rows) - _SHOWN} more")
    seconds = sum(row["seconds"] for row in report["results"])
    figures = [str(report[name]) for name in ("tests", "mutants", "killed", "findings")]
    table.add_row("all", *figures, f"{seconds:.1f}", style="bold")
    console.print(table, highlight=False)
    found = [finding for row in report["results"] for finding in row["findings"]]
    lines = []
    for each in found[:_SHOWN]:
        lines += [
            f"found: {each['source']} {each['did']}; {each['expected']}",
            f"  {each['reproduction']}",
        ]
    acts = {
        row["target"].partition("::")[0]: row["acts"] for row in report["results"] if row["acts"]
    }
    lines += [
        f"Importing {name} {', '.join(what)}: nothing of that happens in the sandbox."
        for name, what in acts.items()
    ]
    asked = [row["predictions"] for row in report["results"] if row.get("predictions")]
    if asked:
        lines.append(f"The agent wrote {_sum(asked).in_words}.")
    without = [row for row in report["results"] if row["reason"]]
    lines.append(f"{report['written']} of {report['targets']} functions and classes have tests.")
    lines += [f"none for {row['target']}: {row['reason']}" for row in without[:_SHOWN]]
    print_lines([*map(clean, lines)], console)
