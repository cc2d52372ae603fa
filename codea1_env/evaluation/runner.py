"""Runs any evaluation in its folder: checks, batch by batch samples, verdicts in order; what is done is kept."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import NoneType
from typing import Any, Generic

from codea1_env.evaluation.groups import own_fields
from codea1_env.evaluation.result_folder import SAMPLES, ResultFolder
from codea1_env.evaluation.running import (
    AgentOf,
    EvaluationPlan,
    check_problems,
    generate,
    given,
    judge,
)
from codea1_env.evaluation.task import OF_SAMPLE, Evaluation, EvaluationError, Question, S, V
from codea1_env.evaluation.usage import UsageLog

Watch = Callable[[Any, Any], None]
"""Told of every sample and its verdict, in order; also of those that were known before a resume."""


def plain_verdict(verdict: Any, place: str) -> Any:
    """A verdict as JSON has it: numbers of numpy become Python's.

    Args:
        verdict: What an evaluation of somebody's own gave.
        place: Of which sample, for messages.

    Raises:
        EvaluationError: It is no mapping of names to numbers, flags, texts and None, or a number is not finite.
    """
    if not isinstance(verdict, Mapping):
        raise EvaluationError(
            f"expect judge to return a mapping of names to values, actually, for {place}: {verdict!r:.100}"
        )
    plain = {name: getattr(value, "item", lambda it=value: it)() for name, value in verdict.items()}
    if taken := plain.keys() & set(OF_SAMPLE):
        raise EvaluationError(
            f"expect judge to return other names than {', '.join(OF_SAMPLE)}, actually, for {place}: {min(taken)!r}"
        )
    for name, value in plain.items():
        odd = not isinstance(value, (bool, int, float, str, NoneType)) or not isinstance(name, str)
        if odd or (isinstance(value, float) and not math.isfinite(value)):
            raise EvaluationError(
                f"expect judge to return finite numbers, flags, texts and None under names, actually, for {place}: "
                f"{name!r:.100}: {value!r:.100}. None stands for what there is no value of."
            )
    return plain


class EvaluationRun(Generic[S, V]):
    """One evaluation in one folder.

    Args:
        evaluation: What is evaluated; it has loaded its problems, and has a sandbox.
        folder: Where everything is kept.
        stop: Whether to stop as soon as what is being judged is done.
        threads: Samples that are judged at the same time. Has no influence on the results.
    """

    def __init__(
        self,
        evaluation: Evaluation[S, V],
        folder: ResultFolder,
        stop: Callable[[], bool] = lambda: False,
        threads: int = 2,
    ) -> None:
        self._evaluation = evaluation
        self._folder = folder
        self._stop = stop
        self._threads = threads

    def check(self, watch: Callable[[], None] = lambda: None) -> None:
        """Look at every problem; `watch` is called after each.

        Raises:
            Stopped: It was asked to stop.
            EvaluationError: No problem can be used.
        """
        own = self._evaluation
        with ThreadPoolExecutor(self._threads, "check") as threads:
            own.checks = check_problems(
                own.problems.values(),
                self._folder,
                lambda problem: threads.submit(own.check, problem),
                lambda _, found: found.row(),
                own.check_type.of,
                watch,
                self._stop,
            )
        faults = own.faults()
        if faults and len(faults) == len(own.problems):
            raise EvaluationError(
                f"expect problems {own.usable}, actually none does: {next(iter(faults.values()))}"
            )

    def judge_file(self, samples: Sequence[Any], watch: Watch) -> None:
        """Judge samples made elsewhere.

        Raises:
            Stopped: It was asked to stop.
        """
        counts = Counter(sample.task_id for sample in samples)
        self._judge(given(samples, self._folder), counts, watch)

    def judge_agent(self, agent: AgentOf, plan: EvaluationPlan, watch: Watch) -> None:
        """Let an agent write samples, and judge them.

        Raises:
            Stopped: It was asked to stop.
        """
        own = self._evaluation

        questions = own.questions(plan.num_samples)
        known, size = len(self._folder.rows(SAMPLES)), plan.batch_size
        usage = UsageLog(
            self._folder, known // size if known < len(questions) else -(-known // size)
        )

        def write(batch: Sequence[Question], seed: int) -> list[Mapping[str, Any]]:
            player = agent(seed)
            written = own.write(player, batch)
            usage.add(player)
            return written

        each_once = dataclasses.replace(plan, num_samples=1)
        counts = Counter(each.problem.task_id for each in questions)
        batches = generate(
            questions,
            each_once,
            self._folder,
            write,
            lambda q, _, row: own.read(q, row),
            self._stop,
        )
        self._judge(batches, counts, watch)

    def _judged(self, sample: S) -> V:
        own = self._evaluation
        place = f"sample {sample.index} of {sample.task_id}"
        try:
            verdict: Any = own.judge(own.problems[sample.task_id], sample)
        except Exception as error:
            error.add_note(f"This was {type(own).__name__}.judge on {place}.")
            raise
        plain = own.verdict_type is None and type(own).row_of is Evaluation.row_of
        found: V = plain_verdict(verdict, place) if plain else verdict
        return found

    def _judge(
        self, batches: Iterator[Sequence[Any]], counts: Mapping[str, int], watch: Watch
    ) -> None:
        own = self._evaluation
        judged: dict[Hashable, Future[V]] = {}
        with ThreadPoolExecutor(self._threads, "judge") as threads:

            def submit(sample: S) -> Future[V]:
                key = own.key(sample)
                if key not in judged:  # equal samples are judged once
                    judged[key] = threads.submit(self._judged, sample)
                return judged[key]

            judge(
                own.group(batches, counts),
                self._folder,
                submit,
                lambda sample, verdict: {
                    "task_id": sample.task_id,
                    "sample": sample.index,
                    **({"fields": fields} if (fields := own_fields(sample.row)) else {}),
                    **own.row_of(verdict),
                },
                own.verdict_of,
                watch,
                self._stop,
            )
