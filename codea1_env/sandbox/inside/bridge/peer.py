"""One end of the connection between a test's process and a program's process.

Both ends are alike: a test calls the program, the program calls a callback that the test gave it. Plain data is copied, and
what a call changes in its arguments is changed in the originals (`bases.py`); anything else crosses as a handle
(`handles.py`) of an object that stays where it is. What may be asked of it is the table in `operations.py`, and for whom is
decided in `gate.py`.

A request is a frame: the place of an operation in the table (one byte), the number of the object (4), then a tuple of operands;
for a call, of its arguments. A reply is a letter and a message:
    v  a value; nothing has changed
    w  (value, changes in the containers of the arguments)
    e  (exception, changes)
    u  why it cannot be done, as text What stands for objects in
a message is in `references.py`.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from struct import Struct
from typing import Any, NoReturn

from .. import codec
from ..codec import frames
from ..errors import RemoteUnencodable
from . import bases, handles, operators
from .assertions import is_cut_short, is_handling_verdict, is_verdict
from .awaiting import Awaiting
from .gate import Gate, RefusedError
from .operations import NUMBERS, OPERATIONS, Operation
from .references import References

CANDIDATE_GONE = 71
"""Exit status of a test's process that has lost the program's process."""

_SLACK = 1 << 16  # what a frame may have beyond a message of the largest size
_FRAMES_PER_CALL = 12  # Python frames that a call to the other side and back puts on the stack
_MAX_CALLS_BACK = 500
_HEAD = Struct("<BI")  # the place of an operation in the table, and the number of the object
_RELEASED_TOGETHER = 100
_KEEPING = frozenset({"get", "getitem", "items"})
# What the object itself is the usual answer to.
_COMES_BACK = frozenset({"aenter", "aiter", "enter", "iter", "type"})
_CALL, _RELEASE = (OPERATIONS[NUMBERS[name]] for name in ("call", "release"))
_CALLS = frozenset({"call", "call_with_names"})
# Who only asks for these has not called the program.
_LOOKING = frozenset({
    "bool", "eq", "format", "get", "hash", "isinstance", "issubclass", "name", "ne", "release", "repr", "str", "type",
})  # fmt: skip

# Kept here, since a test may replace it.
_exit, _id = os._exit, id


operators.add_operators()


class Peer:
    """One end of the connection.

    Args:
        receive: Pipe to read the other side's frames from.
        send: Pipe to write frames to.
        limit: Largest encoded message in bytes.
        numpy: numpy's types, where the worker has numpy.
        home: Name of the module that our side's code runs in: "program" or "test".

    Attributes:
        failure: What could not cross, so that no handler in a test can hide it.
        asked: Whether the other side was called in any way, and answered.
        trusting: Whether objects of the other side may decide comparisons: a program has nothing to win here.
    """

    def __init__(
        self, receive: int, send: int, *, limit: int, numpy: codec.Numpy | None = None, home: str
    ) -> None:
        self.home = home
        self.trusting = home != "test"
        self.failure: str | None = None
        self.asked = False
        self._reader = frames.FrameReader(receive, limit + _SLACK)
        self._send = send
        self._limit = limit
        self._numpy = numpy
        self.gate = Gate(home)
        self._awaiting = Awaiting()
        self.references = References(self)
        self.assertions: dict[int, tuple[int, BaseException]] = {}
        """What ended callbacks before their assertions, or as one, and is still with the program; with its number."""
        self.kept_errors = 0
        """How many there were."""
        self.unmarking = True
        """Whether an object in the message being read may be what a call returned, also one that a test has made."""
        self._copying = False
        self._on_call: Callable[[], None] | None = None
        self._depth = 0
        self.may_keep = False
        """Whether the message being read may hand over containers that stay where they are."""
        self.turns = 0
        """How often the other side was given its turn: between two of them nothing of it changes."""
        self._lock = threading.RLock()

    def fail(self, reason: str) -> NoReturn:
        """End a test that needs what cannot cross."""
        self.failure = reason
        raise RemoteUnencodable(reason)

    # References

    def encode(
        self, message: Any, table: bases.Table | None = None, counting: bool = True
    ) -> bytes:
        """Encode a message with references.

        Args:
            message: The message.
            table: The containers that both sides know; those in the message are added.
            counting: Whether it will be sent, so that objects get their numbers.
        """
        references = self.references
        refer = references.refer if counting else references.would_refer
        return codec.encode(
            message, refer=refer, numpy=self._numpy, limit=self._limit, containers=table
        )

    def export(self, value: Any, name: str) -> bytes:
        """Encode what the other side gets under a name of its own text."""
        if isinstance(value, type) and not issubclass(value, BaseException):
            known = self.references.exceptions.place(value) is not None
            # Under its own name a class that both sides know is no way into the program.
            if not (known and value.__name__ == name):
                self.gate.offer(value)
                return self.encode(bases.Kept(value))
        return self.encode(bases.kept(value))

    def decode(self, data: bytes, table: bases.Table | None = None) -> Any:
        """Decode a message with references.

        Raises:
            DecodeError: It is malformed.
        """
        try:
            return codec.decode(
                data, resolve=self.references.resolve, numpy=self._numpy, containers=table
            )
        except (codec.DecodeError, RemoteUnencodable, frames.ChannelClosedError):
            raise
        except BaseException as error:  # of a `__hash__` of the other side, say
            raise codec.DecodeError(f"malformed data: {type(error).__name__}") from None

    # Frames

    def _send_frame(self, frame: bytes) -> None:
        """Send a frame. Losing the other side ends a test: it must not go on without the program."""
        self.turns += 1
        try:
            frames.write_frame(self._send, frame)
        except frames.ChannelClosedError:
            self._lost()

    def _receive_frame(self) -> bytes:
        try:
            return self._reader.frame()
        except frames.ChannelClosedError:
            self._lost()

    def _lost(self) -> NoReturn:
        if self.home == "test":
            _exit(CANDIDATE_GONE)
        raise frames.ChannelClosedError("the test has ended")

    # Serving

    def serve(self, on_first_call: Callable[[], None]) -> None:
        """Answers requests until the other side closes its pipe."""
        self._on_call = on_first_call
        with self._lock:
            frame = self._receive_frame()
        while True:
            answer = self._answer(frame)
            with self._lock:  # another thread may ask only while the test waits for an answer
                self._send_frame(answer)
                frame = self._receive_frame()

    def _answer(self, frame: bytes) -> bytes:
        """Perform one request and encode the reply."""
        table: bases.Table = []
        try:
            if len(frame) < _HEAD.size or frame[0] >= len(OPERATIONS):
                raise codec.DecodeError("no request that there is")
            place, number = _HEAD.unpack_from(frame)
            operation = OPERATIONS[place]
            if operation is not _RELEASE and number not in self.references.ours:
                raise codec.DecodeError(
                    "only an object that was handed over can be asked for anything"
                )
            target = self.references.ours.get(number)
            operands = self.decode(frame[_HEAD.size :], table)
            if type(operands) is not tuple:
                raise codec.DecodeError("malformed operands")
            if operation is _CALL:
                operands = (operands,)
            elif operation is _RELEASE:
                self.references.forget(operands)
                return b"v" + codec.encode(None)
            else:
                _check_operands(operation, operands)
            self.gate.check(operation.name, target, operands)
        except (codec.DecodeError, RefusedError, RemoteUnencodable) as error:
            return _refusal(error)
        if self._on_call is not None and _is_call(operation.name, type(target) in bases.CONTAINERS):
            self._on_call()
            self._on_call = None
        before = bases.snapshot(table) if table else []
        try:
            value = self._perform(operation, target, operands, number)
        except RemoteUnencodable as error:
            return _refusal(error)
        except BaseException as error:  # also SystemExit: it is the caller's to handle
            kind, value = b"e", error
            if not self.trusting and (is_verdict(error) or is_cut_short(error)):
                if is_verdict(error):
                    value = AssertionError()  # what it expected is nobody's business
                self.assertions[_id(value)] = (self.kept_errors, value)
                self.kept_errors += 1
        else:
            kind = b"v"
        try:
            changed = bases.changes(table, before) if table else []
            if kind == b"v" and not changed:
                return kind + self.encode(value, table)
            return (b"w" if kind == b"v" else kind) + self.encode((value, tuple(changed)), table)
        except codec.EncodeError as error:
            return _refusal(error)

    def _perform(
        self, operation: Operation, target: Any, operands: tuple[Any, ...], number: int
    ) -> Any:
        name = operation.name
        if operation is _CALL and type(target) is types.FunctionType:
            return target(*operands[0])
        if name not in _CALLS:
            answer = self.gate.answer(name, target, operands, number)
            if answer is not NotImplemented:
                return answer
        if name == "await":
            return self._awaiting.step(target, operands[0] is True)
        if name in ("copy", "deepcopy"):
            return self._copied(operation, target)
        value = operation.perform(target, *operands)
        if name == "data":
            return bases.held_by(value)
        if name == "items":
            return bases.kept_items(value)
        keeping = name in _KEEPING or (
            operation is _CALL
            and type(target) is types.BuiltinFunctionType
            and type(target.__self__) in bases.CONTAINERS
        )
        keeping = keeping or value is target  # x += y
        return bases.kept(value) if keeping else value

    def _copied(self, operation: Operation, target: Any) -> Any:
        """Copy an object. What the other side has put into it is not asked how: nobody is."""
        self._copying = True
        try:
            return operation.perform(target)
        finally:
            self._copying = False

    # Asking

    def ask(self, name: str, target: Any, *operands: Any, begun: int | None = None) -> Any:
        """Has an operation performed, serving the other side's requests meanwhile.

        Args:
            name: The operation.
            target: The handle of the object.
            operands: Those that the table asks for; of a call, its arguments.
            begun: Of a step of a coroutine, `kept_errors` when it was first awaited.

        Raises:
            RemoteUnencodable: An operand or the result cannot cross.
            BaseException: What the operation raised.
        """
        table: bases.Table = []
        begun = self.kept_errors if begun is None else begun
        if self._copying:
            raise RemoteUnencodable("a copy of an object that holds something of the other side")
        with self._lock:
            if len(self.references.released) >= _RELEASED_TOGETHER:
                self._pass_releases_on()
            try:
                message = self.encode(operands, table)
            except codec.EncodeError as error:
                self.fail(f"an argument cannot cross: {error}")
            passed = len(table)
            reply = self._exchange(name, target._codea1_number, message)
            kind = reply[:1]
            of_container = bool(target._codea1_marks & handles.OF_CONTAINER)
            before, self.may_keep = self.may_keep, name in _KEEPING or of_container
            self.unmarking = name not in _COMES_BACK
            try:
                value = self._value(kind, reply[1:], table, passed)
            except codec.DecodeError as error:
                self.fail(f"the reply is malformed: {error}")
            finally:
                self.may_keep, self.unmarking = before, True
            self.asked = self.asked or _is_call(name, bases.is_exact(target._codea1_code))
        if kind == b"v" and name in _CALLS:
            return value
        if kind == b"u":
            self.fail(value)
        if kind == b"e":
            self._raise(value, name, target, begun)
        expected = OPERATIONS[NUMBERS[name]].returns
        if expected is not None and type(value) is not expected:
            self.fail(f"{name!r} that returns something other than {expected.__name__}")
        if name == "await" and (
            type(value) is not tuple or len(value) != 2 or type(value[0]) is not bool
        ):
            self.fail("the reply is malformed: no step of a coroutine")
        return value

    def _exchange(self, name: str, number: int, message: bytes) -> bytes:
        """Send a request, serves those of the other side, and return the reply."""
        self._send_frame(_HEAD.pack(NUMBERS[name], number) + message)
        while True:
            frame = self._receive_frame()
            if frame[:1] in (b"v", b"w", b"e", b"u"):
                return frame
            with self._more_room():
                answer = self._answer(frame)
            self._send_frame(answer)

    def _pass_releases_on(self) -> None:
        numbers = tuple(self.references.released)
        self.references.released.difference_update(numbers)
        self._exchange("release", 0, codec.encode(numbers))

    def _value(self, kind: bytes, content: bytes, table: bases.Table, passed: int) -> Any:
        """Return the value of a reply, after the changes that came with it.

        Raises:
            DecodeError: It is malformed.
        """
        if kind == b"v":
            return self.decode(content, table)
        if kind == b"u":
            reason = codec.decode(content)
            return reason[:1000] if type(reason) is str else "for a reason that is no text"
        found = self.decode(content, table)
        if type(found) is not tuple or len(found) != 2:
            raise codec.DecodeError("not a value and its changes")
        bases.apply(table[:passed], found[1], self._numpy)
        if kind == b"e" and not isinstance(found[0], BaseException):
            raise codec.DecodeError("no exception")
        return found[0]

    def _raise(
        self, error: BaseException, name: str, target: handles.Handle, begun: int
    ) -> NoReturn:
        # That of a callback has come back, from where it was called: kept, and raised later, it says something else.
        if self.assertions.get(_id(error), (-1,))[0] >= begun:
            del self.assertions[_id(error)]
        if not self.trusting and is_handling_verdict():
            self.fail("the program raised an exception while an assertion of the test ended it")
        driving = name in ("next", "send", "throw")
        ends_anext = target._codea1_marks & handles.ENDS_LOOP
        ends_loop = isinstance(error, StopIteration) and not driving
        if ends_loop or (isinstance(error, StopAsyncIteration) and not ends_anext):
            # It would quietly end a loop of the caller, and with it the test (PEP 479).
            raise RuntimeError(f"the program raised {type(error).__name__}")
        if isinstance(error, GeneratorExit) and not (driving or name == "close"):
            raise RuntimeError("the program raised GeneratorExit")  # likewise, a generator
        if name != "await" and isinstance(error, asyncio.CancelledError) and not self.trusting:
            self.fail("the program raised CancelledError in what nobody had cancelled")
        raise error

    @contextmanager
    def _more_room(self) -> Iterator[None]:
        """Give what calls here and there put on the stack does not count against a program's recursion."""
        self._depth += 1
        more = _FRAMES_PER_CALL if self._depth < _MAX_CALLS_BACK else 0
        sys.setrecursionlimit(sys.getrecursionlimit() + more)
        try:
            yield
        finally:
            self._depth -= 1
            with suppress(RecursionError, ValueError):
                sys.setrecursionlimit(sys.getrecursionlimit() - more)


def _is_call(name: str, is_container: bool) -> bool:
    """Whether an operation counts as calling the program: looking at its functions, classes and variables does not."""
    return name not in _LOOKING and (name in _CALLS or not is_container)


def _check_operands(operation: Operation, operands: tuple[Any, ...]) -> None:
    name = operation.name
    named = name in ("get", "set", "delete")
    if len(operands) != operation.operands:
        raise codec.DecodeError(f"{name!r} has {operation.operands} operands")
    if named and type(operands[0]) is not str:
        raise codec.DecodeError("the name of an attribute is text")
    if name == "call_with_names":
        if any(type(each) is not tuple for each in operands) or len(operands[1]) != len(
            operands[2]
        ):
            raise codec.DecodeError("malformed arguments")
        if any(type(each) is not str for each in operands[1]):
            raise codec.DecodeError("malformed names of arguments")


def _refusal(error: BaseException) -> bytes:
    return b"u" + codec.encode(str(error)[:1000])
