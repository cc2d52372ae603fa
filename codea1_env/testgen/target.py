"""The function or class that a user wants tests for: read, looked at, and run for the first time.

Whatever is wrong with the file ends here, as a `TargetError` that says what to do. Nothing of the user's text
is parsed or run in this process.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from codea1_env.sandbox import AnalysisError, Outcome, Sandbox
from codea1_env.testgen.docstrings import examples
from codea1_env.testgen.first_run import that_imports, that_runs
from codea1_env.testgen.importing import Imported, defined_in
from codea1_env.testgen.invent import Hints, Parameter
from codea1_env.testgen.modules import Module, TargetError
from codea1_env.testgen.parameters import parameters
from codea1_env.testgen.patterns import samples
from codea1_env.testgen.source import describe
from codea1_env.testgen.source_files import read_text
from codea1_env.testgen.subject import Target

__all__ = ["Target", "TargetError", "missing", "read_target"]
_NAMED = 12
"""Names that a message gives."""


def read_target(
    place: Path | Module, name: str, sandbox: Sandbox, imported: Imported | None = None
) -> Target:
    """Find a function or class in a file, and see whether the file runs.

    Args:
        place: A Python file, which runs on its own; or a module, which is imported as a part of its package.
        name: A function or class at its top level, or that it has imported from its package.
        sandbox: Where the file is parsed and run. For a module see `codea1_env.testgen.importing.sandbox_for`.
        imported: What importing the module came to.

    Raises:
        TargetError: No tests can be written for it.
        InfraError: The sandbox failed.
    """
    path = place.path if isinstance(place, Module) else place
    source = read_text(path)
    try:
        found = sandbox.analyse(describe, source, name)
        described = sandbox.analyse(parameters, source, name) if "kind" in found else {}
    except AnalysisError as error:
        raise TargetError(f"Expect {path} to be a Python file, actually: {error}") from error
    if found["problem"]:
        raise TargetError(
            f"Expect {path} to be a Python program, actually: {found['problem']}. Correct it first."
        )
    if "kind" not in found:
        if isinstance(place, Module) and imported is not None and imported.outcome is Outcome.PASS:
            return _from_elsewhere(place, name, sandbox, imported, found["names"])
        raise TargetError(missing(path, name, found["names"]))
    target = Target(
        path=path,
        name=name,
        source=source,
        program=source,
        is_class=found["kind"] == "class",
        asynchronous=found["asynchronous"],
        lines=tuple(found["lines"]),
        prompt=found["prompt"],
        core=found["needed"].strip("\n") + "\n",
        names=tuple(found["names"]),
        raises=frozenset(found["raises"]),
        hints=Hints(
            (*found["words"], *_samples(found["patterns"], sandbox)), tuple(found["numbers"])
        ),
        examples=_examples(found["docs"], found["offered"], name, sandbox),
        docs=tuple(found["docs"]),
        parameters=_parameters(described["init"]),
        methods={key: _parameters(each) for key, each in described["methods"].items()},
        awaited=tuple(described["awaited"]),
        known=described["known"],
        attributes=(*described["attributes"], *(["len()"] if described["sized"] else [])),
        returns=described["returns"],
        redefined=found["redefined"],
        flags=found["flags"],
    )
    if isinstance(place, Module):
        return that_imports(target, place, found["needed"], imported, sandbox)
    return that_runs(target, found["needed"], found["imports"], sandbox)


def _examples(
    docs: list[str], offered: list[str], name: str, sandbox: Sandbox
) -> tuple[Mapping[str, Any], ...]:
    try:
        found = sandbox.analyse(examples, docs, offered)
    except AnalysisError:  # a docstring may say anything
        return ()
    others = {*offered} - {name}
    return tuple(each | {"uses": sorted(others & {*each["loads"]})} for each in found)


def _from_elsewhere(
    module: Module, name: str, sandbox: Sandbox, imported: Imported, names: list[str]
) -> Target:
    """What a module has imported from another one of its package, as packages do for their users."""
    home, called = defined_in(module, name, sandbox)
    if home == module.name and called in names:  # it is another name of that
        return read_target(module, called, sandbox, imported)
    if not home or not called.isidentifier() or home == module.name:
        raise TargetError(missing(module.path, name, names))
    if home.partition(".")[0] != module.top:
        raise TargetError(
            f"Expect {module.name} to define {name!r}, actually: it has it from {home}. Write {home}::{called}."
        )
    place = module.root.joinpath(*home.split("."))
    path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    other = replace(module, path=path, name=home)
    return replace(read_target(other, called, sandbox, imported), offered=module.name)


def _samples(patterns: list[str], sandbox: Sandbox) -> list[str]:
    try:
        found: list[str] = sandbox.analyse(samples, patterns)
    except AnalysisError:  # a regular expression that takes ages: it was only a hint
        return []
    return found


def missing(path: Path, name: str, names: list[str]) -> str:
    """Say that a file does not define a name, with the nearest ones that it does."""
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if near:
        hint = f"Did you mean {' or '.join(near)}?"
    else:
        some = [*names[:_NAMED], *(["others"] if len(names) > _NAMED else [])]
        hint = f"It defines {', '.join(some)}." if names else "It defines none at its top level."
    return f"Expect {path} to define the function or class {name!r} with def or class, actually: it does not. {hint}"


def _parameters(rows: Iterable[Mapping[str, Any]]) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(**{**each, "kinds": tuple(each["kinds"]), "default": tuple(each["default"])})
        for each in rows
    )
