"""Objects of the other process, as the code on this side sees them.

What a proxy must never do is let the other side decide a comparison with our data, or a test could be
won by an object whose `__eq__` or `__sub__` always pleases. So, in a test:

- a proxy equals only another proxy;
- arithmetic, order and membership with plain data are forwarded only for objects that this side has
  itself constructed from a class, which it knows by a name in CapWords (`Vector(1, 2) * 2`);
- arithmetic with plain data must give another object, and of that object only methods, attributes and
  equality are left: no number can be made of it;
- objects of classes derived from `int`, `str`, `tuple`, `list` and so on (named tuples, `IntEnum`) are
  compared and calculated with here, by the value that they hold.
"""

from __future__ import annotations

import asyncio
import dataclasses
import operator
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, cast

from .errors import RemoteUnencodable
from .operations import CHANGING_BASES, CONSTANT_BASES

if TYPE_CHECKING:
    from .remote import Peer

# Data that does not know more of equality than that a proxy is something else.
_PLAIN = frozenset(
    {bool, bytes, complex, dict, float, frozenset, int, list, set, str, tuple, types.NoneType}
)

# Special method -> operation, by what the operands may be.
_UNARY = {
    "__abs__": "abs", "__aenter__": "aenter", "__aiter__": "aiter", "__anext__": "anext",
    "__bool__": "bool", "__bytes__": "bytes", "__complex__": "complex", "__enter__": "enter",
    "__float__": "float", "__hash__": "hash", "__index__": "index", "__int__": "int",
    "__invert__": "invert", "__iter__": "iter", "__len__": "len", "__neg__": "neg",
    "__next__": "next", "__pos__": "pos", "__repr__": "repr", "__reversed__": "reversed",
    "__str__": "str",
}  # fmt: skip
_KEYED = {
    "__aexit__": "aexit", "__delitem__": "delitem", "__exit__": "exit", "__format__": "format",
    "__getitem__": "getitem", "__round__": "round", "__setitem__": "setitem",
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
CALCULATING = frozenset(_BINARY | _REFLECTED)
_DECIDING = ("contains", "ge", "gt", "le", "lt")
_SPECIAL = (
    *_UNARY, *_KEYED, *_BINARY, *_REFLECTED, "__await__", "__call__", "__eq__", "__get__", "__ne__",
)  # fmt: skip
# What the value of an `int`, a `str` or a named tuple decides by itself.
_BY_VALUE = frozenset({
    "__bool__", "__bytes__", "__complex__", "__contains__", "__eq__", "__float__", "__ge__",
    "__getitem__", "__gt__", "__hash__", "__index__", "__int__", "__iter__", "__le__", "__len__",
    "__lt__", "__ne__", "__reversed__", "__round__",
})  # fmt: skip


def base_of(kind: type) -> type | None:
    """The builtin type that objects of a class hold a value of."""
    for base in (*CONSTANT_BASES, *CHANGING_BASES):
        if issubclass(kind, base) and kind is not base:
            return base
    return None


def field_names(kind: type) -> tuple[str, ...] | None:
    """The names of a named tuple's fields."""
    fields = getattr(kind, "_fields", None) if issubclass(kind, tuple) else None
    if type(fields) is tuple and all(type(field) is str for field in fields):
        return fields
    return None


def special_methods(kind: type, home: str) -> tuple[str, ...]:
    """The special methods that a type has beyond those of every object, or of the value it holds.

    Args:
        kind: The type.
        home: The module whose classes have special methods of their own; other callables only have calls.
    """
    if kind.__module__ != home and any("__call__" in vars(base) for base in kind.__mro__):
        return ("__call__", "__get__") if kind is types.FunctionType else ("__call__",)
    base = base_of(kind)
    constant = base in CONSTANT_BASES
    hidden = {"__get__"} if kind.__module__ == home else {"__get__", "__repr__", "__str__"}
    if constant:
        hidden |= _BY_VALUE
    elif kind.__module__ != home:
        hidden |= {"__hash__"}
    found = []
    for name in _SPECIAL:
        method = getattr(kind, name, None)
        if name == "__hash__" and method is None and not constant:
            found.append(name)  # the other side says that it is unhashable
        inherited = (getattr(object, name, None), getattr(base, name, None) if constant else None)
        # Named tuples have a `__repr__` of their own, on both sides.
        made = constant and getattr(method, "__module__", None) == "collections"
        if method is not None and method not in inherited and not made and name not in hidden:
            found.append(name)
    return tuple(found)


class RemoteType(type):
    """The type of proxy classes: calling one constructs an object on the other side."""

    remote_peer: Peer
    remote_type_number: int | None
    """None for a class that is only known as the type of an object."""
    remote_base: type | None
    remote_is_class = False
    """Whether the test knows it by a name in CapWords, so that it is the test that speaks of a class."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        """Refuses a class statement: its methods would have to run on the other side."""
        parent = next(base for base in bases if isinstance(base, RemoteType))
        parent.remote_peer.fail(f"the class {name!r} is derived from a class of the other process")

    def __call__(cls, *arguments: Any, **keywords: Any) -> Any:
        """Constructs an object on the other side."""
        made = cls.remote_peer.call(cls, arguments, keywords)
        if isinstance(made, RemoteObject) and cls.remote_is_class:
            object.__setattr__(made, "remote_made", True)
        return made

    def __getattr__(cls, name: str) -> Any:
        return _attribute(cls.remote_peer, cls, name)

    def __setattr__(cls, name: str, value: Any) -> None:
        if name == "remote_is_class":  # a class that is also known as a function is none
            type.__setattr__(cls, name, value and vars(cls).get(name, True))
        elif name.startswith("__"):
            type.__setattr__(cls, name, value)
        else:
            cls.remote_peer.request("set", cls, name, value)

    def __delattr__(cls, name: str) -> None:
        cls.remote_peer.request("delete", cls, name)

    def __iter__(cls) -> Any:
        return cls.remote_peer.request("op", "iter", (cls,))

    def __len__(cls) -> Any:
        return cls.remote_peer.request("op", "len", (cls,))

    def __getitem__(cls, key: Any) -> Any:
        return cls.remote_peer.request("op", "getitem", (cls, key))


def _attribute(peer: Peer, target: Any, name: str) -> Any:
    if name == "__dataclass_fields__":
        return _dataclass_fields(peer, target)
    if name == "__match_args__":
        return peer.request("op", "match_args", (target,))
    # Special names are how libraries find protocols (numpy's above all): a proxy has none but its methods.
    if name.startswith("__"):
        raise AttributeError(name)
    return peer.request("get", target, name)


def _dataclass_fields(peer: Peer, target: Any) -> dict[str, Any]:
    try:
        names = peer.request("op", "fields", (target,))
    except TypeError:
        raise AttributeError("__dataclass_fields__") from None
    real = dataclasses.make_dataclass("_Fields", names)
    return {field.name: field for field in dataclasses.fields(real)}


class RemoteObject:
    """The base of all proxies."""

    if TYPE_CHECKING:
        remote_peer: Peer
    remote_number = None
    """None for a named tuple that was made here."""
    remote_made = False
    """Whether this side has constructed it."""
    remote_mixed = False
    """Whether it is the result of arithmetic with our plain data."""
    __array_ufunc__ = None  # numpy must not hand its operations over

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        raise AttributeError("__dict__")

    def __getattr__(self, name: str) -> Any:
        return _attribute(self.remote_peer, self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self.remote_peer.request("set", self, name, value)

    def __delattr__(self, name: str) -> None:
        self.remote_peer.request("delete", self, name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of the other process>"

    def __copy__(self) -> Any:
        return _copied(self, "copy")

    def __deepcopy__(self, memo: Any) -> Any:
        return _copied(self, "deepcopy")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        self.remote_peer.fail("an object of the other process cannot be pickled here")


def _copied(proxy: RemoteObject, operation: str) -> Any:
    if "__get__" in vars(type(proxy)):  # functions are copied by reference
        return proxy
    if not proxy.remote_made and not proxy.remote_peer.trusting:
        proxy.remote_peer.fail("a copy of an object that a call returned")
    copied = proxy.remote_peer.request("op", operation, (proxy,))
    if isinstance(copied, RemoteObject):
        object.__setattr__(copied, "remote_made", proxy.remote_made)
        object.__setattr__(copied, "remote_mixed", proxy.remote_mixed)
    return copied


def _forward(operation: str) -> Callable[..., Any]:
    def method(self: RemoteObject, *operands: Any) -> Any:
        if self.remote_mixed:
            self.remote_peer.fail(f"{operation!r} of the result of arithmetic with plain data")
        return self.remote_peer.request("op", operation, (self, *operands))

    return method


def _are_remote(operands: tuple[Any, ...]) -> bool:
    return all(isinstance(value, RemoteObject) for value in operands)


def _data(proxy: RemoteObject) -> Any:
    """A copy of what an object of a class derived from `list`, `dict` or the like holds."""
    if proxy.remote_mixed:
        proxy.remote_peer.fail("the data of the result of arithmetic with plain data")
    return proxy.remote_peer.request("op", "data", (proxy,))


def _forward_binary(operation: str, reflected: bool) -> Callable[..., Any]:
    decides = operation in _DECIDING

    def method(self: RemoteObject, *operands: Any) -> Any:
        peer = self.remote_peer
        mixed = not _are_remote(operands) and not peer.trusting
        ordered = (*operands, self) if reflected else (self, *operands)
        if mixed and type(self).remote_base is not None and not operation.startswith("i"):  # type: ignore[attr-defined]
            local = [_data(value) if value is self else value for value in ordered]
            return getattr(operator, operation)(*local)
        if mixed and (not self.remote_made or (decides and self.remote_mixed)):
            peer.fail(
                f"the operation {operation!r} between plain data and an object that a call returned"
            )
        result = peer.request("op", operation, ordered)
        if decides and type(result) is not bool:
            peer.fail(f"{operation!r} that returns something other than True or False")
        if not decides and isinstance(result, RemoteObject):
            object.__setattr__(result, "remote_made", self.remote_made)
            object.__setattr__(result, "remote_mixed", mixed or self.remote_mixed)
        elif not decides and (mixed or self.remote_mixed):
            peer.fail("arithmetic with plain data that returns plain data")
        return result

    return method


def by_value(name: str, base: type, method: Callable[..., Any]) -> Callable[..., Any]:
    """Arithmetic of a class derived from `int` or the like: with plain data it is done here.

    Args:
        name: The special method.
        base: The builtin type.
        method: What asks the other side.
    """
    plain = getattr(base, name, None)

    def calculate(self: RemoteObject, *operands: Any) -> Any:
        if _are_remote(operands) or self.remote_peer.trusting:
            return method(self, *operands)
        return plain(self, *operands) if plain is not None else NotImplemented

    return calculate


def _equality(operation: str) -> Callable[..., Any]:
    def method(self: RemoteObject, other: Any) -> Any:
        if isinstance(other, RemoteObject) or self.remote_peer.trusting:
            return self.remote_peer.request("op", operation, (self, other))
        if type(self).remote_base is not None:  # type: ignore[attr-defined]
            return getattr(operator, operation)(_data(self), other)
        if type(other) in _PLAIN:  # NotImplemented would hold in `assert proxy.__eq__(5)`
            return operation == "ne"
        return NotImplemented

    return method


def _call(self: RemoteObject, *arguments: Any, **keywords: Any) -> Any:
    return self.remote_peer.call(self, arguments, keywords)


def _bind(self: RemoteObject, instance: Any, owner: Any = None) -> Any:
    return (
        self if instance is None else types.MethodType(cast("Callable[..., Any]", self), instance)
    )


def identity_hash(self: RemoteObject) -> Any:
    """The hash of an object whose class has none of its own."""
    return self.remote_number


def _await(self: RemoteObject) -> Any:
    cancelled = False
    while True:
        done, value = self.remote_peer.request("await", self, cancelled)
        if done:
            return value
        cancelled = False
        try:
            yield
        except asyncio.CancelledError:  # it is the coroutine's to decide what becomes of it
            cancelled = True


METHODS: dict[str, Callable[..., Any]] = {
    **{name: _forward(operation) for name, operation in (_UNARY | _KEYED).items()},
    **{name: _forward_binary(operation, False) for name, operation in _BINARY.items()},
    **{name: _forward_binary(operation, True) for name, operation in _REFLECTED.items()},
    "__await__": _await,
    "__call__": _call,
    "__eq__": _equality("eq"),
    "__get__": _bind,
    "__ne__": _equality("ne"),
}


def number_of(value: Any) -> int | None:
    """The other side's number of a proxy; None for anything else.

    Raises:
        RemoteUnencodable: A class that was not handed over.
    """
    if isinstance(value, RemoteType):
        if value.remote_type_number is None:
            raise RemoteUnencodable("a class that is only known as the type of an object")
        return value.remote_type_number
    return value.remote_number if isinstance(value, RemoteObject) else None
