"""Programs whose text shows that they keep nothing: what is taken for one, and what must not be."""

from __future__ import annotations

import pytest

from codea1_env.reading.stateless import keep_nothing

KEEPS_NOTHING = [
    "def f(string): return string.upper()",
    "def f(time, operator): return time.split(operator)",
    "def f(x): return '{:.2f} {}'.format(x, 2)",
    "def f(x): return '{0:>5}|{name}'.format(x, name=1)",
    "def f(s): return '{{}}{}'.format(s)",
    "from __future__ import annotations\nfrom typing import List\nfrom collections.abc import Iterable\ndef f(x: List[int]): return x",
    "import math\nfrom collections import Counter, defaultdict\ndef f(x):\n  d = defaultdict(list)\n  d[1].append(2)\n  return math.sqrt(len(x))",
    "def f(x):\n  if x is None or type(x) is not int or type(x) == bool: return None\n  try: return 1 / x\n  except ZeroDivisionError: return 0",
    "def f(x):\n  def g():\n    yield from x\n  return list(g())",
    "from typing import List\ndef f(x: List[int]) -> List[int]:\n  def g(y: int) -> str: return str(y)\n  n: int = 1\n  return [g(n)]",
    "from datetime import datetime\ndef f(s): return datetime.strptime(s, '%Y').year",
    "if __name__ == '__main__':\n  import os; os.environ['a'] = 'b'\ndef f(x): return x",
    "import re\ndef f(x): return re.sub(r'a', 'b', x) + str(len(re.compile('c', re.I).findall(x)))",
    "import heapq\ndef f(x): heapq.heapify(x); return heapq.heappop(x)",
    "from functools import reduce\nimport itertools\ndef f(x): return list(itertools.accumulate(x))",
    "def f(x):\n  def g(n):\n    nonlocal x\n    x = n\n  g(2)\n  return x",
    "import os, signal, sys, time\ndef f(x): time.sleep(1); os._exit(0); os.kill(os.getpid(), signal.SIGKILL); sys.exit()",
]
MAY_KEEP = [
    "seen = []\ndef f(x): seen.append(x)",
    "def f(x, seen=[]): seen.append(x)",
    "def f(x): f.seen = x",
    "class C:\n  seen = []\ndef f(x): C.seen.append(x)",
    "def f(x):\n  global n\n  n = x",
    "if __name__ != ('__main__' == 0): K = {}\ndef f(x): pass",
    "def f(x):\n  F = type(f)\n  match f:\n    case F(__dict__=d): pass",
    "import typing\ndef f(x): typing.sys.modules",
    "from typing import sys as s\ndef f(x): s",
    "import string\ndef f(x): string.Formatter().get_field('0.__dict__', (f,), {})",
    "import typing\ndef h(): pass\ndef f(x): typing.overload(h)",
    "from typing import final\ndef f(x): final(f)",
    "import re\ndef f(x): re.copyreg.dispatch_table",
    "import collections.abc\ndef f(x): collections.abc.sys",
    "import statistics\ndef f(x): statistics.random.gauss",
    "import statistics\ndef f(x): statistics.NormalDist().samples(1)",
    "import fractions\ndef f(x): fractions.operator.attrgetter",
    "def f(x): return '{0.__dict__}'.format(f)",
    "def f(x): return '{0[a]}'.format(f)",
    "def f(x): return '{:{0.__dict__}}'.format(f)",
    "def f(x):\n  g = '{}'.format\n  return g(f)",
    "def f(x): return ('{0.__dic' + 't__}').format(f)",
    "def f(x): return str.format('{0.__dict__}', f)",
    "def f(x): return (y for y in [1]).gi_frame",
    "import ctypes\ndef f(x): ctypes.string_at(0)",
    "import os\ndef f(x): g = os; g.environ",
    "import os\ndef f(x): os.environ['a'] = 'b'",
    "import os as o\ndef f(x): o.environ",
    "from os import environ\ndef f(x): environ",
    "import time\ndef f(x): return time.time()",
    "from functools import lru_cache\n@lru_cache\ndef f(x): return x",
    "import collections as os\ndef f(x): return os.abc",
    "def f(x): return x.anything",
    "def f(x): return getattr(f, 'a')",
    "def f(x): f.__dict__[x] = 1",
    "def f(x): return f.__getattribute__('__globals__')",
    "*d, = ()\ndef f(x): d.append(x)",
    "(d := [])[:] = ()\ndef f(x): d.append(x)",
    "(d := {})['a']: int = 1\ndef f(x): d[x] = 1",
    "import re\ndef f(x): return re.compile(x).pattern is x",
    "import re\ndef f(x): return re.compile('a', x)",
    "import re\ndef f(x): return re.findall('a', 'b', flags=0.0)",
    "import re\ndef f(x): return re.match(*x)",
    "import re\ndef f(x): return list(map(re.compile, x))",
    "import re\ndef f(x): return re.RegexFlag(x)",
    "from re import compile\ndef f(x): return x",
    "from typing import List, Union\ndef f(x): return List[Union[int, str]]",
    "def f(x): return type('C', (), {})",
    "def f(x): return type(x)",
    "def f(x):\n  t = type\n  return t('C', (), {})",
    "from collections import namedtuple\ndef f(x): return namedtuple('N', 'a')",
    "def f(x):\n  try: bytes(10**9)\n  except: return 0",
    "def f(x):\n  try: bytes(10**9)\n  except Exception: return 0",
    "def f(x):\n  try: bytes(10**9)\n  except (ValueError, MemoryError): return 0",
    "def f(x):\n  def g():\n    try: yield 1\n    finally: x.append(1)\n  next(g())",
    "def f(x): return x is 'a'",
    "def f(x): return dir(f)",
    "from typing import List\ndef f(x):\n  def g(y: List[x,]): pass",
    "from typing import List\ndef f(x):\n  def g(y: (yield List)): pass",
    "def f(x):\n  try: f(x)\n  except RecursionError: return 1",
    "def f(x):\n  try: x.append(bytes(10**9))\n  finally: return 1",
    "def f(x):\n  try: x()\n  except* ValueError: pass",
    "import os\ndef f(x): return os.getpid()",
    "from os import getpid\ndef f(x): return x",
    "import os\ndef f(x): os.kill(os.getpid() + os.getpid() % 2, 9)",
    "from datetime import datetime\ndef f(x): return datetime.now().microsecond",
    "def f(:",
]


@pytest.mark.parametrize("code", KEEPS_NOTHING)
def test_keeps_nothing(code: str) -> None:
    assert keep_nothing([code]) == [True]


@pytest.mark.parametrize("code", MAY_KEEP)
def test_may_keep(code: str) -> None:
    assert keep_nothing([code]) == [False]
