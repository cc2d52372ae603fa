"""One language model in both roles."""

from __future__ import annotations

from tiny import tiny_model, tiny_tokenizer

from codea1_env.agents.llm.agent import BothRoles, LLMAgent
from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.agents.llm.transformers_backend import TransformersBackend
from codea1_env.problems import load_problems
from codea1_env.spaces import observe

LENGTHS = (3, 6)


def both() -> BothRoles:
    backend = TransformersBackend(tiny_model(), tiny_tokenizer())
    samplings = [SamplingConfig(max_completion_length=n, max_prompt_length=2000) for n in LENGTHS]
    return BothRoles(*(LLMAgent(backend, sampling, 7) for sampling in samplings))


def test_each_observation_is_answered_in_its_role():
    (problem,) = load_problems("starter")[:1]
    turns = [1, 0, 0, 1, 1]
    observations = [observe(problem, turn=turn, code="def f(): ...") for turn in turns]
    agent = both()
    answers = agent.act(observations)
    assert answers == [answer.text for answer in agent.completions]
    lengths = [answer.completion_tokens for answer in agent.completions]
    assert all(n <= LENGTHS[turn] for n, turn in zip(lengths, turns, strict=True))
    assert agent.usage.answers == 5
    assert agent.usage.completion_tokens == sum(lengths)
    # As two agents would have answered, each its own.
    alone = both()._turns
    for turn, role in enumerate(("coder", "tester")):
        mine = [o for o, t in zip(observations, turns, strict=True) if t == turn]
        given = [a for a, t in zip(answers, turns, strict=True) if t == turn]
        assert alone[role].act(mine) == given
