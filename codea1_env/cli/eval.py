"""`codea1 eval`: evaluations by name, in their folders, and a comparison of two."""

from __future__ import annotations

import dataclasses
import json
import shlex
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
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
    AgentOf,
    Asking,
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
from codea1_env.evaluation.selection import select, selection_report, selection_table
from codea1_env.evaluation.task import Evaluation
from codea1_env.problems import Problem, load_problems
from codea1_env.rendering.display import counted_of
from codea1_env.rendering.progress import say
from codea1_env.report.sheet import Sheet
from codea1_env.sandbox.packages import versions
from codea1_env.support.jobs import EVALUATION, Jobs, read_manifest
from codea1_env.support.plugins import digest_of
from codea1_env.support.stopping import stop_request
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
    comparison = compare(command.a, command.b)
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
        name = self.agent or ""
        settings: dict[str, Any] = {"agent": self.agent, "seed": self.seed}
        if digest := digest_of(name):
            settings["agent_sha256"] = digest[:16]
        if not players.is_language_model(role, name):
            return settings
        settings["model"] = self.model
        if self.request:
            settings["request"] = self.request
        settings["backend"] = "server" if players.is_server(name) else self.backend
        settings["prompts"] = self.prompts or "few-shot"
        if digest := digest_of(settings["prompts"]):
            settings["prompts_sha256"] = digest[:16]
        if self.tester_examples == "hidden":
            settings["tester_examples"] = "hidden"
        if self.computes_here:
            settings |= {"dtype": self.dtype, "threads": self.threads}
        return settings | asdict(self.sampling())


@dataclass(frozen=True, kw_only=True)
class EvaluationCommand(EvaluationOptions):
    """The options of any evaluation."""

    evaluation: Any  # its fields are options, too


def _command_of(kind: AnyEvaluation) -> type[EvaluationCommand]:
    own = tyro.conf.arg(help="What only this evaluation has.")  # its text stands above, whole
    number = get_type_hints(EvaluationCommand, include_extras=True)["num_samples"]
    return dataclasses.make_dataclass(
        f"{kind.__name__}Command",
        [
            ("evaluation", Annotated[kind, tyro.conf.OmitArgPrefixes, own]),
            ("agent", Annotated[str | None, players.agent_option(kind.role)], None),
            ("num_samples", number, kind.default_samples),
        ],
        bases=(EvaluationCommand,),
        namespace={"__doc__": kind.__doc__},
        frozen=True,
        kw_only=True,
    )


def evaluate(name: str, arguments: Sequence[str]) -> int:
    """Run the evaluation of a name, as `find_evaluation` has it; returns the exit code."""
    with user_input():
        kind = find_evaluation(name)
    titles = {"panel": "eval tests --panel"}
    title = f"eval run {name}" if ":" in name else titles.get(name, f"eval {name}")
    command = parse(_command_of(kind), arguments, name=title)
    at_work = _Evaluating(name, command, f"codea1 {title} {shlex.join(arguments)}")
    return at_work.run()


class _Evaluating:
    """One evaluation, from its options to its report."""

    def __init__(self, name: str, command: EvaluationCommand, words: str) -> None:
        self.name, self.words = name, words
        self.own: Any = command.evaluation
        self.asked = command
        """Whom it asks, and how."""
        self.selector: EvaluationCommand | None = None
        """The same of the agent of --select."""
        if isinstance(self.own, CodeEvaluation) and self.own.select is not None:
            self.selector = dataclasses.replace(command, agent=self.own.select, samples=None)
        self.console = Console(stderr=command.json)
        self.path = command.output_dir or Path("runs") / time.strftime("eval-%Y%m%d-%H%M%S")

    def run(self) -> int:
        """Evaluate and show what came; returns the exit code."""
        self._ask_as_in_run()
        problems, of_set = self._problems()
        go_on = f"To go on, add: --resume --output-dir {self.path}"
        try:
            report = self._in_folder(problems, of_set)
        except BackendError as error:
            raise FailureError(f"{error}. {go_on}") from error
        except (Stopped, KeyboardInterrupt):
            say(self.console, f"Stopped. {go_on}")
            return INTERRUPTED
        if self.asked.json:
            print(json.dumps(report))
        else:
            print_report(self.own, report, self.console)
            if self.selector is not None:
                rows, lines = selection_table(report["selection"])
                print_sheet(Sheet.of(rows), self.console)
                say(self.console, "\n".join(lines))
            say(self.console, f"Command: {self.words}\nResult folder: {self.path}")
        return 1 if report["excluded"] else 0

    def _ask_as_in_run(self) -> None:
        """Ask the agent of a run as in its run, where nothing else was said; and say so."""
        own = self.own
        filled, config = self.asked.as_in_run(own.role)
        self.asked = filled
        if self.selector is not None:
            self.selector = self.selector.as_in_run("tester")[0]
        if isinstance(own, PanelEvaluation):
            with user_input():
                run = config if own.trained is None else read_config(Path(own.trained))
                own.left_out = tuple(problems_of_run(run)) if run else ()
        if config is None:
            return
        names = ["prompts", "temperature", "top_p", "max_completion_length"]
        said = {name: getattr(filled, name) for name in names}
        if isinstance(own, TestEvaluation):
            own.num_tests = own.num_tests or config.num_tests
            said |= {"tester_examples": filled.tester_examples, "num_tests": own.num_tests}
        words = ", ".join(f"{name} {value}" for name, value in said.items())
        say(self.console, f"Asked as in its run, but for what you say: {words}.")
        if isinstance(own, PanelEvaluation):
            say(
                self.console,
                f"The panel is that of today, drawn with seed {own.panel_seed}; not the one of the run.",
            )

    def _problems(self) -> tuple[list[Problem], int]:
        """Check the agents; returns the problems, and their number in the whole set."""
        asked = self.asked
        agents: list[tuple[Role, str]] = []
        if asked.agent is not None:
            agents.append((self.own.role, asked.agent))
        if self.selector is not None:
            agents.append(("tester", self.selector.agent or ""))
        for role, name in agents:
            players.check_agent(role, name)
        if (asked.samples is None) == (asked.agent is None):
            raise InputError("expect either --samples FILE.jsonl or --agent NAME, one of them")
        if asked.resume and asked.output_dir is None:
            raise InputError(
                "expect --output-dir DIR with --resume: the result folder to go on with"
            )
        with user_input():
            whole = load_problems(asked.problems, asked.split)
        problems = whole[: asked.max_problems]
        for role, name in agents:
            players.check_problems(role, name, problems)
        return problems, len(whole)

    def _in_folder(self, problems: Sequence[Problem], of_set: int) -> dict[str, Any]:
        unknown = Counter(self.own.load(problems))
        file = self._read(problems)
        goes_on = self.asked.resume and (self.path / EVALUATION.manifest).is_file()
        before = read_manifest(self.path, EVALUATION)["settings"] if goes_on else {}
        self.asked = self.asked.decided(before, self.console)
        if self.selector is not None:
            self.selector = self.selector.decided(before.get("select") or {}, self.console)
        settings = self._settings()
        fixed = settings | {"problems_sha256": digest_of_problems(problems)}
        resume = self.asked.resume
        with Jobs(self.path, fixed, resume=resume, command=self.words) as folder:
            try:
                selection = self._judge(problems, file, folder)
            except (InputError, ValueError, ImportError):  # what a user can mend
                if not resume and not (self.path / SAMPLES).exists():
                    folder.leave(REFERENCES)
                raise
            if file is not None:
                unknown += Counter(file.unknown)
            report = build_report(self.own, settings, unknown)
            report |= {} if selection is None else {"selection": selection}
            if self.asked.agent is not None:
                report |= self._about_answers(folder)
            if of_set > len(problems):
                report["problems_of_set"] = of_set
            folder.write(REPORT, report)
        return report

    def _read(self, problems: Sequence[Problem]) -> SampleFile[Any] | None:
        """Read the file of samples; None where an agent is asked."""
        own = self.own
        if self.asked.samples is None:
            own.check_counts({"every problem": self.asked.num_samples})
            return None
        file: SampleFile[Any] = own.read_file(self.asked.samples, problems)
        counts = Counter(each.task_id for each in file.samples if each.task_id in own.problems)
        missing = [task for task in file.missing if task in own.problems]
        if not counts or (missing and not self.asked.partial):
            more = f" Unknown tasks in the file: {first_of(file.unknown)}." if file.unknown else ""
            raise SamplesError(
                f"Expect samples for all {len(own.problems)} problems, as evalplus does, actually none for "
                f"{len(missing)}: {first_of(missing)}.{more} "
                "Add them, or leave these problems out of the figures with --partial."
            )
        own.check_counts(counts)
        return file

    def _settings(self) -> dict[str, Any]:
        """All that verdicts depend on; an evaluation of the user's also says where it is."""
        own = self.own
        named = {"evaluates": own.kind} if own.kind else {}
        if ":" in self.name:
            named |= {
                "evaluation": self.name,
                "evaluation_sha256": (digest_of(self.name) or "")[:16],
            }
        chosen = {} if self.selector is None else {"select": self.selector.who("tester")}
        asks = self.asked.samples is None
        return {**named, **self.asked.settings(own.role), **own.settings(asks), **chosen}

    def _judge(
        self, problems: Sequence[Problem], file: SampleFile[Any] | None, folder: Jobs
    ) -> dict[str, Any] | None:
        """Judge all samples; returns what came of --select, if it was given."""
        own, asked = self.own, self.asked
        with ExitStack() as stack:
            stop = stack.enter_context(stop_request())
            stop.step = "the answers and the programs at work"
            own.begin(stack.enter_context(asked.sandbox(own.limits)))
            shown = stack.enter_context(EvaluationProgress(self.console, own))
            threads = asked.cores + 1  # one that waits for the sandbox leaves it something to do
            at_work = EvaluationRun(
                own, folder, lambda: stop.requested, threads, partial(say, self.console)
            )
            if type(own).check is not Evaluation.check:
                tasks = list(own.problems)
                if file is not None:  # --partial leaves the others out
                    named = {each.task_id for each in file.samples}
                    tasks = [task for task in tasks if task in named]
                shown.begin("references", len(tasks))
                at_work.check(shown.advance, tasks)
            known = len(folder.rows(VERDICTS))
            if file is not None:
                shown.begin(own.unit, len(file.samples), known)
                at_work.judge_file(file.samples, shown.judged)
            else:
                agent, asking = self._agent(own.role, asked, problems, shown, stack)
                shown.begin(own.unit, len(own.questions(asked.num_samples)), known)
                plan = EvaluationPlan(asked.num_samples, asked.batch_size, asked.seed)
                at_work.judge_agent(agent, plan, shown.judged, asking)
            if self.selector is None:
                return None
            agent, asking = self._agent("tester", self.selector, problems, shown, stack)
            shown.begin("choices", len(own.numbers()))
            seed_of = EvaluationPlan(1, 1, asked.seed).seed_of
            rows = select(
                own, agent, seed_of, folder, lambda: stop.requested, shown.advance, asking
            )
            return selection_report(rows)

    def _agent(
        self,
        role: Role,
        asked: EvaluationCommand,
        problems: Sequence[Problem],
        shown: EvaluationProgress,
        stack: ExitStack,
    ) -> tuple[AgentOf, Asking]:
        """Find an agent; also returns what is around its answers: those of language models are shown while they come."""
        own, number = self.own, 8
        wording: PromptTemplate = asked.wording()
        if asked is self.asked and isinstance(own, TestEvaluation):
            number = 1 if own.one_by_one else own.num_tests
            wording = OneByOne(asked.wording(1)) if own.one_by_one else asked.wording(number)
        name = asked.agent or ""
        agent = players.player_of(role, asked, problems, own.sandbox, wording, number, stack)
        if not players.is_language_model(role, name):
            return agent, lambda number: nullcontext()
        return agent, partial(shown.answering, who=name, one_by_one=players.is_server(name))

    def _about_answers(self, folder: Jobs) -> dict[str, int | dict[str, int]]:
        """Count tokens, and answers without a text."""
        found: dict[str, int | dict[str, int]] = {}
        if (used := usage_of(folder)) is not None:
            found["usage"] = used
        answers = [row.get("answer", row.get("solution", "-")) for row in folder.rows(SAMPLES)]
        if empty := sum(not str(answer).strip() for answer in answers):
            found["empty_answers"] = empty
            advice = ". A model that thinks may need more tokens: --max-completion-length"
            more = advice if used is not None else ""
            text = f"Warning: no text in {counted_of(empty, len(answers), 'answers')}{more}"
            say(self.console, text)
        return found
