"""What a function does else than at an earlier commit of a real repository."""

from __future__ import annotations

import subprocess

import pytest
from user_files import write

from codea1_env.testgen.earlier import file_at, read_earlier
from codea1_env.testgen.function import write_function_suite
from codea1_env.testgen.modules import TargetError
from codea1_env.testgen.target import read_target
from codea1_env.testgen.written_file import pytest_file

BEFORE = """\
def half(n: int) -> int:
    return helper(n)


def helper(n):
    return n // 2


def append(items: list[int]) -> None:
    items.append(1)


class Box:
    def __init__(self):
        self.n = 0

    def add(self, n: int) -> int:
        self.n += n
        return self.n
"""


def commit(folder, text):
    path = write(folder, text, "stats.py")
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "-m", "m"],
    ):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return path


def look(path, name, sandbox):
    target = read_target(path, name, sandbox)
    earlier = read_earlier(target, "HEAD", sandbox)
    suite = write_function_suite(target, None, sandbox, earlier=earlier, only_findings=True)
    return [str(each) for each in suite.findings if each.kind == "difference"]


@pytest.mark.parametrize(
    ("name", "old", "new", "difference"),
    [
        ("half", "n // 2", "n // 2 + (n == 3)", "half(3) returns 2; at HEAD it returns 1"),
        ("half", "n // 2", "n // (2 - (n == 7) * 2)", "half(7) raises ZeroDivisionError: "),
        ("append", "items.append(1)", "items.append(1.5)",
         "append([]) leaves argument 1 as [1.5]; at HEAD it leaves argument 1 as [1]"),
        ("Box", "return self.n\n", "return self.n * 2\n", "Box().add(1) returns 2; at HEAD it returns 1"),
    ],
)  # fmt: skip
def test_a_difference_is_a_finding(tmp_path, sandbox, name, old, new, difference):
    path = commit(tmp_path, BEFORE)
    assert BEFORE.count(old) == 1
    write(tmp_path, BEFORE.replace(old, new), "stats.py")
    [found] = look(path, name, sandbox)
    assert found.startswith(difference)


def test_what_is_no_difference(tmp_path, sandbox):
    path = commit(tmp_path, BEFORE)
    target = read_target(path, "half", sandbox)
    assert read_earlier(target, "HEAD", sandbox).is_same(target)
    text = BEFORE.replace("half(n: int)", "half(n: int, more: int = 0)").replace(
        "(n)\n", "(n + more)\n", 1
    )
    write(tmp_path, text + "\n\ndef fresh(n: int) -> int:\n    return n\n", "stats.py")
    assert look(path, "half", sandbox) == []  # a parameter that was not there
    target = read_target(path, "fresh", sandbox)
    assert read_earlier(target, "HEAD", sandbox) is None


def test_what_differs_is_asked_and_not_expected(tmp_path, sandbox):
    path = commit(tmp_path, BEFORE)
    write(tmp_path, BEFORE.replace("n // 2", "n // 2 if n < 5 else n"), "stats.py")
    target = read_target(path, "half", sandbox)
    earlier = read_earlier(target, "HEAD", sandbox)
    suite = write_function_suite(target, None, sandbox, earlier=earlier)
    text = pytest_file(suite, tmp_path / "test_stats_half.py", sandbox)
    expected, asked = text.split("@pytest.mark.skip", 1)
    assert "half(" in expected
    assert "(5, 5)" not in expected
    assert "assert half(5) == 2" in asked


def test_bad_revisions_and_places(tmp_path, sandbox):
    path = commit(tmp_path, BEFORE)
    assert file_at(path, "HEAD") == BEFORE
    assert file_at(write(tmp_path, "", "other.py"), "HEAD") is None
    for bad in ("nix", "-v", "--help", "HEAD; ls", ""):
        with pytest.raises(TargetError, match="Expect a commit, branch or tag with --against"):
            file_at(path, bad)
    target = read_target(path, "half", sandbox)
    for text, message in [
        ("def f(:", "invalid syntax"),
        ("import nowhere\ndef half(n): pass\n", "nowhere"),
    ]:
        commit(tmp_path, text)
        with pytest.raises(TargetError, match=f"stats.py at HEAD to .*{message}"):
            read_earlier(target, "HEAD", sandbox)
