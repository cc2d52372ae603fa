"""What all attacks share: one sandbox per level, and a look at what each attack has left behind."""

from __future__ import annotations

import dataclasses
import os
import tempfile
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from attacking import RIGHT, TESTS, WRONG

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
    call_cpu_time=0.3,
    call_wall_time=1.2,
    run_cpu_time=4.0,
    run_wall_time=8.0,
    calls_per_test=1,
    memory=512 << 20,
    output=64 << 10,
    result=1 << 20,
)
TOKEN = "hf_attack_5f1e9c"  # stands for a secret in the trainer's environment


def _processes(root: int) -> tuple[frozenset[int], int]:
    """The children of a process, and the number of its descendants."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = Path("/proc", name, "stat").read_bytes()
        except OSError:  # it has just ended
            continue
        parents[int(name)] = int(stat.rpartition(b")")[2].split()[1])
    children = layer = frozenset(pid for pid, parent in parents.items() if parent == root)
    count = 0
    while layer:
        count += len(layer)
        layer = frozenset(pid for pid, parent in parents.items() if parent in layer)
    return children, count


@dataclass(frozen=True)
class Traces:
    """What an attack must not change. Workers keep fresh children ready: of these only the number counts."""

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

    def ends(self, code: str, *tests: str, **options: object) -> set[tuple[Outcome, str]]:
        """Outcomes and messages of tests: of one that is judged outside and one that runs, if none is given."""
        asked = tests or tuple(TESTS.values())
        found = self.sandbox.run_tests(code, asked, entry_point="f", **options)  # type: ignore[arg-type]
        return {(result.outcome, result.message) for result in found}

    def one(self, code: str, *tests: str, **options: object) -> tuple[Outcome, str]:
        """Outcome and message, which all tests have alike."""
        [found] = self.ends(code, *tests, **options)
        return found

    def outcome(self, code: str, *tests: str, **options: object) -> Outcome:
        """Outcome that all tests have alike."""
        [found] = {outcome for outcome, _ in self.ends(code, *tests, **options)}
        return found

    def outcomes(
        self, programs: Mapping[str, str], *tests: str, **options: object
    ) -> dict[str, Outcome]:
        """The same for each program."""
        return {name: self.outcome(code, *tests, **options) for name, code in programs.items()}

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

    def check_innocent(self, mentions: Sequence[str] = ("", "\n# numpy")) -> None:
        """A right program passes and a wrong one fails, in both modes; without names, with all kinds of workers."""
        tests = list(TESTS.values())
        for mention in mentions:
            right = self.sandbox.run_tests(RIGHT + mention, tests, entry_point="f")
            wrong = self.sandbox.run_tests(WRONG + mention, tests, entry_point="f")
            assert [result.outcome for result in right] == [Outcome.PASS] * 2
            assert [result.outcome for result in wrong] == [Outcome.FAIL] * 2
        assert self.replies(RIGHT, 1, 2) == [2, 3]

    def replies(self, code: str, *arguments: object, **options: object) -> list[object]:
        """What calls of f with one argument each return, as the game makes them, or how they end."""
        calls = [encoded_arguments([argument], {}) for argument in arguments]
        answers = self.sandbox.run_calls(code, "f", calls, **options)  # type: ignore[arg-type]
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


@pytest.fixture(scope="session")
def arenas() -> Iterator[dict[str, Arena]]:
    """Those that were asked for, by level: each is made when a first module asks, and serves all."""
    made: dict[str, Arena] = {}
    yield made
    for arena in made.values():
        arena.sandbox.close()
        assert list(arena.scratch.iterdir()) == []
        arena.scratch.rmdir()


def _made(level: str) -> Arena:
    scratch = Path(tempfile.mkdtemp(prefix="red-"))
    scratch.chmod(0o711)  # children with a user number of their own pass through it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the weak levels
        return Arena(Sandbox(workers=1, limits=LIMITS, level=level), level, scratch)


@pytest.fixture(scope="module")
def shared_arena(level: str, arenas: dict[str, Arena]) -> Iterator[Arena]:
    if level not in arenas:
        arenas[level] = _made(level)
    arena = arenas[level]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(arena.scratch))
        patch.setenv("ATTACK_TOKEN", TOKEN)
        try:
            for _ in range(2):  # until the workers have all ready that they keep ready
                arena.check_innocent()
                arena.sandbox.judge(Job(RIGHT, list(TESTS.values()), "f", hash_seed=1))
                arena.sandbox.run_script("print(1)")
        except SandboxError as error:
            pytest.skip(f"level {level} does not work here: {error}")
        time.sleep(0.2)  # until all that is kept ready, here and in other sandboxes, is ready
        yield dataclasses.replace(arena, baseline=arena.traces())
        arena.check_innocent()


@pytest.fixture
def arena(shared_arena: Arena) -> Iterator[Arena]:
    """A sandbox that must be unharmed after the test: the same processes, descriptors, files and verdicts."""
    yield shared_arena
    shared_arena.check_innocent([""])
    deadline = time.monotonic() + 10.0
    while (after := shared_arena.traces()) != shared_arena.baseline and time.monotonic() < deadline:
        time.sleep(0.02)  # a killed process is gone a moment later, and a ready one is there
    assert after == shared_arena.baseline


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


Attempts = Callable[..., dict[str, str]]


@pytest.fixture(params=["program", "test", "call"])
def attempts(request: pytest.FixtureRequest, arena: Arena) -> Attempts:
    """Runs statements by name in a program, in tests, or in a program that is only called.

    What became of each: "allowed", the name of an error number, the class of an exception, or how the
    process ended.
    """
    limits = dataclasses.replace(LIMITS, run_cpu_time=30.0, run_wall_time=60.0)

    def run(acts: Mapping[str, str]) -> dict[str, str]:
        texts = [
            _ATTEMPT.format(act=textwrap.indent(textwrap.dedent(act).strip(), " " * 8))
            for act in acts.values()
        ]
        if request.param == "test":
            found = []
            for group in (texts[begin : begin + 10] for begin in range(0, len(texts), 10)):
                each = "".join(f"{text}\nfound.append(attempt())\n" for text in group)
                test = f"found = []\n{each}raise LookupError('|'.join(found))"
                [ended] = arena.sandbox.run_tests(RIGHT, [test], entry_point="f", limits=limits)
                kind, _, told = ended.message.partition(": ")
                said = told.split("|") if kind == "LookupError" else []
                found += said or [ended.outcome.value] * len(group)
            return dict(zip(acts, found, strict=True))
        made = "".join(f"{text}\nATTEMPTS.append(attempt)\n" for text in texts)
        code = f"ATTEMPTS = []\n{made}\ndef f(number): return ATTEMPTS[number]()"
        numbers = range(len(texts))
        if request.param == "call":
            replies = arena.replies(code, *numbers, limits=limits)
            found = [each.value if isinstance(each, Outcome) else str(each) for each in replies]
        else:
            calls = [((number,), {}) for number in numbers]
            found = [
                str(each.value) if each.outcome is Outcome.PASS else each.outcome.value
                for each in arena.sandbox.call(code, "f", calls, limits=limits)
            ]
        return dict(zip(acts, found, strict=True))

    return run


@pytest.fixture
def attempt(attempts: Attempts) -> Callable[[str], str]:
    """Runs one of them."""
    return lambda act: attempts({"": act})[""]
