"""The command: how it starts, what it refuses, how it stops."""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from servers import serving

from codea1_env.cli.app import run
from codea1_env.service import open_address, read_token
from codea1_env.service import serving as serving_module
from codea1_env.service.serving import TOKEN_VARIABLE

TOKEN = "0123456789abcdef" * 2


def sleeping(url: str, seconds: float, **words: object) -> httpx.Response:
    body = {"code": f"import time\ntime.sleep({seconds})\nprint(1)", "language": "python"}
    return httpx.post(f"{url}/run_code", json=body, timeout=60, **words)  # type: ignore[arg-type]


def is_there(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health").status_code == 200
    except httpx.TransportError:
        return False


def test_it_finishes_what_is_there_and_takes_nothing_new() -> None:
    with serving("--workers", "1") as server, ThreadPoolExecutor() as threads:
        answers = [threads.submit(sleeping, server.url, 0.5) for _ in range(2)]
        while "codea1_queue_used 2" not in httpx.get(f"{server.url}/metrics").text:
            time.sleep(0.01)
        listed = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text()
        children = [int(pid) for pid in listed.split()]
        server.process.terminate()
        while is_there(server.url):
            time.sleep(0.01)
        assert [each.result().json()["run_result"]["stdout"] for each in answers] == ["1\n"] * 2
        errors = server.process.communicate(timeout=60)[1]
        assert (server.process.returncode, errors) == (0, "")
        assert children
        assert not any(Path(f"/proc/{child}").exists() for child in children)


def test_a_token_is_asked_for_and_never_shown(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    with serving("--host", "0.0.0.0", "--token-file", str(file)) as server:
        assert httpx.get(f"{server.url}/health").status_code == 200
        assert sleeping(server.url, 0).status_code == 401
        assert sleeping(server.url, 0, auth=("any", TOKEN)).status_code == 200
        headers = {"Authorization": f"Bearer {TOKEN}"}
        assert sleeping(server.url, 0, headers=headers).status_code == 200
        server.process.send_signal(signal.SIGINT)
        out, errors = server.process.communicate(timeout=60)
        assert TOKEN not in out + errors + server.url
        assert (server.process.returncode, errors) == (0, "")


@contextmanager
def answering(app: Any) -> Iterator[tuple[str, int]]:
    """Our connections before another application, in a thread; ends when all of them have."""
    connection = serving_module._connection()
    server = uvicorn.Server(uvicorn.Config(app, http=connection, lifespan="off", log_config=None))
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as threads:
        running = threads.submit(server.run, sockets=[listener])
        try:
            yield listener.getsockname()
        finally:
            server.should_exit = True
            running.result(timeout=30)


def what_comes(client: socket.socket) -> bytes:
    """All that is sent until the connection is ended."""
    found = b""
    with suppress(ConnectionResetError):
        while piece := client.recv(9999):
            found += piece
    return found


def test_who_asks_nothing_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_module, "BODY_TIMEOUT", 0.3)
    monkeypatch.setattr(serving_module, "_MAX_CONNECTIONS", 3)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(1)  # longer than a connection may say nothing
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"answer"})

    with answering(app) as address, ExitStack() as stack:
        asking, silent, starting, too_many = (
            stack.enter_context(socket.create_connection(address, timeout=30)) for _ in range(4)
        )
        starting.sendall(b"GET / HT")
        asking.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT")
        assert [what_comes(each) for each in (silent, starting, too_many)] == [b""] * 3
        assert b"answer" in what_comes(asking)


def test_who_does_not_read_an_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_module, "ANSWER_TIMEOUT", 0.2)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": bytes(64 << 20)})

    with socket.socket() as client:
        with answering(app) as address:
            client.connect(address)
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert client.recv(9) == b"HTTP/1.1 "
        assert len(what_comes(client)) < 64 << 20


def test_a_bad_token_is_refused_and_not_shown() -> None:
    for text in ("", "short", "two words of some length", "é" * 32):
        with pytest.raises(ValueError, match="16 ASCII characters") as raised:
            read_token(None, {TOKEN_VARIABLE: text})
        assert not text or text not in str(raised.value)


@pytest.mark.parametrize(
    ("host", "port", "match"),
    [("0.0.0.0", 0, "--token-file"), ("127.0.0.1", 99_999, "65535")],
)
def test_addresses_that_are_refused(host: str, port: int, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        open_address(host, port, guarded=False)


def test_what_cannot_start_says_so_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert run(["sandbox", "serve", "--port", port]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "Address already in use" in line


def test_who_is_refused_before_the_body_comes_sees_why(url: str) -> None:
    place = httpx.URL(url)
    body = b" " * 100_000
    with socket.create_connection((place.host, place.port or 0), timeout=30) as client:
        client.sendall(b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
        answer = client.recv(1 << 16)
        for start in range(0, len(body), 10_000):
            client.sendall(body[start : start + 10_000])
            time.sleep(0.01)
        while piece := client.recv(1 << 16):  # ends without a reset
            answer += piece
    assert answer.startswith(b"HTTP/1.1 404")
    assert b"Expect one of" in answer


@pytest.mark.parametrize("text", [b"\0" * 99, b"POST /run_code HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"GET /" + b"x" * 99_999])  # fmt: skip
def test_hostile_http(url: str, text: bytes) -> None:
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(text)
        assert connection.recv(99).startswith(b"HTTP/1.1 400")
    assert httpx.get(f"{url}/health").status_code == 200
