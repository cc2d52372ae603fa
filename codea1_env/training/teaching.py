"""Lets everyone learn: one after the other, or at the same time where players compute elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple

from codea1_env.training.lessons import Lesson
from codea1_env.training.metrics import Row, prefixed


@dataclass(frozen=True)
class Taught:
    """What came of the lessons of a step."""

    metrics: Row
    """Of all roles."""
    seconds: Mapping[str, float]
    """Phase -> seconds: `learn_ROLE`, or `learn` for all that learned at the same time."""
    of_roles: Mapping[str, float]
    """`learn_ROLE` -> seconds."""


class _Learned(NamedTuple):
    metrics: Mapping[str, float]
    seconds: float


def teach(
    lessons: Mapping[str, Lesson],
    phase: Callable[[str], AbstractContextManager[None]],
    elsewhere: Collection[str] = (),
) -> Taught:
    """Let everyone learn.

    Args:
        lessons: See `codea1_env.training.lessons.lessons`.
        phase: Shows what is done.
        elsewhere: Roles whose players compute on other machines: they learn at the same time. Others do so one after
            the other, in this thread.

    Example:
        >>> from contextlib import nullcontext
        >>> taught = teach({"coder": lambda: {"loss": 0.5}}, lambda name: nullcontext())
        >>> taught.metrics, list(taught.seconds)
        ({'coder/loss': 0.5}, ['learn_coder'])
    """
    together = [role for role in lessons if role in elsewhere]
    together = together if len(together) > 1 else []
    learned: dict[str, _Learned] = {}
    seconds: dict[str, float] = {}
    if together:
        started = time.perf_counter()
        with phase("learn"):
            learned.update(_at_once({role: lessons[role] for role in together}))
        seconds["learn"] = time.perf_counter() - started
    for role, lesson in lessons.items():
        if role not in learned:
            with phase(f"learn_{role}"):
                learned[role] = _timed(lesson)
            seconds[f"learn_{role}"] = learned[role].seconds
    metrics: Row = {}
    for role in lessons:
        metrics |= prefixed(role, learned[role].metrics)
    of_roles = {f"learn_{role}": each.seconds for role, each in learned.items()}
    return Taught(metrics, seconds, of_roles)


def _at_once(lessons: Mapping[str, Lesson]) -> dict[str, _Learned]:
    """Wait for all lessons; if one fails, for none, nor after Ctrl-C: who ends the run ends them, too."""
    threads = ThreadPoolExecutor(len(lessons), "learn")
    try:
        futures: dict[str, Future[_Learned]] = {
            role: threads.submit(_timed, lesson) for role, lesson in lessons.items()
        }
        return {role: future.result() for role, future in futures.items()}
    finally:
        threads.shutdown(wait=False)


def _timed(lesson: Lesson) -> _Learned:
    started = time.perf_counter()
    metrics = lesson()
    return _Learned(metrics, time.perf_counter() - started)
