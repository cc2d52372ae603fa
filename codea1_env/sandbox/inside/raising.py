"""Exceptions between two processes: rebuilt from plain data, under classes that stand for the originals.

A class that the other side has defined gets a stand-in here, with stand-ins as bases, so that `except`
works. Stand-ins of exceptions remember the original: it is what goes back, and what answers for
attributes that are not plain data.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

from .errors import class_names, describe_exception, slots_of

if TYPE_CHECKING:
    from .remote import Peer

Name = tuple[str, str]

# A test finds another `id` in the builtins; here it is the real one.
_id = id


class RemoteErrorType(type):
    """The type of stand-in classes: calling one constructs an exception on the other side."""

    remote_peer: Peer

    def __call__(cls, *arguments: Any, **keywords: Any) -> Any:
        """Constructs the other side's exception; a class derived here is constructed here."""
        if "remote_peer" not in vars(cls):
            return super().__call__(*arguments, **keywords)
        return cls.remote_peer.call(cls, arguments, keywords)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls.remote_peer.request("get", cls, name)


def _text(error: BaseException) -> str:
    return str(error.__dict__.get("remote_message", BaseException.__str__(error)))


def _attribute(error: BaseException, name: str) -> Any:
    peer: Peer | None = vars(type(error)).get("remote_peer")
    if peer is None or name.startswith("__") or peer.exceptions.original(error) is None:
        raise AttributeError(name)
    return peer.request("get", error, name)


# `unittest.SkipTest` of a program must not skip a test.
_STANDARD = (sys.stdlib_module_names | {"numpy"}) - {"unittest", "doctest"}


def _known(name: Name) -> type[BaseException] | None:
    """A class of Python's own, the same on both sides."""
    module = sys.modules.get(name[0]) if name[0].partition(".")[0] in _STANDARD else None
    found = vars(module).get(name[1]) if module is not None else None
    return found if isinstance(found, type) and issubclass(found, BaseException) else None


def is_exception_type(value: Any) -> bool:
    """Whether a value is a class of exceptions."""
    return isinstance(value, type) and issubclass(value, BaseException)


class Exceptions:
    """The exception classes and exceptions of a connection."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self._own: dict[Name, type[BaseException]] = {}
        self._classes: dict[Name, type[BaseException]] = {}
        self._orders: dict[Name, list[Name]] = {}
        self._stand_ins: dict[int, BaseException] = {}
        self._originals: dict[int, int] = {}

    # What goes out

    def names(self, kind: type[BaseException]) -> list[Name]:
        """What the other side needs to declare a class: the names of it and of its bases, in order."""
        names = class_names(kind)
        for name, base in zip(names, kind.__mro__, strict=False):
            if _known(name) is None and name not in self._classes:
                self._own[name] = cast("type[BaseException]", base)
        return names

    def original(self, error: BaseException) -> int | None:
        """The other side's number of an exception that stands for one of its own."""
        return self._originals.get(_id(error))

    def describe(self, error: BaseException) -> tuple[Any, ...]:
        """An exception of ours as plain data."""
        names = self.names(type(error))
        number = None
        if _known(names[0]) is None:
            # Its frames are not kept alive with it, and are nobody's business.
            number = self.peer.number_of(error.with_traceback(None))
        plain = describe_exception(error)
        arguments = plain["args"]
        if isinstance(error, BaseExceptionGroup):
            message, inner = (vars(BaseExceptionGroup)[name] for name in ("message", "exceptions"))
            arguments = (message.__get__(error), list(inner.__get__(error)))
        return (number, names, plain["message"], arguments, plain["attributes"], error.__cause__)

    # What comes in

    def is_own(self, kind: Any) -> bool:
        """Whether a class is one of ours that the other side knows."""
        return is_exception_type(kind) and kind.__module__ == self.peer.gate.home

    def declare(self, names: list[Name]) -> type[BaseException]:
        """The class for the other side's names of a class and its bases."""
        name = names[0]
        ours = self._own.get(name)
        if ours is None and name[0] == self.peer.gate.home:
            module = sys.modules.get(name[0])
            found = vars(module).get(name[1]) if module is not None else None
            ours = found if is_exception_type(found) else None
        known = ours or _known(name)
        if known is not None:
            return known
        if name not in self._classes:
            self._classes[name] = self._make(name, self._bases(names))
        if names != self._orders.get(name):
            self._orders[name] = names
            self._rebase()
        return self._classes[name]

    def _make(self, name: Name, bases: tuple[type, ...]) -> type[BaseException]:
        namespace = {
            "__module__": name[0],
            "__str__": _text,
            "__getattr__": _attribute,
            "remote_peer": self.peer,
        }
        return cast("type[BaseException]", RemoteErrorType(name[1], bases, namespace))

    def _bases(self, names: list[Name]) -> tuple[type, ...]:
        """The direct bases: those names that no earlier one brings with it."""
        bases: list[type] = []
        for index, name in enumerate(names[1:], start=1):
            if name[1] == "object" and name[0] == "builtins":
                continue
            known = self._own.get(name) or _known(name) or self._classes.get(name)
            if known is None:  # never seen itself: as if all that follows came with it
                known = self._classes[name] = self._make(name, self._bases(names[index:]))
            if not any(issubclass(base, known) for base in bases):
                bases.append(known)
        return tuple(bases) or (Exception,)

    def _rebase(self) -> None:
        """Corrects bases that were guessed before their own names were known."""
        for name, names in sorted(self._orders.items(), key=lambda item: len(item[1])):
            kind, bases = self._classes[name], self._bases(names)
            if kind.__bases__ != bases:
                kind.__bases__ = bases

    def rebuild(self, description: tuple[Any, ...]) -> BaseException:
        """An exception from its description."""
        number, names, message, arguments, attributes, cause = description
        if number is not None and number in self._stand_ins:
            return self._stand_ins[number]
        kind = self.declare(names)
        error = _construct(kind, arguments if type(arguments) is tuple else (message,))
        slots = slots_of(kind)
        for name, value in dict(attributes).items():
            if name in slots:
                slots[name].__set__(error, value)
            else:
                error.__dict__[name] = value
        error.__dict__["remote_message"] = message
        if isinstance(cause, BaseException):
            error.__cause__ = cause
        if number is not None:
            self._stand_ins[number] = error
            self._originals[_id(error)] = number
        return error


def _construct(kind: type[BaseException], arguments: tuple[Any, ...]) -> BaseException:
    real = next(base for base in kind.__mro__ if not isinstance(base, RemoteErrorType))
    error = kind.__new__(kind, *arguments)
    try:
        real.__init__(error, *arguments)  # type: ignore[misc]
    except TypeError:  # a class with its own signature, such as json.JSONDecodeError
        error.args = arguments
    return error
