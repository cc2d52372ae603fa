"""Optional dependencies: imported where they are used, and named where they are missing."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any

NAMED = 30
"""Names that a message lists."""
_OF_LANGUAGE_MODELS = frozenset(
    [
        "accelerate",
        "datasets",
        "gguf",
        "greenlet",
        "httpx",
        "peft",
        "psutil",
        "torch",
        "transformers",
        "trl",
    ]
)


class MissingExtraError(ImportError):
    """A package of an extra is not installed."""


def require(module: str, extra: str = "llm") -> ModuleType:
    """Import a module of an extra; a `MissingExtraError` names the extra that installs it.

    Example:
        >>> require("no_such_module")
        Traceback (most recent call last):
            ...
        codea1_env.support.extras.MissingExtraError: Expect the package no_such_module to be installed, ...
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise  # it is there, but something that it needs is not
        raise missing(package, extra) from error


class Lazy:
    """A module of an extra that is imported when the first of its names is used.

    Example:
        >>> Lazy("math").floor(2.5)
        2
    """

    def __init__(self, module: str, extra: str = "llm") -> None:
        self._module, self._extra = module, extra

    def __getattr__(self, name: str) -> Any:
        """Return a name of the module; a `MissingExtraError` if it is not installed."""
        return getattr(require(self._module, self._extra), name)


@contextmanager
def replaced(module: ModuleType, name: str, value: Any) -> Iterator[None]:
    """Have another value under a name of a module inside, for what a package has no setting for."""
    original = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, original)


def explained(error: ImportError) -> ImportError:
    """The error that names the extra, for a package of `llm` imported without `require`; else the error itself."""
    package = (error.name or "").partition(".")[0]
    absent = isinstance(error, ModuleNotFoundError) and package in _OF_LANGUAGE_MODELS
    return missing(package, "llm") if absent else error


def missing(package: str, extra: str) -> MissingExtraError:
    """The error for a package of an extra that is not installed."""
    return MissingExtraError(
        f"Expect the package {package} to be installed, actually: it is not. "
        f"Run: pip install 'codea1-env[{extra}]'"
    )


def check_version(package: str, least: str, extra: str) -> None:
    """Raise a MissingExtraError, with both versions, if a package of an extra is not installed in a version that is new enough."""
    try:
        actual = version(package)
    except PackageNotFoundError:
        raise missing(package, extra) from None
    if _numbers(actual) < _numbers(least):
        raise MissingExtraError(
            f"Expect {package} {least} or newer, actually: {actual}. Run: pip install 'codea1-env[{extra}]'"
        )


def _numbers(text: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", text)[:3]]
