"""Functions and classes under test: their module is imported and described in the sandbox."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from codea1_env.problems import Problem
from codea1_env.sandbox import CallResult, Limits, Outcome, Sandbox
from codea1_env.testgen import describe, driver
from codea1_env.testgen.modules import Module, NotImportedError, folders_for, missing, readme_of
from codea1_env.testgen.texts import Shape, Trial

LIMITS = Limits(
    call_cpu_time=2, call_wall_time=6, run_cpu_time=12, run_wall_time=40, calls_per_test=1
)
_IMPORT = Limits(call_cpu_time=10, call_wall_time=20, run_cpu_time=20, run_wall_time=40)
_SLOW = 0.02  # Seconds: a module that takes longer to import is imported once for all programs
_BESIDE = """

_codea1_{name} = {{"__name__": "codea1_{name}"}}
__import__("builtins").exec({text!r}, _codea1_{name})
"""


def beside(module: ModuleType) -> str:
    """Return the text of a module of ours as a part of a program: it has a namespace of its own there."""
    name = module.__name__.rpartition(".")[2]
    return _BESIDE.format(name=name, text=Path(module.__file__ or "").read_text(encoding="utf-8"))


_DRIVER, _DESCRIBE = beside(driver), beside(describe)
_ASK = "\ndef _codea1_ask(what, arguments):\n    return _codea1_describe[what](*arguments)\n"


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function."""

    name: str
    way: Literal["place", "keyword", "star"]
    kinds: Sequence[tuple[Any, ...]]
    """What the type hint allows; empty without one."""
    optional: bool
    default: Sequence[Any]
    """The default, if it is plain data."""


@dataclass(frozen=True)
class Method:
    """A method of a class."""

    parameters: tuple[Parameter, ...]
    sets: bool
    """It changes its object."""
    awaited: bool


@dataclass(frozen=True)
class Definition:
    """A function or class of a module, as its source says it."""

    name: str
    public: bool
    lines: tuple[int, int]
    source: str
    uses: frozenset[str]


@dataclass(frozen=True)
class Target:
    """A function or class under test."""

    module: Module
    definition: Definition
    is_class: bool
    asynchronous: bool
    signature: str
    parameters: tuple[Parameter, ...]
    methods: Mapping[str, Method]
    attributes: tuple[str, ...]
    raises: frozenset[str]
    """Exceptions that its code or docstring names: it raises them on purpose."""
    words: Sequence[str]
    numbers: Sequence[int | float]
    uses: frozenset[str]
    """Names that it uses, also through others of its module."""
    examples: tuple[Trial, ...]
    """Calls in its docstring and README."""
    docs: Sequence[str]
    """Its docstring, and those of its methods."""
    names: Sequence[str]
    """All functions and classes of the module."""

    @property
    def name(self) -> str:
        """The name at the top level of the module."""
        return self.definition.name

    @property
    def label(self) -> str:
        """How results name it."""
        return f"{self.module.name}::{self.name}"

    @property
    def program(self) -> str:
        """The program that imports the module as its users do."""
        return self.redefined("")

    def redefined(self, text: str) -> str:
        """Return the program with another definition, which stands on the lines of the file."""
        arguments = (self.module.name, str(self.module.path), text, self.name)
        return f"{_DRIVER}globals().update(_codea1_driver['load'](*{arguments!r}))\n"

    @property
    def shape(self) -> Shape:
        """How calls of it are written."""
        return Shape(
            self.name,
            tuple(each.name for each in self.parameters),
            self.asynchronous,
            self.is_class,
            tuple(name for name, each in self.methods.items() if each.awaited),
            tuple(name for name, each in self.methods.items() if each.sets),
        )

    @property
    def problem(self) -> Problem:
        """The target as a problem of the game, for an agent."""
        prompt = f'{self.signature}\n    """{self.docs[0]}"""\n'
        return Problem(self.label, prompt, self.name, self.definition.source)


class OpenModule(AbstractContextManager["OpenModule"]):
    """A module in a sandbox that may read its package, what that needs, and nothing else.

    Args:
        module: Which.
        workers: See `Sandbox`.
        level: See `Sandbox`.
        packages: Further packages that it may import.

    Raises:
        NotImportedError: It cannot be imported.
        InfraError: The sandbox failed.
    """

    def __init__(
        self,
        module: Module,
        workers: int = 1,
        level: str | None = None,
        packages: Iterable[str] = (),
    ) -> None:
        self.module = module
        folders = folders_for(module, packages)
        self.sandbox = Sandbox(workers, LIMITS, level=level, packages=folders)
        try:
            found = self._ask("listing", module.name)
            if found["error"]:
                raise _not_imported(module, found["error"], found["missing"].partition(".")[0])
            if found["seconds"] > _SLOW:
                self.sandbox.close()
                self.sandbox = Sandbox(
                    workers, LIMITS, level=level, packages=folders, preload=(module.name,)
                )
        except BaseException:
            self.sandbox.close()
            raise
        self.constants: dict[str, str] = found["constants"]
        self.definitions = {name: Definition(name, **row) for name, row in found["names"].items()}

    def __exit__(self, *_: object) -> None:
        self.sandbox.close()

    def _call(self, what: str, *arguments: str) -> CallResult:
        program = f"{_DESCRIBE}{_ASK}# {self.module.top}"
        call = ((what, list(arguments)), dict[str, Any]())
        [result] = self.sandbox.call(program, "_codea1_ask", [call], limits=_IMPORT)
        return result

    def _ask(self, what: str, *arguments: str) -> Any:
        result = self._call(what, *arguments)
        if result.outcome is not Outcome.PASS:
            error = result.message or result.outcome.value
            raise NotImportedError(
                f"Expect {self.module.name} to be imported in the sandbox, actually: {error}. Put what should run only "
                'as a program below if __name__ == "__main__":',
                error,
            )
        return result.value

    def target(self, name: str) -> Target:
        """Describe a function or class."""
        if name not in self.definitions:
            raise missing(self.module, name, self.definitions)
        found = self._ask("describe", self.module.name, name, readme_of(self.module))
        found["parameters"] = _parameters(found["parameters"])
        found["examples"] = tuple(trials_of(found["examples"]))
        for each in found["methods"].values():
            each["parameters"] = _parameters(each["parameters"])
        found["methods"] = {key: Method(**each) for key, each in found["methods"].items()}
        names = tuple(self.definitions)
        return Target(self.module, self.definitions[name], names=names, **found)

    def called_in(self, text: str, name: str) -> list[Trial]:
        """Return the calls with literal arguments in a text, such as an agent's answer."""
        return list(trials_of(self._call("called_in", text, name).value or []))


def trials_of(rows: Iterable[Sequence[Any]]) -> Iterable[Trial]:
    """Return trials of rows: arguments, keywords, steps."""
    for args, words, steps in rows:
        yield Trial(tuple(args), words, tuple((name, tuple(a), w) for name, a, w in steps))


def _parameters(rows: Iterable[Mapping[str, Any]]) -> tuple[Parameter, ...]:
    return tuple(Parameter(**each) for each in rows)


def _not_imported(module: Module, error: str, absent: str) -> NotImportedError:
    hint = (
        f"Install {absent}, or allow it with --packages {absent}."
        if absent not in ("", module.top)
        else "The sandbox has no network, and none of your files but those of the package. Put what needs them into functions."
    )
    start = f"Expect {module.name} to be imported in the sandbox, actually: {error}."
    return NotImportedError(f"{start} {hint}", error)
