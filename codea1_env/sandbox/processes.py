"""The processes of a run: one in which many calls are made, or one for each input that a program reads."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from .clocks import own_queue_time
from .inside import codec
from .inside.run.running import RETURNED
from .jobs import Limits
from .outcomes import Stop, bounds_of, load_of, outcome_of
from .results import Limit, Outcome, TestResult
from .scripts import input_bytes, run_script
from .supervise import Supervised, dismissed_on_error
from .watch import Watch
from .workers import Slots

Judge = Callable[[int, bytes], TestResult]
"""Number of a call and the frame that answered it -> the verdict. The frame is dropped then."""
Share = Callable[["Part"], float]
"""What a process has done so far -> share of a call's time that the next call may use."""

_FLOOD = TestResult(Outcome.FORBIDDEN, Stop.FLOOD.value)
_GATHER = 0.002  # seconds, for which a child with a full pipe would wait
_QUICK = 0.02  # seconds, in which a program loads for nothing
_MOST_IDLE = 2  # times the wall limit of a call, of all calls together
_MOST_HELD = 64 << 20
_TOO_MUCH = TestResult(
    Outcome.OUTPUT_LIMIT,
    f"the values that were returned are larger than {_MOST_HELD >> 20} MiB together",
    limit=Limit.RESULT,
)
NOTHING = 1e-9  # seconds: no time is left


PROGRAM = ""
"""The name by which a program is called that reads standard input: its one argument. What it prints is returned."""


class Calls(NamedTuple):
    """Calls of functions of one program."""

    names: str | tuple[str, ...]
    """The function, or that of each call; see `inside.run.running.target_of`. `PROGRAM`: the program runs whole."""
    arguments: Sequence[bytes]
    """The arguments of each call; see `encoded_arguments`."""
    entry_point: str | None
    """What the program must define."""

    def after(self, done: int) -> Calls:
        """The calls that are left."""
        names = self.names if isinstance(self.names, str) else self.names[done:]
        return Calls(names, self.arguments[done:], self.entry_point)

    def of(self, numbers: Sequence[int]) -> Calls:
        """Some of them."""
        names = self.names
        if not isinstance(names, str):
            names = tuple([names[number] for number in numbers])
        return Calls(names, [self.arguments[number] for number in numbers], self.entry_point)


def less(limits: Limits, cpu_time: float, wall_time: float) -> Limits:
    """The rest of the run's limits; they stay positive, as limits must."""
    return replace(
        limits,
        run_cpu_time=max(limits.run_cpu_time - cpu_time, NOTHING),
        run_wall_time=max(limits.run_wall_time - wall_time, NOTHING),
    )


class Part:
    """What a process makes of some calls.

    Attributes:
        replies: As in `Answers`, of the calls that were made.
        times: Likewise.
        cpu_time: Seconds of CPU time.
        load_time: The same of loading.
        load_wait: Seconds of wall-clock time until the program was loaded, less waiting for a processor.
    """

    cpu_time = load_time = load_wait = 0.0

    def __init__(
        self,
        calls: Calls,
        limits: Limits,
        judge: Judge | None,
        first: int,
        held: int,
        *,
        stop: bool,
        share: Share = lambda part: 1.0,
        may_wait: bool = False,
    ) -> None:
        """Take the calls; see `answer_calls`. `share` says how much of a call's time the next one may use.

        All calls together may wait as long as two calls, or with `may_wait` each as long as its share says.
        """
        self.calls = calls
        self.limits = limits
        self.judge = judge
        self.first = first
        self.stop = stop
        self.replies: list[bytes | TestResult] = []
        self.times: list[float] = []
        self._share = share
        self._may_wait = may_wait
        self._held = held

    @property
    def wait(self) -> float:
        """Seconds of wall-clock time since the program was loaded, less waiting for a processor."""
        raise NotImplementedError

    def run(self, slots: Slots, code: str) -> TestResult:
        """Have the calls made; says how loading ended."""
        raise NotImplementedError


class OneProcess(Part):
    """Calls in one process, until one stops it."""

    _failed = False
    _watch: Watch | None = None

    @property
    def wait(self) -> float:
        """As in `Part`, also while it goes on."""
        return self._watch.elapsed_unqueued(_QUICK) - self.load_wait if self._watch else 0.0

    def run(self, slots: Slots, code: str) -> TestResult:
        """Load the program and make the calls; says how loading ended."""
        child = slots.take()
        with dismissed_on_error(child):
            names, arguments, entry_point = self.calls
            bounds = bounds_of(self.limits).values()
            job = marshal.dumps((code, entry_point, names, list(arguments), *bounds), 2)
            child.start(self.limits, job, may_send=1 + len(arguments))
            self._watch = watch = Watch(child)
            load, why = self._receive(child, watch)
            self.cpu_time = child.cpu_time()
            clean = why is not None or self._failed or watch.closes_cleanly()
        if why is None:
            child.dismiss()  # its end does not matter
            assert load is not None
            if clean or not load.passed:
                return load
            flooded = bool(self.replies)
            self.replies = [_FLOOD] * len(self.replies)
            return load if flooded else _FLOOD
        ended = child.end()
        self.cpu_time = max(self.cpu_time, child.used(ended))
        ending = outcome_of(child.stop or why, ended)
        if load is None:
            self.load_time, self.load_wait = self.cpu_time, watch.elapsed_unqueued(_QUICK)
            return ending
        self.times.append(max(0.0, self.cpu_time - sum(self.times)))
        self.replies.append(replace(ending, cpu_time=0.0))
        return load

    def _receive(self, child: Supervised, watch: Watch) -> tuple[TestResult | None, Stop | None]:
        """Receive replies: how loading ended, and why no more came than those that did."""
        count, limits, queued = len(self.calls.arguments), self.limits, own_queue_time()
        load: TestResult | None = None
        counted = 0.0  # seconds of CPU time up to the last lap, from which on the limit counts
        while not self._failed and (load is None or len(self.replies) < count):
            # Once for all replies, instead of waking up for each.
            watch.wait_for_close(_GATHER)
            share = 1.0 if load is None else self._share(self)
            cpu = min(share * limits.call_cpu_time, limits.run_cpu_time - counted)
            wall = share * limits.call_wall_time
            wall = min(wall, limits.run_wall_time - watch.elapsed_unqueued())
            frame = watch.frame(cpu, wall)
            if isinstance(frame, Stop):
                return load, frame
            spent = watch.lap()
            counted += spent
            came = [frame]
            if load is None:
                load, self.load_time = load_of(frame), spent
                self.load_wait = watch.elapsed_unqueued(_QUICK)
                if not load.passed:
                    return load, None
                came, spent = [], 0.0
            came += child.frames  # no more than there are calls
            child.frames.clear()
            self._keep(came, spent)
            # A call has nothing to wait for: many that sleep a little are as bad as one that sleeps long.
            waiting = len(self.replies) < count and not self._may_wait
            if waiting and watch.is_idle(_MOST_IDLE * limits.call_wall_time, queued):
                return load, Stop.WALL
        return load, None

    def _keep(self, frames: Sequence[bytes], spent: float) -> None:
        held = self._held + sum(map(len, frames))
        if self.judge is None and held <= _MOST_HELD:  # all at once
            self._held = held
            self.replies += frames
            self.times += [spent, *[0.0] * len(frames)][: len(frames)]
            return
        for frame in frames:
            if self._failed:
                return
            if self.judge is not None:
                reply: bytes | TestResult = self.judge(self.first + len(self.replies), frame)
                self._failed = self.stop and isinstance(reply, TestResult) and not reply.passed
            else:
                self._held += len(frame)
                reply = frame if self._held <= _MOST_HELD else _TOO_MUCH
                self._failed = self.stop and reply is _TOO_MUCH
            self.replies.append(reply)
            self.times.append(spent)
            spent = 0.0


class OneInput(Part):
    """One call of a whole program, in a process that ends with it; loading it is a part of the call.

    Without calls the program is only compiled.
    """

    load_time = NOTHING  # a process is never free: as many calls can be made again as of a function
    _wait = 0.0

    @property
    def wait(self) -> float:
        """As in `Part`."""
        return self._wait

    def run(self, slots: Slots, code: str) -> TestResult:
        """Run the program on the input; says whether it is Python at all."""
        inputs = self.calls.arguments
        data = input_bytes(input_of(inputs[0])) if inputs else None
        ended, frame, self._wait = run_script(slots, code, data, self._of_call())
        self.cpu_time = ended.cpu_time
        if ended.outcome is Outcome.SYNTAX_ERROR or not inputs:
            return TestResult(ended.outcome, cpu_time=ended.cpu_time, **ended.cause)
        self.times.append(ended.cpu_time)
        reply: bytes | TestResult
        if ended.passed:
            reply = RETURNED + codec.encode(ended.stdout)
        elif frame is not None and ended.outcome is not Outcome.FORBIDDEN:
            reply = frame  # it says the same
        else:
            reply = TestResult(ended.outcome, **ended.cause)
        if isinstance(reply, bytes) and self.judge is not None:
            reply = self.judge(self.first, reply)
        elif isinstance(reply, bytes) and self._held + len(reply) > _MOST_HELD:
            reply = _TOO_MUCH
        self.replies.append(reply)
        return TestResult(Outcome.PASS)

    def _of_call(self) -> Limits:
        """What the call may use. What it prints is a value that it returns."""
        limits, share = self.limits, self._share(self) if self.calls.arguments else 1.0
        return replace(
            limits,
            call_cpu_time=min(share * limits.call_cpu_time, limits.run_cpu_time),
            call_wall_time=min(share * limits.call_wall_time, limits.run_wall_time),
            output=min(limits.output, limits.result),
        )


def kind_of(calls: Calls) -> type[Part]:
    """The kind of process that makes calls: as many as it can, or one input."""
    return OneInput if calls.names == PROGRAM else OneProcess


def input_of(call: bytes) -> str:
    """Return the standard input that is the one argument of a call."""
    (text,), _ = marshal.loads(call)
    return text  # type: ignore[no-any-return]


def check_inputs(calls: Sequence[bytes]) -> None:
    """Refuse calls of a whole program that have another argument than one text, or too long a one.

    Raises:
        TypeError: An argument is no text.
        ValueError: An input is larger than 16 MiB.
    """
    for number, call in enumerate(calls, 1):
        args, kwargs = marshal.loads(call) if call[:1] == b"(" else codec.decode(call)
        if kwargs or len(args) != 1 or type(args[0]) is not str:
            raise TypeError(
                f"Expect one text, what the program reads, as the argument of call {number}, actually: {args!r:.100}"
            )
        input_bytes(args[0])
