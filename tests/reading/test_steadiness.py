"""What is known of a program from its text: whether a second run could return something else."""

from __future__ import annotations

import ast

import pytest

from codea1_env.problems import load_problems
from codea1_env.reading.steadiness import look_at
from codea1_env.reading.turned import turned

STEADY = [
    "def f(n): return n + 1",
    "import math\nfrom collections import Counter\ndef f(n: set[int]) -> frozenset: return Counter(n).most_common(2)",
    "def f(n):\n    seen: set[str] = set()\n    for x in n:\n        if x in seen: return x\n        seen.add(x)",
    "VOWELS = set('aeiou')\nTABLE = {'a': 1}\ndef f(n): return [TABLE[x] for x in n if x in VOWELS]",
    "def f(n): return sorted(set(n) | {1}), len({*n}), max(set(n)), set(n) == {1}",
    "def f(n): return set(n) & {1, 2}",
    "class Solution:\n    def g(self, n):\n        self.k = n\n        return self.k\ndef f(n): return Solution().g(n)",
    "def f(n):\n    def g(k, memo={}):\n        memo[k] = 1\n        return memo\n    return g(n)",
    "def f(n): return max(n.items(), key=lambda kv: kv[1])",
    "def f(n): return [type(x) is None or type(x) == int for x in n]",
    "import re\ndef f(n): return re.compile('a').sub('', n)",
]
NOT_FREE = [
    "def f(n): return hash(n)",
    "def f(n, k=[]):\n    k.append(n)\n    return len(k)",
    "k = []\ndef f(n):\n    k.append(n)\n    return len(k)",
    "k = {'a': 1}\ndef f(n):\n    k[n] = 1\n    return k",
    "k = [1]\ndef f(n): return k",
    "k = 0\ndef f(n):\n    global k\n    k += 1\n    return k",
    "def f(n):\n    f.k = n\n    return f.k",
    "class A:\n    seen = []\n    def g(self, n):\n        self.seen.append(n)\n        return len(self.seen)\n"
    "def f(n): return A().g(n)",
    "import random\ndef f(n): return random.random()",
    "def f(n):\n    import time\n    return time.time()",
    "from functools import cache\n@cache\ndef f(n): return [n]",
    "import functools\n@functools.lru_cache\ndef f(n): return [n]",
    "def f(n): return n is 1000",
    "def f(n): return id(n)",
    "def f(n): return f.__code__",
    "def f(n): return getattr(n, 'x')",
    "def make():\n    k = [0]\n    def f(n):\n        k[0] += 1\n        return k[0]\n    return f\nf = make()",
    "g = iter([1, 2, 3])\ndef f(n): return next(g)",
    "def f(n): return open('/dev/urandom').read(n)",
    "def sorted(n): return n\ndef f(n): return sorted({*n})",
    "from math import *\ndef f(n): return n",
    "def f(n) return n",
]
ORDERED = [
    "def f(n): return list(set(n))",
    "def f(n): return [x for x in {*n}]",
    "def f(n):\n    for x in {a for a in n}: return x",
    "def f(n): return set(n).pop()",
    "def f(n): return sorted(set(n), key=len)",
    "def f(n): return str({*n})",
    "def f(n): return list(map(set, n))",
    "def g(n): return n[0]\ndef f(n): return g([*set(n)])",
    "def g(n): return set(n)\ndef f(n): return list(g(n))",
    "def f(n):\n    s = set(n)\n    t = s\n    return [x for x in t]",
    "def f(n): return tuple(n[0].keys() & n[1].keys())",
    "def f(n):\n    a, b = n[0].keys(), n[1].keys()\n    return list(a & b)",
    "def f(n): return ','.join({*n})",
    "def f(n): return sum(n[x] for x in {*n})",
    "def f(n): return {x: 1 for x in set(n)}",
    "def f(n): return [set(n)]",
    "from collections import Counter\ndef f(n): return Counter({*n}).most_common(1)",
]


@pytest.mark.parametrize("code", STEADY)
def test_steady(code):
    assert look_at([(code, "f")]) == [(True, True)]


@pytest.mark.parametrize("code", NOT_FREE)
def test_state_time_chance_and_identity(code):
    assert look_at([(code, "f")])[0][0] is False


@pytest.mark.parametrize("code", ORDERED)
def test_orders_of_sets(code):
    assert look_at([(code, "f")])[0] == (True, False)


def test_most_references_are_steady():
    found = look_at([(each.reference, each.entry_point) for each in load_problems("starter")])
    assert sum(free and orderless for free, orderless in found) > 0.9 * len(found)


def test_texts_that_are_no_programs_are_not_steady():
    deep = "f = " + "(" * 5000 + ")" * 5000
    for text in ("\0", "x = '\ud800'", "(" * 90, deep, "def f(:"):
        assert look_at([(text, "f")]) == [(False, False)]


def test_a_turned_program_is_the_same_program():
    """But for the order of its sets: on all golden tests of the starter set."""
    for problem in load_problems("starter"):
        [text] = turned([(problem.reference, problem.entry_point)])
        names: dict[str, object] = {}
        exec(text, names)
        for test in problem.tests:
            exec(test, names)


def test_what_cannot_be_turned_is_left():
    assert turned([("f = len", "f"), ("def f(: x", "f"), ("class A: pass", "A.f")]) == [""] * 3
    future = '"doc"\nfrom __future__ import annotations\ndef f(n): return n\n'
    second = ast.parse(turned([(future, "f")])[0]).body[1]
    assert isinstance(second, ast.ImportFrom)
    assert second.module == "__future__"
