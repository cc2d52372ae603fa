"""The parts of data/golden that take seconds; `python tests/golden.py --check` compares all of them."""

from __future__ import annotations

import pytest
from golden import differences, made, read


@pytest.mark.parametrize("part", ["answers", "quick"])
def test_behaviour_is_as_before(part: str):
    assert differences(read(part), made(part)) == []


def test_differences_name_their_rows():
    golden = {"a": {"x": 1, "y": 2}, "b": 1, "c": [1]}
    assert differences(golden, golden) == []
    assert differences(golden, {"a": {"x": 1, "y": 3}, "b": 1, "d": 0}) == [
        "a: {'y': 2} -> {'y': 3}",
        "c: [1] -> no such row",
        "d: no such row -> 0",
    ]
