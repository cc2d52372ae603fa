from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from problem_rows import public_set

from codea1_env import code_a1_v1
from codea1_env.evaluation.held_out import HeldOut, pass_rate
from codea1_env.evaluation.program_verdicts import judge_program, run_reference
from codea1_env.mistake_book import MistakeBook
from codea1_env.problems import Problem
from codea1_env.reading.definitions import put_before
from codea1_env.reading.programs import read_programs as programs_in
from codea1_env.referee import Referee, Round
from codea1_env.responses import Program, read_program, whole_program
from codea1_env.rollout import RolloutConfig, rollout
from codea1_env.sandbox import Case, Outcome, Sandbox
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
        ("import re\ndef f():\n", "from __future__ import annotations", "from __future__ import annotations\nimport re\n\n"),
        ("import re\ndef f():\n", "\ufeffdef f(): ...", "import re\n\n\ndef f(): ..."),
    ],
)  # fmt: skip
def test_what_the_prompt_gives_above_the_function_is_there(prompt, code, whole):
    assert whole_program(Problem("demo", prompt, "f", "def f(): ..."), code) == whole


BODY = "def total(xs: List[int]):\n    return sum(xs) if List else 0\n"
FUTURE = "from __future__ import annotations"
HEADS = [
    f"{FUTURE}\n", f'"""Mine."""\n{FUTURE}\n', f'"""Mine.\n\nMore."""\n\n{FUTURE}\n', f"'Mine.'; {FUTURE}\n", f"('Mine. '\n 'More.')\n{FUTURE}\n",
    f"# mine\n# -*- coding: utf-8 -*-\n{FUTURE}\n", f"#!/usr/bin/env python3\n\n\n{FUTURE}  # PEP 563\n", f"{FUTURE}; import math\n",
    f"{FUTURE}, division\n{FUTURE};\n", "from __future__ import (\n    annotations,\n    division,\n)\n", f"x = '{FUTURE}'\n",
    "from  __future__  import \\\n    annotations as a\n", f"\ufeff{FUTURE}\n", f"\f\n{FUTURE}\n", f"# {FUTURE}\n", "\ufeff'Mine.'\n",
    f"r'''Mine.'''\n# {FUTURE}\n{FUTURE}\nx = '''\n{FUTURE}\n'''\n", f"def g():\n    '''{FUTURE}'''\n",
]  # fmt: skip


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("given", ["from typing import List\n", f"'''Given.'''\n{FUTURE}\nfrom typing import List\n"])  # fmt: skip
@pytest.mark.parametrize("head", HEADS)
def test_future_imports_stay_at_the_beginning(head: str, given: str, ends: str) -> None:
    """Whatever is put before a program: what the prompt gives, a preamble, helpers from another block of the answer."""
    code = f"{head}{BODY}".replace("\n", ends)
    answer = f"```python\n{given}```\nand\n```python\n{code}```"
    ((with_helpers, _),) = programs_in([(answer, "total", "")])
    texts = [
        whole_program(GIVEN, code), whole_program(replace(GIVEN, preamble=given), code),
        with_helpers, put_before(given, code), put_before(given, put_before("import re", code)),
    ]  # fmt: skip
    for text in texts:
        names: dict[str, Any] = {}
        exec(compile(text, "program", "exec"), names)
        assert names["total"]([1, 2]) == 3
        assert "List" in names


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
    ["\n" * 60_000, " \t" * 30_000, "#\n" * 30_000 + "from", "from __future__ import a\n" * 2_500, "(" * 60_000, "'" * 60_000,
     "'a' " * 15_000, "(\n" * 30_000, "\\\n" * 30_000, '"""' + "\n" * 60_000, "from __future__ import (" + "a,\n" * 20_000],
)  # fmt: skip
def test_hostile_programs_cost_little(code):
    started = time.process_time()
    whole_program(GIVEN, f"{code}x # __future__")
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


def test_texts_of_derived_classes_are_plain_ones(sandbox: Sandbox) -> None:
    """As `rng.choice(programs)` gives them: at every door where texts come in."""

    class Text(str):
        pass

    code, name = Text("def total(xs):\n    return sum(xs)\n"), Text("total")
    problem = Problem(Text("p"), Text(GIVEN.prompt), name, code, [Text("assert total([1]) == 1")], preamble=Text("import re"))  # fmt: skip
    for program in (code, Program(code), read_program(problem, Text(f"```\n{code}```"), sandbox)):
        round = Round(problem, program, [[Text("assert total([2]) == 2")]], [Text("assert total([3]) == 3")])  # fmt: skip
        (verdict,) = Referee(sandbox).judge([round])
        assert (verdict.code_reward, verdict.load.outcome) == (1.0, Outcome.PASS)
    assert sandbox.call(code, name, [(([1, 2],), {})])[0].value == 3
    outcomes = [
        sandbox.run_cases(code, name, [Case(([1],), {}, 1)])[0], sandbox.run_tests(code, [Text("assert total([1]) == 1")])[0],
        sandbox.run_script(Text("print(input())"), Text("5")), sandbox.run_cases(code, name=name, cases=[Case(([1],), {}, 1)])[0],
        judge_program(problem, code, run_reference(problem, sandbox), sandbox),
    ]  # fmt: skip
    assert [each.outcome for each in outcomes] == [Outcome.PASS] * 5
