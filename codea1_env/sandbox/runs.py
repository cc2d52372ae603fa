"""A run: calls of one program whose results depend on nothing but the program and these calls.

Each call is made. It gets a small share of a call's time at first, and a fresh process where the one before it has ended
the last one. What gave no answer is made again with the whole time, as long as the run can afford it. A program that may
keep something gets the whole time at first, so that no call is cut off that would have changed what it keeps.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

from .calls import Answers
from .jobs import Limits
from .outcomes import too_long
from .processes import PROGRAM, Calls, Part, kind_of, less
from .results import Limit, Outcome, TestResult
from .workers import Slots

SMALL = 0.2
"""Share of a call's time that each call gets at first."""
ALLOWANCE = 3.0
"""Times the time of a call that one run may use beside the small shares: to load its program anew, and to make calls again."""
_NO_TIME = 1e-6  # seconds: more than the processes of many inputs "cost", see `OneInput.load_time`
RAN_OUT = TestResult(
    Outcome.TIMEOUT, "the time of its run was used up when it was to be made again", limit=Limit.RUN
)
"""Reply to the first call for which no time was left, where no other call of the run ended badly: it used up the time."""
UNANSWERED = TestResult(
    Outcome.TIMEOUT,
    "it gave no answer in a small share of the time, and its run had no time left for more",
    limit=Limit.RUN,
)
"""Reply to a call of which nothing else is known."""


class RunRules(NamedTuple):
    """What the calls of a run may cost, and what a fresh process meets."""

    at_once: Collection[int] | None = None
    """Numbers of the calls that get the whole time at once. None for all."""
    allowance: float = ALLOWANCE
    """See `ALLOWANCE`. With 0 the first call that gives no answer, or ends the process, is the last one."""
    again: bool = True
    """Whether what gave no answer in a small share of the time is made again."""
    keeps: bool = False
    """Whether the program may keep something from call to call: it gets the whole time at first, as long as it can afford it."""


DEFAULT_RULES = RunRules()


def answer_run(
    slots: Slots, code: str, calls: Calls, limits: Limits, rules: RunRules = DEFAULT_RULES
) -> Answers:
    """Load a program and make all calls of a run.

    Args:
        slots: Where the processes come from.
        code: Program text.
        calls: What is called.
        limits: Those of one call are what a call may use in the end; those of a run hold for each of its processes.
        rules: See `RunRules`.

    Returns:
        A reply to each call: the frame that came, how its process ended, a TIMEOUT, or `UNANSWERED`. If the program does
        not load, how loading ended stands for all of them.
    """
    why = too_long(code)
    if why is not None:
        return Answers(why, [why] * len(calls.arguments))
    run = _Answering(slots, code, calls, limits, rules)
    run.make_all()
    for number in run.late if rules.again else ():
        run.make_again(number)
    if rules.again and rules.allowance:
        run.end()
    assert run.load is not None
    return Answers(run.load, run.replies, run.used, (), run.load_time, run.stayed_in_shares())


class _Answering:
    """What is known of a run, and what it has cost so far."""

    def __init__(
        self, slots: Slots, code: str, calls: Calls, limits: Limits, rules: RunRules
    ) -> None:
        self._slots = slots
        self._code = code
        self._calls = calls
        self._limits = limits
        self._is_whole = calls.names == PROGRAM
        self._at_once = rules.at_once
        self._keeps = rules.keeps
        self._allowance = rules.allowance * limits.call_cpu_time
        self._is_bounded = 0 < self._allowance < math.inf
        self._spent = self._beyond = 0.0
        self._held = 0
        self._ran_out = False
        self._whole = limits.call_cpu_time
        self._share = 1.0
        self.load: TestResult | None = None
        self.load_time = self._load_cost = self.used = 0.0
        self.replies: list[bytes | TestResult] = [UNANSWERED] * len(calls.arguments)
        self.late: list[int] = []

    def make_all(self) -> None:
        """Make each call once, in order."""
        count, done = len(self.replies), 0
        while self.load is None or (done < count and self._goes_on(done)):
            part = self._run(range(done, count))
            self._spent += self._beyond
            for reply in part.replies:
                self._enter(done, reply, part)
                done += 1

    def _goes_on(self, done: int) -> bool:
        """Whether there is a process for the next call. Each input of a whole program has its own; only time can run out."""
        last = self.replies[done - 1] if done else UNANSWERED
        is_late = isinstance(last, TestResult) and last.outcome is Outcome.TIMEOUT
        return (self._is_whole and not is_late) or self._can_afford(self._load_cost)

    def make_again(self, number: int) -> None:
        """Make one call again, with the whole time."""
        if self._can_afford(self._load_cost + self._whole):
            part = self._run([number], whole=True)
            self._enter(number, part.replies[0], part)
            if isinstance(part.replies[0], bytes):
                cost = max(sum(part.times), self._waited(part.wait))
                self._spent += max(0.0, cost - SMALL * self._whole)

    def end(self) -> None:
        """Say which call used up the time, so that nobody fails several calls of which none counts."""
        left = [number for number in self.late if self.replies[number] is UNANSWERED]
        if left and all(isinstance(reply, bytes) or reply is UNANSWERED for reply in self.replies):
            self.replies[left[0]] = RAN_OUT

    def stayed_in_shares(self) -> bool:
        """Whether no call took time that another one could have used."""
        return self._spent < _NO_TIME and all(isinstance(reply, bytes) for reply in self.replies)

    def _can_afford(self, seconds: float) -> bool:
        return self._allowance > 0 and self._spent + seconds <= self._allowance

    def _run(self, numbers: Sequence[int], *, whole: bool = False) -> Part:
        """Load the program and make calls, in small shares or with the whole time."""

        def share_of(part: Part) -> float:
            number = numbers[len(part.replies)]
            self._share = 1.0 if whole else self._share_of(number, part, numbers)
            return self._share

        self._beyond = 0.0
        calls = self._calls.of(numbers)
        part = kind_of(calls)(
            calls, self._limits, None, 0, self._held, stop=False, share=share_of,
            may_wait=self._is_bounded and self._at_once is not None,
        )  # fmt: skip
        loaded = part.run(self._slots, self._code)
        if self.load is None:
            self.load, self.load_time, self._load_cost = loaded, part.load_time, self._cost_of(part)
        else:
            self._spent += self._cost_of(part)
        self.used += part.cpu_time
        if self._is_whole:
            self._limits = less(self._limits, part.cpu_time, part.wait)
        if not loaded.passed:
            part.replies = [loaded] * len(numbers)
        self._held += sum([len(each) for each in part.replies if isinstance(each, bytes)])
        return part

    def _cost_of(self, part: Part) -> float:
        """Cost of loading. A program that sleeps uses no CPU time, but keeps its worker."""
        return max(part.load_time, self._waited(part.load_wait))

    def _waited(self, seconds: float) -> float:
        """Cost of waiting: a share of a call's wall-clock time costs the same share of its CPU time."""
        return seconds * self._whole / self._limits.call_wall_time

    def _beyond_shares(self, numbers: Sequence[int], part: Part) -> float:
        """Cost of the calls so far beyond their shares: the small one, or the whole time where the reference is slow."""
        free = self._at_once
        if free is None or not part.replies or not self._is_bounded:
            return 0.0
        made = numbers[: len(part.replies)]
        shares = [self._whole * (1.0 if number in free else SMALL) for number in made]
        computed = sum(map(max, zip(shares, part.times, strict=False)))
        return max(0.0, max(computed, self._waited(part.wait)) - sum(shares))

    def _share_of(self, number: int, part: Part, numbers: Sequence[int]) -> float:
        """Share of a call's time. One call of a process at most reaches its limit."""
        load_cost = self._cost_of(part)
        self._beyond = self._beyond_shares(numbers, part)
        cost = load_cost + self._beyond + self._whole
        if self._spent and not self._can_afford(cost):
            return SMALL
        # Where a small share for each would not leave time for two calls with the whole: two that loop are always paid.
        needed = load_cost * (len(self.replies) + 1) + 2 * self._whole
        eager = self._keeps or 0 < self._allowance < needed
        if self._at_once is None or number in self._at_once:
            return 1.0
        return 1.0 if eager and self._can_afford(cost) else SMALL

    def _enter(self, number: int, reply: bytes | TestResult, part: Part) -> None:
        last = reply is part.replies[-1]
        if isinstance(reply, TestResult) and part.times and last:
            late = reply.outcome is Outcome.TIMEOUT
            if late and self._share < 1:
                self.late.append(number)
                self._slots.worker.ran_out = self._ran_out
                return
            if self._share == 1:
                self._ran_out |= late
                self._spent += self._whole if late else part.times[-1]
        self.replies[number] = reply
