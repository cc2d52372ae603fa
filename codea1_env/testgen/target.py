"""The function or class that a user wants tests for: read, looked at, and run for the first time.

Whatever is wrong with the file ends here, as a `TargetError` that says what to do. Nothing of the user's text
is parsed or run in this process.
"""

from __future__ import annotations

import difflib
import importlib.util
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from codea1_env.problems import Problem
from codea1_env.sandbox import AnalysisError, Job, Outcome, Sandbox, TestResult
from codea1_env.testgen.docstrings import examples
from codea1_env.testgen.importing import Imported, defined_in, program_of
from codea1_env.testgen.modules import Module, TargetError, module_of_file, read_text
from codea1_env.testgen.parameters import Kind, parameters, samples
from codea1_env.testgen.source import describe
from codea1_env.testgen.texts import Shape


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function."""

    name: str
    way: Literal["place", "keyword", "star"]
    kinds: Sequence[Kind]
    annotated: bool
    optional: bool
    default: Sequence[Any]
    """The default, if it is a literal."""


@dataclass(frozen=True)
class Hints:
    """What stands in the program and its docstring, and may be worth trying."""

    words: Sequence[str] = ()
    numbers: Sequence[int | float] = ()


@dataclass(frozen=True)
class Target:
    """A function or class of a user's file."""

    path: Path
    name: str
    source: str
    """The text of the file."""
    program: str
    """The text that runs in the sandbox: the file, or what imports it and defines the function anew."""
    is_class: bool
    asynchronous: bool
    lines: tuple[int, int]
    prompt: str
    """Signature and docstring."""
    core: str
    """The part of the file that it depends on."""
    names: Sequence[str]
    """All functions and classes of the file."""
    raises: Collection[str]
    """Exceptions that the code or the docstring mentions: it raises them on purpose."""
    hints: Hints
    examples: tuple[Mapping[str, Any], ...]
    """See `codea1_env.testgen.docstrings`; ``uses``: other names of the file in it."""
    docs: Sequence[str]
    """Docstrings of the function; or of the class and its methods; and as doctests what else is an example in them."""
    parameters: tuple[Parameter, ...]
    methods: Mapping[str, tuple[Parameter, ...]]
    awaited: Sequence[str]
    """Methods that are asynchronous."""
    attributes: tuple[str, ...]
    known: bool
    """How objects are made is known: no base from elsewhere decides it."""
    returns: Kind
    left_out: str = ""
    """Why the file does not run in the sandbox, if only the part that the target needs does."""
    module: Module | None = None
    """The module that the program imports, if it does; None where the program is the file's text."""
    redefined: str = ""
    """What defines the function, on the lines of the file; programs with another text for it put that in its place."""
    offered: str = ""
    """The module from which users of the package import it, if it is another one."""

    @property
    def problem(self) -> Problem:
        """The target as a problem of the game: what a tester sees, and the program that says what is right."""
        return Problem(f"{self.path}::{self.name}", self.prompt, self.name, self.program)

    def with_definition(self, text: str) -> str:
        """Return the program with another definition of the function, which stands on the lines of the file."""
        if self.module is None:
            raise ValueError("Expect a target in a module, actually: its program is a text")
        return program_of(self.module, self.name, text)

    @property
    def home(self) -> Module:
        """The module in which it is defined."""
        return self.module or module_of_file(self.path.resolve())

    def imports(self, names: Sequence[str]) -> list[tuple[str, list[str]]]:
        """From which modules names of the file are imported: the function as users do it, others where they are."""
        found: dict[str, list[str]] = {}
        for name in names:
            offered = self.offered if name == self.name else ""
            found.setdefault(offered or self.home.name, []).append(name)
        return sorted(found.items())

    @property
    def imported(self) -> str:
        """The program as somebody else would import it: nothing is defined anew."""
        return self.program if self.module is None else program_of(self.module, self.name)

    @property
    def shape(self) -> Shape:
        """How calls of it are written."""
        names = tuple(each.name for each in self.parameters)
        return Shape(self.name, names, self.asynchronous, self.is_class, self.awaited)


def _running(target: Target, needed: str, sandbox: Sandbox) -> tuple[Target | None, TestResult]:
    """Return the target with a program that runs: as it is, or only the part that it needs; None, and what came of it."""
    load = _load(target, sandbox)
    if load.passed:
        return target, load
    if load.outcome is not Outcome.ERROR:  # it would not run elsewhere, either
        return None, load
    part = replace(target, module=None, program=needed, left_out=load.message)
    again = _load(part, sandbox)
    return (part, again) if again.passed else (None, load if target.module is not None else again)


def _load(target: Target, sandbox: Sandbox) -> TestResult:
    return sandbox.submit(Job(target.program, (), target.name)).result().load


def _explain(target: Target, load: TestResult, imports: Sequence[str]) -> str:
    """Why a text does not run."""
    if target.module is None and load.error in ("ModuleNotFoundError", "ImportError"):
        relative = [name for name in imports if name.startswith(".")]
        module = load.missing_module or next(iter(relative), "a module")
        own = module.startswith(".") or any(
            (folder / f"{module}.py").is_file() or (folder / module).is_dir()
            for folder in target.path.resolve().parents[:3]
        )
        start = f"Expect what {target.name} imports to be in the sandbox, actually: {module} is "
        if own and module not in sys.stdlib_module_names:
            return (
                f"{start}a module of yours, and the sandbox sees only this one file. Put what {target.name} needs "
                "from it into the same file."
            )
        if _is_installed(module):
            return f"{start}installed, but not allowed. Allow it with --packages {module}."
        return f"{start}not installed here. Install it and allow it with --packages {module}."
    below = 'Put what should run only as a program below if __name__ == "__main__":'
    what = {
        Outcome.ERROR: f"{load.message}. The sandbox has no network and none of your files; put what needs them into "
        "functions, so that it does not run when the file is imported",
        Outcome.TIMEOUT: f"running the file does not end. {below}",
        Outcome.EXITED: f"running the file ends the process ({load.message}). {below}",
        Outcome.MEMORY: "running the file needs more memory than the sandbox gives",
    }.get(load.outcome, f"{load.outcome.value}: {load.message}")
    return f"Expect {target.path} to run when it is imported, actually: {what}."


def _explain_import(module: Module, imported: Imported) -> str:
    """Why a module cannot be imported."""
    acts = f" (it {', '.join(imported.acts)})" if imported.acts else ""
    start = (
        f"Expect {module.name} to be imported in the sandbox, actually: {imported.message}{acts}."
    )
    if imported.error in ("ModuleNotFoundError", "ImportError") and imported.missing:
        top = imported.missing.partition(".")[0]
        if top == module.top:
            return f"{start} Is its package complete, and may other users read it?"
        if _is_installed(top):
            return f"{start} It is installed, but nothing says that {module.top} needs it: add --packages {top}."
        return f"{start} Install {top}, here or in a folder on PYTHONPATH."
    return (
        f"{start} The sandbox has no network, and none of your files but those of the package; put what needs them "
        "into functions, so that it does not run when the file is imported."
    )


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


_SAID = ("asynchronous", "lines", "prompt", "names", "raises", "docs", "redefined")
"""What is taken over from `describe` as it is."""
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
    module = place if isinstance(place, Module) else None
    path = place if isinstance(place, Path) else place.path
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
        if module is not None and imported is not None and imported.outcome is Outcome.PASS:
            return _from_elsewhere(module, name, sandbox, imported, found["names"])
        raise TargetError(missing(path, name, found["names"]))
    target = Target(
        path=path,
        name=name,
        source=source,
        program=source,
        is_class=found["kind"] == "class",
        core=found["needed"].strip("\n") + "\n",
        hints=Hints((*found["words"], *_samples(found["patterns"], sandbox)), found["numbers"]),
        examples=_examples(found["docs"], found["offered"], name, sandbox),
        parameters=_parameters(described["init"]),
        methods={key: _parameters(each) for key, each in described["methods"].items()},
        attributes=(*described["attributes"], *(["len()"] if described["sized"] else [])),
        module=module,
        **{name: found[name] for name in _SAID},
        **{name: described[name] for name in ("awaited", "known", "returns")},
    )
    if module is not None:
        if imported is not None and imported.outcome not in (Outcome.PASS, Outcome.ERROR):
            raise TargetError(_explain(target, TestResult(imported.outcome, imported.message), ()))
        target = replace(target, program=target.with_definition(target.redefined))
    running, load = _running(target, found["needed"], sandbox)
    if running is not None:
        return running
    if module is not None and imported is not None and imported.outcome is Outcome.ERROR:
        raise TargetError(_explain_import(module, imported))
    raise TargetError(_explain(target, load, found["imports"]))


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
    """Return what a module has imported from another one of its package, as packages do for their users."""
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
    some = [*names[:_NAMED], *(["others"] if len(names) > _NAMED else [])]
    hint = f"It defines {', '.join(some) or 'none at its top level'}."
    if near:
        hint = f"Did you mean {' or '.join(near)}?"
    return f"Expect {path} to define the function or class {name!r} with def or class, actually: it does not. {hint}"


def _parameters(rows: Iterable[Mapping[str, Any]]) -> tuple[Parameter, ...]:
    return tuple(Parameter(**each) for each in rows)
