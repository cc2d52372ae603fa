"""Examples of docstrings as tests: they say what doctest says, and nothing else."""

from __future__ import annotations

import pytest

from codea1_env.testgen.docstrings import examples
from codea1_env.testgen.texts import stated_test


def assertion(text: str, offered=()) -> str:
    [found] = examples([f"Do.\n\n{text}"], list(offered))
    parts = (found[name] for name in ("before", "source", "form", "text"))
    return stated_test(*parts).shown


@pytest.mark.parametrize(
    ("example", "shown"),
    [
        (">>> half(4) == 2\nTrue\n", "assert half(4) == 2"),
        (">>> half(4) == 3\nFalse\n", "assert (half(4) == 3) is False"),
        (">>> half(5) or 7\n2\n", "assert (half(5) or 7) == 2"),
        (">>> not half(0)\nTrue\n", "assert (not half(0)) is True"),
        (">>> half(4), half(2)\n(2, 1)\n", "assert (half(4), half(2)) == (2, 1)"),
        (">>> half(4)  # an easy one\n2\n", "assert half(4) == 2"),
        (">>> half(4) + 1\n3\n", "assert half(4) + 1 == 3"),
        (">>> half(1)  # doctest: +ELLIPSIS\nBox(...)\n", None),
        (">>> xs = [4]\n>>> half(xs[0])\n2\n", "xs = [4]\nassert half(xs[0]) == 2"),
        (">>> half('')\nTraceback (most recent call last):\n    ...\na.b.OddError: no\n",
         "with pytest.raises(OddError):\n    half('')"),
        (">>> half(5)\nBox(2)\n", "assert repr(half(5)) == 'Box(2)'"),
        (">>> print(half(2))\nv2\nw\n", "assert str(half(2)) == 'v2\\nw'"),
        (">>> print(half(2)[0],)\n v\n", "assert str(half(2)[0]) == ' v'"),
        (">>> print(half(1), half(2))\n1 2\n", None),
        (">>> print(*half(1))\n1 2\n", None),
        (">>> print(half(1), end='')\n1\n", None),
        (">>> print(half(1))\na\n<BLANKLINE>\nb\n", None),
        (">>> pprint.pprint(half(1))\n1\n", None),
    ],
)  # fmt: skip
def test_what_an_example_says(example, shown):
    if shown is None:
        assert examples([f"Do.\n\n{example}"], []) == []
    else:
        assert assertion(example) == shown


def test_what_the_test_has_anyway_is_not_imported():
    text = ">>> from pack.stats import half\n>>> half(4)\n2\n"
    assert assertion(text, ["half"]) == "assert half(4) == 2"
    assert assertion(text) == "from pack.stats import half\nassert half(4) == 2"
    text = ">>> from math import pi\n>>> half(pi)\n1\n"
    assert assertion(text, ["pi"]) == "from math import pi\nassert half(pi) == 1"
    [found] = examples([">>> n = one()\n>>> half(n)\n1\n"], [])
    assert found["loads"] == ["half", "one"]
