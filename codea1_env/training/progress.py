"""Shows what a run does, how far it is, and how long it will take."""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from codea1_env.agents.llm.completions import listening
from codea1_env.rendering.display import clock, counted
from codea1_env.rollout import Agent
from codea1_env.spaces import Observation
from codea1_env.training.metrics import Row

ONCE = ("prepare", "speed", "evaluate", "checkpoint")
"""Phases that are no part of every step."""
_RECENT = 5
"""Steps that the expectation of the next one is made of."""
_LINES = 12
"""Lines about steps that a whole run prints."""
_PAUSE = 10.0
"""Seconds between two lines about phases where there is no terminal."""
PHASES = {
    "prepare": "getting ready",
    "speed": "measuring this machine",
    "evaluate": "measuring both players",
    "coder": "coder writes",
    "tester": "tester writes",
    "judge": "judging",
    "learn_coder": "coder learns",
    "learn_tester": "tester learns",
    "learn_model": "both learn",
    "learn": "both learn",
    "checkpoint": "saving",
}
"""Phase -> what is shown."""
_SHOWN = {
    "reward/coder/mean": "coder",
    "reward/tester/mean": "tester",
    "book/size": "book",
    "held_out/pass_rate": "pass rate",
    "held_out/kill_rate": "kill rate",
}


class Remaining:
    """The clock of a run."""

    def __init__(self, started: float | None = None, minutes: float | None = None) -> None:
        self._began = time.monotonic()
        self._started = self._began if started is None else started
        self.limit = None if minutes is None else 60 * minutes
        self._expected: dict[str, float] = {}
        self._taken: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=_RECENT))
        self._in_step: dict[str, float] = defaultdict(float)
        self._steps = 0
        self._measurements = 0
        self.phase = "prepare"
        self.share = 0.0
        """Share of the present phase that is done, as far as it says so."""

    def expect(self, steps: int, known: Mapping[str, float], measurements: int) -> None:
        """Tell what is to come; see `codea1_env.training.progress.TrainingProgress.expect`."""
        self._steps, self._measurements = steps, measurements
        self._expected.update(known)

    def guess(self, share: float) -> None:
        """Expect a step of this share of the last measurement, until one was taken."""
        self._expected["judge"] = share * self._expected["evaluate"]

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
            self._taken[phase].append(seconds)
            self._expected[phase] = sum(self._taken[phase]) / len(self._taken[phase])
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
        left, spent = self.seconds(), self.spent()
        of_time = 0.0 if self.limit is None else min(spent / self.limit, 1.0)
        if left is None:
            return of_time or self.share
        return max(of_time, spent / (spent + left) if spent + left else 0.0)

    def spent(self) -> float:
        """Seconds so far."""
        return time.monotonic() - self._started

    def text(self) -> str:
        """Time so far and to come, for people."""
        left, spent = self.seconds(), clock(self.spent())
        if self.limit is not None:
            return f"{spent} of {clock(self.limit)}"
        if left is not None:
            return f"{spent} so far, about {clock(left)} left"
        if self.share > 0:
            phase = time.monotonic() - self._began
            return f"{spent} so far, about {clock(phase / self.share - phase)} of this left"
        return f"{spent} so far"


class TrainingProgress:
    """Context manager around a run, which began at `started` (by `time.monotonic`), and may be limited to so many minutes.

    In a terminal a bar moves all the time; elsewhere a line says now and then where the run is.
    """

    def __init__(
        self, console: Console, started: float | None = None, minutes: float | None = None
    ) -> None:
        self._console = console
        self._clock = Remaining(started, minutes)
        self._latest: Row = {}
        self._said = 0.0
        self._next_line = 0.0
        """Seconds of the run after which a line about a step is due, where its time is limited."""
        self._steps = (0, 0)
        """Steps done, and steps of the whole run."""
        # Drawn again and again by a thread: it moves while a single operation takes long, too.
        self._bar = Live(
            get_renderable=self._drawn, console=console, refresh_per_second=4, transient=True
        )

    def __enter__(self) -> TrainingProgress:
        if self._console.is_terminal:
            self._bar.start()
        self._tell()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        wrap = not self._console.is_terminal
        self._console.print(text, highlight=False, markup=False, soft_wrap=wrap)

    def expect(self, steps: int, done: int, known: Mapping[str, float], measurements: int) -> None:
        """Tell what is to come: steps of the whole run, those done, seconds of known phases, and how often is measured."""
        self._clock.expect(steps - done, known, measurements)
        self._steps = (done, steps)

    def guess(self, share: float) -> None:
        """Say how long the run takes about, where no step was measured: each this share of the last measurement."""
        self._clock.guess(share)
        if self._clock.limit is None:
            self.say(f"{counted(self._steps[1], 'steps')}  {self._clock.text()}")

    def begin(self, name: str) -> None:
        """Show that this is done now, until something else is."""
        self._clock.begin(name)
        if self._bar.is_started:
            self._bar.refresh()
        self._tell()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Show that this is done inside, and how far it says that it is."""
        self.begin(name)
        try:
            with listening(self._heard):
                yield
        finally:
            self._clock.end()

    def watch(self, agent: Agent, name: str, then: str = "") -> Agent:
        """Return a player that says when it is asked, and what is done after its answers."""
        return _Watched(agent, name, then, self)

    def update(self, row: Row, *, last: bool) -> None:
        """Show the metrics of a step."""
        self._latest.update({name: row[name] for name in _SHOWN if row.get(name) is not None})
        done, steps = row["step"], self._steps[1]
        self._steps = (done, steps)
        self._clock.end_step()
        if self._clock.limit is None:
            step, is_due = f"step {done}/{steps}", done % max(1, steps // _LINES) == 0
        else:
            step = f"step {done}, {self._clock.text()}"
            is_due = self._clock.spent() >= self._next_line
        if is_due or last:
            values = "  ".join(
                f"{_SHOWN[name]} {_number(value)}" for name, value in self._latest.items()
            )
            self.say(f"{step}  {values}")
            self._said = time.monotonic()
            self._next_line = self._clock.spent() + (self._clock.limit or 0.0) / _LINES

    def _heard(self, share: float) -> None:
        if share == 0.0:  # what came before in this phase does not say how long the rest takes
            self._clock.begin(self._clock.phase)
        self._clock.share = share
        if not self._console.is_terminal:
            self._tell()

    def _tell(self) -> None:
        """Say where the run is, if there is no terminal, and it was not said just now."""
        now = time.monotonic()
        if not self._console.is_terminal and (now - self._said >= _PAUSE or self._said == 0.0):
            self._said = now
            self.say("  ".join(self._place()))

    def _place(self) -> tuple[str, str]:
        """Where the run is, and the time: in two pieces of one line."""
        phase, time_ = PHASES.get(self._clock.phase, self._clock.phase), self._clock.text()
        done, steps = self._steps
        if not steps or self._clock.phase in ONCE:
            return phase, time_
        step = min(done + 1, steps)
        if self._clock.limit is not None:
            return f"step {step}, {time_}", phase
        return f"step {step}/{steps} {phase}", time_

    def _drawn(self) -> Table:
        """One line, of at most 80 columns."""
        line = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=1.0, completed=self._clock.done(), width=14)
        left, right = self._place()
        line.add_row(f"{left:<24}", bar, right)
        return line


class _Watched:
    def __init__(self, agent: Agent, name: str, then: str, display: TrainingProgress) -> None:
        self._agent, self._name, self._then, self._display = agent, name, then, display

    def act(self, observations: Sequence[Observation]) -> Sequence[str]:
        """Return one answer for each observation, in order."""
        if threading.current_thread() is not threading.main_thread():  # written ahead
            return self._agent.act(observations)
        with self._display.phase(self._name):
            answers = self._agent.act(observations)
        self._display.begin(self._then)
        return answers


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.2f}"
