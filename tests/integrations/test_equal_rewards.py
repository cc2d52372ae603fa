"""The same answers of both sides get the same rewards, whoever asks for them."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from codea1_env import CODER, TESTER, MistakeBook, Referee, Sandbox, parallel_env
from codea1_env.agents import FixedAgent
from codea1_env.integrations import trl_training, verl_reward
from codea1_env.integrations.side import OneSide, SideAnswer
from codea1_env.problems import load_problems
from codea1_env.rollout import RolloutConfig, rollout
from codea1_env.spaces import Observation

PROBLEMS = [*load_problems("starter", "train")[:4], *load_problems("starter-programs", "train")[:2]]
NAMES = [problem.task_id for problem in PROBLEMS for _ in range(5)]
OPPONENTS = '''
import json


class Wrong:
    """Writes a program that returns its first argument, or tests that say what every function returns: 0.

    Of a program: one that prints what it read, or the example's input with the output 0.
    """

    def act(self, observations):
        return [self.answer(seen) for seen in observations]

    def answer(self, seen):
        name = seen["entry_point"]
        if not name and seen["turn"] == 0:
            return "print(open(0).read())"
        if not name:
            given = seen["problem"].partition("Example input:\\n")[2].partition("\\nExample output:")[0]
            return json.dumps([{"input": given, "output": "0"}])
        if seen["turn"] == 0:
            return f"def {name}(*given): return given[0]"
        found = [line.strip()[4:] for line in seen["problem"].splitlines() if line.strip().startswith(">>> ")]
        return "\\n".join(f"assert {call} == 0" for call in found)
'''


def programs(problem) -> list[str]:
    name = problem.entry_point
    if not name:
        return [
            f"Here:\n```python\n{problem.reference}\n```",
            "print(open(0).read())",
            "I do not know.",
            "```python\nprint(0)",
            "1 / 0",
        ]
    return [
        f"Here:\n```python\n{problem.reference}\n```",
        f"def {name}(*given): return given[0]",
        "I do not know.",
        f"```python\ndef {name}(*given):\n    return 0",
        f"def {name}(*given): 1 / 0",
    ]


def suites(problem) -> list[str]:
    name, tests = problem.entry_point, list(problem.tests)
    if not name:
        rows = [{"input": case.args[0], "output": case.expected} for case in problem.cases]
        return [
            json.dumps(rows[:8]),
            f"```json\n{json.dumps([*rows[:2], rows[0], {'input': 'no input', 'output': '1'}])}\n```",
            "These are no tests.",
            json.dumps([{"input": 3}]),
            "\n".join(f"assert run({row['input']!r}) == '-77'" for row in rows[:4]),
        ]
    return [
        "\n".join(tests[:8]),
        "```python\n" + "\n".join([*tests[:2], tests[0], f"assert {name}() == 1"]) + "\n```",
        "These are no tests.",
        f"assert {name}(*[1, 2, 3, 4, 5, 6]) == 'x'",
        "\n".join(f"assert {test.removeprefix('assert ').split(' == ')[0]} == -77" for test in tests[:4]),
    ]  # fmt: skip


class Prepared(FixedAgent):
    """Gives prepared answers in order."""

    def __init__(self, answers: Sequence[str]) -> None:
        self.answers = list(answers)

    def act(self, observations: Sequence[Observation]) -> list[str]:
        given, self.answers = self.answers[: len(observations)], self.answers[len(observations) :]
        return given


def answers_of(side: str) -> list[str]:
    return [text for each in PROBLEMS for text in (programs if side == "coder" else suites)(each)]


@pytest.fixture(scope="module")
def opponent(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("players") / "wrong.py"
    file.write_text(OPPONENTS)
    return f"{file}:Wrong"


@pytest.fixture(scope="module", params=["coder", "tester"])
def side(request: pytest.FixtureRequest, opponent: str, sandbox: Sandbox) -> OneSide:
    return OneSide(request.param, opponent, problems=PROBLEMS, sandbox=sandbox)


@pytest.fixture(scope="module")
def expected(side: OneSide, sandbox: Sandbox) -> list[float | None]:
    """What a rollout pays."""
    coder, count = (side.opponent, 1)
    tester, number = (Prepared(answers_of("tester")), 5)
    if side.side == "coder":
        coder, count, tester, number = Prepared(answers_of("coder")), 5, side.opponent, 1
    config = RolloutConfig(num_generations=count, num_suites=number, use_book=False)
    played = rollout(PROBLEMS, coder, tester, Referee(sandbox), MistakeBook(), config)
    paid = [reward for episode in played.episodes for reward in episode.test_rewards]
    if side.side == "coder":
        paid = [episode.verdict.code_reward for episode in played.episodes]
    assert len(paid) == len(NAMES)
    assert len(set(paid)) >= 3
    return paid


def asked(side: OneSide) -> list[SideAnswer]:
    code = {each.task_id: each.code for each in side.questions()}
    texts = answers_of(side.side)
    return [SideAnswer(name, text, code[name]) for name, text in zip(NAMES, texts, strict=True)]


def test_judged_together_and_one_by_one(side: OneSide, expected: list[float | None]) -> None:
    assert [score.reward for score in side.judge(asked(side))] == expected
    assert [side.judge_one(answer).reward for answer in asked(side)[:10]] == expected[:10]


@pytest.mark.slow
def test_the_environment(side: OneSide, expected: list[float | None], sandbox: Sandbox) -> None:
    paid = []
    for answer in asked(side):
        env = parallel_env(problems=PROBLEMS, sandbox=sandbox)
        observations, _ = env.reset(seed=0, options={"problem_id": answer.task_id})
        turns = {CODER: answer.code, TESTER: answer.text}
        if side.side == "coder":
            observations, *_ = env.step({CODER: answer.text})
            turns[TESTER] = side.opponent.act([observations[TESTER]])[0]
        else:
            env.step({CODER: answer.code})
        _, rewards, *_ = env.step({TESTER: turns[TESTER]})
        paid.append(rewards[side.agent])
    assert paid == [reward or 0.0 for reward in expected]


@pytest.mark.slow
def test_trl_reward_function_also_after_pickling(side, expected) -> None:
    found = asked(side)
    pay = trl_training.AnswerRewards(side)
    completions = [[{"role": "assistant", "content": answer.text}] for answer in found]
    columns = {"task_id": NAMES, "code": [answer.code for answer in found]}
    assert pay(completions=completions, prompts=[""] * len(NAMES), **columns) == expected
    twin = pickle.loads(pickle.dumps(pay))
    assert twin(completions=completions[:5], task_id=NAMES[:5], code=columns["code"][:5]) == expected[:5]  # fmt: skip


def test_trl_environments_with_the_tool_and_without(side, expected) -> None:
    make = trl_training.GameFactory(side)
    environments = [pickle.loads(pickle.dumps(make()))] + [make() for _ in NAMES[1:]]
    for number, (environment, answer) in enumerate(zip(environments, asked(side), strict=True)):
        asks = environment.reset(task_id=answer.task_id, prompt="not looked at")
        problem = next(each for each in PROBLEMS if each.task_id == answer.task_id)
        assert (problem.entry_point or problem.prompt.partition("\n")[0]) in asks
        if number % 2:
            assert environment.submit(answer.text).endswith(trl_training.OVER)
    assert episode_rewards(environments, answers_of(side.side)) == expected
    assert environments[0].submit("again") == trl_training.OVER


def episode_rewards(environments, texts) -> list[float | None]:
    return trl_training.episode_rewards(completions=texts, environments=environments, prompts=texts)


def test_verl(side: OneSide, expected: list[float | None], monkeypatch) -> None:
    monkeypatch.setattr(verl_reward, "_game", lambda *_: side)
    rows = {
        row["extra_info"]["task_id"]: row
        for row in verl_reward.verl_rows(side, "golden", "starter")
    }
    scores = [
        verl_reward.compute_score(row["data_source"], text, row["reward_model"]["ground_truth"], row["extra_info"])
        for row, text in zip([rows[name] for name in NAMES], answers_of(side.side), strict=True)
    ]  # fmt: skip
    assert [score["score"] for score in scores] == [reward or 0.0 for reward in expected]
    assert [bool(score["scorable"]) for score in scores] == [each is not None for each in expected]


def test_inspect_ai(side: OneSide, expected: list[float | None]) -> None:
    pytest.importorskip("inspect_ai")
    from codea1_env.integrations.inspect_tasks import referee

    score = referee(side)

    async def all_of_them() -> list[float]:
        states = [
            SimpleNamespace(
                metadata={"task_id": answer.task_id, "code": answer.code},
                output=SimpleNamespace(completion=answer.text),
            )
            for answer in asked(side)
        ]
        found = await asyncio.gather(*(score(state, None) for state in states))
        return [each.value for each in found]

    assert [paid if paid == paid else None for paid in asyncio.run(all_of_them())] == expected


def test_openenv(side: OneSide, expected: list[float | None]) -> None:
    pytest.importorskip("openenv")
    from codea1_env.integrations.openenv_game import AnswerAction, ServedGame

    paid = []
    for answer in asked(side):
        game = ServedGame(side)
        game.reset(task_id=answer.task_id)
        paid.append(game.step(AnswerAction(text=answer.text)).reward)
    assert paid == expected
