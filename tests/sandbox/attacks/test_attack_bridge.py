"""What a red team found in the bridge between tests and programs: programs that won without solving, and right ones that lost."""

from __future__ import annotations

import pytest

from codea1_env.sandbox import Outcome

# A wrong program, and a test that it won.
WON = {
    "a context manager suppresses assertions": (
        "class Db:\n    def __enter__(self): return self\n    def __exit__(self, *details): return True\n    def count(self): return 99",
        "with Db() as db:\n    assert db.count() == 1",
    ),
    "and an asynchronous one": (
        "class Db:\n    async def __aenter__(self): return self\n    async def __aexit__(self, *details): return True\n    def count(self): return 99",
        "import asyncio\nasync def main():\n    async with Db() as db:\n        assert db.count() == 1\nasyncio.run(main())",
    ),
    "a method returns the object, which orders": (
        "class Cart:\n    def total(self): return self\n    def __ge__(self, other): return True\n    __le__ = __ge__",
        "c = Cart()\nassert 90 <= c.total() <= 100",
    ),
    "a class under a second name": (
        "class Node:\n    def __init__(self, *a): pass\n    def __gt__(self, other): return True\n    __lt__ = __gt__\nsearch = Node",
        "n = Node(1)\nassert 3 < search([1, 2]) < 5",
    ),
    "a class as an attribute": (
        "class Calc:\n    def __init__(self, *a): self.add = Calc if not a else None\n    def __gt__(self, other): return True\n    __lt__ = __gt__",
        "c = Calc()\nassert 3 < c.add(1, 2) < 5",
    ),
    "a method compares": (
        "class Any:\n    def issubset(self, other): return True\ndef f(x): return Any()",
        "assert f(1).issubset({1, 2})",
    ),
    "unittest compares by a method": (
        "class Any:\n    def difference(self, other): return []\ndef f(x): return Any()",
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertSetEqual(f(1), {1, 2})",
    ),
    "a derived type says what it starts with": (
        "class S(str):\n    def startswith(self, *a): return True\ndef f(x): return S('no')",
        "assert f(1).startswith('Hello')",
    ),
    "a decorator that never calls the test": (
        "def timer(f): return lambda: None\ndef add(a, b): return 0",
        "@timer\ndef test_add():\n    assert add(1, 2) == 3\nadd(1, 2)",
    ),
    "a decorator that swallows": (
        "def retry(f):\n    def run():\n        try: f()\n        except BaseException: pass\n    return run\ndef add(a, b): return 0",
        "@retry\ndef checks():\n    assert add(1, 2) == 3\nchecks()",
    ),
    "another name of Exception": (
        "NegativeError = Exception\ndef f(x): return x",
        "try:\n    f(-1)\n    assert False\nexcept NegativeError:\n    pass",
    ),
    "and as an attribute": (
        "class Stack:\n    EmptyError = AssertionError\n    def pop(self): return None",
        "s = Stack()\ntry:\n    s.pop()\n    assert False\nexcept Stack.EmptyError:\n    pass",
    ),
    "the test's own method is replaced": (
        "class Subject:\n    def attach(self, o): o.assertEqual = lambda *a: None",
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        Subject().attach(self)\n        self.assertEqual(1, 2)",
    ),
    "a set that is emptied in place": (
        "class S(set):\n    def __isub__(self, other):\n        self.clear()\n        return self\ndef f(x): return S({9})",
        "missing = f(3)\nmissing -= {1, 2, 3}\nassert not missing",
    ),
    "a loop that a coroutine ends": (
        "class Results:\n    def __init__(self, xs): pass\n    def __aiter__(self): return self\n"
        "    async def __anext__(self): return 1\n    async def get(self): raise StopAsyncIteration",
        "import asyncio\nasync def numbers(r):\n    while True: yield await r.get()\nasync def main():\n"
        "    async for x in numbers(Results([1])): assert x == 5\n    assert False\nasyncio.run(main())",
    ),
    "a context manager, and an answer that raises": (
        "class C:\n    def __enter__(self): return self\n    def __exit__(self, *a): return True\n    def get(self, k): raise KeyError(k)",
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        with C() as c:\n            self.assertEqual(c.get('a'), 1)",
    ),
    "and an assert statement of several lines": (
        "class C:\n    def __enter__(self): return self\n    def __exit__(self, *a): return True\n    def get(self, k): return []",
        "with C() as c:\n    assert (\n        c.get('a')\n        [0] == 1\n    )",
    ),
    "a context manager that raises instead": (
        "class C:\n    def __enter__(self): return self\n    def __exit__(self, *a): raise ValueError('x')\n    def get(self): return None",
        "try:\n    with C() as c:\n        assert c.get() == 1\n        raise ValueError('rollback')\nexcept ValueError:\n    pass",
    ),
    "a callback whose answer raises": (
        "def each(xs, cb):\n    for x in xs:\n        try: cb(x)\n        except BaseException: pass\ndef square(x): raise KeyError(x)",
        "def check(x):\n    assert square(x) == x * x\neach([1, 2], check)",
    ),
    "a callback's assertion, and another one": (
        "def each(xs, cb):\n    for x in xs:\n        try: cb(x, 0)\n        except BaseException: pass\ndef f(x):\n    assert x >= 0",
        "def check(x, sq):\n    assert sq == x * x\neach([2], check)\ntry:\n    f(-1)\nexcept AssertionError:\n    pass",
    ),
    "classes of exceptions in a tuple": (
        "InvalidInput = (Exception,)\ndef f(x): return x",
        "try:\n    f(-1)\n    assert False\nexcept InvalidInput:\n    pass",
    ),
    "an object that was there before": (
        "class N:\n    def __lt__(s, o): return True\n    __gt__ = __lt__\nn = N()\nclass V:\n    k = 0\n    def __new__(cls):\n        V.k += 1\n"
        "        return n if V.k == 2 else object.__new__(cls)\n    def norm(self): return n",
        "a = V(); d = a.norm(); b = V()\nassert 4.9 < d < 5.1",
    ),
    "the difference of two objects": (
        "class N:\n    def __lt__(s, o): return True\n    __gt__ = __lt__\nclass Date:\n    def __sub__(s, o): return N()",
        "d = Date() - Date()\nassert 3 < d < 5",
    ),
    "a function with a name in capitals": (
        "class N:\n    def __lt__(s, o): return True\n    __gt__ = __lt__\ndef Fib(n): return N()",
        "assert 50 < Fib(10) < 60",
    ),
    "a class that everything is an instance of": (
        "class M(type):\n    def __instancecheck__(cls, x): return True\nclass MyError(metaclass=M): pass\ndef f(x): return x",
        "try:\n    f(-1)\n    assert False\nexcept Exception as e:\n    assert isinstance(e, MyError)",
    ),
    "constants are no calls": ("TABLE = [1, 2]\ndef f(x): return x", "assert TABLE == [1, 2] and len(TABLE) == 2 and 1 in TABLE"),
    "results of unittest that nobody reads": (
        "def f(x): return 'wrong'",
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertEqual(f(3), 9)\nT('test_a').run(unittest.TestResult())",
    ),
    "coroutines that unittest does not run": (
        "def f(x): return 'wrong'",
        "import unittest\nclass T(unittest.TestCase):\n    async def test_a(self): self.assertEqual(f(3), 9)\n    def test_b(self): f(1)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WON)
def test_a_wrong_program_does_not_pass(arena, name):
    [result] = arena.sandbox.run_tests(WON[name][0], [WON[name][1]])
    assert result.outcome in (Outcome.FAIL, Outcome.ERROR, Outcome.UNENCODABLE)
    assert "not defined" not in result.message


# The same function, written in different ways, and a question that told them apart.
FUNCTIONS = {
    "def": "def f(x): return x + 1",
    "cached": "import functools\n@functools.lru_cache\ndef f(x): return x + 1",
    "partial": "import functools\nf = functools.partial(lambda a, x: x + a, 1)",
    "bound method": "class C:\n    def g(self, x): return x + 1\nf = C().g",
}
QUESTIONS = (
    "class M:\n    m = f\nassert (lambda: M().m.__class__)() and f(1) == 2", "import copy\nassert copy.copy(f) is f and f(1) == 2",
    "f(1)\nwith f: pass", "f(1)\nlen(f)", "f(1)\n3 in f", "f(1)\nf + 1", "assert hash(f) == hash(f) and f(1) == 2",
    "assert 'lru' not in repr(f) and f(1) == 2", "f(1)\nf.cache_info()", "f(1)\nf.func", "f(1)\nassert type(f)",
    "class M:\n    m = f\nM().m()\nf(1)", "f(1)\nf.__name__",
)  # fmt: skip


@pytest.mark.parametrize("question", QUESTIONS)
def test_how_a_function_is_made_is_not_told(arena, question):
    found = {name: arena.one(code, question) for name, code in FUNCTIONS.items()}
    assert len({outcome for outcome, _ in found.values()}) == 1, found


RIGHT = {
    "the solution is a class of Python's": ("f = set", "for x in [1]:\n    assert f([x, x]) == {x}"),
    "a class of the library": ("from collections import deque\nQueue = deque", "q = Queue([1])\nassert list(q) == [1]"),
    "exceptions of a class made in the call": (
        "def f(x):\n    class Bad(Exception): pass\n    raise Bad(x)",
        "for i in range(1500):\n    try: f(i)\n    except Exception as e: assert e.args == (i,)",
    ),
    "annotations": (
        "class Node:\n    def __init__(self, v): self.v = v",
        "from typing import *\nclass P(NamedTuple):\n    n: Optional[Node]\ndef make(v: int) -> Union[Node, List[Node], None]: return Node(v)\n"
        "assert make(1).v == 1 and P(make(2)).n.v == 2",
    ),
    "attributes with names like those of frames": (
        "class N:\n    def __init__(self): self.f_cost, self.co_author, self.func_total = 1, 2, 3",
        "n = N()\nassert (n.f_cost, n.co_author, n.func_total) == (1, 2, 3)",
    ),
    "a large constant": ("TEXT = 'x' * 400_000\ndef f(x): return x", "for x in [1]:\n    assert f(x) == 1 and len(TEXT) == 400_000"),
    "text of a product": (
        "class Money:\n    def __init__(self, n): self.n = n\n    def __mul__(self, k): return Money(self.n * k)\n    def __str__(self): return f'${self.n}'",
        "assert str(Money(2) * 3) == '$6'",
    ),
    "a test's own dictionary": (
        "def f(d): return sorted(d.keys()), d.get('z', 5)",
        "class D(dict): pass\nassert f(D(a=1)) == (['a'], 5)",
    ),
    "a thread that calls back": (
        "import threading\nclass Bus:\n    def __init__(self, f): self.f, self.t = f, []\n"
        "    def publish(self, x):\n        t = threading.Thread(target=self.f, args=(x,)); self.t.append(t); t.start()\n"
        "    def flush(self):\n        for t in self.t: t.join()",
        "got = []\nb = Bus(got.append)\nfor i in range(20): b.publish(i)\nb.flush()\nassert sorted(got) == list(range(20))",
    ),
    "what is compared with Ellipsis": ("def f(x): return ... if x else NotImplemented", "for x in [1]:\n    assert f(x) is ... and f(0) is NotImplemented"),
    "a field that is called as a method of sets": (
        "from collections import namedtuple\nDiff = namedtuple('Diff', 'union rest')\ndef f(a, b): return Diff(a | b, a & b)",
        "assert f({1}, {2}).union == {1, 2}",
    ),
    "sets that are joined": (
        "class UF:\n    def __init__(self, n): self.p = list(range(n))\n    def union(self, a, b): self.p[a] = b\n    def find(self, a): return self.p[a]\ndef make(n): return UF(n)",
        "u = make(3)\nu.union(0, 1)\nassert u.find(0) == 1",
    ),
    "exceptions of two kinds, and another name of Exception": (
        "class Two(KeyError, AttributeError): pass\nBase = Exception\nclass Derived(Base): pass\ndef f(x):\n    raise Two(1) if x else Derived(2)",
        "for x, kind in ((1, AttributeError), (1, KeyError), (0, Derived), (0, Base)):\n    try: f(x)\n    except kind: pass\n    else: assert False",
    ),
    "the object that a context manager gives": (
        "class C:\n    def __enter__(self): return self\n    def __exit__(self, *a): return False\n    def __contains__(self, x): return x == 1",
        "c = C()\nwith c as d:\n    assert d is c and 1 in d and 2 not in c",
    ),
    "a context manager that suppresses": (
        "class S:\n    def __enter__(self): return self\n    def __exit__(self, kind, *a): return kind is KeyError\ndef get(k): raise KeyError(k)",
        "with S():\n    get(1)\nwith S():\n    raise KeyError(2)",
    ),
    "an assertion of a callback that comes back": (
        "def each(xs, cb):\n    for x in xs: cb(x)\ndef again(xs, cb):\n    try: each(xs, cb)\n    except AssertionError as e: raise e",
        "def check(x): assert x == 1\nfor run in (each, again):\n    try: run([1, 2], check)\n    except AssertionError: pass\n    else: raise ValueError",
    ),
    "bound methods": ("class C:\n    def m(self): return 1", "c = C()\nassert c.m == c.m and c.m() == 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_program_passes(arena, name):
    [result] = arena.sandbox.run_tests(RIGHT[name][0], [RIGHT[name][1]])
    assert result.outcome is Outcome.PASS, result.message


def test_exceptions_with_arguments_of_ones_choice_end_no_process(arena):
    """An absurd place in a UnicodeDecodeError crashed CPython 3.11.7."""
    code = "def f(callback):\n    try: callback()\n    except Exception as error: return str(error)[:0]"
    for error in (
        "UnicodeDecodeError('utf-8', b'x', 10**9, 10**9 + 1, 'no')", "UnicodeEncodeError('utf-8', 'x', -5, 7, 'no')",
        "__import__('json').JSONDecodeError('no', '', 10**9)", "OSError(2, 'no', 'name', None, 'other')",
        "StopIteration(5)", "ImportError('no', name='x')",
    ):  # fmt: skip
        test = f"def callback():\n    raise {error}\nassert f(callback) in ('', None)"
        outcome, message = arena.one(code, test)
        assert outcome in (Outcome.PASS, Outcome.ERROR), (error, message)
