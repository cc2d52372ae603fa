"""The environment of verifiers, played by a model behind a server of ours."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

vf = pytest.importorskip("verifiers.v1")
from chat_server import chat_server  # noqa: E402
from test_equal_rewards import OPPONENTS, PROBLEMS, programs, suites  # noqa: E402

from codea1_env.integrations.side import SideAnswer  # noqa: E402
from codea1_env.integrations.verifiers_env import SeatConfig, load_environment  # noqa: E402
from codea1_env.problem_sets.schemas import row_of  # noqa: E402


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("rows") / "problems.jsonl"
    rows = [{**row_of(each), "contract": "", "metadata": {}} for each in PROBLEMS]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(file)


async def played(env: Any, url: str, rollouts: int) -> list[Any]:
    context = vf.ModelContext("prepared", vf.EvalClientConfig(base_url=url, api_key_var="NO_KEY"))
    async with env.serving():
        slots = [slot for task in env.taskset for slot in env.slots(task, rollouts)]
        return await asyncio.gather(*(env.run_slot(slot, context) for slot in slots))


@pytest.mark.parametrize("side", ["coder", "tester"])
def test_each_side_gets_what_the_referee_pays(side: str, source: str, tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(OPPONENTS)
    prepared = {
        (each.entry_point and f"def {each.entry_point}(") or each.prompt.partition("\n")[0]: (
            programs if side == "coder" else suites
        )(each)
        for each in PROBLEMS
    }
    lock, given = threading.Lock(), defaultdict(int)

    def answer(chat: list[dict[str, Any]]) -> str:
        name = next(name for name in prepared if name in chat[-1]["content"])
        with lock:
            given[name] += 1
        return prepared[name][given[name] - 1]

    env = load_environment(side, f"{tmp_path / 'wrong.py'}:Wrong", source)
    with chat_server(answer) as server:
        episodes = asyncio.run(played(env, server.url, 5))
    assert len(episodes) == 5 * len(PROBLEMS)
    assert all(episode.ok for episode in episodes)
    traces = [trace for episode in episodes for trace in episode.traces]
    assert {trace.agent.name for trace in traces} == {side}
    answers = [
        SideAnswer(trace.task.data.task_id, trace.last_reply, trace.task.data.code)
        for trace in traces
    ]
    expected = [score.reward for score in env.game.judge(answers)]
    assert [trace.reward for trace in traces] == [reward or 0.0 for reward in expected]
    assert [trace.agent.trainable for trace in traces] == [each is not None for each in expected]
    assert len(set(expected)) >= 3


def test_its_command_plays_both_seats(tmp_path: Path) -> None:
    def answer(chat: list[dict[str, Any]]) -> str:
        tests = "assert add_numbers(1, 2) == 3\nassert add_numbers(-1, 1) == 0"
        return tests if "The program:" in chat[-1]["content"] else "def add_numbers(a, b): return 3"

    with chat_server(answer) as server:
        done = subprocess.run(
            [
                Path(sys.executable).parent / "vf-eval", "code-a1", "--env.side", "both", "-m", "prepared", "-n", "1",
                "--client.base-url", server.url, "--no-push", "--no-rich", "-o", tmp_path,
            ],
            capture_output=True, text=True, timeout=120, cwd=Path(__file__).parents[2],
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    [file] = tmp_path.glob("*/traces.jsonl")
    [episode] = map(json.loads, file.read_text().splitlines())
    paid = {
        trace["agent"]["name"]: trace["rewards"]["reward"]["score"] for trace in episode["traces"]
    }
    # One of two tests breaks it, of the eight that count.
    assert paid == {"coder": 0.5, "tester": pytest.approx(0.5 * 2 / 8 + 0.5 * 1 / 8)}


@pytest.mark.parametrize("fails", [False, True])
def test_a_seat_with_a_model_of_its_own_is_not_trained(source: str, fails: bool) -> None:
    env = load_environment("both", problems=source)
    tests = "\n".join(PROBLEMS[0].tests)
    with chat_server(lambda _: "no program") as server, chat_server(lambda _: tests) as own:
        own.script = [(400, "no")] * 99 * fails
        client = vf.EvalClientConfig(base_url=own.url, api_key_var="NO_KEY")
        env.config.tester = SeatConfig(model="frozen", client=client)
        [episode, *_] = asyncio.run(played(env, server.url, 1))
    coder, tester = episode.traces
    assert {each["model"] for each in own.seen} == {"frozen"}
    assert (coder.agent.trainable, tester.agent.trainable) == (not fails, False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"side": "judge"}, "side"),
        ({"opponent": "nobody"}, "Expect the tester to be one of golden, boundary, copier"),
        ({"problems": "no_such_file.jsonl"}, "no_such_file"),
    ],
)
def test_wrong_names(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, OSError), match=message):
        load_environment(**options)
