"""What questions are compared with: one new Python process for each program. No isolation.

The script goes to stdin of `python -`, with the job in front of it as constants: REFERENCE, PROGRAM (texts)
and TESTS (assert statements). It prints one letter per test: `x` where the reference fails it, else `.` where
the program passes it and `F` where the program fails it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

_SCRIPT = """
def load(text):
    namespace = {"__name__": "program"}
    try:
        exec(compile(text, "<program>", "exec"), namespace)
    except Exception:
        namespace.clear()  # every test will fail
    return namespace

def holds(test, namespace):
    try:
        exec(test, namespace)
    except Exception:
        return False
    return True

reference, program = load(REFERENCE), load(PROGRAM)
verdicts = []
for text in TESTS:
    test = compile(text, "<test>", "exec")
    right = holds(test, reference)
    verdicts.append(("." if holds(test, program) else "F") if right else "x")
print("\\n" + "".join(verdicts))
"""

PYTHON = (sys.executable,)
"""As most people would start it."""
SLIM_PYTHON = (sys.executable, "-I", "-S")
"""Started as quickly as it can be: without site-packages."""


def judge(python: Sequence[str], reference: str, program: str, tests: Sequence[str]) -> str:
    """Run a reference, a program and all tests in one new process.

    Raises:
        RuntimeError: The script did not end well.

    Example:
        >>> judge(SLIM_PYTHON, "def f(x): return x", "def f(x): return 1",
        ...       ["assert f(1) == 1", "assert f(2) == 2", "assert f(2) == 3"])
        '.Fx'
    """
    job = f"REFERENCE = {reference!r}\nPROGRAM = {program!r}\nTESTS = {list(tests)!r}\n"
    done = subprocess.run(
        [*python, "-"],
        input=job + _SCRIPT,
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": os.defpath, "LANG": "C.UTF-8"},
    )
    verdicts = done.stdout.rstrip("\n").rpartition("\n")[2]
    if done.returncode != 0 or len(verdicts) != len(tests):
        raise RuntimeError(
            f"Expect the script to judge {len(tests)} tests, actually: status {done.returncode}, "
            f"{done.stdout[-200:]!r}, {done.stderr[-500:]}"
        )
    return verdicts
