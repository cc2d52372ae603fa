"""Makes the proxies of one connection: one per object and one class per type of the other side."""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

from .operations import CHANGING_BASES, CONSTANT_BASES
from .proxies import CALCULATING, METHODS, RemoteObject, RemoteType, by_value, identity_hash

if TYPE_CHECKING:
    from .remote import Peer

_BASES = {kind.__name__: kind for kind in (*CONSTANT_BASES, *CHANGING_BASES)}


class _Iteration:
    """A generator of the other side, driven from a generator of this side."""

    def __init__(self, proxy: RemoteObject) -> None:
        self.proxy = proxy

    def _ask(self, operation: str, *operands: Any) -> Any:
        return self.proxy.remote_peer.request("op", operation, (self.proxy, *operands))

    def __iter__(self) -> _Iteration:
        return self

    def __next__(self) -> Any:
        return self._ask("next")

    def send(self, value: Any) -> Any:
        return self._ask("send", value)

    def throw(self, *error: Any) -> Any:
        return self._ask("throw", error[1] if len(error) > 1 and error[1] is not None else error[0])

    def close(self) -> None:
        self._ask("close")


def _generator(proxy: RemoteObject) -> Any:
    return (yield from _Iteration(proxy))


async def _coroutine(proxy: Any) -> Any:
    return await proxy


class ProxyFactory:
    """Makes proxies, one per object and one class per type, so that `is` and `isinstance` work."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.types: dict[int, RemoteType] = {}
        self._objects: dict[int, Any] = {}

    def object(self, number: int, description: tuple[Any, ...], value: Any = None) -> Any:
        """The proxy of an object."""
        if number not in self._objects:
            kind: Any = self.type_of(description)
            base = kind.remote_base if kind.remote_base in CONSTANT_BASES else None
            if base is not None and type(value) is not base:
                raise TypeError("an object without the value that it holds")
            made = object.__new__(kind) if base is None else base.__new__(kind, value)
            object.__setattr__(made, "remote_number", number)
            self._objects[number] = made
        return self._objects[number]

    def stand_in(self, kind: str, number: int, description: tuple[Any, ...]) -> Any:
        """A generator or coroutine of ours that stands for one of the other side."""
        proxy = self.object(number, description)
        return _coroutine(proxy) if kind == "coroutine" else _generator(proxy)

    def type_of(self, description: tuple[Any, ...]) -> RemoteType:
        """The proxy class of a class, from all of its description the first time."""
        number, *details = description
        if details:
            name, bases, methods, base_name, fields = details
            parents: tuple[type, ...] = tuple(self.type_of(base) for base in bases)
            base = {kind.__name__: kind for kind in (*CONSTANT_BASES, *CHANGING_BASES)}.get(
                base_name
            )
            if base in CONSTANT_BASES and not any(issubclass(each, base) for each in parents):
                parents = (namedtuple(name, fields) if fields else base, *parents)
            if not any(issubclass(each, RemoteObject) for each in parents):
                parents = (*parents, RemoteObject)
            namespace: dict[str, Any] = {
                method: by_value(method, base, METHODS[method])
                if base in CONSTANT_BASES and method in CALCULATING
                else METHODS[method]
                for method in methods
            }
            if "__hash__" not in namespace and base not in CONSTANT_BASES:
                namespace["__hash__"] = identity_hash
            namespace |= {
                "remote_peer": self.peer,
                "remote_type_number": None,
                "remote_base": base,
            }
            self.types[number] = type.__new__(RemoteType, name, parents, namespace)
        return self.types[number]

    def offer(self, number: int, kind: RemoteType) -> RemoteType:
        """Notes that the other side has handed over a class itself, not only one of its objects."""
        type.__setattr__(kind, "remote_type_number", number)
        return kind

    def declare_exception(self, classes: list[tuple[str, str]]) -> type[BaseException]:
        """The class on this side for an exception class of the other."""
        return self.peer.exceptions.declare(classes)
