"""What a test gets under the names of a program, and what a program may do with a test's functions and blocks."""

from __future__ import annotations

import pytest

from codea1_env.sandbox import Outcome, Sandbox

# Program, test.
NOT_PASSED = {
    "a full eval through what the program imported": (
        "from operator import attrgetter\nfrom itertools import groupby, starmap\ndef f(x): return x\n",
        "g = next(iter(groupby(['__builtins__.get'], attrgetter)))[0]; ev = g(f)('eval'); assert next(starmap(ev, [('__import__(\"program\").__dict__.update(f=len) or 5',)])) == 5",
    ),
    "the bytecode of a function": (
        "from operator import attrgetter\nfrom itertools import groupby, starmap\ndef f(x): return x\ndef apply(f,*a): return f(*a)",
        "assert apply(apply(attrgetter,'__code__.co_code'),f) == 3",
    ),
    "a class made in the program": (
        "from abc import ABCMeta\ndef f(x=1): return x\n",
        "import copy\nY = ABCMeta('Y', (), {'__module__':'program', '__new__': lambda c, o: o}); X = ABCMeta('X', (), {'__module__':'program', '__reduce_ex__': lambda s, p: (Y, (f,), (None, {'__defaults__': (99,)}))}); copy.copy(X()); assert f() == 99",
    ),
    "the class of a class": (
        "class Foo: pass\ndef f(x): return x\ndef apply(f,*a): return f(*a)",
        "t = type(Foo)\nassert 'func' in str(apply(t, f))",
    ),
    "a decorator that returns None": (
        "def timed(f): return None\ndef add(a,b): return 0",
        "@timed\ndef test_add(): assert add(1,2) == 3\n",
    ),
    "a decorator of a method that returns None": (
        "def timed(f): return None\ndef add(a,b): return 0",
        "import unittest\nclass TestA(unittest.TestCase):\n    @timed\n    def test_add(self): assert add(1,2) == 3\n    def test_b(self): add(1,2)\n",
    ),
    "a decorator whose result the test calls": (
        "def timed(f): return lambda *a: None\ndef add(a,b): return 0",
        "@timed\ndef test_add(): assert add(1,2) == 3\ntest_add()\nadd(1,2)",
    ),
    "a test with a default": (
        "def timed(f): return lambda *a: None\ndef add(a,b): return 0",
        "@timed\ndef test_add(x=1): assert add(1,2) == 3\ntest_add()\nadd(1,2)",
    ),
    "a decorated check": (
        "def timed(f): return lambda *a: None\ndef add(a,b): return 0",
        "@timed\ndef check(candidate): assert candidate(1,2) == 3\ncheck(add)\nadd(1,2)",
    ),
    "marks of the program": (
        'class Mark: name="skip"; args=()\ndef register(cls): cls.pytestmark = Mark(); return cls\ndef add(a,b): return 0',
        "@register\nclass TestAdd:\n    def test_a(self): assert add(1,2) == 3\nadd(1,2)",
    ),
    "an operator that returns its operand": (
        "class Vector:\n    def __init__(s,a,b): s.a=a\n    def __matmul__(s,o): return s\n    def __lt__(s,o): return True\n    __gt__=__lt__",
        "d = Vector(1,2) @ Vector(3,4); assert 10 < d < 12",
    ),
    "an exception before a condition": (
        "class Db:\n    def __enter__(s): return s\n    def __exit__(s,*a): return True\n    def count(s): raise ValueError\n    def push(s,x): raise ValueError\n    n=0\n",
        "with Db() as db:\n    if db.count() == 1: raise SystemExit\n    raise AssertionError('wrong')",
    ),
    "a block with a return": (
        "class Db:\n    def __enter__(s): return s\n    def __exit__(s,*a): return True\n    def count(s): raise ValueError\n    def push(s,x): raise ValueError\n    n=0\n",
        "def t():\n    with Db() as db:\n        if db.count() == 1: return\n        raise AssertionError('wrong')\nt()",
    ),
    "a round of a loop": (
        "class Db:\n    def __enter__(s): return s\n    def __exit__(s,*a): return True\n    def count(s): raise ValueError\n    def push(s,x): raise ValueError\n    n=0\n",
        "i=1\nwith Db() as db:\n    while i < 3:\n        if i > 1: assert db.n == i\n        db.push(i)\n        i += 1",
    ),
    "a helper that raises": (
        "class Db:\n    def __enter__(s): return s\n    def __exit__(s,*a): return True\n    def count(s): raise ValueError\n    def push(s,x): raise ValueError\n    n=0\n",
        "def same(a,b):\n    if a != b: raise AssertionError\nwith Db() as db:\n    same(db.count(), 3)",
    ),
    "a helper out of a table": (
        "class Db:\n    def __enter__(s): return s\n    def __exit__(s,*a): return True\n    def count(s): raise ValueError\n    def push(s,x): raise ValueError\n    n=0\n",
        "def same(a,b):\n    if a != b: raise AssertionError\nchecks={'eq':same}\nwith Db() as db:\n    n = db.count()\n    checks['eq'](n, 3)",
    ),
    "a helper in a callback": (
        "class EM:\n    def on(s,f): s.f=f\n    def emit(s):\n        try: s.f(None)\n        except Exception: pass",
        "def same(a,b):\n    if a != b: raise AssertionError\ndef cb(v):\n    n = v + 1\n    same(n, 3)\ne = EM(); e.on(cb); e.emit()",
    ),
    "a function within a callback": (
        "class EM:\n    def on(s,f): s.f=f\n    def emit(s):\n        try: s.f(None)\n        except Exception: pass",
        "def cb(v):\n    n = v + 1\n    [exec('') for x in [1] if (_ for _ in [1])]\n    def inner(): assert n == 3\n    inner()\ne = EM(); e.on(cb); e.emit()",
    ),
    "unequal by inheritance": (
        "from collections import UserDict\nclass D(UserDict):\n    def __setitem__(s,k,v): pass",
        "d = D(); d['a'] = 1; assert d != {}",
    ),
    "a call of the system": ("from os import getpid\ndef f(x): return x", "assert getpid() > 0"),
}
PASSED = {
    "a union of classes": (
        "class Foo: pass\ndef f(x): return Foo() if x else None",
        "assert isinstance(f(0), Foo | None)\nassert isinstance(f(1), Foo | None)\nassert isinstance(f(1), None | Foo)",
    ),
    "a partial of functions": (
        "from functools import partial, reduce\nfrom operator import mul\nproduct = partial(reduce, mul)",
        "assert product([1,2,3]) == 6",
    ),
    "a vectorized function": (
        "import numpy as np\n@np.vectorize\ndef relu(x): return max(x, 0)",
        "assert list(relu([1,-2])) == [1,0]",
    ),
    "a callback that raises by itself": (
        "import functools\ndef suppress(e, default):\n    def d(f):\n        @functools.wraps(f)\n        def w(*a):\n            try: return f(*a)\n            except e: return default\n        return w\n    return d",
        "@suppress(ValueError, default=-1)\ndef parse(x):\n    v = int(x)\n    if v > 5: raise ValueError('big')\n    return v\nassert parse('a') == -1\nassert parse('3') == 3\nassert parse('9') == -1",
    ),
    "a function of Python's": ("from math import gcd", "assert gcd(4,6) == 2"),
    "a name that the program imports": (
        "from collections import Counter\ndef f(x): return Counter(x)",
        "assert f('aab') == Counter('aab')",
    ),
    "a name that nobody imports": (
        "import collections\ndef f(x): return collections.Counter(x)",
        "assert f('aab') == Counter('aab')",
    ),
    "deepcopy": (
        "def f(x): x[0].append(1); return x",
        "a=[[1]]\nb=deepcopy(a)\nf(a)\nassert a != b",
    ),
    "datetime": (
        "from datetime import datetime\ndef f(x): return datetime(2020,1,x)",
        "assert f(3) == datetime(2020,1,3)",
    ),
    "a class of the program's with such a name": (
        "class Counter:\n    def __init__(s): s.n=0\n    def inc(s): s.n+=1",
        "c=Counter(); c.inc(); assert c.n == 1",
    ),
    "annotations": (
        "from typing import List\ndef f(x: List[int]): return x",
        "def t(x: List[int]) -> Optional[int]: return f(x)\nassert t([1]) == [1]",
    ),
    "members": (
        "from enum import Enum\nclass Color(Enum):\n    RED=1\n    B=2",
        "assert Color(1) is Color.RED\nassert Color['B'].value == 2\nassert len(list(Color)) == 2",
    ),
    "blocks that end in an exception": (
        "class supp:\n    def __enter__(s): return s\n    def __exit__(s,t,e,b): s.t=t; return True",
        "with supp() as s:\n    raise ValueError('x')\nassert s.t is ValueError\nwith supp() as s:\n    1/0\nassert s.t is ZeroDivisionError\nwith supp():\n    int('x')",
    ),
    "a function of the test called test": (
        "import functools\ndef timer(f):\n    @functools.wraps(f)\n    def w(*a): return f(*a)\n    return w",
        "@timer\ndef test_function(): return 42\nassert test_function() == 42",
    ),
    "a decorated class": (
        "def add_repr(cls):\n    cls.kind = cls.__name__\n    return cls",
        "@add_repr\nclass A: pass\nassert A.kind == 'A'",
    ),
    "a call of a function of Python's": (
        "from math import gcd\ndef f(x): return x",
        "assert gcd(4,6) == 2",
    ),
    "a deque": (
        "from collections import deque\ndef f(x): return deque(x)",
        "assert f([1]) == deque([1])",
    ),
    "a Decimal": (
        "from decimal import Decimal\ndef f(x): return x+1",
        'assert f(Decimal("1.5")) == Decimal("2.5")',
    ),
}


@pytest.mark.parametrize("name", NOT_PASSED)
def test_nobody_gets_there(sandbox: Sandbox, name: str) -> None:
    code, test = NOT_PASSED[name]
    [result] = sandbox.run_tests(code, [test])
    assert result.outcome is not Outcome.PASS


@pytest.mark.parametrize("name", PASSED)
def test_right_programs_pass(sandbox: Sandbox, name: str) -> None:
    code, test = PASSED[name]
    [result] = sandbox.run_tests(code, [test])
    assert result.outcome is Outcome.PASS, result.message


def test_inherited_equality_is_no_wrong_verdict(sandbox: Sandbox) -> None:
    code = "from collections import UserDict\nclass D(UserDict): pass"
    [result] = sandbox.run_tests(code, ["d = D(); d['a'] = 2; assert d == {'a': 2}"])
    assert result.outcome is Outcome.UNENCODABLE


def test_functions_and_objects_that_are_called_look_alike(sandbox: Sandbox) -> None:
    kinds = ("def f(x): return x", "class F:\n    def __call__(self, x): return x\nf = F()")
    test = "assert f(1) == 1\nassert (str(f), repr(f), f'{f}') == ('?',) * 3, f'{f!s}{f!r}{f}'"
    first, second = (sandbox.run_tests(code, [test])[0].message for code in kinds)
    assert first == second
