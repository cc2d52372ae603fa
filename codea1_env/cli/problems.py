"""`codea1 problems`: what there is to play, and a check of a set of one's own."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import tyro
from rich.console import Console

from codea1_env.cli.errors import check_least, user_input
from codea1_env.cli.parsing import SOURCES, Packages, SandboxLevel, check_packages, parse
from codea1_env.cli.tables import print_sheet
from codea1_env.problem_sets.validate import validate_problems
from codea1_env.problems import load_problems
from codea1_env.rendering.display import counted
from codea1_env.rendering.progress import WorkProgress
from codea1_env.report.sheet import Sheet
from codea1_env.sandbox import Sandbox

_Set = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE", help=SOURCES)]
_Option = Annotated[
    str | None,
    tyro.conf.arg(metavar="SOURCE", help="The same as an option, as other commands have it."),
]


@dataclass(frozen=True)
class List:
    """List the problems of a source."""

    source: _Set = "starter"
    problems: _Option = None
    split: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Only this split: "train" or "eval" of the bundled problems."""
    json: bool = False
    """Print one JSON object per line instead of a table."""


@dataclass(frozen=True)
class Validate:
    """Check a problem set: names every error with file and line. Exit code 1 if there are errors."""

    source: _Set = "starter"
    problems: _Option = None
    split: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Check only this split."""
    limit: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """Check only the first N rows."""
    workers: int = 2
    """Sandbox processes that work at the same time."""
    packages: Packages = ()
    sandbox_level: SandboxLevel = None
    json: bool = False
    """Print the report as one JSON object instead."""

    def __post_init__(self) -> None:
        check_least(self, limit=1, workers=1)
        check_packages(self.packages)


def list_problems(arguments: Sequence[str]) -> int:
    """Run `codea1 problems list`; returns the exit code."""
    command = parse(List, arguments, name="problems list")
    with user_input():
        problems = load_problems(command.problems or command.source, command.split)
    if command.json:
        for problem in problems:
            about = {
                "task_id": problem.task_id, "kind": problem.kind, "entry_point": problem.entry_point,
                "tests": problem.number_of_tests, "judged": "inside" if problem.test_module else "outside",
            }  # fmt: skip
            print(json.dumps({**about, **problem.metadata}))
        return 0
    width = max(len(problem.task_id) for problem in problems)
    for problem in problems:
        said = problem.metadata
        measured = (f" {key} {said[key]}" for key in said if key.startswith("pass@1 "))
        tags = f"{said.get('difficulty', ''):<6} {said.get('split', ''):<5}" + ",".join(measured)
        print(f"{problem.task_id:<{width}}  {problem.number_of_tests:>4} tests  {tags}".rstrip())
    print(counted(len(problems), "problems"))
    return 0


def validate(arguments: Sequence[str]) -> int:
    """Run `codea1 problems validate`; returns 1 if there are errors."""
    command = parse(Validate, arguments, name="problems validate")
    source = command.problems or command.source
    console, packages = Console(stderr=True), ("numpy", *command.packages)
    level, shown = command.sandbox_level, WorkProgress(console)
    with Sandbox(command.workers, level=level, packages=packages) as sandbox, shown:

        def told(done: int, of: int) -> None:
            if not shown.what:
                shown.begin("problems", of)
            shown.tell(done)

        report = validate_problems(
            source, sandbox, split=command.split, limit=command.limit, progress=told
        )
    if command.json:
        about = {name: getattr(report, name) for name in ("source", "problems", "tests", "ok")}
        found = [dataclasses.asdict(each) | {"kind": each.kind.value} for each in report.findings]
        tried = {kind: each._asdict() for kind, each in report.tried.items()}
        print(json.dumps(about | {"findings": found, "tried": tried}))
        return 0 if report.ok else 1
    print(*report.findings, sep="\n", end="\n" if report.findings else "")
    rows = [[kind, f"{each.programs:,}", f"{each.passed:,}"] for kind, each in report.tried.items()]
    print_sheet(Sheet.of([["wrong programs", "tried", "pass all tests"], *rows]), Console())
    part = f"The first {counted(command.limit, 'rows')}: " if command.limit else ""
    print(
        f"{part}{counted(report.problems, 'problems')} with {counted(report.tests, 'tests')}: {counted(report.errors, 'errors')}, "
        f"{counted(len(report.findings) - report.errors, 'warnings')}"
    )
    return 0 if report.ok else 1
