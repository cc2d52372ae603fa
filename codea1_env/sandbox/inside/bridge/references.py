"""What stands in a message for an object that is no data.

One of these kinds, a number, and data (`codec`):
    h  an object of the sender: a handle; with the code of what it holds, and a copy where that cannot change
    g, c  the same, a generator or a coroutine
    y  an object of the receiver
    k  an exception class of the sender: places of Python's among its bases, its own bases
    e  an exception of the sender: class, text, arguments, cause
    t  a class of Python's, by its place in the lists of `raising.py`
    o  a value of one of Python's classes that one argument makes again, by the place of the class: views, paths
    s  a slice
"""

from __future__ import annotations

import types
import weakref
from typing import TYPE_CHECKING, Any

from .. import codec
from . import awaiting, bases, handles, raising
from .gate import FUNCTIONS, RefusedError

if TYPE_CHECKING:
    from .peer import Peer

MAX_HANDLES = 200_000
"""Objects of one side that the other may hold at a time."""

_NO_NUMBER = 0xFFFFFFFF
_MOST_CODES = 1000

# A test finds another `id` in the builtins; here it is the real one.
_id = id


def catches_assertions(value: Any) -> bool:
    """Whether a value is a class by which `except` catches assertions: no class of a program is one."""
    return isinstance(value, type) and value in (AssertionError, Exception, BaseException)


class References:
    """The objects that each side knows of the other.

    Args:
        peer: The end of the connection.

    Attributes:
        ours: Objects of ours by the numbers under which they were handed over.
        newest: The handle that was made last.
        released: Numbers of theirs that nothing here refers to any more, and that they are not told of yet.
        exceptions: Those of the connection.
    """

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self.exceptions = raising.Exceptions(peer)
        self.ours: dict[int, Any] = {}
        self._numbers: dict[int, int] = {}
        self._next = 0
        self._codes: dict[int, tuple[type, int]] = {}
        self._theirs: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._stand_ins: weakref.WeakKeyDictionary[Any, handles.Handle] = (
            weakref.WeakKeyDictionary()
        )
        self.released: set[int] = set()
        self.newest: handles.Handle | None = None

    def would_refer(self, value: Any) -> codec.Reference:
        """As `refer`, for what is not sent."""
        self._check_leaving(value)
        return (b"y", 0, None)

    def _check_leaving(self, value: Any) -> None:
        try:
            self._peer.gate.check_leaving(value)
        except RefusedError as error:
            raise codec.EncodeError(f"{error} is not handed over") from None

    def _number_of(self, value: Any) -> int:
        """Return the number under which the other side knows an object of ours; keeps the object alive."""
        number = self._numbers.get(_id(value))
        if number is None:
            if len(self.ours) >= MAX_HANDLES:
                raise codec.EncodeError(
                    f"more than {MAX_HANDLES} objects are held by the other side"
                )
            number = self._next
            self._next += 1
            self._numbers[_id(value)] = number
            self.ours[number] = value
        return number

    def refer(self, value: Any) -> codec.Reference:
        """Return what stands for a value that is no data.

        Raises:
            EncodeError: It may not leave.
        """
        kind = type(value)
        if kind is handles.Handle:
            return (b"y", value._codea1_number, None)
        if kind is bases.Kept:
            held = value.value
            if isinstance(held, type):
                return (b"h", self._number_of(held), (bases.CLASS, None))
            self._check_leaving(held)
            return (b"h", self._number_of(held), (bases.code_of(type(held)), bases.flat(held)))
        if kind is slice:
            return (b"s", 0, (value.start, value.stop, value.step))
        if isinstance(value, type):
            return self._refer_to_class(value)
        if isinstance(value, BaseException):
            return self._refer_to_exception(value)
        if kind in (types.GeneratorType, types.CoroutineType):
            stands_for = self._stand_ins.get(value)
            if stands_for is not None:
                return (b"y", stands_for._codea1_number, None)
            return (b"g" if kind is types.GeneratorType else b"c", self._number_of(value), None)
        again = raising.remade(value)
        if again is not None:
            return (b"o", *again)
        self._check_leaving(value)
        code = bases.FUNCTION if kind in FUNCTIONS else self._code_of(kind)
        constant = bases.base_of(code & bases.KIND) in bases.CONSTANT
        return (b"h", self._number_of(value), (code, bases.held_by(value) if constant else None))

    def _code_of(self, kind: type) -> int:
        known = self._codes.get(_id(kind))
        if known is None:
            if len(self._codes) >= _MOST_CODES:
                self._codes.clear()
            code = bases.code_of(kind)
            own = 0 if bases.is_exact(code) else bases.own_of(kind, self._peer.home)
            self._codes[_id(kind)] = known = (kind, code | own)
        return known[1]

    def _refer_to_class(self, kind: type) -> codec.Reference:
        theirs = raising.class_handle(kind)
        if theirs is not None:
            return (b"y", theirs._codea1_number, None)
        if self._peer.trusting and catches_assertions(kind):
            self.exceptions.set_apart(kind)
        place = self.exceptions.place(kind)
        if place is not None:
            return (b"t", place, None)
        if issubclass(kind, BaseException):
            return (b"k", self._number_of(kind), self.exceptions.class_data(kind))
        self._check_leaving(kind)
        return (b"h", self._number_of(kind), (bases.CLASS, None))

    def _refer_to_exception(self, error: BaseException) -> codec.Reference:
        theirs = raising.original(error)
        if theirs is not None:
            return (b"y", theirs._codea1_number, None)
        number = _NO_NUMBER
        if self.exceptions.place(type(error)) is None or _id(error) in self._peer.assertions:
            # Its frames are not kept alive with it, and are nobody's business.
            number = self._number_of(error.with_traceback(None))
        return (b"e", number, self.exceptions.data_of(error))

    def resolve(self, kind: bytes, number: int, data: Any) -> Any:
        """Return what a reference stands for. Malformed ones raise one of decoding's errors."""
        if kind == b"y":
            return self.ours[number]
        if kind == b"h":
            return self.handle(number, data)
        if kind == b"t":
            found = self.exceptions.at(number)
            if catches_assertions(found) and not self._peer.trusting:
                raise codec.DecodeError("a class of exceptions that assertions belong to")
            return found
        if kind == b"s":
            if type(data) is not tuple or len(data) != 3:
                raise codec.DecodeError("a malformed slice")
            return slice(*data)
        if kind == b"o":
            return raising.remake(number, data)
        if kind == b"k":
            return self.exceptions.stand_in(self.handle(number), data)
        if kind == b"e":
            handle = self.handle(number) if number != _NO_NUMBER else None
            return self.exceptions.instance(handle, data)
        if kind in (b"g", b"c"):
            return self._stand_in(kind, number)
        raise codec.DecodeError("a reference of an unknown kind")

    def handle(self, number: int, data: Any = (0, None)) -> handles.Handle:
        """Return the handle of an object of theirs, one for each object.

        Raises:
            DecodeError: What came with it is malformed.
        """
        found = self._theirs.get(number)
        is_pair = type(data) is tuple and len(data) == 2
        if type(found) is handles.Handle:
            if self._peer.unmarking:
                handles.mark(found, 0, removed=handles.OURS | handles.IS_CLASS)
            if is_pair and data[1] is not None:
                self._check_held(found._codea1_code, data[1])
                handles.refresh(found, data[1])
            return found
        if not is_pair or type(data[0]) is not int or data[0] < 0:
            raise codec.DecodeError("a malformed handle")
        flags, held = data
        code = flags & bases.KIND
        if bases.is_exact(code) and not self._peer.may_keep:
            # What a call returns is data: it cannot say one thing of its length and another of what is in it.
            raise codec.DecodeError("a container that is no copy")
        if held is not None or bases.base_of(code) in bases.CONSTANT:
            self._check_held(code, held)
        self.released.discard(number)
        self._theirs[number] = made = handles.new(self._peer, number, flags, held)
        self.newest = made
        return made

    @staticmethod
    def _check_held(code: int, held: Any) -> None:
        """Check that what comes with a handle is of the type that it says: of a constant one always, of a container if it is flat."""
        base = bases.base_of(code)
        if type(held) is not base or bases.is_exact(code) is (base in bases.CONSTANT):
            raise codec.DecodeError("a handle with another value than it says")

    def _stand_in(self, kind: bytes, number: int) -> Any:
        found = self._theirs.get(number)
        if isinstance(found, (types.GeneratorType, types.CoroutineType)):
            return found
        self.released.discard(number)
        handle = handles.new(self._peer, number)
        made = awaiting.generator(handle) if kind == b"g" else awaiting.coroutine(handle)
        self._stand_ins[made] = handle
        self._theirs[number] = made
        return made

    def behind(self, value: Any) -> handles.Handle | None:
        """Return the handle that a value is, or stands for."""
        if type(value) is handles.Handle:
            return value
        known = type(value) in (types.GeneratorType, types.CoroutineType)
        return self._stand_ins.get(value) if known else None

    def release(self, handle: handles.Handle) -> None:
        """Note that a handle is gone: nothing here may refer to its object any more."""
        other = self._theirs.get(handle._codea1_number)
        if other is None or other is handle:
            self.released.add(handle._codea1_number)

    def forget(self, numbers: Any) -> None:
        """Let objects of ours go, which the other side has no handles of any more.

        Raises:
            DecodeError: It is malformed.
        """
        if type(numbers) is not tuple or any(type(number) is not int for number in numbers):
            raise codec.DecodeError("a malformed release")
        for number in numbers:
            value = self.ours.pop(number, None)
            if self._numbers.get(_id(value)) == number:
                del self._numbers[_id(value)]
