"""`codea1 eval code`, `tests`, `best-of-n`, and evaluations of yours: one command for all."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from codea1_env.agents.llm.prompts import WORDINGS, OneByOne
from codea1_env.cli.errors import InputError, user_input
from codea1_env.cli.eval_agents import SamplingOptions, check_agent, player_of
from codea1_env.cli.eval_display import EvaluationProgress, percent, plain, print_report
from codea1_env.cli.eval_options import EvaluationOptions, require_samples, run_evaluation
from codea1_env.cli.eval_watching import watched
from codea1_env.cli.parsing import parse
from codea1_env.evaluation.asking import TestEvaluation
from codea1_env.evaluation.groups import check_fields, figures_by
from codea1_env.evaluation.registry import AnyEvaluation, find_evaluation
from codea1_env.evaluation.report import build_report
from codea1_env.evaluation.result_folder import REPORT, SAMPLES, ResultFolder
from codea1_env.evaluation.runner import EvaluationRun
from codea1_env.evaluation.running import EvaluationPlan
from codea1_env.evaluation.samples import SampleFile
from codea1_env.evaluation.usage import usage_of
from codea1_env.problems import Problem
from codea1_env.support.plugins import digest_of_class
from codea1_env.training.interrupt import stop_request

_AGENT = (
    'Who writes the {}, a language model ("smollm2-135m", owner/name on the hub, a folder with a model or an adapter), '
    'the address of an OpenAI-compatible server ("http://127.0.0.1:8000/v1"), the folder of a training run, or '
    "FILE.py:NAME."
)
_HELP = {
    "coder": {
        "agent": _AGENT.format('programs: "reference", "mutant" (the reference with one fault)'),
        "samples": 'Programs made elsewhere, in evalplus\' format: {"task_id", "solution"} or {"task_id", "completion"}.',
        "num_samples": "Programs per problem that an agent writes.",
    },
    "tester": {
        "agent": _AGENT.format(
            'tests: "golden" (the problem\'s own tests), "boundary" (calls near boundaries)'
        ),
        "samples": 'Tests made elsewhere: {"task_id", "tests": [TEXT, ...]} or {"task_id", "answer": TEXT}.',
        "num_samples": "Answers per problem that an agent writes.",
    },
}


@dataclass(frozen=True, kw_only=True)
class EvaluationCommand(EvaluationOptions):
    """The options of any evaluation."""

    num_samples: int = 1
    by: Annotated[tuple[str, ...], tyro.conf.arg(metavar="FIELD")] = ()
    """Also a table of figures by these fields that the rows of --samples have of their own, such as student."""
    evaluation: Any  # its fields are options, too


@dataclass(frozen=True)
class _Input:
    """What was read before anything runs."""

    file: SampleFile[Any] | None
    unknown: Mapping[str, int]
    """Tasks that the problem set has not, and how often they stand in the files."""


def run(name: str, arguments: Sequence[str]) -> int:
    """Run the evaluation of a name, as `find_evaluation` has it; returns the exit code."""
    with user_input():
        kind = find_evaluation(name)
    title = f"eval run {name}" if ":" in name else f"eval {name}"
    command = parse(_command_of(kind), arguments, name=title)
    with user_input():
        command = dataclasses.replace(command, **command.evaluation.choose())
    if command.agent is not None:
        check_agent(kind.role, command.agent)
    return run_evaluation(
        command,
        title,
        arguments,
        read=_read,
        settings=_settings,
        evaluate=_evaluate,
        show=lambda report, console: print_report(command.evaluation, report, console),
    )


def _command_of(kind: AnyEvaluation) -> type[EvaluationCommand]:
    """The options of one evaluation, with its own help texts."""
    texts = _HELP[kind.role] | dict(kind.help)
    file, agent, number = (
        tyro.conf.arg(help=texts["samples"], metavar="FILE.jsonl"),
        tyro.conf.arg(help=texts["agent"], metavar="NAME_OR_PATH"),
        tyro.conf.arg(help=texts["num_samples"], metavar="N", aliases=["-n"]),
    )
    own = tyro.conf.arg(help="What only this evaluation has.")  # its text stands above, whole
    fields: list[Any] = [
        ("samples", Annotated[Path | None, file], None),
        ("agent", Annotated[str | None, agent], None),
        ("num_samples", Annotated[int, number], kind.default_samples),
        ("evaluation", Annotated[kind, tyro.conf.OmitArgPrefixes, own]),
    ]
    defaults = {each.name: each.default for each in dataclasses.fields(EvaluationCommand)}
    fields += [(name, Annotated[Any, tyro.conf.Suppress], defaults[name]) for name in kind.fixed]
    return dataclasses.make_dataclass(
        f"{kind.__name__}Command",
        fields,
        bases=(EvaluationCommand,),
        namespace={"__doc__": kind.__doc__},
        frozen=True,
        kw_only=True,
    )


def _read(command: EvaluationCommand, problems: Sequence[Problem]) -> _Input:
    """Read the files, and look at all that can be wrong with them before anything runs."""
    own = command.evaluation
    unknown = Counter(own.load(problems))
    if command.samples is None:
        if command.by:
            raise InputError(
                "expect --by with --samples FILE.jsonl: an agent's samples have no fields"
            )
        own.check_counts({"every problem": command.num_samples})
        return _Input(None, unknown)
    file = own.read_file(command.samples, problems)
    counts = Counter(each.task_id for each in file.samples if each.task_id in own.problems)
    missing = [task for task in file.missing if task in own.problems]
    require_samples(
        counts.total(), missing, list(file.unknown), len(own.problems), partial=command.partial
    )
    own.check_counts(counts)
    check_fields(own, command.by, file.samples)
    return _Input(file, unknown + Counter(file.unknown))


def _settings(command: EvaluationCommand) -> dict[str, Any]:
    """All that verdicts depend on."""
    own = command.evaluation
    name = {"evaluates": own.kind} if own.kind else {}
    if digest := digest_of_class(type(own)):
        name["evaluation_sha256"] = digest[:16]
    return {**name, **command.settings(own.role), **own.settings(command.samples is None)}


def _asking(command: EvaluationCommand) -> SamplingOptions:
    own, wording = command.evaluation, WORDINGS[command.prompts]
    if not isinstance(own, TestEvaluation):
        return command.asking(wording())
    if own.one_by_one:
        return command.asking(OneByOne(wording(1)), 1)
    return command.asking(wording(own.num_tests), own.num_tests)


def _evaluate(
    command: EvaluationCommand,
    problems: Sequence[Problem],
    read: _Input,
    folder: ResultFolder,
    console: Console,
) -> dict[str, Any]:
    own = command.evaluation
    with ExitStack() as stack:
        stop = stack.enter_context(stop_request())
        stop.step = "what is being judged"
        own.begin(stack.enter_context(command.sandbox()))
        figure = own.figure.format_map(vars(own)) or "first figure"
        shown = stack.enter_context(
            EvaluationProgress(console, own, own.unit, figure, percent if own.in_percent else plain)
        )
        threads = command.cores + 1  # one that waits for the sandbox leaves it something to do
        at_work = EvaluationRun(own, folder, lambda: stop.requested, threads)
        if own.checks_problems:
            shown.begin("references", len(problems))
            at_work.check(shown.advance)
        if read.file is not None:
            counts = Counter(each.task_id for each in read.file.samples)
            shown.begin(own.unit, own.expected(counts))
            at_work.judge_file(read.file.samples, shown.judged)
        else:
            asking = _asking(command)
            agent = player_of(own.role, command.agent or "", problems, own.sandbox, asking, stack)
            agent = watched(agent, command.agent or "", shown, stop)
            questions = own.questions(command.num_samples)
            shown.begin(own.unit, own.expected(Counter(q.problem.task_id for q in questions)))
            plan = EvaluationPlan(command.num_samples, command.batch_size, command.seed)
            at_work.judge_agent(agent, plan, shown.judged)
    report = build_report(own, _settings(command), read.unknown)
    if command.by and read.file is not None:
        report["by"] = figures_by(own, command.by, read.file.samples)
    if command.agent is not None and (used := usage_of(folder)) is not None:
        report["usage"] = used
    answers = [row.get("answer", row.get("solution", "-")) for row in folder.rows(SAMPLES)]
    empty = sum(not str(answer).strip() for answer in answers)
    if command.agent is not None and empty:
        report["empty_answers"] = empty
        console.print(
            f"Warning: {empty} of {len(answers)} answers are empty. A model that thinks may need more tokens: "
            "--max-completion-length",
            highlight=False,
            soft_wrap=True,
        )
    folder.write(REPORT, report)
    return report
