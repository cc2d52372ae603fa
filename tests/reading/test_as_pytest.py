"""A test module is read as pytest runs it, or it is not read: pytest runs modules, and what their assertions saw is compared."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from read_texts import read

# What is read must be among what pytest saw.
CHANGED = r"""
X = [1]\n@pytest.fixture(autouse=True)\ndef change():\n    X.append(0)\ndef test_a():\n    assert f(X) == 1
X = [1]\n@pytest.fixture\ndef change():\n    X.append(0)\ndef test_a(change):\n    assert f(X) == 1
X = [1]\ndef setup_function():\n    X.append(0)\ndef test_a():\n    assert f(X) == 1
X = [1]\ndef setup_module(module):\n    module.X = [2]\ndef test_a():\n    assert f(X) == 1
X = [1]\ndef teardown_function():\n    X.append(0)\ndef test_a():\n    assert f(1) == 1\ndef test_b():\n    assert f(X) == 1
X = {1: [2]}\ndef setup_module():\n    X[1].append(3)\ndef test_a():\n    assert f(X) == 1
X = [1]\nclass TestA:\n    def setup_method(self):\n        X.append(0)\n    def test_a(self):\n        assert f(X) == 1
class TestA:\n    x = [1]\n    def setup_method(self):\n        self.x.append(0)\n    def test_a(self):\n        assert f(self.x) == 1
class TestA(unittest.TestCase):\n    x = [1]\n    def setUp(self):\n        self.x.append(0)\n    def test_a(self):\n        self.assertEqual(f(self.x), 1)
class TestA(unittest.TestCase):\n    x = [1]\n    @classmethod\n    def setUpClass(cls):\n        cls.x.append(0)\n    def test_a(self):\n        self.assertEqual(f(self.x), 1)
class TestA(unittest.TestCase):\n    x = [1]\n    def run(self, result=None):\n        self.x.append(0)\n        super().run(result)\n    def test_a(self):\n        self.assertEqual(f(self.x), 1)
class TestA(unittest.TestCase):\n    x = [1]\n    def test_b(self):\n        self.assertEqual(f(self.x), 1)\n    def test_a(self):\n        self.x.append(2)
X = [1]\ndef show():\n    assert f(X) == 1\ndef test_a():\n    X.append(2)\n    show()
@pytest.fixture\ndef n(request): return request.param + 1\n@pytest.mark.parametrize('n', [1, 2], indirect=True)\ndef test_a(n):\n    assert f(n) == 1
@pytest.fixture\ndef n(request): return request.param + 1\n@pytest.mark.parametrize('n, m', [(1, 2)], indirect=['n'])\ndef test_a(n, m):\n    assert f(n) == m
@pytest.mark.parametrize('n', [pytest.param(1, marks=pytest.mark.skip), 2])\ndef test_a(n):\n    assert f(n) == 1
@pytest.mark.parametrize('x', [[1]])\nclass TestA:\n    def test_a(self, x):\n        x.append(2)\n    def test_b(self, x):\n        assert f(x) == 1
@pytest.mark.skip\ndef test_a():\n    assert f(1) == 1
@pytest.mark.skipif(True, reason='x')\ndef test_a():\n    assert f(1) == 1
@pytest.mark.xfail(run=False)\ndef test_a():\n    assert f(1) == 1
@pytest.mark.skip\nclass TestA:\n    def test_a(self):\n        assert f(1) == 1
class TestA(unittest.TestCase):\n    @unittest.skip('x')\n    def test_a(self):\n        self.assertEqual(f(1), 1)
@unittest.skipIf(True, 'x')\nclass TestA(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(f(1), 1)
pytestmark = pytest.mark.skip\ndef test_a():\n    assert f(1) == 1
class TestA:\n    pytestmark = pytest.mark.skip\n    def test_a(self):\n        assert f(1) == 1
class TestA:\n    __test__ = False\n    def test_a(self):\n        assert f(1) == 1
def test_a():\n    assert f(1) == 1\ndef test_a():\n    assert f(2) == 2
def test_a():\n    assert f(1) == 1\ntest_a = None
def test_a():\n    assert f(1) == 1\ndel test_a
class TestA:\n    def test_a(self):\n        assert f(1) == 1\nclass TestA:\n    def test_a(self):\n        assert f(2) == 2
class TestA:\n    def test_a(self):\n        assert f(1) == 1\n    def test_a(self):\n        assert f(2) == 2
class TestA:\n    def test_a(self):\n        assert f(1) == 1\ndel TestA
def other(test): return lambda: None\n@other\ndef test_a():\n    assert f(1) == 1
def other(test): return lambda self: None\nclass TestA:\n    @other\n    def test_a(self):\n        assert f(1) == 1
def other(cls): return None\n@other\nclass TestA:\n    def test_a(self):\n        assert f(1) == 1
class Base:\n    n = 1\n    def test_a(self):\n        assert f(self.n) == 1\nclass TestA(Base):\n    n = 2
def test_a(monkeypatch):\n    monkeypatch.setattr(math, 'pi', 3)\n    assert f(math.pi) == 3
def test_a():\n    with unittest.mock.patch('math.pi', 3):\n        assert f(math.pi) == 3
@unittest.mock.patch('math.pi', 3)\ndef test_a():\n    assert f(math.pi) == 3
@unittest.mock.patch.object(math, 'pi', 3)\ndef test_a():\n    assert f(math.pi) == 3
n = 1\nif __name__ == '__main__':\n    n = 2\ndef test_a():\n    assert f(n) == 1
def test_a():\n    class TestB:\n        def test_b(self):\n            assert f(1) == 1\n    assert f(2) == 2
"""
# Read as pytest runs it, no more and no less.
READ = r"""
X = [1]\n@pytest.fixture\ndef n(): return 2\ndef test_a(n):\n    assert f(X) == 1
@pytest.fixture\ndef n(request): return 5\n@pytest.mark.parametrize('n', [1, 2], indirect=False)\ndef test_a(n):\n    assert f(n) == n
X = [1]\nclass TestA(unittest.TestCase):\n    def setUp(self):\n        self.n = 2\n    def test_b(self):\n        self.assertEqual(f(X), 1)\n    def test_a(self):\n        self.assertEqual(f([2]), 1)
@pytest.mark.parametrize('n', [1, 2])\nclass TestA:\n    def test_a(self, n):\n        assert f(n) == 1\n    @pytest.mark.parametrize('m', [3])\n    def test_b(self, n, m):\n        assert f(n, m) == 1
CASES = [([1], 1)]\nclass TestA(unittest.TestCase):\n    def test_b(self):\n        passed = 0\n        for x, n in CASES:\n            self.assertEqual(f(x), n)\n            passed += 1\n    def test_a(self):\n        self.assertEqual(f(2), 2)
CASES = [([1], 1)]\n@pytest.fixture\ndef big(): return [1]\ndef test_a():\n    for x, n in CASES:\n        assert f(x) == n\ndef test_b():\n    out = []\n    for x, n in CASES:\n        out.append(n)\n        assert f(x, 2) == n
class TestA:\n    n = 1\n    def test_a(self, n=n):\n        assert f(n) == 1\n    n = 2\n    @pytest.mark.parametrize('m', [n, n + 1])\n    def test_b(self, m):\n        assert f(m) == 1
"""

PARTS = r"""
{x}.append(5)
n = 3
from math import *
for n in (4, 5):\n    assert f(n, {x}) == 1
if __name__ == '__main__':\n    n = 6
try:\n    raise ValueError\nexcept ValueError:\n    n = 2
def h{k}():\n    {x}.append(n)\nh{k}()
def h{k}():\n    return {x}\nh{k}().append(6)
def h{k}():\n    global n\n    n = 7\nh{k}()
def h{k}(p={x}.append(7)): pass
def setup_function():\n    {x}.append(8)
@pytest.fixture(autouse=True)\ndef fix{k}():\n    global n\n    n = 9
@pytest.fixture\ndef p():\n    return {x}\ndef test_{k}(p):\n    p.append(1)
def test_{k}():\n    {x}.append(2)\n    assert f({y}, n) == 1
def test_{k}():\n    assert f([i for i in {x}], [*{y}], len({x})) == n
def test_{k}(p={x}, i=n):\n    assert f(p, i) == 1
@pytest.mark.parametrize('p', [{x}, [n]])\ndef test_{k}(p):\n    assert f(p) == 1\n    p.append(4)
@pytest.mark.parametrize('p', [{x}, {y}])\nclass Test{k}:\n    def test_a(self, p):\n        assert f(p, n) == 1
class Test{k}:\n    n = 2\n    A = [[n] for _ in (1,)]\n    def test_a(self, i=n):\n        assert f(self.A, self.n) == 1\n        assert f(n, i) == 2
class Test{k}:\n    B = {x}\n    def setup_method(self):\n        self.B.append(3)\n    def test_a(self):\n        assert f({y}, n) == self.B
class Test{k}(unittest.TestCase):\n    B = {x}\n    def test_b(self):\n        self.assertEqual(f(self.B, n), 1)\n    def test_a(self):\n        {y}.append(3)
def other(test): return lambda: None\n@other\ndef test_{k}():\n    assert f({k}) == 1
def test_a():\n    assert f({x}, {k}) == n
"""


def texts(of: str) -> list[str]:
    return [line.replace("\\n", "\n") for line in of.strip().split("\n")]


def mixed(rng: random.Random) -> str:
    """A module of some parts that bind, share and change names and containers."""
    parts = [
        part.format(x=rng.choice("AB"), y=rng.choice("AB"), k=place)
        for place, part in enumerate(rng.choices(texts(PARTS), k=4))
    ]
    return "\n".join(["A = [1]; B = [[2]]; n = 1", *parts])


MIXED = [mixed(random.Random(seed)) for seed in range(150)]
HEAD = "import json, math, recorder, unittest, unittest.mock, pytest\nsaw = []; f = recorder.recording(saw)\n"
TAIL = """
import atexit, pathlib
atexit.register(lambda: pathlib.Path(__file__).with_suffix(".json").write_text(json.dumps(saw)))
"""


@pytest.fixture(scope="module")
def seen_by_pytest(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """What the assertions of each text compare."""
    folder = tmp_path_factory.mktemp("modules")
    modules = [*texts(CHANGED + READ), *MIXED]
    paths = {text: folder / f"test_{number}.py" for number, text in enumerate(modules)}
    for text, path in paths.items():
        path.write_text(f"{HEAD}{text}\n{TAIL}")
    line = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(folder), str(folder)]  # fmt: skip
    line += ["-p", "no:cacheprovider", "-p", "no:xdist"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 5), done.stdout[-3000:]
    return {
        text: set(json.loads(path.with_suffix(".json").read_text())) for text, path in paths.items()
    }


@pytest.mark.parametrize("text", texts(CHANGED))
def test_nothing_is_read_that_pytest_does_not_make(
    text: str, seen_by_pytest: dict[str, set[str]]
) -> None:
    assert not set(read(text)[0]) - seen_by_pytest[text]


@pytest.mark.parametrize("text", texts(READ))
def test_all_is_read_that_pytest_makes(text: str, seen_by_pytest: dict[str, set[str]]) -> None:
    assert set(read(text)[0]) == seen_by_pytest[text] != set()


def test_what_chance_puts_together_is_read_so(seen_by_pytest: dict[str, set[str]]) -> None:
    found = made = 0
    for text in MIXED:
        tests, saw = set(read(text)[0]), seen_by_pytest[text]
        assert not tests - saw, text
        found, made = found + len(tests), made + len(saw)
    assert found > made / 8
