"""HTTP before the sandbox: the token, the queue, the size of a body, and how an answer is sent."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import hmac
import json
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

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
PATIENCE = 8.0
"""Seconds in the queue from which on the log tells of it."""
_UNREAD = (401, 404, 405, 429)
"""Answers that may come before the body is read."""
OPEN = ("/health",)
"""Asked for without a token."""

T = TypeVar("T")
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]
Headers = Mapping[bytes, bytes]


class HttpAnswer(NamedTuple):
    """What a client is told."""

    status: int
    body: bytes
    headers: Mapping[str, str]


Handler = Callable[[Headers, bytes], Awaitable[HttpAnswer]]
"""Headers and body of a request -> the answer."""


def json_answer(content: object, status: int = 200, **headers: str) -> HttpAnswer:
    """Return an answer in JSON. It is ASCII: of hostile text not everything can be encoded as UTF-8."""
    said = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpAnswer(
        status, json.dumps(content).encode(), {"content-type": "application/json"} | said
    )


class HttpRefusalError(Exception):
    """A request that goes no further."""

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        super().__init__(detail)
        # The rest of a body that nobody reads would be taken for the next request.
        self.answer = json_answer({"detail": detail}, status, connection="close", **headers)


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
        self._silent_until = 0.0
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
        """Start a job when it is its turn. Who is cancelled while it runs keeps its place until it is over."""
        began = time.monotonic()
        await self._places.acquire()
        self._tell(time.monotonic() - began)
        try:
            job = asyncio.wrap_future(start())
        except BaseException:
            self._places.release()
            raise
        job.add_done_callback(self._over)
        return await asyncio.shield(job)

    def _tell(self, waited: float) -> None:
        """Tell whoever runs the service, at most once a minute, that clients may not wait so long."""
        now = time.monotonic()
        if waited > PATIENCE and now > self._silent_until:
            self._silent_until = now + 60
            logging.getLogger(__name__).warning(
                "A request has waited %.0f s for its turn. verl counts as wrong what takes 10 s more than twice its "
                "time limit. Give the service more --workers, or programs less time.",
                waited,
            )

    def _over(self, job: asyncio.Future[Any]) -> None:
        self._places.release()
        if not job.cancelled():
            job.exception()  # somebody has looked at it, even where the client is gone


class HttpGate:
    """The ASGI application: looks at each request, and lets a handler answer.

    Args:
        routes: Path -> method and handler.
        admission: The queue.
        answered: Counts responses: called with the route and the status.
        token: What clients have to say; None asks for nothing.
    """

    def __init__(
        self,
        routes: Mapping[str, tuple[str, Handler]],
        admission: Admission,
        answered: Callable[[str, int], None],
        token: str | None,
    ) -> None:
        self._routes, self._admission, self._answered = routes, admission, answered
        self._token = None if token is None else token.encode()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request."""
        path, headers = scope["path"], dict(scope["headers"])
        route = path if path in self._routes else "other"

        async def say(answer: HttpAnswer) -> None:
            self._answered(route, answer.status)
            said = {**answer.headers, "content-length": str(len(answer.body))}
            lines = [(name.encode(), value.encode()) for name, value in said.items()]
            await send({"type": "http.response.start", "status": answer.status, "headers": lines})
            # The last piece is empty, and waits until the others are read: till then the answer takes memory,
            # and its request a place.
            await send({"type": "http.response.body", "body": answer.body, "more_body": True})
            if answer.status in _UNREAD:
                await _forget(headers, receive)
            await send({"type": "http.response.body"})

        async def respond(body: bytes) -> None:
            await say(await handler(headers, body))

        try:
            if path not in OPEN:
                self._check_token(headers)
            if route == "other":
                raise HttpRefusalError(404, f"Expect one of: {', '.join(self._routes)}")
            method, handler = self._routes[path]
            if scope["method"] != method:
                raise HttpRefusalError(405, f"Expect the method {method}", allow=method)
            if method == "GET":
                await respond(b"")
                return
            with self._admission.admit() as take:
                body = await _read_body(headers, receive, take)
                await _unless_gone(respond(body), receive)
        except HttpRefusalError as refusal:
            await say(refusal.answer)
        except Exception:
            self._answered(route, 500)  # which the server tells
            raise
        except asyncio.CancelledError:  # by the server, which nobody wants to wait for
            await say(HttpRefusalError(503, "the service is stopping", retry_after="1").answer)

    def _check_token(self, headers: Headers) -> None:
        said = _token_in(headers.get(b"authorization", b""))
        if self._token is not None and not hmac.compare_digest(said, self._token):
            raise HttpRefusalError(
                401,
                "Expect the header Authorization: Bearer TOKEN, with the token of this service",
                www_authenticate="Bearer",
            )


async def _unless_gone(answering: Coroutine[Any, Any, None], receive: Receive) -> None:
    """Answer; if the client goes away meanwhile, nobody waits for the answer."""
    answer, gone = asyncio.ensure_future(answering), asyncio.ensure_future(receive())
    try:
        await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            answer.result()
    finally:
        for task in (answer, gone):
            task.cancel()
        await asyncio.gather(answer, gone, return_exceptions=True)


async def _forget(headers: Headers, receive: Receive) -> None:
    """Read a short body that nobody wanted. A connection that is closed before is reset, and its answer lost."""
    left = int(headers.get(b"content-length", 0))
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(UNREAD_TIMEOUT):
            while 0 < left <= UNREAD and (message := await receive())["type"] == "http.request":
                left -= len(message.get("body", b""))


async def _read_body(headers: Headers, receive: Receive, take: Callable[[int], None]) -> bytes:
    too_large = HttpRefusalError(413, f"Expect a request of at most {MAX_BODY} bytes")
    length = headers.get(b"content-length", b"0")
    if len(length) > 12 or int(length) > MAX_BODY:
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
        late = f"Expect a request to arrive within {BODY_TIMEOUT:g} s"
        raise HttpRefusalError(408, late) from None


def _token_in(header: bytes) -> bytes:
    """Return the token of a bearer, or the password of a URL (http://any:TOKEN@host), which is all some clients can send."""
    kind, _, rest = header.partition(b" ")
    if kind.lower() == b"bearer":
        return rest.strip()
    if kind.lower() == b"basic":
        with contextlib.suppress(binascii.Error, ValueError):
            return base64.b64decode(rest, validate=True).partition(b":")[2]
    return b""
