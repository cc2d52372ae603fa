"""Who gets in: tokens, the queue, sizes; and our own failures. In this process, before a runner that waits for us."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import partial
from typing import Any

import pytest

from codea1_env.sandbox import InfraError, Job, JobResult, Limits, Outcome, ScriptResult
from codea1_env.service import Admission, make_app
from codea1_env.service import gate as gates

BODY = json.dumps({"code": "", "language": "python"}).encode()
TESTS = json.dumps({"code": "", "tests": []}).encode()


class HeldRunner:
    """Ends nothing by itself."""

    limits = Limits()
    level = "namespaces"

    def __init__(self) -> None:
        self.futures: list[Future[Any]] = []

    def _start(self) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        self.futures.append(future)
        return future

    def submit(self, job: Job) -> Future[JobResult]:
        return self._start()

    def submit_script(
        self, code: str, stdin: str = "", *, limits: Limits | None = None, scratch: bool = False
    ) -> Future[ScriptResult]:
        return self._start()


class Client:
    """One request, of which every message is ours."""

    def __init__(
        self, app: gates.App, path: str = "/run_code", method: str = "", **headers: str
    ) -> None:
        self.messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.sent: list[dict[str, Any]] = []
        self.received = 0
        self.room = asyncio.Semaphore(1000)
        scope = {
            "type": "http",
            "method": method or ("GET" if path in ("/health", "/metrics") else "POST"),
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [
                (b"content-type", b"application/json"),
                *(
                    (name.replace("_", "-").encode(), text.encode())
                    for name, text in headers.items()
                ),
            ],
        }
        self.task = asyncio.ensure_future(app(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        message = await self.messages.get()
        self.received += len(message.get("body", b""))
        return message

    async def _send(self, message: dict[str, Any]) -> None:
        await self.room.acquire()
        self.sent.append(message)

    def says(self, body: bytes, more: bool = False) -> Client:
        self.messages.put_nowait({"type": "http.request", "body": body, "more_body": more})
        return self

    def leaves(self) -> None:
        self.messages.put_nowait({"type": "http.disconnect"})

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def answer(self) -> Any:
        return json.loads(b"".join(each.get("body", b"") for each in self.sent))


Play = Callable[[HeldRunner, Admission, Callable[..., gates.App]], Coroutine[Any, Any, None]]


def play(part: Play, workers: int = 1, queue: int = 1) -> None:
    async def main() -> None:
        runner, admission = HeldRunner(), Admission(workers, queue)
        await part(runner, admission, lambda **words: make_app(runner, admission, **words))
        assert (admission.admitted, admission.held) == (0, 0)

    asyncio.run(asyncio.wait_for(main(), 60))


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


def test_the_queue_is_bounded_and_loses_nothing() -> None:
    async def part(runner: HeldRunner, admission: Admission, make: Any) -> None:
        app = make()
        inside = [Client(app).says(BODY) for _ in range(8)]
        await until(lambda: len(runner.futures) == 4 and admission.admitted == 8)
        outside = Client(app).says(BODY)
        await outside.task
        assert outside.status == 429
        assert (b"retry-after", b"1") in outside.sent[0]["headers"]
        for number in range(8):
            while len(runner.futures) <= number:
                await asyncio.sleep(0)
            runner.futures[number].set_result(ScriptResult(Outcome.PASS, f"{number}"))
        await asyncio.gather(*(each.task for each in inside))
        assert {each.answer["run_result"]["stdout"] for each in inside} == set("01234567")

    play(part, workers=2, queue=6)


def test_who_leaves_gives_up_a_place_but_not_what_runs() -> None:
    async def part(runner: HeldRunner, admission: Admission, make: Any) -> None:
        app = make()
        clients = [Client(app).says(BODY) for _ in range(4)]
        await until(lambda: len(runner.futures) == 2)
        for client in clients:
            client.leaves()
        await asyncio.gather(*(each.task for each in clients))
        assert admission.admitted == 0
        late = Client(app).says(BODY)
        await until(lambda: admission.admitted == 1)
        await asyncio.sleep(0.02)
        assert len(runner.futures) == 2  # both places are still taken by programs that run
        runner.futures[0].set_result(ScriptResult(Outcome.PASS))
        await until(lambda: len(runner.futures) == 3)  # and those that had not begun never do
        runner.futures[2].set_result(ScriptResult(Outcome.PASS, "late"))
        await late.task
        assert late.answer["run_result"]["stdout"] == "late"
        runner.futures[1].set_exception(InfraError("of nobody"))
        await asyncio.sleep(0.01)

    play(part, queue=3)


@pytest.mark.parametrize("declared", [True, False])
def test_a_body_of_a_gigabyte_is_not_read(declared: bool) -> None:
    async def part(runner: HeldRunner, admission: Admission, make: Any) -> None:
        words = {"content_length": str(1 << 30)} if declared else {}
        client = Client(make(), **words)
        piece = bytes(1 << 20)
        for _ in range(64):
            client.says(piece, more=True)
        await client.task
        assert client.status == 413
        assert client.received <= (0 if declared else gates.MAX_BODY + len(piece))
        assert (b"connection", b"close") in client.sent[0]["headers"]
        assert runner.futures == []

    play(part)


def test_bodies_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "MAX_BODIES", 1000)

    async def part(runner: HeldRunner, admission: Admission, make: Any) -> None:
        app = make()
        first = Client(app).says(b" " * 900, more=True)
        await until(lambda: admission.held == 900)
        second = Client(app).says(b" " * 101, more=True)
        await second.task
        assert second.status == 429
        first.leaves()
        await first.task

    play(part)


def test_a_body_that_does_not_arrive_gives_its_place_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "BODY_TIMEOUT", 0.01)

    async def part(runner: HeldRunner, admission: Admission, make: Any) -> None:
        client = Client(make()).says(b"{", more=True)
        await client.task
        assert client.status == 408

    play(part)


TOKENS = {
    "Bearer " + "s" * 32: 200,
    "bearer " + "s" * 32: 200,
    "Basic " + base64.b64encode(b"verl:" + b"s" * 32).decode(): 200,
    "Bearer " + "s" * 31: 401,
    "Bearer " + "s" * 33: 401,
    "Bearer": 401,
    "": 401,
    "Basic " + base64.b64encode(b"verl:").decode(): 401,
    "Basic é": 401,
    "Digest " + "s" * 32: 401,
}


def test_tokens() -> None:
    async def part(runner: HeldRunner, admission: Admission, make: Any) -> None:
        app = make(token="s" * 32)
        for header, status in TOKENS.items():
            client = Client(app, "/metrics", authorization=header)
            await client.task
            assert client.status == status, header
        nobody = Client(app).says(b"", more=True)  # asked before a byte of the body is read
        await nobody.task
        assert (nobody.status, nobody.received) == (401, 0)
        health = Client(app, "/health")
        await health.task
        assert health.status == 200
        # What is open takes no bodies and no place.
        client = Client(app, "/health", method="POST").says(b" ", more=True)
        await client.task
        assert (client.status, client.received) == (405, 0)
        assert (b"allow", b"GET") in client.sent[0]["headers"]

    play(part)


def test_a_request_keeps_its_place_until_its_answer_is_read() -> None:
    async def part(runner: HeldRunner, admission: Admission, make: Any) -> None:
        client = Client(make()).says(BODY)
        client.room = asyncio.Semaphore(2)  # the head and the body are under way, and are not read
        await until(lambda: len(runner.futures) == 1)
        runner.futures[0].set_result(ScriptResult(Outcome.PASS))
        await until(lambda: len(client.sent) == 2)
        for _ in range(9):
            await asyncio.sleep(0)
        assert admission.admitted == 1
        client.room.release()
        await client.task
        assert client.answer["status"] == "Success"

    play(part)


def test_our_own_failures_are_no_verdicts() -> None:
    async def part(runner: HeldRunner, admission: Admission, make: Any) -> None:
        app = make()
        script, tests = Client(app).says(BODY), Client(app, "/run_tests").says(TESTS)
        await until(lambda: len(runner.futures) == 2)
        for future in runner.futures:
            future.set_exception(InfraError("no memory"))
        await asyncio.gather(script.task, tests.task)
        assert script.status == 200
        assert (script.answer["status"], script.answer["message"]) == ("SandboxError", "no memory")
        assert script.answer["run_result"] is None
        assert (tests.status, tests.answer) == (503, {"detail": "no memory"})

    play(part)


def _same(future: Future[int]) -> Future[int]:
    return future


def test_long_waits_are_told_once_a_minute(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(gates, "PATIENCE", 0.05)

    async def wait(admission: Admission) -> None:
        held: list[Future[int]] = [Future() for _ in range(6)]
        jobs = [asyncio.create_task(admission.run(partial(_same, each))) for each in held]
        await asyncio.sleep(0.1)
        for number, each in enumerate(held):
            each.set_result(number)
        assert await asyncio.gather(*jobs) == [0, 1, 2, 3, 4, 5]

    asyncio.run(wait(Admission(1, 9)))
    [told] = caplog.messages
    assert "has waited" in told
