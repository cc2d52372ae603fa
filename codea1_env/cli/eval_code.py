"""`codea1 eval code`: how many programs are right."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from codea1_env.agents.llm.prompts import WORDINGS
from codea1_env.cli.errors import InputError
from codea1_env.cli.eval_agents import player_of
from codea1_env.cli.eval_display import EvaluationProgress, print_report
from codea1_env.cli.eval_options import EvaluationOptions, require_samples, run_evaluation
from codea1_env.cli.parsing import parse
from codea1_env.evaluation.programs.generation import CodeEvaluation
from codea1_env.evaluation.programs.judging import (
    MIN_TIME_LIMIT,
    TIME_LIMIT_FACTOR,
    TIME_LIMIT_WITHOUT_REFERENCE,
)
from codea1_env.evaluation.programs.report import OutcomeTally, build_report, check_k
from codea1_env.evaluation.result_folder import REPORT, ResultFolder
from codea1_env.evaluation.running import EvaluationPlan
from codea1_env.evaluation.samples import ProgramSample, SampleFile, read_samples
from codea1_env.problems import Problem
from codea1_env.training.interrupt import stop_request


@dataclass(frozen=True, kw_only=True)
class CodeCommand(EvaluationOptions):
    """Judge programs: pass@k and avg@n with intervals, of an agent or of a file of samples.

    The defaults are the paper's: 32 programs per problem at temperature 0.7 and top_p 0.95. Writes samples.jsonl
    (evalplus can score it), verdicts.jsonl and report.json to the result folder.
    """

    samples: Annotated[Path | None, tyro.conf.arg(metavar="FILE.jsonl")] = None
    """Programs made elsewhere, in evalplus' format: {"task_id", "solution"} or {"task_id", "completion"}."""
    agent: Annotated[str | None, tyro.conf.arg(metavar="NAME_OR_PATH")] = None
    """Who writes the programs: "reference", "mutant" (the reference with one fault), a language model
    ("smollm2-135m", owner/name on the hub, a folder with a model or an adapter), the address of an
    OpenAI-compatible server ("http://127.0.0.1:8000/v1"), the folder of a training run, or FILE.py:NAME."""
    num_samples: Annotated[int, tyro.conf.arg(aliases=["-n"], metavar="N")] = 32
    """Programs per problem that an agent writes."""
    k: Annotated[tuple[int, ...] | None, tyro.conf.arg(metavar="K")] = None
    """Which pass@k to report; None for those of 1, 5 and 10 that the number of samples allows."""


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 eval code`; returns the exit code."""
    command = parse(CodeCommand, arguments, name="eval code")
    return run_evaluation(
        command,
        "eval code",
        arguments,
        read=_read_file,
        settings=_settings,
        evaluate=_evaluate,
        show=print_report,
    )


def _read_file(
    command: CodeCommand, problems: Sequence[Problem]
) -> SampleFile[ProgramSample] | None:
    """Read the samples, and look at all that can be wrong with them before anything runs."""
    if command.samples is None:
        if command.k is not None:
            check_k(command.k, {"every problem": command.num_samples})
        return None
    file = read_samples(command.samples, problems)
    require_samples(
        len(file.samples), file.missing, list(file.unknown), len(problems), partial=command.partial
    )
    counts: dict[str, int] = {}
    for sample in file.samples:
        counts[sample.task_id] = counts.get(sample.task_id, 0) + 1
    check_k(command.k, counts)
    return file


def _settings(command: CodeCommand) -> dict[str, Any]:
    """All that verdicts depend on."""
    limits = {
        "min_time_limit": MIN_TIME_LIMIT,
        "time_limit_factor": TIME_LIMIT_FACTOR,
        "time_limit_without_reference": TIME_LIMIT_WITHOUT_REFERENCE,
    }
    return command.settings("coder") | limits


def _evaluate(
    command: CodeCommand,
    problems: Sequence[Problem],
    file: SampleFile[ProgramSample] | None,
    folder: ResultFolder,
    console: Console,
) -> dict[str, Any]:
    tally = OutcomeTally()
    with ExitStack() as stack:
        stop = stack.enter_context(stop_request())
        sandbox = stack.enter_context(command.sandbox())
        shown = stack.enter_context(EvaluationProgress(console, tally, "programs", "pass@1"))
        evaluation = CodeEvaluation(problems, sandbox, folder, lambda: stop.requested)
        shown.begin("references", len(problems))
        evaluation.run_references(shown.advance)
        faults = [run.fault for run in evaluation.references.values()]
        if all(faults):
            raise InputError(
                f"expect problems whose reference passes its own tests, actually none does: {faults[0]}"
            )
        if file is not None:
            shown.begin("programs", len(file.samples))
            evaluation.judge_file(file.samples, shown.judged)
        else:
            asking = command.asking(WORDINGS[command.prompts]())
            coder = player_of("coder", command.agent or "", problems, sandbox, asking, stack)
            plan = EvaluationPlan(command.num_samples, command.batch_size, command.seed)
            shown.begin("programs", len(problems) * command.num_samples)
            evaluation.judge_agent(coder, plan, shown.judged)
    report = build_report(
        _settings(command),
        problems,
        evaluation.references,
        tally,
        command.k,
        {} if file is None else file.unknown,
    )
    folder.write(REPORT, report)
    return report
