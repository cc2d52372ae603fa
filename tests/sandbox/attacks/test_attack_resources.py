"""Bombs: memory, descriptors, threads, files, output; bounded here so that no machine is harmed."""

from __future__ import annotations

import resource
import warnings
from functools import partial

import pytest
from attacking import LITTLE, RIGHT, TESTS

from codea1_env.sandbox import Job, Limits, Outcome, Sandbox, TestResult, encoded_arguments, examine
from codea1_env.sandbox.inside import codec

MEMORY_BOMBS = {
    "one block": "def f(x): return len(bytearray(1 << 40))",
    "a growing list": "def f(x):\n    v = []\n    while True: v.append(bytes(1 << 20))",
    "a long string": "def f(x): return len('x' * (1 << 33))",
    "a large product": "def f(x): return len([0] * (1 << 31))",
    "numpy": "import numpy\ndef f(x): return int(numpy.zeros(1 << 34).sum())",
    "at import": "v = bytearray(1 << 40)\ndef f(x): return 2",
}


def test_memory_bombs(arena):
    limits = Limits(memory=128 << 20, call_cpu_time=2.0, calls_per_test=1)
    found = arena.outcomes(MEMORY_BOMBS, limits=limits)
    assert found == dict.fromkeys(MEMORY_BOMBS, Outcome.MEMORY)


def test_a_swallowed_memory_error_is_no_pass(arena):
    code = "def f(x):\n    try: bytearray(1 << 40)\n    except MemoryError: return 5"
    assert arena.outcome(code) is Outcome.FAIL


COUNTS = {
    "descriptors": "import os\ndef act(): held.append(os.open('/dev/null', os.O_RDONLY))",
    "pipes": "import os\ndef act(): held.append(os.pipe())",
    "threads": (
        "import threading, time\nthreading.stack_size(32768)\ndef act():\n"
        "    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"
    ),
}


def counts_threads(level: str) -> bool:
    return examine(level).found["children's threads"].startswith("at most 64")


def test_what_can_be_counted_is_limited(arena, level):
    for name, act in COUNTS.items():
        code = f"""
import resource
held = []
{act}
def f():
    for count in range(400):
        try: act()
        except (OSError, RuntimeError, MemoryError): return count
    return 400
"""
        (result,) = arena.sandbox.call(code, "f", [((), {})], limits=Limits(memory=1 << 30))
        assert result.outcome is Outcome.PASS, result
        if name != "threads" or counts_threads(level):  # else the kernel counts those of all
            assert result.value < 64, name


MANY_THREADS = """
import threading, time
threading.stack_size(32768)
def f(count):
    threads = [threading.Thread(target=time.sleep, args=(1,)) for _ in range(count)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    return count
"""


@pytest.mark.parametrize("layer", ["process", "kernel", "namespaces"])
def test_threads_are_not_taken_from_a_neighbour(layer):
    """Both together have more than one may have."""
    if not counts_threads(layer):
        pytest.skip(
            "the kernel counts the threads of all programs together here: the doctor says so"
        )
    limits = Limits(memory=1 << 30, call_wall_time=20.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the weak level
        sandbox = Sandbox(workers=2, limits=limits, level=layer)
    with sandbox:
        call = partial(sandbox.call, MANY_THREADS, "f")
        futures = [sandbox.submit(call, [((50,), {})]) for _ in range(2)]
        assert [future.result()[0].value for future in futures] == [50, 50]
        (result,) = call([((64,), {})])
        assert result.message == "RuntimeError: can't start new thread"


def test_signals_that_wait_are_counted(arena):
    code = "import resource\ndef f(): return resource.getrlimit(resource.RLIMIT_SIGPENDING)[1]"
    assert arena.sandbox.call(code, "f", [((), {})])[0].value == 64


def test_a_crash_dumps_no_core(arena):
    code = (
        "import ctypes, os, resource\n"
        "def f():\n"
        "    try: resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20))\n"
        "    except (ValueError, OSError): pass\n"
        "    return resource.getrlimit(resource.RLIMIT_CORE)[0]\n"
        "def crash(): ctypes.string_at(0)"
    )
    assert arena.sandbox.call(code, "f", [((), {})])[0].value == 0
    assert arena.sandbox.call(code, "crash", [((), {})])[0].outcome is Outcome.SIGNALLED


def test_limits_cannot_be_raised(attempts):
    act = """
import resource
new = resource.RLIM_INFINITY
resource.setrlimit(resource.{0}, (new, new))
if resource.getrlimit(resource.{0})[1] != new: raise PermissionError(1, "")
"""
    limits = ("RLIMIT_AS", "RLIMIT_CPU", "RLIMIT_NOFILE", "RLIMIT_FSIZE")
    found = attempts({limit: act.format(limit) for limit in limits})
    assert set(found.values()) <= {"ValueError", "EPERM"}


def test_endless_printing(arena):
    code = "def f(x):\n    while True: print('x' * 1000)"
    assert arena.outcome(code, limits=LITTLE) is Outcome.TIMEOUT


def test_a_module_that_was_changed_is_whole_in_the_next_run(arena):
    writer = "import math, sys\nmath.floor = sys.attack = len\nsys.modules['json'] = None\ndef f(x): return x"
    reader = (
        "import math, sys, json\ndef f(x):\n"
        "    return x + 1 if math.floor(1.5) == 1 and not hasattr(sys, 'attack') else 0"
    )
    assert arena.outcome(writer) is Outcome.FAIL
    assert arena.outcome(reader) is Outcome.PASS


HOSTILE = (
    "import os\ndef f(x): os._exit(0)",
    "def f(x):\n    while True: pass",
    "def f(x):\n    v = []\n    while True: v.append(bytes(1 << 20))",
    "def f(x):\n    while True: print('x' * 1000)",
    "import os, signal\ndef f(x): os.kill(os.getpid(), signal.SIGSEGV)",
    "import os\nos.closerange(0, 64)\ndef f(x): return 2",
    "import time\ndef f(x): time.sleep(60)",
)


def test_innocent_jobs_beside_hostile_ones(arena, level):
    """Neighbours in one batch, on two workers: each innocent job gets its right verdict."""
    tests, wrong = tuple(TESTS.values()), "def f(x): return x"
    jobs = []
    for code in HOSTILE:
        jobs += [Job(code, tests, "f", LITTLE), Job(RIGHT, tests, "f"), Job(wrong, tests, "f")]
    with Sandbox(workers=2, level=level) as sandbox:
        found = [{each.outcome for each in job} for job in sandbox.run_many(jobs)]
    assert found[1::3] == [{Outcome.PASS}] * len(HOSTILE)
    assert found[2::3] == [{Outcome.FAIL}] * len(HOSTILE)
    assert not any(Outcome.PASS in outcomes for outcomes in found[::3])


def test_a_burning_test_leaves_its_neighbours_their_time(arena):
    """One test that hangs, among innocent ones of the same job."""
    code = "def f(x):\n    while x == 3: pass\n    return x + 1"
    tests = [f"assert f({x}) == {x + 1}" for x in range(6)]
    limits = Limits(call_cpu_time=0.1, calls_per_test=1)
    results = arena.sandbox.run_tests(code, tests, entry_point="f", limits=limits)
    outcomes = [result.outcome for result in results]
    assert outcomes == [Outcome.PASS] * 3 + [Outcome.TIMEOUT] + [Outcome.PASS] * 2


def test_replies_do_not_grow_the_supervisor(arena):
    """Floods and large replies end at their limits; what was read is freed."""
    limits = Limits(result=4 << 20, output=1 << 20, call_cpu_time=0.2, calls_per_test=1)
    programs = (
        "def f(x): return 'x' * (4 << 20)",
        "def f(x): return [0.5] * 400_000",
        "import os\ndef f(x):\n    while True: os.write(1, bytes(1 << 16))",
        "import os\ndef f(x):\n    while True: os.write(4, bytes([255]) * (1 << 16))",
    )
    arena.outcome(programs[1], "assert f(1) == 2", limits=limits)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(2):
        for code in programs:
            assert arena.outcome(code, "assert f(1) == 2", limits=limits) is not Outcome.PASS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40 << 10  # KiB


@pytest.mark.parametrize("ends", [False, True], ids=["in one process", "in a process each"])
def test_replies_of_a_job_are_held_within_a_bound(arena, ends):
    """In calls whose replies are bytes, and in those whose values are read."""
    code = f"import os\ndef f(x):\n    if x % 2 and {ends}: os._exit(0)\n    return bytes(24 << 20)"
    limits = Limits(call_cpu_time=10.0, run_cpu_time=100.0, run_wall_time=200.0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    calls = [encoded_arguments([x], {}) for x in range(12)]
    replies = arena.sandbox.run_calls(code, "f", calls, limits=limits).replies
    assert sum(len(reply) for reply in replies if isinstance(reply, bytes)) <= 64 << 20
    ended = {reply.outcome for reply in replies if isinstance(reply, TestResult)}
    assert ended == {Outcome.OUTPUT_LIMIT, *([Outcome.EXITED] if ends else [])}
    found = arena.sandbox.call(code, "f", [((x,), {}) for x in range(12)], limits=limits)
    assert sum(len(each.value) for each in found if each.value is not None) <= 64 << 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 << 10  # KiB


def test_what_the_codec_writes_it_reads(arena):
    """A hostile program's honest values come back as they were."""
    values = "[1, -0.0, 'a\\ud800', b'', (None,), {1: {2}}, frozenset([3]), 1j, range(3)]"
    (result,) = arena.sandbox.call(f"def f(): return {values}", "f", [((), {})])
    assert codec.encode(result.value) == codec.encode(eval(values, {}))
