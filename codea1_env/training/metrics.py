"""What a step is measured by. A value is None where there was nothing to measure."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.referee import TestVerdict
from codea1_env.rollout import Experience, RolloutEpisode, Rollouts

Row = dict[str, Any]


def step_metrics(
    rollouts: Rollouts, coder: Sequence[Experience], tester: Sequence[Experience], book_size: int
) -> Row:
    """Measure one step, apart from what the learners report themselves."""
    episodes = rollouts.episodes
    suites = [suite for episode in episodes for suite in episode.verdict.suites]
    return {
        "reward/coder/mean": mean(episode.verdict.code_reward for episode in episodes),
        "reward/tester/mean": mean(suite.rewards.test for suite in suites),
        "reward/coder/selected": mean(item.reward for item in coder),
        "reward/tester/selected": mean(item.reward for item in tester),
        "coder/executes": mean(episode.verdict.code_executes for episode in episodes),
        "coder/scored": mean(episode.verdict.code_reward is not None for episode in episodes),
        "coder/chars": mean(len(episode.answer) for episode in episodes),
        "tester/validity": mean(suite.rewards.validity for suite in suites),
        "tester/adversarial": mean(suite.rewards.adversarial for suite in suites),
        "tester/invalid": mean(suite.outcome.invalid for suite in suites),
        **invalid_metrics(episodes),
        "tester/chars": mean(len(text) for episode in episodes for text in episode.suite_answers),
        "frac_reward_zero_std": frac_reward_zero_std([*coder, *tester]),
        "coder/frac_reward_zero_std": frac_reward_zero_std(coder),
        "tester/frac_reward_zero_std": frac_reward_zero_std(tester),
        "book/size": book_size,
        "book/added": rollouts.book_change.added,
        "book/removed": rollouts.book_change.removed + rollouts.book_change.evicted,
        **_book_metrics(episodes),
        "sandbox/programs": rollouts.sandbox.programs,
        "sandbox/tests": rollouts.sandbox.tests,
        "sandbox/timeouts": rollouts.sandbox.timeouts,
        "sandbox/errors": rollouts.sandbox.errors,
        "sandbox/unjudged": rollouts.sandbox.unjudged,
    }


def round_metrics(rollouts: Rollouts) -> Row:
    """Measure the rounds of a step, of a run with repair rounds.

    - reward/coder/round_N: mean over the programs of a round, counted from 1.
    - coder/repaired: of the programs that a test broke, or that do not run, the share whose next one nothing breaks.
    """
    by_round: dict[int, list[float | None]] = {}
    states: dict[tuple[str, int], list[bool]] = {}
    for episode in rollouts.episodes:
        verdict = episode.verdict
        by_round.setdefault(episode.round, []).append(verdict.code_reward)
        broken = any(test.broke for test in verdict.history) or bool(verdict.failed)
        states.setdefault((verdict.task_id, episode.index), []).append(
            verdict.code_executes and not broken
        )
    repaired = [
        after
        for whole in states.values()
        for before, after in itertools.pairwise(whole)
        if not before
    ]
    row: Row = {f"reward/coder/round_{n + 1}": mean(each) for n, each in by_round.items()}
    return row | {"coder/repaired": mean(repaired)}


def _book_metrics(episodes: Sequence[RolloutEpisode]) -> Row:
    """How much of what broke programs came from the Mistake Book.

    - pass_rate: share of replayed tests that passed.
    - share_of_breaks: of all distinct tests that broke a program, those that were replayed.
    - caught_alone: of all programs that ran and were broken, those that only replayed tests broke.
    """
    ran = [episode.verdict for episode in episodes if episode.verdict.code_executes]
    replayed = passed = 0
    old_breaks = new_breaks = broken = alone = 0
    for verdict in ran:
        old = {test.text for test in verdict.history} - set(verdict.history_passed)
        new = set(verdict.failed) - old
        replayed += len(verdict.history)
        passed += len(verdict.history_passed)
        old_breaks += len(old)
        new_breaks += len(new)
        broken += bool(old or new)
        alone += bool(old) and not verdict.failed
    return {
        "book/pass_rate": _share(passed, replayed),
        "book/share_of_breaks": _share(old_breaks, old_breaks + new_breaks),
        "book/caught_alone": _share(alone, broken),
    }


def frac_reward_zero_std(experience: Sequence[Experience]) -> float | None:
    """Share of groups that teach nothing, because all their scorable rewards are equal.

    Example:
        >>> from codea1_env.spaces import observe
        >>> from codea1_env.problems import Problem
        >>> seen = observe(Problem("one", "def one():", "one", "one = int"))
        >>> frac_reward_zero_std([Experience(seen, "", r, g) for r, g in [(1, "a"), (1, "a"), (0, "b"), (1, "b")]])
        0.5
    """
    groups: dict[str, set[float]] = {}
    for item in experience:
        rewards = groups.setdefault(item.group, set())
        if item.reward is not None:
            rewards.add(item.reward)
    return mean(len(rewards) < 2 for rewards in groups.values())


def episode_rows(
    rollouts: Rollouts,
    step: int,
    chats: Callable[[RolloutEpisode], Mapping[str, Any]] = lambda _: {},
    programs: int = 1,
) -> Iterable[Row]:
    """Yield what episodes.jsonl says of a step: of each problem so many programs, those whose suites differed most.

    `answer` is what a player wrote; `code` and `tests` are what was read from it.
    """
    for episode in rollouts.max_variance_episodes(programs):
        verdict = episode.verdict
        yield {
            "step": step,
            "task_id": verdict.task_id,
            "program": episode.index,
            **({"round": episode.round} if episode.round else {}),
            "problem": episode.problem.prompt,
            **chats(episode),
            "answer": episode.answer,
            "code": episode.program.code,
            "executes": verdict.code_executes,
            "reward": verdict.code_reward,
            "history": [_test_row(test) for test in verdict.history],
            "suites": [
                {
                    "answer": answer,
                    "reward": suite.rewards.test,
                    "validity": suite.rewards.validity,
                    "adversarial": suite.rewards.adversarial,
                    "invalid": suite.outcome.invalid,
                    "tests": [_test_row(test) for test in suite.tests],
                }
                for answer, suite in zip(episode.suite_answers, verdict.suites, strict=True)
            ],
        }


def prefixed(prefix: str, metrics: Mapping[str, float]) -> Row:
    """Put a role in front of every name."""
    return {f"{prefix}/{name}": value for name, value in metrics.items()}


def mean(values: Iterable[float | None]) -> float | None:
    """Mean of the values that are not None; None if there is none.

    Example:
        >>> mean([1, None, 2])
        1.5
    """
    known = [float(value) for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _test_row(test: TestVerdict) -> Row:
    row = {"test": test.text, "status": test.status}
    if test.outcome is not None:
        row["outcome"] = test.outcome.value
    if test.reason:
        row["reason"] = test.reason
    return row


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


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
    for suite, judged in zip(episode.suites, episode.verdict.suites, strict=True):
        yield from (test.fault for test in judged.tests if test.fault is not None)
        yield from (
            part.fault or InvalidReason.UNREADABLE for part in suite.dropped if part.invalid
        )
