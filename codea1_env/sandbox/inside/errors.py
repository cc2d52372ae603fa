"""Exceptions as plain data, on their way from one process to another."""

from __future__ import annotations

from typing import Any

from .encoding import encode
from .formats import EncodeError

MAX_MESSAGE = 500


class RemoteUnencodable(BaseException):
    """Something cannot cross. Not an `Exception`, so that a test does not swallow it by accident."""


def message_of(error: BaseException) -> str:
    """The text of an exception; the exception's own code may be hostile or broken."""
    try:
        text = str(error)
        return text[:MAX_MESSAGE] if type(text) is str else ""
    except BaseException:  # whatever it raises, there is no text
        return ""


def _plain(value: Any) -> Any:
    try:
        encode(value, limit=100_000)
    except EncodeError:
        return None
    return value


def class_names(kind: type) -> list[tuple[str, str]]:
    """Module and name of a class and its bases, nearest first."""
    return [(str(base.__module__)[:200], str(base.__name__)[:200]) for base in kind.__mro__[:20]]


_SLOTS: dict[type[BaseException], tuple[str, ...]] = {
    OSError: ("filename", "filename2"),
    NameError: ("name",),
    AttributeError: ("name",),
    ImportError: ("name", "path"),
}


def slots_of(kind: type) -> dict[str, Any]:
    """The attributes of a class that stand neither in `args` nor in `__dict__`: names and descriptors."""
    for base, names in _SLOTS.items():
        if issubclass(kind, base):
            return {name: vars(base)[name] for name in names}
    return {}


def describe_exception(error: BaseException) -> dict[str, Any]:
    """An exception as plain data: its classes, its text, and those arguments and attributes that are plain."""
    attributes = {name: _plain(value) for name, value in vars(error).items()}
    # Not by `getattr`: a class of the program may have a property of that name.
    slots = slots_of(type(error)).items()
    attributes |= {name: _plain(slot.__get__(error)) for name, slot in slots}
    return {
        "classes": class_names(type(error)),
        "message": message_of(error),
        "args": _plain(tuple(error.args)),
        "attributes": {name: value for name, value in attributes.items() if value is not None},
    }


def describe_error(error: BaseException) -> tuple[str, ...]:
    """The reply for an exception that a call or the program itself raised."""
    name = type(error).__name__
    if isinstance(error, MemoryError):
        return ("memory", message_of(error) or "the memory limit was reached")
    if isinstance(error, SystemExit):
        return ("exited", f"SystemExit({message_of(error)})")
    return ("raised", f"{name}: {message_of(error)}"[:MAX_MESSAGE])
