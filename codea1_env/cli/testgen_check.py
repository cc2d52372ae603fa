"""`codea1 testgen --check`: findings in functions and classes, without tests. Quick enough for a pre-commit hook."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import tyro
from rich.console import Console

from codea1_env.cli.errors import INTERRUPTED, InputError, library_errors
from codea1_env.cli.parsing import Packages, SandboxLevel, check_packages, parse
from codea1_env.cli.testgen_findings import FindingOptions, show_findings
from codea1_env.rendering.display import clean
from codea1_env.sandbox import AnalysisError, Sandbox
from codea1_env.testgen.findings import as_data
from codea1_env.testgen.function import FunctionSuite, write_function_suite
from codea1_env.testgen.importing import sandbox_for
from codea1_env.testgen.modules import PublicNames, TargetError, places_named
from codea1_env.testgen.target import read_target


@dataclass(frozen=True, kw_only=True)
class CheckCommand(FindingOptions):
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
    seed: int = 0
    """Of made-up calls."""
    workers: int | None = None
    """Sandbox processes that work at the same time; None for one per core. Has no influence on the results."""
    packages: Packages = ()
    sandbox_level: SandboxLevel = None
    json: bool = False
    """Print the findings as one JSON object."""

    def __post_init__(self) -> None:
        if not self.targets:
            raise ValueError("Expect at least one file, folder or function, actually: none")
        if self.seed < 0:
            raise ValueError(f"Expect --seed to be at least 0, actually: {self.seed}")
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"Expect --workers to be at least 1, actually: {self.workers}")
        check_packages(self.packages)


@dataclass(frozen=True)
class _Looked:
    """What came of a function or class."""

    label: str
    suite: FunctionSuite | None
    """None if it was not looked at."""
    reason: str = ""
    """Why not; "" if nothing has changed."""


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 testgen --check`; returns the exit code."""
    command = parse(CheckCommand, arguments, name="testgen --check")
    console = Console(stderr=command.json)
    looked: list[_Looked] = []
    try:
        with library_errors(), Sandbox(packages=()) as analyst:
            places = [places_named(target, analyst) for target in command.targets]
            with console.status("Looking for findings"):
                for place in [each for some in places for each in some]:
                    for each in _look(place, command, analyst):
                        looked.append(each)
                        if each.suite is not None and not command.json:
                            target = each.suite.target
                            where = f"{os.path.relpath(target.path)}:{target.lines[0]}: "
                            show_findings(each.suite, console, clean(where))
    except TargetError as error:
        raise InputError(f"e{str(error)[1:]}") from error
    except KeyboardInterrupt:
        return INTERRUPTED
    found = sum(len(each.suite.findings) for each in looked if each.suite is not None)
    if command.json:
        print(json.dumps(_report(looked)))
    else:
        _sum_up(looked, found, console)
    missed = [each for each in looked if each.reason]
    if len(looked) == len(missed) == 1 and "::" in command.targets[0]:
        raise InputError(missed[0].reason)
    return command.exit_code(found)


def _look(place: PublicNames, command: CheckCommand, analyst: Sandbox) -> Iterator[_Looked]:
    if place.module is None or not place.names:
        if place.problem:
            yield _Looked(place.label(), None, place.problem)
        return
    workers = command.workers or len(os.sched_getaffinity(0))
    with sandbox_for(
        place.module,
        analyst,
        workers=workers,
        level=command.sandbox_level,
        packages=command.packages,
    ) as (sandbox, imported):
        for name in place.names:
            label = place.label(name)
            try:
                target = read_target(place.module, name, sandbox, imported)
                earlier = command.earlier(target, sandbox)
                if earlier is not None and earlier.is_same(target):
                    yield _Looked(label, None)
                    continue
                suite = write_function_suite(
                    target,
                    None,
                    sandbox,
                    command.seed,
                    earlier=earlier,
                    all_findings=command.all_findings,
                    only_findings=True,
                )
            except (TargetError, AnalysisError) as error:
                if "--against" in str(error):
                    raise
                yield _Looked(label, None, f"e{str(error)[1:]}")
            else:
                yield _Looked(label, suite)


def _sum_up(looked: Sequence[_Looked], found: int, console: Console) -> None:
    number = sum(each.suite is not None for each in looked)
    same = sum(each.suite is None and not each.reason for each in looked)
    missed = [each for each in looked if each.reason]
    what = "function or class" if number == 1 else "functions and classes"
    text = f"{found or 'No'} finding{'' if found == 1 else 's'} in {number} {what}"
    parts = [text, *([f"{same} have not changed"] if same else [])]
    if missed:
        parts.append(f"{len(missed)} not looked at, such as {missed[0].label}: {missed[0].reason}")
    console.print(clean("; ".join(parts)), highlight=False, markup=False, soft_wrap=True)


def _report(looked: Sequence[_Looked]) -> dict[str, Any]:
    return {
        "results": [
            {
                "target": each.label,
                "findings": [
                    as_data(finding, each.suite.target) for finding in each.suite.findings
                ],
                "questions": [
                    as_data(finding, each.suite.target) for finding in each.suite.questions
                ],
            }
            for each in looked
            if each.suite is not None
        ],
        "unchanged": [each.label for each in looked if each.suite is None and not each.reason],
        "missed": {each.label: each.reason for each in looked if each.reason},
    }
