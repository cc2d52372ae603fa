"""`codea1 testgen --problems SOURCE`: a suite for every problem of a set, and a new set with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich import box
from rich.console import Console
from rich.table import Table

from codea1_env.agents.llm.prompts import WORDINGS
from codea1_env.cli.errors import InputError
from codea1_env.cli.eval_agents import player_of
from codea1_env.cli.eval_display import EvaluationProgress, left_out, percent, print_lines
from codea1_env.cli.eval_options import EvaluationOptions, require_samples, run_evaluation
from codea1_env.cli.eval_watching import watched
from codea1_env.cli.parsing import parse
from codea1_env.evaluation.result_folder import REPORT, ResultFolder
from codea1_env.evaluation.running import EvaluationPlan
from codea1_env.evaluation.samples import SampleFile
from codea1_env.evaluation.suites.samples import SuiteSample, read_suites
from codea1_env.problems import Problem
from codea1_env.testgen.problem_suites import (
    PROBLEMS,
    ProblemTally,
    SuiteWriting,
    build_report,
    with_suite,
)
from codea1_env.training.interrupt import stop_request

_SHOWN = 20
"""Problems that are printed."""


@dataclass(frozen=True, kw_only=True)
class ProblemsCommand(EvaluationOptions):
    """Write a suite for every problem of a set with a tester: right, and as small as it can be.

    Tests that predict a wrong value get the reference's. Of all tests the fewest are kept that kill the same mutants of
    the reference. problems.jsonl in the result folder has the problems with these tests in the place of their own:
    `codea1 train --problems DIR/problems.jsonl`.
    """

    samples: Annotated[Path | None, tyro.conf.arg(metavar="FILE.jsonl")] = None
    """Suites made elsewhere: {"task_id", "tests": [TEXT, ...]} or {"task_id", "answer": TEXT}."""
    agent: Annotated[str | None, tyro.conf.arg(metavar="NAME_OR_PATH")] = None
    """Who writes the tests: "boundary" (calls near boundaries), "golden" (the problem's own tests), a language model
    ("smollm2-135m", owner/name on the hub, a folder with a model or an adapter), the address of an
    OpenAI-compatible server ("http://127.0.0.1:8000/v1"), the folder of a training run, or FILE.py:NAME."""
    num_samples: Annotated[int, tyro.conf.arg(aliases=["-n"], metavar="N")] = 8
    """Answers per problem that an agent writes."""
    num_tests: Annotated[int, tyro.conf.arg(metavar="K")] = 8
    """Tests that an agent is asked for in an answer."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("num_tests")


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 testgen --problems SOURCE`; returns the exit code."""
    command = parse(ProblemsCommand, arguments, name="testgen")
    return run_evaluation(
        command,
        "testgen",
        arguments,
        read=_read_file,
        settings=_settings,
        evaluate=_write,
        show=_show,
    )


def _read_file(
    command: ProblemsCommand, problems: Sequence[Problem]
) -> SampleFile[SuiteSample] | None:
    if command.samples is None:
        return None
    file = read_suites(command.samples, problems)
    require_samples(
        len(file.samples), file.missing, list(file.unknown), len(problems), partial=command.partial
    )
    return file


def _settings(command: ProblemsCommand) -> dict[str, Any]:
    settings = {"writes": "suites", **command.settings("tester")}
    return settings if command.samples else settings | {"num_tests": command.num_tests}


def _write(
    command: ProblemsCommand,
    problems: Sequence[Problem],
    file: SampleFile[SuiteSample] | None,
    folder: ResultFolder,
    console: Console,
) -> dict[str, Any]:
    tally = ProblemTally()
    with ExitStack() as stack:
        stop = stack.enter_context(stop_request())
        sandbox = stack.enter_context(command.sandbox())
        shown = stack.enter_context(EvaluationProgress(console, tally, "suites", "mutation score"))
        threads = command.cores + 1  # one that waits for the sandbox leaves it something to do
        writing = SuiteWriting(problems, sandbox, folder, lambda: stop.requested, threads)
        shown.begin("references", len(problems))
        faults = writing.check(shown.advance)
        usable = [name for name, fault in faults.items() if not fault]
        if not usable:
            fault = next(iter(faults.values()))
            raise InputError(f"expect problems whose reference runs, actually none does: {fault}")
        if file is not None:
            shown.begin("suites", len({each.task_id for each in file.samples} & set(usable)))
            writing.from_file(file.samples, shown.judged)
        else:
            asking = command.asking(WORDINGS[command.prompts](command.num_tests), command.num_tests)
            tester = player_of("tester", command.agent or "", problems, sandbox, asking, stack)
            tester = watched(tester, command.agent or "", shown, stop)
            shown.begin("suites", len(usable))
            plan = EvaluationPlan(command.num_samples, command.batch_size, command.seed)
            writing.from_agent(tester, plan, shown.judged)
    source = command.agent or str(command.samples)
    folder.write_lines(
        PROBLEMS,
        [
            with_suite(problem, tally.suites[problem.task_id].tests, source)
            for problem in problems
            if problem.task_id in tally.suites and tally.suites[problem.task_id].tests
        ],
    )
    report = build_report(_settings(command), faults, tally, {} if file is None else file.unknown)
    folder.write(REPORT, report)
    return report


def _show(report: Mapping[str, Any], console: Console) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    names = ("written", "right", "corrected", "kept", "mutants", "killed")
    table.add_column("tests", overflow="fold")
    for name in names:
        table.add_column(name, justify="right")
    rows = list(report["results"].items())
    for name, row in rows[:_SHOWN]:
        table.add_row(name, *(str(row[each]) for each in names))
    if len(rows) > _SHOWN:
        table.add_row(f"and {len(rows) - _SHOWN} more")
    table.add_row("all", *(str(report["tests"][each]) for each in names), style="bold")
    console.print(table, highlight=False)
    tests = report["tests"]
    score = percent(report["figures"].get("mutation_score"))
    lines = [
        f"{tests['kept']} of {tests['distinct']} different tests kill {tests['killed']} of {tests['mutants']} "
        f"mutants; all of them kill {tests['killed_before']}",
        f"Mutation score, mean over problems, in percent: {score}",
        f"{PROBLEMS} has {report['scored']} of {report['problems']} problems",
    ]
    print_lines([*lines, *left_out(report)], console)
