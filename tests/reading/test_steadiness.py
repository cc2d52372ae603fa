"""What is known of a program from its text: whether a second run could return something else."""

from __future__ import annotations

import pytest

from codea1_env.problems import load_problems
from codea1_env.reading.steadiness import look_at

STEADY = [
    "def f(n): return n + 1",
    "import math\nfrom collections import Counter\ndef f(n: int, k=math.inf) -> list: return Counter(n).most_common(2)",
    "VOWELS = 'aeiou'\nTABLE = (('a', 1), ('b', -2))\ndef f(n): return [x for x in n if x in VOWELS]",
    "class Solution:\n    'Text.'\n    k = 3\n    @staticmethod\n    def h(n): return n\n    def g(self, n): return self.h(n) + self.k\n"
    "def f(n): return Solution().g(n)",
    "def f(n):\n    k = 0\n    def g():\n        nonlocal k\n        k += 1\n        return k\n    return g() + g()",
    "def f(n): return sorted(n.items()), [k for k in n.keys()], 1 in n.keys(), [*n.items()]",
    "def f(n): return [x is None or type(x) == int for x in n]",
    "import re\ndef f(n): return re.compile('a').sub('', n)",
    "def f(n): return n\nif __name__ == '__main__':\n    import sys\n    print(f(input()))",
]
NOT_FREE = [
    "def f(n): return hash(n)",
    "h = hash\ndef f(n): return h(n)",
    "def f(n): return [*map(hash, n)]",
    "def g(hash): return hash\ndef f(n): return hash(n)",
    "def f(n): return __builtins__['hash'](n)",
    "from builtins import hash as h\ndef f(n): return h(n)",
    "import operator\ndef f(n): return operator.methodcaller('__hash__')(n)",
    "import string\ndef f(n): return string.Formatter().get_field('0.__hash__', (n,), {})[0]()",
    "def f(n): return (x for x in n).gi_frame.f_builtins['hash'](n)",
    "def f(n, k=[]):\n    k.append(n)\n    return len(k)",
    "def f(n, *, k=dict()):\n    k[n] = 1\n    return len(k)",
    "def f(n, g=lambda x, k=[]: k.append(x) or len(k)): return g(n)",
    "def f(n: (k := [])):\n    k.append(n)\n    return len(k)",
    "k = []\ndef f(n):\n    k.append(n)\n    return len(k)",
    "k: list = [0]\ndef f(n):\n    k[0] += 1\n    return k",
    "(k := [])\ndef f(n):\n    k.append(n)\n    return len(k)",
    "k = ([],)\ndef f(n):\n    k[0].append(n)\n    return len(k[0])",
    "for k in [[]]: pass\ndef f(n):\n    k.append(n)\n    return len(k)",
    "k = 0\ndef f(n):\n    global k\n    k += 1\n    return k",
    "def f(n):\n    f.k = n\n    return f.k",
    "class A: pass\ndef f(n):\n    A.k = n\n    return A.k",
    "class A:\n    @classmethod\n    def g(self, n): self.k = n\ndef f(n): A.g(n)",
    "class A:\n    def g(self, n): self.k = n\ndef f(n): A.g(f, n)",
    "class A:\n    seen = []\n    def g(self, n):\n        self.seen.append(n)\n        return len(self.seen)\n"
    "def f(n): return A().g(n)",
    "def f(n):\n    match f:\n        case self: self.k = n",
    "import random\ndef f(n): return random.random()",
    "import collections\ndef f(n): return collections._sys.modules",
    "import textwrap\ndef f(n): return textwrap.TextWrapper.unicode_whitespace_trans",
    "def f(n):\n    import time\n    return time.time()",
    "from functools import cache\n@cache\ndef f(n): return [n]",
    "import functools\n@functools.lru_cache\ndef f(n): return [n]",
    "def f(n): return n is 1",
    "def f(n): return n is n is None",
    "def f(n): return id(n)",
    "def f(n): return f.__code__",
    "def f(n): return getattr(n, 'x')",
    "def make():\n    k = [0]\n    def f(n):\n        k[0] += 1\n        return k[0]\n    return f\nf = make()",
    "g = iter([1, 2, 3])\ndef f(n): return next(g)",
    "g = (x for x in (1, 2, 3))\ndef f(n): return next(g)",
    "def f(n): return open('/dev/urandom').read(n)",
    "from math import *\ndef f(n): return n",
    "import random as math\ndef f(n): return math.random()",
    "k = []\ndef f(n):\n    k.append(n)\nif __name__ != '__main__': pass",
    "a, *k = (1, 2)\ndef f(n):\n    k.append(n)\n    return len(k)",
    "def staticmethod(g):\n    k = []\n    return lambda n: k.append(n) or len(k)\n@staticmethod\ndef f(n): return n",
    "def f(n):\n    try: n()\n    except TypeError as e: return e.__traceback__.tb_frame.f_builtins['id'](n)",
    "import math\ndef f(n):\n    math.n = n\n    return n",
    "import math\ndef f(n):\n    math.pi += 1\n    return math.pi",
    "import math\ndef f(n):\n    for math.n in [n]: return n",
    "import math\ndef f(n):\n    del math.sqrt\n    return n",
    "def f(n) return n",
]
PRINTS_AN_ADDRESS = [
    "def f(n): return str(lambda: 0)",
    "def f(n): return repr(f)",
    "def f(n): return f'{f}'",
    "def f(n): return f'{n!r} {(f, n)}'",
    "def f(n): return '%s' % f",
    "def f(n):\n    n %= (f,)\n    return n",
    "def f(n): return n % f",
    "def f(n): return '{}'.format(f)",
    "def f(n): return '{g}'.format_map({'g': f})",
    "def f(n): return format(f)",
    "def f(n): return print(f)",
    "def f(n): return list(map(str, [f]))",
    "def f(n):\n    s = str\n    return s(f)",
    "from operator import mod as m\ndef f(n): return m('%s', f)",
    "def f(n):\n    try: return [].index(f)\n    except ValueError as e: return e.args[0]",
    "def f(n):\n    g = lambda: 0\n    return str(g)",
    "def f(n):\n    def g(): return g\n    return str(g())",
    "def f(n):\n    def h(g): return str(g)\n    return h(f)",
    "def f(n):\n    def h(key): return str(key)\n    return h(key=lambda: 0)",
    "def map(g, n): return str(g)\ndef f(n): return map(f, n)",
    "from collections import defaultdict\ndef f(n): return str(defaultdict(lambda: 0))",
    "class A: pass\ndef f(n): return str(A())",
    "class A:\n    def g(self): return f'{self}'\ndef f(n): return A().g()",
    "def f(n): return type(n)('A', (), {})()",
    "def g(t): return t('A', (), {})() == 1\ndef f(n): return g(type) == 1",
    "def f(n): return int.mro()[1]()",
    "def f(n): return str(n.append)",
    "def f(n): return str(''.join)",
    "def f(n): return str(x for x in n)",
    "def f(n): return str(sum([], (x for x in n)))",
    "def f(n): return str(next(iter(n), (x for x in n)))",
    "def g(n): yield n\ndef f(n): return str(g(n))",
    "def f(n): return str(map(int, n))",
    "def f(n): return str(list(map(iter, [n])))",
    "def f(n): return str([zip(n) for x in n])",
    "def f(n):\n    a = b = reversed(n)\n    return str(a)",
    "import itertools\ndef f(n): return str(itertools.chain.from_iterable(n))",
    "from itertools import chain as c\ndef f(n): return str(c(n))",
    "from itertools import groupby\ndef f(n): return [str(g) for k, g in groupby(n)]",
    "import re\ndef f(n): return str(re.finditer('a', n))",
    "import re\ndef f(n): return str(re.compile)",
    "from re import compile\ndef f(n): return str(compile)",
    "from collections import Counter\ndef f(n): return str(Counter(n).elements())",
]
PRINTS_DATA = [
    "def f(n): return f'{n} {len(n):>3}' + str(n) + '%d' % n + '{}'.format(n)",
    "def f(n: str) -> str:\n    a = [*map(int, n.split())]\n    return ', '.join(str(x) for x in a)",
    "def f(n): return str(sorted(n, key=lambda x: x[0])) + repr(f(n[1:])) + str([*map(lambda x: -x, n)])",
    "def f(n):\n    for i, (a, b) in enumerate(zip(n, n[1:])): print(i, a, b)\n    return n.count(str(i))",
    "def f(n):\n    def g(x): return x + 1\n    return sum(g(x) % g(y) for x in n for y in n)",
    "from math import ceil\ndef f(n): return str(ceil(max(n))) if isinstance(n, str) else f'{max(n, key=len)}'",
]
WITH_SETS = [
    "def f(n): return list(set(n))",
    "def f(n): return [x for x in {*n}]",
    "def f(n):\n    for x in {a for a in n}: return x",
    "def f(n): return f'{frozenset(n)}'",
    "def f(n): return sum({0.1, 0.2, 0.3, n})",
    "s = set\ndef f(n): return list(s(n))",
    "def f(n): return list(map(set, n))",
    "from typing import Set as S\ndef f(n): return list(S(n))",
    "import typing\ndef f(n): return list(typing.Set(n))",
    "def f(n: set): return list(n)",
    "def f(n): return tuple(n[0].keys() & n[1].keys())",
    "def f(n):\n    a, b = n[0].keys(), n[1].keys()\n    return list(a & b)",
    "def f(n):\n    a = n[0].keys()\n    a -= n[1]\n    return list(a)",
    "from operator import or_\ndef f(n): return list(or_(n[0].items(), n[1].items()))",
    "from operator import or_\nfrom functools import reduce\ndef f(n): return list(reduce(or_, map(dict.keys, n)))",
    "def sorted(n): return n | n\ndef f(n): return [*sorted(n.keys())]",
]


@pytest.mark.parametrize("code", STEADY + PRINTS_DATA)
def test_steady(code):
    assert look_at([(code, "f")]) == [(True, True)]


@pytest.mark.parametrize("code", NOT_FREE + PRINTS_AN_ADDRESS)
def test_state_time_chance_and_identity(code):
    assert look_at([(code, "f")])[0][0] is False


@pytest.mark.parametrize("code", WITH_SETS)
def test_sets_may_show_their_order(code):
    assert look_at([(code, "f")])[0][1] is False


def test_most_references_are_steady():
    found = look_at([(each.reference, each.entry_point) for each in load_problems("starter")])
    assert sum(free and orderless for free, orderless in found) > 0.8 * len(found)


def test_texts_that_are_no_programs_are_not_steady():
    deep = "f = " + "(" * 5000 + ")" * 5000
    for text in ("\0", "x = '\ud800'", "(" * 90, deep, "def f(:"):
        assert look_at([(text, "f")]) == [(False, False)]
