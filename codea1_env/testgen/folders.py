"""Tests for all public functions and classes of a file or a folder."""

from __future__ import annotations

import dataclasses
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from codea1_env.evaluation.test_programs.facts import facts
from codea1_env.problems import Problem
from codea1_env.sandbox import AnalysisError, InfraError, Sandbox
from codea1_env.testgen.earlier import read_earlier
from codea1_env.testgen.findings import as_data
from codea1_env.testgen.function import FunctionSuite, why_nothing, write_function_suite
from codea1_env.testgen.importing import sandbox_for
from codea1_env.testgen.layout import snake_case
from codea1_env.testgen.modules import Module, PublicNames, TargetError, read_text
from codea1_env.testgen.source import standalone
from codea1_env.testgen.target import Target, missing, read_target
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


_FILE = "program.py"
_LICENCES = "License :: OSI Approved :: "


@dataclass(frozen=True)
class Exported:
    """What became of a function."""

    name: str
    problem: Problem | None
    reason: str = ""
    """Why it is no problem."""
    mutants: int = 0
    killed: int = 0
    """Mutants of it that its tests kill; more, perhaps."""

    @property
    def row(self) -> str:
        """The line of a problem file."""
        if self.problem is None:
            raise ValueError("Expect a problem, actually there is none")
        row = {name: value for name, value in dataclasses.asdict(self.problem).items() if value}
        return json.dumps(row, ensure_ascii=False) + "\n"


def export_place(
    place: PublicNames, sandbox: Sandbox, seed: int, timeout: float
) -> Iterator[Exported]:
    """Make problems of the functions of a module.

    Args:
        place: The module.
        sandbox: Where the functions run, without their package: where the game is played, it is not there, either.
        seed: See `write_function_suite`.
        timeout: See `write_function_suite`.

    Raises:
        InfraError: The sandbox failed.
    """
    if place.problem:
        yield Exported(place.label(), None, place.problem)
    if place.module is None or not place.names:
        return
    source = read_text(place.path)
    about = _about(place.module.top if place.module.installed else "")
    for name in place.names:
        label = place.label(name)
        try:
            found = sandbox.analyse(standalone, source, name)
            if "others" in found:
                raise TargetError(missing(place.path, name, found["others"]))
            if found["reason"]:
                yield Exported(label, None, found["reason"])
            else:
                yield _exported(label, name, found, about, sandbox, seed, timeout)
        except (TargetError, AnalysisError) as error:
            yield Exported(label, None, str(error).replace(_FILE, "what it needs of its file"))


def _exported(
    label: str,
    name: str,
    found: dict[str, Any],
    about: dict[str, str],
    sandbox: Sandbox,
    seed: int,
    timeout: float,
) -> Exported:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / _FILE
        path.write_text(found["program"], encoding="utf-8")
        try:
            target = read_target(path, name, sandbox)
        except TargetError as error:
            raise TargetError(str(error).replace(str(path), _FILE)) from error
    if target.left_out:
        return Exported(label, None, f"what it needs of its file does not run: {target.left_out}")
    # What it calls is a coder's task, too, and so are the faults there.
    target = dataclasses.replace(target, lines=(1, found["program"].count("\n")))
    suite = write_function_suite(target, None, sandbox, seed, timeout)
    mutants = len(suite.kills.mutants)
    if not suite.tests:
        return Exported(label, None, why_nothing(suite), mutants)
    looked = sandbox.analyse(facts, [(test.text, name) for test in suite.tests])
    plain = [number for number, fact in enumerate(looked) if fact["call"] is not None]
    if not plain:
        reason = "no test of it is a call with plain data that returns plain data"
        return Exported(label, None, reason, mutants)
    killed = len(frozenset[int]().union(*(suite.kills.by_test[number] for number in plain)))
    if 2 * killed < mutants:
        reason = f"its tests with plain data notice only {killed} of {mutants} small faults"
        return Exported(label, None, reason, mutants, killed)
    problem = Problem(
        task_id=label.replace("::", "/"),
        prompt=found["prompt"],
        entry_point=name,
        reference=found["program"],
        tests=[suite.tests[number].text for number in plain],  # type: ignore[arg-type]
        metadata={"source": label, "split": "train", **about, "tests_by": "codea1 testgen"},
    )
    return Exported(label, problem, "", mutants, killed)


def _about(package: str) -> dict[str, str]:
    """The distribution, version and licence of an installed package, as far as it says them."""
    names: Sequence[str] = metadata.packages_distributions().get(package, ()) if package else ()
    for name in names:
        known = metadata.metadata(name).json
        marks = [str(each) for each in known.get("classifier", ())]
        marks = [each.removeprefix(_LICENCES) for each in marks if each.startswith(_LICENCES)]
        licence = known.get("license_expression") or ", ".join(marks) or known.get("license")
        found = {"package": name, "version": known.get("version"), "licence": licence}
        return {key: str(value).strip()[:100] for key, value in found.items() if value}
    return {}
