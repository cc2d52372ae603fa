"""Listens on an address until it is told to stop."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import resource
import signal
import socket
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from codea1_env.support.extras import require

from .gate import BODY_TIMEOUT, App

TOKEN_VARIABLE = "CODEA1_SERVICE_TOKEN"
ANSWER_TIMEOUT = 60.0
"""Seconds in which a client has to read an answer."""
_MIN_TOKEN = 16
_MAX_CONNECTIONS = 4096


class Address(NamedTuple):
    """An open address."""

    listener: socket.socket
    url: str


def read_token(file: Path | None, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the token of a file, or of the environment; None where there is none, a ValueError for a bad one."""
    # Whatever is no text is no token, either.
    text = file.read_text("utf-8", "replace") if file else environment.get(TOKEN_VARIABLE)
    if text is None:
        return None
    token = text.strip()
    if len(token) < _MIN_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        # Not shown: it would be in a log.
        raise ValueError(
            f"Expect the token to be one word of at least {_MIN_TOKEN} ASCII characters, actually: it is not. "
            "Make one: python -c 'import secrets; print(secrets.token_hex(32))'"
        )
    return token


def open_address(host: str, port: int, *, guarded: bool) -> Address:
    """Take an address, before anything else is started; port 0 takes any free one.

    Raises:
        ValueError: The address is not there, or taken, or open to others without a token (not `guarded`).
    """
    if not 0 <= port < 1 << 16:
        raise ValueError(f"Expect a port from 0 to 65535, actually: {port}")
    try:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise ValueError(f"Expect a host and a port, actually: {host}, {port}: {error}") from error
    if not guarded and not ipaddress.ip_address(str(place[0]).partition("%")[0]).is_loopback:
        raise ValueError(
            f"Expect a token where other machines may connect, actually: {host} and none. Give --token-file FILE "
            f"or the environment variable {TOKEN_VARIABLE}, or listen on 127.0.0.1"
        )
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise ValueError(
            f"Expect a free address, actually: {host}:{port}: {error.strerror}"
        ) from error
    number, port = listener.getsockname()[:2]
    return Address(
        listener, f"http://[{number}]:{port}" if ":" in number else f"http://{number}:{port}"
    )


def _descriptors() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _connection() -> type[asyncio.Protocol]:
    """Uvicorn's connection, with an end for clients that do not ask, or do not read: it would wait for them for ever."""
    base = require("uvicorn.protocols.http.h11_impl", "service").H11Protocol
    most = min(_MAX_CONNECTIONS, _descriptors() // 2)  # a request needs others, too

    class Connection(base):  # type: ignore[misc, valid-type]
        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self._not_read: asyncio.TimerHandle | None = None
            self._not_asked = self.loop.call_later(BODY_TIMEOUT, self._look, None)
            if len(self.connections) > most:
                transport.abort()

        def _look(self, before: object) -> None:
            """End a connection on which nothing has been asked since the last look."""
            asked = self.cycle is not None and not self.cycle.response_complete
            if not asked and self.cycle is before:
                self.transport.abort()
                return
            now = object() if asked else self.cycle
            self._not_asked = self.loop.call_later(BODY_TIMEOUT, self._look, now)

        def pause_writing(self) -> None:
            super().pause_writing()
            self._not_read = self.loop.call_later(ANSWER_TIMEOUT, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            if self._not_read is not None:
                self._not_read.cancel()

        def connection_lost(self, error: Exception | None) -> None:
            super().connection_lost(error)
            self._not_asked.cancel()
            if self._not_read is not None:
                self._not_read.cancel()

    return Connection


def serve(app: App, address: Address) -> None:
    """Answer requests until SIGTERM or Ctrl-C; then finish those that are there, and return.

    A second Ctrl-C answers them with 503.
    """
    uvicorn = require("uvicorn", "service")
    config = uvicorn.Config(
        app,
        http=_connection(),
        ws="none",
        lifespan="off",
        log_level="error",  # a client's mistakes are told to the client
        access_log=False,
        # So many are accepted before the first is looked at; without a descriptor asyncio logs each attempt.
        backlog=min(1024, _descriptors() // 8),
        server_header=False,
    )
    run_server(uvicorn.Server(config), address)


def run_server(server: Any, address: Address) -> None:
    """Let a server of uvicorn serve an address until SIGTERM or Ctrl-C, and return."""

    def stop(number: int, frame: object) -> None:
        server.should_exit = True

    # Uvicorn has handlers of its own while it serves; afterwards it raises what it has caught once more.
    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with closing(address.listener):
            server.run(sockets=[address.listener])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
