"""Which orderings hold in the table of a benchmark: those of the paper, and those that its argument needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from codea1_env.baselines.bench.run_result import UNSEEN_PREFIX
from codea1_env.baselines.bench.score_table import COPIER, MEASURES, START, Table
from codea1_env.evaluation.statistics import Estimate


@dataclass(frozen=True)
class Claim:
    """That one entry scores higher than another."""

    measure: str
    better: str
    worse: str
    says: str


CLAIMS = (
    Claim("pass_rate", "code-a1", "golden-tests", "Code-A1 trains a better coder than golden tests"),
    Claim("pass_rate", "golden-tests", "self-play", "golden tests train a better coder than self-play"),
    Claim("pass_rate", "code-a1", "self-play", "Code-A1 trains a better coder than self-play"),
    Claim("pass_rate", "self-play", START, "self-play trains a better coder than none"),
    Claim("kill_rate", "code-a1", COPIER, "Code-A1 trains a better tester than one that copies"),
    Claim("new_kill_rate", "code-a1", START, "Code-A1 trains testers to find what copies do not"),
    Claim("kill_rate", "code-a1", "sft", "Code-A1 trains a better tester than imitation"),
    Claim("kill_rate", "code-a1", "self-play", "Code-A1 trains a better tester than self-play"),
    Claim("kill_rate", "code-a1", "alpha=0", "alpha 0.5 is better for the tester than 0"),
    Claim("kill_rate", "code-a1", "alpha=0.25", "alpha 0.5 is better for the tester than 0.25"),
    Claim("kill_rate", "code-a1", "alpha=0.75", "alpha 0.5 is better for the tester than 0.75"),
    Claim("kill_rate", "code-a1", "alpha=1", "alpha 0.5 is better for the tester than 1"),
    Claim("past_pass_rate", "code-a1", "no-book", "the Mistake Book prevents forgetting"),
    Claim("forgetting", "no-book", "code-a1", "without the Mistake Book more is forgotten"),
    Claim("pass_rate", "code-a1", "code-a1-no-reference", "the reference is needed for the coder"),
    Claim("pass_rate", "self-play", "self-collusion", "the reference is needed in self-play"),
)  # fmt: skip
"""Orderings that the paper reports or that its argument rests on."""


def verdicts(table: Table) -> list[str]:
    """Say of each claim whether it holds: one line each; none for what was not run, or with one seed only.

    Tables of answers are judged problem by problem, as the probability that a run of the one scores higher. Problems of a
    language model rise and fall together, so that only whole runs count: the difference is paired by seed.

    Args:
        table: The scores.
    """
    if table.measures_unseen:
        return list(_of_differences(table))
    return list(_of_chances(table))


def _of_chances(table: Table) -> Iterator[str]:
    for claim in CLAIMS:
        chance = table.improvement(claim.better, claim.worse, claim.measure)
        if chance is not None:
            means = [
                f"{table.mean(name, claim.measure):.3f}" for name in (claim.better, claim.worse)
            ]
            numbers = f"means {means[0]} and {means[1]}, P = {chance}"
            yield f"- {_sentence(claim, claim.measure)}: {_holds(chance, 0.5)}; {numbers}."


def _of_differences(table: Table) -> Iterator[str]:
    for claim in CLAIMS:
        kinds = (UNSEEN_PREFIX, "") if claim.measure in MEASURES else ("",)
        for measure in (f"{kind}{claim.measure}" for kind in kinds):
            difference = table.difference(claim.better, claim.worse, measure)
            if difference is not None:
                yield f"- {_sentence(claim, measure)}: {_holds(difference, 0.0)}; difference {difference}."


def _sentence(claim: Claim, measure: str) -> str:
    what = claim.says[0].upper() + claim.says[1:]
    return f"{what} ({claim.better} over {claim.worse}, {measure})"


def _holds(estimate: Estimate, even: float) -> str:
    if estimate.low > even:
        return "**holds**"
    if estimate.high < even:
        return "**does not hold**: it is the other way round"
    return f"**cannot be told**: the interval includes {even:g}"
