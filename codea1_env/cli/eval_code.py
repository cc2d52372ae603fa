"""`codea1 eval code`: how many programs are right."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console

import codea1_env
from codea1_env.agents.llm.completions import BackendError, SamplingConfig
from codea1_env.cli.errors import INTERRUPTED, FailureError, InputError, library_errors, user_input
from codea1_env.cli.eval_agents import coder_of, is_language_model
from codea1_env.cli.eval_display import EvaluationProgress, print_report
from codea1_env.cli.parsing import SandboxLevel, parse
from codea1_env.evaluation.code_generation import CodeEvaluation, Plan, Stopped
from codea1_env.evaluation.code_judging import MIN_TIME_LIMIT, TIME_LIMIT_FACTOR
from codea1_env.evaluation.code_report import Tally, TooFewSamplesError, build_report, check_k
from codea1_env.evaluation.result_folder import REPORT, FolderError, ResultFolder
from codea1_env.evaluation.samples import SampleFile, SamplesError, read_samples
from codea1_env.problems import Problem, load_problems
from codea1_env.sandbox import Sandbox
from codea1_env.training.interrupt import stop_request

_NAMED = 10
"""Tasks that a message names."""


@dataclass(frozen=True)
class CodeCommand:
    """Judge programs: pass@k and avg@n with intervals, of an agent or of a file of samples.

    The defaults are the paper's: 32 programs per problem at temperature 0.7 and top_p 0.95. Writes samples.jsonl
    (evalplus can score it), verdicts.jsonl and report.json to the result folder.
    """

    problems: Annotated[str, tyro.conf.arg(metavar="SOURCE")] = "starter"
    """"starter", humaneval+, mbpp+, mbpp, bigcodebench, a data set of the Hugging Face hub, or a .jsonl,
    .jsonl.gz or .parquet file."""
    split: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Only this split."""
    max_problems: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """Only the first N problems."""
    samples: Annotated[Path | None, tyro.conf.arg(metavar="FILE.jsonl")] = None
    """Programs made elsewhere, in evalplus' format: {"task_id", "solution"} or {"task_id", "completion"}."""
    agent: Annotated[str | None, tyro.conf.arg(metavar="NAME_OR_PATH")] = None
    """Who writes the programs: "reference", "mutant" (the reference with one fault), a language model
    ("smollm2-135m", owner/name on the hub, a folder with a model or an adapter), the address of an
    OpenAI-compatible server ("http://127.0.0.1:8000/v1"), the folder of a training run, or FILE.py:NAME."""
    model: str | None = None
    """The server's name for the model; None for its first."""
    k: Annotated[tuple[int, ...] | None, tyro.conf.arg(metavar="K")] = None
    """Which pass@k to report; None for those of 1, 5 and 10 that the number of samples allows."""
    num_samples: Annotated[int, tyro.conf.arg(aliases=["-n"], metavar="N")] = 32
    """Programs per problem that an agent writes."""
    temperature: float = 0.7
    """Of language models."""
    top_p: float = 0.95
    """Of language models."""
    max_completion_length: int = 1024
    """Tokens of an answer of a language model."""
    prompts: Literal["few-shot", "detailed"] = "few-shot"
    """Wording for language models: with a worked example, for small ones; or with detailed instructions."""
    batch_size: int = 64
    """Programs that an agent is asked for at a time. A kill loses one batch at most."""
    seed: int = 0
    """Of the agent's draws."""
    workers: int | None = None
    """Sandbox processes that work at the same time; None for one per core. Has no influence on the results."""
    output_dir: Path | None = None
    """Result folder; None for a new one in runs/, named after the time."""
    resume: bool = False
    """Go on with the evaluation in --output-dir; the other options must be the same."""
    partial: bool = False
    """Accept a file that has no samples for some problems: they are left out of the figures, and listed."""
    sandbox_level: SandboxLevel = None
    json: bool = False
    """Print the report as one JSON object; the progress display goes to stderr."""

    def __post_init__(self) -> None:
        for name in ("max_problems", "num_samples", "batch_size", "workers"):
            value = getattr(self, name)
            if value is not None and value < 1:
                option = name.replace("_", "-")
                raise ValueError(f"Expect --{option} to be at least 1, actually: {value}")
        if self.seed < 0:
            raise ValueError(f"Expect --seed to be at least 0, actually: {self.seed}")


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 eval code`; returns the exit code."""
    command = parse(CodeCommand, arguments, name="eval code")
    if (command.samples is None) == (command.agent is None):
        raise InputError("expect either --samples FILE.jsonl or --agent NAME, one of them")
    with user_input():
        problems = load_problems(command.problems, command.split)[: command.max_problems]
    if command.resume and command.output_dir is None:
        raise InputError("expect --output-dir DIR with --resume: the result folder to go on with")
    path = command.output_dir or Path("runs") / time.strftime("eval-%Y%m%d-%H%M%S")
    console = Console(stderr=command.json)
    try:
        file = _read_file(command, problems)
        with (
            library_errors(),
            ResultFolder(path, _settings(command), resume=command.resume) as folder,
        ):
            report = _evaluate(command, problems, file, folder, console)
    except (SamplesError, FolderError, TooFewSamplesError) as error:
        raise InputError(str(error)) from error
    except BackendError as error:
        raise FailureError(f"{error}. To go on, add: --resume --output-dir {path}") from error
    except (Stopped, KeyboardInterrupt):
        console.print(
            f"Stopped. To go on, add: --resume --output-dir {path}", highlight=False, soft_wrap=True
        )
        return INTERRUPTED
    if command.json:
        print(json.dumps(report))
    else:
        print_report(report, console)
        console.print(
            f"Command: codea1 eval code {shlex.join(arguments)}", highlight=False, soft_wrap=True
        )
        console.print(f"Result folder: {path}", highlight=False, soft_wrap=True)
    return 1 if report["excluded"] else 0


def _read_file(command: CodeCommand, problems: Sequence[Problem]) -> SampleFile | None:
    """Read the samples, and look at all that can be wrong with them before anything runs."""
    if command.samples is None:
        if command.k is not None:
            check_k(command.k, {"every problem": command.num_samples})
        return None
    file = read_samples(command.samples, problems)
    unknown = f" Unknown tasks in the file: {_names(list(file.unknown))}." if file.unknown else ""
    if not file.samples or (file.missing and not command.partial):
        raise SamplesError(
            f"Expect samples for all {len(problems)} problems, as evalplus does, actually none for "
            f"{len(file.missing)}: {_names(file.missing)}.{unknown} "
            "Add them, or leave these problems out of the figures with --partial."
        )
    counts: dict[str, int] = {}
    for sample in file.samples:
        counts[sample.task_id] = counts.get(sample.task_id, 0) + 1
    check_k(command.k, counts)
    return file


def _settings(command: CodeCommand) -> dict[str, Any]:
    """All that verdicts depend on."""
    settings: dict[str, Any] = {
        "codea1_env": codea1_env.__version__,
        "problems": command.problems,
        "split": command.split,
        "max_problems": command.max_problems,
    }
    if command.samples is not None:
        settings["samples"] = str(command.samples)
        settings["samples_sha256"] = hashlib.sha256(command.samples.read_bytes()).hexdigest()
    else:
        settings["agent"] = command.agent
        settings["num_samples"] = command.num_samples
        settings["batch_size"] = command.batch_size
        settings["seed"] = command.seed
        if is_language_model(command.agent or ""):
            settings["model"] = command.model
            settings["prompts"] = command.prompts
            settings |= asdict(_sampling(command))
    settings["min_time_limit"] = MIN_TIME_LIMIT
    settings["time_limit_factor"] = TIME_LIMIT_FACTOR
    return settings


def _sampling(command: CodeCommand) -> SamplingConfig:
    with user_input():
        return SamplingConfig(
            temperature=command.temperature,
            top_p=command.top_p,
            max_prompt_length=4096,
            max_completion_length=command.max_completion_length,
            stop=("\n```\n",),
        )


def _evaluate(
    command: CodeCommand,
    problems: Sequence[Problem],
    file: SampleFile | None,
    folder: ResultFolder,
    console: Console,
) -> dict[str, Any]:
    workers = command.workers or len(os.sched_getaffinity(0))
    tally = Tally()
    with ExitStack() as stack:
        stop = stack.enter_context(stop_request())
        sandbox = stack.enter_context(Sandbox(workers, level=command.sandbox_level))
        shown = stack.enter_context(EvaluationProgress(console, tally))
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
            coder = coder_of(
                command.agent or "",
                command.model,
                problems,
                sandbox,
                _sampling(command),
                command.prompts,
                stack,
            )
            plan = Plan(command.num_samples, command.batch_size, command.seed)
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


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
