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


A_LIST = "a = [1]\n{}\nassert f(a) == [1]"
NO_TESTS = {
    "text that is printed": 'print("assert f(9) == 18")',
    "quotation": 'I would not write "assert f(9) == 18".',
    "text beside invalid tests": 's = "assert f(9) == 18"\nassert f(3) > 5',
    "text of a match": 'with pytest.raises(AssertionError, match="assert f(9) == 18"):\n    assert f(9) == 19',
    "product in a loop": A_LIST.format("b = a\nwhile f(0):\n    b *= 2"),
    "chosen method": A_LIST.format("list(map((a.append if a else 0), [3]))"),
    "method from a list": A_LIST.format("list(map([a.append][0], [3]))"),
    "method by its name": A_LIST.format("list(map(getattr(a, 'append'), [3]))"),
    "list is another function": A_LIST.format("list = lambda x: x\nb = list(a)\nb.append(2)"),
    "sorted is another function": A_LIST.format("def sorted(x):\n    return x\nb = sorted(a)\nb.append(2)"),
    "count of an own class": A_LIST.format("class L:\n    count = staticmethod(lambda v: v.append(2))\nL.count(a)"),
    "copy of an own class": A_LIST.format("class L:\n    @staticmethod\n    def copy(v):\n        return v\nb = L.copy(a)\nb.append(2)"),
    "get of a namespace": A_LIST.format("L = SimpleNamespace(get=a.append)\nL.get(3)"),
    "hook with two blanks": "a = [1]\ndef  setup_module():\n    a.append(2)\ndef test():\n    assert f(a) == [1]",
    "result of a result": A_LIST.format("b = f(f(a))\nb.append(2)"),
    "comparison that nobody reads": "operator.eq(f(1), 2)",
    "property": "@property\ndef test():\n    assert f(1) == 2",
    "mark by its name": "@getattr(pytest.mark, 'sk' + 'ip')\ndef test():\n    assert f(1) == 2",
    "check of another function": "def check(candidate):\n    assert candidate(1) == 2\ncheck(lambda x: 2)",
}  # fmt: skip


@pytest.mark.parametrize("text", NO_TESTS.values(), ids=NO_TESTS.keys())
def test_what_python_would_not_run_so_is_no_test(text: str) -> None:
    tests, dropped = read(text)
    assert not tests
    assert dropped


def test_invalid_tests_stay_beside_json() -> None:
    tests, dropped = read('assert f(3) > 5\nx = ["assert f(9) == 18"]')
    assert dropped == ["does not say what a call returns"], tests
