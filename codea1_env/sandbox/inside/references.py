"""What stands for an object that is not plain data, in a message from one process to the other."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import codec, proxies
from .factory import ProxyFactory
from .operations import CONSTANT_BASES

if TYPE_CHECKING:
    from .remote import Peer

_SHARED_MODULES = ("builtins", "collections", "datetime", "decimal", "fractions")
_SHARED_TYPES = {kind.__name__: kind for kind in (types.NoneType, types.FunctionType)}
_CONSTANTS = {"Ellipsis": ..., "NotImplemented": NotImplemented}
_VIEWS: dict[type, tuple[str, Callable[[Any], Any]]] = {
    type({}.keys()): ("keys", lambda found: dict.fromkeys(found).keys()),
    type({}.values()): ("values", lambda found: dict(enumerate(found)).values()),
    type({}.items()): ("items", lambda found: dict(found).items()),
}
# Values of the standard library that a call of their class makes again.
_REBUILT: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("pathlib", "PosixPath"): str,
    ("pathlib", "PurePosixPath"): str,
    ("pathlib", "PureWindowsPath"): str,
    ("types", "MappingProxyType"): dict,
    ("uuid", "UUID"): str,
}

# A test finds another `id` in the builtins; here it is the real one.
_id = id


class Managed:
    """A context manager that is also a decorator: only what `with` needs."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    def __enter__(self) -> Any:
        return self._manager.__enter__()

    def __exit__(self, *details: Any) -> Any:
        return self._manager.__exit__(*details)


def _name(kind: type) -> tuple[str, str]:
    return (kind.__module__.partition(".")[0], kind.__name__)


def _standard_class(name: tuple[str, str]) -> Any:
    return vars(importlib.import_module(name[0]))[name[1]]


def _rebuilt(data: Any) -> Any:
    name, content = data
    if name not in _REBUILT or type(content) not in (str, dict):
        raise ValueError("not a class whose values are made again")
    return _standard_class(name)(content)


def _shared_name(kind: type) -> str | None:
    """The name of a class that means the same on both sides."""
    if _SHARED_TYPES.get(kind.__name__) is kind:
        return kind.__name__
    module = kind.__module__
    if module in _SHARED_MODULES and vars(sys.modules[module]).get(kind.__name__) is kind:
        return f"{module}.{kind.__name__}"
    return None


def _shared_type(name: str) -> type:
    if name in _SHARED_TYPES:
        return _SHARED_TYPES[name]
    module, _, attribute = name.partition(".")
    found = vars(sys.modules[module])[attribute] if module in _SHARED_MODULES else None
    if not isinstance(found, type):
        raise ValueError("not the name of a shared type")
    return found


class References:
    """The objects that each side knows of the other."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.factory = ProxyFactory(peer)
        self._objects: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._types: dict[type, int] = {}
        self.fresh: list[type] = []
        """Types that the message being written describes for the first time."""
        self._managed: dict[int, tuple[Any, Managed]] = {}
        self._stand_ins: dict[int, Any] = {}
        self._originals: dict[int, int] = {}

    # Ours

    def number_of(self, value: Any) -> int:
        """The number under which the other side knows an object of ours; keeps the object alive."""
        number = self._numbers.get(_id(value))
        if number is None:
            number = self._numbers[_id(value)] = len(self._objects)
            self._objects.append(value)
        return number

    def handed_over(self, number: int) -> Any:
        """The object of ours that the other side knows by a number.

        Raises:
            DecodeError: There is none.
        """
        if number >= len(self._objects):
            raise codec.DecodeError("a reference to an object that was not handed over")
        return self._objects[number]

    def was_handed_over(self, value: Any) -> bool:
        """Whether the other side knows an object of ours."""
        number = self._numbers.get(_id(value))
        return number is not None and self._objects[number] is value

    def forget_fresh(self, keep: bool) -> None:
        """After a message was written: whether it was sent, and with it the descriptions of types."""
        if not keep:
            for kind in self.fresh:
                del self._types[kind]
        self.fresh.clear()

    def describe_type(self, kind: type) -> tuple[Any, ...]:
        """What the other side needs to build a proxy class: all of it once per class.

        A type's number is only a name for it: it gives no access to the type itself.
        """
        if kind in self._types:
            return (self._types[kind],)
        number = self._types[kind] = len(self._types)
        self.fresh.append(kind)
        bases = [
            self.describe_type(base) for base in kind.__bases__ if base.__module__ != "builtins"
        ]
        base = proxies.base_of(kind)
        methods = proxies.special_methods(kind, self.peer.gate.home)
        base_name = base.__name__ if base is not None else ""
        return (number, kind.__name__[:200], bases, methods, base_name, proxies.field_names(kind))

    def refer(self, value: Any) -> tuple[str, Any] | None:
        """The reference for an object: its kind, and data."""
        theirs = proxies.number_of(value)
        if theirs is None:
            theirs = self._originals.get(_id(value))
        if theirs is not None:
            return ("yours", theirs)
        if isinstance(value, type):
            return self._refer_to_type(value)
        if isinstance(value, BaseException):
            theirs = self.peer.exceptions.original(value)
            if theirs is not None:
                return ("yours", theirs)
            return ("error", self.peer.exceptions.describe(value))
        if isinstance(value, proxies.RemoteObject):
            return ("named", (self._type_number_of(value), tuple(value)))
        return self._refer_to_object(value)

    def _refer_to_type(self, kind: type) -> tuple[str, Any]:
        shared = _shared_name(kind)
        if issubclass(kind, BaseException):
            return ("error type", self.peer.exceptions.names(kind))
        if shared is not None:
            return ("shared type", shared)
        return ("type", (self.number_of(kind), self.describe_type(kind)))

    def _refer_to_object(self, value: Any) -> tuple[str, Any] | None:
        kind = type(value)
        if kind is slice:
            return ("slice", (value.start, value.stop, value.step))
        if value is Ellipsis or value is NotImplemented:
            return ("constant", str(value))
        if kind in _VIEWS:
            return ("view", (_VIEWS[kind][0], tuple(value)))
        if kind is types.TracebackType:
            return ("constant", "None")
        if kind is types.ModuleType:
            return None
        name = ("types", "MappingProxyType") if kind is types.MappingProxyType else _name(kind)
        if name in _REBUILT and _standard_class(name) is kind:
            return ("rebuilt", (name, _REBUILT[name](value)))
        if isinstance(value, contextlib._GeneratorContextManager):
            _, value = self._managed.setdefault(_id(value), (value, Managed(value)))
        number, description = self.number_of(value), self.describe_type(type(value))
        if inspect.iscoroutine(value):
            return ("coroutine", (number, description))
        if kind is types.GeneratorType and self.peer.trusting:
            return ("generator", (number, description))
        base = proxies.base_of(type(value))
        if base in CONSTANT_BASES:
            return ("mine", (number, description, CONSTANT_BASES[base](value)))
        return ("mine", (number, description))

    def _type_number_of(self, value: Any) -> int:
        return next(number for number, kind in self.factory.types.items() if kind is type(value))

    # Theirs

    def resolve(self, kind: str, data: Any) -> Any:
        """The object that a reference stands for. Malformed references raise one of decoding's errors."""
        resolver = _RESOLVERS.get(kind)
        if resolver is None:
            raise ValueError(f"unknown kind of reference {kind!r:.50}")
        return resolver(self, data)

    def _yours(self, number: Any) -> Any:
        if type(number) is not int or number < 0:
            raise ValueError("a malformed reference")
        return self._objects[number]

    def _named(self, data: Any) -> Any:
        number, values = data
        kind = next(kind for kind, each in self._types.items() if each == number)
        fields = proxies.field_names(kind)
        if fields is None or type(values) is not tuple or len(values) != len(fields):
            raise ValueError("a malformed named tuple")
        return tuple.__new__(kind, values)

    def _stand_in(self, kind: str, data: Any) -> Any:
        number, description = data
        if number not in self._stand_ins:
            made = self.factory.stand_in(kind, number, description)
            self._stand_ins[number] = made
            self._originals[_id(made)] = number
        return self._stand_ins[number]

    def _type(self, data: Any) -> Any:
        number, description = data
        return self.factory.offer(number, self.factory.type_of(description))


def _view(data: Any) -> Any:
    name, found = data
    return dict(_VIEWS.values())[name](found)


_RESOLVERS: dict[str, Callable[[References, Any], Any]] = {
    "constant": lambda _, name: None if name == "None" else _CONSTANTS[name],
    "coroutine": lambda references, data: references._stand_in("coroutine", data),
    "error": lambda references, data: references.peer.exceptions.rebuild(data),
    "error type": lambda references, names: references.peer.exceptions.declare(names),
    "generator": lambda references, data: references._stand_in("generator", data),
    "mine": lambda references, data: references.factory.object(*data),
    "named": lambda references, data: references._named(data),
    "rebuilt": lambda _, data: _rebuilt(data),
    "shared type": lambda _, name: _shared_type(name),
    "slice": lambda _, parts: slice(*parts),
    "type": lambda references, data: references._type(data),
    "view": lambda _, data: _view(data),
    "yours": lambda references, number: references._yours(number),
}
