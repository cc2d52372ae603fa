"""Forms in which tests are written."""

from __future__ import annotations

import pytest
from read_texts import read

FORMS = {
    "enumerate from 1": "for i, (n, e) in enumerate([(2, 4), (3, 9)], 1):\n    assert f(n) == e, i",
    "helper": "def check(n, expected):\n    assert f(n) == expected\ncheck(2, 4)\ncheck(3, expected=9)",
    "helper with a result": "def check(n, e=4):\n    r = f(n)\n    assert r == e, f'{n}'\ncheck(2)\ncheck(3, 9)",
    "helper in a loop": "def check(n, e):\n    assert f(n) == e\nfor n, e in [(2, 4), (3, 9)]:\n    check(n, e)",
    "helper with a star": "def check(n, e):\n    assert f(n) == e\nfor case in [(2, 4), (3, 9)]:\n    check(*case)",
    "helper of results": "def same(a, b):\n    assert a == b\nsame(f(2), 4)\nsame(f(3), 9)",
    "function given": "def test(fn):\n    assert fn(2) == 4\n    assert fn(3) == 9\ntest(f)",
    "list of texts": '["assert f(2) == 4", "assert f(3) == 9"]',
    "texts under a key": '```json\n{"tests": ["assert f(2) == 4", "assert f(3) == 9"]}\n```',
    "examples": ">>> f(2)\n4\n>>> f(3)\n9\n",
    "examples in a fence": "Tests:\n```python\n>>> n = 2\n>>> f(n)\n4\n\n>>> f(3)\n9\n```",
}  # fmt: skip


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS.keys())
def test_it_is_read(text: str) -> None:
    assert read(text) == (["f(2) == 4", "f(3) == 9"], [])


@pytest.mark.parametrize(
    "text",
    [
        "def check(n, e):\n    assert f(n) == e\n",
        "def check(n, e):\n    assert f(n) == e\ncheck(g(), 1)",
        "def check(n, e):\n    assert f(n) == e\ncheck(1)",
        "def check(n):\n    check(n)\n    assert f(1) == 1 + g(n)\ncheck(1)",
        "def assert_equal(a, b):\n    assert a != b\nassert_equal(f(1), 2)",
        "def change(x):\n    x.append(1)\nx = [1]\nchange(x)\nassert f(x) == 1",
        ">>> print(f(2))\n4",
    ],
)
def test_what_says_nothing_is_explained(text: str) -> None:
    tests, dropped = read(text)
    assert tests == []
    assert dropped
