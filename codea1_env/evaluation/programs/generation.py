"""Evaluates programs on a problem set: what `codea1 eval code` does.

First the references run on their own tests, which finds problems that cannot be used and how long programs may
take. Then programs come, from a file or batch by batch from an agent, and the sandbox judges them while the
agent writes the next ones (`codea1_env.evaluation.running`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from codea1_env.evaluation.programs.judging import (
    CodeVerdict,
    PendingVerdict,
    ReferenceRun,
    accept,
    exclude,
    submit_program,
    submit_reference,
)
from codea1_env.evaluation.result_folder import ResultFolder
from codea1_env.evaluation.running import (
    AgentOf,
    EvaluationPlan,
    check_problems,
    generate,
    given,
    judge,
)
from codea1_env.evaluation.samples import ProgramSample, sample_row
from codea1_env.judging.programs import whole_program
from codea1_env.problems import Problem
from codea1_env.responses import parse_programs
from codea1_env.rollout import ask
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import observe

Watch = Callable[[ProgramSample, CodeVerdict], None]
"""Told of every verdict, in order; also of those that were known before a resume."""


class CodeEvaluation:
    """One evaluation in one folder.

    Args:
        problems: The problem set.
        sandbox: Where programs are judged.
        folder: Where everything is kept.
        stop: Whether to stop as soon as the running programs are judged.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        sandbox: Sandbox,
        folder: ResultFolder,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.problems = {problem.task_id: problem for problem in problems}
        self._sandbox = sandbox
        self._folder = folder
        self._stop = stop
        self.references: dict[str, ReferenceRun] = {}
        self._judged: dict[tuple[str, str], PendingVerdict[CodeVerdict]] = {}

    def run_references(self, watch: Callable[[], None] = lambda: None) -> dict[str, ReferenceRun]:
        """Run the references on their own tests; `watch` is called after each.

        Raises:
            Stopped: It was asked to stop.
        """
        self.references = check_problems(
            self.problems.values(),
            self._folder,
            lambda problem: submit_reference(problem, self._sandbox),
            lambda _, run: run.row(),
            lambda row: ReferenceRun(**row),
            watch,
            self._stop,
        )
        return self.references

    def judge_file(self, samples: Sequence[ProgramSample], watch: Watch) -> None:
        """Judge programs made elsewhere.

        Raises:
            Stopped: It was asked to stop.
        """
        batches = given(samples, self._folder)
        judge(batches, self._folder, self._submit, verdict_row, _read_verdict, watch, self._stop)

    def judge_agent(self, coder: AgentOf, plan: EvaluationPlan, watch: Watch) -> None:
        """Let an agent write programs, and judge them.

        Raises:
            Stopped: It was asked to stop.
        """

        def write(batch: Sequence[Problem], seed: int) -> list[Mapping[str, Any]]:
            answers = ask(coder(seed), "coder", [observe(problem) for problem in batch])
            asked = [(a, problem.entry_point) for a, problem in zip(answers, batch, strict=True)]
            programs = parse_programs(asked, self._sandbox)
            return [
                sample_row(problem, _sample_code(problem, program.code), answer)
                for problem, program, answer in zip(batch, programs, answers, strict=True)
            ]

        # Also for problems that cannot be used here: evalplus wants samples for all.
        problems = list(self.problems.values())
        batches = generate(problems, plan, self._folder, write, _sample, self._stop)
        judge(batches, self._folder, self._submit, verdict_row, _read_verdict, watch, self._stop)

    def _submit(self, sample: ProgramSample) -> PendingVerdict[CodeVerdict]:
        problem, run = self.problems[sample.task_id], self.references[sample.task_id]
        if run.fault:
            return exclude(problem, run.fault)
        if problem.reference and sample.code == problem.reference:
            return accept(problem)
        key = (sample.task_id, sample.code)
        if key not in self._judged:  # equal programs are judged once
            self._judged[key] = submit_program(problem, sample.code, run.time_limit, self._sandbox)
        return self._judged[key]


def verdict_row(sample: ProgramSample, verdict: CodeVerdict) -> dict[str, Any]:
    """A row of verdicts.jsonl."""
    row = {"task_id": sample.task_id, "sample": sample.index, "outcome": verdict.outcome}
    base = {} if verdict.base is None else {"base": verdict.base}
    return row | base | {"message": verdict.message}


def _read_verdict(row: Mapping[str, Any]) -> CodeVerdict:
    return CodeVerdict(row["outcome"], row["message"], row.get("base"))


def _sample_code(problem: Problem, program: str) -> str:
    # What a preamble gives is put before every program when it is judged, also before samples from elsewhere.
    return program if problem.preamble else whole_program(problem, program)


def _sample(problem: Problem, index: int, row: Mapping[str, Any]) -> ProgramSample:
    return ProgramSample(problem.task_id, index, row["solution"], row)
