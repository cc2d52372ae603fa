"""`codea1 testgen PACKAGE.module::NAME` or `FILE.py::NAME`: a pytest file for a function or class of one's own."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from codea1_env.cli.errors import InputError
from codea1_env.cli.eval_display import print_lines
from codea1_env.cli.parsing import parse
from codea1_env.cli.testgen_options import (
    OwnCodeOptions,
    asker,
    lowered,
    own_code_errors,
    show_findings,
)
from codea1_env.rendering.display import clean
from codea1_env.sandbox import Sandbox
from codea1_env.testgen.findings import as_data
from codea1_env.testgen.folders import write_suites
from codea1_env.testgen.function import FunctionSuite, why_nothing
from codea1_env.testgen.modules import Module, places_named
from codea1_env.testgen.written_file import WRITTEN, default_output, pytest_file

_SHOWN = 20
"""Mutants that are printed."""
_HEAD = 500
"""Characters at the top of a file that say who has written it."""


@dataclass(frozen=True, kw_only=True)
class FunctionCommand(OwnCodeOptions):
    """Write tests for a function or class of your own, as a pytest file.

    Calls are made up from annotations, defaults, literals in the code and examples in the
    docstring. The module is imported in the sandbox as a part of its package. Exit code 1: done, and the function does
    something that should be looked at.
    """

    target: Annotated[
        str, tyro.conf.Positional, tyro.conf.arg(metavar="PACKAGE.module::NAME|FILE.py::NAME")
    ]
    """The function or class."""
    output: Annotated[Path | None, tyro.conf.arg(metavar="FILE.py")] = None
    """The file to write; None for test_FILE_NAME.py beside the function's file, or here if it is installed elsewhere. No
    file is overwritten."""
    overwrite: bool = False
    """Overwrite a file that codea1 testgen has written; what you have changed in it is lost."""


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 testgen FILE.py::NAME`; returns the exit code."""
    command = parse(FunctionCommand, arguments, name="testgen")
    place, name = _split(command.target)
    console = Console(stderr=command.json)
    with ExitStack() as stack:
        stack.enter_context(own_code_errors())
        analyst = stack.enter_context(Sandbox(packages=()))
        stack.enter_context(console.status(f"Writing tests for {clean(name)}"))
        [named] = places_named(command.target, analyst)
        module = named.module
        assert module is not None  # a name was given
        output = command.output or _default_output(module, place, name)
        _check_output(output, command.overwrite)
        agent = asker(command, analyst, stack)
        [written] = write_suites(named, command.suites(agent), analyst)
        suite = written.suite
        if suite is None:
            raise written.error or AssertionError("nothing was compared")
        if suite.tests or suite.findings or suite.questions:
            with output.open("w" if command.overwrite else "x", encoding="utf-8") as file:
                file.write(pytest_file(suite, output, analyst))
    if command.json:
        print(json.dumps(_report(suite, output)))
    else:
        _show(suite, output, written.acts, console)
    if not suite.tests and not suite.findings:
        raise InputError(lowered(why_nothing(suite)))
    return command.exit_code(len(suite.findings))


def _split(text: str) -> tuple[str, str]:
    file, _, name = text.partition("::")
    if not file or not name:
        raise InputError(
            f"expect PACKAGE.module::NAME or FILE.py::NAME, actually: {text!r}. Add two colons and the name of a function "
            "or class, or leave both out for all of a file or folder"
        )
    if "." in name or "::" in name:
        raise InputError(
            f"expect a function or class at the top level of a file, actually: {name!r}. Tests for a method are "
            f"among those for its class: {file}::{name.replace('::', '.').partition('.')[0]}"
        )
    return file, name


def _default_output(module: Module, place: str, name: str) -> Path:
    """Beside the file, as the user has named it; here for what is installed."""
    if Path(place).suffix == ".py":
        return default_output(Path(place), name)
    called = module.name.rpartition(".")[2]
    folder = Path() if module.installed else Path(os.path.relpath(module.path)).parent
    return default_output(folder / f"{called}.py", name)


def _check_output(output: Path, overwrite: bool) -> None:
    if output.is_file() and overwrite:
        if WRITTEN in output.read_text(encoding="utf-8", errors="replace")[:_HEAD]:
            return
        raise InputError(
            f"expect {output} to be a file that codea1 testgen has written, actually: it does not say so. Remove "
            "it, or name another with --output"
        )
    if output.exists():
        raise InputError(
            f"expect {output} to be a new file, actually: it exists. Remove it, name another with --output, or "
            "replace it with --overwrite"
        )
    if output.suffix != ".py" or not output.parent.is_dir():
        what = (
            "its folder does not exist"
            if output.suffix == ".py"
            else "its name does not end with .py"
        )
        raise InputError(f"expect {output} to be a Python file in a folder, actually: {what}")


def _show(suite: FunctionSuite, output: Path, acts: Sequence[str], console: Console) -> None:
    target = suite.target
    show_findings(suite, console)
    lines = []
    if target.left_out:
        lines.append(
            f"The file as a whole does not run in the sandbox ({clean(target.left_out)}), so only the part that "
            f"{target.name} needs was run."
        )
    if acts:
        where = target.offered or target.home.name
        lines.append(
            f"Importing {where} {clean(', '.join(acts))}: nothing of that happens in the sandbox."
        )
    if suite.cut:
        lines.append("The time was over before everything was tried; --timeout gives more.")
    if suite.predictions is not None:
        lines.append(clean(f"The agent wrote {suite.predictions.in_words}."))
    for why, calls in (
        ("the sandbox has no files, no network and no input", suite.outside if suite.tests else ()),
        ("two runs differ", suite.unstable),
    ):
        more = f", and {len(calls) - 1} more calls" if len(calls) > 1 else ""
        lines += [f"Not tested, because {why}: {clean(call)}{more}" for call in calls[:1]]
    killed, mutants = len(suite.kills.killed), len(suite.kills.mutants)
    if suite.tests:
        lines.append(
            f"Wrote {output}: {_count(len(suite.tests), 'test')} of {suite.candidates} that pass, "
            f"which kill {killed} of {_count(mutants, 'mutant')}"
        )
    elif suite.findings:
        lines.append(f"Wrote {output}: no test, but what is to be decided.")
    left = suite.kills.survivors if suite.tests else ()
    if left:
        lines.append("Nothing tests these changes; add tests for those that matter:")
        lines += [f"  line {each.line}: {clean(each.description)}" for each in left[:_SHOWN]]
        if len(left) > _SHOWN:
            lines.append(f"  and {len(left) - _SHOWN} more")
    print_lines(lines, console)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _report(suite: FunctionSuite, output: Path) -> dict[str, Any]:
    return {
        "file": str(suite.target.path),
        "name": suite.target.name,
        "output": str(output) if suite.tests else None,
        "tests": [test.shown for test in suite.tests],
        "candidates": suite.candidates,
        "mutants": len(suite.kills.mutants),
        "killed": len(suite.kills.killed),
        "survivors": [
            {"line": each.line, "description": each.description} for each in suite.kills.survivors
        ],
        "findings": [as_data(each, suite.target) for each in suite.findings],
        "questions": [as_data(each, suite.target) for each in suite.questions],
        "dropped": [{"test": text, "reason": reason} for text, reason in suite.dropped],
        "unstable": list(suite.unstable),
        "cut": suite.cut,
        "predictions": None if suite.predictions is None else asdict(suite.predictions),
    }
