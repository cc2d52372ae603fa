"""Answers of models: where the code is, what becomes a program, what becomes tests."""

from __future__ import annotations

import random
import string
import time

import pytest

from codea1_env.responses import (
    MAX_ACTION_CHARS,
    Block,
    Dropped,
    Program,
    Suite,
    code_blocks,
    nonprintable_ratio,
    parse_program,
    parse_suite,
    parse_suites,
)
from codea1_env.sandbox import Sandbox

ADD = "def add(a, b):\n    return a + b\n"


@pytest.mark.parametrize(
    "text",
    [
        f"```python\n{ADD}```",
        f"```\n{ADD}```",
        f"```py\n{ADD}```\n",
        f"``` Python\n{ADD}```",
        f"```python title='a'\n{ADD}```",
        f"~~~python\n{ADD}~~~",
        f"````\n{ADD}````",
        f"```python\n{ADD}",
        f"Sure! Here it is:\n\n```python\n{ADD}```\n\nIt adds.",
        f"The code: ```python\n{ADD}```",
        f"1. In a list:\n   ```python\n   {ADD.replace(chr(10), chr(10) + '   ').strip()}\n   ```\n",
        f"```bash\npip install add\n```\n```python\n{ADD}```\n```text\n3\n```",
        ADD,
        f"```{{.python}}\n{ADD}```",
        f"```python\n{ADD.rstrip()}```",
    ],
)
def test_the_program_is_found(text):
    assert parse_program(text).code.rstrip() == ADD.rstrip()
    assert parse_program(text).problem is None


def test_code_is_taken_byte_for_byte():
    code = "def f():\r\n\treturn 'é\\n'  \r\n\r\n"
    assert parse_program(f"```python\r\n{code}```\r\n").code == code
    assert parse_program(code).code == code


@pytest.mark.parametrize("closing", ["```", "``````", "   ```   "])
def test_a_fence_closes_with_at_least_as_many_marks(closing):
    assert code_blocks(f"```\na\n``\n~~~\n{closing}\nb") == [Block("a\n``\n~~~\n", "")]
    assert code_blocks(f"````\na\n```\n`{closing.strip()}\nb") == [Block("a\n```\n", "")]


def test_marks_in_a_sentence_open_nothing():
    assert code_blocks("Use ```f(1)``` or `f`, ~~~ not this.\n") == []


def test_of_several_programs_the_last_real_one_counts():
    first, second = "def f():\n    return 1\n", "def f():\n    return 2\n"
    usage, tests = "print(f())\n", "def test_f():\n    assert f() == 2\n"
    blocks = "".join(f"```python\n{code}```\n" for code in (first, second, usage, tests))
    assert parse_program(blocks).code == second
    assert parse_program(f"```\n{usage}```\n```\n1\n```").code == "1\n"


def test_the_block_with_the_entry_point_goes_first():
    blocks = f"```python\n{ADD}```\n```python\ndef main():\n    print(add(1, 2))\n```"
    assert parse_program(blocks).code.startswith("def main")
    assert parse_program(blocks, "add").code == ADD
    assert (
        parse_program("```\nadd = max\n```\n```\nclass Add: pass\n```", "add").code == "add = max\n"
    )
    assert parse_program(f"```\n{ADD}```", "f").code == ADD


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("```python\n\n```", "empty"),
        ("x" * (MAX_ACTION_CHARS + 1), "too long: 65537 characters, of at most 65536"),
        ("x" * 10_000_000, "too long"),
        ("x = '\0'", "null byte"),
        ("```python\nx = '\ud800'\n```", r"lone surrogate \(U\+D800\)"),
    ],
)
def test_answers_without_a_program_are_explained(text, problem):
    with pytest.raises(AssertionError, match=problem):
        raise AssertionError(parse_program(text).problem)


def test_null_bytes_around_the_code_do_no_harm():
    assert parse_program(f"\0\n```python\n{ADD}```\n\ud800") == Program(ADD)


def test_a_suite(sandbox: Sandbox):
    text = (
        "Tests:\n```python\nimport math\nx = [1]\nassert f(x) == math.inf, 'why'\n"
        "for i in x:\n    assert f(i)\nprint('ok')\n```\nand\n```\nassert f(x) == 2\nassert f(\n```"
    )
    suite = parse_suite(text, "f", sandbox)
    assert suite.tests == (
        "import math\nx = [1]\nassert f(x) == math.inf, 'why'",
        "x = [1]\nfor i in x:\n    assert f(i)",
        "x = [1]\nassert f(x) == 2",
    )
    assert suite.dropped == (
        Dropped("cannot be parsed: '(' was never closed", "assert f(", invalid=True),
        Dropped("no test needs it, and it does not call f", "print('ok')", invalid=False),
    )
    assert suite.nonprintable_ratio == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the answer is empty"),
        ("```python\n```", "the answer holds no test"),
        (
            "x" * (MAX_ACTION_CHARS + 1),
            "the answer is too long: 65537 characters, of at most 65536",
        ),
        ("I cannot do that.", "cannot be parsed: invalid syntax"),
    ],
)
def test_answers_without_tests_are_explained(sandbox: Sandbox, text, reason):
    suite = parse_suite(text, "f", sandbox)
    assert suite.tests == ()
    assert [item.reason for item in suite.dropped] == [reason]
    assert not suite.dropped[0].invalid


@pytest.mark.parametrize("bad", ["'\0'", "'\ud800'", "(" * 100_000, "exit()"])
def test_hostile_parts_harm_only_themselves(sandbox: Sandbox, bad):
    text = f"assert f(1) == 2\nassert f({bad[:30_000]}) == 1\nassert f(2) == 3\n"
    suite = parse_suite(text, "f", sandbox)
    assert {suite.tests[0], suite.tests[-1]} == {"assert f(1) == 2", "assert f(2) == 3"}
    assert len(suite.tests) + len(suite.dropped) == 3


def test_a_batch_is_the_same_as_one_by_one(sandbox: Sandbox):
    texts = [
        ("assert f(1) == 2\nassert g(2) == 3", "f"),
        ("", "f"),
        ("(" * 60_000, "g"),
        ("assert g(1) == '\0'", "g"),
        *((f"y = {n}\nassert h(y) == {n}\n" * 200, "h") for n in range(20)),
    ]
    assert parse_suites(texts, sandbox) == [parse_suite(*text, sandbox) for text in texts]
    assert parse_suites([], sandbox) == []


def test_nonprintable_ratio_is_of_the_whole_answer(sandbox: Sandbox):
    assert nonprintable_ratio("") == 0
    assert nonprintable_ratio(string.printable) == 0
    assert nonprintable_ratio("ab\0é") == 0.5
    assert parse_suite("é: ```f(1)```", "f", sandbox).nonprintable_ratio == 1 / 13
    assert parse_suite("é" * 70_000, "f", sandbox).nonprintable_ratio == 1


def test_answers_must_be_text(sandbox: Sandbox):
    with pytest.raises(TypeError, match=r"answer to be a str, actually: <class 'bytes'>"):
        parse_program(b"x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="answer to be a str"):
        parse_suite(None, "f", sandbox)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    ["~~~ " * 16_000 + "`", "~" * 65_000 + "`", "`" * 65_000, "``` " * 16_000, "```\n" * 16_000, " " * 65_000 + "~~~`"],
    ids=["tildes in words", "tildes", "backticks", "marks in words", "blocks", "spaces"],
)  # fmt: skip
def test_hostile_fences_cost_little(text):
    started = time.process_time()
    code_blocks(text)
    assert time.process_time() - started < 1


def test_random_texts_never_raise(sandbox: Sandbox):
    rng = random.Random(0)
    parts = [
        "```",
        "~~~",
        "python",
        "\n",
        "assert f(1) == 1",
        "def f():",
        "\0",
        "\ud800",
        " ",
        "(",
        '"""',
        "\r",
    ]
    texts = ["".join(rng.choices(parts, k=rng.randrange(30))) for _ in range(300)]
    for text in texts:
        assert isinstance(parse_program(text), Program)
    suites = parse_suites([(text, "f") for text in texts], sandbox)
    assert all(isinstance(suite, Suite) for suite in suites)
    assert any(suite.tests for suite in suites)
