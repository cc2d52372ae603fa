"""Forms in which tests are written."""

from __future__ import annotations

import pytest
from read_texts import read

FORMS = {
    "enumerate from 1": "for i, (n, e) in enumerate([(2, 4), (3, 9)], 1):\n    assert f(n) == e, i",
    "check of a candidate": "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(3) == 9\ncheck(f)",
    "code in JSON": '{"code": "assert f(2) == 4\\nassert f(3) == 9"}',
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
        "def check(n, e):\n    assert f(n) == e\ncheck(1, 2)",
        "def same(a, b):\n    assert a == b\nsame(f(2), 4)",
        "def test(fn):\n    assert fn(2) == 4\ntest(f)",
        "class T(TestCase):\n  def check(self, n, e): self.assertEqual(f(n), e)\n  def test(self): self.check(2, 4)",
        "class T(TestCase):\n  def setUp(self): self.n = 2\n  def test(self): self.assertEqual(f(self.n), 4)",
        "@pytest.fixture\ndef n():\n    return 2\ndef test(n):\n    assert f(n) == 4",
        "n = 2\ndef test(n):\n    assert f(n) == 4",
        "assert not any(f(n) for n in [1])",
        "if f(1) != 1:\n    raise AssertionError('no')",
        "if not f(1) == 1:\n    pytest.fail('no')",
        "> assert f(2) == 4",
        "1 | assert f(2) == 4\n2 | assert f(3) == 9",
        "assert f(2) == 4\\nassert f(3) == 9",
        "<pre>assert f(2) == 4</pre>",
        "+assert f(2) == 4\n-assert f(2) == 5",
        "def assert_equal(a, b):\n    assert a != b\nassert_equal(f(1), 2)",
        "def change(x):\n    x.append(1)\nx = [1]\nchange(x)\nassert f(x) == 1",
        ">>> print(f(2))\n4",
    ],
)
def test_what_says_nothing_is_explained(text: str) -> None:
    tests, dropped = read(text)
    assert tests == []
    assert dropped
