"""What of an answer never runs or means something else is not read as a test."""

from __future__ import annotations

import pytest
from read_texts import read

TEST = "def test_a():\n    "
ONE = "assert f(1) == 1"
UNREAD = {
    "raise": f"{TEST}raise ValueError\n    {ONE}",
    "return": f"{TEST}return\n    {ONE}",
    "exit": f"import sys\nsys.exit()\n{ONE}",
    "pytest.skip": f"{TEST}pytest.skip('no')\n    {ONE}",
    "skipTest": "class T(TestCase):\n  def test(self):\n    self.skipTest('x')\n    self.assertEqual(f(1), 1)",
    "skip under if": f"{TEST}if True:\n        pytest.skip('no')\n    {ONE}",
    "not raised": "if f(1) == 1:\n    raise AssertionError",
    "inner def": f"{TEST}def f(x): return 5\n    {ONE}",
    "rebound": f"f = lambda x: 5\n{ONE}",
    "rebound to another": f"f = other\n{ONE}",
    "parameter": f"def check(f):\n    {ONE}\ncheck(lambda x: 5)",
    "loop": f"for f in [1]:\n    {ONE}",
    "with": f"with g() as f:\n    {ONE}",
    "within nothing": "assert abs(f(1) - 1) < 0\nassert 0 > abs(f(1) - 1)",
    "changed in an assertion": "x = [1, 2]\nassert x.pop() == 2\nassert f(x) == 1",
    "changed in arguments": "x = [1, 2]\nr = f([x.pop()])\nassert f(x) == 1",
    "bound in an assertion": "y = [5]\nassert f(y := [1]) == 1\nassert f(y) == 1",
}  # fmt: skip


@pytest.mark.parametrize("text", UNREAD.values(), ids=UNREAD.keys())
def test_it_is_not_read(text: str) -> None:
    tests, dropped = read(text)
    assert tests == []
    assert dropped


@pytest.mark.parametrize(
    "text",
    [
        f"def f(x):\n    return x\n{ONE}",
        f"import f\n{ONE}",
        "import solution\nf = solution.f\n" + ONE,
        f"try:\n    {ONE}\nexcept AssertionError:\n    raise",
        f"try:\n    {ONE}\nexcept ValueError:\n    pass",
        f"try:\n    {ONE}\n    print('ok')\nexcept AssertionError:\n    print('failed')",
        "try:\n    r = f(1)\nexcept Exception:\n    r = None\nassert f(1) == 1",
        f"{TEST}if 0:\n        return\n    {ONE}",
        f"@pytest.mark.slow\n{TEST}{ONE}",
        "assert abs(f(1) - 1) <= 0",
        "x = [1]\nassert g(x.copy()) == x\nassert f(x[0]) == 1",
    ],
)
def test_what_is_like_it_is_read(text: str) -> None:
    assert read(text)[0] == ["f(1) == 1"]
