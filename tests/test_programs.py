from __future__ import annotations

import time

import pytest
from problem_rows import public_set

from codea1_env import code_a1_v1
from codea1_env.evaluation.held_out import HeldOut, pass_rate
from codea1_env.mistake_book import MistakeBook
from codea1_env.problems import Problem
from codea1_env.referee import Referee
from codea1_env.responses import read_program, whole_program
from codea1_env.rollout import RolloutConfig, rollout
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import CODER, TESTER

GIVEN = Problem(
    "demo/total",
    'from typing import List\n\n\ndef total(xs: List[int]) -> int:\n    """Return the sum."""\n',
    "total",
    "from typing import List\n\n\ndef total(xs: List[int]) -> int:\n    return sum(xs)",
    ("assert total([1, 2]) == 3",),
)


@pytest.mark.parametrize(
    ("prompt", "code", "whole"),
    [
        ("def f():\n", "def f(): ...", "def f(): ..."),
        ("import re\n\ndef f():\n", "def f(): ...", "import re\n\n\ndef f(): ..."),
        ("import re\n\ndef f():\n", "import re\ndef f(): ...", "import re\ndef f(): ..."),
        ("def g(): ...\ndef f():\n", "def f(): ...", "def g(): ...\n\n\ndef f(): ..."),
        ("import re\nclass f:\n", "class f: ...", "import re\n\n\nclass f: ..."),
        ("import re\n# f is wanted", "def f(): ...", "def f(): ..."),
        ("import re\ndef f():\n", " \n", " \n"),
        ("import re\ndef f():\n", "from __future__ import annotations", "from __future__ import annotations\nimport re\n\n\n"),
    ],
)  # fmt: skip
def test_what_the_prompt_gives_above_the_function_is_there(prompt, code, whole):
    assert whole_program(Problem("demo", prompt, "f", "def f(): ..."), code) == whole


@pytest.mark.slow
def test_references_are_whole_already(shared_data):
    for name in ("humanevalplus", "mbppplus"):
        problems = public_set(shared_data / f"{name}.jsonl.gz")
        assert [p.task_id for p in problems if whole_program(p, p.reference) != p.reference] == []


def test_answers_get_what_their_prompt_gives(sandbox: Sandbox):
    program = read_program(
        GIVEN, "```python\ndef total(xs: List[int]):\n    return 3\n```", sandbox
    )
    assert program.code == "from typing import List\n\n\ndef total(xs: List[int]):\n    return 3\n"
    assert read_program(GIVEN, " ", sandbox).code == ""


@pytest.mark.parametrize(
    ("prompt", "given"),
    [
        ("Add them.\nUse these:\nimport math\nfrom math import (e, pi)\ndef f():\n", "import math\nfrom math import (e, pi)"),
        ("import a matrix of numbers\nfrom here on\ndef f():\n", ""),
        ("```python\nimport re\ndef f():\n", "import re"),
        ('"""Helpers.\n\nOf all kinds."""\nFIX: int = 3\n\n@cache\ndef g(\n    x,\n):\n    return x\ndef f():\n', None),
        ("from math import (\n    pi,\n)\nclass A(B):\n    pass\ntable[3] = 1\ndef f():\n", None),
    ],
)  # fmt: skip
def test_of_prose_above_the_function_only_the_imports_are_given(prompt, given):
    given = prompt.removesuffix("\ndef f():\n") if given is None else given
    whole = whole_program(Problem("demo", prompt, "f", "def f(): ..."), "def f(): ...")
    assert whole == (f"{given}\n\n\ndef f(): ..." if given else "def f(): ...")


@pytest.mark.parametrize(
    "code",
    ["\n" * 60_000, " \t" * 30_000, "#\n" * 30_000 + "from", "from __future__ import a\n" * 2_500],
)
def test_hostile_programs_cost_little(code):
    started = time.process_time()
    whole_program(GIVEN, f"{code}x")
    assert time.process_time() - started < 1


def test_a_preamble_stands_before_programs_in_the_game():
    problem = Problem(
        "demo/next",
        "Return the next number.\n\ndef step(n):\n",
        "step",
        "ONE = 1\ndef step(n):\n    return n + ONE",
        ("assert step(0) == 1",),
        preamble="ONE = 1",
    )
    assert whole_program(problem, problem.reference) == problem.reference
    env = code_a1_v1.raw_env(problems=[problem])
    env.reset(seed=0)
    env.step("def step(n):\n    return n + ONE")
    assert env.observe(TESTER)["code"].startswith("ONE = 1\n")
    env.step("assert step(1) == 2")
    assert env.rewards[CODER] == 1.0
    env.close()


class _Writes:
    def __init__(self, text: str) -> None:
        self.text = text

    def act(self, observations):
        return [self.text for _ in observations]


def test_whoever_judges_programs_of_the_game_gives_them_what_the_prompt_gives(sandbox: Sandbox):
    coder = _Writes("def total(xs: List[int]) -> int:\n    return sum(xs)")
    tester = _Writes("assert total([1, 2]) == 3")
    referee = Referee(sandbox)
    config = RolloutConfig(num_generations=1, num_suites=1)
    (episode,) = rollout([GIVEN], coder, tester, referee, MistakeBook(), config).episodes
    assert episode.verdict.code_reward == 1.0
    held = HeldOut(GIVEN, (), (), GIVEN.cases, ())
    assert pass_rate(coder, [held], sandbox, samples=1) == 1.0
