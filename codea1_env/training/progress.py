"""Shows what a run does, how far it is, and how long it will take."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.text import Text

from codea1_env.agents.llm.completions import listening
from codea1_env.rendering.display import clock
from codea1_env.rollout import Agent
from codea1_env.spaces import Observation
from codea1_env.training.metrics import Row

_RECENT = 5
"""Steps that the expectation of the next ones is made of."""
_LINES = 12
"""Lines about steps that a whole run prints."""
_PAUSE = 10.0
"""Seconds between two lines about phases where there is no terminal."""
_PHASES = {
    "prepare": "getting ready",
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


class TrainingProgress:
    """Context manager around a run, which began at `started` (by `time.monotonic`), and may be limited to so many minutes.

    In a terminal a line below the others changes all the time; elsewhere a line says now and then where the run is.
    """

    def __init__(
        self, console: Console, started: float | None = None, minutes: float | None = None
    ) -> None:
        self._console = console
        self._started = time.monotonic() if started is None else started
        self._limit = None if minutes is None else 60 * minutes
        self._phase, self._share = "prepare", 0.0
        self._done, self._steps = 0, 0
        self._ends: deque[float] = deque(maxlen=_RECENT + 1)
        """When the last steps ended."""
        self._latest: Row = {}
        self._said = self._next_line = 0.0
        # Drawn again and again by a thread: it moves while a single operation takes long, too.
        self._live = Live(
            get_renderable=lambda: Text(self._place(), overflow="ellipsis", no_wrap=True),
            console=console,
            refresh_per_second=4,
            transient=True,
        )

    def __enter__(self) -> TrainingProgress:
        if self._console.is_terminal:
            self._live.start()
        self._tell()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        """Print a line above the one that changes."""
        wrap = not self._console.is_terminal
        self._console.print(text, highlight=False, markup=False, soft_wrap=wrap)

    def expect(self, steps: int, done: int) -> None:
        """Tell what is to come: steps of the whole run, and those done."""
        self._done, self._steps = done, steps
        self._ends.append(time.monotonic())

    def begin(self, name: str) -> None:
        """Show that this is done now, until something else is."""
        self._phase, self._share = name, 0.0
        if self._live.is_started:
            self._live.refresh()
        self._tell()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Show that this is done inside, and how far it says that it is."""
        self.begin(name)
        with listening(self._heard):
            yield

    def watch(self, agent: Agent, name: str, then: str = "") -> Agent:
        """Return a player that says when it is asked, and what is done after its answers."""
        return _Watched(agent, name, then, self)

    def update(self, row: Row, *, last: bool) -> None:
        """Show the metrics of a step."""
        self._latest.update({name: row[name] for name in _SHOWN if row.get(name) is not None})
        self._done = row["step"]
        self._ends.append(time.monotonic())
        spent = self._ends[-1] - self._started
        is_due = self._done % max(1, self._steps // _LINES) == 0
        if self._limit is not None:
            is_due = spent >= self._next_line
        if is_due or last:
            values = (f"{_SHOWN[name]} {_number(value)}" for name, value in self._latest.items())
            of = f"/{self._steps}" if self._limit is None else f", {self._time()}"
            self.say(f"step {self._done}{of}  {'  '.join(values)}")
            self._said = time.monotonic()
            self._next_line = spent + (self._limit or 0.0) / _LINES

    def _heard(self, share: float) -> None:
        self._share = share
        if not self._console.is_terminal:
            self._tell()

    def _tell(self) -> None:
        """Say where the run is, if there is no terminal, and it was not said just now."""
        now = time.monotonic()
        if not self._console.is_terminal and (now - self._said >= _PAUSE or self._said == 0.0):
            self._said = now
            self.say(self._place())

    def _place(self) -> str:
        """Where the run is, and the time, in one line."""
        step = ""
        if self._steps and self._phase not in ("prepare", "evaluate", "checkpoint"):
            of = f"/{self._steps}" if self._limit is None else ""
            step = f"step {min(self._done + 1, self._steps)}{of}"
        share = f"{self._share:.0%}" if 0 < self._share < 1 else ""
        phase = _PHASES.get(self._phase, self._phase)
        return "  ".join(filter(None, (step, phase, share, self._time())))

    def _time(self) -> str:
        """Time so far and to come: the next steps take as long as the last ones."""
        now = time.monotonic()
        spent = clock(now - self._started)
        if self._limit is not None:
            return f"{spent} of {clock(self._limit)}"
        if len(self._ends) < 2:
            return f"{spent} so far"
        each = (self._ends[-1] - self._ends[0]) / (len(self._ends) - 1)
        left = (self._steps - self._done) * each - (now - self._ends[-1])
        return f"{spent} so far, about {clock(max(left, 0.0))} left"


class _Watched:
    def __init__(self, agent: Agent, name: str, then: str, display: TrainingProgress) -> None:
        self._agent, self._name, self._then, self._display = agent, name, then, display

    def act(self, observations: Sequence[Observation]) -> Sequence[str]:
        if threading.current_thread() is not threading.main_thread():  # written ahead
            return self._agent.act(observations)
        with self._display.phase(self._name):
            answers = self._agent.act(observations)
        self._display.begin(self._then)
        return answers


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.2f}"
