"""Code of one's own, with its tests in one process: what it may reach, and what it may not."""

from __future__ import annotations

import importlib.metadata

import pytest

from codea1_env.sandbox import Limits, Outcome, OwnCodeSandbox

LIMITS = Limits(call_cpu_time=0.5, call_wall_time=3, calls_per_test=1)


@pytest.fixture
def folder(tmp_path):
    for name, text in {
        "pack/__init__.py": "import sys\nfrom .inner import Error, make\nLOADED = 'program' in sys.modules\n",
        "pack/inner.py": "class Error(Exception): pass\ndef make():\n    yield 1\n    raise Error('x')\n",
        "pack/data.txt": "data",
        "pack-1.5.dist-info/METADATA": "Metadata-Version: 2.1\nName: pack\nVersion: 1.5\n",
        "secret.txt": "secret",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_verdicts():
    tests = {
        "assert A().x == 1": Outcome.PASS,
        "import copy\nassert copy.copy(A()).x == 2": Outcome.FAIL,
        "A().y": Outcome.ERROR,
        "while True: pass": Outcome.TIMEOUT,
        "def test_it():\n    assert isinstance(A(), int)": Outcome.FAIL,
        "import sys; sys.exit(0)": Outcome.ERROR,
        "import os; os._exit(0)": Outcome.EXITED,
        "assert": Outcome.ERROR,
        "assert A.x == 1": Outcome.PASS,
    }
    with OwnCodeSandbox(limits=LIMITS) as sandbox:
        results = sandbox.run_tests("class A:\n    x = 1\n", list(tests), entry_point="A")
        assert [each.outcome for each in results] == list(tests.values())
        [failed] = sandbox.run_tests("A = 1", ["assert A"], entry_point="B")
        assert "does not define 'B'" in failed.message


@pytest.mark.parametrize("modules", [(), ("pack.inner",)])
def test_a_package_and_nothing_else_is_there(folder, modules, monkeypatch):
    monkeypatch.syspath_prepend(str(folder))
    assert importlib.metadata.version("pack") == "1.5"
    folders = {"pack": str(folder)}
    with OwnCodeSandbox(limits=LIMITS, folders=folders, modules=modules) as sandbox:
        if modules and sandbox.level != "namespaces":
            pytest.skip("modules are imported beforehand at level namespaces")
        results = sandbox.run_tests(
            "import pack",
            [
                "import pack\nassert isinstance(pack.Error(), Exception)",
                f"import pack\nassert pack.LOADED is {not modules}",
                "from importlib.resources import files\nassert files('pack').joinpath('data.txt').read_text() == 'data'",
                "import importlib.metadata\nassert importlib.metadata.version('Pack') == '1.5'",
                f"open({str(folder / 'secret.txt')!r})",
                f"open({str(folder / 'pack' / 'new.txt')!r}, 'w')",
                "import numpy",
                "import socket\nsocket.socket()",
            ],
        )
    assert [each.outcome for each in results[:4]] == [Outcome.PASS] * 4
    assert [each.error for each in results[4:]] == [
        "FileNotFoundError" if sandbox.level == "namespaces" else "PermissionError",
        "PermissionError" if sandbox.level != "namespaces" else results[5].error,
        "ModuleNotFoundError",
        "PermissionError",
    ]
    assert results[5].error in ("PermissionError", "OSError")
    assert not (folder / "pack" / "new.txt").exists()


def test_a_package_that_changes_builtins_changes_its_own_process_only(folder):
    (folder / "pack/odd.py").write_text("import builtins\nbuiltins.exec = print\n")
    folders = {"pack": str(folder)}
    with OwnCodeSandbox(limits=LIMITS, folders=folders, modules=["pack.odd"]) as sandbox:
        for test in ("import pack.odd\nassert exec is print", "assert exec is not print"):
            [result] = sandbox.run_tests("def f(n): return n + 1", [test])
            assert result.passed, result
