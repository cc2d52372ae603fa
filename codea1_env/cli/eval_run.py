"""Runs an evaluation of any name in its folder: one command for those of `codea1 eval`, and for yours."""

from __future__ import annotations

import dataclasses
import json
import shlex
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from codea1_env.agents.llm.completions import BackendError
from codea1_env.agents.llm.prompts import WORDINGS, OneByOne
from codea1_env.cli.errors import INTERRUPTED, FailureError, InputError, library_errors, user_input
from codea1_env.cli.eval_agents import (
    SamplingOptions,
    check_agent,
    check_problems,
    player_of,
    watched,
)
from codea1_env.cli.eval_display import EvaluationProgress, first_of, print_report
from codea1_env.cli.eval_options import EvaluationOptions
from codea1_env.cli.parsing import parse
from codea1_env.cli.tables import say
from codea1_env.evaluation.asking import TestEvaluation
from codea1_env.evaluation.registry import AnyEvaluation, find_evaluation
from codea1_env.evaluation.report import build_report, usage_of
from codea1_env.evaluation.result_folder import (
    REPORT,
    SAMPLES,
    SETTINGS,
    VERDICTS,
    FolderError,
    ResultFolder,
    read_json,
)
from codea1_env.evaluation.runner import EvaluationPlan, EvaluationRun, Stopped
from codea1_env.evaluation.samples import SampleFile, SamplesError, digest_of_problems
from codea1_env.evaluation.task import Evaluation, EvaluationError
from codea1_env.problems import Problem, load_problems
from codea1_env.support.plugins import digest_of_class
from codea1_env.support.stopping import stop_request

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
_METAVARS = {"agent": "NAME_OR_PATH", "samples": "FILE.jsonl", "num_samples": "N"}


@dataclass(frozen=True, kw_only=True)
class EvaluationCommand(EvaluationOptions):
    """The options of any evaluation."""

    num_samples: int = 1
    evaluation: Any  # its fields are options, too


@dataclass(frozen=True)
class _Input:
    """What was read before anything runs."""

    file: SampleFile[Any] | None
    unknown: Mapping[str, int]
    """Tasks that the problem set has not, and how often they stand in the files."""


def run(name: str, arguments: Sequence[str], title: str = "") -> int:
    """Run the evaluation of a name, as `find_evaluation` has it; returns the exit code."""
    with user_input():
        kind = find_evaluation(name)
    title = title or (f"eval run {name}" if ":" in name else f"eval {name}")
    command = parse(_command_of(kind), arguments, name=title)
    command, problems, of_set = _prepared(command, arguments)
    path = command.output_dir or Path("runs") / time.strftime(f"{title.split()[0]}-%Y%m%d-%H%M%S")
    console = Console(stderr=command.json)
    try:
        words = f"codea1 {title} {shlex.join(_without_headers(arguments))}"
        report = _in_folder(command, name, problems, of_set, path, console, words)
    except (SamplesError, FolderError, EvaluationError) as error:
        raise InputError(str(error)) from error
    except BackendError as error:
        raise FailureError(f"{error}. To go on, add: --resume --output-dir {path}") from error
    except (Stopped, KeyboardInterrupt):
        say(console, f"Stopped. To go on, add: --resume --output-dir {path}")
        return INTERRUPTED
    if command.json:
        print(json.dumps(report))
    else:
        print_report(command.evaluation, report, console)
        say(console, f"Command: {words}")
        say(console, f"Result folder: {path}")
    return 1 if report["excluded"] else 0


def _without_headers(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the words of a command without --headers, which may hold keys: they are in no file."""
    option = ""
    for word in arguments:
        option = word.partition("=")[0] if word.startswith("--") else option
        if option != "--headers":
            yield word


def _prepared(
    command: EvaluationCommand, arguments: Sequence[str]
) -> tuple[EvaluationCommand, list[Problem], int]:
    """Return the command with what the evaluation or a run chooses, its problems, and their number in the whole set."""
    own = command.evaluation
    names = (word.partition("=")[0] for word in arguments)
    given = {name[2:].replace("-", "_") for name in names if name.startswith("--")}
    run = Path(command.agent) if command.agent is not None else None
    with user_input():
        adopted = own.adopt(run if run and (run / "config.toml").is_file() else None, given)
        limits = [adopted.pop("max_problems", None), command.max_problems]
        fewest = min((each for each in limits if each), default=None)
        command = dataclasses.replace(command, **adopted, max_problems=fewest)
    if command.agent is not None:
        check_agent(own.role, command.agent)
    if (command.samples is None) == (command.agent is None):
        either = "" if "samples" in own.fixed else "either --samples FILE.jsonl or "
        raise InputError(f"expect {either}--agent NAME" + (", one of them" if either else ""))
    if command.resume and command.output_dir is None:
        raise InputError("expect --output-dir DIR with --resume: the result folder to go on with")
    with user_input():
        whole = load_problems(command.problems, command.split, own.difficulty)
        problems = whole[: command.max_problems]
    if command.agent is not None:
        with library_errors():
            check_problems(own.role, command.agent, problems)
    return command, problems, len(whole)


def _in_folder(
    command: EvaluationCommand,
    name: str,
    problems: Sequence[Problem],
    of_set: int,
    path: Path,
    console: Console,
    words: str,
) -> dict[str, Any]:
    """Run an evaluation in its result folder; returns the report."""
    with library_errors():
        read_before = _read(command, problems)
    goes_on = command.resume and (path / SETTINGS).is_file()  # if not, the folder says so
    recorded = read_json(path / SETTINGS).get("settings") if goes_on else None
    computing = command.computing(recorded)
    if computing is not None:
        say(console, f"{command.agent} computes in {computing}.")
    with library_errors():
        settings = _settings(command, name)
        fixed = settings | {"problems_sha256": digest_of_problems(problems)}
        with ResultFolder(path, fixed, resume=command.resume, command=words) as folder:
            try:
                report = _evaluate(command, settings, problems, read_before, folder, console)
            except (InputError, EvaluationError):
                if not command.resume:
                    folder.leave()
                raise
            if of_set > len(problems):
                report["problems_of_set"] = of_set
            folder.write(REPORT, report)
    return report


def _command_of(kind: AnyEvaluation) -> type[EvaluationCommand]:
    """Return the options of one evaluation, with its own help texts and defaults."""
    texts = _HELP[kind.role] | dict(kind.help)
    known = {each.name: each for each in dataclasses.fields(EvaluationCommand)}
    types: dict[str, Any] = {"agent": str | None, "samples": Path | None, "num_samples": int}
    own = tyro.conf.arg(help="What only this evaluation has.")  # its text stands above, whole
    fields: list[Any] = [("evaluation", Annotated[kind, tyro.conf.OmitArgPrefixes, own])]
    for name in dict.fromkeys((*texts, *kind.fixed, *kind.defaults)):
        default = kind.defaults.get(name, known[name].default)
        if name in kind.fixed:
            type_: Any = Annotated[Any, tyro.conf.Suppress]
        elif name in types:
            aliases = ["-n"] if name == "num_samples" else []
            shown = tyro.conf.arg(help=texts[name], metavar=_METAVARS[name], aliases=aliases)
            type_ = Annotated[types[name], shown]
        else:
            type_ = known[name].type
        fields.append((name, type_, default))
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
        own.check_counts({"every problem": command.num_samples})
        return _Input(None, unknown)
    file = own.read_file(command.samples, problems)
    counts = Counter(each.task_id for each in file.samples if each.task_id in own.problems)
    missing = [task for task in file.missing if task in own.problems]
    if not counts or (missing and not command.partial):
        more = f" Unknown tasks in the file: {first_of(file.unknown)}." if file.unknown else ""
        raise SamplesError(
            f"Expect samples for all {len(own.problems)} problems, as evalplus does, actually none for "
            f"{len(missing)}: {first_of(missing)}.{more} "
            "Add them, or leave these problems out of the figures with --partial."
        )
    own.check_counts(counts)
    return _Input(file, unknown + Counter(file.unknown))


def _settings(command: EvaluationCommand, typed: str) -> dict[str, Any]:
    """All that verdicts depend on; an evaluation of the user's also says where it is."""
    own = command.evaluation
    name = {own.kind_setting: own.kind} if own.kind else {}
    if ":" in typed:
        name["evaluation"] = typed
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
    settings: Mapping[str, Any],
    problems: Sequence[Problem],
    read: _Input,
    folder: ResultFolder,
    console: Console,
) -> dict[str, Any]:
    own = command.evaluation
    with ExitStack() as stack:
        stop = stack.enter_context(stop_request())
        stop.step = "what is being judged"
        own.begin(stack.enter_context(command.sandbox(own.limits)))
        shown = stack.enter_context(EvaluationProgress(console, own))
        threads = command.cores + 1  # one that waits for the sandbox leaves it something to do
        at_work = EvaluationRun(own, folder, lambda: stop.requested, threads)
        known = len(folder.rows(VERDICTS))
        if type(own).check is not Evaluation.check:
            tasks = list(own.problems)
            if read.file is not None:  # --partial leaves the others out
                named = {each.task_id for each in read.file.samples}
                tasks = [task for task in tasks if task in named]
            shown.begin("references", len(tasks))
            at_work.check(shown.advance, tasks)
        if read.file is not None:
            counts = Counter(each.task_id for each in read.file.samples)
            shown.begin(own.unit, own.expected(counts), known)
            at_work.judge_file(read.file.samples, shown.judged)
        else:
            asking = _asking(command)
            agent = player_of(own.role, command.agent or "", problems, own.sandbox, asking, stack)
            agent = watched(agent, command.agent or "", shown, stop)
            questions = own.questions(command.num_samples)
            counts = Counter(each.problem.task_id for each in questions)
            shown.begin(own.unit, own.expected(counts), known)
            plan = EvaluationPlan(command.num_samples, command.batch_size, command.seed)
            at_work.judge_agent(agent, plan, shown.judged)
    report = build_report(own, settings, read.unknown)
    if command.agent is not None and (used := usage_of(folder)) is not None:
        report["usage"] = used
    answers = [row.get("answer", row.get("solution", "-")) for row in folder.rows(SAMPLES)]
    empty = sum(not str(answer).strip() for answer in answers)
    if command.agent is not None and empty:
        report["empty_answers"] = empty
        advice = ". A model that thinks may need more tokens: --max-completion-length"
        more = advice if "usage" in report else ""
        say(console, f"Warning: {empty} of {len(answers)} answers are empty{more}")
    own.write_files(folder, command.agent or str(command.samples))
    return report
