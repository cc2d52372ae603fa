"""`codea1 testgen`: tests to keep, for code of one's own or for a problem set."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from codea1_env.agents.llm.completions import BackendError
from codea1_env.agents.llm.prompts import WORDINGS
from codea1_env.cli.check import check_timeout, lowered, own_code_errors
from codea1_env.cli.errors import FailureError, InputError, check_least
from codea1_env.cli.parsing import parse
from codea1_env.cli.players import AskingOptions, agent_option, check_agent, player_of
from codea1_env.cli.tables import say
from codea1_env.evaluation.runner import AgentOf
from codea1_env.mutation import Mutant
from codea1_env.rendering.display import clean
from codea1_env.rollout import AnswerError, ask
from codea1_env.spaces import observe
from codea1_env.testgen.findings import findings_alone
from codea1_env.testgen.modules import Module, TargetError, modules_in, split_target
from codea1_env.testgen.search import write_suite
from codea1_env.testgen.target import OpenModule, Target
from codea1_env.testgen.texts import Trial
from codea1_env.testgen.write import WRITTEN, default_output, path_hint, pytest_file

_MOST_SHOWN = 30
"""Surviving mutants that an agent is shown."""


@dataclass(frozen=True, kw_only=True)
class TestgenCommand(AskingOptions):
    """Write a pytest file for a function or class of your own; or one for each public one of a file or folder.

    Exit codes: 0 files were written or exist already, 1 also something was found (a contradicted example, a call that
    never ends), 2 bad input, or no tests.

    Files that exist are left alone, so that the same command goes on where it was stopped.
    """

    target: Annotated[
        str, tyro.conf.Positional, tyro.conf.arg(metavar="FILE.py::NAME|FILE.py|FOLDER")
    ]  # fmt: skip
    """What is tested."""
    agent: Annotated[str | None, agent_option("own code")] = None
    output: Annotated[Path | None, tyro.conf.arg(metavar="FILE.py")] = None
    """The file for one function or class; None for test_MODULE_NAME.py in --output-dir."""
    output_dir: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """The folder for files. None for that of the code; for a whole file or folder, tests/generated."""
    overwrite: bool = False
    """Overwrite files that this command has written."""
    survivors: bool = False
    """List the small faults that no test notices."""
    timeout: Annotated[float, tyro.conf.arg(metavar="SECONDS")] = 20.0
    """Processor time for each function or class; then the best tests so far are written."""
    num_samples: Annotated[int, tyro.conf.arg(aliases=["-n"], metavar="N")] = 8
    """Answers of an agent for each function or class."""
    num_tests: int = 8
    """Tests that an agent is asked for in an answer."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, num_tests=1)
        check_timeout(self.timeout)


Asker = Callable[[OpenModule, Target, Sequence[Mutant]], list[Trial]]


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 testgen`; returns the exit code."""
    command = parse(TestgenCommand, arguments, name="testgen")
    console = Console(stderr=command.json)
    rows: list[dict[str, Any]] = []
    with own_code_errors(), ExitStack() as stack:
        place, name = split_target(command.target)
        if command.output is not None and not name:
            raise InputError(
                "expect --output with FILE.py::NAME, actually: a whole place. Name a folder with --output-dir"
            )
        asker = _asker(command, stack)
        for module in modules_in(place) if not name else modules_in(place)[:1]:
            for row in _written(command, module, name, asker, console):
                rows.append(row)
                if not command.json:
                    _show(row, command, console)
    written = [row for row in rows if row["file"]]
    if command.json:
        print(json.dumps({"results": rows, "written": len(written)}))
    if not any(row["file"] or row["findings"] or row["kept"] for row in rows):
        raise InputError(
            f"expect a function or class that can be tested, actually: {rows[0]['reason'] if rows else 'none is public'}"
        )
    return 1 if any(row["findings"] for row in rows) else 0


def _written(command: TestgenCommand, module: Module, name: str, asker: Asker | None, console: Console) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Write files for a name of a module, or for all public ones; yields what came of each."""
    try:
        with OpenModule(module, command.cores, command.sandbox_level, command.packages) as opened:
            public = [each.name for each in opened.definitions.values() if each.public]
            for each in [name] if name else public:
                with console.status(f"Writing tests for {clean(each)}"):
                    yield _row(command, opened, opened.target(each), asker)
    except TargetError as error:
        if name:
            raise
        yield _nothing(module.name) | {"reason": lowered(error)}


def _nothing(label: str) -> dict[str, Any]:
    """Return what came of a target as long as nothing did; "kept" says that its file exists."""
    return {"target": label, "file": "", "reason": "", "findings": [], "kept": False}


def _row(command: TestgenCommand, opened: OpenModule, target: Target, asker: Asker | None) -> dict[str, Any]:  # fmt: skip
    """Write the file of a target; returns what came of it."""
    output = _output(command, target)
    row = _nothing(target.label)
    if output.exists() and not command.overwrite:
        return row | {"kept": True, "reason": f"{output} exists, --overwrite replaces it"}
    if why := _refused(output):
        if command.output or "::" in command.target:
            raise InputError(why)
        return row | {"reason": why}

    def asked(survivors: Sequence[Mutant]) -> list[Trial]:
        return asker(opened, target, survivors) if asker is not None else []

    suite = write_suite(
        target, opened.sandbox, seed=command.seed, timeout=command.timeout, ask=asked if asker else None
    )  # fmt: skip
    found = findings_alone(target, suite.endless, opened.sandbox)
    if suite.tests:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(pytest_file(suite), encoding="utf-8")
    return row | {
        "file": str(output) if suite.tests else "",
        "reason": suite.why_not,
        "tests": len(suite.tests),
        "passing": suite.passing,
        "mutants": len(suite.mutants),
        "killed": len(suite.killed),
        "survivors": [f"line {each.line}: {each.description}" for each in suite.survivors],
        "cut": suite.cut,
        "run": f"{path_hint(target, output)}pytest {os.path.relpath(output)}",
        "findings": [asdict(each) for each in found],
    }


def _output(command: TestgenCommand, target: Target) -> Path:
    if command.output is not None:
        return command.output
    if command.output_dir is not None:
        return default_output(command.output_dir, target)
    if "::" not in command.target:
        return default_output(Path("tests", "generated"), target)
    return default_output(Path(os.path.relpath(target.module.path)).parent, target)


def _refused(output: Path) -> str:
    """Say why a file is not written; "" if it is."""
    if output.suffix != ".py":
        return f"expect {output} to be a Python file, actually: its name does not end with .py"
    text = output.read_text(encoding="utf-8", errors="replace") if output.exists() else WRITTEN
    if WRITTEN not in text[:200]:
        return f"expect {output} to be a file that codea1 testgen has written, actually: it does not say so"
    return ""


def _show(row: dict[str, Any], command: TestgenCommand, console: Console) -> None:
    lines = []
    for each in row["findings"]:
        lines += [f"{each['path']}:{each['line']}: {each['message']}", f"  {each['command']}"]
    if row["file"]:
        tests = "1 call notices" if row["tests"] == 1 else f"{row['tests']} calls notice"
        faults, left = f"{row['killed']} of {row['mutants']} small faults", row["survivors"]
        lines += [f"Wrote {row['file']}: {tests} {faults}", f"  {row['run']}"]
        if command.survivors:
            lines += [f"  not noticed: {each}" for each in left]
        elif left:
            verb = "is" if len(left) == 1 else "are"
            lines.append(f"  {len(left)} {verb} not noticed; --survivors lists them")
        if row["cut"]:
            lines.append("  The time was over before everything was tried; --timeout gives more.")
    else:
        lines.append(f"Nothing written for {row['target']}: {row['reason']}")
    say(console, clean("\n".join(lines)))


def _asker(command: TestgenCommand, stack: ExitStack) -> Asker | None:
    """Return what asks the agent for calls; it is loaded when it is asked for the first time."""
    name = command.agent
    if name in (None, "boundary"):  # what "boundary" would write is made up anyway
        return None
    if name == "golden":
        raise InputError(
            "expect an agent that writes tests, actually: 'golden', which knows only tests of problem sets"
        )
    check_agent("tester", name)
    asking = command.asking(WORDINGS[command.prompts](command.num_tests), command.num_tests)
    players: list[AgentOf] = []

    def trials(opened: OpenModule, target: Target, survivors: Sequence[Mutant]) -> list[Trial]:
        problem, code = target.problem, target.definition.source
        if not players:
            players.append(player_of("tester", name, [problem], opened.sandbox, asking, stack))
        if survivors:
            rows = (f"# line {each.line}: {each.description}" for each in survivors[:_MOST_SHOWN])
            asked = "# Tests so far do not notice these changes of the code; write tests that do:"
            code = "\n".join([code, asked, *rows, ""])
        seen = observe(problem, code=code, turn=1)
        try:
            answers = ask(players[0](command.seed), "tester", [seen] * command.num_samples)
        except AnswerError as error:
            raise InputError(str(error)) from error
        except BackendError as error:
            raise FailureError(str(error)) from error
        return [trial for each in answers for trial in opened.called_in(each, target.name)]

    return trials
