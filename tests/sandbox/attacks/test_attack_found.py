"""Attacks that once worked: texts that cost the supervisor time, descriptors of large numbers."""

from __future__ import annotations

import os
import resource
import time

import pytest
from attacking import RIGHT, TESTS

from codea1_env.sandbox import Limits, Outcome, Sandbox

CHECKS = (
    "f(1) == [1]", "not f(1)", "list(f(1)) == [1]", "2.5 in f(1)", "'a' not in f(1)", "sum(f(1)) == 1",
)  # fmt: skip


def test_an_endless_range_does_not_hold_us(arena):
    for check in CHECKS:
        started = time.process_time()
        outcome = arena.outcome("def f(x): return range(10**18)", f"assert {check}")
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
