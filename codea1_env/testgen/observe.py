"""What a program does, looked at in the sandbox: the same trials on the program and on its mutants."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from codea1_env.mutation.kills import Part, until_settled
from codea1_env.oracle import gather
from codea1_env.sandbox import CallResult, InfraError, Limit, Limits, Outcome, Sandbox
from codea1_env.testgen import driver
from codea1_env.testgen.target import Target
from codea1_env.testgen.texts import ABSOLUTE, RELATIVE, Trial, trial_text

T = TypeVar("T")
PATIENT = Limits(call_cpu_time=0.5, call_wall_time=5)  # What a program may use
QUICK = Limits(call_cpu_time=0.1, call_wall_time=5, run_cpu_time=0.2, run_wall_time=3)
"""What mutants may use: for one trial, and for all. Most that wait do so in every trial."""
ALONE = replace(QUICK, run_wall_time=QUICK.call_wall_time)
HASTY = Limits(call_cpu_time=0.1, call_wall_time=5)
"""What a program may use after it has not ended some times."""
LOOKING = 0.5  # Share of the time, after which nothing new is tried
_ROUNDING = 1e-15  # How far floats may differ between two runs: sums over sets depend on the order
_HANGS = 3
_PATIENCE = 10  # So many times as long a first call may take
_WRAPPED = 3  # How deep in an answer of the driver a value lies that was returned
_GROUP = 32
_WALL = 10  # By the clock a search may take so many times as long as by its processor time
_TICKS = os.sysconf("SC_CLK_TCK")
_SURROUNDINGS = {
    "FileNotFoundError", "PermissionError", "ConnectionError", "ConnectionRefusedError", "gaierror", "OSError",
    "EOFError", "BlockingIOError", "ModuleNotFoundError", "ImportError", "TimeoutError",
}  # fmt: skip
"""What a program raises that asks for what the sandbox has not."""
_APPENDED = """
def _codea1_observe(*arguments):
    return _codea1_driver["observe"]({name}, *arguments)
"""


class Clock:
    """Processor time of this process and all below it: a busy machine gives a search as much as an idle one.

    Args:
        seconds: Processor time in all; None for no bound.

    Example:
        >>> Clock(None).is_over(), Clock(1e-9).is_over()
        (False, True)
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._started = time.monotonic()
        self._used = self._total()

    @staticmethod
    def _total() -> float:
        total, left = 0.0, [Path("/proc/self")]
        while left:
            process = left.pop()
            try:
                fields = (process / "stat").read_text().rpartition(")")[2].split()
                total += sum(map(int, fields[11:15])) / _TICKS
                for task in (process / "task").iterdir():
                    left += [Path("/proc", pid) for pid in (task / "children").read_text().split()]
            except OSError:  # it has ended, or the kernel does not list children
                continue
        return total or time.process_time()

    @property
    def used(self) -> float:
        """Seconds of processor time so far."""
        return self._total() - self._used

    @property
    def wall(self) -> float:
        """Seconds by the clock so far."""
        return time.monotonic() - self._started

    def is_over(self, share: float = 1.0) -> bool:
        """Whether so much of the time is used."""
        if self.seconds is None:
            return False
        return max(self.used, self.wall / _WALL) >= share * self.seconds

    def parts(self, items: Sequence[T], share: float = 1.0, first: int = 8, most: int = 64) -> Iterator[Sequence[T]]:  # fmt: skip
        """Yield the items in parts that grow as long as there is time, and the first part in any case."""
        start, size = 0, first
        while start < len(items) and (start == 0 or not self.is_over(share)):
            yield items[start : start + size]
            start, size = start + size, min(2 * size, most)


@dataclass(frozen=True)
class Seen:
    """What came of one trial."""

    outcome: Outcome
    """PASS if there is an answer, also if the program raised."""
    found: Mapping[str, Any]
    """What `driver.observe` returned; empty without an answer."""
    limit: Limit | None = None
    """As in `CallResult`."""

    @property
    def printed(self) -> bytes:
        """The first bytes that were printed."""
        return bytes(self.found.get("printed", b""))

    @property
    def errors(self) -> list[str]:
        """The exceptions that the steps raised."""
        results = self.found.get("results", [])
        return [content[0] for form, content in results if form in ("raises", "breaks")]


class Observer:
    """Runs trials of a function or class in the sandbox; of objects it looks at the attributes."""

    def __init__(self, name: str, attributes: Sequence[str], sandbox: Sandbox) -> None:
        self._appended = _APPENDED.format(name=name)
        self._attributes = list(attributes)
        self._sandbox = sandbox

    def twice(self, program: str, trials: Sequence[Trial]) -> list[tuple[Seen, Seen]]:
        """Run trials in two processes that differ in what programs should not depend on.

        The second has another hash seed, and runs the trials in the reverse order. What does not end costs
        time; a program that often does not end gets little for each trial, and in the end no more trials.

        Returns:
            What was seen in both, for the first trials, mostly all.
        """
        seen: list[tuple[Seen, Seen]] = []
        hangs = 0
        for start in range(0, len(trials), _GROUP):
            if hangs > _GROUP:
                break
            some = trials[start : start + _GROUP]
            limits = (PATIENT if hangs < _HANGS else HASTY).with_room_for(len(some))
            first = self._submit(program, some, limits)
            second = self._submit(program, some[::-1], limits, hash_seed=1)
            one, other = gather([first, second])
            seen += zip(map(_seen, one), map(_seen, other[::-1]), strict=True)
            hangs += sum(result.outcome is Outcome.TIMEOUT for result in one)
        return seen

    def alone(self, program: str, trials: Sequence[Trial], times: int = 1) -> list[Seen]:
        """Run every trial in a process of its own, with so many times the usual limits."""
        jobs = [self._submit(program, [trial], PATIENT.times(times)) for trial in trials]
        return [_seen(result) for [result] in gather(jobs)]

    def on_many(self, programs: Sequence[str], trials: Sequence[Trial]) -> list[list[Seen | None]]:
        """Run trials on each program; None for those after the first that does not end.

        A program that mostly waits is given up, too, when it has taken some seconds.
        """

        def run(parts: Sequence[Part]) -> list[list[Seen]]:
            jobs = []
            for program, numbers in parts:
                limits = QUICK if len(numbers) > 1 else ALONE
                some = [trials[number] for number in numbers]
                jobs.append(self._submit(programs[program], some, limits))
            return [list(map(_seen, results)) for results in gather(jobs)]

        def hangs(seen: Seen) -> bool:
            return seen.outcome is Outcome.TIMEOUT

        def waits(seen: Seen) -> bool:
            return seen.limit is Limit.WALL_TIME

        return until_settled(
            len(programs), len(trials), run, late=hangs, settles=hangs, waits=waits
        )

    def _submit(
        self, program: str, trials: Sequence[Trial], limits: Limits, hash_seed: int = 0
    ) -> Future[list[CallResult]]:
        calls: list[tuple[list[Any], dict[str, Any]]] = []
        for trial in trials:
            steps = [(name, list(args), dict(words)) for name, args, words in trial.steps]
            given = [list(trial.arguments), dict(trial.keywords), steps, self._attributes]
            calls.append((given, {}))
        text, name = program + self._appended, "_codea1_observe"
        return self._sandbox.submit_calls(text, name, calls, limits=limits, hash_seed=hash_seed)


class Looker:
    """Runs trials on the program and remembers what came of them."""

    def __init__(self, target: Target, sandbox: Sandbox, clock: Clock) -> None:
        self.target = target
        self.clock = clock
        self.observer = Observer(target.name, target.attributes, sandbox)
        self.seen: dict[str, tuple[Trial, Seen]] = {}
        """By the text of the trial, where two runs gave the same."""
        self.runs: dict[str, tuple[Seen, Seen]] = {}
        """All that was tried, by its text."""
        self.unstable: list[str] = []
        self.outside: list[str] = []
        """Calls that asked for files, the network or standard input."""
        self.hanging: list[tuple[str, Trial]] = []

    def text(self, trial: Trial) -> str:
        """Return the trial in one line."""
        return trial_text(trial, self.target.shape)

    def look(self, trials: Sequence[Trial]) -> list[str]:
        """Run new trials twice; returns the texts of those that are stable."""
        texts = {self.text(trial): trial for trial in trials}
        new = {text: trial for text, trial in texts.items() if text not in self.runs}
        runs: list[tuple[Seen, Seen]] = []
        for part in self.clock.parts(list(new.values()), LOOKING, first=16):
            seen = self.observer.twice(self.target.program, part)
            runs += seen
            if len(seen) < len(part):
                break
        found = []
        for (text, trial), (one, other) in zip(new.items(), runs, strict=False):
            self.runs[text] = (one, other)
            if one.outcome is Outcome.TIMEOUT and _is_computing(one) and is_small(trial):
                self.hanging.append((text, trial))
            elif not is_stable(one, other):
                self.unstable.append(text)
            elif not (_SURROUNDINGS - self.target.raises).isdisjoint(one.errors):
                self.outside.append(text)
            elif one.outcome is Outcome.PASS:
                self.seen[text] = (trial, one)
                found.append(text)
        return found

    def known(self, trial: Trial) -> Seen | None:
        """Return what came of a trial that was stable."""
        found = self.seen.get(self.text(trial))
        return None if found is None else found[1]

    def endless(self) -> str:
        """Return the simplest call that does not end with ten times the time, either; "" if there is none."""
        for text, trial in sorted(self.hanging, key=lambda pair: len(pair[0]))[:2]:
            [seen] = self.observer.alone(self.target.program, [trial], _PATIENCE)
            if seen.outcome in (Outcome.TIMEOUT, Outcome.MEMORY) and _is_computing(seen):
                return text
        return ""


def _is_computing(seen: Seen) -> bool:
    return seen.limit is not Limit.WALL_TIME


def is_small(trial: Trial) -> bool:
    """Whether nobody would expect that a call takes long."""

    def small(value: object) -> bool:
        if isinstance(value, (int, float)):
            return abs(value) <= 10
        if isinstance(value, dict):
            return len(value) <= 4 and all(map(small, value.values()))
        if isinstance(value, (list, tuple, set, frozenset)):
            return len(value) <= 4 and all(map(small, value))
        return not isinstance(value, (str, bytes)) or len(value) <= 10

    steps = [part for _, args, words in trial.steps for part in (*args, *words.values())]
    return all(map(small, (*trial.arguments, *trial.keywords.values(), *steps)))


def differ(one: Seen, other: Seen, tolerance: float = RELATIVE) -> bool:
    """Whether a test of what was seen first would fail on the other, if floats may differ by so much, relatively."""
    if one.outcome is not other.outcome:
        return True
    if one.outcome is not Outcome.PASS:
        return False
    a, b = one.found, other.found
    if a["made"] != b["made"] or len(a["results"]) != len(b["results"]):
        return True
    pairs = zip(a["results"], b["results"], strict=True)
    return any(_results_differ(x, y, tolerance) for x, y in pairs) or any(
        key not in b[part] or _values_differ(value, b[part][key], tolerance)
        for part in ("after", "attributes")
        for key, value in a[part].items()
    )


def is_stable(one: Seen, other: Seen) -> bool:
    """Whether two runs gave the same: floats may differ by rounding, but not by the time that has passed."""
    return not differ(one, other, _ROUNDING) and not differ(other, one, _ROUNDING)


def _results_differ(one: tuple[str, Any], other: tuple[str, Any], tolerance: float) -> bool:
    if one[0] != other[0]:
        return True
    if one[0] in ("raises", "breaks"):  # the message may change
        return bool(one[1][0] != other[1][0])
    return _values_differ(one[1], other[1], tolerance)


def _values_differ(one: Any, other: Any, tolerance: float) -> bool:
    if isinstance(one, bool) or one is None:
        return one is not other
    if type(one) is float and type(other) in (int, float):
        return not math.isclose(one, other, rel_tol=tolerance, abs_tol=min(tolerance, ABSOLUTE))
    return bool(one != other)


def _seen(result: CallResult) -> Seen:
    if result.outcome is Outcome.INFRA_ERROR:
        raise InfraError(result.message)
    if result.outcome is not Outcome.PASS:
        return Seen(result.outcome, {}, result.limit)
    if not _is_answer(result.value):
        return Seen(Outcome.FORBIDDEN, {})  # the program has changed how it is called
    return Seen(Outcome.PASS, result.value)


def _is_answer(value: Any) -> bool:
    """Whether the program has let the driver answer: its process is the program's, too."""
    parts = {"made": bool, "results": list, "after": dict, "attributes": dict, "printed": bytes}
    return (
        isinstance(value, dict)
        and {key: type(part) for key, part in value.items()} == parts
        and all(isinstance(each, tuple) and len(each) == 2 for each in value["results"])
        and driver.is_plain(value, -_WRAPPED)
    )
