"""Test files run whole, as pytest runs them, and every verdict says that it comes from the program's process."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator

import pytest

from codea1_env.sandbox import Job, Limits, Outcome, Sandbox, test_modules

PROGRAM = '''
import abc, dataclasses, logging, os, sys
log = logging.getLogger("solution")
NAMES = ["a"]
def add(a, b):
    """Add.

    >>> add(1, 2)
    3
    """
    log.warning("adding %s", a)
    return a + b
def twice(): return add(2, 2)
def shout(x): print(x); print("err", file=sys.stderr)
def ask(): return input("? ")
def read(path):
    with open(path) as file: return file.read()
def mode(): return os.environ.get("MODE", "none")
async def later(x): return x
class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...
@dataclasses.dataclass
class Point:
    x: int
    y: int = 0
if __name__ == "__main__": raise SystemExit(3)
'''

PASSING = {
    "fixtures": """
import pytest, solution
from solution import *
@pytest.fixture(scope="module")
def numbers(): return [1, 2]
@pytest.fixture(params=[1, 2], ids=["one", "two"])
def n(request): return request.param
@pytest.fixture(autouse=True)
def always(): yield
def test_n(n, numbers): assert n in numbers
@pytest.mark.parametrize("n", [5], indirect=True)
def test_indirect(n): assert n == 5
class TestClass:
    @classmethod
    def setup_class(cls): cls.z = 1
    def setup_method(self): self.y = 2
    def test_k(self): assert (self.z, self.y) == (1, 2)
def setup_module(module): module.ready = True
def test_ready(): assert ready
""",
    "output": """
import io, logging, sys, solution
from unittest.mock import mock_open, patch
def test_capsys(capsys):
    solution.shout("x")
    assert capsys.readouterr() == ("x\\n", "err\\n")
def test_caplog(caplog):
    solution.add(1, 2)
    assert caplog.records[0].levelname == "WARNING" and "adding 1" in caplog.text
def test_stdin(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("8\\n"))
    assert solution.ask() == "8"
def test_open():
    with patch("builtins.open", mock_open(read_data="hi")): assert solution.read("nothing") == "hi"
def test_recwarn(recwarn):
    import warnings; warnings.warn("x"); assert len(recwarn) == 1
""",
    "patches": """
import importlib, runpy, pytest, solution
from unittest import mock
def test_environment(monkeypatch):
    monkeypatch.setenv("MODE", "x"); assert solution.mode() == "x"
@mock.patch("solution.add", return_value=9)
def test_patch(add): assert solution.twice() == 9; add.assert_called_once_with(2, 2)
def test_reload(): solution.NAMES.append("b"); importlib.reload(solution); assert solution.NAMES == ["a"]
def test_main():
    with pytest.raises(SystemExit) as e: runpy.run_module("solution", run_name="__main__")
    assert e.value.code == 3
""",
    "introspection": """
import asyncio, doctest, inspect, pickle, threading, typing, pytest, solution
from solution import Point, Shape
def test_source():
    assert "return a + b" in inspect.getsource(solution.add) and "test_source" in inspect.getsource(test_source)
def test_doctest(): assert doctest.testmod(solution) == (0, 1)
def test_pickle(): assert pickle.loads(pickle.dumps(Point(1))) == Point(1)
def test_abstract():
    with pytest.raises(TypeError): Shape()
def test_async(): assert asyncio.run(solution.later(3)) == 3
def test_thread():
    found = []; thread = threading.Thread(target=lambda: found.append(solution.add(1, 1)))
    thread.start(); thread.join(); assert found == [2]
def test_hints(): assert typing.get_type_hints(Point)["x"] is int
""",
    "unittest": """
import io, unittest, solution
from unittest.mock import patch
class TestIt(unittest.IsolatedAsyncioTestCase):
    async def test_await(self): self.assertEqual(await solution.later(1), 1)
    def test_logs(self):
        with self.assertLogs("solution", "WARNING") as logs: solution.add(1, 2)
        self.assertIn("adding 1", logs.output[0])
    @patch("sys.stdout", new_callable=io.StringIO)
    def test_printed(self, out): solution.shout("q"); self.assertEqual(out.getvalue(), "q\\n")
if __name__ == "__main__": unittest.main()
""",
    "hypothesis": """
from hypothesis import given, settings, strategies as st
from solution import add
@settings(max_examples=20)
@given(st.integers(), st.integers())
def test_commutes(a, b): assert add(a, b) == add(b, a)
""",
    "a byte order mark": "\ufeffimport solution\ndef test_add(): assert solution.add(1, 1) == 2",
}
FOLDERS = """
import solution, tempfile
def test_tmp_path(tmp_path): (tmp_path / "a").write_text("z"); assert solution.read(tmp_path / "a") == "z"
def test_chdir(monkeypatch, tmp_path_factory): monkeypatch.chdir(tmp_path_factory.mktemp("d")); open("b", "w").close()
def test_capfd(capfd):
    import os; os.write(1, b"raw"); assert capfd.readouterr().out == "raw"
def test_tempfile():
    with tempfile.NamedTemporaryFile() as file: assert file.write(b"q") == 1
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    limits = Limits(call_cpu_time=0.2, run_cpu_time=10.0)
    with Sandbox(limits=limits, packages=["hypothesis", "numpy"]) as sandbox:
        yield sandbox


@pytest.mark.parametrize("name", PASSING)
def test_what_passes_in_pytest_passes(sandbox: Sandbox, name: str) -> None:
    found = sandbox.run_test_module(PROGRAM, PASSING[name])
    assert found.passed, [each for each in found if not each.passed]
    assert {each.judged for each in found} == {"inside"}


def test_folders_are_there_at_the_level_that_bounds_them(sandbox: Sandbox) -> None:
    if sandbox.level != "namespaces":
        pytest.skip("needs namespaces")
    assert sandbox.run_test_module(PROGRAM, FOLDERS).passed
    with Sandbox(level="kernel") as other:
        *lacking, last = other.run_test_module(PROGRAM, FOLDERS)
    assert [each.outcome for each in lacking] == [Outcome.ERROR] * 3
    assert all("level 'namespaces'" in each.message for each in lacking)
    assert last.outcome is Outcome.ERROR


ENDINGS = """
import os, pytest, solution, sys, time, unittest
def test_fails(): assert solution.add(1, 2) == 4
def test_raises(): solution.nothing
def test_fixture(nothing): pass
@pytest.fixture
def broken(): raise RuntimeError("setup")
def test_setup(broken): pass
@pytest.fixture
def broken_end():
    yield
    raise RuntimeError("teardown")
def test_teardown(broken_end): pass
@pytest.mark.xfail(strict=True)
def test_unexpected(): pass
def test_exit(): sys.exit(0)
def test_leaves(): os._exit(0)
def test_after(): print("said"); assert True
def test_spins():
    while True: pass
class TestCase(unittest.TestCase):
    def test_sub(self):
        for i in range(3):
            with self.subTest(i=i): self.assertEqual(i, 1)
def test_memory(): bytearray(10**12)
def test_crashes(): import ctypes; ctypes.string_at(0)
def test_last(): pass
"""


def test_how_tests_end(sandbox: Sandbox) -> None:
    limits = Limits(call_cpu_time=0.25, calls_per_test=1, run_cpu_time=20)
    found = sandbox.run_test_module(PROGRAM, ENDINGS, limits=limits)
    assert {each.name: each.outcome.value for each in found} == {
        "test_fails": "fail", "test_raises": "error", "test_fixture": "error", "test_setup": "error",
        "test_teardown": "error", "test_unexpected": "fail", "test_exit": "exited", "test_leaves": "exited",
        "test_after": "pass", "test_spins": "timeout", "TestCase::test_sub": "fail", "test_memory": "memory",
        "test_crashes": "signalled", "test_last": "pass",
    }  # fmt: skip
    said = {each.name: each for each in found}
    assert (said["test_fails"].line, said["test_raises"].error) == (3, "AttributeError")
    assert said["test_fails"].message.startswith("AssertionError: assert 3 == 4")
    assert said["test_after"].stdout == "said\n"
    assert {each.judged for each in found} == {"inside"}


SKIPPED = """
import pytest, unittest
def test_runs(): pass
@pytest.mark.skip
def test_skip(): assert 0
@pytest.mark.xfail
def test_xfail(): assert 0
def test_inside(): pytest.importorskip("nothing_like_it")
class Case(unittest.TestCase):
    @unittest.expectedFailure
    def test_e(self): self.fail()
"""


def test_skipped_tests_are_left_out_and_named(sandbox: Sandbox) -> None:
    found = sandbox.run_test_module(PROGRAM, SKIPPED)
    assert [each.name for each in found] == ["test_runs"]
    assert found.skipped == ("test_skip", "test_xfail", "test_inside", "Case::test_e")


NOTHING = {
    "import solution": (Outcome.ERROR, "no test was found", None),
    "import pytest\n@pytest.mark.skip\ndef test_x(): pass": (Outcome.ERROR, "every test was skipped", None),
    "import pytest\npytest.skip('x', allow_module_level=True)": (Outcome.ERROR, "every test was skipped", None),
    "from solution import nothing": (Outcome.ERROR, "ImportError: cannot import name", 1),
    "\ndef test(:": (Outcome.SYNTAX_ERROR, "SyntaxError", 2),
    "import sys; sys.exit(0)": (Outcome.EXITED, "SystemExit", 1),
    "import os; os._exit(0)": (Outcome.EXITED, "status 0", None),
    "while True: pass": (Outcome.TIMEOUT, "CPU time", None),
    "import pytest\n@pytest.mark.parametrize('q', [1])\ndef test_x(): pass":
        (Outcome.ERROR, "cannot be collected", None),
}  # fmt: skip


@pytest.mark.parametrize("file", NOTHING)
def test_files_without_a_test_that_runs(sandbox: Sandbox, file: str) -> None:
    limits = Limits(call_cpu_time=0.25, calls_per_test=1)
    found = sandbox.run_test_module(PROGRAM, file, limits=limits)
    [result] = found
    outcome, message, line = NOTHING[file]
    assert (result.outcome, result.line, result.name) == (outcome, line, "")
    assert message in result.message
    assert (result.judged, found.passed) == ("inside", False)


def test_a_program_that_cannot_be_imported(sandbox: Sandbox) -> None:
    file = "from solution import f\ndef test_f(): assert f() == 1"
    codes = {"def f(:": "syntax_error", "1 / 0": "error", "raise SystemExit": "exited"}
    found = [sandbox.run_test_module(code, file)[0].outcome.value for code in codes]
    assert found == list(codes.values())


def test_a_name_with_dots(sandbox: Sandbox) -> None:
    file = "import pkg.deep.mod as m\nfrom pkg.deep.mod import f\ndef test_f(): assert f() == m.f() == 1"
    assert sandbox.run_test_module("def f(): return 1", file, "pkg.deep.mod").passed
    with pytest.raises(ValueError, match="module"):
        sandbox.run_test_module("", "", "a-b")


def test_without_pytest_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        test_modules.importlib.util,
        "find_spec",
        lambda name: None if name == "pytest" else found(name),
    )
    with Sandbox() as sandbox:
        with pytest.raises(ImportError, match="evaluation"):
            sandbox.run_test_module(PROGRAM, PASSING["unittest"])
        text = "def test_a(): assert f(1) == 2"
        loads = [sandbox.judge(Job(code, (text,))) for code in ("def f(x): return x", "1 / 0")]
        assert [each.load.passed for each in loads] == [True, False]
        assert loads[1].tests[0].error == "ZeroDivisionError"
        texts = ["def test_a(): assert f(1) == 2", "x = f(1)\nassert x == 2", "assert f(1) == 1"]
        results = sandbox.run_tests("def f(x): return x", texts)
    assert [each.outcome.value for each in results] == ["error", "fail", "pass"]
    assert "codea1-env[evaluation]" in results[0].message
    assert (results[0].missing_module, results[0].judged) == ("pytest", "inside")


def test_a_program_can_forge_what_is_judged_inside(sandbox: Sandbox) -> None:
    """That is what the mark means: the same forgery does nothing where values are compared outside."""
    forger = (
        "import sys\nclass Any:\n    def __eq__(self, other): return True\ndef f(x): return Any()"
    )
    [inside] = sandbox.run_test_module(
        forger, "import solution\ndef test_f(): assert solution.f(1) == 2"
    )
    assert (inside.outcome, inside.judged) == (Outcome.PASS, "inside")
    [outside, text] = sandbox.run_tests(forger, ["assert f(1) == 2", "r = f(1)\nassert r == 2"])
    assert (outside.outcome, outside.judged) == (Outcome.UNENCODABLE, "outside")
    assert (text.outcome, text.judged) == (Outcome.PASS, "inside")


def test_what_it_writes_to_the_channel_is_bounded(sandbox: Sandbox) -> None:
    flood = "import os\nfor n in range(3, 64):\n    try: os.write(n, b'\\xff' * 100)\n    except OSError: pass"
    started = time.monotonic()
    for file in (flood, f"def test_x():\n    pass\n{flood}", flood.replace("xff", "x00")):
        found = sandbox.run_test_module(PROGRAM, file)
        assert not found.passed
        assert all(each.judged == "inside" for each in found)
    assert time.monotonic() - started < 30


def test_a_text_that_tests_nothing_is_no_pass(sandbox: Sandbox) -> None:
    texts = ["", "# nothing", "  \n", "x = 1", "import math", "f(1) == [2]", "'assert f(1) == 2'"]
    results = sandbox.run_tests("def f(x): return x", texts)
    assert [(each.outcome, each.vacuous) for each in results] == [(Outcome.ERROR, True)] * 7


@pytest.mark.parametrize(
    "text", ["test_x = lambda: f(1) == 99", 'exec("def test_a(): assert f(1) == 99")']
)
def test_a_test_that_nobody_sees_in_a_text_is_no_pass(sandbox: Sandbox, text: str) -> None:
    code = "def f(x): return x\ndef test_of_its_own(): pass"
    [result, passed] = sandbox.run_tests(
        code, [f"{text}\nassert f(1) == 1", "test = f\nassert test(1) == 1"]
    )
    assert (result.outcome, passed.outcome) == (Outcome.ERROR, Outcome.PASS)
    assert "was not run" in result.message
