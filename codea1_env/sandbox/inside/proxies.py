"""Objects of the other process, as the code on this side sees them.

What a proxy must never do is let the other side decide a comparison with our data, or a test could be
won by an object whose `__eq__` or `__sub__` always pleases. So:

- a proxy equals only another proxy;
- arithmetic, order and membership with plain data are forwarded only for objects that this side has
  itself constructed from a class, which is known by a name in CapWords (`Vector(1, 2) * 2`);
- arithmetic with plain data must give another object, and of that object only methods, attributes and
  equality are left: no number can be made of it.
"""

from __future__ import annotations

import sys
from collections import namedtuple
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from .errors import RemoteUnencodable
from .preimported import MODULE_NAMES

if TYPE_CHECKING:
    from .remote import Peer

# Special method -> operation, by what the operands may be.
_UNARY = {
    "__abs__": "abs", "__bool__": "bool", "__bytes__": "bytes", "__complex__": "complex",
    "__enter__": "enter", "__float__": "float", "__hash__": "hash", "__index__": "index",
    "__int__": "int", "__invert__": "invert", "__iter__": "iter", "__len__": "len",
    "__neg__": "neg", "__next__": "next", "__pos__": "pos", "__repr__": "repr",
    "__reversed__": "reversed", "__str__": "str",
}  # fmt: skip
_KEYED = {
    "__delitem__": "delitem", "__exit__": "exit", "__format__": "format", "__getitem__": "getitem",
    "__round__": "round", "__setitem__": "setitem",
}  # fmt: skip
_BINARY = {
    "__add__": "add", "__and__": "and_", "__contains__": "contains", "__divmod__": "divmod",
    "__floordiv__": "floordiv", "__ge__": "ge", "__gt__": "gt", "__iadd__": "iadd",
    "__iand__": "iand", "__ifloordiv__": "ifloordiv", "__ilshift__": "ilshift",
    "__imatmul__": "imatmul", "__imod__": "imod", "__imul__": "imul", "__ior__": "ior",
    "__ipow__": "ipow", "__irshift__": "irshift", "__isub__": "isub", "__itruediv__": "itruediv",
    "__ixor__": "ixor", "__le__": "le", "__lshift__": "lshift", "__lt__": "lt",
    "__matmul__": "matmul", "__mod__": "mod", "__mul__": "mul", "__or__": "or_", "__pow__": "pow",
    "__rshift__": "rshift", "__sub__": "sub", "__truediv__": "truediv", "__xor__": "xor",
}  # fmt: skip
_REFLECTED = {
    "__radd__": "add", "__rand__": "and_", "__rfloordiv__": "floordiv", "__rmatmul__": "matmul",
    "__rmod__": "mod", "__rmul__": "mul", "__ror__": "or_", "__rpow__": "pow", "__rsub__": "sub",
    "__rtruediv__": "truediv", "__rxor__": "xor",
}  # fmt: skip
_SPECIAL = (*_UNARY, *_KEYED, *_BINARY, *_REFLECTED, "__await__", "__call__", "__eq__", "__ne__")


def special_methods(kind: type, home: str) -> tuple[str, ...]:
    """The special methods that a type has beyond those of every object.

    Args:
        kind: The type.
        home: The module whose classes have special methods of their own; other callables only have calls.
    """
    if kind.__module__ != home and any("__call__" in vars(base) for base in kind.__mro__):
        return ("__call__",)
    hidden = () if kind.__module__ == home else ("__hash__", "__repr__", "__str__")
    return tuple(
        name
        for name in _SPECIAL
        if name not in hidden
        and getattr(kind, name, None) is not None
        and getattr(kind, name) is not getattr(object, name, None)
    )


def named_tuple(name: str, fields: tuple[str, ...]) -> Callable[..., Any]:
    """The class of a named tuple that crosses with its names."""
    return namedtuple(name, fields)


class RemoteType(type):
    """The type of proxy classes: calling one constructs an object on the other side."""

    remote_peer: Peer
    remote_number: int | None
    """None for a class that is only known as the type of an object."""
    remote_is_class: bool
    """Whether the test knows it by a name in CapWords, so that it is the test that speaks of a class."""

    def __call__(cls, *arguments: Any, **keywords: Any) -> Any:
        """Constructs an object on the other side."""
        made = cls.remote_peer.request("call", cls, arguments, keywords)
        if isinstance(made, RemoteObject) and cls.remote_is_class:
            object.__setattr__(made, "remote_made", True)
        return made

    def __getattr__(cls, name: str) -> Any:
        return _attribute(cls.remote_peer, cls, name)

    def __iter__(cls) -> Any:
        return cls.remote_peer.request("op", "iter", (cls,))

    def __len__(cls) -> Any:
        return cls.remote_peer.request("op", "len", (cls,))

    def __getitem__(cls, key: Any) -> Any:
        return cls.remote_peer.request("op", "getitem", (cls, key))


def _attribute(peer: Peer, target: Any, name: str) -> Any:
    # Special names are how libraries find protocols (numpy's above all): a proxy has none but its methods.
    if name.startswith("__"):
        raise AttributeError(name)
    return peer.request("get", target, name)


class RemoteObject:
    """The base of all proxies."""

    remote_peer: Peer
    remote_number: int
    remote_made: bool
    """Whether this side has constructed it."""
    remote_mixed: bool
    """Whether it is the result of arithmetic with our plain data."""
    __array_ufunc__ = None  # numpy must not hand its operations over

    def __getattr__(self, name: str) -> Any:
        return _attribute(self.remote_peer, self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self.remote_peer.request("set", self, name, value)

    def __delattr__(self, name: str) -> None:
        self.remote_peer.request("delete", self, name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of the other process>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        self.remote_peer.fail("an object of the other process cannot be copied or pickled here")


def _forward(operation: str) -> Callable[..., Any]:
    def method(self: RemoteObject, *operands: Any) -> Any:
        if self.remote_mixed:
            self.remote_peer.fail(f"{operation!r} of the result of arithmetic with plain data")
        return self.remote_peer.request("op", operation, (self, *operands))

    return method


def _forward_binary(operation: str, reflected: bool) -> Callable[..., Any]:
    decides = operation in ("contains", "ge", "gt", "le", "lt")

    def method(self: RemoteObject, *operands: Any) -> Any:
        mixed = not all(isinstance(value, RemoteObject) for value in operands)
        if mixed and (not self.remote_made or (decides and self.remote_mixed)):
            self.remote_peer.fail(
                f"the operation {operation!r} between plain data and an object that a call returned"
            )
        ordered = (*operands, self) if reflected else (self, *operands)
        result = self.remote_peer.request("op", operation, ordered)
        if decides and type(result) is not bool:
            self.remote_peer.fail(f"{operation!r} that returns something other than True or False")
        if not decides and isinstance(result, RemoteObject):
            object.__setattr__(result, "remote_made", self.remote_made)
            object.__setattr__(result, "remote_mixed", mixed or self.remote_mixed)
        elif not decides and (mixed or self.remote_mixed):
            self.remote_peer.fail("arithmetic with plain data that returns plain data")
        return result

    return method


def _equal(self: RemoteObject, other: Any) -> Any:
    if isinstance(other, RemoteObject):
        return self.remote_peer.request("op", "eq", (self, other))
    return NotImplemented


def _unequal(self: RemoteObject, other: Any) -> Any:
    if isinstance(other, RemoteObject):
        return self.remote_peer.request("op", "ne", (self, other))
    return NotImplemented


def _call(self: RemoteObject, *arguments: Any, **keywords: Any) -> Any:
    return self.remote_peer.request("call", self, arguments, keywords)


def _identity_hash(self: RemoteObject) -> int:
    return self.remote_number


def _await(self: RemoteObject) -> Any:
    yield from ()
    return self.remote_peer.request("op", "await", (self,))


_METHODS: dict[str, Callable[..., Any]] = {
    **{name: _forward(operation) for name, operation in (_UNARY | _KEYED).items()},
    **{name: _forward_binary(operation, False) for name, operation in _BINARY.items()},
    **{name: _forward_binary(operation, True) for name, operation in _REFLECTED.items()},
    "__await__": _await,
    "__call__": _call,
    "__eq__": _equal,
    "__ne__": _unequal,
}


async def _coroutine(proxy: Any) -> Any:
    return await proxy


class ProxyFactory:
    """Makes proxies, one per object and one class per type, so that `is` and `isinstance` work."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self._types: dict[int, RemoteType] = {}
        self._objects: dict[int, Any] = {}
        self._exceptions: dict[tuple[str, str], type[BaseException]] = {}

    def number_of(self, value: Any) -> int | None:
        """The other side's number of a proxy; None for anything else."""
        if isinstance(value, (RemoteObject, RemoteType)):
            if value.remote_number is None:
                raise RemoteUnencodable("a class that is only known as the type of an object")
            return value.remote_number
        return None

    def proxy(self, kind: str, reference: Any) -> Any:
        """The proxy for a reference.

        Raises:
            RemoteUnencodable: The kind is unknown.
        """
        if kind == "type":
            number, description = reference
            found_type = self._type(description)
            found_type.remote_number = number
            return found_type
        if kind not in ("mine", "coroutine"):
            raise RemoteUnencodable(f"unknown kind of reference {kind!r:.50}")
        number, description = reference
        if number not in self._objects:
            made: Any = object.__new__(cast("type[RemoteObject]", self._type(description)))
            object.__setattr__(made, "remote_number", number)
            object.__setattr__(made, "remote_made", False)
            object.__setattr__(made, "remote_mixed", False)
            self._objects[number] = made
        found = self._objects[number]
        return _coroutine(found) if kind == "coroutine" else found

    def _type(self, description: tuple[Any, ...]) -> RemoteType:
        number, *details = description
        if details:
            name, bases, methods = details
            parents = tuple(self._type(base) for base in bases) or (RemoteObject,)
            namespace: dict[str, Any] = {method: _METHODS[method] for method in methods}
            if "__hash__" not in namespace:
                namespace["__hash__"] = _identity_hash
            namespace |= {"remote_peer": self.peer, "remote_number": None, "remote_is_class": False}
            self._types[number] = RemoteType(name, parents, namespace)
        return self._types[number]

    def declare_exception(self, classes: list[tuple[str, str]]) -> type[BaseException]:
        """The class on this side for an exception class of the other; made if it is not a known one."""
        key = classes[0]
        if key not in self._exceptions:
            known = _known_exception(key)
            if known is None:
                base = next(filter(None, map(_known_exception, classes)), Exception)
                known = type(key[1], (base,), {"__str__": _remote_text})
            self._exceptions[key] = known
        return self._exceptions[key]

    def exception(self, description: dict[str, Any]) -> BaseException:
        """Rebuilds an exception that was raised on the other side."""
        kind = self.declare_exception(description["classes"])
        arguments = description["args"]
        if arguments is None:
            arguments = (description["message"],)
        try:
            error = kind(*arguments)
        except Exception:  # a class of the standard library with its own signature
            error = kind.__new__(kind, *arguments)
            error.args = arguments
        error.__dict__.update(description["attributes"])
        error.__dict__["remote_message"] = description["message"]
        return error


def _remote_text(error: BaseException) -> str:
    return str(error.__dict__.get("remote_message", BaseException.__str__(error)))


def _known_exception(key: tuple[str, str]) -> type[BaseException] | None:
    known = key[0] == "builtins" or key[0].partition(".")[0] in MODULE_NAMES
    module = sys.modules.get(key[0]) if known else None
    found = vars(module).get(key[1]) if module is not None else None
    return found if isinstance(found, type) and issubclass(found, BaseException) else None


def write_back(target: Any, changed: Any) -> None:
    """Makes a container equal to its changed copy, in place and with nested containers kept.

    Example:
        >>> row = [1]; table = [row]
        >>> write_back(table, [[1, 2]]); row
        [1, 2]
    """
    if type(target) is not type(changed):
        return
    if isinstance(target, list) and len(target) == len(changed):
        for index, value in enumerate(changed):
            if type(value) in (list, dict, set) and type(target[index]) is type(value):
                write_back(target[index], value)
            else:
                target[index] = value
    elif isinstance(target, (list, bytearray)) or hasattr(target, "__array__"):
        target[:] = changed
    elif isinstance(target, dict):
        for key in list(target):
            if key not in changed:
                del target[key]
        for key, value in changed.items():
            if type(value) in (list, dict, set) and type(target.get(key)) is type(value):
                write_back(target[key], value)
            else:
                target[key] = value
    elif isinstance(target, set) or hasattr(target, "extend"):
        target.clear()
        (target.update if isinstance(target, set) else target.extend)(changed)
