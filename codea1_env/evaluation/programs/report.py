"""Figures of an evaluation of programs, from verdicts."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from codea1_env.evaluation.pass_at_k import Count, mean_over_problems, mean_pass_at_k
from codea1_env.evaluation.programs.judging import EXCLUDED, CodeVerdict, ReferenceRun, has_base
from codea1_env.evaluation.result_folder import VERSION
from codea1_env.evaluation.samples import ProgramSample, digest
from codea1_env.evaluation.statistics import Estimate
from codea1_env.problems import Problem

DEFAULT_K = (1, 5, 10)


class TooFewSamplesError(ValueError):
    """pass@k was asked for with k above the number of samples."""


@dataclass
class OutcomeTally:
    """Counts verdicts as they come."""

    samples: Counter[str] = field(default_factory=Counter)
    """Task -> programs, of problems that can be used."""
    passed: Counter[str] = field(default_factory=Counter)
    """Task -> programs that pass all tests."""
    base: Counter[str] = field(default_factory=Counter)
    """Task -> programs that pass the base tests."""
    outcomes: Counter[str] = field(default_factory=Counter)
    repeated: int = 0
    """Programs that an earlier sample of the same problem has word for word."""
    _seen: set[tuple[str, str]] = field(default_factory=set)

    def add(self, sample: ProgramSample, verdict: CodeVerdict) -> None:
        """Count one verdict."""
        self.outcomes[verdict.outcome] += 1
        if verdict.outcome == EXCLUDED:
            return
        self.samples[sample.task_id] += 1
        self.passed[sample.task_id] += verdict.passed
        self.base[sample.task_id] += bool(verdict.base)
        key = (sample.task_id, sample.code)
        self.repeated += key in self._seen
        self._seen.add(key)

    @property
    def total(self) -> int:
        """Programs counted so far."""
        return sum(self.outcomes.values())

    def estimate(self) -> Estimate | None:
        """pass@1 of the problems that were reached so far, with its interval; None if there is none yet."""
        if not self.samples:
            return None
        return mean_over_problems([self.passed[task] / n for task, n in self.samples.items()])


def check_k(k: Sequence[int] | None, samples: Mapping[str, int]) -> tuple[int, ...]:
    """The k of pass@k that these numbers of samples allow.

    Args:
        k: What was asked for; None for those of `DEFAULT_K` that are possible.
        samples: Problem -> its samples.

    Raises:
        TooFewSamplesError: A problem has fewer samples than a k that was asked for, or k is below 1.

    Example:
        >>> check_k(None, {"a": 7, "b": 6})
        (1, 5)
    """
    fewest = min(samples, key=lambda name: samples[name])
    if k is None:
        return tuple(each for each in DEFAULT_K if each <= samples[fewest])
    for each in k:
        if not 1 <= each <= samples[fewest]:
            raise TooFewSamplesError(
                f"Expect every k to be between 1 and the number of samples, actually: k={each}, and {fewest} has "
                f"{samples[fewest]}. Ask for a smaller k, or for more samples."
            )
    return tuple(sorted(set(k)))


def build_report(
    settings: Mapping[str, Any],
    problems: Sequence[Problem],
    references: Mapping[str, ReferenceRun],
    tally: OutcomeTally,
    k: Sequence[int] | None,
    unknown: Mapping[str, int],
) -> dict[str, Any]:
    """All that is known at the end, as report.json has it. Equal verdicts give equal reports.

    Args:
        settings: How the programs were made and judged.
        problems: The problem set.
        references: Task -> what its reference did.
        tally: The verdicts.
        k: See `check_k`.
        unknown: Tasks of the samples that the problem set has not.

    Raises:
        TooFewSamplesError: See `check_k`.
    """
    usable = [problem for problem in problems if not references[problem.task_id].fault]
    scored = [problem for problem in usable if tally.samples[problem.task_id]]
    numbers = {problem.task_id: tally.samples[problem.task_id] for problem in scored}
    ks = check_k(k, numbers) if scored else ()
    kinds = {"all": tally.passed}
    if scored and all(map(has_base, scored)):
        kinds["base"] = tally.base
    return {
        "version": VERSION,
        "settings": dict(settings),
        "problems": len(problems),
        "scored": len(scored),
        "samples": tally.total,
        "figures": {
            kind: _figures([Count(n, correct[task]) for task, n in numbers.items()], ks)
            for kind, correct in kinds.items()
        },
        "outcomes": dict(sorted(tally.outcomes.items())),
        "repeated": tally.repeated,
        "excluded": {p.task_id: r.fault for p in problems if (r := references[p.task_id]).fault},
        "missing": [p.task_id for p in usable if not tally.samples[p.task_id]],
        "unknown": dict(unknown),
        "results": {
            problem.task_id: {
                "samples": numbers[problem.task_id],
                **{
                    "passed" if kind == "all" else kind: correct[problem.task_id]
                    for kind, correct in kinds.items()
                },
                "digest": digest(problem),
            }
            for problem in scored
        },
    }


def _figures(counts: Sequence[Count], ks: Sequence[int]) -> dict[str, dict[str, float]]:
    figures = {f"pass@{k}": mean_pass_at_k(counts, k) for k in ks}
    numbers = {count.samples for count in counts}
    if len(numbers) == 1 and numbers != {1}:
        figures[f"avg@{numbers.pop()}"] = mean_over_problems(
            [count.correct / count.samples for count in counts]
        )
    return {name: dataclasses.asdict(figure) for name, figure in figures.items()}
