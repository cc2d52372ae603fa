"""`codea1 testgen --check`: findings in functions and classes, without tests. Quick enough for a pre-commit hook."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import tyro
from rich.console import Console

from codea1_env.cli.errors import INTERRUPTED, InputError
from codea1_env.cli.eval_display import print_lines
from codea1_env.cli.parsing import Packages, check_packages, parse
from codea1_env.cli.testgen_options import (
    FindingOptions,
    MachineOptions,
    lowered,
    own_code_errors,
    show_findings,
)
from codea1_env.rendering.display import clean
from codea1_env.sandbox import InfraError, Sandbox
from codea1_env.testgen.findings import as_data
from codea1_env.testgen.folders import SuiteOptions, WrittenSuite, write_suites
from codea1_env.testgen.modules import places_named


@dataclass(frozen=True, kw_only=True)
class CheckCommand(FindingOptions, MachineOptions):
    """Look for findings in functions and classes of your own, and write no file: a second or two for each of them.

    With --against, functions are passed over if nothing that they need in their file has changed since. Exit code 1: done,
    with findings.
    """

    targets: Annotated[
        tuple[str, ...],
        tyro.conf.Positional,
        tyro.conf.arg(metavar="FILE.py|FILE.py::NAME|FOLDER|PACKAGE"),
    ]
    """What is looked at: all public functions and classes of files and folders, or those that are named."""
    packages: Packages = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.targets:
            raise ValueError("Expect at least one file, folder or function, actually: none")
        check_packages(self.packages)


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 testgen --check`; returns the exit code."""
    command = parse(CheckCommand, arguments, name="testgen --check")
    console = Console(stderr=command.json)
    looked: list[WrittenSuite] = []
    options = SuiteOptions(
        workers=command.cores,
        level=command.sandbox_level,
        packages=command.packages,
        seed=command.seed,
        against=command.against,
        all_findings=command.all_findings,
        only_findings=True,
    )
    try:
        with own_code_errors(), Sandbox(packages=()) as analyst:
            places = [place for each in command.targets for place in places_named(each, analyst)]
            with console.status("Looking for findings"):
                for place in places:
                    for each in write_suites(place, options, analyst):
                        if each.error and (
                            isinstance(each.error, InfraError) or "--against" in str(each.error)
                        ):
                            raise each.error
                        looked.append(each)
                        if each.suite is not None and not command.json:
                            target = each.suite.target
                            where = f"{os.path.relpath(target.path)}:{target.lines[0]}: "
                            show_findings(each.suite, console, clean(where))
    except KeyboardInterrupt:
        return INTERRUPTED
    found = sum(len(each.suite.findings) for each in looked if each.suite is not None)
    if command.json:
        print(json.dumps(_report(looked)))
    else:
        _sum_up(looked, found, console)
    missed = [each for each in looked if each.error]
    if len(looked) == len(missed) == 1 and "::" in command.targets[0]:
        raise InputError(lowered(str(missed[0].error)))
    return command.exit_code(found)


def _sum_up(looked: Sequence[WrittenSuite], found: int, console: Console) -> None:
    number = sum(each.suite is not None for each in looked)
    same = sum(each.suite is None and not each.error for each in looked)
    missed = {each.label: lowered(str(each.error)) for each in looked if each.error}
    what = "function or class" if number == 1 else "functions and classes"
    text = f"{found or 'No'} finding{'' if found == 1 else 's'} in {number} {what}"
    parts = [text, *([f"{same} have not changed"] if same else [])]
    for label, reason in [*missed.items()][:1]:
        parts.append(f"{len(missed)} not looked at, such as {label}: {reason}")
    print_lines([clean("; ".join(parts))], console)


def _report(looked: Sequence[WrittenSuite]) -> dict[str, Any]:
    return {
        "results": [
            {
                "target": each.label,
                "findings": [as_data(one, each.suite.target) for one in each.suite.findings],
                "questions": [as_data(one, each.suite.target) for one in each.suite.questions],
            }
            for each in looked
            if each.suite is not None
        ],
        "unchanged": [each.label for each in looked if each.suite is None and not each.error],
        "missed": {each.label: lowered(str(each.error)) for each in looked if each.error},
    }
