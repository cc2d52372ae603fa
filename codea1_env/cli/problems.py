"""`codea1 problems`: what there is to play, a check of a set of one's own, and an audit of its tests."""

from __future__ import annotations

import dataclasses
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

import tyro
from rich.console import Console
from rich.table import Table

import codea1_env
from codea1_env.agents.llm.completions import BackendError
from codea1_env.agents.llm.prompts import WORDINGS
from codea1_env.cli.errors import (
    INTERRUPTED,
    FailureError,
    InputError,
    check_least,
    library_errors,
    user_input,
)
from codea1_env.cli.parsing import SOURCES, Packages, SandboxLevel, check_packages, parse
from codea1_env.cli.players import (
    AskingOptions,
    agent_option,
    check_agent,
    check_problems,
    player_of,
)
from codea1_env.cli.tables import PlainProgress, progress_bar, say
from codea1_env.evaluation.audit import AuditConfig, ProblemAudit, audit_of, audit_problem, summary
from codea1_env.evaluation.result_folder import AUDIT, REPORT, FolderError, ResultFolder
from codea1_env.evaluation.samples import SamplesError, digest_of_problems, read_samples
from codea1_env.problem_sets.validate import validate_problems
from codea1_env.problems import Problem, load_problems
from codea1_env.rendering.display import counted, counted_of
from codea1_env.responses import read_programs
from codea1_env.rollout import ask
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import observe
from codea1_env.support.stopping import stop_request

_Set = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE", help=SOURCES)]
_Option = Annotated[
    str | None,
    tyro.conf.arg(metavar="SOURCE", help="The same as an option, as other commands have it."),
]


@dataclass(frozen=True)
class List:
    """List the problems of a source."""

    source: _Set = "starter"
    problems: _Option = None
    split: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Only this split: "train" or "eval" of the bundled problems."""
    json: bool = False
    """Print one JSON object per line instead of a table."""


@dataclass(frozen=True)
class Validate:
    """Check a problem set: names every error with file and line. Exit code 1 if there are errors."""

    source: _Set = "starter"
    problems: _Option = None
    split: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Check only this split."""
    limit: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """Check only the first N rows."""
    workers: int = 2
    """Sandbox processes that work at the same time."""
    packages: Packages = ()
    sandbox_level: SandboxLevel = None
    json: bool = False
    """Print the report as one JSON object instead."""

    def __post_init__(self) -> None:
        check_least(self, limit=1, workers=1)
        check_packages(self.packages)


def list_problems(command: List) -> int:
    """Print one line per problem."""
    with user_input():
        problems = load_problems(command.source, command.split)
    if command.json:
        for problem in problems:
            about = {
                "task_id": problem.task_id, "entry_point": problem.entry_point,
                "tests": problem.number_of_tests, "judged": "inside" if problem.test_module else "outside",
            }  # fmt: skip
            print(json.dumps({**about, **problem.metadata}))
        return 0
    width = max(len(problem.task_id) for problem in problems)
    for problem in problems:
        said = problem.metadata
        measured = (f" {key} {said[key]}" for key in said if key.startswith("pass@1 "))
        tags = f"{said.get('difficulty', ''):<6} {said.get('split', ''):<5}" + ",".join(measured)
        print(f"{problem.task_id:<{width}}  {problem.number_of_tests:>4} tests  {tags}".rstrip())
    print(counted(len(problems), "problems"))
    return 0


def validate(command: Validate) -> int:
    """Print one line per finding; returns 1 if there are errors."""
    console, packages = Console(stderr=True), ("numpy", *command.packages)
    bar = progress_bar(console, "{task.description}")
    level = command.sandbox_level
    with library_errors(), Sandbox(command.workers, level=level, packages=packages) as sandbox, bar:
        task, lines = bar.add_task("reading rows", total=None, state=""), PlainProgress(console)

        def told(done: int, of: int) -> None:
            what = f"{counted(of, 'problems')}: references and mutants"
            bar.update(task, description=what, completed=done, total=of)
            lines.tell(done, of, counted_of(done, of, "problems"))

        report = validate_problems(
            command.source, sandbox, split=command.split, limit=command.limit, progress=told
        )
    if command.json:
        about = {name: getattr(report, name) for name in ("source", "problems", "tests", "ok")}
        found = [dataclasses.asdict(each) | {"kind": each.kind.value} for each in report.findings]
        print(json.dumps(about | {"findings": found}))
    else:
        print(*report.findings, sep="\n", end="\n" if report.findings else "")
        part = f"The first {counted(command.limit, 'rows')}: " if command.limit else ""
        print(
            f"{part}{counted(report.problems, 'problems')} with {counted(report.tests, 'tests')}: "
            f"{counted(len(report.errors), 'errors')}, {counted(len(report.warnings), 'warnings')}"
        )
    return 0 if report.ok else 1


AUDITS = "audits.jsonl"
_AT_ONCE = 16
"""Problems between two looks at what is to be stopped."""


@dataclass(frozen=True, kw_only=True)
class Audit(AskingOptions):
    """Measure how far tests can be trusted: wrong programs that pass them, right programs that fail."""

    source: _Set = "starter"
    problems: _Option = None
    agent: Annotated[str | None, agent_option("coder")] = None
    num_samples: Annotated[int, tyro.conf.arg(aliases=["-n"], metavar="N")] = 4
    """Programs that --agent writes for each problem."""
    split: str | None = None
    """Only this split."""
    max_problems: int | None = None
    """Only the first so many."""
    mutants: int = 12
    """Mutants of each reference, spread over it."""
    calls: int = 200
    """Variations of the tests' calls, on which programs that pass are compared with the reference."""
    all_calls: bool = False
    """Vary beyond the numbers, lengths and letters that the tests span, where a problem has no contract: for sets whose
    texts decide every case, as the starter set's do."""
    right_programs: Annotated[Path | None, tyro.conf.arg(metavar="FILE.jsonl")] = None
    """Programs that are known to be right, in evalplus' format: task_id and solution."""
    output_dir: Path | None = None
    """Result folder; None for a new one in runs/, named after the time."""
    resume: bool = False
    """Go on with the audit in --output-dir; the other options must be the same."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, max_problems=1, mutants=1, calls=1)
        if self.resume and self.output_dir is None:
            raise ValueError("Expect --output-dir DIR with --resume: the audit to go on with")


_Actions = (
    Annotated[List, tyro.conf.subcommand("list")]
    | Annotated[Validate, tyro.conf.subcommand("validate")]
    | Annotated[Audit, tyro.conf.subcommand("audit")]
)


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 problems`; returns the exit code."""
    command: List | Validate | Audit = parse(cast(Any, _Actions), arguments, name="problems")
    if isinstance(command, Audit):
        return audit(command)
    if command.problems is not None:
        command = dataclasses.replace(command, source=command.problems)
    return list_problems(command) if isinstance(command, List) else validate(command)


def audit(command: Audit) -> int:
    """Audit a problem set; returns the exit code."""
    path = command.output_dir or Path("runs") / time.strftime("audit-%Y%m%d-%H%M%S")
    console = Console(stderr=command.json)
    if command.agent is not None:
        check_agent("coder", command.agent)
    with user_input(), library_errors():
        whole = load_problems(command.problems or command.source, command.split)
        problems = whole[: command.max_problems]
        right = _right_programs(command, problems)
    settings = _settings(command, problems, right)
    started = time.perf_counter()
    try:
        with library_errors(), ResultFolder(
            path, settings, resume=command.resume, kind=AUDIT
        ) as folder:  # fmt: skip
            audits = _in_folder(command, problems, right, folder)
            report = summary(audits) | {"seconds": round(time.perf_counter() - started, 1)}
            if len(whole) > len(problems):
                report["problems_of_set"] = len(whole)
            folder.write(REPORT, report)
    except FolderError as error:
        raise InputError(str(error)) from error
    except (BackendError, KeyboardInterrupt) as error:
        said = f"To go on, add: --resume --output-dir {path}"
        if isinstance(error, BackendError):
            raise FailureError(f"{error}. {said}") from error
        say(console, f"Stopped. {said}")
        return INTERRUPTED
    if command.json:
        print(json.dumps(report | {"audits": [each.row() for each in audits]}))
    else:
        _show(report, audits, console)
        say(console, f"Result folder: {path}")
    return 0


def _in_folder(
    command: Audit,
    problems: Sequence[Problem],
    right: Mapping[str, list[str]],
    folder: ResultFolder,
) -> list[ProblemAudit]:
    """Audit what the folder has not yet; returns all audits."""
    audits = [audit_of(row) for row in folder.rows(AUDITS)]
    with ExitStack() as stack:
        sandbox = stack.enter_context(command.sandbox())
        answers = _answers(command, problems, sandbox, stack)
        stop = stack.enter_context(stop_request())
        stop.step = "the problems at work"
        pool = stack.enter_context(ThreadPoolExecutor(command.cores))
        console = Console(stderr=True)
        bar = stack.enter_context(progress_bar(console, "problems"))
        lines = PlainProgress(console, len(audits))
        done = len(audits)
        task = bar.add_task("", total=len(problems), completed=done, known=done, state="")
        while todo := problems[len(audits) : len(audits) + _AT_ONCE]:
            written = answers(todo)
            known = [right.get(each.task_id, ()) for each in todo]
            run = partial(audit_problem, sandbox=sandbox, config=_config(command))
            jobs = [
                pool.submit(run, each, answers=programs, right=given)
                for each, programs, given in zip(todo, written, known, strict=True)
            ]
            for job in jobs:
                audits.append(job.result())
                folder.append(AUDITS, [audits[-1].row()])
                weak = f"{sum(bool(each.wrong) for each in audits)} weak"
                bar.update(task, completed=len(audits), state=weak)
                done, total = len(audits), len(problems)
                lines.tell(done, total, f"{counted_of(done, total, 'problems')}, {weak}")
            if stop.requested and len(audits) < len(problems):
                raise KeyboardInterrupt
    return audits


def _answers(
    command: Audit, problems: Sequence[Problem], sandbox: Sandbox, stack: ExitStack
) -> Callable[[Sequence[Problem]], list[list[str]]]:
    """Return what asks the agent for programs; it is given none if there is no agent."""
    if command.agent is None:
        return lambda some: [[] for _ in some]
    check_problems("coder", command.agent, problems)
    asking = command.asking(WORDINGS[command.prompts]())
    agent_of = player_of("coder", command.agent, problems, sandbox, asking, stack)
    places = {each.task_id: place for place, each in enumerate(problems)}

    def write(some: Sequence[Problem]) -> list[list[str]]:
        each = [problem for problem in some for _ in range(command.num_samples)]
        texts = ask(
            agent_of(command.seed + places[some[0].task_id]), "coder", list(map(observe, each))
        )
        codes = [program.code for program in read_programs(each, texts, sandbox)]
        size = command.num_samples
        return [codes[n : n + size] for n in range(0, len(codes), size)]

    return write


def _right_programs(command: Audit, problems: Sequence[Problem]) -> dict[str, list[str]]:
    if command.right_programs is None:
        return {}
    try:
        file = read_samples(command.right_programs, problems)
    except SamplesError as error:
        raise InputError(str(error)) from error
    found: dict[str, list[str]] = {}
    for sample in file.samples:
        found.setdefault(sample.task_id, []).append(sample.code)
    if not found:
        raise InputError(f"expect {command.right_programs} to have programs for these problems")
    return found


def _config(command: Audit) -> AuditConfig:
    return AuditConfig(command.mutants, command.calls, command.seed, command.all_calls)


def _settings(command: Audit, problems: Sequence[Problem], right: Mapping[str, list[str]]) -> dict[str, Any]:  # fmt: skip
    asked = ("agent", "num_samples", "temperature", "top_p", "max_completion_length", "prompts")
    return {
        "codea1_env": codea1_env.__version__,
        "problems": command.problems or command.source,
        "problems_sha256": digest_of_problems(problems),
        "right_programs": sum(map(len, right.values())),
        **asdict(_config(command)),
        **({name: getattr(command, name) for name in asked} if command.agent else {}),
    }


def _show(report: Mapping[str, Any], audits: Sequence[ProblemAudit], console: Console) -> None:
    for each in audits:
        kinds = ", ".join(sorted(each.wrong))
        shown = next((x.witness for x in each.accepted if x.witness), "") if kinds else ""
        failing = "; ".join(f"{kind} fails: {said}" for kind, said in each.rejected.items())
        if kinds or failing:
            passes = f"{kinds} passes" + (f": {shown}" if shown else "") if kinds else ""
            line = f"{each.task_id}: {'; '.join(filter(None, (passes, failing)))}"
            console.print(f"{' '.join(line.split()):.300}", highlight=False, markup=False)
    table = Table(
        "what", "problems", "found", "share [95%]", title="How far the tests can be trusted"
    )
    for what, total, kinds in (
        ("a wrong program passes", "wrong", "wrong_by_kind"), ("the reference or a right program fails", "right", "right_by_kind"),
    ):  # fmt: skip
        for name, row in [(what, report[total]), *report[kinds].items()]:
            share = "{value:.3f} [{low:.3f}, {high:.3f}]".format(**row) if row["problems"] else "-"
            label = name if name == what else f"  {name}"
            table.add_row(label, str(row["problems"]), str(row["found"]), share)
    console.print(table)
    notes = Counter(each.note for each in audits if each.note and not each.rejected)
    for note, number in notes.most_common():
        say(console, f"{counted(number, 'problems')}: {note:.300}")
    left, others = report["problems"] - report["used"], report["used"] - report["compared"]
    alone = (
        "; in the others only a stub, constants and the examples count as wrong" if others else ""
    )
    if report["untold"]:
        alone += f", and no share has the {report['untold']} that only other programs pass"
    number, whole = report["problems"], report.get("problems_of_set")
    part = counted_of(number, whole, "problems") if whole else counted(number, "problems")
    say(
        console,
        f"{part}, {left} without tests that can judge. Programs that pass were compared with the "
        f"reference on other calls in {report['compared']}{alone}. {report['seconds']:.0f} s.",
    )
