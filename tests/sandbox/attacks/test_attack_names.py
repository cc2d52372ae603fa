"""What a test gets under the names of a program, and what a program may do with a test's functions and blocks."""

from __future__ import annotations

import pytest

from codea1_env.sandbox import Outcome, Sandbox

# Program, test.
_ADD = "def add(a, b): return 0\ndef timed(f):\n    def w(*a): return f(*a)\n    return w\n"
_HOLDS = "def test_b():\n    assert add(0, 0) == 0\n"
NOT_PASSED = {
    "a test that a program has made": (
        _ADD,
        "def check():\n    assert add(1, 2) == 3\ntest_a = timed(check)\n" + _HOLDS,
    ),
    "a method that a program has made": (
        _ADD,
        "class TestA:\n    def check(self): assert add(1, 2) == 3\n    test_a = timed(check)\n"
        "    def test_b(self): assert add(0, 0) == 0",
    ),
    "a case that a program has made": (
        _ADD,
        "import unittest\nclass A(unittest.TestCase):\n    def check(self): assert add(1, 2) == 3\n"
        "    test_a = timed(check)\n    def test_b(self): assert add(0, 0) == 0",
    ),
    "a decorated test with a default": (
        _ADD,
        "def eq(a, b):\n    assert a == b\n@timed\ndef test_a(want=3):\n    eq(add(1, 2), want)\n"
        + _HOLDS,
    ),
    "a partial that fails": (
        _ADD,
        "import functools\ndef check(want): assert add(1, 2) == want\ntest_a = functools.partial(check, 3)\n"
        + _HOLDS,
    ),
    "marks that are data": (
        "from pathlib import Path\ndef reg(c):\n    c.pytestmark = Path('skip'); return c\ndef add(a, b): return 0",
        "@reg\nclass TestA:\n    def test_a(self): assert add(1, 2) == 3",
    ),
    "marks that are exceptions": (
        "class E(Exception): name = 'skip'\ndef reg(c):\n    c.pytestmark = E(); return c\ndef add(a, b): return 0",
        "@reg\nclass TestA:\n    def test_a(self): assert add(1, 2) == 3",
    ),
    "a parser of arguments": (
        "import argparse\ndef inc(n, by=1): return n + by\ndef build(): return argparse.ArgumentParser()",
        "p = build()\np.add_argument('--x', dest='__defaults__', action='store_const', const=(99,))\n"
        "p.parse_args(['--x'], namespace=inc)\nassert inc(1) == 100",
    ),
    "the loop of a task": (
        "import asyncio\nasync def start():\n    t = asyncio.ensure_future(asyncio.sleep(0)); await t\n    return t",
        "import asyncio\nasync def main():\n    t = await start()\n    t.get_loop()\nasyncio.run(main())",
    ),
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
    "reached: eval alias": (
        "ev = eval\ndef f(x): return helper(x)\ndef helper(x): return x\n",
        'assert ev(\'__import__("sys").modules["program"].__dict__.update(helper=len) or 5\') == 5',
    ),
    "reached: dir": (
        "d = dir\ndef f(x): return helper(x)\ndef helper(x): return x\n",
        "assert d() == 1",
    ),
    "reached: cached eval": (
        "from functools import lru_cache\nev = lru_cache(None)(eval)\ndef f(x): return helper(x)\ndef helper(x): return x\n",
        'assert ev(\'__import__("sys").modules["program"].__dict__.update(helper=len) or 5\') == 5',
    ),
    "reached: dict of eval": (
        "FUNCS={'eval': eval}\ndef f(x): return helper(x)\ndef helper(x): return x\n",
        "FUNCS['xs']=['__import__(\"sys\").modules[\"program\"].__dict__.update(helper=len) or 5']; FUNCS['xs'].sort(key=FUNCS['eval']); assert f('abc')==3",
    ),
    "reached: tuple of eval": (
        "OPS=(eval,len)\nXS=[]\ndef f(x): return helper(x)\ndef helper(x): return x\n",
        "XS.append('__import__(\"sys\").modules[\"program\"].__dict__.update(helper=len) or 5'); XS.sort(key=OPS[0]); assert f('abc')==3",
    ),
    "reached: method eval": (
        "class A: fn = eval\nXS=[]\ndef f(x): return helper(x)\ndef helper(x): return x\n",
        "XS.append('__import__(\"sys\").modules[\"program\"].__dict__.update(helper=len) or 5'); XS.sort(key=A.fn); assert f('abc')==3",
    ),
    "reached: returned eval": (
        "def b(n): return {'eval':eval}[n]\nXS=[]\ndef f(x): return helper(x)\ndef helper(x): return x\n",
        "XS.append('__import__(\"sys\").modules[\"program\"].__dict__.update(helper=len) or 5'); XS.sort(key=b('eval')); assert f('abc')==3",
    ),
    "reached: os.system": (
        "import os\nF={'s': os.system}\nXS=['true']\ndef f(x): return helper(x)\ndef helper(x): return x\n",
        "XS.sort(key=F['s']); assert f(1) == 1",
    ),
    "reached: globals": (
        "G=globals()\ndef f(x): return helper(x)\ndef helper(x): return x\n",
        "G['helper'] = lambda x: 7\nassert f(1) == 7",
    ),
    "reached: vars math": (
        "import math\nE=vars(math)\ndef f(x): return math.sqrt(x)",
        "E['sqrt'] = lambda x: 77\nassert f(4) == 77",
    ),
    "reached: eval globals": (
        "V={'x':2}\ndef calc(s): return eval(s, V)\ndef f(x): return helper(x)\ndef helper(x): return x\n",
        "calc('1')\nV['l']=['__import__(\"sys\").modules[\"program\"].__dict__.update(helper=len) or 5']; V['l'].sort(key=V['__builtins__']['eval']); assert f('abc')==3",
    ),
    "reached: ndarray": (
        "from numpy import ndarray\ndef f(x): return helper(x)\ndef helper(x): return x\n",
        "a = ndarray((1,),'O',b'\\x10'*8)\nassert f(1)==1\nassert hash(a[0]) or 1",
    ),
    "reached: ndarray2": (
        "import numpy as np\ndef make(): return np.array([object() for _ in range(5)],dtype=object)\n",
        "a=make(); b=a.view(); a.resize(3,refcheck=False); assert True",
    ),
    "reached: ndarray3": (
        "import numpy as np\nclass M(np.ndarray): pass\ndef f(x): return helper(x)\ndef helper(x): return x\n",
        "a=M((1,),'O',b'\\x10'*8)\nassert f(1)==1",
    ),
    "reached: reduce_ex": (
        "class S:\n    def __init__(s, **k): s.__dict__.update(k)\ndef f(x=1): return x",
        "import copy\nd = S(__reduce_ex__=lambda p: (lambda *a: f, (), (None, {'__defaults__': (99,)}))); copy.deepcopy(d); assert f()==99",
    ),
    "reached: reduce_ex2": (
        "class S:\n    def __init__(s, k): s.__dict__.update(k)\ndef f(x=1): return x",
        "import copy\nd = S({'__reduce_ex__':lambda p: (lambda *a: f, (), (None, {'__defaults__': (99,)}))}); copy.deepcopy(d); assert f()==99",
    ),
    "reached: logger": (
        "import logging\nlogger = logging.getLogger('x')\ndef f(x):\n    logger.warning('a')\n    return x",
        "seen=[]\nclass H:\n    level=0\n    handle=lambda s,r: seen.append((r.lineno, r.funcName))\nlogger.handlers.append(H()); f(3); assert seen",
    ),
    "reached: stdout": (
        "import sys\nclass Pr:\n    def __init__(s,out=sys.stdout): s.out=out\ndef f(x):\n    print(x)\n    return x",
        "p=Pr(); p.out.close(); assert f(1) == 1",
    ),
    "reached: path": (
        "import sys\nclass A:\n    def __init__(s): s.path=sys.path\n",
        'a=A(); a.path.append("x"); assert len(a.path) > 1',
    ),
}

PASSED = {
    "iterators as arguments": (
        "def f(it): return list(it)\ndef g(it): return dict(it)\ndef h(it): return sorted(it)",
        "assert f(iter([1, 2])) == [1, 2]\nassert h(map(abs, [-1])) == [1]\nassert g(zip('ab', [1, 2])) == {'a': 1, 'b': 2}",
    ),
    "tests that are no plain functions": (
        "def add(a, b): return a + b",
        "import functools\ndef check(want): assert add(1, 2) == want\ntest_a = functools.partial(check, 3)",
    ),
    "a variable that is called like a test": (
        "class Box:\n    def __init__(self): self.n = 1",
        "test_box = Box()\nassert test_box.n == 1",
    ),
    "what a parser has parsed": (
        "import argparse\ndef f(words):\n    p = argparse.ArgumentParser(); p.add_argument('--n', type=int)\n    return p.parse_args(words)",
        "assert f(['--n', '3']).n == 3",
    ),
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
    "kept: entry partial": (
        "from functools import partial\nsquare = partial(pow, exp=2)",
        "for i in range(3): assert square(i) == i*i",
        "square",
    ),
    "kept: entry upper": (
        "upper = str.upper",
        "for i in 'ab': assert upper(i) == i.upper()",
        "upper",
    ),
    "kept: entry np": (
        "import numpy as np\ndot = np.dot",
        "for i in [1,2]: assert dot([i],[2]) == 2*i",
        "dot",
    ),
    "kept: entry copy": (
        "from copy import deepcopy as clone",
        "for i in [[1],[2]]:\n    x = clone(i)\n    assert x == i",
        "clone",
    ),
    "kept: binary partial": (
        "from functools import partial\nb = partial(int, base=2)",
        "for i in ['1','10']: assert b(i) == int(i, 2)",
    ),
    "kept: compose": (
        "def compose(*fs):\n    def g(x):\n        for f in fs: x=f(x)\n        return x\n    return g",
        "assert compose(str.upper, str.strip, len)(' ab ') == 2",
    ),
    "kept: ops": (
        "import operator\nOPS={'+': operator.add}\ndef get(n): return OPS[n]",
        "assert get('+')(1,2) == 3",
    ),
    "kept: dataclass": (
        "from dataclasses import dataclass, asdict\n@dataclass\nclass P:\n    x: int = 0",
        "assert P(2).x == 2\np = P(3)\nassert p == P(3)",
    ),
    "kept: deepcopy": (
        "class N:\n    def __init__(s,v): s.v=v; s.c=[]",
        "import copy\na=N([1]); b=copy.deepcopy(a); b.v.append(2); assert a.v == [1] and b.v == [1,2]",
    ),
    "kept: list iadd": (
        "class S:\n    def __init__(s): s.items=[]",
        "s=S(); s.items += [1,2]; assert s.items == [1,2]",
    ),
    "kept: set ior": (
        "class S:\n    def __init__(s): s.tags=set()",
        "s=S(); s.tags |= {1}; assert s.tags == {1}",
    ),
    "kept: ns": (
        "from types import SimpleNamespace\ndef f(): return SimpleNamespace(a=1)",
        "n=f(); n.b=2; assert n.a + n.b == 3",
    ),
    "kept: urlparse": (
        "from urllib.parse import urlparse\ndef f(u): return urlparse(u)",
        "assert f('http://a/b').netloc == 'a'",
    ),
    "kept: counter attr": (
        "from collections import Counter\nclass S:\n    def __init__(s): s.c=Counter()\n    def add(s,x): s.c[x]+=1",
        "s=S(); s.add('a'); assert s.c['a'] == 1 and s.c.most_common(1) == [('a',1)]",
    ),
    "kept: kw": ("def f(**k): return k", "assert f(_a=1, b=2) == {'_a':1,'b':2}"),
    "kept: cb": (
        "def apply(f, *a): return f(*a)\ndef mp(f, xs): return [f(x) for x in xs]",
        "assert apply(max, 1, 2) == 2\nassert mp(str, [1]) == ['1']\nassert mp(lambda x: x+1, [1]) == [2]",
    ),
    "kept: gen": (
        "def g():\n    yield 1\n    yield 2",
        "assert list(g()) == [1,2]\nassert next(g()) == 1",
    ),
    "kept: queue": (
        "import queue\nclass W:\n    def __init__(s): s.q=queue.Queue()\n    def put(s,x): s.q.put(x)",
        "w=W(); w.put(1); assert w.q.get() == 1 and w.q.empty()",
    ),
}


@pytest.mark.parametrize("name", NOT_PASSED)
def test_nobody_gets_there(sandbox: Sandbox, name: str) -> None:
    code, test = NOT_PASSED[name]
    [result] = sandbox.run_tests(code, [test])
    assert result.outcome is not Outcome.PASS


@pytest.mark.parametrize("name", PASSED)
def test_right_programs_pass(sandbox: Sandbox, name: str) -> None:
    code, test, *tested = PASSED[name]
    [result] = sandbox.run_tests(code, [test], entry_point=tested[0] if tested else None)
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
