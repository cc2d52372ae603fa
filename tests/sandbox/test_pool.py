"""The pool: many threads, many jobs, dying workers, closing, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest
from processes import children, descendants, environment, parents, until, workers

from codea1_env.sandbox import (
    Job,
    Limits,
    Outcome,
    Sandbox,
    SandboxError,
    default_sandbox,
)

DOUBLE = "def f(x): return 2 * x"
VALUE, PROGRAM = "assert f(3) == 6", "for x in [3]:\n    assert f(x) == 2 * x"
SLOW = "import time\ndef f(x):\n    time.sleep(0.25)\n    return 2 * x"


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def kill_workers() -> None:
    for pid in workers():
        os.kill(pid, signal.SIGKILL)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Every test here closes what it opens: processes, descriptors and threads."""
    before = (children(), descriptors(), threading.active_count())
    yield
    assert until(lambda: children() <= before[0])
    assert descriptors() <= before[1]
    assert until(lambda: threading.active_count() <= before[2])


def test_workers_work_at_the_same_time() -> None:
    jobs = [Job(SLOW.replace("0.25", "1"), [VALUE])] * 4
    with Sandbox(workers=4) as sandbox:
        sandbox.run_many([Job(DOUBLE, [VALUE])] * 4)
        started = time.monotonic()
        sandbox.run_many(jobs)
        assert time.monotonic() - started < 3.9  # one after the other: more than 4


def test_many_threads_share_a_sandbox() -> None:
    def work(number: int) -> list[object]:
        code = f"def f(x): return x + {number}"
        tests = [f"assert f(1) == {number + 1}", f"for x in [1]: assert f(x) == {number}"]
        found = [result.outcome for result in sandbox.run_tests(code, tests)]
        return [*found, sandbox.call(code, "f", [((5,), {})])[0].value]

    with Sandbox(workers=2) as sandbox, ThreadPoolExecutor(8) as threads:
        for number, found in enumerate(threads.map(work, range(24))):
            assert found == [Outcome.PASS, Outcome.FAIL, number + 5]


def test_no_jobs_no_tests_no_calls_no_processes() -> None:
    before = children()
    with Sandbox() as sandbox:
        assert sandbox.run_many([]) == []
        assert children() == before
        assert sandbox.run_tests(DOUBLE, []) == []
        assert sandbox.call(DOUBLE, "f", []) == []


def test_processes_and_descriptors_do_not_grow() -> None:
    with Sandbox(workers=2) as sandbox:
        jobs = [Job(DOUBLE, [VALUE, PROGRAM]), Job("def f(x): raise SystemExit", [VALUE, PROGRAM])]
        sandbox.run_many(jobs * 5)
        before = (len(children()), descriptors(), threading.active_count())
        sandbox.run_many(jobs * 15)
        assert (len(children()), descriptors(), threading.active_count()) == before


def test_closing_ends_everything_and_can_be_repeated() -> None:
    before = children()
    sandbox = Sandbox(workers=2)
    sandbox.run_many([Job(DOUBLE, [VALUE])] * 4)
    assert children() != before
    sandbox.close()
    assert children() == before
    sandbox.close()
    for use in (
        lambda: sandbox.run_tests(DOUBLE, [VALUE]),
        lambda: sandbox.submit(sandbox.judge, Job(DOUBLE)),
        lambda: sandbox.call(DOUBLE, "f", []),
        lambda: sandbox.run_many([Job(DOUBLE)]),
        lambda: sandbox.analyse(descriptors),
    ):
        with pytest.raises(SandboxError, match="open"):
            use()


def test_closing_finishes_what_has_begun_and_cancels_the_rest() -> None:
    sandbox = Sandbox()
    sandbox.run_tests(DOUBLE, [VALUE])
    futures = [
        sandbox.submit(sandbox.judge, Job(SLOW.replace("0.25", "1"), [VALUE])) for _ in range(4)
    ]
    time.sleep(0.4)  # one runs, and takes longer; another one waits for its worker
    sandbox.close()
    for future in futures[:2]:
        assert future.result().tests[0].outcome is Outcome.PASS
    for future in futures[2:]:
        with pytest.raises((CancelledError, SandboxError)):
            future.result()


def test_a_worker_killed_while_idle() -> None:
    with Sandbox() as sandbox:
        for _ in range(3):
            assert sandbox.run_tests(DOUBLE, [VALUE, PROGRAM])[1].outcome is Outcome.PASS
            kill_workers()
            time.sleep(0.05)


SLEEPS = Job("import time\ndef f(x): time.sleep(60)", [VALUE])


@pytest.mark.parametrize("jobs", [1, 50])
def test_an_interrupt_ends_a_batch_and_leaves_the_sandbox_usable(jobs: int) -> None:
    with Sandbox(limits=Limits(call_wall_time=0.5)) as sandbox:
        sandbox.run_tests(DOUBLE, [VALUE])
        timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        started = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            sandbox.run_many([SLEEPS] * jobs)
        timer.join()
        assert time.monotonic() - started < 15.0  # all of them: 25
        assert sandbox.run_tests(DOUBLE, [VALUE, PROGRAM])[1].outcome is Outcome.PASS


def test_the_default_sandbox_is_shared_and_made_anew_after_closing() -> None:
    first = default_sandbox()
    assert default_sandbox() is first
    assert first.workers == len(os.sched_getaffinity(0))
    assert first.run_tests(DOUBLE, [VALUE])[0].outcome is Outcome.PASS
    first.close()
    second = default_sandbox()
    assert second is not first
    assert second.run_tests(DOUBLE, [VALUE])[0].outcome is Outcome.PASS
    second.close()


SCRIPT = """
import os, sys
from codea1_env.sandbox import default_sandbox
def judged(sandbox, test): return sandbox.run_tests("def f(x): return x", [test])[0].outcome.value
sandbox = default_sandbox()
print(judged(sandbox, "assert f(1) == 1"), flush=True)
if os.fork() == 0:
    other = default_sandbox()
    print(other is sandbox, judged(other, "assert f(1) == 1"), flush=True)
    sys.exit()
os.wait()
print(judged(sandbox, "assert f(1) == 2"), flush=True)
"""


def test_the_default_sandbox_is_closed_at_exit_also_that_of_a_forked_process() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True, env=environment()
    )
    seen: set[int] = set()
    while process.poll() is None:
        seen |= descendants(process.pid)
        time.sleep(0.02)
    assert process.communicate()[0] == "pass\nFalse pass\nfail\n"
    assert len(seen) > 2
    assert until(lambda: not seen & parents().keys())
