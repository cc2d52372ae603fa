"""What comes from outside (a kill, a stop, too few descriptors) never becomes an outcome of a program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import codea1_env
from codea1_env.sandbox import InfraError, Job, Outcome, Sandbox, encoded_arguments, examine

SLOW = "import time\ndef f(x):\n    time.sleep(0.3)\n    return 2 * x"
MODES: dict[str, Callable[[Sandbox], object]] = {
    "value": lambda sandbox: [r.outcome for r in sandbox.run_tests(SLOW, ["assert f(1) == 2"])],
    "test program": lambda sandbox: [
        r.outcome for r in sandbox.run_tests(SLOW, ["for x in [1]:\n    assert f(x) == 2"])
    ],
    "script": lambda sandbox: [
        sandbox.run_script("import time; time.sleep(0.3); print(1)").outcome,
    ],
    "calls": lambda sandbox: [
        sandbox.submit_encoded(SLOW, "f", [encoded_arguments([1], {})]).result().load.outcome,
    ],
}


@pytest.fixture(params=["kernel", "namespaces"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    if not examine(request.param).works:
        pytest.skip(f"level {request.param} does not work here: {examine(request.param).error}")
    with Sandbox(level=request.param) as made:
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


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
@pytest.mark.parametrize("mode", MODES)
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


def test_who_is_always_killed_has_no_outcome(sandbox: Sandbox) -> None:
    sandbox.run_tests(SLOW, ["assert f(1) == 2"])
    thread, done = disturb(lambda pid: os.kill(pid, signal.SIGKILL), at_most=12)
    with pytest.raises(InfraError, match="killed from outside"):
        sandbox.submit(Job(SLOW.replace("0.3", "1"), ["assert f(1) == 2"])).result()
    thread.join()
    assert len(done) >= 3


@pytest.mark.parametrize("number", [40, 64, 100, 128, 256])
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
