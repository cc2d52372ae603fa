"""Counts why tests are invalid, in a closed list of reasons: rows of metrics.jsonl always have all of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from codea1_env.judging.verdicts import NOT_MADE
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.referee import TestVerdict
from codea1_env.responses import Test
from codea1_env.rollout import RolloutEpisode


def slug(reason: InvalidReason) -> str:
    """A reason as a part of a metric's name.

    Example:
        >>> slug(InvalidReason.OUTSIDE_SIGNATURE)
        'outside_the_signature'
    """
    return re.sub(r"\W+", "_", reason.value)


TOO_MANY, NOT_ASKED, NO_LITERAL, OTHER = "too_many", "not_asked", "no_literal", "other"
"""Reasons of the game: the suite has more tests than are looked at; earlier ones cost the reference too much; the
reference returns what a test cannot state; and whatever is none of these."""
REASONS = (*map(slug, InvalidReason), TOO_MANY, NOT_ASKED, NO_LITERAL, OTHER)
"""All reasons."""

_BEGINNINGS = {
    "comes after the first ": TOO_MANY,
    NOT_MADE: NOT_ASKED,
    "predicts ": slug(InvalidReason.WRONG_VALUE),
    "the reference returns what ": NO_LITERAL,
    "raises on the reference: ModuleNotFoundError": slug(InvalidReason.NOT_INSTALLED),
    "raises on the reference": slug(InvalidReason.RAISES),
    "takes too long on the reference": slug(InvalidReason.TIMEOUT),
    "needs too much memory on the reference": slug(InvalidReason.LIMIT),
    "ends the process": slug(InvalidReason.LIMIT),
    "fails on the reference": slug(InvalidReason.LIMIT),
    "returns no plain data on the reference": slug(InvalidReason.UNENCODABLE),
    "is non-deterministic": slug(InvalidReason.NON_DETERMINISTIC),
}
"""How the referee's words begin -> the reason."""


def invalid_metrics(episodes: Sequence[RolloutEpisode]) -> dict[str, float | None]:
    """Return the mean number of invalid tests in a suite, reason by reason.

    Together they are `tester/invalid`.
    """
    suites = sum(len(episode.verdict.suites) for episode in episodes)
    counts = Counter(reason for episode in episodes for reason in _reasons(episode))
    return {f"tester/invalid/{name}": counts[name] / suites if suites else None for name in REASONS}


def _reasons(episode: RolloutEpisode) -> Iterator[str]:
    """The reason of each invalid test against a program."""
    for suite, judged in zip(episode.suites, episode.verdict.suites, strict=True):
        for test, verdict in zip(suite.tests, judged.tests, strict=True):
            if verdict.status in ("corrected", "invalid"):
                yield reason_of(test, verdict)
        for part in suite.dropped:
            if part.invalid:
                yield slug(part.fault) if part.fault else OTHER


def reason_of(test: Test, verdict: TestVerdict) -> str:
    """The reason why a test is invalid: one of `REASONS`.

    Args:
        test: As it was read.
        verdict: What became of it.
    """
    if test.fault is not None and verdict.reason == test.reason:
        return slug(test.fault)
    return next(
        (name for words, name in _BEGINNINGS.items() if verdict.reason.startswith(words)), OTHER
    )
