"""Evaluations that ask coders for programs, or testers for tests, by name; yours is a function that judges one answer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from codea1_env.evaluation.samples import (
    ProgramSample,
    SampleFile,
    SuiteSample,
    read_samples,
    read_suites,
    sample_row,
)
from codea1_env.evaluation.task import Evaluation, Question, S, V
from codea1_env.problems import Problem
from codea1_env.responses import parse_programs, whole_program
from codea1_env.rollout import Agent, ask
from codea1_env.spaces import observe
from codea1_env.support.plugins import find


class ProgramEvaluation(Evaluation[ProgramSample, V]):
    """An evaluation of programs that coders write; `sample.code` is the program."""

    role = "coder"
    unit = "programs"

    def write(self, agent: Agent, batch: Sequence[Question]) -> list[Mapping[str, Any]]:
        """Ask for programs, and take them out of the answers as the game does."""
        problems = [each.problem for each in batch]
        answers = ask(agent, "coder", list(map(observe, problems)))
        asked = [(a, each.entry_point) for a, each in zip(answers, problems, strict=True)]
        read = parse_programs(asked, self.sandbox, [each.prompt for each in problems])
        codes = [
            # What a preamble gives is put before every program when it is judged, also before those from elsewhere.
            program.code if problem.preamble else whole_program(problem, program.code)
            for problem, program in zip(problems, read, strict=True)
        ]
        return list(map(sample_row, problems, codes, answers))

    def read(self, question: Question, row: Mapping[str, Any]) -> ProgramSample:
        """Return the program of a row."""
        return ProgramSample(question.problem.task_id, question.index, row["solution"], row)

    def read_file(self, path: Path, problems: Sequence[Problem]) -> SampleFile[ProgramSample]:
        """Read programs in evalplus' format."""
        return read_samples(path, problems)

    def key(self, sample: ProgramSample) -> Hashable:
        """Equal programs are judged once."""
        return sample.task_id, sample.code


@dataclass(kw_only=True, eq=False)
class TestEvaluation(Evaluation[S, V]):
    """An evaluation of tests that testers write; `read_suite` takes them out of a `SuiteSample`."""

    __test__ = False  # pytest would collect a class of this name
    role: ClassVar[Literal["coder", "tester"]] = "tester"
    unit = "suites"

    default_tests: ClassVar[int] = 8
    """What `num_tests` = 0 means without a run."""
    num_tests: int = 0
    """Tests that an answer is asked for; those after them do not count. 0 for as many as in the agent's run, or 8."""

    def __post_init__(self) -> None:
        if self.num_tests < 0:
            raise ValueError(f"Expect --num-tests to be at least 0, actually: {self.num_tests}")

    def load(self, problems: Sequence[Problem]) -> dict[str, int]:
        """Take the problem set."""
        self.num_tests = self.num_tests or self.default_tests
        return super().load(problems)

    @property
    def one_by_one(self) -> bool:
        """Whether an answer is one test, and earlier ones are shown."""
        return False

    def write(self, agent: Agent, batch: Sequence[Question]) -> list[Mapping[str, Any]]:
        """Ask for tests; the answers are kept as they are."""
        answers = zip(batch, self.ask(agent, batch, [""] * len(batch)), strict=True)
        return [{"task_id": each.problem.task_id, "answer": answer} for each, answer in answers]

    def ask(self, agent: Agent, batch: Sequence[Question], tests: Sequence[str]) -> Sequence[str]:
        """Return the answers to questions, each with the tests that are there already."""
        seen = [
            observe(each.problem, code=each.code, tests=text, turn=1)
            for each, text in zip(batch, tests, strict=True)
        ]
        return ask(agent, "tester", seen)

    def read(self, question: Question, row: Mapping[str, Any]) -> SuiteSample:
        """Return the suite of a row."""
        return SuiteSample(question.problem.task_id, question.index, row)

    def read_file(self, path: Path, problems: Sequence[Problem]) -> SampleFile[SuiteSample]:
        """Read suites in any of the forms that `read_suites` knows."""
        return read_suites(path, problems)


AnyEvaluation = type[Evaluation[Any, Any]]

BUILT_IN = {
    "code": "codea1_env.evaluation.programs:CodeEvaluation",
    "tests": "codea1_env.evaluation.suites.evaluation:SuiteEvaluation",
    "panel": "codea1_env.evaluation.panel_evaluation:PanelEvaluation",
}
"""Name -> where it is; loaded when it is asked for."""


def find_evaluation(name: str) -> AnyEvaluation:
    """Return the evaluation of a name in `BUILT_IN`, or one that a function of yours judges, FILE.py:NAME or module:NAME.

    Raises a TypeError if what is there is no such function, a ValueError if there is nothing of this name.
    """
    if name in BUILT_IN:
        built_in: AnyEvaluation = find(BUILT_IN[name], "evaluation")
        return built_in
    if ":" not in name:
        raise ValueError(
            f"Expect an evaluation to be {', '.join(BUILT_IN)} or FILE.py:NAME, actually: {name!r}"
        )
    return own_evaluation(name, find(name, "evaluation"))


Judge = Callable[..., Mapping[str, Any]]
"""`judge(problem, program)` or `judge(problem, tests)`, with `sandbox` behind them where it runs code.

It returns names with numbers, flags, texts or None, and is called in several threads.
"""


class _OwnPrograms(ProgramEvaluation[Mapping[str, Any]]):
    """A function of yours judges programs."""

    call: ClassVar[Judge]

    def judge(self, problem: Problem, sample: ProgramSample) -> Mapping[str, Any]:
        return self.call(problem, sample.code, self.sandbox)


class _OwnTests(TestEvaluation[SuiteSample, Mapping[str, Any]]):
    """A function of yours judges tests."""

    call: ClassVar[Judge]

    def judge(self, problem: Problem, sample: SuiteSample) -> Mapping[str, Any]:
        content = sample.content
        text = content if isinstance(content, str) else "\n".join(content)
        return self.call(problem, text, self.sandbox)


_OWN: dict[str, AnyEvaluation] = {"program": _OwnPrograms, "tests": _OwnTests}


def own_evaluation(name: str, judge: Judge) -> AnyEvaluation:
    """Make an evaluation of a function. Its second parameter says who is asked: coders for a program, testers for tests.

    Example:
        >>> def lines(problem, program):
        ...     return {"lines": len(program.splitlines())}
        >>> own_evaluation("lines", lines).role
        'coder'
    """
    parameters = list(inspect.signature(judge).parameters) if inspect.isfunction(judge) else []
    match parameters:
        case ["problem", "program" | "tests" as asked]:
            call: Judge = lambda problem, text, sandbox: judge(problem, text)  # noqa: E731
        case ["problem", "program" | "tests" as asked, "sandbox"]:
            call = judge
        case _:
            actually = (
                f"({', '.join(parameters)})" if inspect.isfunction(judge) else f"{judge!r:.200}"
            )
            raise TypeError(
                f"Expect the evaluation {name!r} to be a function with the parameters (problem, program) or (problem, tests), and "
                f"sandbox behind them where it runs code, actually: {actually}"
            )
    text = judge.__doc__ or f"Run {name}."
    own = {"kind": judge.__name__, "call": staticmethod(call), "__doc__": text}
    return type(judge.__name__, (_OWN[asked],), own)
