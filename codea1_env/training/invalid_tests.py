"""Counts why tests are invalid, in a closed list of reasons: rows of metrics.jsonl always have all of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.rollout import RolloutEpisode


def slug(reason: InvalidReason) -> str:
    """Name a reason as a part of a metric's name.

    Example:
        >>> slug(InvalidReason.OUTSIDE_SIGNATURE)
        'outside_the_signature'
    """
    return re.sub(r"\W+", "_", reason.value)


def invalid_metrics(episodes: Sequence[RolloutEpisode]) -> dict[str, float | None]:
    """Return the mean number of invalid tests in a suite, reason by reason.

    Together they are `tester/invalid`.
    """
    suites = sum(len(episode.verdict.suites) for episode in episodes)
    counts = Counter(reason for episode in episodes for reason in _reasons(episode))
    return {
        f"tester/invalid/{slug(reason)}": counts[reason] / suites if suites else None
        for reason in InvalidReason
    }


def _reasons(episode: RolloutEpisode) -> Iterator[InvalidReason]:
    """The reason of each invalid test against a program."""
    for suite, judged in zip(episode.suites, episode.verdict.suites, strict=True):
        yield from (test.fault for test in judged.tests if test.fault is not None)
        yield from (
            part.fault or InvalidReason.UNREADABLE for part in suite.dropped if part.invalid
        )
