"""A test that was read once is read the same when it comes again from the book, whatever texts are in it."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from read_texts import read

from codea1_env.reading.programs import read_programs
from codea1_env.sandbox.inside.analysis.literals import write

PIECES = [
    "</s>", "<s>", "<|im_end|>", "</think>", "<think>", "```", "```python", "[BEGIN]", "[DONE]", "\n", "'", '"', "\\",
    "#", "{", "assert f(1) == 2", '{"assert_statements": ["assert f(1) == 3"]}', "<answer>", "\x00", "\u2028", "> ",
    ">>> f(1)\n2", "!pip", "\\n", "- ", "é", "\ufeff", "",
]  # fmt: skip
TAGS = ["</s>", "<|im_end|>", "<|endoftext|>", "<end_of_turn>", "</think>", "<think>", "</answer>"]


def value(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.randrange(9 if depth < 3 else 5)
    if kind < 3:
        return "".join(rng.choices(PIECES, k=rng.randrange(4)))
    if kind < 5:
        return rng.choice([0, -5, 10**50, 0.5, -0.0, math.inf, 1e300, True, None, b"'\xff", -1j, set()])  # fmt: skip
    inner = [value(rng, depth + 1) for _ in range(rng.randrange(3))]
    return [inner, tuple(inner), {"k": inner}, {1, "a", (2,)}][kind - 5]


def test_canonical_tests_are_read_as_they_are() -> None:
    rng = random.Random(0)
    for _ in range(2_000):
        text = f"f({write(value(rng))}) == {write(value(rng))}"
        assert read(f"assert {text}") == ([text], [])


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("said", ["'a {} b'", '"{}"', "'''\n{}\n'''", '("x", r"{}")[1]'])
def test_a_tag_in_a_string_ends_no_answer(tag: str, said: str) -> None:
    if tag == "</think>" and "\n" in said:
        return  # reasoning holds open quotes too often
    string = said.format(tag)
    expected = f"f({eval(string)!r}) == 1"
    assert read(f"```python\nx = {string}\nassert f(x) == 1\n```\n")[0] == [expected]
    ((code, _),) = read_programs([(f"def f(x):\n    return x == {string}\n", "f", "")])
    assert tag in code
    compile(code, "", "exec")


@pytest.mark.parametrize("tag", ["</s>", "<|im_end|>", "<|endoftext|>", "<end_of_turn>"])
def test_a_tag_elsewhere_ends_it(tag: str) -> None:
    for end in (f" {tag}\nassert f(2) == 3", f" {tag}", f"\n{tag}\nassert f(2) == 3"):
        assert read(f"assert f(1) == '{tag}'{end}")[0] == [f"f(1) == '{tag}'"]


@pytest.mark.parametrize("tag", ["<s>..", "the </s> tag", "<|im_end|> is a token"])
def test_a_tag_in_a_comment_ends_nothing(tag: str) -> None:
    assert read(f"# {tag}\nassert f(1) == 2  # {tag}\nassert f(2) == 3")[0] == [
        "f(1) == 2", "f(2) == 3",
    ]  # fmt: skip
