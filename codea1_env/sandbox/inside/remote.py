"""Calls between a test's process and a candidate's process.

Both ends are alike: a test calls the program, the program calls a callback that the test gave it. Plain
data is copied; anything else crosses as a reference to an object that stays where it is, and appears as
a proxy (`proxies.py`) on the other side. What may be asked of an object is decided in `access.py`.

Requests: ("call", target, args, kwargs), ("get", target, name), ("set", target, name, value),
("delete", target, name), ("op", name, operands). Replies: ("value", value, changed arguments),
("raise", description), ("unencodable", reason).
"""

from __future__ import annotations

import asyncio
import builtins
import inspect
import operator
import os
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any, NoReturn

from . import codec, frames, proxies
from .access import BUILTIN_TYPES, Gate, RefusedError
from .errors import RemoteUnencodable, describe_exception

_BUILTIN_OPERATIONS = (
    "abs", "bool", "bytes", "complex", "dir", "divmod", "float", "format", "hash", "int", "iter",
    "len", "next", "pow", "repr", "reversed", "round", "str",
)  # fmt: skip
_OPERATORS = (
    "add", "and_", "contains", "delitem", "eq", "floordiv", "ge", "getitem", "gt", "iadd", "iand",
    "ifloordiv", "ilshift", "imatmul", "imod", "imul", "index", "invert", "ior", "ipow", "irshift",
    "isub", "itruediv", "ixor", "le", "lshift", "lt", "matmul", "mod", "mul", "ne", "neg", "or_",
    "pos", "rshift", "setitem", "sub", "truediv", "xor",
)  # fmt: skip


async def _awaited(value: Any) -> Any:
    return await value


OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(builtins, name) for name in _BUILTIN_OPERATIONS},
    **{name: getattr(operator, name) for name in _OPERATORS},
    "enter": lambda value: type(value).__enter__(value),
    "exit": lambda value, *details: type(value).__exit__(value, *details),
    "await": lambda value: asyncio.run(_awaited(value)),
}

CANDIDATE_GONE = 71
"""Exit status of a test's process that has lost the program's process."""

# Kept here, since a test may replace the functions of the module `os`.
_exit = os._exit

_MUTABLE = (list, dict, set, bytearray, deque, Counter, OrderedDict, defaultdict)


class SameAs:
    """Stands for a returned object that is one of the arguments: the caller has the original."""

    def __init__(self, index: int) -> None:
        self.index = index


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
        self.receive = receive
        self.send = send
        self.limit = limit
        self.numpy = numpy
        self.gate = Gate(home)
        self.factory = proxies.ProxyFactory(self)
        self.failure: str | None = None
        self._objects: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._types: dict[type, int] = {}

    # References

    def number_of(self, value: Any) -> int:
        """The number under which the other side knows an object of ours; keeps the object alive."""
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self._objects)
            self._objects.append(value)
        return number

    def describe_type(self, kind: type) -> tuple[Any, ...]:
        """What the other side needs to build a proxy class: all of it once per class.

        A type's number is only a name for it: it gives no access to the type itself.
        """
        if kind in self._types:
            return (self._types[kind],)
        number = self._types[kind] = len(self._types)
        bases = [
            self.describe_type(base) for base in kind.__bases__ if base.__module__ != "builtins"
        ]
        return (number, kind.__name__[:200], bases, proxies.special_methods(kind, self.gate.home))

    def refer(self, value: Any) -> tuple[str, Any] | None:
        """Stands for an object that is not plain data, in a message."""
        theirs = self.factory.number_of(value)
        if theirs is not None:
            return ("yours", theirs)
        if type(value) is SameAs:
            return ("same", value.index)
        if isinstance(value, type):
            if BUILTIN_TYPES.get(value.__name__) is value:
                return ("builtin", value.__name__)
            return ("type", (self.number_of(value), self.describe_type(value)))
        if isinstance(value, types.ModuleType):
            return None
        kind = "coroutine" if inspect.iscoroutine(value) else "mine"
        return (kind, (self.number_of(value), self.describe_type(type(value))))

    def encode(self, message: Any) -> bytes:
        """Encodes a message with references."""
        return codec.encode(message, refer=self.refer, numpy=self.numpy, limit=self.limit)

    def decode(self, data: bytes, passed: tuple[Any, ...] = ()) -> Any:
        """Decodes a message with references; `passed` are the arguments that it may point back to."""

        def resolve(kind: str, reference: Any) -> Any:
            if kind == "builtin":
                return BUILTIN_TYPES[reference]
            if kind in ("yours", "same"):
                if type(reference) is not int or reference < 0:
                    raise ValueError("a malformed reference")
                return (self._objects if kind == "yours" else passed)[reference]
            return self.factory.proxy(kind, reference)

        return codec.decode(data, resolve=resolve, numpy=self.numpy, named=proxies.named_tuple)

    # Serving

    def serve(self, on_first_call: Callable[[], None]) -> None:
        """Answers requests until the other side closes its pipe."""
        request = frames.read_frame(self.receive)
        on_first_call()
        while True:
            frames.write_frame(self.send, self.answer(self.decode(request)))
            request = frames.read_frame(self.receive)

    def answer(self, request: Any) -> bytes:
        """Performs one request and encodes the reply."""
        try:
            value, changed = self.perform(*request)
        except (RemoteUnencodable, RefusedError) as error:
            return codec.encode(("unencodable", str(error)))
        except BaseException as error:  # also SystemExit: it is the caller's to handle
            return codec.encode(("raise", describe_exception(error)))
        try:
            return self.encode(("value", value, changed))
        except codec.EncodeError as error:
            return codec.encode(("unencodable", str(error)))

    def _handed_over(self, value: Any) -> bool:
        number = self._numbers.get(id(value))
        return number is not None and self._objects[number] is value

    def perform(self, kind: str, *operands: Any) -> tuple[Any, list[Any]]:
        """Performs one request; returns its value and the arguments that it has changed.

        Raises:
            RefusedError: The other side may not do that.
        """
        targets = operands[1] if kind == "op" else operands[:1]
        if not any(self._handed_over(target) for target in targets):
            raise RefusedError("only an object that was handed over can be asked for anything")
        if kind == "call":
            self.gate.check_call(operands[0])
            return self.call(*operands)
        if kind == "op":
            name, values = operands
            self.gate.check_operation(name, values)
            return self.call(OPERATIONS[name], values, {})
        self.gate.check_attribute(*operands[:2])
        if kind == "get":
            return getattr(*operands), []
        if kind == "set":
            setattr(*operands)
        else:
            delattr(*operands)
        return None, []

    def call(self, target: Any, arguments: Any, keywords: Any) -> tuple[Any, list[Any]]:
        """Calls with copies of the arguments; says which containers among them have changed."""
        passed = [*arguments, *keywords.values()]
        before = [self._snapshot(value) for value in passed]
        value = target(*arguments, **keywords)
        changed = [
            (index, argument)
            for index, argument in enumerate(passed)
            if before[index] is not None and self._snapshot(argument) != before[index]
        ]
        for index, argument in enumerate(passed):
            if argument is value and type(value) in _MUTABLE:
                return SameAs(index), changed
        return value, changed

    def _snapshot(self, value: Any) -> bytes | None:
        array = self.numpy.array_type if self.numpy is not None else None
        if type(value) not in _MUTABLE and type(value) is not array:
            return None
        try:
            return self.encode(value)
        except codec.EncodeError:
            return None

    # Calling the other side

    def request(self, *message: Any) -> Any:
        """Sends a request and returns its value, serving the other side's requests meanwhile.

        Raises:
            RemoteUnencodable: An argument or the result cannot cross.
            BaseException: What the call raised, rebuilt from plain data.
        """
        passed: tuple[Any, ...] = ()
        if message[0] == "call":
            passed = (*message[2], *message[3].values())
        elif message[0] == "op":
            passed = tuple(message[2])
        try:
            self.put(self.encode(message))
        except codec.EncodeError as error:
            self.fail(f"an argument cannot cross: {error}")
        while True:
            try:
                reply = self.decode(self.next_frame(), passed)
            except codec.DecodeError as error:
                self.fail(f"the reply is malformed: {error}")
            if reply[0] == "value":
                for index, changed in reply[2]:
                    proxies.write_back(passed[index], changed)
                return reply[1]
            if reply[0] == "raise":
                raised = self.factory.exception(reply[1])
                if message[0] == "call" and isinstance(raised, StopIteration):
                    # It would quietly end a loop of the caller, and with it the test (PEP 479).
                    raise RuntimeError("the program raised StopIteration")
                raise raised
            if reply[0] == "unencodable":
                self.fail(reply[1])
            self.put(self.answer(reply))

    def put(self, frame: bytes) -> None:
        """Sends a frame. Losing the other side ends a test: it must not go on without the program."""
        try:
            frames.write_frame(self.send, frame)
        except frames.ChannelClosedError:
            self.lost()

    def next_frame(self) -> bytes:
        """Receives a frame."""
        try:
            return frames.read_frame(self.receive)
        except frames.ChannelClosedError:
            self.lost()

    def lost(self) -> NoReturn:
        """Called when the other side has gone."""
        if self.gate.home == "test":
            _exit(CANDIDATE_GONE)
        raise frames.ChannelClosedError("the test has ended")

    def fail(self, reason: str) -> NoReturn:
        """Notes that something could not cross, so that no handler in a test can hide it."""
        self.failure = reason
        raise RemoteUnencodable(reason)
