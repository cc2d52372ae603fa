"""Evaluations that ask coders for programs, or testers for tests, which yours extend; and all of them by name."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from codea1_env.evaluation.samples import ProgramSample, SampleFile, read_samples, sample_row
from codea1_env.evaluation.suites.samples import SuiteSample, read_suites
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

    num_tests: int = 8
    """Tests that an answer is asked for; those after them do not count."""

    def __post_init__(self) -> None:
        if self.num_tests < 1:
            raise ValueError(f"Expect --num-tests to be at least 1, actually: {self.num_tests}")

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
}
"""Name -> where it is; loaded when it is asked for."""


def find_evaluation(name: str) -> AnyEvaluation:
    """Return the evaluation of a name in `BUILT_IN`, or of FILE.py:NAME or module:NAME.

    Raises a TypeError if what is there is no evaluation, a ValueError if there is nothing of this name.
    """
    if name not in BUILT_IN and ":" not in name:
        raise ValueError(
            f"Expect an evaluation to be {', '.join(BUILT_IN)} or FILE.py:NAME, actually: {name!r}"
        )
    found: AnyEvaluation = find(BUILT_IN.get(name, name), "evaluation")
    check_evaluation(name, found)
    if "kind" not in vars(found):
        found.kind = found.__name__
    return found


def check_evaluation(name: str, evaluation: object) -> None:
    """Refuse what is no evaluation."""
    what = f"Expect the evaluation {name!r}"
    if not isinstance(evaluation, type) or not issubclass(evaluation, Evaluation):
        raise TypeError(
            f"{what} to be a class that extends ProgramEvaluation or TestEvaluation, actually: {evaluation!r:.200}. "
            "Give the class itself, not what it makes."
        )
    parameters = inspect.signature(evaluation.judge).parameters
    fields = {each.name for each in dataclasses.fields(evaluation)}
    annotated = vars(evaluation).get("__annotations__", {}).items()
    options = [key for key, kind in annotated if "ClassVar" not in str(kind) and key not in fields]
    if getattr(evaluation, "role", None) not in ("coder", "tester"):
        fault = "to have the role 'coder' or 'tester', actually it has none. Extend ProgramEvaluation or TestEvaluation."
    elif evaluation.judge is Evaluation.judge:
        fault = "to judge, actually it has no method for that. Define judge(self, problem, sample)."
    elif len(parameters) != 3:
        fault = f"to have judge(self, problem, sample), actually: judge({', '.join(parameters)}). Change its parameters."
    elif options:
        fault = (
            f"to be a dataclass, since it has options, actually {', '.join(options)} would be none. Put "
            "@dataclass(kw_only=True, eq=False) above the class."
        )
    else:
        return
    raise TypeError(f"{what} {fault}")
