"""What models are told, and how it is made short enough."""

from __future__ import annotations

from typing import Any

import pytest

from codea1_env.agents.llm.agent import MARK, fit
from codea1_env.agents.llm.completions import Message
from codea1_env.agents.llm.prompts import EXAMPLE, WORDINGS, Detailed, FewShot, Task, is_prose
from codea1_env.problems import Problem, load_problems
from codea1_env.reading.examples import split_examples
from codea1_env.responses import parse_program, parse_suite
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import observe

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
