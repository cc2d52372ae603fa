"""Which texts are programs in Python 3, by their text."""

from __future__ import annotations

import sys
import warnings

import pytest

from codea1_env.problem_sets.livecodebench import PREAMBLE
from codea1_env.reading.python3 import first_python3

READS = "n = int(input())\n"
NO_PYTHON_3 = [
    # What does not compile.
    "x = 08", "x = 0777", "x = 0L", "x = 1\nprint(`x`)", "print(1 <> 2)", "raise ValueError, 'x'", "exec 'x = 1'",
    "try:\n    x = 1\nexcept ValueError, e:\n    pass", "def f((a, b)):\n    return a", "f = lambda (a, b): a", "x = ur'a'",
    "if 1:\n        x = 1\n\ty = 2", "async = 1", "return 1", "x\u00a0=\u00a01", "def f(x):\n    return (x +", "print 1", "print",
    "int main(){}", "#include <x>\nint main() { return 0; }", "public class A { }", "x = '\0'", "", "# nothing", "yield 1",
    # The statement `print`, which compiles.
    f"{READS}print(n),", f"{READS}print (n), n", f"{READS}print (n) % 2", f"{READS}print -n", f"{READS}print (n).bit_length()",
    "import sys\nprint >> sys.stderr, 1", "for i in range(3):\n    print",
    # Names of Python 2.
    "print(reduce(max, [1]))", "print(unicode(1))", "def f():\n    return long(1)", "print(raw_input())", "for i in xrange(3): pass",
    "print(sorted([1], cmp))", "print(unichr(3))", "print(isinstance('', basestring))", "from math import *\nprint(reduce(max, [1]))",
    "def f():\n    return sorted([1], cmp=g)\ndef g(a, b):\n    return 0", "[2, 1].sort(cmp=lambda a, b: a - b)", "print(undefined)",
    "d = {}\nprint(d.has_key(1))", "for k, v in {}.iteritems(): pass", "def f(d):\n    return d.itervalues()",
    "import string\nprint(string.letters)", "import string\nprint(string.join(['a'], ''))", "import string as s\nprint(s.maketrans('a', 'b'))",
    "import sys\nx = sys.maxint", "from itertools import izip", "import itertools\nprint(itertools.imap(int, 'a'))", "import Queue",
    "from string import maketrans", "import cStringIO, sys", "from fractions import gcd", "while True:\n    try:\n        n = raw_input()\n    except EOFError:\n        break",
    "while True:\n    try:\n        n = raw_input()\n        print(n)\n    except:\n        break",
    # Values that are no lists any more.
    "x = map(int, input().split())[0]", "print(filter(None, [1])[0])", "x = map(int, input().split())\nx.sort()\nprint(x)",
    "x = map(int, input().split())\nprint(x[0])", "x = map(int, input().split())\nprint(len(x))", "x = zip([1], [2])\nprint(x[0])",
    "x = range(5)\nx[0] = 1", "x = range(5)\nx.remove(3)", "range(3).reverse()", "print([1] + range(3))", "print(range(3) * 2)",
    "d = {}\nk = d.keys()\nk.sort()", "d = {}\nprint(d.items()[0])", "d = {}\nprint(d.keys() + [1])",
    # Input that is text.
    "n = input()\nprint(n + 1)", "n = input()\nfor i in range(n): print(i)", "for i in range(input()): pass", "n = input()\nprint(n / 2)",
    "n = input()\nprint(2 ** n)", "n = input()\nx = [0] * n", "n = input()\nwhile n > 0: break", "n = input()\nprint(n % 2)", "n = input() - 1",
]  # fmt: skip
PYTHON_3 = [
    "a, b = map(int, input().split())\nprint(a + b)", "print(1)", "print(1), exit()", "print(1), print(2)", "print(1) or print(2)",
    "x = 1\nprint(x) if x else print(2)", "print('%d' % 3)", "print = str\nprint - 1", "exit()", "quit()", "print('\\d')", "print(1 is 1)",
    "from functools import reduce\nprint(reduce(max, [1]))", "from functools import *\nprint(reduce(max, [1]))",
    "try:\n    input = raw_input\nexcept NameError:\n    pass", "try:\n    input = raw_input\nexcept:\n    pass",
    "import sys\nif sys.version_info[0] < 3:\n    input = raw_input\n    range = xrange\nelse:\n    reload = 1",
    "try:\n    import Queue\nexcept ImportError:\n    import queue as Queue", "try:\n    from itertools import izip\nexcept ImportError:\n    izip = zip",
    "xrange = range\nfor i in xrange(3): pass", "# raw_input() and xrange(3)\nprint('xrange(')", "def cmp(a, b):\n    return 0\nprint(cmp(1, 2))",
    "def f():\n    return undefined\nprint(1)", "class A:\n    def has_key(self): return 1\nprint(A().has_key())", "from unknown import *\nprint(anything)",
    "import string\nprint(string.ascii_letters)", "import sys\nprint(sys.maxsize)", "from collections import abc, deque", "import os.path as p\nprint(p.join)",
    "exec('y = 1')\nprint(y)", "print(__name__)", "class A:\n    x = __qualname__", "x = list(map(int, input().split()))\nx.sort()", "x = range(5)\nprint(x[0], len(x))",
    "x = map(int, input().split())\nx = list(x)\nx.sort()", "def f(x):\n    x.sort()\nx = map(int, [])", "for x in zip([1], [2]): print(x[0])",
    "map = lambda f, x: [f(y) for y in x]\nprint(map(int, '12')[0])", "d = {}\nprint(d.keys() - {1}, list(d.items())[0])",
    "n = input()\nn = int(n)\nprint(n + 1)", "n = input()\nprint(n + n, n * 2, n[0], len(n))", "n = input()\nprint(int(n) + 1)", "n = int(input())\nprint(n % 2)",
    "n = input()\nif n > 'a': print(n)", "match input():\n    case [*rest]: print(rest)\n    case {'a': 1, **more}: print(more)\n    case str() as s: print(s)",
    "if (n := int(input())) > 1: print(n)", "for _ in range(int(input())): print(_)", "def f(a, *b, c=1, **d): return a, b, c, d", "import a.b\nprint(a)",
    "try:\n    print(1)\nexcept ValueError as error:\n    print(error)", "print([x for x in range(3)])", "x: int = 1\nprint(x)", "async def f():\n    await g()",
]  # fmt: skip


@pytest.mark.parametrize("text", NO_PYTHON_3)
def test_what_is_no_python_3(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert first_python3([text], "") == -1


@pytest.mark.parametrize("text", PYTHON_3)
def test_what_is_python_3(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert first_python3([text], "") == 0


@pytest.mark.skipif(sys.version_info < (3, 12), reason="no Python of this version")
def test_parameters_of_types_are_bound() -> None:
    assert first_python3(["class A[T, *U, **V]:\n    x: T | U | V\ntype B[X] = X\nb: B"], "") == 0


def test_what_is_given_binds_names() -> None:
    text = "class Solution:\n    x = reduce(max, [1]), gcd(1, 2), deque()\n    y: List[int] = sys.maxsize"
    assert first_python3([text], "") == -1
    assert first_python3([text], PREAMBLE) == 0
    assert first_python3(["print(string.letters)", "print(unicode(1))", "print(cmp(1, 2))"], PREAMBLE) == -1  # fmt: skip


def test_the_first_is_taken() -> None:
    assert first_python3(["print 1", "print(1)", "print(2)"], "") == 1
    assert first_python3([], "") == -1
