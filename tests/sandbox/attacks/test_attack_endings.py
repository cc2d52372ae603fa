"""Programs that end, crash or stop their process instead of answering: never a pass."""

from __future__ import annotations

import time

import pytest
from attacking import TESTS

from codea1_env.sandbox import Job, Limits, Outcome

LEAVING = {
    "exit at import": "import sys\nsys.exit(0)",
    "SystemExit at import": "raise SystemExit",
    "exit in the call": "import sys\ndef f(x): sys.exit(0)",
    "SystemExit in the call": "def f(x): raise SystemExit(0)",
    "_exit at import": "import os\nos._exit(0)",
    "_exit in the call": "import os\ndef f(x): os._exit(0)",
    "posix": "import posix\ndef f(x): posix._exit(0)",
    "_exit through ctypes": "import ctypes\ndef f(x): ctypes.CDLL(None)._exit(0)",
    "a thread": (
        "import os, threading, time\n"
        "def f(x):\n    threading.Thread(target=os._exit, args=(0,)).start()\n    time.sleep(5)"
    ),
    "own exit status of a lost peer": "import os\ndef f(x): os._exit(71)",
    "a destructor": (
        "import os\nclass Bomb:\n    def __del__(self): os._exit(0)\ndef f(x):\n    Bomb()\n    return 2"
    ),
    "an exception's text": (
        "import os\nclass Bomb(Exception):\n    def __str__(self): os._exit(0)\n"
        "def f(x): raise Bomb"
    ),
}


def test_leaving_is_exited(arena):
    expected = dict.fromkeys(LEAVING, Outcome.EXITED)
    assert arena.outcomes(LEAVING) == expected


HOOKS = {
    "atexit": "import atexit, os\natexit.register(os._exit, 0)\ndef f(x): return 5",
    "excepthook": (
        "import os, sys\nsys.excepthook = sys.unraisablehook = lambda *a: os._exit(0)\n"
        "def f(x): return 5"
    ),
    "threading.excepthook": (
        "import os, threading\nthreading.excepthook = lambda *a: os._exit(0)\ndef f(x): return 5"
    ),
    "a finalizer": (
        "import os, weakref\nclass C: pass\nc = C()\nweakref.finalize(c, os._exit, 0)\n"
        "def f(x): return 5"
    ),
}


def test_hooks_at_the_end_change_nothing(arena):
    assert arena.outcomes(HOOKS) == dict.fromkeys(HOOKS, Outcome.FAIL)


def test_excepthook_is_not_reached_by_an_exception(arena):
    code = "import os, sys\nsys.excepthook = lambda *a: os._exit(0)\ndef f(x): raise KeyError(x)"
    assert arena.one(code) == (Outcome.ERROR, "KeyError: 1")


CRASHES = {
    "SIGTERM": "import os, signal\ndef f(x): os.kill(os.getpid(), signal.SIGTERM)",
    "SIGABRT": "import os\ndef f(x): os.abort()",
    "a real-time signal": "import os\ndef f(x): os.kill(os.getpid(), 40)",
    "raise_signal": "import signal\ndef f(x): signal.raise_signal(signal.SIGUSR1)",
    "a null pointer": "import ctypes\ndef f(x): ctypes.string_at(0)",
    "stack overflow": (
        # Not `repr` of nested lists: it looks for each list among those around it, and may time out.
        "def f(x):\n    v = ()\n    for _ in range(300_000): v = (v,)\n    return hash(v)"
    ),
    "a crash at import": "import ctypes\nctypes.string_at(0)",
}


def test_crashing_is_signalled(arena):
    assert arena.outcomes(CRASHES) == dict.fromkeys(CRASHES, Outcome.SIGNALLED)


def test_a_broken_pipe_is_an_exception_as_in_plain_python(arena):
    code = (
        "import os\ndef f(x):\n    read, write = os.pipe()\n    os.close(read)\n"
        "    os.write(write, b'x')"
    )
    outcome, message = arena.one(code)
    assert outcome is Outcome.ERROR
    assert message.startswith("BrokenPipeError")


@pytest.mark.parametrize("number", ["SIGKILL", "SIGSTOP"])
@pytest.mark.parametrize("way", ["os.kill(os.getpid(), n)", "signal.raise_signal(n)", "pidfd(n)"])
def test_nobody_kills_or_stops_itself(arena, number, way):
    """Whoever dies of such a signal was killed from outside, which is no fault of the program."""
    code = (
        f"import os, signal\nn = signal.{number}\n"
        "def pidfd(n): signal.pidfd_send_signal(os.pidfd_open(os.getpid()), n)\n"
        f"def f(x): {way}"
    )
    outcome, message = arena.one(code)
    assert (outcome, message.partition(":")[0]) == (Outcome.ERROR, "PermissionError")


@pytest.mark.parametrize(
    "way", ["setrlimit(resource.RLIMIT_CPU, (1, 1))", "prlimit(0, resource.RLIMIT_CPU, (1, 1))"]
)
def test_nobody_has_the_kernel_kill_it(arena, way):
    """Below the sandbox's own limit a kill would look as if it came from outside, and raise InfraError."""
    act = f"import resource\nresource.{way}\nwhile True: pass"
    code = "def f(x):\n    " + act.replace("\n", "\n    ")
    limits = Limits(call_cpu_time=2.0, calls_per_test=1)
    refused = ("ValueError", "PermissionError")
    for outcome, message in (
        arena.one(code, limits=limits),
        arena.one(
            "def f(x): return x",
            f"for x in [f(1)]:\n    {act.splitlines()[0]}; {act.splitlines()[1]}",
        ),
    ):
        assert outcome is Outcome.ERROR
        assert message.startswith(refused)
    script = arena.sandbox.run_script(act, limits=limits)
    assert (script.outcome, script.message.startswith(refused)) == (Outcome.ERROR, True)
    readable = "import resource\ndef f(x): return len(resource.getrlimit(resource.RLIMIT_CPU))"
    assert arena.outcome(readable, "assert f(1) == 2") is Outcome.PASS


@pytest.mark.parametrize("number", ["SIGTSTP", "SIGTTIN", "SIGTTOU"])
def test_signals_of_a_terminal_stop_nobody(arena, number):
    code = f"import os, signal\ndef f(x):\n    os.kill(os.getpid(), signal.{number})\n    return x"
    assert arena.outcome(code, "assert f(1) == 1") is Outcome.PASS


SPINNING = {
    "swallows everything": (
        "def f(x):\n    while True:\n        try:\n            while True: pass\n"
        "        except BaseException: pass"
    ),
    "ignores signals": (
        "import signal\nfor n in range(1, 65):\n"
        "    try: signal.signal(n, signal.SIG_IGN)\n    except (OSError, ValueError): pass\n"
        "signal.alarm(0)\nsignal.setitimer(signal.ITIMER_REAL, 0)\n"
        "def f(x):\n    while True: pass"
    ),
    "blocks signals": (
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n"
        "def f(x):\n    while True: pass"
    ),
    "one endless C call": "def f(x): return sum(iter(int, 1))",
    "regular expression": "import re\ndef f(x): return re.match('(a+)+$', 'a' * 60 + 'b')",
    "faked clocks": (
        "import time\nfor n in ('time', 'monotonic', 'perf_counter', 'process_time', 'sleep'):\n"
        "    setattr(time, n, lambda *a: 0.0)\ndef f(x):\n    while True: pass"
    ),
    "other threads": (
        "import threading\ndef spin():\n    while True: pass\n"
        "def f(x):\n    threading.Thread(target=spin, daemon=True).start()\n    spin()"
    ),
    "at import": "while True: pass",
    "in a destructor": (
        "class C:\n    def __del__(self):\n        while True: pass\ndef f(x):\n    C()\n    return 2"
    ),
}


def test_spinning_is_a_timeout(arena):
    limits = Limits(call_cpu_time=0.1, calls_per_test=1)
    expected = (Outcome.TIMEOUT, "the CPU time limit was reached")
    found = {name: arena.one(code, limits=limits) for name, code in SPINNING.items()}
    assert found == dict.fromkeys(SPINNING, expected)


WAITING = {
    "sleep": "import time\ndef f(x): time.sleep(60)",
    "deadlock": "import threading\nlock = threading.Lock()\ndef f(x):\n    lock.acquire()\n    lock.acquire()",
    "waits for a signal": "import signal\ndef f(x): signal.pause()",
    "reads an empty pipe": "import os\nr, w = os.pipe()\ndef f(x): return os.read(r, 1)",
    "joins itself": "import threading, queue\ndef f(x): return queue.Queue().get()",
    "at import": "import time\ntime.sleep(60)",
}


def test_waiting_is_a_timeout(arena):
    limits = Limits(call_wall_time=0.2, calls_per_test=1)
    expected = (Outcome.TIMEOUT, "the wall-clock limit was reached")
    found = {name: arena.one(code, limits=limits) for name, code in WAITING.items()}
    assert found == dict.fromkeys(WAITING, expected)


def test_reading_stdin_meets_its_end(arena):
    assert arena.one("def f(x): return input()")[0] is Outcome.ERROR


@pytest.mark.parametrize("value", [2, 3])
def test_threads_that_go_on_neither_delay_nor_change_a_verdict(arena, value):
    code = (
        "import threading, time\n"
        f"def f(x):\n    threading.Thread(target=time.sleep, args=(60,)).start()\n    return {value}"
    )
    started = time.monotonic()
    assert arena.outcome(code) is (Outcome.PASS if value == 2 else Outcome.FAIL)
    assert time.monotonic() - started < 20.0


def test_cpu_time_is_measured_from_outside(arena):
    code = (
        "import time\nclock = time.process_time\ntime.process_time = time.time = lambda: 0.0\n"
        "def f(x):\n    end = clock() + 0.2\n    while clock() < end: pass\n    return x + 1"
    )
    job = arena.sandbox.judge(Job(code, list(TESTS.values()), entry_point="f"))
    assert [result.outcome for result in job.tests] == [Outcome.PASS] * 2
    # On a busy machine, the call may begin before the time of loading is read.
    for result in job.tests:
        assert 0.2 <= job.load.cpu_time + result.cpu_time < 0.8


def test_a_crash_keeps_the_verdicts_before_and_after(arena):
    code = "import os\ndef f(x):\n    if x == 2: os._exit(0)\n    return x + 1"
    tests = [f"assert f({x}) == {x + 1}" for x in range(5)]
    results = arena.sandbox.run_tests(code, tests, entry_point="f")
    found = [result.outcome for result in results]
    assert found == [Outcome.PASS, Outcome.PASS, Outcome.EXITED, Outcome.PASS, Outcome.PASS]
