"""The function or class that a user wants tests for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env.problems import Problem
from codea1_env.testgen.importing import program_of
from codea1_env.testgen.invent import Hints, Kind, Parameter
from codea1_env.testgen.modules import Module
from codea1_env.testgen.source_files import import_root
from codea1_env.testgen.texts import Shape


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
    names: tuple[str, ...]
    """All functions and classes of the file."""
    raises: frozenset[str]
    """Exceptions that the code or the docstring mentions: it raises them on purpose."""
    hints: Hints
    examples: tuple[Mapping[str, Any], ...]
    """See `codea1_env.testgen.docstrings`; ``uses``: other names of the file in it."""
    docs: tuple[str, ...]
    """Docstrings of the function; or of the class and its methods; and as doctests what else is an example in them."""
    parameters: tuple[Parameter, ...]
    methods: Mapping[str, tuple[Parameter, ...]]
    awaited: tuple[str, ...]
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
    flags: int = 0
    """What the file has imported from `__future__`, as the compiler has it."""
    offered: str = ""
    """The module from which users of the package import it, if it is another one."""

    @property
    def problem(self) -> Problem:
        """The target as a problem of the game: what a tester sees, and the program that says what is right."""
        return Problem(f"{self.path}::{self.name}", self.prompt, self.name, self.program)

    def with_definition(self, text: str) -> str:
        """The program with another definition of the function, which stands on the lines of the file."""
        if self.module is None:
            raise ValueError("Expect a target in a module, actually: its program is a text")
        return program_of(self.module, self.name, text, self.flags)

    @property
    def place(self) -> tuple[Path, str]:
        """The folder and the name by which tests import its module."""
        root, name = (
            import_root(self.path) if self.module is None else (self.module.root, self.module.name)
        )
        return root, self.offered or name

    def imports(self, names: Sequence[str]) -> list[tuple[str, list[str]]]:
        """From which modules names of the file are imported: the function as users do it, others where they are."""
        offered = [name for name in names if name == self.name and self.offered]
        others = [name for name in names if name not in offered]
        home = self.module.name if self.module is not None else self.place[1]
        return sorted(
            [(where, some) for where, some in ((self.offered, offered), (home, others)) if some]
        )

    @property
    def installed(self) -> bool:
        """Whether it is imported from everywhere here."""
        return self.module is not None and self.module.installed

    @property
    def imported(self) -> str:
        """The program as somebody else would import it: nothing is defined anew."""
        if self.module is None:
            return self.program
        return program_of(self.module, self.name)

    @property
    def shape(self) -> Shape:
        """How calls of it are written."""
        names = tuple(each.name for each in self.parameters)
        return Shape(self.name, names, self.asynchronous, self.is_class, self.awaited)
