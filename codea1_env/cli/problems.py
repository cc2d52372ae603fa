"""`codea1 problems`: what there is to play, one of them in full, and a check of a set of one's own."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, cast

import tyro

from codea1_env.cli.errors import unknown_name, user_input
from codea1_env.cli.parsing import parse
from codea1_env.problems import Problem, load_problems

_Source = Annotated[
    str,
    tyro.conf.arg(
        metavar="SOURCE",
        help='"starter" (bundled), humaneval+, mbpp+, mbpp, kodcode, bigcodebench, ult, a data set of the '
        "Hugging Face hub, or a .jsonl, .jsonl.gz or .parquet file.",
    ),
]


@dataclass(frozen=True)
class List:
    """List the problems of a source."""

    problems: _Source = "starter"
    split: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Only this split: "train" or "eval" of the bundled problems."""
    json: bool = False
    """Print one JSON object per line instead of a table."""


@dataclass(frozen=True)
class Show:
    """Show one problem: what the coder sees, the reference and the golden tests."""

    problem: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ID")]
    """Its id, as `codea1 problems list` shows it."""
    problems: _Source = "starter"
    json: bool = False
    """Print it as one JSON object, a row of a .jsonl file."""


_Actions = (
    Annotated[List, tyro.conf.subcommand("list")] | Annotated[Show, tyro.conf.subcommand("show")]
)


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 problems`; returns the exit code."""
    command: List | Show = parse(cast(Any, _Actions), arguments, name="problems")
    if isinstance(command, List):
        return list_problems(command)
    return show_problem(command)


def list_problems(command: List) -> int:
    """Print one line per problem."""
    with user_input():
        problems = load_problems(command.problems, command.split)
    if command.json:
        for problem in problems:
            print(json.dumps(_summary(problem)))
        return 0
    width = max(len(problem.task_id) for problem in problems)
    for problem in problems:
        tags = " ".join(
            problem.metadata[key] for key in ("difficulty", "split") if key in problem.metadata
        )
        print(f"{problem.task_id:<{width}}  {len(problem.all_tests):>3} tests  {tags}")
    print(f"{len(problems)} problems")
    return 0


def _summary(problem: Problem) -> dict[str, object]:
    return {
        "task_id": problem.task_id,
        "entry_point": problem.entry_point,
        "tests": len(problem.all_tests),
        **problem.metadata,
    }


def show_problem(command: Show) -> int:
    """Print one problem."""
    with user_input():
        problems = {problem.task_id: problem for problem in load_problems(command.problems)}
    if command.problem not in problems:
        raise unknown_name("problem", command.problem, problems)
    problem = problems[command.problem]
    if command.json:
        print(json.dumps(dataclasses.asdict(problem)))
        return 0
    about = ", ".join(f"{key} {value}" for key, value in problem.metadata.items())
    print(f"{problem.task_id} ({about})")
    for title, text in (
        ("The coder sees", problem.prompt),
        ("Reference", problem.reference),
        ("Golden tests", "\n".join(problem.all_tests)),
    ):
        print(f"\n--- {title} ---\n{text.rstrip()}")
    return 0
