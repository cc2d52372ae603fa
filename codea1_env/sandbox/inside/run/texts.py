"""A program and its tests in the process that runs both: their modules, how a test ended, what it ran of the program."""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..errors import describe_error, missing_module

Compile = Callable[[str, str], types.CodeType]
"""Text and file name -> code."""


def _compiled(text: str, path: str) -> types.CodeType:
    code: types.CodeType = compile(text, path, "exec", dont_inherit=True)
    return code


class Texts(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds and loads modules whose text is known. Packages around a dotted name are empty."""

    def __init__(
        self, texts: dict[str, str], folder: str, *, write: bool, compilers: dict[str, Compile]
    ) -> None:
        self._texts = {name: text.removeprefix("\ufeff") for name, text in texts.items()}
        self._folder = folder
        self._compilers = compilers
        for name, text in self._texts.items() if write else ():
            with contextlib.suppress(OSError):  # it is full
                os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
                with open(self.path(name), "w", encoding="utf-8", errors="surrogatepass") as file:
                    file.write(text)
        sys.meta_path.insert(0, self)

    def path(self, name: str) -> str:
        """Return the file of a module."""
        return os.path.join(self._folder, *name.split(".")) + ".py"

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find a module of ours."""
        if name in self._texts:
            return importlib.util.spec_from_file_location(name, self.path(name), loader=self)
        if any(each.startswith(f"{name}.") for each in self._texts):
            return importlib.machinery.ModuleSpec(name, None, is_package=True)
        return None

    def get_source(self, fullname: str) -> str:
        """Return its text."""
        return self._texts[fullname]

    def get_code(self, fullname: str) -> types.CodeType:
        """Return its code."""
        try:
            compiled = self._compilers.get(fullname, _compiled)
            return compiled(self._texts[fullname], self.path(fullname))
        except (ValueError, RecursionError) as error:  # no text that Python reads
            raise SyntaxError(f"{type(error).__name__}: {error}") from None

    def exec_module(self, module: types.ModuleType) -> None:
        """Run it."""
        exec(self.get_code(module.__name__), module.__dict__)

    def line_of(self, name: str, error: BaseException | None) -> int | None:
        """Return the line of a module at which an exception came by last."""
        line, path = None, self.path(name)
        trace = error.__traceback__ if error is not None else None
        if isinstance(error, SyntaxError) and error.filename == path:
            return error.lineno
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == path:
                line = trace.tb_lineno
            trace = trace.tb_next
        return line


Send = Callable[[tuple[Any, ...]], None]
"""Sends one message to the supervisor."""

_MAX_TRACEBACK = 4000
_MAX_TEXT = 500


class HowItEnded(NamedTuple):
    """How a test ended. Plain data, on its way out."""

    kind: str
    """"pass", "fail", "error", "skip", "memory", "exited" or "syntax"."""
    message: str = ""
    line: int | None = None
    traceback: str = ""
    error: str = ""
    """The class of the exception."""
    missing: str = ""
    """The module that was not found."""


def finding_of(
    error: BaseException | None,
    kind: str,
    line: int | None = None,
    traceback: str = "",
    text: str = "",
) -> HowItEnded:
    """How a test ended that raised an exception."""
    name = type(error).__name__ if error is not None else ""
    if error is not None:
        said = describe_error(error)
        text = text or said[1]
        if said[0] in ("memory", "exited"):
            kind = said[0]
        elif isinstance(error, SyntaxError) and kind == "error":
            kind = "syntax"
    message = " ".join(text.split())[:_MAX_TEXT]
    missing = missing_module(error) if error is not None else ""
    return HowItEnded(
        kind, message, line, traceback[-_MAX_TRACEBACK:], name if kind != "fail" else "", missing
    )
