"""`codea1 eval compare`: which of two evaluations is better, and where."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from codea1_env.cli.errors import InputError
from codea1_env.cli.eval_display import print_comparison
from codea1_env.cli.parsing import parse
from codea1_env.evaluation.comparison import compare
from codea1_env.evaluation.result_folder import FolderError


@dataclass(frozen=True)
class CompareCommand:
    """Compare two evaluations of the same problems.

    Shows the difference of every figure that both have, with a paired bootstrap interval over problems, and the
    problems that changed. Both must be evaluations of programs, or both of tests.
    """

    a: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="A")]
    """Result folder of `codea1 eval code` or `codea1 eval tests`."""
    b: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="B")]
    """Another one of the same kind; differences are B - A."""
    json: bool = False
    """Print the comparison as one JSON object."""


def run(arguments: Sequence[str]) -> int:
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
