"""Parsers of the extra `evaluation`, applied to foreign text: in a sandbox that allows their package."""

from __future__ import annotations

import atexit
import functools
import importlib.util
import os

from codea1_env.sandbox import AnalysisError, Limits, Outcome, Sandbox


@functools.cache
def packaged_sandbox(package: str, level: str | None, pid: int) -> Sandbox:
    """Return a sandbox that allows a package, for this process; a fork may not use its parent's.

    Args:
        package: As programs import it.
        level: How strongly the sandbox is confined, see `Sandbox`.
        pid: This process.

    Raises:
        ImportError: The package is not installed.
    """
    if importlib.util.find_spec(package) is None:
        raise ImportError(
            f"Expect the package {package} to be installed, actually: it is not. "
            "Run: pip install 'codea1-env[evaluation]'"
        )
    sandbox = Sandbox(level=level, packages=(package,))
    atexit.register(_close_in, pid, sandbox)
    return sandbox


def _close_in(pid: int, sandbox: Sandbox) -> None:
    if os.getpid() == pid:
        sandbox.close()


Arc = tuple[int, int]
_LIMITS = Limits(call_cpu_time=20, call_wall_time=100, run_cpu_time=25, run_wall_time=130)
_PROGRAM = """from coverage.parser import PythonParser


def coverable(source):
    parser = PythonParser(text=source)
    parser.parse_source()
    arcs, exits = parser.arcs(), parser.exit_counts()
    lines = range(1, source.count("\\n") + 2)
    return (
        sorted(parser.statements),
        sorted(arc for arc in arcs if exits[arc[0]] > 1),
        {line: first for line in lines if (first := parser.first_line(line)) != line},
        sorted(parser._with_jump_fixers.items()),
    )
"""


@functools.lru_cache(128)
def coverable(
    source: str, level: str, pid: int
) -> tuple[list[int], list[Arc], dict[int, int], list[tuple[Arc, Arc | None]]]:
    r"""Return what there is to cover.

    Args:
        source: Program text. It is foreign, and parsed in a sandbox.
        level: How strongly that sandbox is confined, see `Sandbox`.
        pid: This process.

    Returns:
        The lines of statements; the branches; the first line of each line that continues a statement; and
        executed arcs that stand for another one or, None, for none: leaving a `with` goes back to its line.
    """
    sandbox = packaged_sandbox("coverage", level, pid)
    (result,) = sandbox.call(_PROGRAM, "coverable", [((source,), {})], limits=_LIMITS)
    if result.outcome is not Outcome.PASS:
        raise AnalysisError(
            f"Expect a Python program that coverage.py can parse, actually: {result.outcome.value}, {result.message}"
        )
    return result.value  # type: ignore[no-any-return]  # it comes from our own function
