"""Programs that read standard input and print, as in APPS and LiveCodeBench."""

from __future__ import annotations

import contextlib

from .endings import Outcome
from .inside import codec
from .limits import Limits
from .outcomes import Stop, load_of, outcome_of
from .results import ScriptResult, cause_of
from .slots import Slots
from .value_mode import job_frame
from .watch import Watch
from .worker import WorkerDiedError


def run_script(slots: Slots, code: str, stdin: bytes, limits: Limits) -> ScriptResult:
    """Run a program once.

    Args:
        slots: Where the process comes from.
        code: Program text.
        stdin: What it reads.
        limits: The limits of one call are for the whole program.
    """
    try:
        job = job_frame(code, None, limits, stdin=stdin)
    except codec.SizeError:
        return ScriptResult(Outcome.SYNTAX_ERROR, message="the program is too large")
    child = slots.take(with_test=False).without_test()
    child.keep_output(is_answer=True)
    try:
        child.start(limits, job, may_send=1)
        watch = Watch(child)
        frame = watch.frame(child, limits.call_cpu_time, limits.call_wall_time)
        stop = frame if isinstance(frame, Stop) else None
        if stop is None and not watch.closes_cleanly(child):
            stop = Stop.FLOOD
        child.read_all_output()
        if child.stop is Stop.OUTPUT:
            stop = Stop.OUTPUT
        spent = watch.lap()
    except BaseException:
        with contextlib.suppress(WorkerDiedError):
            child.dismiss()
        raise
    ended = child.end()
    stdout, stderr = child.printed()
    if stop is not None:
        if stop is Stop.CLOSED:  # `end` knows whether the process had ended, too
            stop = child.stop or stop
        why = outcome_of(stop, ended, limits)
        cpu_time = max(spent, child.used(ended))
        return ScriptResult(why.outcome, stdout, cpu_time=cpu_time, stderr=stderr, **cause_of(why))
    assert not isinstance(frame, Stop)
    why = load_of(frame)
    return ScriptResult(why.outcome, stdout, cpu_time=spent, stderr=stderr, **cause_of(why))
