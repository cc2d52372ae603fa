"""What a red team found in tests of classes: programs that won without solving, tests that told right programs apart."""

from __future__ import annotations

import pytest

from codea1_env.sandbox import Outcome

MATMUL = """
class Vector:
    def __init__(self, *c): pass
    def __matmul__(self, o): return self
    def __add__(self, o): return self
    __mul__ = __add__
    def __sub__(self, o): return self
    __rsub__ = __sub__
    def __abs__(self): return 0
    def __float__(self): return 0.0
    def __round__(self, n=None): return 0
    def __bool__(self): return False
    def __lt__(self, o): return True
    __gt__ = __le__ = __ge__ = __lt__
"""
DB = """
class Db:
    def __enter__(self): return self
    def __exit__(self, *a): return True
    async def __aenter__(self): return self
    async def __aexit__(self, *a): return True
    def count(self): raise ValueError
"""
EMITTER = """
class Emitter:
    def on(self, n, f): self.f = f
    def emit(self, n, x=None):
        try: self.f(None)
        except BaseException: pass
"""
CASE = "import unittest\nclass T(unittest.TestCase):\n"

# A wrong program, and a test that it won.
WON = {
    "almost equal": (MATMUL, CASE + "    def test_a(self): self.assertAlmostEqual(Vector(1, 2) @ Vector(3, 4), 11.0)"),
    "a small difference": (MATMUL, "assert abs(Vector(1, 2) @ Vector(3, 4) - 11) < 1e-9"),
    "from the other side": (MATMUL, "assert abs(11 - Vector(1, 2) @ Vector(3, 4)) < 1e-9"),
    "a number of a difference": (MATMUL, "v = Vector(1, 2) @ Vector(3, 4)\nassert float(v - 11) == 0.0"),
    "rounded": (MATMUL, "assert round(Vector(1, 2) @ Vector(3, 4) - 11, 6) == 0"),
    "no difference": (MATMUL, "assert not (Vector(1, 2) @ Vector(3, 4) - 11)"),
    "between": (MATMUL, "assert 24 < Vector(20) + 5 < 26"),
    "the difference of a method's result": (
        "class V:\n    def dot(self, o):\n        self.d = V()\n        o.d = self.d\n        return self.d\n    def __add__(self, o): return self.d\n"
        "    def __sub__(self, o): return self\n    def __abs__(self): return 0",
        "a = V()\nb = V()\nd = a.dot(b)\na + b\nassert abs(d - 11) < 1e-9",
    ),
    "an exception ends a block": (DB, "with Db() as db:\n    n = db.count()\n    assert n == 1"),
    "in a test case": (DB, CASE + "    def test_a(self):\n        with Db() as db:\n            n = db.count()\n            self.assertEqual(n, 1)"),
    "an asynchronous block": (
        DB, "import asyncio\nasync def main():\n    async with Db() as db:\n        n = db.count()\n        assert n == 1\nasyncio.run(main())"),
    "a stack of blocks": (
        DB, "import contextlib\nwith contextlib.ExitStack() as stack:\n    db = stack.enter_context(Db())\n    n = db.count()\n    assert n == 1"),
    "a helper that asserts": (
        DB, "def check(a, b):\n    assert a == b\nwith Db() as db:\n    check(db.count(), 1)"),
    "a condition and fail": (
        DB, CASE + "    def test_a(self):\n        with Db() as db:\n            if db.count() != 1:\n                self.fail()"),
    "a condition and raise": (DB, "with Db() as db:\n    if db.count() != 1:\n        raise RuntimeError('wrong')"),
    "the wrong exception": (
        DB, CASE + "    def test_a(self):\n        with Db() as db:\n            with self.assertRaises(KeyError):\n                db.count()"),
    "in a loop": (DB, "with Db() as db:\n    for x in (1, 2):\n        if x == 2: db.count()\n        assert x == 1"),
    "a helper of a helper": (
        DB, "def one(a, b):\n    assert a == b\ndef two(a, b): one(a, b)\nwith Db() as db:\n    n = db.count()\n    two(n, 1)"),
    "a static method that asserts": (
        DB, CASE + "    @staticmethod\n    def check(a, b):\n        assert a == b\n    def test_a(self):\n        with Db() as db:\n"
        "            n = db.count()\n            self.check(n, 1)"),
    "a local function that asserts": (
        DB, "def test_a():\n    def check(a, b):\n        assert a == b\n    with Db() as db:\n        n = db.count()\n        check(n, 1)"),
    "a decorated method of a mixin": (
        "def timed(f): return lambda self: None\ndef add(a, b): return 0",
        "import unittest\nclass Adds:\n    @timed\n    def test_a(self): self.assertEqual(add(1, 2), 3)\n"
        "class TestAdd(Adds, unittest.TestCase):\n    def test_b(self): add(1, 2)"),
    "an exception ends a callback": (
        EMITTER,
        "called = []\ndef h(v):\n    called.append(1)\n    x = v + 1\n    assert x == 43\ne = Emitter()\ne.on('x', h)\ne.emit('x', 42)\n"
        "assert len(called) == 1"),
    "an assertion is raised later": (
        "class Emitter:\n    def on(self, n, f): self.f = f\n    def emit(self, n, x=None):\n        if n == 'x':\n            try: self.f(0)\n"
        "            except BaseException as e: self.e = e\n        else: raise self.e",
        "def h(v): assert v == 42\ne = Emitter()\ne.on('x', h)\ne.emit('x', 42)\ntry:\n    e.emit('nope')\n    ok = False\n"
        "except Exception: ok = True\nassert ok"),
    "a decorator that gives a class of Python's": (
        "def timed(f): return int\ndef add(a, b): return 0", "@timed\ndef test_add():\n    assert add(1, 2) == 3\nadd(1, 2)"),
    "a decorated method": (
        "def timed(f): return lambda self: None\ndef add(a, b): return 0",
        CASE + "    @timed\n    def test_a(self): self.assertEqual(add(1, 2), 3)\n    def test_b(self): add(1, 2)"),
    "a method of a plain class": (
        "def timed(f): return lambda self: None\ndef add(a, b): return 0",
        "class TestAdd:\n    @timed\n    def test_a(self): assert add(1, 2) == 3\n    def test_b(self): add(1, 2)"),
    "a decorator that runs the test": (
        "def timed(f):\n    try: f()\n    except BaseException: pass\n    return f\nclass Stack:\n    def push(self, x): raise ValueError",
        "@timed\ndef test_push():\n    s = Stack()\n    s.push(1)\n    assert s.peek() == 1"),
    "a decorator that exchanges tests": (
        "kept = []\ndef timed(f):\n    kept.append(f)\n    return kept[0]\ndef add(a, b): return 3",
        "@timed\ndef test_a():\n    assert add(1, 2) == 3\n@timed\ndef test_b():\n    assert add(2, 2) == 4"),
    "a task is cancelled by another name": (
        "import asyncio\nclass X(asyncio.CancelledError): pass\nclass Q:\n    def put(self, x): pass\n    def get(self): raise X",
        "import asyncio\nq = Q()\nasync def w():\n    q.put(1)\n    assert q.get() == 1\nasync def main():\n    async with asyncio.TaskGroup() as tg:\n"
        "        tg.create_task(w())\nasyncio.run(main())"),
    "a class as a method that compares": (
        "class R:\n    startswith = str\ndef greet(n): return R()", "assert greet('Bob').startswith('Hello')"),
    "a class of exceptions as a method": (
        "L = []\nclass M(type):\n    def __call__(c, o):\n        L[:] = o\n        return set()\nclass X(Exception, metaclass=M): pass\n"
        "class R:\n    difference = X\n    def __iter__(self): return iter(L)\nclass G:\n    def tags(self): return R()",
        CASE + "    def test_a(self): self.assertSetEqual(G().tags(), {1, 2})"),
    "a set that was made": (
        "class S(set):\n    e = ()\n    def difference(self, o):\n        self.e = set(o)\n        return set()\n    def __iter__(self): return iter(self.e)",
        CASE + "    def test_a(self):\n        s = S()\n        s.add(1)\n        self.assertSetEqual(s, {1, 2})"),
    "a made set in place": (
        "class Tags(set):\n    def __isub__(self, o): return set()", "t = Tags([9])\nt -= {1, 2, 3}\nassert not t"),
    "what a test case compares with": (
        "class Subject:\n    def attach(self, o):\n        self.o = o\n        o.addTypeEqualityFunc(int, lambda *a, **k: None)\n"
        "    def notify(self, v): self.o.update(0)",
        CASE + "    def update(self, v): self.got = v\n    def test_a(self):\n        s = Subject()\n        s.attach(self)\n        s.notify(5)\n"
        "        self.assertEqual(self.got, 5)"),
    "a test case is asked what it expects": (
        "class Subject:\n    def attach(self, o): self.v = o.expected\n    def value(self): return self.v",
        CASE + "    def setUp(self): self.expected = 5\n    def test_a(self):\n        s = Subject()\n        s.attach(self)\n"
        "        self.assertEqual(s.value(), 5)"),
    "an exception in the place of an assertion": (
        "class F:\n    def tell(self): return 99\n    def seek(self, n): pass\n    def close(self): raise ValueError",
        CASE + "    def test_a(self):\n        f = F()\n        with self.assertRaises(ValueError):\n            try:\n"
        "                self.assertEqual(f.tell(), 0)\n                f.seek(-1)\n            finally:\n                f.close()"),
    "an object in the place of a class": (
        "class N:\n    __lt__ = __gt__ = lambda self, o: True\nclass F:\n    def __call__(self, n): return N()\nFib = F()",
        "assert 50 < Fib(10) < 60"),
    "a private name of a handle": (
        "class S:\n    pass", "s = S()\nassert s._data is None and s._made is False"),
    "an operator of a derived class": (
        "class Pos(int):\n    def __add__(self, o): return 999", "x = Pos(3)\nassert x + 4 == 7"),
}  # fmt: skip


@pytest.mark.parametrize("name", WON)
def test_a_wrong_program_does_not_pass(arena, name):
    [result] = arena.sandbox.run_tests(WON[name][0], [WON[name][1]])
    assert result.outcome in (Outcome.FAIL, Outcome.ERROR, Outcome.UNENCODABLE), result
    assert "not defined" not in result.message


# A right program, and a test that it passes in plain Python; here, too.
RIGHT = {
    "a context manager that suppresses what it should": (
        "class Quiet:\n    def __enter__(self): return self\n    def __exit__(self, k, e, t): self.kind = k; return k is ValueError",
        "q = Quiet()\nwith q:\n    raise ValueError('x')\nassert True\nwith q:\n    int('x')\nassert isinstance(q, Quiet)"),
    "an assertion before what is suppressed": (
        "class Quiet:\n    def __init__(self): self.n = 1\n    def __enter__(self): return self\n    def __exit__(self, *a): return True",
        "def test_a():\n    with Quiet() as q:\n        assert q.n == 1\n        raise ValueError\n    assert q.n == 1"),
    "a handler whose failure is kept": (
        "class Bus:\n    def __init__(self): self.errors = []\n    def run(self, f):\n        try: f()\n        except Exception as e: self.errors.append(str(e))",
        "def bad(): raise ValueError('x')\nb = Bus()\nb.run(bad)\nassert b.errors == ['x']"),
    "operators with data": (
        "class V:\n    def __init__(self, x): self.x = x\n    def __mul__(self, k): return V(self.x * k)\n    def __add__(self, o): return V(self.x + o.x)\n"
        "    def __eq__(self, o): return isinstance(o, V) and self.x == o.x",
        "a = V(2)\nassert (a * 3).x == 6\nassert a + a == V(4)\nassert a * 2 == V(4)\nassert a != 5 and not a == 'x'"),
    "in place": (
        "class C:\n    def __init__(self): self.n = 0\n    def __iadd__(self, k):\n        self.n += k\n        return self",
        "c = C()\nc += 2\nc += 3\nassert c.n == 5"),
    "exceptions of modules": (
        "import argparse, configparser, sqlite3\ndef f(k):\n    raise {'a': argparse.ArgumentTypeError('a'), 's': sqlite3.IntegrityError('s'), "
        "'c': configparser.NoSectionError('c')}[k]",
        "import argparse, configparser, sqlite3\nfor k, kind in (('a', argparse.ArgumentTypeError), ('s', sqlite3.IntegrityError), ('c', configparser.NoSectionError)):\n"
        "    try:\n        f(k)\n        assert False\n    except kind as e:\n        assert k in str(e)"),
    "methods of a set that is an attribute": (
        "class A:\n    def __init__(self): self.s = {1}", CASE + "    def test_a(self):\n        a = A()\n        self.assertSetEqual(a.s, {1})\n"
        "        assert a.s.issubset({1, 2})"),
    "a function for each module": (
        "def f(x): return x", CASE + "    def test_a(self): self.assertEqual(f(n), 1)\ndef setUpModule():\n    global n\n    n = 1"),
    "a decorated helper with the name of a test": (
        "def logged(f):\n    def run(*a): return f(*a)\n    return run",
        "@logged\ndef test_func(x): return x * 2\nassert test_func(2) == 4\n@logged\ndef test_data(): return 3\nassert test_data() == 3"),
    "a callback that raises twice": (
        "def retry(f, n=3):\n    for i in range(n):\n        try: return f()\n        except Exception: pass",
        "calls = []\ndef flaky():\n    calls.append(1)\n    if len(calls) == 1: raise ValueError\n    if len(calls) == 2: raise KeyError\n"
        "    return 'ok'\nassert retry(flaky) == 'ok' and len(calls) == 3"),
    "names that begin like assertions": (
        "def retry(f, n=3):\n    for i in range(n):\n        try: return f()\n        except Exception: pass",
        "failures = [0]\ndef flaky():\n    if failures[0] < 2:\n        failures[0] += 1\n        raise ValueError\n    return 'failed twice', failures[0]\n"
        "assert retry(flaky) == ('failed twice', 2)"),
    "flags": (
        "from enum import IntFlag\nclass Perm(IntFlag):\n    R = 4\n    W = 2",
        "assert int(Perm.R | Perm.W) == 6 and (Perm.R & 4) == 4"),
    "asyncio without an import": (
        "import asyncio\nasync def f(x): return x", "assert asyncio.run(f(1)) == 1"),
    "a private attribute of ones own name": (
        "class S:\n    def __init__(self): self.number = 3", "assert S().number == 3"),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_program_passes(arena, name):
    [result] = arena.sandbox.run_tests(RIGHT[name][0], [RIGHT[name][1]])
    assert result.outcome is Outcome.PASS, result


# Programs that are right, and a test that must end alike on both.
TOLD_APART = {
    "formatting by a class of Python's": (
        "from collections import UserString\nclass Name(UserString):\n    def shout(self): return Name(self.data.upper() + '!')",
        "from collections import UserString\nclass Name(UserString):\n    def shout(self): return Name(self.data.upper() + '!' * len('x'))",
        "n = Name('a')\nassert str(n.shout()) == 'A!'\nassert 'len' not in str(Name('{0.shout.__func__.__code__.co_names}').format(n))"),
    "a function that the program imports": (
        "from decimal import getcontext\ndef f(x): return x", "def f(x): return x",
        "try: getcontext().prec = 3\nexcept NameError: pass\nassert f(1) == 1"),
    "a class that the program imports": (
        "from collections import Counter\ndef f(x): return Counter(x).most_common(1)[0][0]", "def f(x): return max(x, key=list(x).count)",
        "try: Counter.most_common = None\nexcept NameError: pass\nassert f([1, 1, 2]) == 1"),
    "text of a function": ("def f(x): return x", "import functools\n@functools.cache\ndef f(x): return x", "f(1)\nassert 'function' in str(f)"),
    "a getter": (
        "def f(x): return x[0]", "from operator import itemgetter\nf = itemgetter(0)", "f([1])\ntry: -f\nexcept TypeError: pass\nassert f([1]) == 1"),
    "an address": ("class A: pass\ndef f(): return A()", "class A: pass\na = A()\ndef f(): return a", "assert '0x' not in f'{f()}'"),
}  # fmt: skip


@pytest.mark.parametrize("name", TOLD_APART)
def test_right_programs_are_not_told_apart(arena, name):
    one, other, test = TOLD_APART[name]
    [first], [second] = (arena.sandbox.run_tests(program, [test]) for program in (one, other))
    assert first.outcome is second.outcome, (first, second)


def test_a_program_runs_no_text_for_a_test(arena):
    code = "from timeit import timeit\nfrom pickle import loads\nfrom string import Formatter\ndef f(x): return x"
    for call in (
        "timeit('1', number=1)",
        "loads(b'N.')",
        "Formatter().get_field('0.__class__', [1], {})",
    ):
        [result] = arena.sandbox.run_tests(code, [f"f(1)\n{call}"])
        assert result.outcome in (Outcome.ERROR, Outcome.UNENCODABLE), result


@pytest.mark.parametrize(
    "test",
    [
        "stdout.close()\nassert f(1) == 1", "modules.clear()\nassert f(1) == 1", "path.clear()\nassert f(1) == 1",
        "log.findCaller()\nassert f(1) == 1", "A.register(int)\nassert f(1) == 1", "FileIO(4, 'w', False)\nassert f(1) == 1",
        "TestLoader().loadTestsFromName('this')\nassert f(1) == 1", "A.p.fget\nassert f(1) == 1",
    ],
)  # fmt: skip
def test_what_a_program_imports_is_no_way_into_its_process(arena, test):
    code = (
        "import logging\nfrom abc import ABC\nfrom io import FileIO\nfrom sys import modules, path, stdout\nfrom unittest import TestLoader\n"
        "log = logging.getLogger('x')\nclass A(ABC):\n    @property\n    def p(self): return 1\ndef f(x): return x"
    )
    [result] = arena.sandbox.run_tests(code, [test])
    assert result.outcome in (Outcome.ERROR, Outcome.UNENCODABLE), result


def test_what_a_test_says_of_itself_can_be_shown(arena):
    forged = (
        "f(1)\nimport os, sys\nw = sys.modules['inside.codec.frames']\nc = sys.modules['inside.codec']\n"
        "w.write_frame(4, c.encode(('fail', 'm', 10**6000, '\\x1b[2J', 'x y', '')))\nos._exit(0)"
    )
    [result] = arena.sandbox.run_tests("def f(x): return x", [forged])
    assert len(repr(result)) < 1000
    renamed = "def g(): assert f(1) == 2\ng.__code__ = g.__code__.replace(co_name='\\x1b[2J\\ud800\\nline 5, in x')\ng()"
    [result] = arena.sandbox.run_tests("def f(x): return x", [renamed])
    assert result.outcome is Outcome.FAIL
    assert result.traceback.replace("\n", "").isprintable()
