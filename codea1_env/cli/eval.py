"""`codea1 eval`: evaluations by name, in their folders, and a comparison of two."""

from __future__ import annotations

import dataclasses
import json
import shlex
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import tyro
from rich.console import Console

import codea1_env
from codea1_env.agents.llm.completions import BackendError
from codea1_env.agents.llm.prompts import OneByOne, PromptTemplate
from codea1_env.agents.opponents import Role
from codea1_env.cli import players
from codea1_env.cli.errors import (
    INTERRUPTED,
    FailureError,
    InputError,
    check_least,
    library_errors,
    user_input,
)
from codea1_env.cli.parsing import SOURCES, parse
from codea1_env.cli.tables import (
    EvaluationProgress,
    first_of,
    print_comparison,
    print_report,
    print_sheet,
)
from codea1_env.evaluation.asking import AnyEvaluation, TestEvaluation, find_evaluation
from codea1_env.evaluation.comparison import compare
from codea1_env.evaluation.panel_evaluation import PanelEvaluation
from codea1_env.evaluation.programs import CodeEvaluation
from codea1_env.evaluation.runner import (
    REFERENCES,
    REPORT,
    SAMPLES,
    VERDICTS,
    EvaluationPlan,
    EvaluationRun,
    Stopped,
    build_report,
    usage_of,
)
from codea1_env.evaluation.samples import (
    SampleFile,
    SamplesError,
    digest_of_problems,
)
from codea1_env.evaluation.selection import NUM_TESTS, select, selection_report, selection_table
from codea1_env.evaluation.task import Evaluation, EvaluationError
from codea1_env.problems import Problem, load_problems
from codea1_env.rendering.display import counted_of
from codea1_env.rendering.progress import say
from codea1_env.report.sheet import Sheet
from codea1_env.rollout import AnswerError
from codea1_env.sandbox.packages import versions
from codea1_env.support.jobs import EVALUATION, FolderError, Jobs, read_manifest
from codea1_env.support.plugins import digest_of
from codea1_env.support.stopping import StopRequest, stop_request
from codea1_env.training.problems_of_run import problems_of_run
from codea1_env.training.run_folder import read_config


@dataclass(frozen=True)
class CompareCommand:
    """Compare two evaluations of the same problems.

    Shows the difference of every figure that both have, with a paired bootstrap interval over problems, and the
    problems that changed. Both must be of the same `codea1 eval NAME`.
    """

    a: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="A")]
    """Result folder of a `codea1 eval NAME`."""
    b: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="B")]
    """Another one of the same kind; differences are B - A."""
    json: bool = False
    """Print the comparison as one JSON object."""


def code(arguments: Sequence[str]) -> int:
    """Run `codea1 eval code`; returns the exit code."""
    return evaluate("code", arguments)


def tests(arguments: Sequence[str]) -> int:
    """Run `codea1 eval tests`, or with --panel that on the panel; returns the exit code."""
    if "--panel" in arguments:
        return evaluate("panel", [each for each in arguments if each != "--panel"])
    return evaluate("tests", arguments)


def own(arguments: Sequence[str]) -> int:
    """Run `codea1 eval run FILE.py:NAME`; returns the exit code."""
    if arguments[:1] in (["-h"], ["--help"]):
        parse(EvaluationOptions, arguments, name="eval run FILE.py:NAME")
    if not arguments or arguments[0].startswith("-"):
        raise InputError("expect the evaluation behind run: FILE.py:NAME, and then its options")
    return evaluate(arguments[0], arguments[1:])


def compare_two(arguments: Sequence[str]) -> int:
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


@dataclass(frozen=True, kw_only=True)
class EvaluationOptions(players.AskingOptions):
    """Run an evaluation of yours.

    With FILE.py:NAME before --help its own options are shown, too. docs/evaluation.md says how to write one.
    """

    problems: Annotated[str, tyro.conf.arg(metavar="SOURCE", help=SOURCES)] = "starter"
    split: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Only this split."""
    max_problems: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """Only the first N problems."""
    samples: Annotated[Path | None, tyro.conf.arg(metavar="FILE.jsonl")] = None
    """Samples made elsewhere. Programs in evalplus' format: {"task_id", "solution"} or {"task_id", "completion"}; tests:
    {"task_id", "tests": [TEXT, ...]} or {"task_id", "answer": TEXT}."""
    batch_size: int = 64
    """Samples that an agent is asked for at a time. A kill loses one batch at most."""
    output_dir: Path | None = None
    """Result folder; None for a new one in runs/, named after the time."""
    resume: bool = False
    """Go on with the evaluation in --output-dir; the other options must be the same."""
    partial: bool = False
    """Accept a file that has no samples for some problems: they are left out of the figures, and listed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, max_problems=1, batch_size=1)

    def settings(self, role: Role) -> dict[str, Any]:
        """All that the samples depend on, and with them the verdicts."""
        settings: dict[str, Any] = {
            "codea1_env": codea1_env.__version__,
            "problems": self.problems,
            "split": self.split,
            "max_problems": self.max_problems,
        }
        if self.packages:
            settings["packages"] = versions(sorted(self.packages))
        if self.samples is not None:
            settings["samples"] = str(self.samples)
            settings["samples_sha256"] = digest_of(str(self.samples))
            return settings
        sizes = {"num_samples": self.num_samples, "batch_size": self.batch_size}
        return settings | self.who(role) | sizes

    def who(self, role: Role) -> dict[str, Any]:
        """The agent, and all that its answers depend on."""
        settings: dict[str, Any] = {"agent": self.agent, "seed": self.seed}
        if digest := digest_of(self.agent or ""):
            settings["agent_sha256"] = digest[:16]
        if players.is_language_model(role, self.agent or ""):
            if players.is_server(self.agent or "") and self.model is None:
                # Of two models behind one address the answers are not to be mixed.
                model = players.served_model(self.agent or "")
                object.__setattr__(self, "model", model)
            settings["model"] = self.model
            if self.request:
                settings["request"] = self.request
            settings["backend"] = "server" if players.is_server(self.agent or "") else self.backend
            settings["prompts"] = self.prompts or "few-shot"
            if digest := digest_of(settings["prompts"]):
                settings["prompts_sha256"] = digest[:16]
            if self.tester_examples == "hidden":
                settings["tester_examples"] = "hidden"
            computing = self.computing()
            if computing is not None:
                settings["dtype"] = computing.dtype
                settings["threads"] = computing.threads
            settings |= asdict(self.sampling())
        return settings


@dataclass(frozen=True, kw_only=True)
class EvaluationCommand(EvaluationOptions):
    """The options of any evaluation."""

    evaluation: Any  # its fields are options, too

    @cached_property
    def selector(self) -> EvaluationCommand | None:
        """The same options for the agent of --select."""
        own = self.evaluation
        if not isinstance(own, CodeEvaluation) or own.select is None:
            return None
        return dataclasses.replace(self, agent=own.select, samples=None)


@dataclass(frozen=True)
class _Input:
    file: SampleFile[Any] | None
    unknown: Mapping[str, int]
    """Tasks that the problem set has not, and how often they stand in the files."""


def evaluate(name: str, arguments: Sequence[str]) -> int:
    """Run the evaluation of a name, as `find_evaluation` has it; returns the exit code."""
    with user_input():
        kind = find_evaluation(name)
    titles = {"panel": "eval tests --panel"}
    title = f"eval run {name}" if ":" in name else titles.get(name, f"eval {name}")
    command = parse(_command_of(kind), arguments, name=title)
    console = Console(stderr=command.json)
    command = _as_in_run(command, console)
    problems, of_set = _problems_of(command)
    path = command.output_dir or Path("runs") / time.strftime("eval-%Y%m%d-%H%M%S")
    try:
        words = f"codea1 {title} {shlex.join(arguments)}"
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
        if command.selector is not None:
            rows, lines = selection_table(report["selection"])
            print_sheet(Sheet.of(rows), console)
            say(console, "\n".join(lines))
        say(console, f"Command: {words}")
        say(console, f"Result folder: {path}")
    return 1 if report["excluded"] else 0


def _as_in_run(command: EvaluationCommand, console: Console) -> EvaluationCommand:
    """Ask the agent of a run as in its run, where nothing else was said; and say so."""
    own, chooser = command.evaluation, command.selector
    filled, config = command.as_in_run(own.role)
    if chooser is not None:
        filled.__dict__["selector"] = chooser.as_in_run("tester")[0]
    if isinstance(own, PanelEvaluation):
        with user_input():
            run = config if own.trained is None else read_config(Path(own.trained))
            own.left_out = tuple(problems_of_run(run)) if run else ()
    if config is None:
        return filled
    if isinstance(own, TestEvaluation):
        own.num_tests = own.num_tests or config.num_tests
    asked = {"prompts": filled.prompts, "temperature": filled.temperature}
    asked |= {"top_p": filled.top_p, "max_completion_length": filled.max_completion_length}
    if isinstance(own, TestEvaluation):
        asked |= {"tester_examples": filled.tester_examples, "num_tests": own.num_tests}
    words = ", ".join(f"{key} {value}" for key, value in asked.items())
    say(console, f"Asked as in its run, but for what you say: {words}.")
    if isinstance(own, PanelEvaluation):
        say(
            console,
            f"The panel is that of today, drawn with seed {own.panel_seed}; not the one of the run.",
        )
    return filled


def _problems_of(command: EvaluationCommand) -> tuple[list[Problem], int]:
    """Check the agents; returns the problems, and their number in the whole set."""
    asked: list[tuple[Role, str | None]] = [(command.evaluation.role, command.agent)]
    if command.selector is not None:
        asked.append(("tester", command.selector.agent))
    agents = [(role, name) for role, name in asked if name is not None]
    for role, name in agents:
        players.check_agent(role, name)
    if (command.samples is None) == (command.agent is None):
        raise InputError("expect either --samples FILE.jsonl or --agent NAME, one of them")
    if command.resume and command.output_dir is None:
        raise InputError("expect --output-dir DIR with --resume: the result folder to go on with")
    with user_input():
        whole = load_problems(command.problems, command.split)
        problems = whole[: command.max_problems]
    for role, name in agents:
        with library_errors():
            players.check_problems(role, name, problems)
    return problems, len(whole)


def _in_folder(
    command: EvaluationCommand,
    name: str,
    problems: Sequence[Problem],
    of_set: int,
    path: Path,
    console: Console,
    words: str,
) -> dict[str, Any]:
    with library_errors():
        read_before = _read(command, problems)
    goes_on = (
        command.resume and (path / EVALUATION.manifest).is_file()
    )  # if not, the folder says so
    before = read_manifest(path, EVALUATION)["settings"] if goes_on else {}
    for each, known in ((command, before), (command.selector, before.get("select"))):
        if each is not None and (computing := each.computing(known)) is not None:
            say(console, f"{each.agent} computes in {computing}.")
    with library_errors():
        settings = _settings(command, name)
        fixed = settings | {"problems_sha256": digest_of_problems(problems)}
        with Jobs(path, fixed, resume=command.resume, command=words) as folder:
            try:
                report = _evaluate(command, settings, problems, read_before, folder, console)
            except (InputError, EvaluationError, AnswerError):
                if not command.resume and not (path / SAMPLES).exists():
                    folder.leave(REFERENCES)
                raise
            if of_set > len(problems):
                report["problems_of_set"] = of_set
            folder.write(REPORT, report)
    return report


def _command_of(kind: AnyEvaluation) -> type[EvaluationCommand]:
    known = {each.name: each for each in dataclasses.fields(EvaluationCommand)}
    own = tyro.conf.arg(help="What only this evaluation has.")  # its text stands above, whole
    fields: list[Any] = [
        ("evaluation", Annotated[kind, tyro.conf.OmitArgPrefixes, own]),
        ("agent", Annotated[str | None, players.agent_option(kind.role)], None),
    ]
    for name in dict.fromkeys((*kind.help, *kind.defaults)):
        type_: Any = get_type_hints(EvaluationCommand, include_extras=True)[name]
        if name in kind.help:
            type_ = Annotated[type_, tyro.conf.arg(help=kind.help[name])]
        fields.append((name, type_, kind.defaults.get(name, known[name].default)))
    return dataclasses.make_dataclass(
        f"{kind.__name__}Command",
        fields,
        bases=(EvaluationCommand,),
        namespace={"__doc__": kind.__doc__},
        frozen=True,
        kw_only=True,
    )


def _read(command: EvaluationCommand, problems: Sequence[Problem]) -> _Input:
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
    name = {"evaluates": own.kind} if own.kind else {}
    if ":" in typed:
        name["evaluation"] = typed
        name["evaluation_sha256"] = (digest_of(typed) or "")[:16]
    chosen = {} if command.selector is None else {"select": command.selector.who("tester")}
    asked = command.samples is None
    return {**name, **command.settings(own.role), **own.settings(asked), **chosen}


def _wording(command: EvaluationCommand) -> tuple[PromptTemplate, int]:
    own = command.evaluation
    if not isinstance(own, TestEvaluation):
        return command.wording(), 8
    if own.one_by_one:
        return OneByOne(command.wording(1)), 1
    return command.wording(own.num_tests), own.num_tests


def _evaluate(
    command: EvaluationCommand,
    settings: Mapping[str, Any],
    problems: Sequence[Problem],
    read: _Input,
    folder: Jobs,
    console: Console,
) -> dict[str, Any]:
    own = command.evaluation
    with ExitStack() as stack:
        stop = stack.enter_context(stop_request())
        stop.step = "the programs that run now"
        own.begin(stack.enter_context(command.sandbox(own.limits)))
        shown = stack.enter_context(EvaluationProgress(console, own))
        threads = command.cores + 1  # one that waits for the sandbox leaves it something to do
        at_work = EvaluationRun(own, folder, lambda: stop.requested, threads, partial(say, console))
        if type(own).check is not Evaluation.check:
            tasks = list(own.problems)
            if read.file is not None:  # --partial leaves the others out
                named = {each.task_id for each in read.file.samples}
                tasks = [task for task in tasks if task in named]
            shown.begin("references", len(tasks))
            at_work.check(shown.advance, tasks)
        if read.file is not None:
            counts = Counter(each.task_id for each in read.file.samples)
            shown.begin(own.unit, counts.total(), len(folder.rows(VERDICTS)))
            at_work.judge_file(read.file.samples, shown.judged)
        else:
            asked = _wording(command)
            agent = players.player_of(own.role, command, problems, own.sandbox, *asked, stack)
            agent = players.watched(agent, command.agent or "", shown, stop)
            questions = own.questions(command.num_samples)
            shown.begin(own.unit, len(questions), len(folder.rows(VERDICTS)))
            plan = EvaluationPlan(command.num_samples, command.batch_size, command.seed)
            at_work.judge_agent(agent, plan, shown.judged)
        selection = _select(command, folder, shown, stop)
    report = build_report(own, settings, read.unknown)
    report |= {} if selection is None else {"selection": selection}
    if command.agent is not None and (used := usage_of(folder)) is not None:
        report["usage"] = used
    answers = [row.get("answer", row.get("solution", "-")) for row in folder.rows(SAMPLES)]
    empty = sum(not str(answer).strip() for answer in answers)
    if command.agent is not None and empty:
        report["empty_answers"] = empty
        advice = ". A model that thinks may need more tokens: --max-completion-length"
        more = advice if "usage" in report else ""
        say(console, f"Warning: no text in {counted_of(empty, len(answers), 'answers')}{more}")
    return report


def _select(
    command: EvaluationCommand, folder: Jobs, shown: EvaluationProgress, stop: StopRequest
) -> dict[str, Any] | None:
    """Choose among the programs by the tests of the agent of --select; None without one."""
    asked, own = command.selector, command.evaluation
    if asked is None:
        return None
    name = asked.agent or ""
    shown.begin("choices", len(own.numbers()))
    with ExitStack() as stack:
        wording = asked.wording(NUM_TESTS)
        problems = list(own.problems.values())
        agent = players.player_of("tester", asked, problems, own.sandbox, wording, NUM_TESTS, stack)
        rows = select(
            own,
            players.watched(agent, name, shown, stop),
            EvaluationPlan(1, 1, command.seed).seed_of,
            folder,
            lambda: stop.requested,
            shown.advance,
        )
    return selection_report(rows)
