"""A language model as a player: of the game, of rollouts, and of a run that is resumed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny import tiny_model, tiny_tokenizer

from codea1_env.agents.llm.agent import BothRoles, LLMAgent
from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.agents.llm.transformers_backend import TransformersBackend
from codea1_env.agents.models import load_model, load_tokenizer, resolve
from codea1_env.code_a1_v1 import parallel_env
from codea1_env.mistake_book import MistakeBook
from codea1_env.problems import load_problems
from codea1_env.referee import Referee
from codea1_env.rollout import RolloutConfig, rollout
from codea1_env.sandbox import Job, Sandbox
from codea1_env.spaces import CODER, observe

SAMPLING = SamplingConfig(max_completion_length=8, max_prompt_length=2000)
PROBLEMS = load_problems("starter")[:2]


@pytest.fixture(scope="module")
def backend() -> TransformersBackend:
    return TransformersBackend(tiny_model(), tiny_tokenizer())


def test_two_agents_on_one_engine_play_rollouts(backend, sandbox) -> None:
    coder, tester = LLMAgent(backend, SAMPLING, 0), LLMAgent(backend, SAMPLING, 1)
    played = rollout(PROBLEMS, coder, tester, Referee(sandbox), MistakeBook(), RolloutConfig(2, 3))
    assert [episode.answer for episode in played.episodes] == [c.text for c in coder.completions]
    assert len(coder.completions) == 4
    assert len(tester.completions) == 12
    assert coder.usage.answers == 4
    assert coder.usage.completion_tokens == sum(len(c.completion_ids) for c in coder.completions)
    assert coder.usage.prompt_tokens == sum(len(c.prompt_ids) for c in coder.completions)
    assert coder.usage.truncated == sum(c.truncated for c in coder.completions)


def test_agent_repairs_in_later_rounds(backend: TransformersBackend, sandbox: Sandbox) -> None:
    agent = LLMAgent(backend, SAMPLING)
    env = parallel_env(problems=PROBLEMS, max_rounds=2, sandbox=sandbox)
    observations, infos = env.reset(seed=0)
    asked = []
    while env.agents:
        actor = infos[CODER]["active_agent"]
        (action,) = agent.act([observations[actor]])
        asked.append(agent.prompts[0].messages[-1]["content"])
        observations, _, _, _, infos = env.step({actor: action})
    assert len(asked) == 4
    assert "is wrong" in asked[2]


def test_overlong_prompts_are_shortened_and_reported(backend: TransformersBackend) -> None:
    agent = LLMAgent(backend, SAMPLING)
    seen = observe(PROBLEMS[0], code="y = 2\n" * 5000, turn=1)
    (answer,) = agent.act([seen])
    assert isinstance(answer, str)
    assert agent.usage.shortened == 1
    assert agent.prompts[0].cut["code"] > 20_000
    assert agent.completions[0].prompt_tokens == agent.prompts[0].tokens <= 2000


def test_draws_go_on_after_saving(backend: TransformersBackend, tmp_path: Path) -> None:
    observations = [observe(PROBLEMS[0])] * 2
    agent = LLMAgent(backend, SAMPLING, seed=4)
    first = agent.act(observations)
    agent.save(tmp_path)
    second = agent.act(observations)
    assert first != second
    resumed = LLMAgent(backend, SAMPLING, seed=4)
    resumed.load(tmp_path)
    assert resumed.act(observations) == second


def test_one_model_answers_each_observation_in_its_role(backend: TransformersBackend) -> None:
    lengths = (3, 6)
    samplings = [SamplingConfig(max_completion_length=n, max_prompt_length=2000) for n in lengths]
    both, alone = (
        BothRoles(*(LLMAgent(backend, sampling, 7) for sampling in samplings)) for _ in range(2)
    )
    turns = [1, 0, 0, 1, 1]
    observations = [observe(PROBLEMS[0], turn=turn, code="def f(): ...") for turn in turns]
    answers = both.act(observations)
    assert answers == [answer.text for answer in both.completions]
    written = [answer.completion_tokens for answer in both.completions]
    assert all(n <= lengths[turn] for n, turn in zip(written, turns, strict=True))
    assert (both.usage.answers, both.usage.completion_tokens) == (5, sum(written))
    # As two agents would have answered, each its own.
    for turn, player in enumerate(alone._turns.values()):
        mine = [o for o, t in zip(observations, turns, strict=True) if t == turn]
        given = [a for a, t in zip(answers, turns, strict=True) if t == turn]
        assert player.act(mine) == given


@pytest.mark.slow
def test_default_model_solves_easy_problems_and_writes_valid_tests(sandbox: Sandbox) -> None:
    folder = resolve("smollm2-135m")
    model = load_model(folder, dtype="float32")  # which is faster on most processors
    backend = TransformersBackend(model, load_tokenizer(folder))
    sampling = SamplingConfig(temperature=0.7, max_completion_length=48, stop=("\n```\n",))
    coder, tester = LLMAgent(backend, sampling, 0), LLMAgent(backend, sampling, 1)
    (problem,) = (p for p in load_problems("starter") if p.entry_point == "is_even")
    played = rollout([problem], coder, tester, Referee(sandbox), MistakeBook(), RolloutConfig(2, 1))
    jobs = [Job(each.program.code, problem.tests, "is_even") for each in played.episodes]
    assert any(all(r.passed for r in results) for results in sandbox.run_many(jobs))
    valid = [suite.rewards.validity for e in played.episodes for suite in e.verdict.suites]
    assert sum(valid) / len(valid) > 0.05
    assert coder.usage.truncated < coder.usage.answers / 2
