"""Imports a module and puts another definition into it. Its text stands in programs, and runs in the sandbox."""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
import time
import types
from typing import Any

_MOST = 5
"""Things that are named of a kind."""
_EVENTS: dict[str, tuple[str, int | None]] = {
    "socket.connect": ("connects to", 1),
    "socket.getaddrinfo": ("asks the network for", 0),
    "socket.gethostbyname": ("asks the network for", 0),
    "socket.__new__": ("opens a network socket", None),
    "subprocess.Popen": ("starts the program", 1),
    "os.system": ("runs the command", 0),
    "os.fork": ("starts a process", None),
    "os.mkdir": ("makes the folder", 0),
    "os.remove": ("deletes the file", 0),
    "os.rename": ("renames the file", 0),
}
"""Events of Python's audit in words, and which of their arguments says what they are about."""


def load(module: str, path: str, text: str, name: str) -> dict[str, Any]:
    """Return the names of a module, with one defined anew, also where its package has taken it from there or derives from it.

    Args:
        module: Its name.
        path: Its file.
        text: What defines the name anew; "" to leave it as it is.
        name: The function or class.
    """
    space = _namespace(module, name)
    if text:
        nothing = object()
        before = space.get(name, nothing)
        derived: list[Any] = type.__subclasses__(before) if isinstance(before, type) else []
        exec(compile(text, path, "exec", dont_inherit=True), space)
        top = module.partition(".")[0]
        for key, other in list(sys.modules.items()):
            if key.partition(".")[0] == top:
                names = vars(other)
                for each in [each for each, value in names.items() if value is before]:
                    names[each] = space[name]
        for child in derived:
            with contextlib.suppress(TypeError):  # a fault has given it other slots
                child.__bases__ = tuple(
                    space[name] if base is before else base for base in child.__bases__
                )
    return {
        key: value
        for key, value in space.items()
        if not (key.startswith("__") and key.endswith("__")) and not key.startswith("_codea1")
    }


def _namespace(module: str, name: str) -> dict[str, Any]:
    """Where a module's code looks up names, also where an object that warns of old names stands in its place."""
    found = importlib.import_module(module)
    names = vars(found)
    if name not in names:
        own = getattr(getattr(found, name, None), "__globals__", {})
        if own.get("__name__") == module:
            names = own
    return names


def watch(module: str) -> dict[str, Any]:
    """Import a module, and say what it does then.

    Returns:
        ``error`` and ``message``: the exception that it raised, or two empty texts; ``missing``: the module that was
        not found; ``acts``: what it did, or tried to do, to the world, in words; ``threads``: how many it has started;
        ``seconds``: what it took.
    """
    acts: dict[str, None] = {}
    watching = True

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if watching and len(acts) < _MOST:
            acts.update(dict.fromkeys(filter(None, [_act(event, arguments)])))

    sys.addaudithook(note)
    started = time.monotonic()
    threads = threading.active_count()
    error = message = missing = ""
    try:
        importlib.import_module(module)
    except Exception as raised:
        error = type(raised).__name__
        message = f"{error}: {str(raised)[:300]}"
        missing = str(getattr(raised, "name", "") or "")
    watching = False
    return {
        "error": error,
        "message": message,
        "missing": missing,
        "acts": tuple(acts),
        "threads": threading.active_count() - threads,
        "seconds": time.monotonic() - started,
    }


def _act(event: str, arguments: tuple[Any, ...]) -> str:
    """Return what an event of Python's audit says in words; "" for what does nothing to the world."""
    what, about = _EVENTS.get(event, ("", None))
    if event == "open" and isinstance(arguments[0], (str, bytes)):
        mode = arguments[1]
        what, about = ("writes to", 0) if isinstance(mode, str) and {*mode} & {*"wax+"} else ("", 0)
    return f"{what} {arguments[about]!r:.100}" if what and about is not None else what


def home_of(module: str, name: str) -> tuple[str, str]:
    """Where something was defined that a module has under a name.

    Returns:
        The module and the name there; two empty texts for what says no such place; and ("", type) for what is compiled.
    """
    value: Any = getattr(importlib.import_module(module), name, None)
    while hasattr(value, "__wrapped__"):
        value = value.__wrapped__
    if isinstance(value, (types.BuiltinFunctionType, types.MethodDescriptorType)):
        return "", "compiled"
    home, called = getattr(value, "__module__", ""), getattr(value, "__qualname__", "")
    if not isinstance(home, str) or not isinstance(called, str):
        return "", ""
    return home, called
