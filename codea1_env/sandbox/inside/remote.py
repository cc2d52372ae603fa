"""Calls between a test's process and a candidate's process.

Both ends are alike: a test calls the program, the program calls a callback that the test gave it. Plain
data is copied, and what a call changes in its arguments is changed in the originals (`sharing.py`);
anything else crosses as a reference (`references.py`) to an object that stays where it is, and appears
as a proxy (`proxies.py`) on the other side. What may be asked of an object is decided in `access.py`.

A frame is one byte for its kind, then a message:
    c  call with positional arguments, the usual request: the number of what is called, the arguments
    v  the usual reply to `c`: a value; nothing has changed
    q  any request: ("call", target, args, kwargs), ("get", target, name), ("set", target, name, value),
       ("delete", target, name), ("op", name, operands), ("await", target, cancel)
    r  any reply: ("value", value, changes), ("raise", exception, changes), ("unencodable", reason, ())
    u  update, without a reply: the number of a reply to "get", and changes of what it had lent
"""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from struct import error as StructError  # noqa: N812 - it is an exception
from typing import Any, NoReturn

from . import codec, formats, frames, proxies, sharing
from .access import Gate, RefusedError
from .awaiting import Awaiting
from .errors import RemoteUnencodable
from .operations import OPERATIONS
from .raising import Exceptions
from .references import References

CANDIDATE_GONE = 71
"""Exit status of a test's process that has lost the program's process."""

_LENT = 8  # how many replies with containers are remembered
_LENT_ITEMS = 5000
_FRAMES_PER_CALL = 12  # Python frames that a call to the other side and back puts on the stack
_MAX_CALLS_BACK = 500

# Kept here, since a test may replace the functions of the module `os`.
_exit = os._exit


class Peer:
    """One end of the connection.

    Args:
        receive: Pipe to read the other side's frames from.
        send: Pipe to write frames to.
        limit: Largest encoded message in bytes.
        numpy: numpy's types, where the worker has numpy.
        home: Name of the module that our side's code runs in: "program" or "test".
    """

    def __init__(
        self,
        receive: int,
        send: int,
        *,
        limit: int,
        numpy: codec.Numpy | None = None,
        home: str,
    ) -> None:
        self._reader = frames.Reader(receive)
        self.send = send
        self.limit = limit
        self.numpy = numpy
        self.gate = Gate(home)
        self.trusting = home != "test"
        """Whether objects of the other side may decide comparisons: a program has nothing to win here."""
        self.references: References = References(self)
        self.factory = self.references.factory
        self.number_of = self.references.number_of
        self.exceptions: Exceptions = Exceptions(self)
        self.failure: str | None = None
        self.asked = False
        """Whether the other side was asked for anything, and answered."""
        self._awaiting = Awaiting()
        self._lent: dict[int, sharing.Lent] = {}
        self._replies = 0
        self._served = 0
        self._depth = 0
        self._lock = threading.RLock()

    # Messages

    def encode(self, message: Any, table: sharing.Table | None = None) -> bytes:
        """Encodes a message with references.

        Args:
            message: The message.
            table: The containers that both sides know; those in the message are added.
        """
        references = self.references
        sent = False
        try:
            data = codec.encode(
                message,
                refer=references.refer,
                numpy=self.numpy,
                limit=self.limit,
                containers=table,
            )
            sent = True
        finally:
            if references.fresh:
                references.forget_fresh(keep=sent)
        return data

    def decode(self, data: bytes, table: sharing.Table | None = None) -> Any:
        """Decodes a message with references.

        Raises:
            DecodeError: It is malformed.
        """
        try:
            return codec.decode(
                data, resolve=self.references.resolve, numpy=self.numpy, containers=table
            )
        except codec.DecodeError:
            raise
        except Exception as error:  # a reference to anything can go wrong in any way
            raise codec.DecodeError(f"malformed data: {type(error).__name__}: {error}") from None

    def _send_frame(self, frame: bytes) -> None:
        """Sends a frame. Losing the other side ends a test: it must not go on without the program."""
        try:
            frames.write_frame(self.send, frame)
        except frames.ChannelClosedError:
            self._lost()

    def _receive_frame(self) -> tuple[bytes, bytes]:
        """The kind and content of the next frame; updates are performed at once."""
        while True:
            try:
                frame = self._reader.frame()
            except frames.ChannelClosedError:
                self._lost()
            if frame[:1] != b"u" or not self.trusting:
                return frame[:1], frame[1:]
            self._update(frame[1:])

    def _lost(self) -> NoReturn:
        if self.gate.home == "test":
            _exit(CANDIDATE_GONE)
        raise frames.ChannelClosedError("the test has ended")

    def fail(self, reason: str) -> NoReturn:
        """Notes that something could not cross, so that no handler in a test can hide it."""
        self.failure = reason
        raise RemoteUnencodable(reason)

    # Serving

    def serve(self, on_first_call: Callable[[], None]) -> None:
        """Answers requests until the other side closes its pipe."""
        kind, content = self._receive_frame()
        on_first_call()
        while True:
            self._send_frame(self._answer_any(kind, content))
            kind, content = self._receive_frame()

    def _answer_any(self, kind: bytes, content: bytes) -> bytes:
        return self._answer_call(content) if kind == b"c" else self._answer(content)

    def _answer_call(self, content: bytes) -> bytes:
        """Performs a call with positional arguments and encodes the reply, in their short forms."""
        table: sharing.Table = []
        try:
            target = self.references.handed_over(formats.U32.unpack_from(content)[0])
            arguments = self.decode(content[formats.U32.size :], table)
            if type(arguments) is not tuple:
                raise codec.DecodeError("a malformed call")
            self.gate.check_call(target)
        except (codec.DecodeError, RemoteUnencodable, RefusedError, StructError) as error:
            return _unencodable(error)
        before = sharing.snapshot(table) if table else []
        try:
            value = target(*arguments)
        except (RemoteUnencodable, RefusedError) as error:
            return _unencodable(error)
        except BaseException as error:  # also SystemExit: it is the caller's to handle
            outcome: tuple[str, Any] = ("raise", error)
        else:
            outcome = ("value", value)
        try:
            changed = sharing.changes(table, before) if table else ()
            if outcome[0] == "value" and not changed:
                return b"v" + self.encode(value, table)
            return b"r" + self.encode((*outcome, tuple(changed)), table)
        except codec.EncodeError as error:
            return _unencodable(error)

    def _answer(self, content: bytes) -> bytes:
        """Performs one request and encodes the reply."""
        table: sharing.Table = []
        try:
            request = self.decode(content, table)
            if type(request) is not tuple or not request:
                raise codec.DecodeError("a malformed request")
            before = sharing.snapshot(table)
        except (codec.DecodeError, RemoteUnencodable) as error:
            return _unencodable(error)
        try:
            outcome: tuple[str, Any] = ("value", self._perform(*request))
        except (RemoteUnencodable, RefusedError) as error:
            return _unencodable(error)
        except BaseException as error:  # also SystemExit: it is the caller's to handle
            outcome = ("raise", error)
        passed = len(table)
        try:
            reply = self.encode((*outcome, tuple(sharing.changes(table, before))), table)
        except codec.EncodeError as error:
            return _unencodable(error)
        if request[0] == "get" and outcome[0] == "value" and self.trusting:
            self._served += 1
            self._lend(self._served, table[passed:])
        return b"r" + reply

    def _perform(self, kind: str, *operands: Any) -> Any:
        """Performs one request.

        Raises:
            RefusedError: The other side may not do that.
        """
        targets = operands[1] if kind == "op" else operands[:1]
        known = self.references.was_handed_over
        if not any(known(target) or self.exceptions.is_own(target) for target in targets):
            raise RefusedError("only an object that was handed over can be asked for anything")
        if kind == "call":
            target, arguments, keywords = operands
            self.gate.check_call(target)
            return target(*arguments, **dict(keywords))
        if kind == "op":
            name, values = operands
            self.gate.check_operation(name, values)
            return OPERATIONS[name](*values)
        if kind == "await":
            if not inspect.isawaitable(operands[0]):
                raise RefusedError("only coroutines can be awaited")
            return self._awaiting.step(*operands)
        self.gate.check_attribute(*operands[:2])
        if kind == "get":
            return getattr(*operands[:2])
        if kind == "set":
            return setattr(*operands)
        if kind == "delete":
            return delattr(*operands)
        raise RefusedError("a request of an unknown kind")

    # Calling the other side

    def call(self, target: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Calls an object of the other side, in the short form where that is possible; see `request`."""
        number = proxies.number_of(target)
        if keywords or type(number) is not int or not 0 <= number < 1 << 32:
            # As tuples, which need no place in the table.
            return self.request("call", target, arguments, tuple(keywords.items()))
        table: sharing.Table = []
        kind, content, passed = self._exchange(b"c" + formats.U32.pack(number), arguments, table)
        if kind != b"v":
            return self._result(kind, content, table, passed, ("call",))
        try:
            return self.decode(content, table)
        except codec.DecodeError as error:
            self.fail(f"the reply is malformed: {error}")

    def request(self, *message: Any) -> Any:
        """Sends a request and returns its value, serving the other side's requests meanwhile.

        Raises:
            RemoteUnencodable: An argument or the result cannot cross.
            BaseException: What the call raised, rebuilt from plain data.
        """
        table: sharing.Table = []
        kind, content, passed = self._exchange(b"q", message, table)
        return self._result(kind, content, table, passed, message)

    def _result(
        self,
        kind: bytes,
        content: bytes,
        table: sharing.Table,
        passed: int,
        message: tuple[Any, ...],
    ) -> Any:
        try:
            if kind != b"r":
                raise codec.DecodeError("a frame of an unknown kind")
            outcome, value, changed = self.decode(content, table)
            sharing.apply(table[:passed], changed, self.numpy)
        except (codec.DecodeError, TypeError, ValueError) as error:
            self.fail(f"the reply is malformed: {error}")
        if outcome == "value":
            if message[0] == "get":
                self._replies += 1
                if not self.trusting:
                    self._lend(self._replies, table[passed:])
            return value
        if outcome == "raise" and isinstance(value, BaseException):
            self._raise(value, message)
        return self.fail(str(value))

    def _exchange(
        self, head: bytes, message: tuple[Any, ...], table: sharing.Table
    ) -> tuple[bytes, bytes, int]:
        """Sends a request; the kind and content of the reply, and how many containers were sent."""
        with self._lock:
            if self._lent:
                self._pass_updates_on()
            try:
                frame = self.encode(message, table)
            except codec.EncodeError as error:
                self.fail(f"an argument cannot cross: {error}")
            passed = len(table)
            self._send_frame(head + frame)
            kind, content = self._receive_frame()
            while kind in (b"q", b"c"):
                with self._more_room():
                    answer = self._answer_any(kind, content)
                self._send_frame(answer)
                kind, content = self._receive_frame()
            self.asked = True
        return kind, content, passed

    def _raise(self, error: BaseException, message: tuple[Any, ...]) -> NoReturn:
        driving = message[0] == "op" and message[1] in ("next", "send", "throw")
        ends_loop = isinstance(error, StopIteration) and not driving
        if ends_loop or (isinstance(error, StopAsyncIteration) and message[0] != "await"):
            # It would quietly end a loop of the caller, and with it the test (PEP 479).
            raise RuntimeError(f"the program raised {type(error).__name__}")
        if isinstance(error, GeneratorExit) and not (driving or message[:2] == ("op", "close")):
            raise RuntimeError("the program raised GeneratorExit")  # likewise, a generator
        if isinstance(error, asyncio.CancelledError) and not self.trusting:
            self._watch_task()
        raise error

    def _watch_task(self) -> None:
        """A task of the test that the program ends as if it were cancelled fails: a group would not mind."""

        def check(task: asyncio.Task[Any]) -> None:
            if task.cancelled() and not task.cancelling():
                self.failure = (
                    "the program raised CancelledError in a task that nobody had cancelled"
                )

        with suppress(RuntimeError):  # where no event loop runs
            task = asyncio.current_task()
            if task is not None:
                task.add_done_callback(check)

    @contextmanager
    def _more_room(self) -> Iterator[None]:
        """What calls here and there put on the stack does not count against a program's recursion."""
        self._depth += 1
        more = _FRAMES_PER_CALL if self._depth < _MAX_CALLS_BACK else 0
        sys.setrecursionlimit(sys.getrecursionlimit() + more)
        try:
            yield
        finally:
            self._depth -= 1
            with suppress(RecursionError, ValueError):
                sys.setrecursionlimit(sys.getrecursionlimit() - more)

    # Containers that a test has got from an attribute

    def _lend(self, number: int, table: sharing.Table) -> None:
        if table and sharing.size(table) <= _LENT_ITEMS:
            self._lent[number] = sharing.Lent(table)
            if len(self._lent) > _LENT:
                del self._lent[min(self._lent)]

    def _pass_updates_on(self) -> None:
        for number, lent in list(self._lent.items()) if not self.trusting else ():
            found = lent.changes()
            if found:
                try:
                    content = self.encode(tuple(found), list(lent.table))
                except codec.EncodeError as error:
                    self.fail(f"a change cannot cross: {error}")
                self._send_frame(b"u" + formats.U32.pack(number) + content)
            if found is None or found:
                del self._lent[number]

    def _update(self, content: bytes) -> None:
        """Changes what was lent as the test has changed its copy."""
        (number,) = formats.U32.unpack_from(content)
        lent = self._lent.pop(number, None)
        if lent is not None and lent.is_as_before():  # what the program did meanwhile counts more
            changed = self.decode(content[formats.U32.size :], lent.table)
            sharing.apply(lent.table, changed, self.numpy)


def _unencodable(error: BaseException) -> bytes:
    return b"r" + codec.encode(("unencodable", str(error), ()))
