"""`codea1 testgen PACKAGE --export problems`: a problem set for the game."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console

from codea1_env.cli.errors import INTERRUPTED, InputError
from codea1_env.cli.eval_display import print_lines
from codea1_env.cli.parsing import parse
from codea1_env.cli.testgen_options import MachineOptions, check_timeout, own_code_errors
from codea1_env.rendering.display import clean
from codea1_env.sandbox import Sandbox
from codea1_env.support.bars import progress_bar
from codea1_env.support.stopping import stop_request
from codea1_env.testgen.folders import Exported, export_place
from codea1_env.testgen.modules import PublicNames, check_public, places_named


@dataclass(frozen=True, kw_only=True)
class ProblemSetCommand(MachineOptions):
    """Make problems of the game of public functions: `codea1 play`, `codea1 train` and others take the file.

    A function becomes a problem if it has a docstring, runs with nothing but the standard library, numpy and the part of
    its file that it needs, and takes and returns plain data. All others are listed with the reason.
    """

    target: Annotated[
        str, tyro.conf.Positional, tyro.conf.arg(metavar="PACKAGE|FOLDER|FILE.py[::NAME]")
    ]
    """The functions."""
    export: Literal["problems"]
    """What is made."""
    output: Annotated[Path, tyro.conf.arg(metavar="FILE.jsonl")] = Path("problems.jsonl")
    """The file to write, a new one. What is in it after Ctrl-C is a problem set, too."""
    timeout: Annotated[float, tyro.conf.arg(metavar="SECONDS")] = 20.0
    """How long tests of one function are looked for."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.output.suffix != ".jsonl" or not self.output.parent.is_dir():
            raise ValueError(
                f"Expect --output to be a file in a folder, with a name that ends with .jsonl, actually: {self.output}"
            )
        check_timeout(self.timeout)


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 testgen --export problems`; returns the exit code."""
    command = parse(ProblemSetCommand, arguments, name="testgen")
    console = Console(stderr=command.json)
    if command.output.exists():
        raise InputError(
            f"expect {command.output} to be a new file, actually: it exists. Remove it, or name another with --output"
        )
    found: list[Exported] = []
    with own_code_errors(), Sandbox(command.cores, level=command.sandbox_level) as sandbox:
        places = places_named(command.target, sandbox)
        check_public(places, command.target)
        with stop_request() as stop:
            _export(command, places, sandbox, found, lambda: stop.requested, console)
            stopped = stop.requested
    kept = [each for each in found if each.problem is not None]
    if command.json:
        print(json.dumps(_report(found)))
    else:
        lines = [f"no problem: {each.name}: {each.reason}" for each in found if each.reason]
        lines.append(
            f"{command.output}: {len(kept)} problems of {len(found)} functions and classes"
        )
        print_lines([*map(clean, lines)], console)
    if stopped:
        console.print("Stopped: the functions that are left are not in it.", highlight=False)
        return INTERRUPTED
    if not kept:
        command.output.unlink()
        raise InputError(
            f"expect functions of which problems can be made, actually: none of {len(found)}; the first: "
            f"{found[0].reason}"
        )
    return 0


def _export(
    command: ProblemSetCommand,
    places: Sequence[PublicNames],
    sandbox: Sandbox,
    found: list[Exported],
    stop: Callable[[], bool],
    console: Console,
) -> None:
    prompts: dict[str, str] = {}
    with (
        command.output.open("x", encoding="utf-8") as file,
        progress_bar(console, "problems") as bar,
    ):
        task = bar.add_task("problems", total=sum(len(place.names) for place in places), state="")
        for place in places:
            bar.update(task, state=clean(place.label()))
            for each in export_place(place, sandbox, command.seed, command.timeout):
                if each.problem is not None:
                    first = prompts.setdefault(each.problem.prompt, each.name)
                    if first != each.name:
                        each = Exported(
                            each.name, None, f"a coder would be shown the same as for {first}"
                        )
                    else:
                        file.write(each.row)
                        file.flush()
                found.append(each)
                bar.advance(task)
                if stop():
                    return


def _report(found: Sequence[Exported]) -> dict[str, Any]:
    return {
        "problems": sum(each.problem is not None for each in found),
        "results": [
            {
                "target": each.name,
                "tests": 0 if each.problem is None else len(each.problem.tests),
                "mutants": each.mutants,
                "killed": each.killed,
                "reason": each.reason,
            }
            for each in found
        ],
    }
