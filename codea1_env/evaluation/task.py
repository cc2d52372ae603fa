"""What an evaluation is: problems, samples, a judge and metrics.

`Evaluation` is the protocol, with a default for all but who is asked and the judge. `codea1_env.evaluation.asking` asks
coders and testers, and makes one of a function of yours.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Protocol, Self, TypeVar

from codea1_env.evaluation.samples import SampleFile, digest
from codea1_env.evaluation.statistics import (
    Estimate,
    figure_of,
    figures_in,
    mean_over_problems,
    written,
)
from codea1_env.problems import Problem
from codea1_env.rendering.display import counted, counted_of
from codea1_env.rollout import Agent
from codea1_env.sandbox import Limits, Sandbox


class _Numbered(Protocol):
    @property
    def task_id(self) -> str: ...
    @property
    def index(self) -> int: ...


S = TypeVar("S", bound=_Numbered)
"""A sample: it knows its problem, and its number among the samples of that."""
V = TypeVar("V")

OF_SAMPLE = ("task_id", "sample", "fields")
"""What a row of verdicts.jsonl says of the sample."""


class EvaluationError(ValueError):
    """An evaluation that cannot be made of this input. The message says what to do."""


@dataclass(frozen=True)
class Stored:
    """What is kept as a row of a file; its fields are plain, or tuples of plain values."""

    def row(self) -> dict[str, Any]:
        """As JSON has it."""
        return dataclasses.asdict(self)

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """Return what `row` made."""
        return cls(
            **{k: tuple(each) if isinstance(each, list) else each for k, each in row.items()}
        )


def row_of(verdict: Any) -> Mapping[str, Any]:
    """Return a verdict, as JSON has it."""
    found: Mapping[str, Any] = verdict.row() if isinstance(verdict, Stored) else verdict
    return found


def numbers_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Name -> its numbers and flags in all rows; None is left out, and names of texts are."""
    found: dict[str, list[float]] = {}
    for name, value in (item for row in rows for item in row.items()):
        if value is None or isinstance(value, (int, float)):
            found.setdefault(name, []).extend([] if value is None else [float(value)])
    return found


@dataclass(frozen=True)
class ProblemFault(Stored):
    """Whether a problem can be used."""

    task_id: str
    fault: str
    """Why the problem cannot be used; empty if it can."""
    unjudged: bool = field(default=False, kw_only=True)
    """Whether the sandbox failed at its reference: that is not kept, so that it is asked again at --resume."""

    def row(self) -> dict[str, Any]:
        """As JSON has it."""
        return {name: value for name, value in super().row().items() if name != "unjudged"}


@dataclass(frozen=True)
class Question:
    """What an agent is asked for one sample."""

    problem: Problem
    index: int
    """Number among the samples of the problem, from 0."""
    code: str = ""
    """The program that a tester is shown; "" for none."""


@dataclass(kw_only=True, eq=False)
class Evaluation(Generic[S, V]):
    """One evaluation: who is asked, what a sample is (`S`), how it is judged (`V`), which figures verdicts make.

    The fields of a subclass are the options of its command, with their docstrings as help.
    """

    role: ClassVar[Literal["coder", "tester"]]
    """Who is asked."""
    unit: ClassVar[str] = "samples"
    """What is judged, in the plural."""
    kind: ClassVar[str] = ""
    """How reports, and the setting "evaluates", name it, such as the name of its class; "" for the one without a name."""
    check_type: ClassVar[type[Stored]] = ProblemFault
    """What `check` returns."""
    verdict_type: ClassVar[type[Stored] | None] = None
    """What `judge` returns; None for a mapping of names to numbers, flags, texts and None."""
    default_samples: ClassVar[int] = 1
    """Samples per problem that an agent is asked for where nothing else is said."""
    limits: ClassVar[Limits] = Limits()
    """What programs may use where nothing else is said."""

    figure: str = field(init=False, default="")
    """Which value the progress display shows, by its name; "" for the first one."""
    problems: dict[str, Problem] = field(init=False, default_factory=dict)
    sandbox: Sandbox = field(init=False, repr=False)
    checks: dict[str, Any] = field(init=False, default_factory=dict)
    """Task -> what `check` found."""
    verdicts: dict[str, list[V]] = field(init=False, default_factory=dict)
    """Task -> its verdicts, in order."""
    total: int = field(init=False, default=0)
    """Verdicts so far."""

    def judge(self, problem: Problem, sample: S) -> V:
        """Judge a sample, in one of several threads. `self.sandbox` is where foreign text may run."""
        raise NotImplementedError

    def settings(self, asked: bool) -> dict[str, Any]:
        """Own settings that verdicts depend on: all fields. `asked` says whether there is an agent, or a file."""
        names = (each.name for each in dataclasses.fields(self) if each.init)
        found = {name: getattr(self, name) for name in names}
        return {name: str(it) if isinstance(it, Path) else it for name, it in found.items()}

    def load(self, problems: Sequence[Problem]) -> dict[str, int]:
        """Take the problem set, and read what else is needed. Returns the unknown tasks of other files."""
        self.problems = {problem.task_id: problem for problem in problems}
        return {}

    def begin(self, sandbox: Sandbox) -> None:
        """Take the sandbox; called once, before anything is checked."""
        self.sandbox = sandbox

    def check_counts(self, counts: Mapping[str, int]) -> None:
        """Refuse these numbers of samples of each problem, if there is something that they do not allow."""

    def check(self, problem: Problem) -> Any:
        """Find out what must be known before samples are judged: a `ProblemFault`, or a dataclass with more."""
        return ProblemFault(problem.task_id, "")

    def questions(self, num_samples: int) -> list[Question]:
        """Return what an agent is asked: about every problem that can be used, one after the other."""
        faults = self.faults()
        usable = [each for task, each in self.problems.items() if task not in faults]
        return [
            Question(each, i, self.shown(each, i)) for each in usable for i in range(num_samples)
        ]

    def shown(self, problem: Problem, index: int) -> str:
        """Return the program that a tester is shown with a question; "" for none."""
        return ""

    def write(self, agent: Agent, batch: Sequence[Question]) -> list[Mapping[str, Any]]:
        """Ask an agent; returns the rows of its samples."""
        raise NotImplementedError

    def read(self, question: Question, row: Mapping[str, Any]) -> Any:
        """Return the sample of a row that `write` made."""
        raise NotImplementedError

    def read_file(self, path: Path, problems: Sequence[Problem]) -> SampleFile[Any]:
        """Read samples made elsewhere."""
        raise NotImplementedError

    def key(self, sample: S) -> Hashable:
        """Equal for samples that can only have equal verdicts: they are judged once."""
        return sample.task_id, sample.index

    @property
    def scored(self) -> list[str]:
        """Tasks that can be used and have verdicts."""
        faults = self.faults()
        return [task for task in self.problems if task in self.verdicts and task not in faults]

    def add(self, sample: S, verdict: V) -> None:
        """Count one more verdict."""
        self.total += 1
        self.verdicts.setdefault(sample.task_id, []).append(verdict)

    def estimate(self) -> Estimate | None:
        """Return the mean of `figure` over problems, to show while it runs; None if there is nothing yet."""
        found = self._values_of_problems()
        values = found.get(self.figure or next(iter(found), ""))
        return mean_over_problems(values) if values else None

    def _values_of_problems(self) -> dict[str, list[float]]:
        return numbers_of(self.values(self.verdicts[task]) for task in self.scored)

    def values(self, verdicts: Sequence[V]) -> Mapping[str, float | None]:
        """Return the values of one problem: the mean of every number and flag of its verdicts; None where there is none."""
        found = numbers_of(map(row_of, verdicts))
        return {name: sum(it) / len(it) if it else None for name, it in found.items()}

    def figures(self) -> dict[str, Any]:
        """Name -> figure, as JSON has it: the mean of a value over problems, with its interval; None without values."""
        return {
            name: figure_of(it) if it else None for name, it in self._values_of_problems().items()
        }

    def summary(self) -> dict[str, Any]:
        """Return the report, but for what all reports have. Equal verdicts give equal reports."""
        return {
            "problems": len(self.problems),
            "scored": len(self.scored),
            "samples": self.total,
            "figures": self.figures(),
        }

    def result(self, task: str) -> dict[str, Any]:
        """Return what the report says of one problem."""
        verdicts = self.verdicts[task]
        return {"samples": len(verdicts), "values": dict(self.values(verdicts))}

    def digest(self, problem: Problem) -> str:
        """Return a short text that changes whenever verdicts on this problem mean something else."""
        return digest(problem)

    def faults(self) -> dict[str, str]:
        """Task -> why it cannot be used."""
        return {task: check.fault for task, check in self.checks.items() if check.fault}

    def table(self, report: Mapping[str, Any]) -> list[list[str]]:
        """Return the figures of a report as rows of texts, the headings first."""
        rows = [[name, written(value)] for name, value in figures_in(report["figures"]).items()]
        return [["figure", "value [95% interval]"], *rows]

    def lines(self, report: Mapping[str, Any]) -> list[str]:
        """Return what else there is to say about a report."""
        whole = report.get("problems_of_set", report["problems"])
        part = counted_of(report["scored"], whole, "problems")
        return [f"{counted(report['samples'], self.unit)} for {part}"]
