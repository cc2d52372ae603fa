"""Programs that read standard input and print: they run whole, as `__main__`."""

from __future__ import annotations

from typing import NamedTuple

from .inside import codec
from .inside.confine.privileges import MAX_INPUT as MAX_INPUT
from .jobs import Limits
from .outcomes import Stop, bounds_of, load_of, outcome_of
from .results import Outcome, ScriptResult, TestResult
from .supervise import dismissed_on_error
from .watch import Watch
from .workers import Slots


def input_bytes(text: str) -> bytes:
    """Encode standard input; a ValueError if it is too large."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > MAX_INPUT:
        raise ValueError(
            f"Expect standard input of at most {MAX_INPUT} bytes, actually: {len(data)}"
        )
    return data


class ScriptRun(NamedTuple):
    """One run of a program."""

    result: ScriptResult
    frame: bytes | None = None
    """What its process said of its end, if it said anything. A hostile program can make it say anything."""
    wait: float = 0.0
    """Seconds of wall-clock time, less waiting for a processor."""


def run_script(slots: Slots, code: str, stdin: bytes | None, limits: Limits) -> ScriptRun:
    """Run a program once; without standard input it is only compiled."""
    try:
        job = codec.encode({"code": code, "stdin": stdin, **bounds_of(limits)})
    except codec.SizeError:
        return ScriptRun(ScriptResult(Outcome.SYNTAX_ERROR, message="the program is too large"))
    child = slots.take()
    child.keep_output()
    with dismissed_on_error(child):
        child.start(limits, job, may_send=1)
        watch = Watch(child)
        frame = watch.frame(limits.call_cpu_time, limits.call_wall_time)
        stop = frame if isinstance(frame, Stop) else None
        if stop is None and not watch.closes_cleanly():
            stop = Stop.FLOOD
        child.read_all_output()
        if child.stop is Stop.OUTPUT:
            stop = Stop.OUTPUT
        spent, wait = watch.lap(), watch.elapsed_unqueued()
    ended = child.end()
    stdout, stderr = child.printed()
    if stop is not None:
        if stop is Stop.CLOSED:  # `end` knows whether the process had ended, too
            stop = child.stop or stop
        why = outcome_of(stop, ended)
        if why.outcome is Outcome.EXITED and stop is Stop.CLOSED and not ended.code:
            why = TestResult(Outcome.PASS)  # `os._exit(0)`: what it printed is compared elsewhere
        spent = max(spent, child.used(ended))
    else:
        assert not isinstance(frame, Stop)
        why = load_of(frame)
    result = ScriptResult(why.outcome, cpu_time=spent, stdout=stdout, stderr=stderr, **why.cause)
    return ScriptRun(result, None if stop is not None else frame, wait)  # type: ignore[arg-type]
