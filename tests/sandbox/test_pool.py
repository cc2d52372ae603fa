"""The pool: many threads, many jobs, dying workers, closing, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path

import pytest

from codea1_env.sandbox import (
    InfraError,
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


def children(pid: int | str = "self") -> list[int]:
    """Direct children of all threads of a process."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [int(word) for word in (task / "children").read_text().split()]
    return found


def lives(pid: int) -> bool:
    """Whether a process is there and has not ended; also for one that hides most of /proc/PID from us."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "XZ"
    except OSError:
        return False


def is_worker(pid: int) -> bool:
    return b"zygote" in Path(f"/proc/{pid}/cmdline").read_bytes()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def wait_until(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def kill_workers() -> int:
    workers = [pid for pid in children() if is_worker(pid)]
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    return len(workers)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Every test here closes what it opens: processes, descriptors and threads."""
    before = (set(children()), descriptors(), threading.active_count())
    yield
    assert wait_until(lambda: set(children()) <= before[0])
    assert descriptors() <= before[1]
    assert wait_until(lambda: threading.active_count() <= before[2])


def test_workers_work_at_the_same_time() -> None:
    jobs = [Job(SLOW.replace("0.25", "1"), [VALUE])] * 4
    with Sandbox(workers=4) as sandbox:
        sandbox.run_many([Job(DOUBLE, [VALUE])] * 4)
        started = time.monotonic()
        sandbox.run_many(jobs)
        assert time.monotonic() - started < 3.9  # one after the other: more than 4


def test_many_threads_share_a_sandbox() -> None:
    def work(number: int) -> list[Outcome]:
        code = f"def f(x): return x + {number}"
        tests = [f"assert f(1) == {number + 1}", f"for x in [1]: assert f(x) == {number}"]
        found = [result.outcome for result in sandbox.run_tests(code, tests)]
        found.append(
            Outcome.PASS
            if sandbox.call(code, "f", [((5,), {})])[0].value == number + 5
            else Outcome.FAIL
        )
        return found

    with Sandbox(workers=2) as sandbox, ThreadPoolExecutor(8) as threads:
        for found in threads.map(work, range(24)):
            assert found == [Outcome.PASS, Outcome.FAIL, Outcome.PASS]


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
        lambda: sandbox.submit(Job(DOUBLE)),
        lambda: sandbox.call(DOUBLE, "f", []),
        lambda: sandbox.run_many([Job(DOUBLE)]),
        lambda: sandbox.analyse(descriptors),
    ):
        with pytest.raises(SandboxError, match="open"):
            use()


def test_closing_finishes_what_has_begun_and_cancels_the_rest() -> None:
    sandbox = Sandbox()
    sandbox.run_tests(DOUBLE, [VALUE])
    futures = [sandbox.submit(Job(SLOW.replace("0.25", "1.5"), [VALUE])) for _ in range(4)]
    time.sleep(0.5)  # one runs, and takes longer; another one waits for its worker
    sandbox.close()
    for future in futures[:2]:
        assert future.result().tests[0].outcome is Outcome.PASS
    for future in futures[2:]:
        with pytest.raises((CancelledError, SandboxError)):
            future.result()


@pytest.mark.parametrize("tests", [[VALUE] * 2, [PROGRAM] * 2], ids=["value", "program"])
def test_a_killed_worker_is_replaced_and_its_job_done_again(tests: list[str]) -> None:
    with Sandbox(workers=2) as sandbox:
        sandbox.run_tests(DOUBLE, [VALUE])
        futures = [sandbox.submit(Job(SLOW, tests)) for _ in range(3)]
        time.sleep(0.35)
        assert kill_workers() >= 1
        for future in futures:
            assert [test.outcome for test in future.result().tests] == [Outcome.PASS] * 2


def test_a_worker_killed_while_idle() -> None:
    with Sandbox() as sandbox:
        for _ in range(3):
            assert sandbox.run_tests(DOUBLE, [VALUE, PROGRAM])[1].outcome is Outcome.PASS
            kill_workers()
            time.sleep(0.05)


def test_what_a_killed_worker_had_forked_ends_with_it() -> None:
    with Sandbox() as sandbox:
        sandbox.run_tests(DOUBLE, [VALUE])  # the worker has started, and its own tries have ended
        future = sandbox.submit(Job(SLOW, [VALUE]))
        time.sleep(0.1)
        (worker,) = [pid for pid in children() if is_worker(pid)]
        forked = [
            *children(worker),
            *(pid for child in children(worker) for pid in children(child)),
        ]
        assert forked
        os.kill(worker, signal.SIGKILL)
        assert wait_until(lambda: not any(map(lives, forked)))
        assert future.result().tests[0].outcome is Outcome.PASS


def test_a_job_that_never_can_be_done_is_an_infra_error() -> None:
    with Sandbox() as sandbox:
        sandbox.run_tests(DOUBLE, [VALUE])
        stop = threading.Event()

        def killer() -> None:
            while not stop.is_set():
                kill_workers()
                time.sleep(0.02)

        thread = threading.Thread(target=killer)
        thread.start()
        try:
            with pytest.raises(InfraError, match="3 times"):
                sandbox.run_tests(SLOW, [VALUE])
            with pytest.raises(InfraError):
                sandbox.run_many([Job(SLOW, [VALUE])])
        finally:
            stop.set()
            thread.join()
        assert sandbox.run_tests(SLOW, [VALUE])[0].outcome is Outcome.PASS


def test_an_interrupt_leaves_the_sandbox_usable() -> None:
    with Sandbox() as sandbox:
        sandbox.run_tests(DOUBLE, [VALUE])
        timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            sandbox.run_tests("import time\ndef f(x): time.sleep(60)", [VALUE])
        timer.join()
        assert sandbox.run_tests(DOUBLE, [VALUE, PROGRAM])[1].outcome is Outcome.PASS


def test_an_interrupted_batch_does_not_run_to_its_end() -> None:
    with Sandbox(limits=Limits(call_wall_time=0.5)) as sandbox:
        sandbox.run_tests(DOUBLE, [VALUE])
        timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        started = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            sandbox.run_many([Job("import time\ndef f(x): time.sleep(60)", [VALUE])] * 50)
        timer.join()
        assert time.monotonic() - started < 15.0  # all of them: 25
        assert sandbox.run_tests(DOUBLE, [VALUE])[0].outcome is Outcome.PASS


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
from codea1_env.sandbox import Job, Sandbox, default_sandbox
sandbox = default_sandbox()
print(sandbox.run_tests("def f(x): return x", ["assert f(1) == 1"])[0].outcome.value, flush=True)
if sys.argv[1] == "fork":
    if os.fork() == 0:
        other = default_sandbox()
        print(other is sandbox, other.run_tests("def f(x): return x", ["assert f(1) == 1"])[0].outcome.value, flush=True)
        sys.exit()
    os.wait()
    print(sandbox.run_tests("def f(x): return x", ["assert f(1) == 2"])[0].outcome.value, flush=True)
if sys.argv[1] == "killed":
    sandbox.submit(Job("import time\\ndef f(x): time.sleep(60)", ["assert f(1) == 1"]))
    import time; time.sleep(0.3)
    os.kill(os.getpid(), 9)
"""


def descendants_by_group(script: str) -> tuple[str, list[int]]:
    """What a script prints, and which of its descendants live on after it."""
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, script], stdout=subprocess.PIPE, text=True
    )
    seen: set[int] = set()
    while process.poll() is None:
        parents = [process.pid]
        while parents:
            try:
                found = children(parents.pop())
            except OSError:
                continue
            parents += found
            seen |= set(found)
        time.sleep(0.02)
    assert process.stdout is not None
    with process.stdout:
        output = process.stdout.read()

    def alive() -> list[int]:
        return list(filter(lives, seen))

    wait_until(lambda: not alive())
    return output, alive()


def test_the_default_sandbox_is_closed_at_exit() -> None:
    assert descendants_by_group("exit") == ("pass\n", [])


def test_a_forked_process_gets_its_own_default_sandbox() -> None:
    assert descendants_by_group("fork") == ("pass\nFalse pass\nfail\n", [])


def test_no_orphan_remains_when_the_supervisor_is_killed() -> None:
    assert descendants_by_group("killed") == ("pass\n", [])
