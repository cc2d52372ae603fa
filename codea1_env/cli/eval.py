"""`codea1 eval`: finds the evaluation."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from codea1_env.cli import bench_cross_play, eval_run
from codea1_env.cli.errors import InputError, unknown_name
from codea1_env.cli.eval_display import print_comparison
from codea1_env.cli.eval_options import EvaluationOptions
from codea1_env.cli.parsing import parse
from codea1_env.evaluation.comparison import compare
from codea1_env.evaluation.registry import evaluation_names
from codea1_env.evaluation.result_folder import FolderError

USAGE = """\
usage: codea1 eval code [OPTIONS]
       codea1 eval tests [OPTIONS]
       codea1 eval best-of-n --programs DIR [OPTIONS]
       codea1 eval cross-play --coders NAME ... --testers NAME ... [OPTIONS]
       codea1 eval suites [OPTIONS]
       codea1 eval run FILE.py:NAME [OPTIONS]
       codea1 eval compare A B

code        judge programs: pass@k and avg@n, of an agent or a file
tests       judge tests: pass@k, mut@k, Mul and coverage, of a tester or a file
best-of-n   what choosing among programs by generated tests gains
cross-play  let every coder play against every tester
suites      write a small suite of right tests for every problem of a set
run         an evaluation of yours: docs/evaluation.md says how to write one
compare     what has changed between two evaluations, with intervals

`codea1 eval NAME --help` explains the options of each.
"""


@dataclass(frozen=True)
class CompareCommand:
    """Compare two evaluations of the same problems.

    Shows the difference of every figure that both have, with a paired bootstrap interval over problems, and the
    problems that changed. Both must be of the same `codea1 eval NAME`.
    """

    a: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="A")]
    """Result folder of a `codea1 eval NAME`."""
    b: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="B")]
    """Another one of the same kind; differences are B - A."""
    json: bool = False
    """Print the comparison as one JSON object."""


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 eval`; returns the exit code."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="", file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    name, *rest = arguments
    if name == "compare":
        return _compare(rest)
    if name == "cross-play":  # its players are no --agent
        return bench_cross_play.run(rest, "eval cross-play")
    if name == "run":
        if rest[:1] in (["-h"], ["--help"]):
            parse(EvaluationOptions, rest, name="eval run FILE.py:NAME")
        if not rest or rest[0].startswith("-"):
            raise InputError("expect the evaluation behind run: FILE.py:NAME, and then its options")
        name, *rest = rest
    elif name not in evaluation_names():
        known = [f"eval {each}" for each in (*evaluation_names(), "compare", "run")]
        raise unknown_name("command", f"eval {name}", known)
    return eval_run.run(name, rest)


def _compare(arguments: Sequence[str]) -> int:
    """Run `codea1 eval compare`; returns the exit code."""
    command = parse(CompareCommand, arguments, name="eval compare")
    try:
        comparison = compare(command.a, command.b)
    except FolderError as error:
        raise InputError(str(error)) from error
    if command.json:
        print(json.dumps(comparison.to_dict()))
    else:
        print_comparison(comparison, Console())
    return 0
