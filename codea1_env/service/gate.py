"""What a request has to pass before the application sees it: the token, the queue, the size of its body."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import hmac
import json
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

MAX_BODY = 32 << 20
"""Bytes of one request."""
MAX_BODIES = 512 << 20
"""Bytes of all requests that are there at the same time."""
BODY_TIMEOUT = 30.0
"""Seconds in which a body has to arrive."""
UNREAD = 1 << 20
"""Bytes of a refused request that are read and forgotten, so that the client gets to see why it was refused."""
UNREAD_TIMEOUT = 2.0
"""Seconds in which they have to arrive."""
OPEN = ("/health",)
"""Asked for without a token."""
ROUTES = {"/run_code": "POST", "/run_tests": "POST", "/health": "GET", "/metrics": "GET"}

T = TypeVar("T")
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


class HttpRefusalError(Exception):
    """A request that goes no further."""

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = headers


def _busy(what: str) -> HttpRefusalError:
    return HttpRefusalError(429, f"{what}; try again later", retry_after="1")


class Admission:
    """A bounded queue before a sandbox.

    Args:
        workers: How many jobs the sandbox runs at the same time.
        queue: How many more requests may wait.
    """

    def __init__(self, workers: int, queue: int) -> None:
        self.capacity = workers + queue
        self.admitted = 0
        self.held = 0
        # Two for each worker, as the sandbox itself has threads: the next job is prepared while one runs. What waits
        # before this can be given up without a trace; what the sandbox has taken runs to its end.
        self._places = asyncio.Semaphore(2 * workers)

    @contextlib.contextmanager
    def admit(self) -> Iterator[Callable[[int], None]]:
        """Hold a place in the queue; gives a function that counts the memory that the request takes."""
        if self.admitted >= self.capacity:
            raise _busy(f"{self.capacity} requests are waiting or running, and that is the limit")
        taken = 0

        def take(size: int) -> None:
            nonlocal taken
            if self.held + size > MAX_BODIES:
                raise _busy("the requests that wait fill the memory that there is for them")
            self.held += size
            taken += size

        self.admitted += 1
        try:
            yield take
        finally:
            self.admitted -= 1
            self.held -= taken

    async def run(self, start: Callable[[], Future[T]]) -> T:
        """Start a job when it is its turn, and wait for its result.

        Who is cancelled while it runs keeps its place until it is over.
        """
        await self._places.acquire()
        try:
            job = asyncio.wrap_future(start())
        except BaseException:
            self._places.release()
            raise
        job.add_done_callback(self._over)
        return await asyncio.shield(job)

    def _over(self, job: asyncio.Future[Any]) -> None:
        self._places.release()
        if not job.cancelled():
            job.exception()  # somebody has looked at it, even where the client is gone


class HttpGate:
    """Stands before an application."""

    def __init__(
        self,
        app: App,
        admission: Admission,
        answered: Callable[[str, int], None],
        token: str | None,
    ) -> None:
        self._app = app
        self._admission = admission
        self._answered = answered
        self._token = token.encode() if token is not None else None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Let a request pass, or answer it."""
        path = scope["path"]
        incoming = _Incoming(scope, receive)
        route = path if path in ROUTES else "other"

        async def counting(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._answered(route, message["status"])
            elif not message.get("more_body"):
                # The last piece is empty, and waits until the others are read: till then the answer takes memory,
                # and its request a place.
                await send({**message, "more_body": True})
                message = {"type": message["type"]}
            await send(message)

        try:
            if path not in OPEN:
                self._check_token(scope)
            if route == "other":
                raise HttpRefusalError(404, f"Expect one of: {', '.join(ROUTES)}")
            method = ROUTES[path]
            if scope["method"] != method:
                raise HttpRefusalError(405, f"Expect the method {method}", allow=method)
            if method == "GET":
                await self._app(scope, receive, counting)
                return
            with self._admission.admit() as take:
                body = await _read_body(scope, incoming, take)
                await self._answer(scope, body, incoming, counting)
        except HttpRefusalError as refusal:
            await _refuse(counting, refusal, incoming)
        except asyncio.CancelledError:  # by the server, which nobody wants to wait for
            stopping = HttpRefusalError(503, "the service is stopping", retry_after="1")
            await _refuse(counting, stopping)

    def _check_token(self, scope: Message) -> None:
        if self._token is None:
            return
        said = _token_in(_header(scope, b"authorization") or b"")
        if not hmac.compare_digest(said, self._token):
            raise HttpRefusalError(
                401,
                "Expect the header Authorization: Bearer TOKEN, with the token of this service",
                www_authenticate="Bearer",
            )

    async def _answer(self, scope: Message, body: bytes, receive: Receive, send: Send) -> None:
        """Have the application answer; if the client goes away meanwhile, nobody waits for the answer."""
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return messages.pop() if messages else await receive()

        answer = asyncio.ensure_future(self._app(scope, replay, send))
        gone = asyncio.ensure_future(receive())
        try:
            await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                answer.result()
        finally:
            for task in (answer, gone):
                task.cancel()
            await asyncio.gather(answer, gone, return_exceptions=True)


class _Incoming:
    """What a client sends, and how much of it is still to come."""

    def __init__(self, scope: Message, receive: Receive) -> None:
        self._receive = receive
        self._rest = int(_header(scope, b"content-length") or 0)

    async def __call__(self) -> Message:
        message = await self._receive()
        self._rest -= len(message.get("body", b""))
        return message

    async def forget(self) -> None:
        """Read what is left, if that is little. A connection that is closed before is reset, and its answer lost."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(UNREAD_TIMEOUT):
                while 0 < self._rest <= UNREAD:
                    if (await self())["type"] != "http.request":
                        return


async def _read_body(scope: Message, receive: Receive, take: Callable[[int], None]) -> bytes:
    """Return the whole body."""
    too_large = HttpRefusalError(413, f"Expect a request of at most {MAX_BODY} bytes")
    length = _header(scope, b"content-length")
    if length is not None and (len(length) > 12 or int(length) > MAX_BODY):
        raise too_large
    body = bytearray()  # of pieces of one byte a list would be large
    try:
        async with asyncio.timeout(BODY_TIMEOUT):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise HttpRefusalError(400, "Expect a whole request, actually: a part of one")
                piece = message.get("body", b"")
                if len(body) + len(piece) > MAX_BODY:
                    raise too_large
                take(len(piece))
                body += piece
                if not message.get("more_body"):
                    return bytes(body)
    except TimeoutError:
        raise HttpRefusalError(
            408, f"Expect a request to arrive within {BODY_TIMEOUT:g} s"
        ) from None


def _header(scope: Message, name: bytes) -> bytes | None:
    found: dict[bytes, bytes] = dict(scope["headers"])
    return found.get(name)


def _token_in(header: bytes) -> bytes:
    """Return the token of a bearer, or the password of a URL (http://any:TOKEN@host), which is all some clients can send."""
    kind, _, rest = header.partition(b" ")
    if kind.lower() == b"bearer":
        return rest.strip()
    if kind.lower() == b"basic":
        with contextlib.suppress(binascii.Error, ValueError):
            return base64.b64decode(rest, validate=True).partition(b":")[2]
    return b""


async def _refuse(send: Send, refusal: HttpRefusalError, incoming: _Incoming | None = None) -> None:
    headers = {name.replace("_", "-"): value for name, value in refusal.headers.items()}
    # The rest of a body that nobody reads would be taken for the next request.
    headers |= {"content-type": "application/json", "connection": "close"}
    body = json.dumps({"detail": refusal.detail}).encode()
    headers["content-length"] = str(len(body))
    await send(
        {
            "type": "http.response.start",
            "status": refusal.status,
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
    )
    await send({"type": "http.response.body", "body": body, "more_body": True})
    if incoming is not None:
        await incoming.forget()
    await send({"type": "http.response.body"})
