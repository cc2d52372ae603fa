"""Evaluates programs on a problem set: what `codea1 eval code` does.

First the references run on their own tests, which finds problems that cannot be used and how long programs may
take. Then programs come, from a file or batch by batch from an agent, and the sandbox judges them while the
agent writes the next ones. What is done is written at once, in order, so that a killed evaluation goes on where
it was and ends with the same bytes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from codea1_env.evaluation.code_judging import (
    CodeVerdict,
    Pending,
    ReferenceRun,
    accept,
    exclude,
    reference_run,
    submit_program,
    submit_reference,
)
from codea1_env.evaluation.result_folder import (
    REFERENCES,
    SAMPLES,
    VERDICTS,
    FolderError,
    ResultFolder,
)
from codea1_env.evaluation.samples import Sample, sample_row, whole_program
from codea1_env.problems import Problem
from codea1_env.responses import parse_program
from codea1_env.rollout import Agent, ask
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import observe

CoderOf = Callable[[int], Agent]
"""Seed -> the coder that answers one batch. Its answers depend on nothing else, so that a killed evaluation
can go on at any batch."""

Watch = Callable[[Sample, CodeVerdict], None]
"""Told of every verdict, in order; also of those that were known before a resume."""

_POLL = 0.2
_T = TypeVar("_T")


class Stopped(Exception):  # noqa: N818  not an error
    """The evaluation was asked to stop. What is done is kept."""


@dataclass(frozen=True)
class Plan:
    """How many programs an agent is asked for."""

    num_samples: int
    """Programs per problem."""
    batch_size: int
    """Programs that the agent is asked for at a time."""
    seed: int


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
        self._judged: dict[tuple[str, str], Pending] = {}

    def run_references(self, watch: Callable[[], None] = lambda: None) -> dict[str, ReferenceRun]:
        """Run the references on their own tests; `watch` is called after each.

        Raises:
            Stopped: It was asked to stop.
        """
        for row in self._folder.rows(REFERENCES):
            self.references[row["task_id"]] = ReferenceRun(**row)
            watch()
        left = [each for each in self.problems.values() if each.task_id not in self.references]
        jobs = [submit_reference(problem, self._sandbox) for problem in left]
        try:
            for problem, job in zip(left, jobs, strict=True):
                run = reference_run(problem, _wait(job, self._stop))
                self._folder.append(REFERENCES, [run.row()])
                self.references[problem.task_id] = run
                watch()
        finally:
            for job in jobs:
                job.cancel()
        return self.references

    def judge_file(self, samples: Sequence[Sample], watch: Watch) -> None:
        """Judge programs made elsewhere.

        Raises:
            Stopped: It was asked to stop.
        """
        known = len(self._folder.rows(SAMPLES))
        self._folder.append(SAMPLES, (sample.row for sample in samples[known:]))
        self._judge(iter([samples]), watch)

    def judge_agent(self, coder: CoderOf, plan: Plan, watch: Watch) -> None:
        """Let an agent write programs, and judge them.

        Raises:
            Stopped: It was asked to stop.
        """
        self._judge(self._generate(coder, plan), watch)

    def _generate(self, coder: CoderOf, plan: Plan) -> Iterator[Sequence[Sample]]:
        # Also for problems that cannot be used here: evalplus wants samples for all.
        asked = [(p, i) for p in self.problems.values() for i in range(plan.num_samples)]
        rows = self._folder.rows(SAMPLES)
        if len(rows) < len(asked):  # half a batch is asked for again
            rows = self._folder.truncate(SAMPLES, len(rows) - len(rows) % plan.batch_size)
        yield [
            Sample(problem.task_id, i, row["solution"], row)
            for (problem, i), row in zip(asked, rows, strict=False)
        ]
        for start in range(len(rows), len(asked), plan.batch_size):
            if self._stop():
                raise Stopped
            batch = asked[start : start + plan.batch_size]
            agent = coder(_seed(plan.seed, start // plan.batch_size))
            answers = ask(agent, "coder", [observe(problem) for problem, _ in batch])
            samples = [
                _sample(problem, i, answer)
                for (problem, i), answer in zip(batch, answers, strict=True)
            ]
            self._folder.append(SAMPLES, (sample.row for sample in samples))
            yield samples

    def _judge(self, batches: Iterator[Sequence[Sample]], watch: Watch) -> None:
        done = self._folder.rows(VERDICTS)
        recorder = _Recorder(self._folder, watch)
        try:
            for position, sample in enumerate(itertools.chain.from_iterable(batches)):
                if position < len(done):
                    watch(sample, _read_verdict(done[position], sample))
                else:
                    recorder.add(sample, self._submit(sample))
            recorder.wait(self._stop)
        finally:
            recorder.close()

    def _submit(self, sample: Sample) -> Pending:
        problem, run = self.problems[sample.task_id], self.references[sample.task_id]
        if run.fault:
            return exclude(problem, run.fault)
        if sample.code == problem.reference:
            return accept(problem)
        key = (sample.task_id, sample.code)
        if key not in self._judged:  # equal programs are judged once
            self._judged[key] = submit_program(problem, sample.code, run.time_limit, self._sandbox)
        return self._judged[key]


class _Recorder:
    """Writes verdicts in the order of the samples as soon as they are there, in a thread of its own."""

    def __init__(self, folder: ResultFolder, watch: Watch) -> None:
        self._folder = folder
        self._watch = watch
        self._thread = ThreadPoolExecutor(1, "recorder")
        self._written: list[Future[None]] = []
        self._pending: list[Pending] = []
        self._error: BaseException | None = None

    def add(self, sample: Sample, pending: Pending) -> None:
        """Write the verdict on a sample once it is known and all before it are written."""
        if self._error is not None:
            raise self._error
        self._pending.append(pending)
        self._written.append(self._thread.submit(self._record, sample, pending))

    def wait(self, stop: Callable[[], bool]) -> None:
        """Wait until all is written, or until asked to stop."""
        for written in self._written:
            _wait(written, stop)

    def close(self) -> None:
        """Cancel what has not begun, and write what has."""
        for pending in self._pending:
            pending.cancel()
        self._thread.shutdown(wait=True)

    def _record(self, sample: Sample, pending: Pending) -> None:
        if self._error is not None:
            return  # a gap would put later verdicts in wrong places
        try:
            verdict = pending.result()
            self._folder.append(VERDICTS, [verdict_row(sample, verdict)])
            self._watch(sample, verdict)
        except BaseException as error:
            self._error = error
            raise


def verdict_row(sample: Sample, verdict: CodeVerdict) -> dict[str, Any]:
    """A row of verdicts.jsonl."""
    row = {"task_id": sample.task_id, "sample": sample.index, "outcome": verdict.outcome}
    base = {} if verdict.base is None else {"base": verdict.base}
    return row | base | {"message": verdict.message}


def _read_verdict(row: Mapping[str, Any], sample: Sample) -> CodeVerdict:
    if (row.get("task_id"), row.get("sample")) != (sample.task_id, sample.index):
        raise FolderError(
            f"Expect {VERDICTS} to go on with {sample.task_id}, sample {sample.index}, actually: "
            f"{row.get('task_id')}, sample {row.get('sample')}. The files were changed; begin in a new folder."
        )
    return CodeVerdict(row["outcome"], row["message"], row.get("base"))


def _sample(problem: Problem, index: int, answer: str) -> Sample:
    code = whole_program(problem, parse_program(answer, problem.entry_point).code)
    return Sample(problem.task_id, index, code, sample_row(problem, code, answer))


def _seed(seed: int, batch: int) -> int:
    return int(np.random.SeedSequence([seed, batch]).generate_state(1)[0])


def _wait(job: Future[_T], stop: Callable[[], bool]) -> _T:
    """The job's result; looks up now and then, so that a request to stop is heard."""
    while not stop():
        with suppress(TimeoutError):
            return job.result(_POLL)
    raise Stopped
