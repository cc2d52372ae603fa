"""What evaluations of programs and of tests do alike: ask for samples batch by batch, judge, write in order.

What is done is written at once, in the order of the samples, so that a killed evaluation goes on where it was
and ends with the same bytes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from codea1_env.evaluation.result_folder import (
    REFERENCES,
    SAMPLES,
    VERDICTS,
    FolderError,
    ResultFolder,
)
from codea1_env.problems import Problem
from codea1_env.rollout import Agent

AgentOf = Callable[[int], Agent]
"""Seed -> the player that answers one batch. Its answers depend on nothing else, so that a killed evaluation
can go on at any batch."""

_POLL = 0.2
_T = TypeVar("_T")


class Stopped(Exception):  # noqa: N818  not an error
    """The evaluation was asked to stop. What is done is kept."""


@dataclass(frozen=True)
class EvaluationPlan:
    """How many samples an agent is asked for."""

    num_samples: int
    """Samples per problem: programs, or suites of tests."""
    batch_size: int
    """Samples that the agent is asked for at a time."""
    seed: int


class Numbered(Protocol):
    """What every sample has."""

    @property
    def task_id(self) -> str:
        """Its problem."""
        ...

    @property
    def index(self) -> int:
        """Number among the samples of its problem, from 0."""
        ...

    @property
    def row(self) -> Mapping[str, Any]:
        """As samples.jsonl has it."""
        ...


C = TypeVar("C")
P = TypeVar("P")
S = TypeVar("S", bound=Numbered)
V = TypeVar("V")


def check_problems(
    problems: Iterable[Problem],
    folder: ResultFolder,
    submit: Callable[[Problem], Future[C]],
    to_row: Callable[[Problem, C], Mapping[str, Any]],
    from_row: Callable[[Mapping[str, Any]], C],
    watch: Callable[[], None],
    stop: Callable[[], bool],
) -> dict[str, C]:
    """Find out what must be known of each problem before anything is judged.

    Args:
        problems: The problem set.
        folder: Where references.jsonl is kept. What has a row there is not looked at again.
        submit: Starts to look at a problem.
        to_row: Problem and what was found -> its row, with `task_id`.
        from_row: What a row says.
        watch: Called after each problem; also for those that were known before.
        stop: Whether to stop.

    Returns:
        Task -> what was found.

    Raises:
        Stopped: It was asked to stop.
    """
    found: dict[str, C] = {}
    for row in folder.rows(REFERENCES):
        found[row["task_id"]] = from_row(row)
        watch()
    left = [problem for problem in problems if problem.task_id not in found]
    jobs = [submit(problem) for problem in left]
    try:
        for problem, job in zip(left, jobs, strict=True):
            result = wait(job, stop)
            folder.append(REFERENCES, [to_row(problem, result)])
            found[problem.task_id] = result
            watch()
    finally:
        for job in jobs:
            job.cancel()
    return found


def generate(
    problems: Sequence[P],
    plan: EvaluationPlan,
    folder: ResultFolder,
    write: Callable[[Sequence[P], int], Sequence[Mapping[str, Any]]],
    read: Callable[[P, int, Mapping[str, Any]], S],
    stop: Callable[[], bool],
) -> Iterator[Sequence[S]]:
    """Ask for samples, batch by batch; those that the folder has come first.

    Args:
        problems: What is asked about: the problem set, or problems with what is shown of each.
        plan: How many samples.
        folder: Where samples.jsonl is kept.
        write: Problems of a batch and its seed -> the rows of their samples.
        read: Problem, number and row -> the sample.
        stop: Whether to stop.

    Raises:
        Stopped: It was asked to stop.
    """
    asked = [(problem, i) for problem in problems for i in range(plan.num_samples)]
    rows = folder.rows(SAMPLES)
    if len(rows) < len(asked):  # half a batch is asked for again
        rows = folder.truncate(SAMPLES, len(rows) - len(rows) % plan.batch_size)
    yield [read(problem, i, row) for (problem, i), row in zip(asked, rows, strict=False)]
    for start in range(len(rows), len(asked), plan.batch_size):
        if stop():
            raise Stopped
        batch = asked[start : start + plan.batch_size]
        written = write(
            [problem for problem, _ in batch], _seed(plan.seed, start // plan.batch_size)
        )
        folder.append(SAMPLES, written)
        yield [read(problem, i, row) for (problem, i), row in zip(batch, written, strict=True)]


def given(samples: Sequence[S], folder: ResultFolder) -> Iterator[Sequence[S]]:
    """Samples made elsewhere, as one batch; they are copied to the folder."""
    known = len(folder.rows(SAMPLES))
    folder.append(SAMPLES, (sample.row for sample in samples[known:]))
    yield samples


def judge(
    batches: Iterable[Sequence[S]],
    folder: ResultFolder,
    submit: Callable[[S], Future[V]],
    to_row: Callable[[S, V], Mapping[str, Any]],
    from_row: Callable[[Mapping[str, Any]], V],
    watch: Callable[[S, V], None],
    stop: Callable[[], bool],
) -> None:
    """Judge samples, while the next ones are being written.

    Args:
        batches: The samples.
        folder: Where verdicts.jsonl is kept. What has a verdict there is not judged again.
        submit: Starts to judge a sample.
        to_row: The row of a verdict.
        from_row: The verdict of a row.
        watch: Told of every verdict, in order; also of those that were known before.
        stop: Whether to stop.

    Raises:
        Stopped: It was asked to stop.
        FolderError: The folder has verdicts on other samples.
    """
    done = folder.rows(VERDICTS)
    recorder = _Recorder(folder, to_row, watch)
    try:
        for position, sample in enumerate(itertools.chain.from_iterable(batches)):
            if position < len(done):
                _check_row(done[position], sample)
                watch(sample, from_row(done[position]))
            else:
                recorder.add(sample, submit(sample))
        recorder.wait(stop)
    finally:
        recorder.close()


class _Recorder(Generic[S, V]):
    """Writes verdicts in the order of the samples as soon as they are there, in a thread of its own."""

    def __init__(
        self,
        folder: ResultFolder,
        to_row: Callable[[S, V], Mapping[str, Any]],
        watch: Callable[[S, V], None],
    ) -> None:
        self._folder = folder
        self._to_row = to_row
        self._watch = watch
        self._thread = ThreadPoolExecutor(1, "recorder")
        self._written: list[Future[None]] = []
        self._pending: list[Future[V]] = []
        self._error: BaseException | None = None

    def add(self, sample: S, pending: Future[V]) -> None:
        """Write the verdict on a sample once it is known and all before it are written."""
        if self._error is not None:
            raise self._error
        self._pending.append(pending)
        self._written.append(self._thread.submit(self._record, sample, pending))

    def wait(self, stop: Callable[[], bool]) -> None:
        """Wait until all is written, or until asked to stop."""
        for written in self._written:
            wait(written, stop)

    def close(self) -> None:
        """Cancel what has not begun, and write what has."""
        for pending in self._pending:
            pending.cancel()
        self._thread.shutdown(wait=True)

    def _record(self, sample: S, pending: Future[V]) -> None:
        if self._error is not None:
            return  # a gap would put later verdicts in wrong places
        try:
            verdict = pending.result()
            self._folder.append(VERDICTS, [self._to_row(sample, verdict)])
            self._watch(sample, verdict)
        except BaseException as error:
            self._error = error
            raise


def wait(job: Future[_T], stop: Callable[[], bool]) -> _T:
    """The job's result; looks up now and then, so that a request to stop is heard.

    Raises:
        Stopped: It was asked to stop.
    """
    while not stop():
        with suppress(TimeoutError):
            return job.result(_POLL)
    raise Stopped


def _check_row(row: Mapping[str, Any], sample: Numbered) -> None:
    if (row.get("task_id"), row.get("sample")) != (sample.task_id, sample.index):
        raise FolderError(
            f"Expect {VERDICTS} to go on with {sample.task_id}, sample {sample.index}, actually: "
            f"{row.get('task_id')}, sample {row.get('sample')}. The files were changed; begin in a new folder."
        )


def _seed(seed: int, batch: int) -> int:
    return int(np.random.SeedSequence([seed, batch]).generate_state(1)[0])
