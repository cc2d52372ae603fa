"""How long a run will take, from what its phases are expected to take and have taken."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping

ONCE = ("prepare", "speed", "evaluate", "checkpoint")
"""Phases that are no part of every step."""
_RECENT = 5
"""Steps that the expectation of the next one is made of."""


class Remaining:
    """The clock of a run."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._began = self._started
        self._expected: dict[str, float] = {}
        self._taken: dict[str, list[float]] = {}
        self._in_step: dict[str, float] = defaultdict(float)
        self._steps = 0
        self._measurements = 0
        self.phase = "prepare"
        self.share = 0.0
        """Share of the present phase that is done, as far as it says so."""

    def expect(self, steps: int, step: Mapping[str, float], measurements: int, each: float) -> None:
        """Tell what is to come; see `codea1_env.training.progress.TrainingProgress.expect`."""
        self._steps, self._measurements = steps, measurements
        self._expected.update(step)
        if each:
            self._expected["evaluate"] = each

    def begin(self, phase: str) -> None:
        """Begin a phase; the one before is over."""
        self.end()
        self.phase, self.share, self._began = phase, 0.0, time.monotonic()

    def end(self) -> None:
        """End the present phase."""
        seconds, phase = time.monotonic() - self._began, self.phase
        self.phase = ""
        if phase == "evaluate":
            self._measurements -= 1
            self._expected[phase] = seconds
        elif phase and phase not in ONCE:
            # A phase may come in several parts.
            self._in_step[phase] += seconds

    def end_step(self) -> None:
        """End a step: what its phases took is what they will take."""
        for phase, seconds in self._in_step.items():
            self._taken.setdefault(phase, []).append(seconds)
            recent = self._taken[phase][-_RECENT:]
            self._expected[phase] = sum(recent) / len(recent)
        for phase in set(self._expected) - set(self._in_step) - set(ONCE):
            del self._expected[phase]  # was expected, and never came
        self._in_step.clear()
        self._steps -= 1

    def seconds(self) -> float | None:
        """Seconds that remain; None where nothing is known."""
        step = {name: value for name, value in self._expected.items() if name not in ONCE}
        if not step:
            return None
        left = self._steps * sum(step.values())
        left += max(self._measurements, 0) * self._expected.get("evaluate", 0.0)
        now = time.monotonic() - self._began
        for name, value in step.items():
            if name != self.phase:
                left -= min(self._in_step[name], value)
        if self.phase in self._expected:
            whole = self._expected[self.phase]
            # What a phase says of itself goes before what was expected of it.
            left -= max(self.share * whole, min(now, 0.95 * whole) if not self.share else 0.0)
        return max(left, 0.0)

    def done(self) -> float:
        """Share of the whole run that is done, from 0 to 1."""
        left = self.seconds()
        if left is None:
            return self.share
        spent = time.monotonic() - self._started
        return spent / (spent + left) if spent + left else 0.0

    def text(self) -> str:
        """Time so far and to come, for people."""
        left = self.seconds()
        spent = clock(time.monotonic() - self._started)
        if left is None and self.share > 0:
            phase = time.monotonic() - self._began
            return f"{spent} so far, about {clock(phase / self.share - phase)} of this left"
        return f"{spent} so far" if left is None else f"{spent} so far, about {clock(left)} left"


def clock(seconds: float) -> str:
    """Show a time as people do.

    Example:
        >>> clock(59.6), clock(3601)
        ('1:00', '1:00:01')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
