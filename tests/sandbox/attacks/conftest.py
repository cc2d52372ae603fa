"""What all attacks share: one sandbox per level, and a look at what each attack has left behind."""

from __future__ import annotations

import dataclasses
import os
import shutil
import tempfile
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from codea1_env.compare import Returned, read_reply
from codea1_env.sandbox import (
    Job,
    Limits,
    Outcome,
    Sandbox,
    SandboxError,
    TestResult,
    encoded_arguments,
)

LIMITS = Limits(
    call_cpu_time=0.5,
    call_wall_time=2.0,
    run_cpu_time=4.0,
    run_wall_time=8.0,
    calls_per_test=1,
    memory=512 << 20,
    output=64 << 10,
    result=1 << 20,
)
TOKEN = "hf_attack_5f1e9c"  # stands for a secret in the trainer's environment

TESTS = {"value": "assert f(1) == 2", "program": "for x in [1]:\n    assert f(x) == 2"}
RIGHT = "def f(x):\n    return x + 1"
WRONG = "def f(x):\n    return x - 1"


def _processes(root: int) -> tuple[frozenset[int], int]:
    """The children of a process, and the number of its descendants."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = Path("/proc", name, "stat").read_text()
        except OSError:  # it has just ended
            continue
        parents[int(name)] = int(stat.rpartition(")")[2].split()[1])
    children = layer = frozenset(pid for pid, parent in parents.items() if parent == root)
    count = 0
    while layer:
        count += len(layer)
        layer = frozenset(pid for pid, parent in parents.items() if parent in layer)
    return children, count


@dataclass(frozen=True)
class Traces:
    """What an attack must not change.

    Workers may keep fresh children ready, so that only the number of their children counts.
    """

    descriptors: int
    workers: frozenset[int]
    processes: int
    shared: frozenset[str]
    scratch: frozenset[str]


def value_or_end(reply: bytes | TestResult) -> object:
    """What a call returned, or how it ended."""
    found = reply if isinstance(reply, TestResult) else read_reply(reply)
    return found.value if isinstance(found, Returned) else found.outcome


@dataclass(frozen=True)
class Arena:
    """A sandbox to attack."""

    sandbox: Sandbox
    level: str
    scratch: Path
    baseline: Traces | None = None
    """What was to be seen before the first attack."""

    def one(self, code: str, test: str, **options: object) -> tuple[Outcome, str]:
        """Outcome and message of one test."""
        (result,) = self.sandbox.run_tests(code, [test], entry_point="f", **options)  # type: ignore[arg-type]
        return result.outcome, result.message

    def outcome(self, code: str, test: str, **options: object) -> Outcome:
        """Outcome of one test."""
        return self.one(code, test, **options)[0]

    def outcomes(
        self, programs: Mapping[str, str], test: str, **options: object
    ) -> dict[str, Outcome]:
        """Outcome of one test on each program."""
        return {name: self.outcome(code, test, **options) for name, code in programs.items()}

    def traces(self) -> Traces:
        """What can be seen from outside."""
        shared = {
            f"{folder}/{name}"
            for folder in ("/tmp", "/dev/shm", "/var/tmp")
            for name in os.listdir(folder)
            if "attack" in name
        }
        inside = {str(path.relative_to(self.scratch)) for path in self.scratch.rglob("*")}
        return Traces(
            len(os.listdir("/proc/self/fd")),
            *_processes(os.getpid()),
            frozenset(shared),
            frozenset(inside),
        )

    def check_innocent(self) -> None:
        """A right program passes and a wrong one fails, in both modes, with all kinds of workers."""
        tests = list(TESTS.values())
        for mention in ("", "\n# numpy"):
            right = self.sandbox.run_tests(RIGHT + mention, tests, entry_point="f")
            wrong = self.sandbox.run_tests(WRONG + mention, tests, entry_point="f")
            assert [result.outcome for result in right] == [Outcome.PASS] * 2
            assert [result.outcome for result in wrong] == [Outcome.FAIL] * 2
        assert self.replies(RIGHT, 1, 2) == [2, 3]

    def replies(self, code: str, *arguments: object, **options: object) -> list[object]:
        """What calls of f with one argument each return, as the game makes them, or how they end."""
        calls = [encoded_arguments([argument], {}) for argument in arguments]
        answers = self.sandbox.submit_encoded(code, "f", calls, **options).result()  # type: ignore[arg-type]
        return [value_or_end(reply) for reply in answers.replies]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every attack at the levels that hold hostile programs, or at a module's own LEVELS."""
    if "level" in metafunc.fixturenames:
        levels = getattr(metafunc.module, "LEVELS", ("kernel", "namespaces"))
        metafunc.parametrize("level", levels, indirect=True, scope="module")


@pytest.fixture(scope="module")
def level(request: pytest.FixtureRequest) -> str:
    """How strongly programs are confined."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def shared_arena(level: str) -> Iterator[Arena]:
    scratch = Path(tempfile.mkdtemp(prefix="red-"))
    scratch.chmod(0o711)  # children with a user number of their own pass through it
    before, tempfile.tempdir = tempfile.tempdir, str(scratch)
    os.environ["ATTACK_TOKEN"] = TOKEN
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the weak levels
            made = Sandbox(workers=1, limits=LIMITS, level=level)
        with made as sandbox:
            arena = Arena(sandbox, level, scratch)
            try:
                for _ in range(2):  # until the workers have all ready that they keep ready
                    arena.check_innocent()
                    sandbox.submit(Job(RIGHT, list(TESTS.values()), "f", hash_seed=1)).result()
                    sandbox.run_script("print(1)")
            except SandboxError as error:
                pytest.skip(f"level {level} does not work here: {error}")
            time.sleep(0.5)  # until all that is kept ready, here and in other sandboxes, is ready
            yield dataclasses.replace(arena, baseline=arena.traces())
        assert list(scratch.iterdir()) == []
    finally:
        tempfile.tempdir = before
        del os.environ["ATTACK_TOKEN"]
        shutil.rmtree(scratch, ignore_errors=True)


@pytest.fixture
def arena(shared_arena: Arena) -> Iterator[Arena]:
    """A sandbox that must be unharmed after the test: the same processes, descriptors, files and verdicts."""
    yield shared_arena
    shared_arena.check_innocent()
    deadline = time.monotonic() + 10.0
    while (after := shared_arena.traces()) != shared_arena.baseline and time.monotonic() < deadline:
        time.sleep(
            0.02
        )  # a killed process is a moment later gone, a ready one a moment later there
    assert after == shared_arena.baseline


@pytest.fixture(params=sorted(TESTS))
def test_text(request: pytest.FixtureRequest) -> str:
    """A test that only a program that adds one may pass: judged as data, and run as a program."""
    text: str = TESTS[request.param]
    return text


_ATTEMPT = """
import ctypes, errno, os, signal, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result
def attempt():
    try:
{act}
    except OSError as error:
        return errno.errorcode.get(error.errno, repr(error))
    except BaseException as error:
        return type(error).__name__
    return "allowed"
"""


@pytest.fixture(params=["program", "test", "call"])
def attempt(request: pytest.FixtureRequest, arena: Arena) -> Callable[[str], str]:
    """Runs statements in a program, in a test, or in a program that is only called.

    What became of them: "allowed", the name of an error number, the class of an exception, or how the
    process ended.
    """

    def run(act: str) -> str:
        code = _ATTEMPT.format(act=textwrap.indent(textwrap.dedent(act).strip(), " " * 8))
        if request.param == "call":
            (found,) = arena.replies(code.replace("def attempt()", "def f(_)"), None)
            return found.value if isinstance(found, Outcome) else str(found)
        if request.param == "program":
            (result,) = arena.sandbox.call(code, "attempt", [((), {})])
            return str(result.value) if result.outcome is Outcome.PASS else result.outcome.value
        outcome, message = arena.one(RIGHT, f"{code}\nraise LookupError(attempt())")
        prefix = "LookupError: "
        return message.removeprefix(prefix) if message.startswith(prefix) else outcome.value

    return run
