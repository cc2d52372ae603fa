"""A program may write files only where its job asks for a folder, which is its own and empty each time."""

from __future__ import annotations

import os

import pytest

from codea1_env.sandbox import LevelUnavailableError, Outcome, Sandbox, ScriptResult

WRITES = """
import os
def f(name):
    with open(name, "w") as file: file.write("x")
    return sorted(os.listdir("."))
"""
FILLING = {
    "files": "[open(str(n), 'w').write('x' * 1000) for n in range(20)]",
    "a deep folder": "import os\nfor n in range(300): os.mkdir('d'); os.chdir('d')",
    "thousands of folders": (
        "import os\ntry:\n    for n in range(10_000): os.mkdir(str(n))\nexcept OSError: pass"
    ),
    "all of it": "try:\n    open('a', 'wb').write(bytes(64 << 20))\nexcept OSError: pass",
    "renames without end": (
        "import os, threading\nos.mkdir('a')\n"
        "def churn():\n    while True: os.rename('a', 'b'); os.rename('b', 'a')\n"
        "threading.Thread(target=churn, daemon=True).start()"
    ),
}


@pytest.fixture(scope="module")
def namespaces() -> Sandbox:
    sandbox = Sandbox(level="namespaces")
    try:
        sandbox.run_tests("def f(x): return x", ["assert f(1) == 1"])
    except LevelUnavailableError as error:
        pytest.skip(str(error))
    return sandbox


@pytest.mark.slow
@pytest.mark.parametrize("level", ["process", "kernel", "namespaces"])
@pytest.mark.filterwarnings("ignore:.*level")
def test_without_being_asked_there_is_no_folder(level: str) -> None:
    before = set(os.listdir("/"))
    with Sandbox(level=level) as sandbox:
        try:
            results = sandbox.run_tests(WRITES, ["assert f('a') == []"])
        except LevelUnavailableError as error:
            pytest.skip(str(error))
        (called,) = sandbox.call(WRITES, "f", [(("a",), {})])
        script = sandbox.run_script("open('a', 'w')")
    for result in (*results, called, script):
        assert result.outcome is Outcome.ERROR
        assert "Error: [Errno" in result.message
    assert set(os.listdir("/")) == before


@pytest.mark.parametrize("level", ["process", "kernel"])
@pytest.mark.filterwarnings("ignore:.*level")
def test_a_folder_that_nothing_bounds_is_refused(level: str) -> None:
    refused = pytest.raises(LevelUnavailableError, match=f"namespaces.*actually: '{level}'")
    with Sandbox(level=level) as sandbox, refused:
        sandbox.run_script("open('a', 'w')", scratch=True)


def run(sandbox: Sandbox, code: str) -> ScriptResult:
    return sandbox.run_script(code, scratch=True)


def test_a_folder_is_there_for_who_asks(namespaces: Sandbox) -> None:
    tests = [
        "import os\nos.mkdir('t')\nfor n in ['b']: f(n)\nassert f('c') == ['b', 'c', 't'], os.listdir('.')"
    ] * 2
    for _ in range(3):
        for result in namespaces.run_tests(WRITES, tests, entry_point="f"):
            assert (result.outcome, result.message) == (Outcome.PASS, "")
    said = run(namespaces, "import tempfile; print(tempfile.mkstemp()[0] > 2)")
    assert (said.outcome, said.stdout) == (Outcome.PASS, "True\n")


@pytest.mark.parametrize("name", FILLING)
def test_nothing_is_left_for_the_next_run(namespaces: Sandbox, name: str) -> None:
    for _ in range(2):
        said = run(namespaces, f"import os\nprint(os.listdir('.'), flush=True)\n{FILLING[name]}")
        assert (said.outcome, said.stdout, said.message) == (Outcome.PASS, "[]\n", "")


def test_a_program_that_renames_while_its_test_ends(namespaces: Sandbox) -> None:
    code = f"{FILLING['renames without end']}\ndef f(x): return x"
    test = "for i in range(1):\n    assert f(i) == i"
    for _ in range(3):
        (result,) = namespaces.run_tests(code, [test], entry_point="f")
        assert (result.outcome, result.message) == (Outcome.PASS, "")


@pytest.mark.parametrize(
    "act",
    [
        "file.write(bytes(2 << 20))",
        "file.truncate(1 << 40)",
        "import os; os.posix_fallocate(file.fileno(), 0, 1 << 30)",
        "file.seek(1 << 33); file.write(b'x'); file.flush()",
    ],
)
def test_large_files_are_refused(namespaces: Sandbox, act: str) -> None:
    code = f"try:\n    with open('large', 'wb') as file:\n        {act}\nexcept OSError as error:"
    said = run(namespaces, f"{code}\n    print(type(error).__name__, error.errno in (27, 28))")
    assert said.stdout == "OSError True\n"


def test_files_are_bounded(namespaces: Sandbox) -> None:
    code = "open('a', 'wb').write(bytes(1 << 20))\n" * 2
    code += "for n in range(40): open(str(n), 'wb').write(bytes(1 << 20))"
    said = run(namespaces, code)
    assert said.outcome is Outcome.ERROR
    assert "No space left" in said.message
