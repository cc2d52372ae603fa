"""The game behind OpenEnv's server, over loopback, with its own client."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openenv")
psutil = pytest.importorskip("psutil")
import httpx  # noqa: E402
from websockets.exceptions import ConnectionClosed  # noqa: E402

from codea1_env.integrations.openenv_game import AnswerAction, OpenEnvClient  # noqa: E402

RIGHT = AnswerAction(text="def add_numbers(a, b): return a + b")
WRONG = AnswerAction(text="def add_numbers(a, b): return a")


@contextmanager
def server(*options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  closed with the process
    process = subprocess.Popen(
        [sys.executable, "-m", "codea1_env.cli", "serve", "env", "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.match(r"(http://\S+): ", line)
    assert found, line
    children = psutil.Process(process.pid).children(recursive=True)
    try:
        yield found[1], process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        psutil.wait_procs(children, timeout=10)
        errors.seek(0)
        assert (process.returncode, errors.read()) == (0, "")
        assert not any(child.is_running() for child in children)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with server("--opponent", "copier", "--rounds", "2", "--max-sessions", "300") as (address, _):
        yield address


def test_an_episode_of_two_rounds(url: str) -> None:
    with OpenEnvClient(url).sync() as env:
        seen = env.reset(task_id="starter/add_numbers", seed=1).observation
        assert "add_numbers" in seen.messages[-1]["content"]
        first = env.step(WRONG)
        assert (first.reward, first.done) == (0.0, False)
        assert "assert add_numbers(2, 3) == 5" in first.observation.messages[-1]["content"]
        last = env.step(RIGHT)
        assert (last.reward, last.done, last.observation.messages) == (1.0, True, [])
        assert last.observation.parts["passed"] == 1.0
        assert (env.state().step_count, env.state().task_id) == (2, "starter/add_numbers")
        with pytest.raises(RuntimeError, match="Expect step"):
            env.step(RIGHT)
        with pytest.raises(RuntimeError, match=r"task_id of one of the \d+ problems"):
            env.reset(task_id="starter/nothing")
        with pytest.raises(RuntimeError, match=r"task_id of one of the \d+ problems"):
            env.reset(task_id=["x"])  # type: ignore[arg-type]


def test_requests_without_a_web_socket_have_no_episode(url: str) -> None:
    answer = httpx.post(f"{url}/step", json={"action": {"text": "x"}}, trust_env=False)
    assert answer.status_code == 409
    assert "web socket" in answer.json()["detail"]
    answer = httpx.post(f"{url}/reset", json={"task_id": ["x"]}, trust_env=False)
    assert answer.status_code in (409, 422)


def test_an_answer_of_10_mb(url: str) -> None:
    with OpenEnvClient(url).sync() as env:
        env.reset(task_id="starter/add_numbers")
        assert env.step(AnswerAction(text="x = 1 # " * 1_250_000)).reward == 0.0


async def episode(url: str, number: int) -> tuple[int, list[float]]:
    async with OpenEnvClient(url, message_timeout_s=120, connect_timeout_s=15) as env:
        await env.reset(task_id="starter/add_numbers")
        turns = [WRONG, RIGHT] if number % 2 else [RIGHT, WRONG]
        return number, [(await env.step(turn)).reward for turn in turns]


def test_200_rollouts_at_once_none_lost_and_memory_flat() -> None:
    async def all_of_them(url: str) -> list[tuple[int, list[float]]]:
        return await asyncio.gather(*(episode(url, number) for number in range(200)))

    options = ("--opponent", "copier", "--rounds", "2", "--max-sessions", "300")
    with server(*options) as (url, process):
        memory = []
        for _ in range(3):
            played = asyncio.run(all_of_them(url))
            wanted = [[0.0, 1.0] if number % 2 else [1.0, 0.0] for number in range(200)]
            assert [rewards for _, rewards in sorted(played)] == wanted
            memory.append(psutil.Process(process.pid).memory_info().rss)
        print(f"MiB after 200, 400 and 600 episodes: {[each >> 20 for each in memory]}")
        assert memory[2] < memory[1] * 1.1
        time.sleep(1)
        assert psutil.Process(process.pid).num_threads() < 60  # the sessions' threads are gone


def test_clients_that_go_away_leave_nothing_and_idle_ones_are_ended() -> None:
    options = ("--opponent", "copier", "--max-sessions", "2", "--idle-timeout", "5")
    with server(*options) as (url, _):
        for _ in range(4):  # more than there are places
            client = started(url)
            client._async._ws.transport.abort()  # in the middle of an episode, without a word
        idle, env = started(url), started(url)
        end = time.monotonic() + 14
        while time.monotonic() < end:
            env.reset(task_id="starter/add_numbers")
            time.sleep(1)
        assert env.step(RIGHT).reward == 1.0
        with pytest.raises(RuntimeError, match="time limit of idle sessions"):
            idle.step(RIGHT)
        idle.close()
        env.close()


def started(url: str) -> Any:
    """A client in an episode, once there is a place for it: the server has to notice who went away."""
    for _ in range(60):
        client = OpenEnvClient(url).sync()
        try:
            client.reset(task_id="starter/add_numbers")
        except (RuntimeError, ConnectionClosed):
            client.close()
            time.sleep(0.5)
        else:
            return client
    raise AssertionError("no place was given back")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--opponent", "nobody"], "Expect the tester to be one of golden"),
        (["--side", "judge"], "side"),
        (["--host", "0.0.0.0"], "other machines"),
    ],
)
def test_one_line_for_what_cannot_be_served(options: list[str], message: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "codea1_env.cli", "serve", "env", "--port", "0", *options],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 2, done.stderr
    assert message in done.stderr.splitlines()[-1] or message in done.stderr
    assert "Traceback" not in done.stderr
