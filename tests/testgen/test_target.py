"""What a user can get wrong with a file, and what of it can be helped."""

from __future__ import annotations

import pytest
from user_files import write

from codea1_env.testgen.function import write_function_suite
from codea1_env.testgen.modules import TargetError, module_of_file
from codea1_env.testgen.target import read_target

GOOD = "def median(xs: list[int]) -> int:\n    return sorted(xs)[len(xs) // 2] if xs else 0\n"


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        (GOOD, "medain", "Did you mean median?"),
        (GOOD, "other", "It defines median."),
        ("x = 1\n", "f", "It defines none at its top level."),
        ("f = lambda x: x\n", "f", "with def or class, actually: it does not"),
        (f"{GOOD}\ndef broken(:\n", "median", "line 4: invalid syntax"),
        ("def f():\n\tif 1:\n        return 2\n", "f", "line 3: "),
        ("(" * 500, "f", "Expect"),
        (f"{GOOD}\nwhile True:\n    pass\n", "median", "running the file does not end"),
        (f"import sys\n{GOOD}\nsys.exit(3)\n", "median", "ends the process (SystemExit(3))"),
        (f"{GOOD}\nx = [0] * 10**10\n", "median", "more memory than the sandbox gives"),
        (
            "import none_such_module\n\ndef f(x: int): return none_such_module.f(x)\n",
            "f",
            "none_such_module is not installed here. Install it and allow it with --packages",
        ),
        (
            "import pytest\n\ndef f(x: int): return pytest.approx(x)\n",
            "f",
            "pytest is installed, but not allowed. Allow it with --packages pytest",
        ),
        (
            "import helpers\n\ndef f(x: int): return helpers.g(x)\n",
            "f",
            "helpers is a module of yours, and the sandbox sees only this one file",
        ),
        (
            "from .helpers import g\n\ndef f(x: int): return g(x)\n",
            "f",
            ".helpers is a module of yours, and the sandbox sees only this one file",
        ),
        (
            "SETTINGS = open('settings.txt').read()\n\ndef f(x: int): return SETTINGS * x\n",
            "f",
            "The sandbox has no network and none of your files",
        ),
    ],
)
def test_what_is_wrong_is_explained(tmp_path, sandbox, text, name, message):
    write(tmp_path, "def g(x): return x\n", "helpers.py")
    path = write(tmp_path, text)
    with pytest.raises(TargetError) as error:
        read_target(path, name, sandbox)
    assert message in str(error.value)
    assert "things.py" in str(error.value) or "imports" in str(error.value)


def test_a_file_that_is_none(tmp_path, sandbox):
    write(tmp_path, GOOD, "median.py")
    for name, message in [
        ("medain.py", "no such file. Did you mean median.py?"),
        (".", "it is a folder"),
        ("no/such/folder.py", "no such file"),
    ]:
        with pytest.raises(TargetError, match=message.replace("?", r"\?")):
            read_target(tmp_path / name, "median", sandbox)
    (tmp_path / "latin.py").write_bytes("# caf\xe9\n".encode("latin-1"))
    with pytest.raises(TargetError, match="text in UTF-8"):
        read_target(tmp_path / "latin.py", "f", sandbox)
    (tmp_path / "null.py").write_bytes(b"x = 1\0")
    with pytest.raises(TargetError, match="null byte"):
        read_target(tmp_path / "null.py", "f", sandbox)


@pytest.mark.parametrize(
    "head",
    [
        "import none_such_module\n\nclass Other(none_such_module.Base):\n    pass\n",
        "from .helpers import g\n",
        "DATA = open('none.txt').read()\n",
        "print(undefined_name)\n",
    ],
)
def test_what_a_function_does_not_need_may_fail(tmp_path, sandbox, head):
    path = write(tmp_path, f"import math\n{head}\n{GOOD}")
    target = read_target(path, "median", sandbox)
    assert target.left_out
    assert target.program.splitlines()[target.lines[0] - 1].startswith("def median")
    suite = write_function_suite(target, None, sandbox)
    assert suite.kills.killed


def test_marks_of_windows_do_not_matter(tmp_path, sandbox):
    path = tmp_path / "things.py"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert read_target(path, "median", sandbox).lines == (1, 2)


def import_root(path):
    module = module_of_file(path.resolve())
    return module.root, module.name


def test_the_module_of_a_file(tmp_path):
    inner = write(tmp_path, "", "package/inner/things.py")
    assert import_root(inner) == (inner.parent.resolve(), "things")
    write(tmp_path, "", "package/inner/__init__.py")
    write(tmp_path, "", "package/__init__.py")
    assert import_root(inner) == (tmp_path.resolve(), "package.inner.things")
    assert import_root(inner.with_name("__init__.py")) == (tmp_path.resolve(), "package.inner")
    for name in ("my-things.py", "2d.py", "class.py"):
        with pytest.raises(TargetError, match="Rename it"):
            import_root(tmp_path / name)
    with pytest.raises(TargetError, match="Python's own module"):
        import_root(tmp_path / "statistics.py")
