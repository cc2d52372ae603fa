"""`codea1 problems`: what there is to play, one of them in full, and a check of a set of one's own."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, cast

import tyro
from rich.console import Console
from rich.progress import Progress, TimeElapsedColumn

from codea1_env.cli.errors import (
    InputError,
    check_least,
    find_problem,
    library_errors,
    user_input,
)
from codea1_env.cli.parsing import Packages, SandboxLevel, check_packages, parse
from codea1_env.cli.problems_audit import Audit, audit
from codea1_env.cli.tables import PlainProgress
from codea1_env.problem_sets.problem import call_of, statement
from codea1_env.problem_sets.schemas import row_of
from codea1_env.problem_sets.validate import validate_problems
from codea1_env.problems import Problem, load_problems
from codea1_env.sandbox import UNKNOWN, Sandbox

_HELP = (
    '"starter" (bundled), humaneval+, mbpp+, mbpp, kodcode, bigcodebench, ult, a data set of the Hugging Face hub, '
    "a .jsonl, .jsonl.gz or .parquet file, or FILE.py:NAME (a function of yours)."
)
_Set = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE", help=_HELP)]
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
class Show:
    """Show one problem: what the coder sees, the reference and the golden tests."""

    problem: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ID")]
    """Its id, as `codea1 problems list` shows it."""
    source: _Set = "starter"
    problems: _Option = None
    json: bool = False
    """Print it as one JSON object, a row of a .jsonl file."""


@dataclass(frozen=True)
class Validate:
    """Check a problem set: names every error with file and line. Exit code 1 if there are errors."""

    source: _Set = ""
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


_Actions = (
    Annotated[List, tyro.conf.subcommand("list")]
    | Annotated[Show, tyro.conf.subcommand("show")]
    | Annotated[Validate, tyro.conf.subcommand("validate")]
    | Annotated[Audit, tyro.conf.subcommand("audit")]
)


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 problems`; returns the exit code."""
    command: List | Show | Validate | Audit = parse(cast(Any, _Actions), arguments, name="problems")
    if isinstance(command, Audit):
        return audit(command)
    if command.problems is not None:
        command = dataclasses.replace(command, source=command.problems)
    if isinstance(command, List):
        return list_problems(command)
    if isinstance(command, Show):
        return show_problem(command)
    return validate(command)


def list_problems(command: List) -> int:
    """Print one line per problem."""
    with user_input():
        problems = load_problems(command.source, command.split)
    if command.json:
        for problem in problems:
            about = {
                "task_id": problem.task_id, "entry_point": problem.entry_point,
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
    print(_count(len(problems), "problem"))
    return 0


def show_problem(command: Show) -> int:
    """Print one problem."""
    with user_input():
        problems = load_problems(command.source)
    problem = find_problem(command.problem, problems)
    if command.json:
        with user_input():
            print(json.dumps(row_of(problem)))
        return 0
    about = ", ".join(f"{key} {value}" for key, value in problem.metadata.items())
    pairs = [f"{test.stdin!r} -> {test.stdout!r}" for test in problem.stdin_tests]
    print(f"{problem.task_id} ({about})")
    for title, text in (
        ("The coder sees", problem.prompt),
        ("Reference", problem.reference),
        ("Golden tests", "\n".join(_written(problem))),
        ("Compared by", _rule(problem)),
        ("Checker", problem.checker),
        ("Contract", problem.contract),
        ("Test module, judged inside", problem.test_module),
        ("Inputs and outputs", "\n".join(pairs)),
        ("Before every program", problem.preamble),
    ):
        if not text and title not in ("Reference", "Golden tests"):
            continue
        print(f"\n--- {title} ---\n{text.rstrip()}")
    return 0


def _written(problem: Problem) -> Iterator[str]:
    """Yield the cases as text, whatever they are compared by."""
    for case in problem.cases:
        call = call_of(problem.entry_point, case) or f"{problem.entry_point}(...)"
        known = statement(problem.entry_point, case)
        value = " -> what the reference returns" if case.expected is UNKNOWN else " -> ..."
        yield known or call + value


def _rule(problem: Problem) -> str:
    if problem.compare == "equal" and not problem.atol:
        return ""
    return problem.compare + (f", within {problem.atol:g}" if problem.atol else "")


def validate(command: Validate) -> int:
    """Print one line per finding; returns 1 if there are errors."""
    if not command.source:
        raise InputError(
            "expect the problems to check: codea1 problems validate SOURCE, where SOURCE is a file, FILE.py:NAME "
            "or a name such as starter"
        )
    console, packages = Console(stderr=True), ("numpy", *command.packages)
    columns = (*Progress.get_default_columns(), TimeElapsedColumn())  # with the time that is left
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    level = command.sandbox_level
    with library_errors(), Sandbox(command.workers, level=level, packages=packages) as sandbox, bar:
        task, lines = bar.add_task("reading rows", total=None), PlainProgress(console)

        def told(done: int, of: int) -> None:
            what = f"{_count(of, 'problem')}: references and mutants"
            bar.update(task, description=what, completed=done, total=of)
            lines.tell(done, of, f"{done} of {_count(of, 'problem')}")

        report = validate_problems(
            command.source, sandbox, split=command.split, limit=command.limit, progress=told
        )
    if command.json:
        about = {name: getattr(report, name) for name in ("source", "problems", "tests", "ok")}
        found = [dataclasses.asdict(each) | {"kind": each.kind.value} for each in report.findings]
        print(json.dumps(about | {"findings": found}))
    else:
        print(*report.findings, sep="\n", end="\n" if report.findings else "")
        print(
            f"{_count(report.problems, 'problem')} with {_count(report.tests, 'test')}: "
            f"{_count(len(report.errors), 'error')}, {_count(len(report.warnings), 'warning')}"
        )
    return 0 if report.ok else 1


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
