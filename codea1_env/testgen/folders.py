"""Tests for all public functions and classes of a file or a folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from codea1_env.sandbox import AnalysisError, InfraError, Sandbox
from codea1_env.testgen.earlier import read_earlier
from codea1_env.testgen.explaining import why_nothing
from codea1_env.testgen.function import FunctionSuite, write_function_suite
from codea1_env.testgen.importing import sandbox_for
from codea1_env.testgen.modules import Module, TargetError
from codea1_env.testgen.places import PublicNames
from codea1_env.testgen.reproduction import as_data
from codea1_env.testgen.target import Target, read_target
from codea1_env.testgen.texts import snake_case
from codea1_env.testgen.written_file import pytest_file


@dataclass(frozen=True)
class FolderRow:
    """What came of one function or class."""

    target: str
    file: str = ""
    """The file with its tests, in the result folder; "" if none was written."""
    tests: int = 0
    mutants: int = 0
    killed: int = 0
    findings: tuple[dict[str, Any], ...] = ()
    reason: str = ""
    """Why there are no tests."""
    acts: tuple[str, ...] = ()
    """What importing it does to the world, or tries to do: the sandbox refuses it."""
    cut: bool = False
    """The time was over before everything was tried."""
    seconds: float = 0.0
    """With the time that an agent took."""
    predictions: dict[str, Any] | None = None
    """What became of an agent's tests."""

    def as_json(self) -> dict[str, Any]:
        """For a file."""
        return asdict(self)


def write_place(
    place: PublicNames,
    done: frozenset[str],
    folder: Path,
    analyst: Sandbox,
    *,
    workers: int,
    level: str | None,
    packages: Sequence[str],
    seed: int,
    timeout: float,
    against: str | None = None,
    all_findings: bool = False,
    agent: Callable[[Target], Sequence[str]] | None = None,
) -> Iterator[FolderRow]:
    """Write the tests of a module, one file for each function or class; yield what came of each.

    Args:
        place: The module.
        done: Labels of those that are done already.
        folder: Where the files go.
        analyst: Where texts are parsed.
        workers: See `Sandbox`.
        level: See `Sandbox`.
        packages: Further packages that it may import.
        seed: See `write_function_suite`.
        timeout: See `write_function_suite`.
        against: A revision of git to compare with.
        all_findings: See `write_function_suite`.
        agent: Gives the answers of an agent for a function or class.
    """
    left = [name for name in place.names if place.label(name) not in done]
    if place.problem and place.label() not in done:
        yield FolderRow(place.label(), reason=place.problem)
    if place.module is None or not left:
        return
    files = _file_names(place.module, place.names)
    options = {"workers": workers, "level": level, "packages": packages}
    with sandbox_for(place.module, analyst, **options) as (sandbox, imported):  # type: ignore[arg-type]
        for name in left:
            started = time.monotonic()
            label = place.label(name)
            try:
                target = read_target(place.module, name, sandbox, imported)
                earlier = None if against is None else read_earlier(target, against, sandbox)
                answers = None if agent is None else agent(target)
                suite = write_function_suite(
                    target,
                    answers,
                    sandbox,
                    seed,
                    timeout,
                    earlier=earlier,
                    all_findings=all_findings,
                )
                file = ""
                if suite.tests or suite.findings or suite.questions:
                    file = files[name]
                    text = pytest_file(suite, folder / file, sandbox)
                    (folder / file).write_text(text, encoding="utf-8")
                row = row_of(label, suite, file)
            except (TargetError, InfraError, AnalysisError) as error:
                row = FolderRow(label, reason=str(error))
            seconds = round(time.monotonic() - started, 2)
            yield replace(row, acts=imported.acts, seconds=seconds)


def _file_names(module: Module, names: Sequence[str]) -> dict[str, str]:
    """The file for tests of each function or class, which says where it lives.

    Example:
        >>> list(_file_names(Module(Path("a/b.py"), "a.b", Path()), ["LRUCache", "timer", "Timer"]).values())
        ['test_a_b_lrucache.py', 'test_a_b_timer.py', 'test_a_b_timer_2.py']
    """
    found: dict[str, str] = {}
    for name in names:
        stem = f"test_{module.name.replace('.', '_')}_{snake_case(name)}".lower()
        again = sum(each.startswith((f"{stem}.", f"{stem}_")) for each in found.values())
        found[name] = f"{stem}_{again + 1}.py" if f"{stem}.py" in found.values() else f"{stem}.py"
    return found


def row_of(label: str, suite: FunctionSuite, file: str) -> FolderRow:
    """What came of a function."""
    reason = "" if suite.tests else why_nothing(suite)
    return FolderRow(
        label,
        file,
        len(suite.tests),
        len(suite.kills.mutants),
        len(suite.kills.killed),
        tuple(as_data(each, suite.target) for each in suite.findings),
        reason,
        cut=suite.cut,
        predictions=None if suite.predictions is None else asdict(suite.predictions),
    )
