"""What the sandbox is compared with, without isolation: a slim parent that forks, and one new Python for each program."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from varied_calls import Call

from sandbox_speed import bare_fork

COMMON = (
    "typing", "math", "collections", "re", "itertools", "functools", "hashlib", "random", "copy",
    "heapq", "string",
)  # fmt: skip
PYTHON = (sys.executable,)
"""As most people would start it."""
SLIM_PYTHON = (sys.executable, "-I", "-S")
"""Started as quickly as it can be: without site-packages."""
_ENVIRONMENT = {"PATH": os.defpath, "LANG": "C.UTF-8"}
_IMPORT = re.compile(r"^\s*(?:import|from)\s+(\w+)", re.MULTILINE)


class Bare(NamedTuple):
    """What a child without isolation did."""

    seconds: float
    """From before the fork to after the wait, measured by the parent."""
    found: list[tuple[str, str]] | None
    """("ok", repr of the value) or ("raised", type) of each call; None if the child died or timed out."""

    @property
    def passed(self) -> bool:
        """Whether nothing was raised."""
        return self.found is not None and all(kind == "ok" for kind, _ in self.found)


class BareFork:
    """A slim Python process that forks a child for each program. Only for programs that one trusts.

    Args:
        texts: The programs and tests to come. Modules that they import are imported in the parent, so that
            the baseline does not look slow because of imports.

    Example:
        >>> with BareFork() as bare:
        ...     bare.call("def f(x): return 2 * x", "f", [((21,), {})]).found
        [('ok', '42')]
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        wanted = {name for text in texts for name in _IMPORT.findall(text)}
        modules = [*COMMON, *sorted(wanted & sys.stdlib_module_names)]
        folders = []
        numpy = importlib.util.find_spec("numpy") if "numpy" in wanted else None
        if numpy is not None and numpy.origin is not None:
            folders.append(str(Path(numpy.origin).parent.parent))
            modules.append("numpy")
        self._process = subprocess.Popen(
            [sys.executable, "-s", "-S", bare_fork.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={**_ENVIRONMENT, "TZ": "UTC", "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"},
        )
        self._ask((folders, modules))

    @property
    def pid(self) -> int:
        """The number of the parent process."""
        return self._process.pid

    def call(self, code: str, name: str, calls: Sequence[Call], *, seconds: float = 60.0) -> Bare:
        """Run a program in a child and make calls."""
        return Bare(*self._ask((code, name, list(calls), seconds)))

    def check(self, code: str, test_program: str, *, seconds: float = 60.0) -> Bare:
        """Run a program and then a test program in a child."""
        return Bare(*self._ask((code, "", test_program, seconds)))

    def _ask(self, message: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        bare_fork.write_message(self._process.stdin, message)
        answer = bare_fork.read_message(self._process.stdout)
        if answer is None:
            raise RuntimeError(
                f"Expect an answer of the process that forks without isolation, actually it ended: "
                f"status {self._process.wait()}"
            )
        return answer

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


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
"""Goes to stdin of `python -`, with the job in front of it as constants: REFERENCE, PROGRAM (texts) and TESTS (assert
statements). It prints one letter per test: `x` where the reference fails it, else `.` where the program passes it and `F`
where the program fails it."""


def judge_in_new_process(
    python: Sequence[str], reference: str, program: str, tests: Sequence[str]
) -> str:
    """Run a reference, a program and all tests in one new process.

    Raises:
        RuntimeError: The script did not end well.

    Example:
        >>> judge_in_new_process(SLIM_PYTHON, "def f(x): return x", "def f(x): return 1",
        ...                      ["assert f(1) == 1", "assert f(2) == 2", "assert f(2) == 3"])
        '.Fx'
    """
    job = f"REFERENCE = {reference!r}\nPROGRAM = {program!r}\nTESTS = {list(tests)!r}\n"
    done = subprocess.run(
        [*python, "-"],
        input=job + _SCRIPT,
        capture_output=True,
        text=True,
        timeout=120,
        env=_ENVIRONMENT,
    )
    verdicts = done.stdout.rstrip("\n").rpartition("\n")[2]
    if done.returncode != 0 or len(verdicts) != len(tests):
        raise RuntimeError(
            f"Expect the script to judge {len(tests)} tests, actually: status {done.returncode}, "
            f"{done.stdout[-200:]!r}, {done.stderr[-500:]}"
        )
    return verdicts
