"""A helper that is killed while a sandbox starts says nothing of the machine."""

from __future__ import annotations

import pytest
from processes import run_python

from codea1_env.sandbox import examine

# Kills the first process at a depth below itself that it sees: the worker, or the child that tries what is forbidden.
KILLING = """
import os, signal, sys, threading
from codea1_env.sandbox import InfraError, Sandbox
level, depth, times = sys.argv[1] or None, int(sys.argv[2]), int(sys.argv[3])

def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []

def worker(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return b"zygote" in file.read()
    except OSError:
        return False

def kill():
    killed = set()
    while len(killed) < times:
        found = [pid for pid in children(os.getpid()) if worker(pid)]
        for _ in range(depth):
            found = [child for pid in found for child in children(pid)]
        for pid in found:
            if pid not in killed and len(killed) < times:
                killed.add(pid)
                os.kill(pid, signal.SIGKILL)

program = "import os\\ndef f(): return os.getuid()"
for attacked in (False, True):
    if attacked:
        examine = __import__("codea1_env.sandbox.levels", fromlist=["x"]).examine
        examine.cache_clear()
        thread = threading.Thread(target=kill, daemon=True)
        thread.start()
    try:
        with Sandbox(workers=1, level=level) as sandbox:
            (result,) = sandbox.call(program, "f", [((), {})])
            print(sandbox.level, result.outcome, result.value == os.getuid(), flush=True)
    except InfraError as error:
        print("InfraError", flush=True)
"""


def run(level: str, depth: int, times: int) -> list[str]:
    done = run_python("-c", KILLING, level, str(depth), str(times))
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_killed_worker_lowers_no_level() -> None:
    usual, attacked = run("", depth=0, times=1)
    assert attacked == usual


def test_workers_that_are_always_killed_are_our_failure() -> None:
    _, attacked = run("", depth=0, times=50)
    assert attacked == "InfraError"


@pytest.mark.parametrize(("level", "depth"), [("kernel", 1), ("namespaces", 2)])
def test_a_killed_probe_takes_no_layer_away(level: str, depth: int) -> None:
    if not examine(level).works:
        pytest.skip(f"this machine does not offer level {level!r}: {examine(level).error}")
    usual, attacked = run(level, depth, times=1)
    assert attacked == usual
