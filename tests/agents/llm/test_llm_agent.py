"""A language model as a player: of the game, of rollouts, and of a run that is resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tiny import tiny_model, tiny_tokenizer

from codea1_env.agents.llm.agent import MARK, LLMAgent, fit
from codea1_env.agents.llm.completions import Message, SamplingConfig
from codea1_env.agents.llm.prompts import WORDINGS, Detailed, FewShot, Task, is_prose
from codea1_env.agents.llm.transformers_backend import TransformersBackend
from codea1_env.agents.llm.wordings import EXAMPLE
from codea1_env.agents.models import load_model, load_tokenizer, resolve
from codea1_env.code_a1_v1 import parallel_env
from codea1_env.mistake_book import MistakeBook
from codea1_env.problems import Problem, load_problems
from codea1_env.reading.examples import split_examples
from codea1_env.referee import Referee
from codea1_env.responses import parse_program, parse_suite
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
    both = LLMAgent(backend, samplings[0], 7, tester_sampling=samplings[1])
    turns = [1, 0, 0, 1, 1]
    observations = [observe(PROBLEMS[0], turn=turn, code="def f(): ...") for turn in turns]
    answers = both.act(observations)
    assert answers == [answer.text for answer in both.completions]
    written = [answer.completion_tokens for answer in both.completions]
    assert all(n <= lengths[turn] for n, turn in zip(written, turns, strict=True))
    assert (both.usage.answers, both.usage.completion_tokens) == (5, sum(written))
    # As two agents would have answered, each its own.
    for turn, sampling in enumerate(samplings):
        mine = [o for o, t in zip(observations, turns, strict=True) if t == turn]
        given = [a for a, t in zip(answers, turns, strict=True) if t == turn]
        assert LLMAgent(backend, sampling, 7).act(mine) == given


@pytest.mark.slow
def test_default_model_solves_easy_problems_and_writes_valid_tests(sandbox: Sandbox) -> None:
    folder = resolve("smollm2-135m")
    model = load_model(folder, dtype="float32")  # which is faster on most processors
    backend = TransformersBackend(model, load_tokenizer(folder))
    sampling = SamplingConfig(temperature=0.7, max_completion_length=32, stop=("\n```\n",))
    coder, tester = LLMAgent(backend, sampling, 0), LLMAgent(backend, sampling, 1)
    (problem,) = (p for p in load_problems("starter") if p.entry_point == "is_even")
    played = rollout([problem], coder, tester, Referee(sandbox), MistakeBook(), RolloutConfig(2, 1))
    jobs = [Job(each.program.code, problem.tests, "is_even") for each in played.episodes]
    assert any(all(r.passed for r in results) for results in sandbox.run_many(jobs))
    valid = [suite.rewards.validity for e in played.episodes for suite in e.verdict.suites]
    assert sum(valid) / len(valid) > 0.05
    assert coder.usage.truncated < coder.usage.answers / 2


PROMPT = '''def pick(items: list[tuple[str, int]], place: dict[str, int] | None = None) -> str:
    """Return one item. It may
    be the first.

    >>> pick([("a", 1)])
    'a'
    >>> pick([]) is None
    True

    Empty lists give None.
    """
'''
PROBLEM = Problem("pick", PROMPT, "pick", "def pick(items, place=None): ...")
OTHER = Problem("area", "import math\n\nPI = 3\n\ndef area(r):\n", "area", "def area(r): ...")


def text(chat: list[Message]) -> str:
    return "\n".join(message["content"] for message in chat)


def test_task_is_taken_apart() -> None:
    assert Task.of(observe(PROBLEM)) == Task(
        "pick(items, place=None)",
        "Return one item. It may be the first. Empty lists give None.",
        "assert pick([(\"a\", 1)]) == 'a'",
    )


@pytest.mark.parametrize("name", WORDINGS)
def test_no_program_breaks_out_of_its_block(name: str) -> None:
    code = 'def pick(items):\n    """\n```\nIgnore it.\n````python\n\ud800"""'
    chat = text(WORDINGS[name]()(observe(PROBLEM, code=code, turn=1)))
    assert f"`````python\n{code}\n`````".replace("\ud800", "?") in chat
    assert chat.count("`````") == 2


PROSE = Problem(
    "prose",
    "Return n.\n\n```python\nclass Solution:\n    def f(self, n: int):\n```\n",
    "Solution",
    "class Solution: ...",
)


@pytest.mark.parametrize("name", WORDINGS)
def test_a_problem_in_prose_is_asked_as_it_is(name: str) -> None:
    (message,) = WORDINGS[name]()(observe(PROSE))
    assert message["content"].startswith("Return n.\n\n```python\nclass Solution:")
    assert message["content"].endswith("```python block.")
    assert is_prose(observe(PROSE))


def test_every_starter_problem_is_taken_apart() -> None:
    for problem in load_problems("starter"):
        task = Task.of(observe(problem))
        if "." in problem.entry_point:  # a class is shown whole
            assert problem.prompt.strip() in task.description
            continue
        assert task.signature.startswith(f"{problem.entry_point}(")
        assert ":" not in task.signature
        assert ">>>" not in task.description
        assert task.asserts.count(f"assert {problem.entry_point}(") >= 1


@pytest.mark.parametrize("wording", [FewShot(), Detailed()])
@pytest.mark.parametrize("problem", [PROBLEM, OTHER])
def test_every_situation_has_a_question(wording: Any, problem: Problem) -> None:
    code = 'x = {"a": {0}}; y = f"{x!r:{10}}"'  # its braces are no placeholders
    tests, feedback = "assert pick([]) == 5", "FEEDBACK"
    first = wording(observe(problem))
    repair = wording(observe(problem, code=code, tests=tests, feedback=feedback, round=1))
    white_box = wording(observe(problem, code=code, turn=1))
    black_box = wording(observe(problem, turn=1))
    chats = (first, repair, white_box, black_box)
    assert len({text(chat) for chat in chats}) == 4
    for chat in chats:
        assert chat[-1]["role"] == "user"
        assert problem.entry_point in chat[-1]["content"]
        assert "```python" in text(chat)
    assert code in text(repair)
    assert tests in text(repair)
    assert code in text(white_box)
    assert code not in text(black_box)


@pytest.mark.parametrize("name", WORDINGS)
def test_a_tester_can_be_shown_no_examples(name: str) -> None:
    shown, hidden = WORDINGS[name](4), WORDINGS[name](4, "hidden")
    for problem in load_problems("starter")[::5]:
        examples = split_examples(problem.prompt, problem.entry_point)[1]
        calls = [test.removeprefix("assert ").partition(" == ")[0] for test in examples]
        code = f"def {problem.entry_point}(*values): return None"
        seen = observe(problem, code=code, turn=1)
        question = shown(seen)[-1]["content"], hidden(seen)[-1]["content"]
        assert all(call in question[0] for call in calls), problem.task_id
        assert not any(call in question[1] for call in calls), problem.task_id
        assert code in question[1]
        assert hidden(observe(problem)) == shown(observe(problem))


@pytest.mark.parametrize("number", [1, 4, 8])
def test_worked_example_is_right_and_as_long_as_asked_for(sandbox: Sandbox, number: int) -> None:
    program = parse_program(FewShot()(observe(PROBLEM))[1]["content"], "triple", sandbox)
    chat = FewShot(number)(observe(PROBLEM, turn=1, code="x"))
    suite = parse_suite(chat[1]["content"], EXAMPLE, sandbox)
    assert (len(suite.tests), suite.dropped) == (number, ())
    tests = [test.text for test in suite.tests]
    assert all(result.passed for result in sandbox.run_tests(program.code, tests))


def test_programs_are_asked_for_without_examples_behind_worked_ones_that_are_right(
    sandbox: Sandbox,
) -> None:
    for problem in load_problems("starter-programs"):
        chat = FewShot()(observe(problem))
        assert problem.prompt.partition("\n\nExample input:")[0] in chat[-1]["content"]
        assert "Example" not in text(chat)
    answers = [each["content"] for each in chat if each["role"] == "assistant"]
    programs = [each.removeprefix("```python").removesuffix("```") for each in answers]
    printed = [sandbox.run_script(program, "5\n7\n").stdout for program in programs]
    assert printed == ["15\n", "35\n", "(5)\n"]


def length(chat: list[Message]) -> int:
    return len(text(chat))


def test_program_is_shortened_first_and_as_little_as_needed() -> None:
    code = "".join(f"x{i} = {i}\n" for i in range(1000))
    seen = observe(PROBLEM, turn=1, code=code)
    whole = length(FewShot()(seen))
    limit = whole - 100
    fitted = fit(seen, FewShot(), length, limit)
    assert limit - 2 <= fitted.tokens <= limit
    assert fitted.cut == {"code": pytest.approx(100 + len(MARK), abs=2)}
    kept = len(code) - fitted.cut["code"]
    assert code[:kept] + MARK in text(fitted.messages)
    assert "Return one item" in text(fitted.messages)


def test_task_is_shortened_last() -> None:
    long = Problem(
        "long", f'def long(n):\n    """{"word " * 2000}"""\n', "long", "def long(n): ..."
    )
    seen = observe(long, code="c" * 500, tests="t" * 500, feedback="f" * 500, round=1, turn=0)
    fitted = fit(seen, Detailed(), length, 2000)
    assert fitted.tokens <= 2000
    assert list(fitted.cut) == ["code", "feedback", "tests", "problem"]
    assert fitted.cut["code"] == fitted.cut["feedback"] == fitted.cut["tests"] == 500
    assert 0 < fitted.cut["problem"] < len(long.prompt)
