"""Attacks that once worked: texts that cost the supervisor time, descriptors of large numbers, names that are no text."""

from __future__ import annotations

import inspect
import os
import resource
import subprocess
import sys
import time

import pytest
from attacking import LITTLE, RIGHT, TESTS

from codea1_env.sandbox import Case, Limits, Outcome, Sandbox, clocks

CHECKS = (
    "f(1) == [1]", "not f(1)", "list(f(1)) == [1]", "2.5 in f(1)", "'a' not in f(1)", "sum(f(1)) == 1",
)  # fmt: skip


def test_an_endless_range_does_not_hold_us(arena):
    for check in CHECKS:
        started = time.process_time()
        outcome = arena.outcome("def f(x): return range(10**18)", f"assert {check}", limits=LITTLE)
        assert outcome not in (Outcome.PASS, Outcome.INFRA_ERROR)
        assert time.process_time() - started < 1.0


SLOW_TO_READ = {
    "a product": "assert f(" + "*".join(["(9**300)**1000"] * 200) + ") == 1",
    "a list of lists": "assert f([[None]*100000]*160) == 1",
    "a list of strings": "assert f(['a'*100000]*700) == 1",
    "sums of strings": "assert f(" + "+".join(["'a'*99999"] * 3000) + ") == 1",
}


@pytest.mark.parametrize("name", SLOW_TO_READ)
def test_literals_that_are_larger_than_they_look(arena, name):
    limits = Limits(call_cpu_time=0.2, memory=256 << 20, calls_per_test=1)
    started = time.monotonic()
    tests = [SLOW_TO_READ[name], "assert f(1) == 2"]
    results = arena.sandbox.run_tests(RIGHT, tests, entry_point="f", limits=limits)
    assert results[0].outcome not in (Outcome.PASS, Outcome.INFRA_ERROR)
    assert results[1].outcome is Outcome.PASS
    assert time.monotonic() - started < 20.0


def test_more_than_1024_descriptors_of_ours(arena):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2000:
        pytest.skip("this process may not open enough descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2000, hard))
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
    try:
        assert arena.outcome(RIGHT) is Outcome.PASS
        assert arena.outcome("import os\ndef f(x): os._exit(0)") is Outcome.EXITED
        with Sandbox(workers=1, level=arena.level) as other:
            assert all(each.passed for each in other.run_tests(RIGHT, list(TESTS.values())))
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_repeated_keyword_is_a_syntax_error(arena):
    assert arena.outcome("def f(a): return a", "assert f(a=1, a=2) == 2") is Outcome.SYNTAX_ERROR


NAMED = """
import ctypes, time
ctypes.CDLL(None).prctl(15, b"\\xff) R 1 \\xfe", 0, 0, 0)
def f(x):
    time.sleep(60)
"""
OF_A_PROCESS = {
    name: function
    for name, function in inspect.getmembers(clocks, inspect.isfunction)
    if [*inspect.signature(function).parameters] == ["pid"] and not name.startswith("_")
}


@pytest.mark.parametrize("name", OF_A_PROCESS)
def test_what_the_kernel_tells_of_a_process_whose_name_is_no_text(name):
    command = f"{NAMED}\nprint(flush=True)\nf(1)"
    with subprocess.Popen([sys.executable, "-c", command], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.read(1)
            assert OF_A_PROCESS[name](process.pid) in (False, pytest.approx(0, abs=1 << 30))
        finally:
            process.kill()


def test_a_thread_whose_name_is_no_text(arena):
    assert arena.outcome(NAMED) is Outcome.TIMEOUT
    limits = Limits(call_wall_time=0.5)
    assert arena.sandbox.run_script(f"{NAMED}\nf(1)", limits=limits).outcome is Outcome.TIMEOUT


FROZEN = """
import os, struct, sys
P = (1 << 61) - 1
def leaf(number, size):  # tuples of one hash
    tail = [i + 1 + P * (number >> 2 * i & 3) for i in range(8)]
    return (*range(1000, 1000 + size - 8), *tail)
def of_sets(outer, inner, size):
    common = [leaf(number, size) for number in range(inner - 1)]
    return [*common, [leaf(inner + number, size) for number in range(outer)]]
def encoded(value):
    return sys.modules["inside.codec.encoding"].encode(value)
def many(items):
    return b"Z" + struct.pack("<I", len(items)) + b"".join(items)
def f(outer, inner, size):
    *common, last = of_sets(outer, inner, size)
    common = [encoded(each) for each in common]
    value = many([many([*common, encoded(each)]) for each in last])
    pipe = sys._getframe()
    while "reply_pipe" not in pipe.f_locals:
        pipe = pipe.f_back
    frame = b"t\\2\\0\\0\\0s\\2\\0\\0\\0ok" + value
    frame = struct.pack("<I", len(frame)) + frame
    while frame:
        frame = frame[os.write(pipe.f_locals["reply_pipe"], frame):]
    os._exit(0)
"""


@pytest.mark.parametrize("sizes", [(200, 50, 400), (200, 90, 200), (20, 200, 100), (200, 5, 3000)])
def test_sets_of_sets_whose_members_share_a_hash_do_not_hold_us(arena, sizes):
    limits = Limits()
    started = time.process_time()
    ends = [
        *arena.sandbox.run_cases(FROZEN, "f", [Case(sizes, {}, [1])], compare="set", limits=limits),
        *arena.sandbox.call(FROZEN, "f", [(sizes, {})], limits=limits),
        *arena.sandbox.run_tests(FROZEN, [f"assert f{sizes}"], limits=limits),
    ]
    assert time.process_time() - started < 5.0
    assert {each.outcome for each in ends} == {Outcome.OUTPUT_LIMIT}
