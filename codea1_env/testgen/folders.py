"""Tests for all that is named of a module; or problems of the game, which its functions are."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from codea1_env.evaluation.suites.pieces import pieces_of
from codea1_env.problem_sets import schemas
from codea1_env.problems import Problem
from codea1_env.sandbox import AnalysisError, InfraError, Sandbox
from codea1_env.testgen.earlier import read_earlier
from codea1_env.testgen.findings import as_data
from codea1_env.testgen.function import FunctionSuite, why_nothing, write_function_suite
from codea1_env.testgen.importing import sandbox_for
from codea1_env.testgen.layout import snake_case
from codea1_env.testgen.modules import PublicNames, TargetError, read_text
from codea1_env.testgen.source import standalone
from codea1_env.testgen.target import Target, missing, read_target


@dataclass(frozen=True, kw_only=True)
class SuiteOptions:
    """How tests of a module are written; see `sandbox_for` and `write_function_suite`."""

    workers: int = 1
    level: str | None = None
    packages: Sequence[str] = ()
    seed: int = 0
    timeout: float | None = None
    against: str | None = None
    """A revision of git to compare with."""
    all_findings: bool = False
    only_findings: bool = False
    """Then functions in which nothing has changed since that revision are passed over."""
    agent: Callable[[Target], Sequence[str]] | None = None
    """Gives the answers of an agent for a function or class."""


@dataclass(frozen=True)
class WrittenSuite:
    """What came of a function or class."""

    label: str
    suite: FunctionSuite | None = None
    """None if there is none: nothing has changed, or it has an error."""
    error: TargetError | AnalysisError | InfraError | None = None
    acts: tuple[str, ...] = ()
    """What importing it does to the world, or tries to do: the sandbox refuses it."""
    seconds: float = 0.0
    """With the time that an agent took."""


def write_suites(
    place: PublicNames, options: SuiteOptions, analyst: Sandbox, done: Container[str] = ()
) -> Iterator[WrittenSuite]:
    """Write tests for what is named of a module, one suite for each function or class.

    Args:
        place: The module.
        options: How.
        analyst: Where texts are parsed.
        done: Labels of those that are passed over.
    """
    left = [name for name in place.names if place.label(name) not in done]
    if place.problem and place.label() not in done:
        yield WrittenSuite(place.label(), error=TargetError(place.problem))
    if place.module is None or not left:
        return
    with sandbox_for(
        place.module,
        analyst,
        workers=options.workers,
        level=options.level,
        packages=options.packages,
    ) as (sandbox, imported):
        for name in left:
            started = time.monotonic()
            suite, error = None, None
            try:
                target = read_target(place.module, name, sandbox, imported)
                suite = _suite(target, options, sandbox)
            except (TargetError, AnalysisError, InfraError) as raised:
                error = raised
            seconds = round(time.monotonic() - started, 2)
            yield WrittenSuite(place.label(name), suite, error, imported.acts, seconds)


def _suite(target: Target, options: SuiteOptions, sandbox: Sandbox) -> FunctionSuite | None:
    earlier = None
    if options.against is not None:
        earlier = read_earlier(target, options.against, sandbox)
        if options.only_findings and earlier is not None and earlier.is_same(target):
            return None
    return write_function_suite(
        target,
        None if options.agent is None else options.agent(target),
        sandbox,
        options.seed,
        options.timeout,
        earlier=earlier,
        all_findings=options.all_findings,
        only_findings=options.only_findings,
    )


def file_names(place: PublicNames) -> dict[str, str]:
    """Return the file for tests of each function or class, by its label; it says where that lives.

    Example:
        >>> from codea1_env.testgen.modules import Module
        >>> module = Module(Path("a/b.py"), "a.b", Path())
        >>> names = ("LRUCache", "timer", "Timer")
        >>> list(file_names(PublicNames(module.path, module, names)).values())
        ['test_a_b_lrucache.py', 'test_a_b_timer.py', 'test_a_b_timer_2.py']
    """
    found: dict[str, str] = {}
    where = "" if place.module is None else place.module.name.replace(".", "_")
    for name in place.names:
        stem = f"test_{where}_{snake_case(name)}".lower()
        again = sum(each.startswith((f"{stem}.", f"{stem}_")) for each in found.values())
        more = f"_{again + 1}" if f"{stem}.py" in found.values() else ""
        found[place.label(name)] = f"{stem}{more}.py"
    return found


def row_of(written: WrittenSuite, file: str) -> dict[str, Any]:
    """Return what came of a function or class, for a file of results.

    Args:
        written: Its tests.
        file: The file with them; "" if there is none.
    """
    suite = written.suite
    killed = () if suite is None else suite.kills.killed
    reason = str(written.error or "")
    if suite is not None and not suite.tests:
        reason = why_nothing(suite)
    return {
        "target": written.label,
        "file": file,
        "tests": 0 if suite is None else len(suite.tests),
        "mutants": 0 if suite is None else len(suite.kills.mutants),
        "killed": len(killed),
        "findings": []
        if suite is None
        else [as_data(each, suite.target) for each in suite.findings],
        "reason": reason,
        "acts": written.acts,
        "cut": suite is not None and suite.cut,
        "seconds": written.seconds,
        "predictions": asdict(suite.predictions) if suite and suite.predictions else None,
    }


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
        return json.dumps(schemas.row_of(self.problem), ensure_ascii=False) + "\n"


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
    target = replace(target, lines=(1, found["program"].count("\n")))
    suite = write_function_suite(target, None, sandbox, seed, timeout)
    mutants = len(suite.kills.mutants)
    if not suite.tests:
        return Exported(label, None, why_nothing(suite), mutants)
    read = sandbox.analyse(pieces_of, [(test.text, name, 0) for test in suite.tests])
    plain = [number for number, ([(*_, cases, _)], *_) in enumerate(read) if len(cases) == 1]
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
        tests=[suite.tests[number].text for number in plain],
        metadata={"source": label, "split": "train", **about, "tests_by": "codea1 testgen"},
    )
    return Exported(label, problem, "", mutants, killed)


def _about(package: str) -> dict[str, str]:
    """Return the distribution, version and licence of an installed package, as far as it says them."""
    names: Sequence[str] = metadata.packages_distributions().get(package, ()) if package else ()
    for name in names:
        known = metadata.metadata(name).json
        marks = [str(each) for each in known.get("classifier", ())]
        marks = [each.removeprefix(_LICENCES) for each in marks if each.startswith(_LICENCES)]
        licence = known.get("license_expression") or ", ".join(marks) or known.get("license")
        found = {"package": name, "version": known.get("version"), "licence": licence}
        return {key: str(value).strip()[:100] for key, value in found.items() if value}
    return {}
