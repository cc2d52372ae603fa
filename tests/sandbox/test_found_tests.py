"""Tests that a test program only defines are run; tests that never call the program do not pass."""

from __future__ import annotations

import pytest

from codea1_env.sandbox import Job, Limits, Outcome, Sandbox
from codea1_env.sandbox.results import NEVER_CALLED

PASS, FAIL, ERROR = Outcome.PASS, Outcome.FAIL, Outcome.ERROR
RIGHT, WRONG = "def f(x): return x + 1", "def f(x): return x"
UNITTEST = """import unittest
class Checks(unittest.TestCase):
    @classmethod
    def setUpClass(cls): cls.two = 2
    def setUp(self): self.one = 1
    def test_f(self):
        self.assertEqual(f(self.one), self.two)
        del self.one
    def test_g(self):
        with self.subTest('again'):
            self.assertEqual(f(self.one), self.two)
"""
FOUND = {
    "called where failures are only counted": (
        "def test_a():\n    assert f(1) == 2\ndef test_b():\n    f(1)\nfailed = 0\n"
        "for test in (test_a, test_b):\n    try:\n        test()\n    except AssertionError:\n        failed += 1"
    ),
    "called by a function that catches": (
        "def test_a():\n    assert f(1) == 2\ndef main():\n    try:\n        test_a()\n"
        "    except AssertionError as error:\n        print(error)\nmain()"
    ),
    "methods called where failures are only printed": (
        "class TestF:\n    def test_a(self):\n        assert f(1) == 2\nfor name in ('test_a',):\n    try:\n"
        "        getattr(TestF(), name)()\n    except:\n        print(name)"
    ),
    "decorated, another one is called": (
        "import functools\ndef quiet(test):\n    @functools.wraps(test)\n    def run(): return test()\n    return run\n"
        "@quiet\ndef test_a():\n    f(1)\ntest_a()\n@quiet\ndef test_f():\n    assert f(1) == 2"
    ),
    "made by a function, another one is called": (
        "def make(x, y):\n    def test():\n        assert y is None or f(x) == y\n        f(x)\n    return test\n"
        "test_a = make(1, None)\ntest_a()\ntest_f = make(1, 2)"
    ),
    "runTest": (
        "import unittest\nclass Checks(unittest.TestCase):\n    def runTest(self): self.assertEqual(f(1), 2)\n"
        "def test_a():\n    f(1)"
    ),
    "of a file": "import os\nassert os.path.basename(__file__) and f(1) == 2",
    "function": "def test_f():\n    assert f(1) == 2",
    "the last of two": "def test_a():\n    f(1)\n\ndef test_b():\n    assert f(1) == 2",
    "below `if`": "if True:\n    def test_f():\n        assert f(1) == 2",
    "default": "def test_f(x=1):\n    assert f(x) == 2",
    "decorated": (
        "def twice(test):\n    def run():\n        test()\n        test()\n    return run\n"
        "@twice\ndef test_f():\n    assert f(1) == 2"
    ),
    "helper with a name like a test's": (
        "def test_one(x, y):\n    assert f(x) == y\ndef test_f():\n    test_one(1, 2)"
    ),
    "hooks": (
        "seen = []\ndef setup_module(): seen.append(0)\ndef setup_function(function): seen.append(1)\n"
        "def test_a():\n    assert seen == [0, 1]\ndef test_f():\n    assert f(1) == 2 and seen == [0, 1, 1]"
    ),
    "main": "def test_f():\n    assert f(1) == 2\nif __name__ == '__main__':\n    test_f()",
    "unittest": UNITTEST,
    "unittest.main": UNITTEST + "if __name__ == '__main__':\n    unittest.main()",
    "unittest.main at once": UNITTEST + "unittest.main()",
    "runner": (
        UNITTEST + "suite = unittest.TestLoader().loadTestsFromTestCase(Checks)\n"
        "result = unittest.TextTestRunner(verbosity=2).run(suite)\n"
        "assert result.wasSuccessful() and result.testsRun == 2"
    ),
    "unittest, async": (
        "import unittest\nclass Checks(unittest.IsolatedAsyncioTestCase):\n"
        "    async def test_f(self):\n        self.assertEqual(f(1), 2)"
    ),
    "inherited": UNITTEST + "class More(Checks):\n    def test_h(self): pass",
    "skipped ones are left out": (
        UNITTEST + "    @unittest.skip('later')\n    def test_never(self): self.fail()\n"
        "    @unittest.expectedFailure\n    def test_wrong(self): self.assertEqual(f(1), 7)"
    ),
    "class": "class TestF:\n    def test_f(self):\n        assert f(1) == 2",
    "class with hooks": (
        "class TestF:\n    @classmethod\n    def setup_class(cls): cls.two = 2\n"
        "    def setup_method(self, method): self.one = 1\n"
        "    def test_f(self):\n        assert f(self.one) == self.two\n"
        "    @staticmethod\n    def test_g(): f(1)"
    ),
    "long": "def test_f():\n    assert f(1) == 2\n" + "# filling\n" * 300 + "seen = 1",
}


@pytest.mark.parametrize("name", FOUND)
def test_what_is_only_defined_is_run(sandbox: Sandbox, name: str) -> None:
    right, wrong = sandbox.run_many([Job(code, [FOUND[name]]) for code in (RIGHT, WRONG)])
    assert [(each.outcome, each.called) for each in (*right, *wrong)] == [
        (PASS, True),
        (FAIL, True),
    ]


ONCE = "runs = []\ndef test_f():\n    runs.append(1)\n    assert f(1) == 2 and len(runs) == 1\n"
RUN = {
    "called": ONCE + "test_f()",
    "called by another": ONCE + "def main():\n    test_f()\nmain()",
    "called by its place": ONCE + "[each() for name, each in list(globals().items()) if name == 'test_f']",
    "with arguments": "def test_f(x, y):\n    assert f(x) == y\ntest_f(1, 2)",
    "a method": (
        "class TestF:\n    runs = []\n    def test_f(self):\n        self.runs.append(1)\n"
        "        assert f(1) == 2 and len(self.runs) == 1\nTestF().test_f()"
    ),
    "unittest": (
        "import unittest\nruns = []\nclass T(unittest.TestCase):\n    def test_f(self):\n        runs.append(1)\n"
        "        self.assertEqual(f(1), 2)\nresult = unittest.TestResult()\n"
        "unittest.defaultTestLoader.loadTestsFromTestCase(T).run(result)\n"
        "assert result.wasSuccessful()\nclass Last(unittest.TestCase):\n"
        "    def test_runs(self): self.assertEqual(runs, [1])"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RUN)
def test_what_a_test_runs_itself_is_not_run_again(sandbox: Sandbox, name: str) -> None:
    right, wrong = sandbox.run_many([Job(code, [RUN[name]]) for code in (RIGHT, WRONG)])
    assert [each.outcome for each in (*right, *wrong)] == [PASS, FAIL]


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ("def test_f(x, *, y):\n    assert f(x) == y", "test_f needs x, y, and there are no fixtures"),
        ("class TestF:\n    def test_f(self, x): f(1)", "test_f needs x, and there are no fixtures"),
        ("f(1)\nasync def test_f():\n    assert f(1) == 2", "test_f is a coroutine or a generator"),
        ("f(1)\ndef test_f():\n    yield f(1)", "test_f is a coroutine or a generator"),
        ("import unittest\ndef test_f():\n    f(1)\n    raise unittest.SkipTest('no')", "SkipTest: no"),
        ("import pytest\ndef test_f():\n    assert f(1) == 2", "No module named 'pytest'"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_said(sandbox: Sandbox, test: str, message: str) -> None:
    [result] = sandbox.run_tests(RIGHT, [test])
    assert result.outcome is ERROR
    assert message in result.message


@pytest.mark.parametrize(
    "test",
    [
        "",
        "assert True",
        "assert 1 == 1",
        "assert callable(f)",
        "def check():\n    assert f(1) == 2",
        "def test_f():\n    pass",
        "class TestF:\n    def __init__(self): pass\n    def test_f(self): assert f(1) == 3",
        "class TestF:\n    __test__ = False\n    def test_f(self): assert f(1) == 3",
        "class Helper:\n    def test_f(self): assert f(1) == 3",
        "import unittest\nclass T(unittest.TestCase):\n    @unittest.skip('')\n    def test_f(self): f(1)",
        "if __name__ == '__main__':\n    assert f(1) == 3",
    ],
)
def test_a_test_that_never_calls_the_program_does_not_pass(sandbox: Sandbox, test: str) -> None:
    [result] = sandbox.run_tests(RIGHT, [test])
    assert (result.outcome, result.message, result.called) == (ERROR, NEVER_CALLED, False)


def test_a_program_cannot_claim_to_have_been_called(sandbox: Sandbox) -> None:
    claim = "import os\nos.write(4, b'\\x06\\0\\0\\0called')\ndef f(x): return x"
    assert not any(each.passed for each in sandbox.run_tests(claim, ["assert True", "x = f\nx"]))
    late = (
        "import os, threading, time\ndef claim():\n    time.sleep(0.2)\n    os.write(4, b'\\x06\\0\\0\\0called')\n"
        "threading.Thread(target=claim).start()\ndef f(x): return x"
    )  # behind what says how loading ended
    [result] = sandbox.run_tests(
        late, ["f\nfor _ in range(10 ** 7): pass"], limits=Limits(call_cpu_time=9)
    )
    assert not result.passed


HOSTILE = {
    "metaclass": (
        "class Meta(type):\n    def __getattribute__(cls, name): raise SystemExit(0)\n"
        "class TestF(metaclass=Meta):\n    def test_f(self): f(1)",
        Outcome.EXITED,
    ),
    "subclass check": (
        "class Meta(type):\n    def __instancecheck__(cls, x): while_true()\n    def mro(cls): return [cls, object]\n"
        "class TestF(metaclass=Meta):\n    def test_f(self): assert f(1) == 3",
        FAIL,
    ),
    "hangs": (
        "class TestF:\n    @property\n    def __init__(self): pass\nclass TestG:\n    def __getattribute__(self, name):\n"
        "        while True: pass\n    def test_f(self): f(1)",
        Outcome.TIMEOUT,
    ),
    "lies about its name": (
        "def test_f():\n    assert f(1) == 3\ntest_f.__name__ = test_f.__qualname__ = 'nothing'", FAIL,
    ),
    "lies about its parameters": (
        "def test_f():\n    assert f(1) == 3\ntest_f.__signature__ = 5", ERROR,
    ),
    "wraps itself": ("def test_f():\n    assert f(1) == 3\ntest_f.__wrapped__ = test_f", FAIL),
    "strange keys": (
        "class Name(str):\n    def __hash__(self): return hash('test_f')\n    def __eq__(self, other): raise OSError\n"
        "def test_f():\n    assert f(1) == 3\nglobals()[1] = globals()[Name('x')] = 2",
        ERROR,
    ),
    "grows while it is run": ("def test_f():\n    globals()['test_g'] = test_f\n    assert f(1) == 3", FAIL),
    "ends the profiler": ("import sys\nsys.setprofile(None)\ndef test_f():\n    assert f(1) == 3", FAIL),
    "a message without end": ("def test_f():\n    f(1)\n    raise OSError('x' * 10 ** 6)", ERROR),
}  # fmt: skip


def test_hostile_definitions_harm_only_themselves(sandbox: Sandbox) -> None:
    limits = Limits(call_cpu_time=0.3, call_wall_time=2.0)
    tests = [test for test, _ in HOSTILE.values()]
    results = sandbox.run_tests(RIGHT, [*tests, "assert f(1) == 2"], limits=limits)
    found = {name: each.outcome for name, each in zip(HOSTILE, results, strict=False)}
    assert found == {name: outcome for name, (_, outcome) in HOSTILE.items()}
    assert results[-1].passed


PARAMETERS = {
    "rows": "@pytest.mark.parametrize('x, y', [(1, 2), pytest.param(3, 4, id='three')])\ndef test_f(x, y): assert f(x) == y",
    "one name": "@pytest.mark.parametrize('x', [1, pytest.param(2)])\ndef test_f(x): assert f(x) == x + 1",
    "two tables": (
        "@pytest.mark.parametrize('x', [1, 2])\n@pytest.mark.parametrize(['y', 'z'], [(1, 1), (2, 2)])\n"
        "def test_f(x, y, z): assert f(x) + y == x + 1 + z"
    ),
    "method": (
        "class TestF:\n    @pytest.mark.parametrize('x', [{'a': 1}])\n"
        "    def test_f(self, x): assert f(x['a']) == 2"
    ),
    "raises": "def test_f():\n    assert f(1) == 2\n    with pytest.raises(TypeError): f('a')",
}  # fmt: skip


def test_pytest_where_it_is_allowed() -> None:
    fixture = (
        "import pytest\n@pytest.fixture\ndef one(): return 1\ndef test_f(one): assert f(one) == 2"
    )
    tests = [f"import pytest\n{test}" for test in PARAMETERS.values()]
    with Sandbox(packages=("pytest",)) as sandbox:
        right, wrong = sandbox.run_many([Job(code, [*tests, fixture]) for code in (RIGHT, WRONG)])
    assert [each.outcome for each in right] == [PASS] * len(tests) + [ERROR]
    assert [each.outcome for each in wrong] == [FAIL] * len(tests) + [ERROR]
    assert right[-1].message == "test_f needs one, and there are no fixtures"


@pytest.mark.parametrize(
    "text",
    [
        "def check(): assert f(1) == 2\nf(1)\ntest_check = check",
        "f(1)\ntest_a = lambda: exec('assert f(1) == 2', {'f': f})",
        "def make(n):\n    def test(): assert f(n) == n + 1\n    return test\nf(1)\ntest_a = make(1)",
        "import unittest\ndef check(self): self.assertEqual(f(1), 2)\nf(1)\n"
        "TestT = type('TestT', (unittest.TestCase,), {'test_a': check})",
        "def test_a(): f(1)\ntest_a()\ndef test_a(): assert f(1) == 2",
        "import unittest\nf(1)\ndef run():\n    class T(unittest.TestCase):\n"
        "        def test_a(self): self.assertEqual(f(1), 2)\n"
        "    unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(T))\nrun()",
        "import unittest\ndef check(): assert f(1) == 2\n"
        "unittest.TextTestRunner().run(unittest.FunctionTestCase(check))",
    ],
)
def test_tests_that_are_made_in_other_ways(sandbox: Sandbox, text: str) -> None:
    """Somebody who had not written this passed each of them with a wrong program."""
    wrong, right = (
        sandbox.run_tests(f"def f(n): return {value}", [text])[0].outcome
        for value in ("n", "n + 1")
    )
    assert (wrong, right) == (Outcome.FAIL, Outcome.PASS)


def test_classes_of_the_program_are_no_tests_of_the_text(sandbox: Sandbox) -> None:
    code = "class TestThing:\n    def test_a(self): raise ValueError\n    def size(self): return 1"
    (result,) = sandbox.run_tests(code, ["made = TestThing()\nassert made.size() == 1"])
    assert result.outcome is Outcome.PASS


@pytest.fixture(scope="module")
def of_pytest():
    with Sandbox(packages=("pytest",)) as sandbox:
        yield sandbox


PYTEST = {
    "named arguments": "@pytest.mark.parametrize(argnames='a,b', argvalues=[(1, 2)])\ndef test_a(a, b): assert f(a) == b",
    "one name in a list": "@pytest.mark.parametrize(['a'], [[1], [2]])\ndef test_a(a): assert f(a) == a + 1",
    "one name in a tuple": "@pytest.mark.parametrize(('a',), [(1,), (2,)])\ndef test_a(a): assert f(a) == a + 1",
    "one name": "@pytest.mark.parametrize('a', [1, 2])\ndef test_a(a): assert f(a) == a + 1",
    "a class": "@pytest.mark.parametrize('a', [1, 2])\nclass TestA:\n    def test_a(self, a): assert f(a) == a + 1",
    "a module": "pytestmark = pytest.mark.parametrize('a', [1, 2])\ndef test_a(a): assert f(a) == a + 1",
    "a skip beside a test": "@pytest.mark.skip\ndef test_a(): assert f(1) == 5\ndef test_b(): assert f(1) == 2",
    "a condition": "@pytest.mark.skipif(True, reason='x')\ndef test_a(): assert f(1) == 5\ndef test_b(): assert f(1) == 2",
    "an expected failure": "@pytest.mark.xfail\ndef test_a(): assert f(1) == 5\ndef test_b(): assert f(1) == 2",
    "a method": "class TestA:\n    @pytest.mark.skip\n    def test_a(self): assert f(1) == 5\n    def test_b(self): assert f(1) == 2",
}


@pytest.mark.parametrize("name", PYTEST)
def test_marks_of_pytest(of_pytest: Sandbox, name: str) -> None:
    [right], [wrong] = (
        of_pytest.run_tests(f"def f(x): return x + {n}", [f"import pytest\n{PYTEST[name]}"])
        for n in (1, 2)
    )
    assert (right.outcome, wrong.outcome) == (Outcome.PASS, Outcome.FAIL)


def test_only_skipped_tests_are_no_pass(of_pytest: Sandbox) -> None:
    test = "import pytest\n@pytest.mark.skip\ndef test_a(): assert f(1) == 2"
    [result] = of_pytest.run_tests("def f(x): return 2", [test])
    assert result.outcome is Outcome.ERROR
    assert not result.called


@pytest.mark.parametrize(
    "test",
    ["with pytest.raises(ValueError): f(1)", "if f(1) != 2: pytest.fail('x')"],
)
def test_what_pytest_calls_a_failure_is_one(of_pytest: Sandbox, test: str) -> None:
    [result] = of_pytest.run_tests("def f(x): return 1", [f"import pytest\n{test}"])
    assert result.outcome is Outcome.FAIL
