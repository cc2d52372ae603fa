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
import datetime as datetime_module
import operator
import sys
import types
from collections import Counter
from collections.abc import Generator
from contextlib import AbstractContextManager
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

from ..errors import RemoteUnencodable
from . import bases
from .assertions import check_block, must_stay, shown
from .bases import CONSTANT, CONTAINERS, base_of, is_exact

if TYPE_CHECKING:
    from .peer import Peer

# Data that does not know more of equality than that a handle is something else.
_PLAIN = frozenset({
    *CONSTANT, *CONTAINERS, bool, range, types.NoneType, Decimal, Fraction, date, datetime, time, timedelta,
})  # fmt: skip
# Methods of builtin containers that change nothing.
_UNCHANGING = frozenset({"copy", "count", "get", "index", "items", "keys", "values"})
# Methods of builtin types that compare with what they are given: not on what a call returned.
_COMPARING = frozenset({"endswith", "isdisjoint", "issubset", "issuperset", "startswith"})
_OF_SETS = frozenset({"difference", "intersection", "symmetric_difference", "union"})
_COMPARED = _COMPARING | _OF_SETS
# What a test asks of these is about how a program is written.
_HIDDEN = frozenset({"__annotations__", "__members__", "__qualname__"})
_SLOTS = (
    "_codea1_peer", "_codea1_number", "_codea1_code", "_codea1_data", "_codea1_stamp", "_codea1_own", "_codea1_marks",
)  # fmt: skip
_put = object.__setattr__
CALCULATED, MADE, MIXED, IS_CLASS, OF_CONTAINER, ENDS_LOOP = 1, 2, 4, 8, 16, 32
"""Marks of a handle, which only this side gives: of an object that was made here, by arithmetic of such objects or by
calling a class; that has seen plain data in arithmetic; that the test's own text uses as a class; that a container keeps;
of a coroutine whose `StopAsyncIteration` ends a loop."""
OURS = CALCULATED | MADE
_UNITTEST = "unittest.case"


class HandleType(type):
    """Only so that looking at the type of a handle is not answered wrongly without a word."""

    hidden = False

    @property
    def __name__(cls) -> str:  # type: ignore[override]
        cls._refuse()
        return str(type.__dict__["__name__"].__get__(cls))

    def __eq__(cls, other: object) -> bool:
        if type(other) is cls:
            cls._refuse()
        return cls is other

    __hash__ = type.__hash__

    def _refuse(cls) -> None:
        if cls.hidden:
            raise RemoteUnencodable("the type of an object of the program is not known")


def hide_type() -> None:
    """Let no code of this process look at the type of a handle. Where foreign code runs."""
    HandleType.hidden = True


class _Unanswered:
    """Stands where a library looks for what is not known of an object of the program."""

    def __get__(self, handle: object, kind: type) -> NoReturn:
        raise RemoteUnencodable("the fields of an object of the program are not known")


class Handle(metaclass=HandleType):
    """An object of the other process."""

    __slots__ = ("__weakref__", *_SLOTS)

    if TYPE_CHECKING:
        _codea1_peer: Peer
        _codea1_number: int
        _codea1_code: int
        _codea1_data: Any
        _codea1_stamp: int
        _codea1_own: int
        _codea1_marks: int

    __array_ufunc__ = None  # numpy must not hand its operations over
    __dataclass_fields__ = _Unanswered()

    def __del__(self) -> None:
        self._codea1_peer.references.release(self)

    # Attributes and calls

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in _SLOTS:
            # Special names are how libraries find protocols (numpy's above all): a handle has none.
            if name == "__name__" and (
                self._codea1_peer.trusting or self._codea1_code != bases.FUNCTION
            ):
                return self._codea1_peer.ask("name", self)
            if name in _HIDDEN and not self._codea1_peer.trusting:
                self._codea1_peer.fail(f"{name} of an object of the program")
            raise AttributeError(name)
        if name in _UNCHANGING and is_exact(self._codea1_code):
            return getattr(_items(self), name)
        if name in _COMPARED and not self._codea1_peer.trusting:
            here = _compared_here(self, name)
            if here is not None:
                return here
        found = self._codea1_peer.ask("get", self, name)
        if is_exact(self._codea1_code) and type(found) is Handle:
            mark(found, OF_CONTAINER)  # `d.setdefault(k, [])` returns what d keeps
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        self._codea1_peer.ask("set", self, name, value)

    def __delattr__(self, name: str) -> None:
        self._codea1_peer.ask("delete", self, name)

    def __dir__(self) -> NoReturn:
        self._codea1_peer.fail("the names of the attributes of an object of the program")

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return base_of(self._codea1_code) or Handle

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Call the object, in its own process."""
        is_class, references = self._codea1_marks & IS_CLASS, self._codea1_peer.references
        references.newest = None
        name, operands = "call", arguments
        if keywords:
            name, operands = "call_with_names", (arguments, (*keywords,), (*keywords.values(),))
        made = self._codea1_peer.ask(name, self, *operands)
        if is_class and type(made) is Handle and made is references.newest:
            mark(made, MADE, removed=OURS)
        return made

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        bound = instance is not None and self._codea1_code == bases.FUNCTION
        return types.MethodType(self, instance) if bound else self

    def __instancecheck__(self, value: Any) -> Any:
        return _is_known_there(self, value) and self._codea1_peer.ask("isinstance", self, value)

    def __subclasscheck__(self, value: Any) -> Any:
        return _is_known_there(self, value) and self._codea1_peer.ask("issubclass", self, value)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> NoReturn:
        self._codea1_peer.fail("a class derived from a class of the other process")

    def __copy__(self) -> Any:
        return _copied(self, "copy")

    def __deepcopy__(self, memo: Any) -> Any:
        return _copied(self, "deepcopy")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        self._codea1_peer.fail("an object of the other process cannot be pickled here")

    # Containers and iteration

    def __len__(self) -> Any:
        return len(self._codea1_data) if is_constant(self) or _is_fresh(self) else ask(self, "len")

    def __iter__(self) -> Any:
        if is_constant(self):
            return iter(self._codea1_data)
        if is_exact(self._codea1_code):
            return iter(_items(self))
        return ask(self, "iter")

    def __reversed__(self) -> Any:
        if is_constant(self) or is_exact(self._codea1_code):
            return reversed(_items(self))
        return ask(self, "reversed")

    def __getitem__(self, key: Any) -> Any:
        if base_of(self._codea1_code) is Counter:  # a comparison asks for each key
            return held(self)[key]
        known = is_constant(self) or _is_fresh(self)
        return self._codea1_data[key] if known else ask(self, "getitem", key)

    def __contains__(self, value: Any) -> Any:
        exact = is_exact(self._codea1_code)
        asked = self._codea1_marks & MADE or type(value) is Handle
        if base_of(self._codea1_code) and (exact or not asked):
            check_own(self, "in")
            return value in held(self)
        if not self._codea1_peer.trusting:
            check_mixed(self, value, "in", deciding=True)
        return self._codea1_peer.ask("contains", self, value)

    def __exit__(self, *details: Any) -> Any:
        peer = self._codea1_peer
        with _outlived(peer, details):
            return _suppresses(peer, details, peer.ask("exit", self, *shown(peer, details)))
        return False

    async def __aenter__(self) -> Any:
        return await self._codea1_peer.ask("aenter", self)

    async def __aexit__(self, *details: Any) -> Any:
        peer = self._codea1_peer
        with _outlived(peer, details):
            return _suppresses(peer, details, await peer.ask("aexit", self, *shown(peer, details)))
        return False

    def __anext__(self) -> Any:
        found = ask(self, "anext")
        handle = self._codea1_peer.references.behind(found)
        if handle is not None:
            mark(handle, ENDS_LOOP)
        return found

    def __await__(self) -> Generator[Any, Any, Any]:
        cancel = ever = False
        peer = self._codea1_peer
        begun = peer.kept_errors
        while True:
            try:
                done, value = peer.ask("await", self, cancel, begun=begun)
            except asyncio.CancelledError:
                if ever:
                    raise
                # A task that ends so counts as cancelled, and its group would not mind.
                peer.fail("the program raised CancelledError in what nobody had cancelled")
            if done:
                return value
            cancel = False
            try:
                yield
            except asyncio.CancelledError:  # it is the coroutine's to decide what becomes of it
                cancel = ever = True

    # Truth, identity, equality

    def __bool__(self) -> Any:
        known = is_constant(self) or _is_fresh(self)
        return bool(self._codea1_data) if known else ask(self, "bool")

    def __hash__(self) -> Any:
        return hash(self._codea1_data) if is_constant(self) else ask(self, "hash")

    def __eq__(self, other: Any) -> Any:
        return _equality(self, other, "eq")

    def __ne__(self, other: Any) -> Any:
        return _equality(self, other, "ne")


def _outlived(peer: Peer, details: tuple[Any, ...]) -> AbstractContextManager[None]:
    """Drop what is raised on leaving a block that a verdict ends: it would take the verdict's place."""
    stays = must_stay(peer, details)
    return contextlib.suppress(BaseException) if stays else contextlib.nullcontext()


def _suppresses(peer: Peer, details: tuple[Any, ...], answer: Any) -> Any:
    """Whether a context manager of the other side may suppress what ends its block, as it wants to."""
    if must_stay(peer, details):
        return False
    if answer:
        check_block(peer, details[1])
    return answer


def check_own(handle: Handle, what: str) -> None:
    """Refuse to do here, with what an object holds, what its class may do in another way."""
    if handle._codea1_own & bases.OWN_OPERATORS:
        handle._codea1_peer.fail(
            f"{what!r} of an object whose class defines operators for the data that it holds"
        )


def _is_known_there(handle: Handle, value: Any) -> bool:
    """Whether the program can have anything to say of the type of a value: not of plain data and Python's own exceptions."""
    if handle._codea1_peer.trusting or type(value) is Handle:
        return True
    kind = value if isinstance(value, type) else type(value)
    return kind not in _PLAIN and kind.__module__ != "builtins"


def _compared_here(handle: Handle, name: str) -> Any:
    """Return a method of a builtin type that compares with what a test expects, on what an object holds; None to ask for it.

    On what a call returned it is refused before it is asked for: it would be shown what is expected, and say whether
    it is so.
    """
    base = base_of(handle._codea1_code)
    own = handle._codea1_own & bases.OWN_OPERATORS
    if base is not None and hasattr(base, name) and (is_exact(handle._codea1_code) or not own):
        return getattr(held(handle), name)
    # `assertSetEqual` takes what has a method of this name for a set.
    by_unittest = name in _OF_SETS and sys._getframe(2).f_globals.get("__name__") == _UNITTEST
    if by_unittest or (name in _COMPARING and not handle._codea1_marks & OURS):
        handle._codea1_peer.fail(f"the method {name!r} of an object that a call returned")
    return None


def ask(handle: Handle, name: str, *operands: Any) -> Any:
    """Has an operation performed, but for the result of arithmetic with plain data."""
    if handle._codea1_marks & MIXED:
        handle._codea1_peer.fail(f"{name!r} of the result of arithmetic with plain data")
    return handle._codea1_peer.ask(name, handle, *operands)


def check_mixed(handle: Handle, other: Any, what: str, deciding: bool) -> None:
    """Refuse to show an object that a call returned what it would be compared with."""
    if handle._codea1_code == bases.FUNCTION:
        raise TypeError(f"unsupported operand types for {what!r}: a function")
    decides = not deciding or handle._codea1_marks & (MADE | MIXED) == MADE
    if type(other) is not Handle and not (handle._codea1_marks & OURS and decides):
        handle._codea1_peer.fail(
            f"the operation {what!r} between plain data and an object that a call returned"
        )


def _equality(handle: Handle, other: Any, name: str) -> Any:
    peer = handle._codea1_peer
    if type(other) is Handle:
        if other is handle and base_of(handle._codea1_code):
            return name == "eq"
        if is_exact(handle._codea1_code) and is_exact(other._codea1_code):
            return getattr(operator, name)(held(handle), held(other))
        return peer.ask(name, handle, other)
    if peer.trusting:
        return peer.ask(name, handle, other)
    asked = handle._codea1_marks & OURS and handle._codea1_own & bases.OWN_EQUALITY
    if asked and (type(other) in _PLAIN or base_of(handle._codea1_code)):
        return _unequal(handle, other, name)
    if base_of(handle._codea1_code):
        return getattr(operator, name)(held(handle), other)
    if isinstance(other, type) or type(other).__module__ in ("typing", "types"):
        return NotImplemented  # as where an annotation is looked up among others
    if type(other) in _PLAIN:  # NotImplemented would hold in `assert handle.__eq__(5)`
        return name == "ne"
    if type(other).__module__ not in (peer.home, "unittest.mock"):
        peer.fail(f"the comparison of an object of the program with a {type(other).__name__}")
    return NotImplemented  # the test's own class says what equals its objects


def _unequal(handle: Handle, other: Any, name: str) -> bool:
    """Return what the class of an object that a test has made says of plain data: that it is something else is believed.

    Of what a call returned nobody asks: it is something else than plain data, or equals it by the value that it holds.
    """
    peer = handle._codea1_peer
    different = name == "ne"
    made = handle._codea1_marks & (MADE | MIXED) == MADE
    if not made or base_of(handle._codea1_code) or peer.ask(name, handle, other) != different:
        peer.fail("the comparison with plain data of an object whose class defines equality")
    return different


def is_constant(handle: Handle) -> bool:
    """Whether an object holds data that cannot change."""
    return base_of(handle._codea1_code) in CONSTANT


def held(handle: Handle) -> Any:
    """Return a copy of what the object of a handle holds, as plain data of a builtin type."""
    if handle._codea1_marks & MIXED:
        handle._codea1_peer.fail("the data of the result of arithmetic with plain data")
    return (
        handle._codea1_data if is_constant(handle) or _is_fresh(handle) else _asked(handle, "data")
    )


def refresh(handle: Handle, data: Any) -> None:
    """Note what a container holds at the moment."""
    _put(handle, "_codea1_data", data)
    _put(handle, "_codea1_stamp", handle._codea1_peer.turns)


def _is_fresh(handle: Handle) -> bool:
    """Whether what came with a container is what it holds: nobody has asked the other side for anything since."""
    return handle._codea1_data is not None and handle._codea1_stamp == handle._codea1_peer.turns


def _items(handle: Handle) -> Any:
    """Return the same, where containers in it stay with the object."""
    if _is_fresh(handle):
        return copy.copy(handle._codea1_data)
    return handle._codea1_data if is_constant(handle) else _asked(handle, "items")


def _asked(handle: Handle, name: str) -> Any:
    base: Any = base_of(handle._codea1_code)
    found = handle._codea1_peer.ask(name, handle)
    if name == "items" and base is not list and type(found) is list:
        return found
    if type(found) is not base and not (issubclass(base, dict) and type(found) is dict):
        handle._codea1_peer.fail(f"an object that holds no {base.__name__}, as it said")
    return found


def _copied(handle: Handle, name: str) -> Any:
    if is_exact(handle._codea1_code):
        return _items(handle) if name == "copy" else _asked(handle, "data")
    references, made = handle._codea1_peer.references, derived(handle._codea1_marks)
    references.newest = None
    copied = handle._codea1_peer.ask(name, handle)
    if type(copied) is Handle and copied is references.newest:
        mark(copied, made | handle._codea1_marks & MIXED, removed=OURS | MIXED)
    return copied


def new(peer: Peer, number: int, code: int = 0, data: Any = None) -> Handle:
    """Return a handle of an object of the other side."""
    made = object.__new__(Handle)
    values = (peer, number, code & bases.KIND, data, peer.turns, code & ~bases.KIND, 0)
    for slot, value in zip(_SLOTS, values, strict=True):
        _put(made, slot, value)
    return made


def mark(handle: Handle, added: int, removed: int = 0) -> None:
    """Give a handle marks, and take others from it."""
    _put(handle, "_codea1_marks", handle._codea1_marks & ~removed | added)


def derived(marks: int) -> int:
    """Return the mark of what arithmetic makes of an object with such marks: nobody has called its class."""
    return CALCULATED if marks & OURS else 0


def type_of(value: Any) -> Any:
    """Return what a test finds as `type`, where it only calls it with one argument."""
    if type(value) is Handle:
        return value._codea1_peer.ask("type", value)
    kind = type(value)
    # A test finds settled classes in the module; their values are ordinary ones.
    return vars(datetime_module).get(kind.__name__, kind) if kind in (date, datetime) else kind
