from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from codea1_env.sandbox import Limits, Outcome, Sandbox

TESTS = [
    "assert f(4_000_000) == 7_999_998_000_000",
    "for n in [4_000_000]:\n    assert f(n) == 7_999_998_000_000",
]
SLOW = "def f(n):\n    total = 0\n    for i in range(n):\n        total += i\n    return total"


@pytest.fixture
def busy_machine() -> Iterator[None]:
    """Eight processes for each processor, which do nothing but keep it busy."""
    count = 8 * len(os.sched_getaffinity(0))
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


@pytest.mark.usefixtures("busy_machine")
def test_waiting_for_a_processor_is_not_counted_but_sleeping_is():
    limits = Limits(call_cpu_time=5.0, call_wall_time=0.5)
    with Sandbox(limits=limits) as sandbox:
        assert [result.outcome for result in sandbox.run_tests(SLOW, TESTS)] == [Outcome.PASS] * 2
        sleeps = "import time\ndef f(n):\n    time.sleep(60)"
        assert sandbox.run_tests(sleeps, TESTS[:1])[0].outcome is Outcome.TIMEOUT
