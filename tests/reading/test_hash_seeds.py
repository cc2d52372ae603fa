"""How often a reference is asked follows from its text."""

from __future__ import annotations

import pytest

from codea1_env.problems import load_problems
from codea1_env.reading.hash_seeds import FEW, MANY, seeds_of

STEADY = [
    "def f(n): return n + 1",
    "def f(n): return sorted(n)[-1] - len(n)",
    "def f(n): return {x: x | 1 for x in n}",
    "def f(n): return [k for k, v in n.items() if v > 1]",
    "import math\nfrom collections import Counter\ndef f(n): return math.fsum(Counter(n).values())",
    "def f(n): return 'set, hash and random' # time",
]
CHANGING = [
    "def f(n): return [x for x in {*n}]",
    "def f(n):\n    for x in {a for a in n}: return x",
    "def f(n): return list(map(set, n))",
    "def f(n): return f'{frozenset(n)}'",
    "def f(n: set[str]): return list(n)",
    "s = set\ndef f(n): return list(s(n))",
    "import builtins\ndef f(n): return list(builtins.set(n))",
    "def f(n): return tuple(n[0].keys() & n[1].keys())",
    "def f(n):\n    a, b = n[0].keys(), n[1].keys()\n    return list(a | b)",
    "def f(n):\n    a = n[0].items()\n    a ^= n[1].items()\n    return list(a)",
    "def f(n):\n    a = n[0].keys()\n    a -= n[1]\n    return list(a)",
    "from functools import reduce\ndef f(n): return list(reduce(int.__or__, map(dict.keys, n)))",
    "def f(n): return hash(n)",
    "def f(n): return id(n)",
    "import random as r\ndef f(n): return r.choice(n)",
    "from random import choice\ndef f(n): return choice(n)",
    "from time import perf_counter\ndef f(n): return perf_counter()",
    "import numpy as np\ndef f(n): return np.random.rand()",
    "import os\ndef f(n): return os.urandom(n)",
    "from uuid import uuid4\ndef f(n): return str(uuid4())",
    "import secrets\ndef f(n): return secrets.token_hex(n)",
    "from datetime import datetime\ndef f(n): return str(datetime.now())",
]


@pytest.mark.parametrize("code", STEADY)
def test_two_hash_seeds(code):
    assert seeds_of([code]) == [FEW]


@pytest.mark.parametrize("code", CHANGING)
def test_four_hash_seeds(code):
    assert seeds_of([code]) == [MANY]


def test_most_references_are_asked_twice():
    found = seeds_of([each.reference for each in load_problems("starter")])
    assert found.count(FEW) > 0.7 * len(found)


def test_texts_that_cannot_be_read_are_asked_under_all_seeds():
    deep = "f = " + "(" * 5000 + ")" * 5000
    texts = ["\0", "x = '\ud800'", "(" * 90, deep, "def f(:"]
    assert seeds_of(texts) == [MANY] * len(texts)
