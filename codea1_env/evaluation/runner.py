"""Runs any evaluation in its folder: checks, samples batch by batch, verdicts in order.

What is done is written at once, in the order of the samples, so that a killed evaluation goes on where it was and ends
with the same bytes.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from types import NoneType
from typing import Any, Generic, TypeVar

import numpy as np

from codea1_env.evaluation.samples import evalplus_id
from codea1_env.evaluation.task import (
    OF_SAMPLE,
    Evaluation,
    EvaluationError,
    Question,
    S,
    V,
    row_of,
)
from codea1_env.rendering.display import counted
from codea1_env.rollout import Agent
from codea1_env.support.jobs import EVALUATION, FolderError, Jobs

REPORT = "report.json"
REFERENCES, SAMPLES, VERDICTS = "references.jsonl", "samples.jsonl", "verdicts.jsonl"
USAGE, SELECTION = "usage.jsonl", "selection.jsonl"

AgentOf = Callable[[int], Agent]
"""Seed -> the player that answers one batch. Its answers depend on nothing else, so that a killed evaluation
can go on at any batch."""
Asking = Callable[[int], AbstractContextManager[None]]
"""Number of answers -> what is around the time in which a player writes them."""
Watch = Callable[[Any, Any], None]
"""Told of every sample and its verdict, in order; also of those that were known before a resume."""

_POLL = 0.2
_QUIET = 10.0
"""Seconds without a verdict after which it is said that work goes on."""
_T = TypeVar("_T")
_R = TypeVar("_R")


class Stopped(Exception):  # noqa: N818  not an error
    """The evaluation was asked to stop. What is done is kept."""


@dataclass(frozen=True)
class EvaluationPlan:
    """How many samples an agent is asked for."""

    num_samples: int
    """Samples per problem: programs, or suites of tests."""
    batch_size: int
    seed: int

    def seed_of(self, batch: int) -> int:
        """Return the seed of a batch."""
        return int(np.random.SeedSequence([self.seed, batch]).generate_state(1)[0])


class EvaluationRun(Generic[S, V]):
    """One evaluation in one folder; it has loaded its problems, and has a sandbox.

    It ends with `Stopped` where `stop` says so: it closes the sandbox, so that samples at work are broken off, which
    have no verdict then. The number of `threads` has no influence on the results. `say` hears that work goes on where
    there is no verdict for ten seconds.
    """

    def __init__(
        self,
        evaluation: Evaluation[S, V],
        folder: Jobs,
        stop: Callable[[], bool] = lambda: False,
        threads: int = 2,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._evaluation, self._folder = evaluation, folder
        self._stop, self._threads, self._say = stop, threads, say
        self._known = 0
        self._known_since = self._said = time.monotonic()

    def check(
        self, watch: Callable[[], None] = lambda: None, tasks: Collection[str] | None = None
    ) -> None:
        """Check these problems, or all, as far as the folder says nothing about them; `watch` is told of each."""
        own = self._evaluation

        def checked(row: Mapping[str, Any]) -> tuple[str, Any]:
            return row["task_id"], own.check_type.of(row)

        def record(task: str, found: Any) -> None:
            if not found.unjudged:
                self._folder.append(REFERENCES, [found.row()])
            own.checks[task] = found
            watch()

        for task, found in self._folder.done(REFERENCES, checked).items():
            own.checks[task] = found
            watch()
        tasks = own.problems.keys() if tasks is None else tasks
        left = [task for task in tasks if task not in own.checks]
        self._keep(VERDICTS, lambda row, _: row["task_id"] not in left)  # of unjudged references
        self._work(left, lambda task: own.check(own.problems[task]), record, str)
        faults = own.faults()
        if faults and faults.keys() >= set(tasks):
            raise EvaluationError(
                f"expect problems that can be used, actually none can: {next(iter(faults.values()))}"
            )

    def judge_file(self, samples: Sequence[Any], watch: Watch) -> None:
        """Judge samples made elsewhere; they are copied to the folder."""
        known = len(self._folder.rows(SAMPLES))
        self._folder.append(SAMPLES, (sample.row for sample in samples[known:]))
        self._judge(iter(samples), watch)

    def judge_agent(
        self,
        agent: AgentOf,
        plan: EvaluationPlan,
        watch: Watch,
        asking: Asking = lambda number: nullcontext(),
    ) -> None:
        """Let an agent write samples, and judge them while the next ones are being written."""
        questions = self._evaluation.questions(plan.num_samples)
        names = [(each.problem.task_id, evalplus_id(each.problem), None) for each in questions]
        # Problems whose reference was unjudged were not asked about: what follows was of other questions.
        kept = self._keep(SAMPLES, lambda row, i: i >= len(names) or row.get("task_id") in names[i])
        self._keep(VERDICTS, lambda _, i: kept is None or i < kept)
        self._judge(self._written(agent, questions, plan, asking), watch)

    def _keep(self, name: str, fits: Callable[[Mapping[str, Any], int], bool]) -> int | None:
        """Keep the rows of a log before the first that does not fit; returns their number if there is one."""
        for number, row in enumerate(self._folder.rows(name)):
            if not fits(row, number):
                self._folder.truncate(name, number)
                return number
        return None

    def _written(
        self, agent: AgentOf, questions: Sequence[Question], plan: EvaluationPlan, asking: Asking
    ) -> Iterator[Any]:
        """Yield the samples; those that the folder has come first."""
        own, folder, size = self._evaluation, self._folder, plan.batch_size
        rows: Sequence[Mapping[str, Any]] = folder.rows(SAMPLES)
        if len(rows) < len(questions):  # half a batch is asked for again
            rows = folder.truncate(SAMPLES, len(rows) - len(rows) % size)
        # A row is written before the samples of its batch.
        self._keep(USAGE, lambda row, _: row["batch"] * size < len(rows))
        yield from map(own.read, questions, rows)
        for start in range(len(rows), len(questions), size):
            if self._stop():
                raise Stopped
            batch, number = questions[start : start + size], start // size
            player = agent(plan.seed_of(number))
            with asking(len(batch)):
                rows = own.write(player, batch)
            if (take := getattr(player, "take_usage", None)) is not None:
                used = take()  # what the answers since the last call took
                counts = {name: getattr(used, name) for name in USED}
                folder.append(USAGE, [{"batch": number, **counts}])
            folder.append(SAMPLES, rows)
            yield from map(own.read, batch, rows)

    def _judge(self, samples: Iterator[Any], watch: Watch) -> None:
        """Judge samples that have no verdict yet, and tell `watch` of all verdicts, in the order of the samples."""

        def record(sample: S, verdict: V) -> None:
            row = {"task_id": sample.task_id, "sample": sample.index, **row_of(verdict)}
            self._folder.append(VERDICTS, [row])
            watch(sample, verdict)

        for row, sample in zip(self._folder.rows(VERDICTS), samples, strict=False):
            watch(sample, self._read_verdict(row, sample))
        self._work(samples, self._judged, record, self._evaluation.key)

    def _work(
        self,
        items: Iterable[_T],
        work: Callable[[_T], _R],
        record: Callable[[_T, _R], None],
        key: Callable[[_T], Hashable],
    ) -> None:
        """Work on items in threads, of equal ones on one, and record the results in the order of the items."""
        begun: dict[Hashable, Future[_R]] = {}
        waiting: deque[tuple[_T, Future[_R]]] = deque()

        def record_next() -> None:
            item, job = waiting.popleft()
            record(item, self._wait(job))

        with ThreadPoolExecutor(self._threads, "judge") as threads:
            try:
                for item in items:
                    if key(item) not in begun:
                        begun[key(item)] = threads.submit(work, item)
                    waiting.append((item, begun[key(item)]))
                    while waiting and waiting[0][1].done():
                        record_next()
                while waiting:
                    record_next()
            except Stopped:
                self._evaluation.sandbox.close()
                raise
            finally:
                for job in begun.values():
                    job.cancel()

    def _wait(self, job: Future[_R]) -> _R:
        """Return the job's result; looks up now and then, so that a request to stop is heard."""
        while not self._stop():  # afterwards a result may come of a sandbox that was closed
            with suppress(TimeoutError):
                return job.result(_POLL)
            self._say_at_work()
        raise Stopped

    def _say_at_work(self) -> None:
        own, now = self._evaluation, time.monotonic()
        if (known := own.total + len(own.checks)) != self._known:
            self._known, self._known_since, self._said = known, now, now
        elif now - self._said >= _QUIET:
            self._said = now
            self._say(
                f"no new verdict for {now - self._known_since:.0f} s; {own.sandbox.runs} runs of programs so far"
            )

    def _read_verdict(self, row: Mapping[str, Any], sample: S) -> V:
        if (row.get("task_id"), row.get("sample")) != (sample.task_id, sample.index):
            raise FolderError(
                f"Expect {VERDICTS} to go on with {sample.task_id}, sample {sample.index}, actually: "
                f"{row.get('task_id')}, sample {row.get('sample')}. The files were changed; begin in a new folder."
            )
        found: Any = {key: value for key, value in row.items() if key not in OF_SAMPLE}
        if (kind := self._evaluation.verdict_type) is not None:
            found = kind.of(found)
        return found  # type: ignore[no-any-return]

    def _judged(self, sample: S) -> V:
        own = self._evaluation
        place = f"sample {sample.index} of {sample.task_id}"
        try:
            verdict: Any = own.judge(own.problems[sample.task_id], sample)
        except Exception as error:
            error.add_note(f"{type(own).__name__} judged {place}.")
            raise
        found: V = _plain(verdict, place) if own.verdict_type is None else verdict
        return found


def _plain(verdict: Any, place: str) -> Any:
    """Return a verdict of somebody's own evaluation as JSON has it: numbers of numpy become Python's."""
    if not isinstance(verdict, Mapping):
        raise EvaluationError(
            f"expect judge to return a mapping of names to values, actually, for {place}: {_shown(verdict)}"
        )
    plain = {name: _number(value) for name, value in verdict.items()}
    for name, value in plain.items():
        odd = not isinstance(name, str) or name in OF_SAMPLE
        odd |= not isinstance(value, (bool, int, float, str, NoneType))
        if odd or (isinstance(value, float) and not math.isfinite(value)):
            raise EvaluationError(
                f"expect judge to return finite numbers, flags, texts and None under names other than "
                f"{', '.join(OF_SAMPLE)}, actually, for {place}: {name!r:.100}: {_shown(value)}"
            )
    return plain


def _number(value: Any) -> Any:
    try:
        return value.item() if hasattr(value, "item") else value
    except (ValueError, RuntimeError, TypeError):  # an array has several
        return value


def _shown(value: Any) -> str:
    return " ".join(repr(value).split())[:100]


USED = ("answers", "untold", "prompt_tokens", "completion_tokens", "truncated")
"""What a row of usage.jsonl counts of a batch of answers."""


def build_report(
    evaluation: Evaluation[Any, Any], settings: Mapping[str, Any], unknown: Mapping[str, int]
) -> dict[str, Any]:
    """All that is known at the end. Equal verdicts give equal reports."""
    own = evaluation
    left = own.problems.keys() - own.faults().keys() - own.verdicts.keys()
    return {
        "version": EVALUATION.version,
        **({"kind": own.kind} if own.kind else {}),
        "settings": dict(settings),
        **own.summary(),
        "excluded": own.faults(),
        "missing": [task for task in own.problems if task in left],
        "unknown": dict(unknown),
        "results": {
            task: {**own.result(task), "digest": own.digest(own.problems[task])}
            for task in own.scored
        },
    }


def usage_of(folder: Jobs) -> dict[str, int] | None:
    """All that answers took, as report.json has it; None if no player said so."""
    rows = folder.rows(USAGE)
    return {name: sum(row[name] for row in rows) for name in USED} if rows else None


def usage_lines(report: Mapping[str, Any]) -> list[str]:
    """Return the same in words."""
    used = report.get("usage")
    if not used:
        return []
    answers, untold, tokens = used["answers"], used["untold"], used["completion_tokens"]
    if answers == untold:
        return [f"Tokens: the server told none of its {answers} answers"]
    of = f", without {counted(untold, 'answers')} that the server told none of" if untold else ""
    return [
        f"Tokens of {counted(answers, 'answers')}: {used['prompt_tokens']} of prompts, {tokens} of answers, "
        f"{tokens / (answers - untold):.0f} each{of}; {counted(used['truncated'], 'answers')} cut off"
    ]
