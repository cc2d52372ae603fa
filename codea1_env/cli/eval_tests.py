"""`codea1 eval tests`: how many tests are right, and what the right ones are worth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console

from codea1_env.agents.llm.prompts import WORDINGS, OneByOne, PromptTemplate
from codea1_env.cli.errors import InputError
from codea1_env.cli.eval_agents import SamplingOptions, player_of
from codea1_env.cli.eval_display import EvaluationProgress
from codea1_env.cli.eval_options import (
    EvaluationOptions,
    digest_of,
    require_samples,
    run_evaluation,
)
from codea1_env.cli.eval_tests_display import print_suite_report
from codea1_env.cli.parsing import parse
from codea1_env.evaluation.result_folder import REPORT, ResultFolder
from codea1_env.evaluation.running import EvaluationPlan
from codea1_env.evaluation.samples import SampleFile, read_samples
from codea1_env.evaluation.suites.cosmic_ray import cosmic_ray_mutants
from codea1_env.evaluation.suites.generation import SuiteEvaluation
from codea1_env.evaluation.suites.judging import SuiteJudge
from codea1_env.evaluation.suites.report import SuiteTally, build_suite_report, check_ks
from codea1_env.evaluation.suites.samples import SuiteSample, read_suites
from codea1_env.mutation.kills import FACTOR, MIN_SECONDS
from codea1_env.problems import Problem
from codea1_env.training.interrupt import stop_request


@dataclass(frozen=True, kw_only=True)
class TestsCommand(EvaluationOptions):
    """Judge tests: pass@k, mut@k and Mul as UnLeakedTestBench and the Code-A1 paper have them, with intervals.

    A tester is shown each problem and its reference, as the program under test. Language models draw at
    temperature 0.7 and top_p 0.95. Writes samples.jsonl, verdicts.jsonl and report.json to the result folder.
    """

    __test__ = False  # pytest would collect a class of this name

    samples: Annotated[Path | None, tyro.conf.arg(metavar="FILE.jsonl")] = None
    """Suites made elsewhere: {"task_id", "tests": [TEXT, ...]} or {"task_id", "answer": TEXT}. The files of
    UnLeakedTestBench work as they are."""
    agent: Annotated[str | None, tyro.conf.arg(metavar="NAME_OR_PATH")] = None
    """Who writes the tests: "golden" (the problem's own tests), "boundary" (calls near boundaries), a language model
    ("smollm2-135m", owner/name on the hub, a folder with a model or an adapter), the address of an
    OpenAI-compatible server ("http://127.0.0.1:8000/v1"), the folder of a training run, or FILE.py:NAME."""
    num_samples: Annotated[int, tyro.conf.arg(aliases=["-n"], metavar="N")] = 1
    """Suites per problem that an agent writes."""
    num_tests: Annotated[int, tyro.conf.arg(metavar="K")] = 5
    """Tests that a suite is asked for. Those after them do not count; those that are missing count as wrong."""
    k: Annotated[tuple[int, ...] | None, tyro.conf.arg(metavar="K")] = None
    """Look at the first K tests of each suite; None for 1, 2 and 5 as far as --num-tests allows, and that number."""
    protocol: Literal["suite", "rounds"] = "suite"
    """How an agent is asked: once for all tests; or for one test at a time, with the earlier ones before its eyes, as
    UnLeakedTestBench does."""
    mutator: Literal["own", "cosmic-ray"] = "own"
    """What makes the mutants that tests must kill. "cosmic-ray" is what published figures of UnLeakedTestBench use; it
    needs the extra evaluation, and is much slower."""
    wrong_programs: Annotated[Path | None, tyro.conf.arg(metavar="FILE.jsonl")] = None
    """Programs in the format of `codea1 eval code`; those that the golden tests of their problem fail are what
    p_01 and p_00 are measured on. None for up to 20 mutants of each reference."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("num_tests")


@dataclass(frozen=True)
class _Files:
    """What was read before anything runs."""

    suites: SampleFile[SuiteSample] | None
    wrong_programs: Mapping[str, Sequence[str]] | None
    unknown: Mapping[str, int]
    """Tasks that the problem set has not, and how often they stand in the files."""


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 eval tests`; returns the exit code."""
    command = parse(TestsCommand, arguments, name="eval tests")
    return run_evaluation(
        command,
        "eval tests",
        arguments,
        read=_read_files,
        settings=_settings,
        evaluate=_evaluate,
        show=print_suite_report,
    )


def _read_files(command: TestsCommand, problems: Sequence[Problem]) -> _Files:
    """Read the files, and look at all that can be wrong with them before anything runs."""
    check_ks(command.k, command.num_tests)
    programs: dict[str, list[str]] | None = None
    unknown: Counter[str] = Counter()
    if command.wrong_programs is not None:
        programs = {}
        pool = read_samples(command.wrong_programs, problems)
        unknown.update(pool.unknown)
        for sample in pool.samples:
            programs.setdefault(sample.task_id, []).append(sample.code)
    if command.samples is None:
        return _Files(None, programs, unknown)
    file = read_suites(command.samples, problems)
    require_samples(
        len(file.samples), file.missing, list(file.unknown), len(problems), partial=command.partial
    )
    unknown.update(file.unknown)
    return _Files(file, programs, unknown)


def _settings(command: TestsCommand) -> dict[str, Any]:
    """All that scores depend on."""
    settings = {"evaluates": "tests", **command.settings("tester")}
    settings["num_tests"] = command.num_tests
    if command.samples is None:
        settings["protocol"] = command.protocol
    settings["mutator"] = command.mutator
    if command.mutator == "cosmic-ray":
        settings["cosmic_ray"] = _version_of_cosmic_ray()
    if command.wrong_programs is not None:
        settings["wrong_programs"] = str(command.wrong_programs)
        settings["wrong_programs_sha256"] = digest_of(command.wrong_programs)
    settings["min_time_limit"] = MIN_SECONDS
    settings["time_limit_factor"] = FACTOR
    return settings


def _asking(command: TestsCommand) -> SamplingOptions:
    one_by_one = command.protocol == "rounds"
    number = 1 if one_by_one else command.num_tests
    wording: PromptTemplate = WORDINGS[command.prompts](number)
    wording = OneByOne(wording) if one_by_one else wording
    return command.asking(wording, number)


def _version_of_cosmic_ray() -> str:
    try:
        return metadata.version("cosmic-ray")
    except metadata.PackageNotFoundError as error:
        raise InputError(
            "expect the package cosmic-ray to be installed, actually: it is not. "
            "Run: pip install 'codea1-env[evaluation]'"
        ) from error


def _evaluate(
    command: TestsCommand,
    problems: Sequence[Problem],
    files: _Files,
    folder: ResultFolder,
    console: Console,
) -> dict[str, Any]:
    tally = SuiteTally(command.num_tests)
    with ExitStack() as stack:
        stop = stack.enter_context(stop_request())
        sandbox = stack.enter_context(command.sandbox())
        figure = f"pass@{command.num_tests}"
        shown = stack.enter_context(EvaluationProgress(console, tally, "suites", figure))
        mutator = None
        if command.mutator == "cosmic-ray":
            mutator = partial(cosmic_ray_mutants, level=command.sandbox_level)
        judge = SuiteJudge(sandbox, command.num_tests, mutator, files.wrong_programs)
        threads = command.cores + 1  # one that waits for the sandbox leaves it something to do
        evaluation = SuiteEvaluation(problems, judge, folder, lambda: stop.requested, threads)
        shown.begin("references", len(problems))
        evaluation.run_checks(shown.advance)
        faults = [check.fault for check in evaluation.checks.values()]
        if all(faults):
            raise InputError(
                f"expect problems whose reference runs, actually none does: {faults[0]}"
            )
        if files.suites is not None:
            shown.begin("suites", len(files.suites.samples))
            evaluation.judge_file(files.suites.samples, shown.judged)
        else:
            tester = player_of(
                "tester", command.agent or "", problems, sandbox, _asking(command), stack
            )
            plan = EvaluationPlan(command.num_samples, command.batch_size, command.seed)
            shown.begin("suites", faults.count("") * command.num_samples)
            rounds = command.num_tests if command.protocol == "rounds" else None
            evaluation.judge_agent(tester, plan, shown.judged, rounds=rounds)
    report = build_suite_report(
        _settings(command),
        problems,
        evaluation.checks,
        tally,
        command.k,
        files.unknown,
    )
    folder.write(REPORT, report)
    return report
