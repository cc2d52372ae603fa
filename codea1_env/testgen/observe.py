"""What a program does, looked at in the sandbox: the same trials on the program and on its mutants."""

from __future__ import annotations

import cmath
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from codea1_env.mutation.kills import Part, until_settled
from codea1_env.oracle import gather
from codea1_env.sandbox import CallResult, InfraError, Limit, Limits, Outcome, Sandbox
from codea1_env.testgen import driver
from codea1_env.testgen.target import beside
from codea1_env.testgen.texts import ABSOLUTE, RELATIVE, Trial

PATIENT = Limits(call_cpu_time=0.5, call_wall_time=5)
"""What a program may use."""
QUICK = Limits(call_cpu_time=0.1, call_wall_time=5, run_cpu_time=0.2, run_wall_time=3)
"""What mutants may use: for one trial, and for all. Most that wait do so in every trial."""
ALONE = replace(QUICK, run_wall_time=QUICK.call_wall_time)
HASTY = Limits(call_cpu_time=0.1, call_wall_time=5)
"""What a program may use after it has not ended some times."""
_ROUNDING = 1e-15
"""How far floats may differ between two runs: sums over sets depend on the order."""
_HANGS = 3
_PATIENCE = 10
"""So many times as long a first call may take."""
_WRAPPED = 3
"""How deep in an answer of the driver a value lies that was returned."""
_GROUP = 32
_APPENDED = """
def _codea1_observe(*arguments):
    return _codea1_driver["observe_and_hear"]({name}, *arguments)
"""


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
    def errors(self) -> list[tuple[int, str, str]]:
        """The steps that raised: number, name of the exception, message."""
        return [
            (number, content[0], content[1])
            for number, (form, content) in enumerate(self.found.get("results", []))
            if form in ("raises", "breaks")
        ]


class Observer:
    """Runs trials in the sandbox.

    Args:
        name: The function or class.
        attributes: What is looked at of an object.
        sandbox: Where programs run.
    """

    def __init__(self, name: str, attributes: Sequence[str], sandbox: Sandbox) -> None:
        self._appended = beside(driver) + _APPENDED.format(name=name)
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

    def alone(self, program: str, trials: Sequence[Trial]) -> list[Seen]:
        """Run every trial in a process of its own."""
        jobs = [self._submit(program, [trial], PATIENT) for trial in trials]
        return [_seen(result) for [result] in gather(jobs)]

    def patiently(self, program: str, trial: Trial) -> Seen:
        """Run a trial with much more time, such as a first call may take that loads or fills something."""
        [[result]] = gather([self._submit(program, [trial], PATIENT.times(_PATIENCE))])
        return _seen(result)

    def on_many(self, programs: Sequence[str], trials: Sequence[Trial]) -> list[list[Seen | None]]:
        """Run trials on each program; None for those after the first that does not end.

        A program that mostly waits is given up, too, when it has taken some seconds.
        """

        def run(parts: Sequence[Part]) -> list[list[Seen]]:
            jobs = [
                self._submit(
                    programs[program],
                    [trials[number] for number in numbers],
                    QUICK if len(numbers) > 1 else ALONE,
                )
                for program, numbers in parts
            ]
            return [list(map(_seen, results)) for results in gather(jobs)]

        return until_settled(
            len(programs),
            len(trials),
            run,
            late=lambda seen: seen.outcome is Outcome.TIMEOUT,
            settles=lambda seen: seen.outcome is Outcome.TIMEOUT,
            waits=lambda seen: seen.limit is Limit.WALL_TIME,
        )

    def _submit(
        self, program: str, trials: Sequence[Trial], limits: Limits, hash_seed: int = 0
    ) -> Future[list[CallResult]]:
        calls: list[tuple[list[Any], dict[str, Any]]] = []
        for trial in trials:
            steps = [(name, list(args), dict(words)) for name, args, words in trial.steps]
            given = [list(trial.arguments), dict(trial.keywords), steps, self._attributes]
            calls.append((given, {}))
        return self._sandbox.submit_calls(
            program + self._appended,
            "_codea1_observe",
            calls,
            limits=limits,
            hash_seed=hash_seed,
        )


def differ(one: Seen, other: Seen, tolerance: float = RELATIVE) -> bool:
    """Whether a test of what was seen first would fail on what was seen then.

    Args:
        one: What was seen first.
        other: What was seen then.
        tolerance: How far floats may differ, relative to the larger one.
    """
    if one.outcome is not other.outcome:
        return True
    if one.outcome is not Outcome.PASS:
        return False
    a, b = one.found, other.found
    return (
        a["made"] != b["made"]
        or len(a["results"]) != len(b["results"])
        or any(
            _results_differ(x, y, tolerance)
            for x, y in zip(a["results"], b["results"], strict=True)
        )
        or any(
            key not in b[part] or _values_differ(value, b[part][key], tolerance)
            for part in ("after", "attributes")
            for key, value in a[part].items()
        )
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
    if type(one) in (float, complex) and type(other) in (int, float, complex):
        return not cmath.isclose(one, other, rel_tol=tolerance, abs_tol=min(tolerance, ABSOLUTE))
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
    return (
        isinstance(value, dict)
        and value.keys() == {"made", "results", "after", "attributes", "printed"}
        and isinstance(value["results"], list)
        and isinstance(value["printed"], bytes)
        and all(isinstance(each, tuple) and len(each) == 2 for each in value["results"])
        and driver.is_plain(value, -_WRAPPED)
    )
