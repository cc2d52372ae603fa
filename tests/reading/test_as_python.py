"""A test is read as Python runs it, or it is not read: texts are executed, and what their assertions saw is compared."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import math
import random
import unittest
import unittest.mock
from typing import Any

import pytest
from read_texts import read
from recorder import Result, recording


def seen_by_python(text: str) -> list[str]:
    """What the assertions of a text compare, where it is imported and its tests run one after the other as pytest does."""
    saw: list[str] = []

    def tried(function: Any, **given: Any) -> None:
        if not inspect.isgeneratorfunction(function):
            with contextlib.suppress(BaseException):  # what stands behind it does not run
                function(**given)

    names: dict[str, Any] = {"pytest": pytest, "unittest": unittest, "math": math}
    names["f"] = recording(saw)
    with unittest.mock.patch.dict(vars(math)):  # which some texts change
        tried(lambda: exec(text, names))
        for name, found in list(names.items()):
            if name.startswith("test") and inspect.isfunction(found):
                for row in rows(found):
                    tried(found, **row)
            elif inspect.isclass(found) and name.startswith("T"):
                for test in [each for each in vars(found) if each.startswith("test")]:
                    it = found(test) if issubclass(found, unittest.TestCase) else found()
                    getattr(it, "setUp", lambda: None)()
                    tried(getattr(it, test))
    return saw


def rows(function: Any) -> list[dict[str, Any]]:
    tables = []
    for mark in getattr(function, "pytestmark", ()):
        columns = [each.strip() for each in mark.args[0].split(",")]
        cells = [each if len(columns) > 1 else (each,) for each in mark.args[1]]
        tables.append([dict(zip(columns, each, strict=True)) for each in cells])
    return [{k: v for part in each for k, v in part.items()} for each in itertools.product(*tables)]


# Changed where Python changes them: what is read must be among what Python saw, and nothing else is asked.
CHANGED = r"""
rows = [[1], [2]]; [r.append(10) for r in rows]; assert f(rows) == 23
rows = [[1], [2]]\nfor r in rows:\n    r.append(10)\nassert f(rows) == 23
rows = [[1], [2]]; rows[0].append(10); assert f(rows) == 13
row = [1]; rows = [row, row]; row.append(10); assert f(rows) == 22
row = [1]; rows = [row] * 2; rows[0].append(10); assert f(rows) == 22
rows = [[3]] * 2; rows[0].append(0); assert f(rows[1]) == 0
rows = [[1]]; other = rows.copy(); other[0].append(5); assert f(rows) == 6
rows = [[1]]; other = rows[:]; other[0].append(5); assert f(rows) == 6
rows = [[1]]; other = list(rows); other[0].append(5); assert f(rows) == 6
rows = [[1]]; other = [*rows]; other[0].append(5); assert f(rows) == 6
rows = [[1]]; other = rows + []; other[0].append(5); assert f(rows) == 6
rows = [[1]]; other = [r for r in rows]; other[0].append(5); assert f(rows) == 6
rows = [[1]]; other = tuple(rows); other[0].append(5); assert f(rows) == 6
rows = [[1]]; other = {'k': rows}; other['k'][0].append(5); assert f(rows) == 6
rows = [[1]]; other = sorted(rows, key=len); other[0].append(5); assert f(rows) == 6
rows = [[1]]; first, = rows; first.append(5); assert f(rows) == 6
rows = [[1], [2]]; first, *rest = rows; rest[0].append(5); assert f(rows) == 8
d = {'a': [1]}; d['a'].append(5); assert f(d['a']) == 6
d = {'a': [1]}; d.get('a').append(5); assert f(d) == 6
d = {'a': [1]}; x = d.get('a'); x.append(5); assert f(d) == 6
d = {}; x = d.setdefault('a', []); x.append(5); assert f(d) == 5
d = {'a': [1]}; x = {**d}; x['a'].append(5); assert f(d) == 6
a = [1]; b = a or []; b.append(2); assert f(a) == 3
a = [1]; b = [] or a; b.append(2); assert f(a) == 3
a = [1]; b = a if len(a) else []; b.append(2); assert f(a) == 3
a = [1]; b = a.append; b(2); assert f(a) == 3
a = [1]; b = c = a; c += [2]; assert f(b) == 3; assert f(a) == 3
a = [1]; b = a; a += (2,); assert f(b) == 3
a = [1]; b = [a]; a += [2]; assert f(b) == 3
a = {1}; b = [a]; a |= {2}; assert f(b) == 3
a = [1]; b = (a, 2); a[0] = 5; assert f(b) == 7
a = [1]; b = [a]; del a[0]; assert f(b) == 0
a = [1]; b = [a]; a[:] = [7]; assert f(b) == 7
a = [1]; b = []; b.append(a); b[0].append(5); assert f(a) == 6
a = [1]; b = [0]; b[0] = a; b[0].append(5); assert f(a) == 6
a = [1]; b = {}; b['k'] = [a]; b['k'][0].append(5); assert f(a) == 6
a = [1]; b = {}; b.update(k=a); x = b['k']; x.append(5); assert f(a) == 6
a = [1]; assert f([a.append(i) for i in range(2)]) == 1; assert f(a) == 2
a = [1]; list(map(a.append, [2, 3])); assert f(a) == 6
a = [1]; any(a.append(i) for i in (2, 3)); assert f(a) == 6
a = [1]; print(a.pop()); assert f(a) == 0
a = [1]; (lambda x: x.append(2))(a); assert f(a) == 3
a = [1]; g = lambda: a.append(2); g(); assert f(a) == 3
g = lambda: a.append(2); a = [1]; g(); assert f(a) == 3
a = [1]; b = [x for x in (a, a)]; b[0].append(2); assert f(b[1]) == 3
a = [3, 1]; a.extend(a); a.insert(0, -4); assert f(a) == -4
r = f([1]); r.append(2); assert r == 1
r = f([1]); s = r; s.sort(); assert r == 1
r = f([1]); r += [2]; assert r == 1
r = f([1]); r[0] = 2; assert r == 1
a = [1]; r = f(a); b = [r]; b[0].append(1); assert r == 1
import copy\nrows = [[3]]\nother = copy.copy(rows)\nrows[0].append(0)\nassert f(other) == 3
from copy import copy\nrows = [[3]]\nother = copy(rows)\nother[0].append(0)\nassert f(rows) == 3
it = iter([[1], [2]]); x = next(it); x.append(1); assert f(x) == 2
x = [1]\nfor y in (x, x):\n    y.append(0)\nassert f(x) == 1
x = [1, 2]\nfor y in x:\n    if len(x) < 4: x.append(y)\n    assert f(y) == y
x = [[1], [2]]\nfor y in x:\n    x[1].append(5)\n    assert f(y) == 1
x = [1]\nwhile len(x) < 3: x.append(0)\nassert f(x) == 1
x = [1]\ntry:\n    x.append(2)\nexcept ValueError: pass\nassert f(x) == 3
x = [1]\nwith open(x.append(2) or '/dev/null') as y: pass\nassert f(x) == 3
def add(xs): xs.append(0)\nx = [1]\nadd(x)\nassert f(x) == 1
def add(): x.append(0)\nx = [1]\nadd()\nassert f(x) == 1
def add(): x[0].append(0)\ny = [1]\nx = [y]\nz = add()\nassert f(y) == 1
def add(n): x.append(n)\nx = []\nfor n in (0, 1):\n    add(n)\n    assert f(x) == n
def add(to=[1]):\n    to.append(2)\n    return to\nx = add()\nassert f(x) == 3\ny = add()\nassert f(x) == 5
x = [1]\ndef add(to=x):\n    to.append(2)\nadd()\nassert f(x) == 3
n = 0\ndef bump():\n    global n\n    n += 1\nbump()\nassert f(n) == 1
n = 0\ndef test_a():\n    global n\n    n = 5\n    assert f(n) == 5\ndef test_b():\n    assert f(n) == 5
def test_a():\n    x = [1]\n    def add(): x.append(0)\n    add()\n    assert f(x) == 1
def test_a():\n    n = 1\n    def add():\n        nonlocal n\n        n = 2\n    add()\n    assert f(n) == 2
X = [1]\ndef test_a():\n    X.append(0)\n    assert f(X) == 1\ndef test_b():\n    assert f(X) == 1
X = [1]\ndef test_a():\n    x = X\n    x.append(0)\ndef test_b():\n    assert f(X) == 1
X = [1]\n@pytest.mark.parametrize('x, n', [(X, 1), ([2], 2)])\ndef test_a(x, n):\n    assert f(x) == n\n    X.append(0)
class T(unittest.TestCase):\n    x = [1]\n    def test_a(self):\n        self.x.append(0)\n    def test_b(self):\n        self.assertEqual(f(self.x), 1)
class T(unittest.TestCase):\n    n = 1\n    def setUp(self):\n        self.n = 2\n    def test_a(self):\n        self.assertEqual(f(self.n), 2)
class T(unittest.TestCase):\n    n = 1\n    def other(self):\n        self.n = 2\n    def test_a(self):\n        self.other()\n        self.assertEqual(f(self.n), 2)
class T:\n    n = 1\n    def test_a(self):\n        T.n = 2\n    def test_b(self):\n        assert f(self.n) == 2
class T:\n    n = 1\n    def test_a(self):\n        setattr(self, 'n', 2)\n        assert f(self.n) == 2
class T:\n    x = [1]\n    def add(self): self.x.append(2)\n    def test_a(self):\n        self.add()\n        assert f(self.x) == 3
n = 5\nclass T:\n    n = 1\n    def test_a(self):\n        assert f(n) == 5
class B:\n    def get(self): x.append(1)\nx = [1]\nB().get()\nassert f(x) == 2
x = [1]\nglobals()['x'] = [2]\nassert f(x) == 2
x = [1]\nexec('x.append(2)')\nassert f(x) == 3
class math: pi = 3\nassert f(math.pi) == 3
import os as np\nassert f(1) == 1
def isclose(a, b): return True\nassert isclose(f(1), 2)
def approx(x): return x + 1\nassert f(1) == approx(1)
def round(x, n): return x\nassert round(f(1), 2) == 1
def assertEqual(a, b): pass\nassertEqual(f(1), 2)
class T(unittest.TestCase):\n    def assertEqual(self, a, b): pass\n    def test_a(self):\n        self.assertEqual(f(1), 2)
check = lambda a, b: None\ncheck(f(1), 2)
n = 5\nclass T:\n    n = 1\n    x = [n for _ in (1,)]\n    def test_a(self):\n        assert f(self.x) == 1
n = 5\nclass T:\n    n = 1\n    x = [i for i in (1, 2) if i < n]\n    def test_a(self):\n        assert f(self.x) == 1
n = (5,)\nclass T:\n    n = (1,)\n    x = [(i, j) for i in n for j in n]\n    def test_a(self):\n        assert f(self.x) == 1
n = 5\nclass T:\n    n = 1\n    x = {n: i for i in (1, 2)}\n    def test_a(self):\n        assert f(self.x) == 1
x = [1]\nclass T:\n    x = [2]\n    h = lambda: x\n    h().append(3)\nassert f(x) == 4
x = [1]\nclass T:\n    x = [2]\n    [x.append(i) for i in (3,)]\n    assert f(4) == 4\nassert f(x) == 4
n = 5\nclass T:\n    n = 1\n    def test_a(self, m=[n for _ in (1,)]):\n        assert f(m) == 1
n = 5\nclass T:\n    n = 1\n    assert all(f(n) == i for i in (1, 2))
n = 5\nclass T:\n    n = 1\n    class T:\n        x = n\n        assert f(n) == 1
i = 5\nclass T:\n    for i in (1,):\n        x = [i for _ in (1,)]\n        assert f(x) == 1
n = 5\nclass T:\n    n = 1\n    def test_a(self, n=n):\n        assert f(n) == 1\n    n = 2
n = 5\nclass T:\n    def test_a(self, n=n):\n        assert f(n) == 1\n    n = 1
X = [1]\nclass T:\n    def test_a(self, n=X.append(2)):\n        pass\n    x = X\n    assert f(x) == 1
class T:\n    x = [1]\n    def test_a(self, n=x.append(2)):\n        pass\n    assert f(x) == 1
n = 5\ndef test_a():\n    n = 1\n    class T:\n        m = n\n        n = 2\n        assert f(m) == 1
n = 5\ndef test_a():\n    n = 1\n    class T:\n        assert f(n) == 1\n        n = 2
x = [1]\ndef get(): return x\ny = get(); y.append(2); assert f(x) == 3
x = [1]\ndef get(): return x\ndef more(): return get()\ny = more(); y.append(2); assert f(x) == 3
x = [1]\ndef get(): return x\nh = [get]; y = h[0](); y.append(2); assert f(x) == 3
x = [1]\ndef get(): return x\nget().append(2); assert f(x) == 3
x = [1]\nclass B:\n    def get(self): return x\ny = B().get(); y.append(2); assert f(x) == 3
x = [1]\ndef get():\n    global y\n    y = x\nget(); y.append(2); assert f(x) == 3
def get(): return x\nh = [get]\nx = [1]\ny = h[0](); y.append(2); assert f(x) == 3
x = [1]\ndef get():\n    yield x\nfor y in get(): y.append(2)\nassert f(x) == 3
x = [1]\nget = lambda: x\ny = get(); y.append(2); assert f(x) == 3
x = [1]\ndef g(n=x.append(2)): pass\nassert f(x) == 3
x = [1]\ndef g(n: x.append(2)): pass\nassert f(x) == 3
x = [1]\ndef g() -> x.append(2): pass\nassert f(x) == 3
x = [1]\n@(x.append(2) or (lambda g: g))\ndef g(): pass\nassert f(x) == 3
x = [1]\nclass B(x.append(2) or object): pass\nassert f(x) == 3
x = [1]\nclass B(object, metaclass=x.append(2) or type): pass\nassert f(x) == 3
x = [1]\n@(x.append(2) or (lambda g: g))\nclass B: pass\nassert f(x) == 3
x = [1]\nclass T(x.append(2) or object):\n    def test_a(self):\n        assert f(x) == 3
x = [1]\n@(x.append(2) or (lambda g: g))\nclass T:\n    def test_a(self):\n        assert f(x) == 3
x = [1]\n@pytest.mark.parametrize('y', [x.append(2), 3])\ndef test_a(y):\n    assert f(x) == 3
x = [1]\n@pytest.mark.parametrize('y', [3], ids=x.append(2))\ndef test_a(y):\n    assert f(x) == 3
pi = 3\nfrom math import *\nassert f(pi) == 3
x = e = 3\nfrom math import *\nassert f(e) == 3
from numpy import *\nassert all(f(n) == n for n in (1, 2))
math.pi = 3\nassert f(math.pi) == 3
import math\nmath.pi = 3\nassert f(math.pi) == 3
math.pi = 3\nimport math\nassert f(math.pi) == 3
math.pi = 3\nfrom math import pi\nassert f(pi) == 3
import math as m\nm.pi = 3\nassert f(math.pi) == 3
def change(): math.pi = 3\nchange()\nassert f(math.pi) == 3
for math.pi in (3,): pass\nassert f(math.pi) == 3
import math as m\nsetattr(m, 'pi', 3)\nassert f(math.pi) == 3
assert setattr(math, 'pi', 3) is None\nassert f(math.pi) == 3
math.__dict__['pi'] = 3\nassert f(math.pi) == 3
math.__dict__['pi'] = 3\nfrom math import pi\nassert f(pi) == 3
math.isclose = lambda a, b: True\nassert math.isclose(f(1), 2)
import sys\nx = 1\nsys.modules['math'].pi = 3\nassert f(math.pi) == 3
def test_a():\n    try:\n        raise ValueError\n    except ValueError:\n        return\n    assert f(2) == 2
for n in (1, 2):\n    try:\n        raise ValueError\n    except ValueError:\n        break\n    assert f(n) == 2
from math import pi\ndef test_a():\n    global pi\n    pi = 3\n    assert f(pi) == 3\ndef test_b():\n    assert f(pi) == 3
def test_a(n=1):\n    def inner():\n        nonlocal n\n        n = 2\n    inner()\n    assert f(n) == 2
def test_a():\n    def inner():\n        nonlocal r\n        r = f(3)\n    if (r := f(1)) == 1: pass\n    inner()\n    assert r == 2
def g():\n    assert f(1) == 1\ndef test_a():\n    global g\n    g = lambda: None\n    g()\ntest_a()
class O: n = 3\nclass T:\n    n = 1\n    def test_a(self):\n        self = O()\n        assert f(self.n) == 1
class O: n = 3\nclass T:\n    n = 1\n    def test_a(self):\n        T = O()\n        assert f(T.n) == 1
class B(unittest.TestCase):\n    def assertEqual(self, a, b): pass\nclass T(B):\n    def test_a(self):\n        self.assertEqual(f(1), 2)
class T(unittest.TestCase):\n    def setUp(self):\n        self.assertEqual = print\n    def test_a(self):\n        self.assertEqual(f(1), 2)
try:\n    x = 1\n    from os import *\nexcept ImportError: pass\nassert f(x) == 1
if (r := f(1)) and all((r := f(n)) == n for n in (2, 3)): pass\nassert r == 3
"""
# Followed to the end of what runs, and read as it stands there.
READ = r"""
X = [[1]]\ndef test_a():\n    assert f(X) == 7\nX = [[7]]
n = 1\ndef run():\n    assert f(n) == 1\nrun()\nn = 2
n = 1\ndef run():\n    assert f(n) == 1\ndef main():\n    run()\n    assert f(5) == 5\nmain()\nn = 2\nassert f(n) == 2
def test_a(n=1):\n    assert f(n) == 1
n = 1\ndef test_a(n=n):\n    assert f(n) == 1\nn = 2
n = 1\n@pytest.mark.parametrize('x', [n])\ndef test_a(x):\n    assert f(x) == 1\nn = 2
def test_a():\n    n = 1\n    def inner():\n        assert f(n) == 2\n    n = 2\n    inner()
def test_a():\n    def inner():\n        assert f(3) == 2\n    assert f(1) == 1
def test_a():\n    for n in (1, 2, 3):\n        assert f(n) == n\n        if n == 2:\n            return\n    assert f(9) == 9
def test_a():\n    for n in (1, 2, 3):\n        if n == 2:\n            continue\n        assert f(n) == n
for n in (1, 2, 3):\n    assert f(n) == n\n    if n == 2:\n        break\nelse:\n    assert f(9) == 9\nassert f(n) == 2
for a in (1, 2):\n    for b in (1, 2):\n        if b == 2: break\n        assert f(a, b) == 1
for n in (1, 2):\n    assert f(n) == n\nelse:\n    assert f(9) == 9
def test_a():\n    try:\n        return\n    finally:\n        assert f(1) == 1\n    assert f(2) == 2
def test_a():\n    try:\n        raise ValueError\n        assert f(0) == 1\n    except ValueError:\n        pass\n    assert f(2) == 2
def test_a():\n    with open('/dev/null') as y:\n        return\n    assert f(2) == 2\ndef test_b():\n    assert f(3) == 3
def test_a():\n    yield 1\n    assert f(2) == 2\ndef test_b():\n    assert f(3) == 3
def test_a():\n    if 0:\n        return\n    assert f(2) == 2
x = [3, 1]; y = x[:]; y.append(0); assert f(x) == 1
x = [3, 1]; y = list(x); x.clear(); assert f(y) == 1
x = [3, 1]; y = x.copy(); y.sort(); assert f(x) == 1
x = [3, 1]; y = [*x, 2]; x.append(0); assert f(y) == 1
a = [3]; b = [1]; a, b = b, a; assert f(a) == 1; assert f(b) == 3
x = [1]; x = [2]; assert f(x) == 2
x = [1]; y = x; x = [2]; x.append(5); assert f(y) == 1
x = [1]; x += [2]; assert f(x) == 3; y = x; assert f(y) == 4
n = 1; n += 1; assert f(n) == 2; s = 'a'; s += 'b'; assert f(s) == 3
x = [1]; r = f(x); x.append(2); assert r == 1
x = [3, 1]; print(x); print('x', sorted(x)); passed = []; passed.append(1); assert f(x) == 1
x = [3, 1]; want = ''.join(reversed(['b', 'a'])); assert f(x) == 1
cases = [([1], 1), ([2], 2)]; out = []\nfor x, n in cases:\n    r = f(x)\n    assert r == n\n    out.append(n)
class T(unittest.TestCase):\n    x = [1]\n    n = 5\n    def test_a(self):\n        with self.subTest(x=self.x):\n            self.assertEqual(f(self.x), self.n)
class T:\n    def check(self):\n        assert f(1) == 1\n    def test_a(self):\n        self.check()\n        assert f(2) == 2
from unittest import TestCase\nclass T(TestCase):\n    n = 5\n    def test_a(self):\n        self.assertEqual(f(self.n), 5)
import numpy as np\nassert f(np.inf) == math.inf
ROWS = [(1, 1), (2, 4)]\ndef test_a():\n    for x, n in ROWS:\n        assert f(x) == n
rows = [[0] * 2] * 2; assert f(rows) == 0; rows = [[0] * 2 for _ in range(2)]; assert f(rows) == 0
"""


def texts(of: str) -> list[str]:
    return [line.replace("\\n", "\n") for line in of.strip().split("\n")]


@pytest.mark.parametrize("text", texts(CHANGED))
def test_nothing_is_read_that_python_does_not_make(text: str) -> None:
    assert not set(read(text)[0]) - set(seen_by_python(text))


@pytest.mark.parametrize("text", texts(READ))
def test_all_is_read_that_python_makes(text: str) -> None:
    assert set(read(text)[0]) == set(seen_by_python(text))


VALUES = ["[1]", "[[1], [2]]", "{'a': [1]}", "([1], 2)", "3", "f([1])"]
EXPRESSIONS = [
    "{0}", "{0}[0]", "[{0}, {1}]", "({0}, 5)", "{{'k': {0}}}", "list({0})", "{0} or {1}", "{0} if {1} else 0", "{0}[:]",
    "[x for x in {0}]", "{0} * 2", "{0} + {1}", "{0}.copy()", "{0}.get('a')", "{0}.append", "lambda: {0}.append(4)",
    "(y for y in [*{0}])", "g({0})", "sorted({0}, key=str)", "dict(a={0})['a']", "[*{0}]", "{{**{0}}}", "max({0}, {1}, key=str)",
]  # fmt: skip
STATEMENTS = [
    "{0} = {v}", "{0} = {v}", "{0} = {e}", "{0} = {e}", "{0} = {e}", "{0} += {e}", "{0}.append({e})", "{0}[0] = {e}",
    "{0}[0].append({1})", "{0}['a'].append({1})", "{0}()", "{0}({1})", "del {0}[0]", "for x in {0}[:3]: x.append(6)",
    "for {0} in [*{e}][:3]: {0}.append(7)", "h()", "{0}, {1} = {e}, {e}", "{0}, *{1} = {e}", "print({0})", "if {0}: {1} = {e}",
    "for x in {0}[:3]:\n    assert f(x) == 1\n    {1} = {e}\n    if x: break", "assert f({0}) == 1", "assert {0} == 2", "assert f({e}) == 3",
    "x = [{0}.append(9) for _ in (1, 2)]",
]  # fmt: skip


def test_what_chance_writes_is_read_so() -> None:
    rng = random.Random(4)
    texts = [text for _ in range(2_000) if not fails(text := written(rng))]
    assert len(texts) > 400
    found, made = 0, 0
    for text in texts:
        tests, saw = set(read(text)[0]), set(seen_by_python(text))
        assert not tests - saw, text
        found, made = found + len(tests), made + len(saw)
    assert found > made / 3


def written(rng: random.Random) -> str:
    """A text of some statements that bind, share and change containers."""
    lines = [f"{name} = {rng.choice(VALUES)}" for name in "abcd"]
    lines += rng.choices(STATEMENTS, k=rng.randrange(1, 5))
    lines += [f"assert f({name}) == 0" for name in "abcd"]
    for place, line in enumerate(lines):
        while "{e}" in line:
            expression = rng.choice(EXPRESSIONS).format(*rng.sample("abcd", 2))
            line = line.replace("{e}", expression, 1)
        names = rng.sample("abcd", 2)
        line = line.replace("{0}", names[0]).replace("{1}", names[1])
        lines[place] = line.replace("{v}", rng.choice(VALUES))
    return "def g(x): return x\ndef h(): a.append(0)\n" + "\n".join(lines)


def fails(text: str) -> bool:
    """Whether a text ends with an exception: where, a reader need not know."""
    try:
        exec(text, {"f": lambda *_: Result("", []), "print": str})
    except Exception:
        return True
    return False
