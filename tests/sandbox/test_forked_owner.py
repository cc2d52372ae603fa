"""A process that has used a sandbox forks: the copy starts anew, and the original is untouched."""

from __future__ import annotations

from processes import run_python

SCRIPT = """
import os, sys, time
from codea1_env.sandbox import Sandbox, encoded_arguments
tests = ["assert f(3) == 6", "for x in [3]:\\n    assert f(x) == 2 * x"]
right, wrong = "def f(x): return 2 * x", "def f(x): return x"
def used(sandbox):
    found = [r.outcome.value for code in (right, wrong) for r in sandbox.run_tests(code, tests)]
    found += [sandbox.run_calls(right, "f", [encoded_arguments([3], {})]).load.outcome.value]
    found += [sandbox.run_script("print(input())", "x").outcome.value]
    return found
expected = ["pass", "pass", "fail", "fail", "pass", "pass"]
"""


def outcome(script: str) -> str:
    done = run_python("-c", SCRIPT + script)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_all_at_once_have_the_right_verdicts() -> None:
    script = """
with Sandbox() as sandbox:
    assert used(sandbox) == expected
    children = []
    for _ in range(2):
        child = os.fork()
        if child == 0:
            ok = used(sandbox) == expected
            sandbox.close()
            os._exit(0 if ok else 1)
        children.append(child)
    for _ in range(3):
        assert used(sandbox) == expected
    print([os.waitpid(child, 0)[1] for child in children])
"""
    assert outcome(script) == "[0, 0]"


def test_a_copy_that_only_lives_on_disturbs_nobody() -> None:
    """It holds the ends of all pipes: what waits for the end of one would wait for it."""
    script = """
with Sandbox() as sandbox:
    assert used(sandbox) == expected
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    slowest = 0.0
    for _ in range(4):
        started = time.monotonic()
        assert used(sandbox) == expected
        slowest = max(slowest, time.monotonic() - started)
    started = time.monotonic()
closed = time.monotonic() - started
os.kill(child, 9)
os.waitpid(child, 0)
print(slowest < 1.9, closed < 4)
"""
    assert outcome(script) == "True True"
