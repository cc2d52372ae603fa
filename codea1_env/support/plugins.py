"""Classes and functions of yours, found by name: ``module:NAME`` or ``FILE.py:NAME``. They run in this process."""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_CUSTOM = "codea1_custom_"
_PACKAGE = Path(__file__).parents[1]
_BESIDE: dict[str, str] = {}
"""Module that a file imported from its folder -> that folder."""


def find_in_working_folder() -> None:
    """Let `module:NAME` name a module of the working folder, as `python -m` does."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())


def find(name: str, what: str = "object") -> Any:
    """Find what `module:NAME` or `FILE.py:NAME` stands for; messages say `what` it should be.

    Raises a ValueError that offers the nearest names if there is no such module or name.

    Example:
        >>> find("codea1_env.rewards:suite_rewards").__name__
        'suite_rewards'
    """
    home, colon, attribute = name.rpartition(":")
    if not colon or not home or not attribute:
        raise ValueError(f"Expect module:NAME or FILE.py:NAME, actually: {name!r}")
    try:
        module = load_file(Path(home)) if home.endswith(".py") else importlib.import_module(home)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"Expect {name!r} to name a module that can be imported, actually: {error}. A file is named "
            "FILE.py:NAME."
        ) from error
    if hasattr(module, attribute):
        return getattr(module, attribute)
    package = module.__name__.partition(".")[0]
    public = {
        key: value for key, value in vars(module).items() if key[0] != "_" and callable(value)
    }
    known = [key for key, value in public.items() if _home_of(value).partition(".")[0] == package]
    near = difflib.get_close_matches(attribute, known, n=3)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"It has: {', '.join(known)}"
    raise ValueError(f"Expect {home} to define the {what} {attribute!r}. {hint}")


def _home_of(value: Any) -> str:
    return getattr(value, "__module__", None) or ""


def find_class(name: str) -> type[Any]:
    """Find a class, as `find` does."""
    found = find(name, "class")
    if not isinstance(found, type):
        raise ValueError(f"Expect {name!r} to be a class, actually: {type(found)}")
    return found


def required_parameters(make: Callable[..., Any]) -> list[str]:
    """Names of the parameters without which a class or function cannot be called."""
    return [
        each.name
        for each in inspect.signature(make).parameters.values()
        if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]


def name_of(function: Any) -> str:
    """Return the name by which `find` finds a function or class again, for files that must name it.

    Raises a ValueError if no name finds it: a lambda, or one that is defined in a function.

    Example:
        >>> name_of(find_class)
        'codea1_env.support.plugins:find_class'
    """
    home = _home_of(function)
    name: str = getattr(function, "__qualname__", "")
    if home == "__main__" or home.startswith(_CUSTOM):
        home = getattr(sys.modules.get(home), "__file__", None) or ""
    if not home or not name.isidentifier():
        raise ValueError(
            f"Expect a function that is defined at the top of a module or a file, to be found again by its name, "
            f"actually: {function!r}"
        )
    return f"{home}:{name}"


def digest_of(name: str) -> str | None:
    """SHA-256 of the file behind `FILE.py:NAME`, `module:NAME` or a file's own name; None if there is no such file.

    Example:
        >>> len(digest_of("codea1_env.support.plugins:find")), digest_of("code-a1")
        (64, None)
    """
    home, colon, _ = name.rpartition(":")
    path = Path(home if home.endswith(".py") else name)
    if colon and not home.endswith(".py"):
        module = sys.modules.get(home)
        path = Path(getattr(module, "__file__", None) or name)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def exit_of(error: SystemExit) -> str:
    """Message for user code that ended the program instead of returning."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return (
        "Expect code of yours to return, or to raise an error, actually it ended the program: "
        f"SystemExit({error.code!r}) in {place.filename}, line {place.lineno}."
    )


def raised_by(error: BaseException) -> str:
    """The error that user code raised, with its place, for a message.

    Example:
        >>> raised_by(ValueError("too few"))
        'ValueError: too few'
    """
    # Below the user's own lines may be those of a library; ours are above.
    place = ""
    for each in traceback.extract_tb(error.__traceback__):
        if not Path(each.filename).is_relative_to(_PACKAGE) and "site-packages" not in each.filename:  # fmt: skip
            place = f" ({each.filename}, line {each.lineno})"
    return f"{type(error).__name__}: {error}{place}"


def is_own(kind: type[Any]) -> bool:
    """Whether a class is of the user's, and not of this package.

    Example:
        >>> is_own(ValueError), is_own(type("Mine", (), {"__module__": "codea1_env.agents"}))
        (True, False)
    """
    return not kind.__module__.startswith("codea1_env.")


@contextmanager
def explained(kind: type[Any], function: str, failure: type[Exception]) -> Iterator[None]:
    """Raise `failure` where a function of the user's class raises; errors of this package, and of memory, stay."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        if not is_own(kind) or not is_own(type(error)):
            raise
        raise failure(
            f"Expect {kind.__name__}.{function} to return, actually it raised {raised_by(error)}."
        ) from error


def load_file(path: Path) -> Any:
    """Run a Python file of the user's, in this process, and return it as a module.

    While it runs its folder comes first where modules are looked for, as for a script.
    """
    if not path.is_file():
        raise ValueError(f"Expect {path} to be a Python file, actually: there is no such file")
    spec = importlib.util.spec_from_file_location(f"{_CUSTOM}{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"Expect the name of {path} to end with .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickle look there
    folder = str(path.resolve().parent)
    for name, home in _BESIDE.items():  # another file's may have the same name
        if home != folder and (Path(folder) / f"{name}.py").is_file():
            sys.modules.pop(name, None)
    known = set(sys.modules)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise ValueError(
            f"Expect {path} to be Python, actually, line {error.lineno}: {error.msg}"
        ) from error
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [each.lineno for each in frames if each.filename == str(path)]
        place = f"line {lines[-1]}: " if lines else ""
        raise ValueError(
            f"Expect {path} to run when it is loaded, actually, {place}{type(error).__name__}: {error}"
        ) from error
    finally:
        with suppress(ValueError):  # the file may have changed the path itself
            sys.path.remove(folder)
        for name in sys.modules.keys() - known:
            if str(getattr(sys.modules[name], "__file__", "")) == f"{folder}/{name}.py":
                _BESIDE[name] = folder
    return module
