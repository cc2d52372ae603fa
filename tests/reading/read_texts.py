"""Reads an answer about a function `f(x)`."""

from __future__ import annotations

import json

from codea1_env.reading.suites import read_suites

SIGNATURE = '{"parameters": [["x", "", null, "any"]]}'


def read(text: str) -> tuple[list[str], list[str]]:
    """Calls and the values predicted, and the reasons of what was dropped."""
    ((tests, dropped),) = json.loads(read_suites([("f", SIGNATURE, [text])]))
    return [f"f({test[2]}) == {test[4]}" for test in tests], [row[1] for row in dropped]
