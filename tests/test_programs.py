from __future__ import annotations

import pytest

from codea1_env import code_a1_v0
from codea1_env.problems import Problem, load_problems
from codea1_env.programs import read_program, whole_program
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
        ("import re\ndef f():\n", "from __future__ import annotations", "from __future__ import annotations"),
    ],
)  # fmt: skip
def test_what_the_prompt_gives_above_the_function_is_there(prompt, code, whole):
    assert whole_program(Problem("demo", prompt, "f", "def f(): ..."), code) == whole


def test_references_are_whole_already(shared_data):
    for name in ("humanevalplus", "mbppplus"):
        problems = load_problems(str(shared_data / f"{name}.jsonl.gz"))
        assert [p.task_id for p in problems if whole_program(p, p.reference) != p.reference] == []


def test_answers_get_what_their_prompt_gives():
    program = read_program(GIVEN, "```python\ndef total(xs: List[int]):\n    return 3\n```")
    assert program.code == "from typing import List\n\n\ndef total(xs: List[int]):\n    return 3\n"
    assert read_program(GIVEN, " ").code == ""


def test_in_the_game_a_program_may_use_the_imports_that_it_was_shown():
    env = code_a1_v0.raw_env(problems=[GIVEN])
    env.reset(seed=0)
    env.step("def total(xs: List[int]) -> int:\n    return sum(xs)")
    assert env.observe(TESTER)["code"].startswith("from typing import List\n")
    env.step("assert total([1, 2]) == 3")
    assert env.rewards[CODER] == 1.0
    env.close()
