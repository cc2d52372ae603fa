"""Public functions -> problems of the game: the function with what it needs of its file, and tests that it passes."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from codea1_env.evaluation.test_programs.facts import facts
from codea1_env.problems import Problem
from codea1_env.sandbox import AnalysisError, Sandbox
from codea1_env.testgen.explaining import why_nothing
from codea1_env.testgen.function import write_function_suite
from codea1_env.testgen.places import PublicNames
from codea1_env.testgen.source_files import read_text
from codea1_env.testgen.standalone import standalone
from codea1_env.testgen.target import TargetError, missing, read_target

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
