"""What comes from outside (a kill, a stop, too few descriptors) never becomes an outcome of a program; our own faults pay nobody."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from processes import descendants, parents, run_python, until

from codea1_env.sandbox import (
    Case,
    InfraError,
    Job,
    Limits,
    Outcome,
    Sandbox,
    TestResult,
    encoded_arguments,
    examine,
    supervise,
    watch,
)
from codea1_env.sandbox.inside import codec
from codea1_env.sandbox.supervise import Supervised, is_readable

SLOW = "import time\ndef f(x):\n    time.sleep(0.3)\n    return 2 * x"
MODES: dict[str, Callable[[Sandbox], Outcome]] = {
    "value": lambda sandbox: sandbox.run_tests(SLOW, ["assert f(1) == 2"])[0].outcome,
    "test program": lambda sandbox: (
        sandbox.run_tests(SLOW, ["for x in [1]:\n    assert f(x) == 2"])[0].outcome
    ),
    "script": lambda sandbox: sandbox.run_script("import time; time.sleep(0.3); print(1)").outcome,
    "calls": lambda sandbox: (
        sandbox.run_calls(SLOW, "f", [encoded_arguments([1], {})]).load.outcome
    ),
}
LEVELS = ("process", "kernel", "namespaces")


@pytest.fixture(scope="module")
def sandboxes() -> Iterator[dict[str, Sandbox]]:
    """One for each level that works here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the weak level
        limits = Limits(call_wall_time=1.0, calls_per_test=1)
        made = {each: Sandbox(level=each, limits=limits) for each in LEVELS if examine(each).works}
    yield made
    for each in made.values():
        each.close()


@pytest.fixture
def sandbox(level: str, sandboxes: dict[str, Sandbox]) -> Sandbox:
    if level not in sandboxes:
        pytest.skip(f"level {level} does not work here: {examine(level).error}")
    return sandboxes[level]


def forked() -> set[int]:
    """The processes that workers have forked: grandchildren and below, but not a worker in its namespaces."""
    family = parents()
    inner = descendants(os.getpid()) & family.keys()
    leaves = {pid for pid in inner - set(family.values()) if family[pid] != os.getpid()}
    return {pid for pid in leaves if not is_first_of_a_namespace(pid)}


def is_first_of_a_namespace(pid: int) -> bool:
    """Whether it is a worker, though an idle one without children."""
    try:
        status = Path(f"/proc/{pid}/status").read_bytes()
    except OSError:  # it has just ended
        return False
    return re.search(rb"^NSpid:.*\s1$", status, re.MULTILINE) is not None


def disturb(number: signal.Signals) -> tuple[threading.Thread, list[int]]:
    """Sends a signal to the processes that workers have now, while they are at work."""
    done: list[int] = []

    def some() -> bool:
        for pid in forked():
            with suppress(ProcessLookupError):
                os.kill(pid, number)
                done.append(pid)
        return bool(done)

    def run() -> None:
        time.sleep(0.15)
        until(some)  # one that was there may be gone

    thread = threading.Thread(target=run)
    thread.start()
    return thread, done


# Every mode is killed, and at every level one is; what stops it, and other signals, take the same ways.
DISTURBED = [("kernel", mode, signal.SIGKILL) for mode in MODES]
DISTURBED += [(level, "test program", signal.SIGKILL) for level in ("process", "namespaces")]
DISTURBED += [(level, "test program", signal.SIGSTOP) for level in LEVELS]
DISTURBED += [("process", "value", signal.SIGTERM), ("kernel", "calls", signal.SIGSEGV)]


@pytest.mark.parametrize(("level", "mode", "number"), DISTURBED)
def test_a_child_that_somebody_ends_or_stops(
    sandbox: Sandbox, mode: str, number: signal.Signals
) -> None:
    assert MODES[mode](sandbox) is Outcome.PASS
    thread, done = disturb(number)
    found = MODES[mode](sandbox)
    thread.join()
    assert done
    assert found is Outcome.PASS


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
        for each in sandbox.run_calls(LONG, "f", [encoded_arguments([1], {})] * 2).replies
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


GREEDY = "import time\nheld = bytearray(b'x') * (200 << 20)\n"


def grown(pid: int) -> bool:
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * 4096 > 150 << 20
    except OSError:
        return False


@pytest.mark.parametrize(("level", "kills"), [("kernel", 1), ("kernel", 9), ("namespaces", 9)])
def test_who_is_killed_with_much_memory_is_out_of_memory_the_second_time(
    sandbox: Sandbox, kills: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the kernel does where memory is short. It is no way out of a verdict, and costs two runs."""
    frame = watch.Watch.frame
    killed: list[int] = []

    def kill_when_grown(self: watch.Watch, cpu: float, wall: float) -> Any:
        child = self.child
        until(lambda: grown(child.pid) or is_readable(child.handle))
        if len(killed) < kills and grown(child.pid):
            os.kill(child.pid, signal.SIGKILL)
            killed.append(child.pid)
        return frame(self, cpu, wall)

    monkeypatch.setattr(watch.Watch, "frame", kill_when_grown)
    code = GREEDY + "def f(x):\n    time.sleep(0.7)\n    return 2 * x"
    ours = b"x" * (300 << 20)  # which is no memory of those that we start
    with Sandbox(level=sandbox.level) as fresh:
        found = fresh.call(code, "f", [((1,), {})])[0].outcome
        assert found is (Outcome.MEMORY if kills > 1 else Outcome.PASS)
        assert len(killed) == min(kills, 2)
        killed.clear()
        script = fresh.run_script(GREEDY + "time.sleep(0.7)")
        assert script.outcome is (Outcome.MEMORY if kills > 1 else Outcome.PASS)
    assert ours


POISON = "def f(x):\n    return 'poison' if x == 1 else x"


def poisoned(monkeypatch: pytest.MonkeyPatch) -> None:
    decode = codec.decode

    def fails(data: bytes, **options: Any) -> Any:
        if b"poison" in data:
            raise LookupError("a fault of ours")
        return decode(data, **options)

    monkeypatch.setattr(codec, "decode", fails)


FAULTS: dict[str, Callable[[Sandbox], Any]] = {
    "tests": lambda sandbox: sandbox.run_tests(POISON, ["assert f(1) == 1", "assert f(2) == 2"]),
    "calls": lambda sandbox: sandbox.call(POISON, "f", [((1,), {}), ((2,), {})]),
    "cases": lambda sandbox: sandbox.run_cases(
        POISON, "f", [Case((1,), {}, 1), Case((2,), {}, 2)]
    ),
}  # fmt: skip


@pytest.mark.parametrize("level", ["kernel"])
@pytest.mark.parametrize("way", FAULTS)
def test_what_we_fail_at_is_forbidden_for_its_call_alone(
    sandbox: Sandbox, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    poisoned(monkeypatch)
    found = FAULTS[way](sandbox)
    assert [each.outcome for each in found] == [Outcome.FORBIDDEN, Outcome.PASS]
    assert "LookupError: a fault of ours" in found[0].message


@pytest.mark.parametrize("level", ["kernel"])
def test_what_we_fail_at_ends_no_batch(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading, a script, a test module; and where nobody knows at which call it was."""
    poisoned(monkeypatch)
    raises = "raise ValueError('poison')"
    assert sandbox.run_script(raises).outcome is Outcome.FORBIDDEN
    assert sandbox.run_cases(raises, "f", [Case((1,), {}, 1)])[0].outcome is Outcome.FORBIDDEN
    module = "def test_x():\n    assert 0, 'poison'"
    assert sandbox.run_test_module("", module)[0].outcome is Outcome.FORBIDDEN

    def fails(*_: object) -> None:
        raise LookupError("a fault of ours")

    code = "import os, time\ndef f(x):\n    os._exit(0) if x == 8 else time.sleep(x)\n    return x"
    for place, name, x in ((supervise, "is_stopped", 9), (Supervised, "ended_by_itself", 8)):
        with monkeypatch.context() as patch:
            patch.setattr(place, name, fails)
            jobs = [Job(code, ["assert f(0) == 0", f"assert f({x}) == {x}"]), Job(code, ["f(0)"])]
            (_, ended), (right,) = sandbox.run_many(jobs)
            assert (ended.outcome, right.outcome) == (Outcome.FORBIDDEN, Outcome.PASS)
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


@pytest.mark.parametrize("number", [40, 100])
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
    done = run_python("-c", script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("right" if number >= 100 else ("right", "named")), done.stdout
    if done.stdout.startswith("named"):
        assert "descriptor" in done.stdout or "Too many open files" in done.stdout
