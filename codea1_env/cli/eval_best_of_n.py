"""`codea1 eval best-of-n`: how often the right program is chosen by generated tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from codea1_env.agents.llm.prompts import WORDINGS
from codea1_env.cli.errors import InputError, user_input
from codea1_env.cli.eval_agents import player_of
from codea1_env.cli.eval_display import EvaluationProgress, print_best_of_n
from codea1_env.cli.eval_options import EvaluationOptions, require_samples, run_evaluation
from codea1_env.cli.parsing import parse
from codea1_env.evaluation.best_of_n.judging import LIMITS, BestOfN
from codea1_env.evaluation.best_of_n.programs import CodeResults, JudgedProgram
from codea1_env.evaluation.best_of_n.report import KIND, BestOfNTally, build_best_of_n_report
from codea1_env.evaluation.result_folder import REPORT, ResultFolder
from codea1_env.evaluation.running import EvaluationPlan
from codea1_env.evaluation.samples import SampleFile
from codea1_env.evaluation.suites.samples import SuiteSample, read_suites
from codea1_env.problems import Problem
from codea1_env.training.interrupt import stop_request


@dataclass(frozen=True, kw_only=True)
class BestOfNCommand(EvaluationOptions):
    """Choose among programs by generated tests: how often the chosen one is right, with and without.

    The programs are those of a finished `codea1 eval code`, whose verdicts say which are right; the choice does not
    see them, nor the reference. Choices: CodeT's dual execution agreement, and the program that passes the most
    tests. Writes samples.jsonl (the tests), verdicts.jsonl (which program passes which) and report.json.
    """

    programs: Annotated[Path, tyro.conf.arg(metavar="DIR")]
    """Result folder of `codea1 eval code`. The problems are those of that evaluation."""
    samples: Annotated[Path | None, tyro.conf.arg(metavar="FILE.jsonl")] = None
    """Tests made elsewhere: {"task_id", "tests": [TEXT, ...]} or {"task_id", "answer": TEXT}."""
    agent: Annotated[str | None, tyro.conf.arg(metavar="NAME_OR_PATH")] = None
    """Who writes the tests: "golden" (the problem's own tests), "boundary" (calls near boundaries), a language model
    ("smollm2-135m", owner/name on the hub, a folder with a model or an adapter), the address of an
    OpenAI-compatible server ("http://127.0.0.1:8000/v1"), the folder of a training run, or FILE.py:NAME."""
    white_box: bool = False
    """Show the tester a program with each question, those of the problem in turn, as in the Code-A1 paper; otherwise
    it writes tests from the problem alone, as in CodeT."""
    num_samples: Annotated[int, tyro.conf.arg(aliases=["-n"], metavar="N")] = 32
    """Answers per problem that an agent writes."""
    num_tests: Annotated[int, tyro.conf.arg(metavar="K")] = 8
    """Tests that an answer is asked for; those after them do not count."""
    problems: tyro.conf.Suppress[str] = ""
    split: tyro.conf.Suppress[str | None] = None
    max_problems: tyro.conf.Suppress[int | None] = None
    packages: tyro.conf.Suppress[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("num_tests")


@dataclass(frozen=True)
class _Read:
    """What was read before anything runs."""

    results: CodeResults
    programs: Mapping[str, Sequence[JudgedProgram]]
    suites: SampleFile[SuiteSample] | None


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 eval best-of-n`; returns the exit code."""
    command = parse(BestOfNCommand, arguments, name="eval best-of-n")
    with user_input():
        results = CodeResults(command.programs)
        same = {name: results.settings[name] for name in ("problems", "split", "max_problems")}
        command = dataclasses.replace(command, **same, packages=results.packages)
    return run_evaluation(
        command,
        "eval best-of-n",
        arguments,
        read=_read_files,
        settings=_settings,
        evaluate=_evaluate,
        show=print_best_of_n,
    )


def _read_files(command: BestOfNCommand, problems: Sequence[Problem]) -> _Read:
    """Read the files, and look at all that can be wrong with them before anything runs."""
    results = CodeResults(command.programs)
    reading = [problem.task_id for problem in problems if problem.stdin_tests]
    if reading:
        raise InputError(
            f"expect problems whose programs tests can call, actually the programs of {reading[0]} read standard "
            "input"
        )
    programs = results.programs(problems)
    if not any(programs.values()):
        raise InputError(f"expect programs to choose from in {command.programs}, actually: none")
    if command.samples is None:
        return _Read(results, programs, None)
    suites = read_suites(command.samples, problems)
    missing = [task for task in suites.missing if programs.get(task)]
    usable = sum(bool(programs.get(sample.task_id)) for sample in suites.samples)
    require_samples(usable, missing, list(suites.unknown), len(programs), partial=command.partial)
    return _Read(results, programs, suites)


def _settings(command: BestOfNCommand) -> dict[str, Any]:
    """All that choices depend on."""
    settings = {"evaluates": KIND, **command.settings("tester")}
    settings["programs"] = str(command.programs)
    settings["programs_sha256"] = CodeResults(command.programs).digest()
    if command.agent is not None:
        settings["white_box"] = command.white_box
    settings["num_tests"] = command.num_tests
    settings["seconds_per_test"] = LIMITS.call_cpu_time
    settings["seconds_per_program"] = LIMITS.run_cpu_time
    return settings


def _evaluate(
    command: BestOfNCommand,
    problems: Sequence[Problem],
    read: _Read,
    folder: ResultFolder,
    console: Console,
) -> dict[str, Any]:
    tally = BestOfNTally()
    with ExitStack() as stack:
        stop = stack.enter_context(stop_request())
        sandbox = stack.enter_context(command.sandbox())
        shown = stack.enter_context(EvaluationProgress(console, tally, "programs", "CodeT"))
        evaluation = BestOfN(
            problems, read.programs, sandbox, folder, command.num_tests, lambda: stop.requested
        )
        tasks = set(evaluation.problems)
        if read.suites is not None:
            tasks &= {sample.task_id for sample in read.suites.samples}
        shown.begin("programs", sum(len(read.programs[task]) for task in tasks))
        if read.suites is not None:
            evaluation.run_file(read.suites.samples, shown.judged)
        else:
            wording = WORDINGS[command.prompts](command.num_tests)
            asking = command.asking(wording, command.num_tests)
            tester = player_of("tester", command.agent or "", problems, sandbox, asking, stack)
            plan = EvaluationPlan(command.num_samples, command.batch_size, command.seed)
            evaluation.run_agent(tester, plan, shown.judged, white_box=command.white_box)
    report = build_best_of_n_report(
        _settings(command),
        evaluation.problems,
        tally,
        read.results.excluded,
        [task for task in evaluation.problems if task not in tally.chosen],
        {} if read.suites is None else read.suites.unknown,
    )
    folder.write(REPORT, report)
    return report
