"""What comes from outside (a kill, a stop, too few descriptors) never becomes an outcome of a program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import codea1_env
from codea1_env.sandbox import (
    Case,
    InfraError,
    Outcome,
    Sandbox,
    TestResult,
    encoded_arguments,
    examine,
    watch,
)
from codea1_env.sandbox.supervise import Supervised

SLOW = "import time\ndef f(x):\n    time.sleep(0.3)\n    return 2 * x"
MODES: dict[str, Callable[[Sandbox], object]] = {
    "value": lambda sandbox: [r.outcome for r in sandbox.run_tests(SLOW, ["assert f(1) == 2"])],
    "test program": lambda sandbox: [
        r.outcome for r in sandbox.run_tests(SLOW, ["for x in [1]:\n    assert f(x) == 2"])
    ],
    "script": lambda sandbox: [
        sandbox.run_script("import time; time.sleep(0.3); print(1)").outcome
    ],
    "calls": lambda sandbox: [
        sandbox.submit_encoded(SLOW, "f", [encoded_arguments([1], {})]).result().load.outcome
    ],
}


LEVELS = ("process", "kernel", "namespaces")


@pytest.fixture
def sandbox(level: str) -> Iterator[Sandbox]:
    if not examine(level).works:
        pytest.skip(f"level {level} does not work here: {examine(level).error}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the weak level
        made = Sandbox(level=level)
    with made:
        yield made


def forked() -> set[int]:
    """The processes that workers have forked: grandchildren and below, but not a worker in its namespaces."""
    family: dict[int, int] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            family[int(name)] = int(
                Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[1]
            )
        except OSError:
            continue
    parents = set(family.values())
    ours = {pid for pid, parent in family.items() if parent == os.getpid()}
    while inner := {pid for pid, parent in family.items() if parent in ours} - ours:
        ours |= inner
    return {pid for pid in ours - parents if family[pid] != os.getpid()}


def disturb(act: Callable[[int], None], at_most: int) -> tuple[threading.Thread, list[int]]:
    """Does something to the next processes that workers have, while they are at work."""
    done: list[int] = []

    def run() -> None:
        time.sleep(0.15)
        for _ in range(at_most):
            for pid in forked() - set(done):
                try:
                    act(pid)
                except ProcessLookupError:
                    continue
                done.append(pid)
            time.sleep(0.25)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, done


# Every mode is killed at every level; what stops it, and other signals, take the same way at all of them.
DISTURBED = [(level, mode, signal.SIGKILL) for level in LEVELS for mode in MODES]
DISTURBED += [("kernel", mode, signal.SIGSTOP) for mode in MODES]
DISTURBED += [(level, "test program", signal.SIGSTOP) for level in ("process", "namespaces")]
DISTURBED += [("process", "value", signal.SIGTERM), ("kernel", "calls", signal.SIGSEGV)]


@pytest.mark.parametrize(("level", "mode", "number"), DISTURBED)
def test_a_child_that_somebody_ends_or_stops(
    sandbox: Sandbox, mode: str, number: signal.Signals
) -> None:
    sandbox.limits = type(sandbox.limits)(call_wall_time=1.0)
    expected = MODES[mode](sandbox)
    thread, done = disturb(lambda pid: os.kill(pid, number), at_most=1)
    found = MODES[mode](sandbox)
    thread.join()
    assert done
    assert found == expected == [Outcome.PASS]


CRASHES = "import os, signal\ndef f(x):\n    os.kill(os.getpid(), signal.SIGSEGV)"


@pytest.mark.parametrize("level", LEVELS)
def test_who_always_dies_of_a_signal_has_died_of_it(sandbox: Sandbox) -> None:
    assert sandbox.run_tests(CRASHES, ["assert f(1) == 2"])[0].outcome is Outcome.SIGNALLED


LONG = SLOW.replace("0.3", "20")


WAYS: dict[str, Callable[[Sandbox], list[Outcome]]] = {
    "tests": lambda sandbox: [
        each.outcome for each in sandbox.run_tests(LONG, ["assert f(1) == 2"] * 2)
    ],
    "calls": lambda sandbox: [
        each.outcome for each in sandbox.call(LONG, "f", [((1,), {}), ((2,), {})])
    ],
    "script": lambda sandbox: [sandbox.run_script("import time; time.sleep(20)").outcome] * 2,
    "encoded": lambda sandbox: [
        each.outcome if isinstance(each, TestResult) else Outcome.PASS
        for each in sandbox.submit_encoded(LONG, "f", [encoded_arguments([1], {})] * 2)
        .result()
        .replies
    ],
    "cases": lambda sandbox: [
        each.outcome for each in sandbox.run_cases(LONG, "f", [Case((1,), {}, 2)] * 2)
    ],
}


def works(sandbox: Sandbox) -> bool:
    return sandbox.run_script("print(1)").stdout == "1\n"


# At the levels whose programs cannot kill themselves.
KILLED = pytest.mark.parametrize(
    ("level", "way"), [*(("kernel", way) for way in WAYS), ("namespaces", "tests")]
)


@KILLED
def test_a_job_that_is_always_killed_while_others_are_not_is_unjudged(
    sandbox: Sandbox, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = watch.Watch.frame
    killed: list[int] = []

    def kill_first(self: watch.Watch, cpu: float, wall: float) -> Any:
        child = self.child
        if len(killed) < 3 and child.pid not in killed:
            time.sleep(0.2)
            os.kill(child.pid, signal.SIGKILL)
            killed.append(child.pid)
        return frame(self, cpu, wall)

    monkeypatch.setattr(watch.Watch, "frame", kill_first)
    assert WAYS[way](sandbox) == [Outcome.UNJUDGED] * 2
    assert len(killed) == 3
    assert works(sandbox)


@KILLED
def test_where_everything_is_killed_there_is_no_outcome(
    sandbox: Sandbox, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = Supervised.send

    def kill(self: Supervised, *job: bytes) -> None:
        os.kill(self.pid, signal.SIGKILL)
        send(self, *job)

    with monkeypatch.context() as patched:
        patched.setattr(Supervised, "send", kill)
        with pytest.raises(InfraError, match="before its program began, with signal 9"):
            WAYS[way](sandbox)
    assert works(sandbox)


@pytest.mark.parametrize("number", [40, 64, 100])
def test_few_descriptors(number: int) -> None:
    """The right verdicts, or an error that names the cause; never an outcome of the program."""
    script = (
        f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({number}, {number}))\n"
        "from codea1_env.sandbox import Sandbox, SandboxError\n"
        "tests = ['assert f(1) == 1', 'for x in [1]: assert f(x) == 1']\n"
        "try:\n"
        "    with Sandbox() as sandbox:\n"
        "        for _ in range(3):\n"
        "            found = [r.outcome.value for r in sandbox.run_tests('def f(x): return x', tests)]\n"
        "            assert found == ['pass', 'pass'], found\n"
        "    print('right')\n"
        "except (SandboxError, OSError) as error: print('named', error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(Path(codea1_env.__file__).parent.parent)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("right" if number >= 100 else ("right", "named")), done.stdout
    if done.stdout.startswith("named"):
        assert "descriptor" in done.stdout or "Too many open files" in done.stdout
