"""A hostile peer: random messages, well-formed and ill-formed, for each end of the bridge, in a process that watches itself.

    python tests/sandbox/hostile_peer.py MESSAGES [SEED]

An audit hook ends the run where a message makes the receiver execute, compile, import or open something, or do anything else
that Python reports; after each message the receiver's classes, builtins, modules and functions must be what they were.
"""

from __future__ import annotations

import builtins
import os
import random
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from codea1_env.sandbox.inside import codec
from codea1_env.sandbox.inside.bridge import handles, operations, raising
from codea1_env.sandbox.inside.bridge.peer import Peer

_HARMLESS = {
    "array.__new__",
    "builtins.id",
    "object.__getattr__",
    "sys._getframe",
    "sys.unraisablehook",
}
_NAMES = (
    "append", "value", "__class__", "__globals__", "__code__", "_peer", "secret", "sort", "keys", "format", "gi_frame",
    "mro", "__subclasses__", "f_back", "pop", "items", "method", "__dict__", "no name", "", "_asdict", "__reduce__",
)  # fmt: skip
_DONE = b"v" + codec.encode(None)
_REPLIES = (b"v", b"w", b"e", b"u", b"z", b"")


class Alarm(BaseException):
    """What must not happen has happened."""


_watching = False


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    global _watching
    if _watching and event not in _HARMLESS:
        _watching = False
        traceback.print_stack()
        print("ALARM", event, repr(arguments)[:500], flush=True)
        os._exit(3)


@contextmanager
def watched() -> Iterator[None]:
    """Whatever happens meanwhile must be nothing that Python reports."""
    global _watching
    _watching = True
    try:
        yield
    finally:
        _watching = False


class Marked:
    """Written as a reference, of any kind and with any data."""

    def __init__(self, kind: bytes, number: int, data: Any) -> None:
        self.reference = (kind, number, data)


def encoded(message: Any) -> bytes:
    """Bytes of a message with `Marked` references."""
    return codec.encode(message, refer=lambda value: value.reference, containers=[])


class Chance:
    """Draws messages."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def data(self, depth: int = 0) -> Any:
        """Plain data with references in it."""
        draw = self.rng.random()
        if draw < 0.35 or depth > 3:
            return self.rng.choice(
                [None, True, 0, 1, -1, 5, 2**70, 0.5, "x", "a b", b"x", (), [], {}, 200_001]
            )
        if draw < 0.7:
            return self.reference(depth + 1)
        parts = [self.data(depth + 1) for _ in range(self.rng.randrange(4))]
        if draw < 0.85:
            return tuple(parts)
        return parts if draw < 0.95 else {"k": parts, 1: None}

    def number(self) -> int:
        """The number of an object, that may be known or not."""
        return self.rng.choice([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 50, 2**32 - 1])

    def reference(self, depth: int) -> Any:
        """A reference; half of them as an honest side would make them."""
        kind = self.rng.choice([b"h", b"y", b"k", b"e", b"t", b"o", b"s", b"g", b"c", b"q"])
        if self.rng.random() < 0.5:
            return Marked(kind, self.number(), self.data(depth + 1))
        text = self.rng.choice(["x", "__import__('os')", "ab"])
        data: Any = None
        if kind == b"h":
            data = (
                self.rng.randrange(36),
                self.rng.choice([None, 1, "x", (), (1,), 0.5, frozenset(), b"x"]),
            )
        elif kind == b"k":
            data = (
                (self.rng.randrange(200),),
                tuple([self.reference(depth + 1)] * self.rng.randrange(2)),
            )
        elif kind == b"e":
            error: Any = Marked(b"t", self.rng.randrange(140), None)
            if self.rng.random() < 0.5:
                error = Marked(b"k", self.number(), ((self.rng.randrange(200),), ()))
            data = (
                error,
                text,
                tuple(self.data(depth + 2) for _ in range(self.rng.randrange(3))),
                None,
                text,
            )
        elif kind == b"s":
            data = (1, None, 2)
        elif kind == b"o":
            data = self.rng.choice([[1, 2], [("a", 1)], "a/b", {"a": 1}, text])
        number = self.rng.randrange(150) if kind in (b"t", b"o") else self.number()
        return Marked(kind, number, data)

    def _bytes(self, message: Any) -> bytes:
        try:
            return encoded(message)
        except (codec.EncodeError, TypeError):
            return b"N"

    def request(self) -> bytes:
        """A request frame."""
        place = self.rng.randrange(len(operations.OPERATIONS) + 3)
        entry = operations.OPERATIONS[place] if place < len(operations.OPERATIONS) else None
        count = (
            entry.operands
            if entry is not None and self.rng.random() < 0.8
            else self.rng.randrange(5)
        )
        operands: list[Any] = [self.data() for _ in range(count)]
        if entry is not None and entry.name in ("get", "set", "delete") and operands:
            operands[0] = self.rng.choice(_NAMES)
        if entry is not None and entry.name == "call_with_names" and len(operands) == 3:
            operands = [tuple(operands[:1]), ("b",), (operands[2],)]
        frame = bytes([place]) + self.number().to_bytes(4, "little") + self._bytes(tuple(operands))
        return self.damaged(frame)

    def reply(self) -> bytes:
        """A reply frame."""
        kind = self.rng.choice(_REPLIES)
        message = self.data()
        if kind in (b"w", b"e") and self.rng.random() < 0.7:
            changes = tuple(
                (self.rng.randrange(4), self.data()) for _ in range(self.rng.randrange(3))
            )
            value = Marked(
                b"e",
                self.number(),
                (Marked(b"t", self.rng.randrange(140), None), "x", (), None, None),
            )
            message = (value if kind == b"e" else message, changes)
        if kind == b"u" and self.rng.random() < 0.7:
            return kind + codec.encode("a reason")
        return self.damaged(kind + self._bytes(message))

    def damaged(self, frame: bytes) -> bytes:
        """One frame in five is damaged."""
        draw = self.rng.random()
        if draw < 0.8 or len(frame) < 2:
            return frame
        place = self.rng.randrange(len(frame))
        if draw < 0.9:
            return frame[:place] + bytes([self.rng.randrange(256)]) + frame[place + 1 :]
        return frame[:place] if draw < 0.95 else frame + bytes([self.rng.randrange(256)])


class Own:
    """An object of the receiver, with something that nobody was given."""

    def __init__(self) -> None:
        self.value = 5
        self.items = [1, [2]]
        self._secret = "secret-4711"

    def method(self, *arguments: Any, **keywords: Any) -> Any:
        """Returns what it gets."""
        return arguments

    def __add__(self, other: Any) -> Any:
        return self


class OwnError(ValueError):
    """An exception class of the receiver."""


def _function(*arguments: Any, **keywords: Any) -> Any:
    return arguments


def _private(kind: type) -> dict[str, Any]:
    """What nobody may change; a class that was handed over has public attributes, which may be set."""
    return {
        name: each
        for name, each in vars(kind).items()
        # What `__module__ = ...` above removes in Python 3.13 is no change of theirs.
        if name.startswith("_") and name not in ("__slotnames__", "__firstlineno__")
    }


def _state(function: Callable[..., Any]) -> tuple[Any, ...]:
    return (
        dict(vars(builtins)), set(sys.modules), function.__code__, function.__defaults__, _private(Own),
        {name: each for name, each in vars(handles.Handle).items() if name != "__doc__"}, dict(vars(raising._StandIn)),
        operations.OPERATIONS, _private(OwnError),
    )  # fmt: skip


class Feed:
    """The hostile side's frames, then honest ones; in the end the hostile side is gone."""

    def __init__(self) -> None:
        self.waiting: list[bytes] = []
        self._left = 0

    def fill(self, *contents: bytes) -> None:
        """Sets what will be read."""
        self.waiting = list(contents)
        self._left = 50

    def frame(self) -> bytes:
        """The next frame."""
        if self.waiting:
            return self.waiting.pop(0)
        self._left -= 1
        if self._left < 0:
            raise ConnectionError("nothing more will come")
        return _DONE


class Connection:
    """A receiver with objects that it has handed over, and what the hostile side sends and reads."""

    def __init__(self, home: str) -> None:
        self._receive, ours = self._pipes = os.pipe()
        Own.__module__ = OwnError.__module__ = _function.__module__ = home
        self.peer = Peer(0, ours, limit=1 << 12, home=home)
        self.feed = Feed()
        self.peer._reader = self.feed  # type: ignore[assignment]
        given = (
            _function,
            Own(),
            Own,
            [1, [2]],
            {"a": 1},
            (each for each in (1, 2)),
            OwnError,
            OwnError("x"),
            len,
        )
        for each in given:
            self.peer.encode(each)
        self.handle = self.peer.decode(encoded(Marked(b"h", 100, (0, None))))
        os.set_blocking(self._receive, False)

    def drain(self) -> bytes:
        """What the receiver has written."""
        try:
            return os.read(self._receive, 1 << 20)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        """Closes all pipes."""
        for descriptor in self._pipes:
            os.close(descriptor)


_USES: tuple[Callable[[Any], Any], ...] = (
    str, len, bool, hash, iter, next, lambda value: value == 5, lambda value: value == value, lambda value: value + 1,
    lambda value: value < value, lambda value: 1 in value, lambda value: value[0], lambda value: value.x,
    lambda value: value(1, key=2), lambda value: list(value)[:5], lambda value: value | None, abs, float,
    lambda value: isinstance(value, value), lambda value: setattr(value, "x", 1), lambda value: value.__enter__(),
)  # fmt: skip


def attack(rng: random.Random, home: str, seen: Counter[str]) -> int:
    """One connection; the number of hostile messages."""
    chance = Chance(rng)
    connection = Connection(home)
    peer = connection.peer
    sent = 0
    try:
        for _ in range(4):
            argument: list[Any] = [[1], {"a": [2]}, {3}]
            requests = [chance.request() for _ in range(rng.randrange(3))]
            connection.feed.fill(*requests, chance.reply(), chance.reply())
            sent += len(requests) + 1
            try:
                with watched():
                    value = connection.handle(argument, _function)
                    use = rng.choice(_USES)
                    use(value)
                    seen["used"] += 1
            except Alarm:
                raise
            except BaseException:  # a reply may raise any exception of Python's
                seen["raised"] += 1
            if b"secret-4711" in connection.drain():
                raise Alarm("a private attribute has left")
            request = chance.request()
            sent += 1
            with watched():
                answer = peer._answer(request)
            seen[chr(answer[0])] += 1
            if answer[:1] not in (b"v", b"w", b"e", b"u") or b"secret-4711" in answer:
                raise Alarm(f"an answer with a strange beginning or content: {answer!r:.200}")
            connection.drain()
        return sent
    finally:
        connection.close()


def main(messages: int, seed: int) -> None:
    """Sends so many messages; prints what became of them."""
    warnings.simplefilter("ignore")  # of coroutines that nobody awaits
    sys.unraisablehook = lambda _: (
        None
    )  # a generator that is closed at the end may not reach its peer
    sys.addaudithook(_audit)
    random.Random("")  # imports what it needs for texts, in newer versions of Python
    before = _state(_function)
    seen: Counter[str] = Counter()
    sent = number = 0
    while sent < messages:
        for home in ("test", "program"):
            try:
                sent += attack(random.Random(f"{seed} {number} {home}"), home, seen)
            except BaseException:
                print("ALARM in", seed, number, home, flush=True)
                raise
            for was, now in zip(map(_plain, before), map(_plain, _state(_function)), strict=True):
                if was != now:
                    what = set(was) ^ set(now) if isinstance(was, (dict, set)) else (was, now)
                    raise Alarm(f"the receiver has changed: {seed} {number} {home} {what!r:.300}")
        number += 1
    print(sent, "messages", dict(sorted(seen.items())))


def _plain(part: Any) -> Any:
    if isinstance(part, dict):
        return {name: id(value) for name, value in part.items() if name != "__module__"}
    return part


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
