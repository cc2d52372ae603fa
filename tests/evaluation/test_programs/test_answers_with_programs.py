"""Answers of which the tests are programs: where the code is, and what becomes a test."""

from __future__ import annotations

import random
import time

import pytest

from codea1_env.evaluation.test_programs.splitting import (
    TestProgramSuite,
    python_blocks,
    read_test_programs,
)
from codea1_env.responses import MAX_ACTION_CHARS, Dropped
from codea1_env.sandbox import Sandbox


def read(text: str, entry_point: str, sandbox: Sandbox) -> TestProgramSuite:
    [suite] = read_test_programs([(text, entry_point)], sandbox)
    return suite


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("assert f(1)", []),
        ("```py\na\n```\n``` Python\nb\n```", ["a\n", "b\n"]),
        ("```{.python}\na\n```\n```bash\nb\n```\n~~~\nc", ["a\n", "c"]),
        ("```bash\na\n```\n```text\nb\n```", ["a\n", "b\n"]),
        ("1. In a list:\n   ```\n   a\n     b\n   ```\n", ["a\n  b\n"]),
        ("```python title='a'\na```", ["a"]),
    ],
)
def test_blocks_marked_as_python_go_first(text, blocks):
    assert python_blocks(text) == blocks


def test_marks_in_a_sentence_open_nothing():
    assert python_blocks("Use ```f(1)``` or `f`, ~~~ not this.\n") == []


def test_drafts_in_the_reasoning_and_what_follows_the_end_are_no_tests(sandbox: Sandbox):
    text = "<think>\n```\nassert f(1) == 3\n```\n</think>\n```\nassert f(1) == 2\n```<|im_end|>\n<|im_start|>user\n```\nassert f(2) == 0\n```"
    assert read(text, "f", sandbox).tests == ("assert f(1) == 2",)


def test_a_suite(sandbox: Sandbox):
    text = (
        "Tests:\n```python\nimport math\nx = [1]\nassert f(x) == math.inf, 'why'\n"
        "for i in x:\n    assert f(i)\nprint('ok')\n```\nand\n```\nassert f(x) == 2\nassert f(\n```"
    )
    suite = read(text, "f", sandbox)
    assert suite.tests == (
        "import math\nx = [1]\nassert f(x) == math.inf, 'why'",
        "x = [1]\nfor i in x:\n    assert f(i)",
        "x = [1]\nassert f(x) == 2",
    )
    assert suite.rest == (
        Dropped("cannot be parsed: '(' was never closed", "assert f(", invalid=True),
        Dropped("no test needs it, and it does not call f", "print('ok')", invalid=False),
    )


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
    suite = read(text, "f", sandbox)
    assert suite.tests == ()
    assert [item.reason for item in suite.rest] == [reason]
    assert not suite.rest[0].invalid


@pytest.mark.parametrize("bad", ["'\0'", "'\ud800'", "(" * 100_000, "exit()"])
def test_hostile_parts_harm_only_themselves(sandbox: Sandbox, bad):
    text = f"assert f(1) == 2\nassert f({bad[:30_000]}) == 1\nassert f(2) == 3\n"
    suite = read(text, "f", sandbox)
    assert {suite.tests[0], suite.tests[-1]} == {"assert f(1) == 2", "assert f(2) == 3"}
    assert len(suite.tests) + len(suite.rest) == 3


def test_a_batch_is_the_same_as_one_by_one(sandbox: Sandbox):
    texts = [
        ("assert f(1) == 2\nassert g(2) == 3", "f"),
        ("", "f"),
        ("(" * 60_000, "g"),
        ("assert g(1) == '\0'", "g"),
        *((f"y = {n}\nassert h(y) == {n}\n" * 200, "h") for n in range(20)),
    ]
    assert read_test_programs(texts, sandbox) == [read(*text, sandbox) for text in texts]
    assert read_test_programs([], sandbox) == []


def test_answers_must_be_text(sandbox: Sandbox):
    with pytest.raises(TypeError, match="answer to be a str, actually: <class 'NoneType'>"):
        read(None, "f", sandbox)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    ["~~~ " * 16_000 + "`", "~" * 65_000 + "`", "`" * 65_000, "``` " * 16_000, "```\n" * 16_000, " " * 65_000 + "~~~`"],
    ids=["tildes in words", "tildes", "backticks", "marks in words", "blocks", "spaces"],
)  # fmt: skip
def test_hostile_fences_cost_little(text):
    started = time.process_time()
    python_blocks(text)
    assert time.process_time() - started < 1


def test_random_texts_never_raise(sandbox: Sandbox):
    rng = random.Random(0)
    parts = ["```", "~~~", "python", "\n", "assert f(1) == 1", "def f():", "\0", "\ud800", " ", "(", '"""', "\r"]  # fmt: skip
    texts = ["".join(rng.choices(parts, k=rng.randrange(30))) for _ in range(300)]
    suites = read_test_programs([(text, "f") for text in texts], sandbox)
    assert any(suite.tests for suite in suites)
