"""Objects of the other process, as the code on this side sees them: one fixed class.

A handle holds a number, and data where its object is a kind of builtin value. What it forwards are the operations of
`operations.py`. What it must never do is let the other side decide a comparison with our data, or a test could be won by
an object whose `__eq__` or `__sub__` always pleases. So, in a test:

- a handle without data equals only another handle;
- arithmetic, order and membership with plain data are forwarded only for objects that this side has itself made from a
  class, which it knows by a name in CapWords of its own text (`Vector(1, 2) * 2`);
- arithmetic with plain data must give another handle, and of that only methods, attributes and equality are left: no
  number can be made of it;
- objects of classes derived from `int`, `str`, `tuple`, `list` and so on (named tuples, `IntEnum`) are compared and
  calculated with here, by the value that they hold.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import operator
import sys
import types
from collections import Counter
from collections.abc import Callable, Generator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

from .assertions import must_stay, shown
from .bases import CONSTANT, CONTAINERS, FUNCTION, base_of, is_exact
from .hidden import HandleType, Unanswered
from .operations import ARITHMETIC, ORDER

if TYPE_CHECKING:
    from .peer import Peer

# Data that does not know more of equality than that a handle is something else.
_PLAIN = frozenset({
    *CONSTANT, *CONTAINERS, bool, range, types.NoneType, Decimal, Fraction, date, datetime, time, timedelta,
})  # fmt: skip
# Methods of builtin containers that change nothing.
_LOOKING = frozenset({"copy", "count", "get", "index", "items", "keys", "values"})
# Methods of builtin types that compare with what they are given: not on what a call returned.
_COMPARING = frozenset({"endswith", "isdisjoint", "issubset", "issuperset", "startswith"})
_OF_SETS = frozenset({"difference", "intersection", "symmetric_difference", "union"})
# What a test asks of these is about how a program is written.
_HIDDEN = frozenset({"__annotations__", "__members__", "__qualname__"})
_SLOTS = (
    "_peer", "_number", "_code", "_data", "_made", "_mixed", "_is_class", "_of_container", "_ends_loop", "_stamp",
)  # fmt: skip
_put = object.__setattr__
_CALCULATED, _MADE = 1, 2  # by arithmetic of objects that this side has made; by calling a class


class Handle(metaclass=HandleType):
    """An object of the other process."""

    __slots__ = ("__weakref__", *_SLOTS)

    if TYPE_CHECKING:
        _peer: Peer
        _number: int
        _code: int
        _data: Any
        _made: int
        _mixed: bool
        _ends_loop: bool
        _is_class: bool
        _of_container: bool
        _stamp: int

    __array_ufunc__ = None  # numpy must not hand its operations over
    __dataclass_fields__ = Unanswered()

    def __del__(self) -> None:
        self._peer.references.release(self)

    # Attributes and calls

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in _SLOTS:
            # Special names are how libraries find protocols (numpy's above all): a handle has none.
            if name == "__name__" and (self._peer.trusting or self._code != FUNCTION):
                return self._peer.ask("name", self)
            if name in _HIDDEN and not self._peer.trusting:
                self._peer.fail(f"{name} of an object of the program")
            raise AttributeError(name)
        if name in _LOOKING and is_exact(self._code):
            return getattr(_items(self), name)
        found = self._peer.ask("get", self, name)
        if type(found) is Handle and not self._made and not self._peer.trusting:
            _check_comparing(self, name)
        if is_exact(self._code) and type(found) is Handle:
            _put(found, "_of_container", True)  # `d.setdefault(k, [])` returns what d keeps
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        self._peer.ask("set", self, name, value)

    def __delattr__(self, name: str) -> None:
        self._peer.ask("delete", self, name)

    def __dir__(self) -> NoReturn:
        self._peer.fail("the names of the attributes of an object of the program")

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return base_of(self._code) or Handle

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Calls the object, in its own process."""
        is_class, references = self._is_class, self._peer.references
        references.newest = None
        made = self._peer.call(self, arguments, keywords)
        if is_class and type(made) is Handle and made is references.newest:
            _put(made, "_made", _MADE)
        return made

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        bound = instance is not None and self._code == FUNCTION
        return types.MethodType(self, instance) if bound else self

    def __instancecheck__(self, value: Any) -> Any:
        return _is_known_there(self, value) and self._peer.ask("isinstance", self, value)

    def __subclasscheck__(self, value: Any) -> Any:
        return _is_known_there(self, value) and self._peer.ask("issubclass", self, value)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> NoReturn:
        self._peer.fail("a class derived from a class of the other process")

    def __copy__(self) -> Any:
        return _copied(self, "copy")

    def __deepcopy__(self, memo: Any) -> Any:
        return _copied(self, "deepcopy")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        self._peer.fail("an object of the other process cannot be pickled here")

    # Text

    def __str__(self) -> Any:
        return self._peer.ask("str", self)

    def __repr__(self) -> Any:
        return self._peer.ask("repr", self)

    def __format__(self, spec: str) -> Any:
        return self._peer.ask("format", self, spec)

    # Containers and iteration

    def __len__(self) -> Any:
        return len(self._data) if _is_constant(self) or _is_fresh(self) else _ask(self, "len")

    def __iter__(self) -> Any:
        if _is_constant(self):
            return iter(self._data)
        if is_exact(self._code):
            return iter(_items(self))
        return _ask(self, "iter")

    def __next__(self) -> Any:
        return _ask(self, "next")

    def __reversed__(self) -> Any:
        if _is_constant(self) or is_exact(self._code):
            return reversed(_items(self))
        return _ask(self, "reversed")

    def __getitem__(self, key: Any) -> Any:
        if base_of(self._code) is Counter:  # a comparison asks for each key
            return held(self)[key]
        known = _is_constant(self) or _is_fresh(self)
        return self._data[key] if known else _ask(self, "getitem", key)

    def __setitem__(self, key: Any, value: Any) -> None:
        _ask(self, "setitem", key, value)

    def __delitem__(self, key: Any) -> None:
        _ask(self, "delitem", key)

    def __contains__(self, value: Any) -> Any:
        exact = is_exact(self._code)
        if base_of(self._code) and (exact or not (self._made == _MADE or type(value) is Handle)):
            return value in held(self)
        if not self._peer.trusting:
            _check_mixed(self, value, "in", deciding=True)
        return self._peer.ask("contains", self, value)

    def __enter__(self) -> Any:
        return _ask(self, "enter")

    def __exit__(self, *details: Any) -> Any:
        peer = self._peer
        if not must_stay(peer, details):
            return peer.ask("exit", self, *shown(peer, details))
        # What is raised there would take the assertion's place.
        with contextlib.suppress(BaseException):
            peer.ask("exit", self, *shown(peer, details))
        return False

    async def __aenter__(self) -> Any:
        return await self._peer.ask("aenter", self)

    async def __aexit__(self, *details: Any) -> Any:
        if not must_stay(self._peer, details):
            return await self._peer.ask("aexit", self, *shown(self._peer, details))
        with contextlib.suppress(BaseException):
            await self._peer.ask("aexit", self, *shown(self._peer, details))
        return False

    def __aiter__(self) -> Any:
        return _ask(self, "aiter")

    def __anext__(self) -> Any:
        found = _ask(self, "anext")
        handle = self._peer.references.behind(found)
        if handle is not None:
            _put(handle, "_ends_loop", True)
        return found

    def __await__(self) -> Generator[Any, Any, Any]:
        cancel = ever = False
        while True:
            try:
                done, value = self._peer.ask("await", self, cancel)
            except asyncio.CancelledError:
                if ever:
                    raise
                # A task that ends so counts as cancelled, and its group would not mind.
                self._peer.fail("the program raised CancelledError in what nobody had cancelled")
            if done:
                return value
            cancel = False
            try:
                yield
            except asyncio.CancelledError:  # it is the coroutine's to decide what becomes of it
                cancel = ever = True

    # Truth, identity, equality

    def __bool__(self) -> Any:
        known = _is_constant(self) or _is_fresh(self)
        return bool(self._data) if known else _ask(self, "bool")

    def __hash__(self) -> Any:
        return hash(self._data) if _is_constant(self) else _ask(self, "hash")

    def __eq__(self, other: Any) -> Any:
        return _equality(self, other, "eq")

    def __ne__(self, other: Any) -> Any:
        return _equality(self, other, "ne")

    def __or__(self, other: Any) -> Any:
        # In an annotation, `Node | None`.
        if self._is_class and (other is None or isinstance(other, type)):
            return self
        return _binary("or_")(self, other)

    def __ror__(self, other: Any) -> Any:
        if self._is_class and (other is None or isinstance(other, type)):
            return self
        return _binary("ror_")(self, other)


def _unary(name: str, here: Callable[[Any], Any]) -> Callable[..., Any]:
    def method(self: Handle) -> Any:
        return here(held(self)) if base_of(self._code) and not self._made else _ask(self, name)

    return method


def _is_known_there(handle: Handle, value: Any) -> bool:
    """Whether the program can have anything to say of the type of a value: not of plain data and Python's own exceptions."""
    if handle._peer.trusting or type(value) is Handle:
        return True
    kind = value if isinstance(value, type) else type(value)
    return kind not in _PLAIN and kind.__module__ != "builtins"


def _check_comparing(handle: Handle, name: str) -> None:
    """Refuses methods of builtin types that would be shown what a test expects, and say whether it is so."""
    base = base_of(handle._code)
    of_base = base is not None and name in _OF_SETS and hasattr(base, name)
    # `assertSetEqual` takes what has a method of this name for a set.
    asked_by_unittest = (
        name in _OF_SETS and sys._getframe(2).f_globals.get("__name__") == "unittest.case"
    )
    if name in _COMPARING or of_base or asked_by_unittest:
        handle._peer.fail(f"the method {name!r} of an object that a call returned")


def _round(self: Handle, digits: int | None = None) -> Any:
    return round(self._data, digits) if _is_constant(self) else _ask(self, "round", digits)


def _ask(handle: Handle, name: str, *operands: Any) -> Any:
    if handle._mixed:
        handle._peer.fail(f"{name!r} of the result of arithmetic with plain data")
    return handle._peer.ask(name, handle, *operands)


def _binary(name: str) -> Callable[..., Any]:
    reflected = name.startswith("r") and name != "rshift"
    plain = name[1:] if reflected else name
    here: Callable[[Any, Any], Any] = divmod if plain == "divmod" else getattr(operator, plain)
    deciding = plain in dict(ORDER)

    def method(self: Handle, other: Any) -> Any:
        peer = self._peer
        with_data = type(other) is not Handle and not peer.trusting
        if with_data and base_of(self._code):
            return here(other, held(self)) if reflected else here(held(self), other)
        if with_data:
            _check_mixed(self, other, plain, deciding)
        made, mixed = self._made, self._mixed or (type(other) is Handle and other._mixed)
        result = peer.ask(name, self, other)
        if deciding:
            return result
        return _calculated(self, result, made, mixed or (with_data and base_of(self._code) is None))

    return method


def _in_place(name: str) -> Callable[..., Any]:
    fallback = _binary(name if hasattr(operator, name) else f"{name}_")

    def method(self: Handle, other: Any) -> Any:
        peer = self._peer
        with_data = type(other) is not Handle and not peer.trusting
        if with_data and _is_constant(self):
            return fallback(self, other)
        if with_data and base_of(self._code) and not (is_exact(self._code) or self._made):
            return fallback(self, other)
        if with_data and not base_of(self._code):
            _check_mixed(self, other, name, deciding=False)
        made, mixed = self._made, self._mixed or (type(other) is Handle and other._mixed)
        result = peer.ask(f"i{name}", self, other)
        return _calculated(self, result, made, mixed or (with_data and base_of(self._code) is None))

    return method


def _calculated(handle: Handle, result: Any, made: int, mixed: bool) -> Any:
    if type(result) is Handle:
        if result is handle:  # it stays what it was
            _put(result, "_made", made)
        else:
            _put(result, "_made", made and _CALCULATED)
            _put(result, "_mixed", mixed)
    elif mixed:
        handle._peer.fail("arithmetic with plain data that returns plain data")
    return result


def _check_mixed(handle: Handle, other: Any, what: str, deciding: bool) -> None:
    """Refuses to show an object that a call returned what it would be compared with."""
    if handle._code == FUNCTION:
        raise TypeError(f"unsupported operand types for {what!r}: a function")
    decides = not deciding or (handle._made == _MADE and not handle._mixed)
    if type(other) is not Handle and not (handle._made and decides):
        handle._peer.fail(
            f"the operation {what!r} between plain data and an object that a call returned"
        )


def _equality(handle: Handle, other: Any, name: str) -> Any:
    peer = handle._peer
    if type(other) is Handle:
        if other is handle and base_of(handle._code):
            return name == "eq"
        if is_exact(handle._code) and is_exact(other._code):
            return getattr(operator, name)(held(handle), held(other))
        return peer.ask(name, handle, other)
    if base_of(handle._code):
        return getattr(operator, name)(held(handle), other)
    if peer.trusting:
        return peer.ask(name, handle, other)
    if isinstance(other, type) or type(other).__module__ in ("typing", "types"):
        return NotImplemented  # as where an annotation is looked up among others
    if type(other) in _PLAIN:  # NotImplemented would hold in `assert handle.__eq__(5)`
        return name == "ne"
    if type(other).__module__ not in (peer.home, "unittest.mock"):
        peer.fail(f"the comparison of an object of the program with a {type(other).__name__}")
    return NotImplemented  # the test's own class says what equals its objects


def _is_constant(handle: Handle) -> bool:
    return base_of(handle._code) in CONSTANT


def held(handle: Handle) -> Any:
    """A copy of what the object of a handle holds, as plain data of a builtin type."""
    if handle._mixed:
        handle._peer.fail("the data of the result of arithmetic with plain data")
    return handle._data if _is_constant(handle) or _is_fresh(handle) else _asked(handle, "data")


def refresh(handle: Handle, data: Any) -> None:
    """Notes what a container holds at the moment."""
    _put(handle, "_data", data)
    _put(handle, "_stamp", handle._peer.turns)


def _is_fresh(handle: Handle) -> bool:
    """Whether what came with a container is what it holds: nobody has asked the other side for anything since."""
    return handle._data is not None and handle._stamp == handle._peer.turns


def _items(handle: Handle) -> Any:
    """The same, where containers in it stay with the object."""
    if _is_fresh(handle):
        return copy.copy(handle._data)
    return handle._data if _is_constant(handle) else _asked(handle, "items")


def _asked(handle: Handle, name: str) -> Any:
    base: Any = base_of(handle._code)
    found = handle._peer.ask(name, handle)
    if name == "items" and base is not list and type(found) is list:
        return found
    if type(found) is not base and not (issubclass(base, dict) and type(found) is dict):
        handle._peer.fail(f"an object that holds no {base.__name__}, as it said")
    return found


def _copied(handle: Handle, name: str) -> Any:
    if is_exact(handle._code):
        return _items(handle) if name == "copy" else _asked(handle, "data")
    copied = handle._peer.ask(name, handle)
    if type(copied) is Handle and copied is not handle:
        _put(copied, "_made", handle._made and _CALCULATED)
        _put(copied, "_mixed", handle._mixed)
    return copied


def _add_operators() -> None:
    conversions: dict[str, Callable[[Any], Any]] = {
        "abs": abs, "complex": complex, "float": float, "index": operator.index, "int": int,
        "invert": operator.invert, "neg": operator.neg, "pos": operator.pos,
    }  # fmt: skip
    for name, here in conversions.items():
        setattr(Handle, f"__{name}__", _unary(name, here))
    Handle.__round__ = _round  # type: ignore[attr-defined]
    for name, _ in (*ORDER, ("divmod", "")):
        setattr(Handle, f"__{name}__", _binary(name))
    for name, _ in ARITHMETIC:
        plain = name.rstrip("_")
        setattr(Handle, f"__i{plain}__", _in_place(plain))
        if plain != "or":
            setattr(Handle, f"__{plain}__", _binary(name))
            setattr(Handle, f"__r{plain}__", _binary(f"r{name}"))


_add_operators()


def new(peer: Peer, number: int, code: int = 0, data: Any = None) -> Handle:
    """A handle of an object of the other side."""
    made = object.__new__(Handle)
    values = (peer, number, code, data, False, False, False, False, False, peer.turns)
    for slot, value in zip(_SLOTS, values, strict=True):
        _put(made, slot, value)
    return made


def mark_class(handle: Handle) -> None:
    """Notes that the test's own text uses a handle as a class."""
    _put(handle, "_is_class", True)


def unmark(handle: Handle) -> None:
    """Notes that a handle came in another way than by being made: it may be what a call returned."""
    if handle._made or handle._is_class:
        _put(handle, "_made", False)
        _put(handle, "_is_class", False)
