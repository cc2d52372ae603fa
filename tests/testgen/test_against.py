"""against.py, findings.py, examples.py and `codea1 check`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import codea1_env
from codea1_env.cli.app import run
from codea1_env.testgen.examples import contradiction


@pytest.fixture(autouse=True)
def less_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call is endless here after one second of processor time, not after five."""
    monkeypatch.setattr("codea1_env.testgen.observe._PATIENCE", 2)


BEFORE = {
    "src/shop/__init__.py": "",
    "src/shop/prices.py": """\
RATE = 2


def discount(price: int, percent: int) -> float:
    if percent > 100:
        raise ValueError("more than all")
    return price * (100 - percent) / 100


def with_tax(price: int) -> int:
    return price * RATE


def total(prices):
    result = 0
    for price in prices:
        result += price
    return result


def _clamp(value, low, high):
    return max(low, min(value, high))


def stars(score: int) -> str:
    return "*" * _clamp(score, 0, 5)


def merge(one: dict, other: dict) -> dict:
    return {**one, **other}


def same(n: int) -> int:
    return n


def shout(text: str) -> None:
    print(text.upper())


class Cart:
    def __init__(self) -> None:
        self.items: dict[str, int] = {}

    def add(self, name: str, number: int = 1) -> None:
        self.items[name] = self.items.get(name, 0) + number
""",
}


def changed(*pairs: tuple[str, str]) -> dict[str, str]:
    text = BEFORE["src/shop/prices.py"]
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return {"src/shop/prices.py": text}


AGAINST = ["check", "--against", "HEAD", "--timeout", "2"]
REGRESSIONS = {
    "discount": (("percent > 100", "percent >= 100"), "raises ValueError"),
    "with_tax": (("RATE = 2", "RATE = 3"), "gives"),
    "Cart": (("self.items.get(name, 0) + number", "number"), "add"),
    "merge": (("return {**one, **other}", "one.update(other)\n    return one"), "merge"),
    "shout": (("print(text.upper())", "print(text)"), "gives"),
    "total": (("    for price in prices:", "    for price in prices[1:]:"), "gives"),
}
REFACTORINGS = [
    ("    result = 0\n    for price in prices:\n        result += price\n    return result", "    return sum(prices)"),
    ("def _clamp(value, low, high):", "def _clamp(value, low, high, step=1):"),
    ("return max(low, min(value, high))", "return min(high, max(value, low))"),
    ("self.items[name] = self.items.get(name, 0) + number", "self.items.setdefault(name, 0)\n        self.items[name] += number"),
    ("def stars(score: int)", "def stars(score: int, sign: str = '*')"),
    ('"*" *', "sign *"),
]  # fmt: skip


def test_each_regression_is_one_finding_with_a_line_that_shows_it(repository, capsys):
    folder = repository(BEFORE, changed(*(pair for pair, _ in REGRESSIONS.values())))
    assert run([*AGAINST, "--format", "json"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    found = {each["target"].removeprefix("shop.prices::"): each for each in findings}
    assert sorted(found) == sorted(REGRESSIONS)
    assert len(findings) == len(found)
    for name, (_, message) in REGRESSIONS.items():
        assert message in found[name]["message"]
        assert "at HEAD it" in found[name]["message"]
    now = {name: shown(each["command"], folder) for name, each in found.items()}
    subprocess.run(["git", "stash", "-q"], cwd=folder, check=True)
    for name, each in found.items():
        assert shown(each["command"], folder) != now[name]


def shown(command: str, folder: Path) -> str:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment.pop("PYTHONSAFEPATH", None)
    done = subprocess.run(
        command, shell=True, cwd=folder, capture_output=True, text=True, env=environment
    )
    assert "SyntaxError" not in done.stderr
    return done.stdout + done.stderr[-60:]


def test_a_refactoring_is_no_finding(repository, capsys):
    repository(BEFORE, changed(*REFACTORINGS))
    assert run([*AGAINST, "src"]) == 0
    assert "No findings" in capsys.readouterr().out


ITERATORS = """\
import itertools


def few(n: int):
    for i in range(n):
        yield i


def many(n: int):
    yield from itertools.count(n)


def down(n: int) -> int:
    while n > 0:
        n -= 1
    return n


async def wait(n: int) -> int:
    return n
"""


def test_a_difference_is_shown_once_and_without_addresses(repository, capsys):
    text = ITERATORS
    for old, new in (
        ("yield i\n", "yield i + 1\n"),
        ("count(n)", "count(n + 1)"),
        ("while n > 0", "while n != 0"),
        ("    return n\n", "    return n + 1\n"),
    ):
        text = text.replace(old, new)
    folder = repository({"own.py": ITERATORS}, {"own.py": text})
    assert run([*AGAINST, "--format", "json"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [each["message"].partition(" gives")[0] for each in findings] == [
        "list(few(1))", "list(many(1))", "down(1)", "wait(1)",
    ]  # fmt: skip
    for each in findings:
        assert "0x" not in each["message"]
        assert each["command"].count("import asyncio") <= 1
        assert shown(each["command"], folder).strip() in each["message"]


def test_only_what_has_changed_is_looked_at(repository, capsys):
    after = changed(("return n", "return n + 1")) | {"src/shop/more.py": "def new(): return 1\n"}
    repository(BEFORE, after)
    assert run([*AGAINST, "--format", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["looked"] == ["shop.prices::same"]
    assert report["skipped"]["shop.prices::Cart"] == "it has not changed"
    assert run([*AGAINST, "--format", "github"]) == 1
    line = capsys.readouterr().out.splitlines()[0]
    assert line.startswith("::warning file=src/shop/prices.py,line=")
    assert "%0A" in line


def test_a_module_that_no_longer_imports_is_a_finding(repository, capsys):
    before = {
        "a.py": "def f(): return 1\n",
        "b.py": "import math\n",
        "c.py": "import gone_forever\n",
    }
    after = {
        "a.py": "def f(): return 1\n\ndef g(:\n",
        "b.py": "import maths_of_nobody\n",
        "c.py": "import gone_forever, os\n",
        "untracked.py": "x = = 1\n",
    }
    folder = repository(before, after)
    assert run([*AGAINST, "--format", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    found = {each["target"]: each for each in report["findings"]}
    assert {name: (each["kind"], each["line"]) for name, each in found.items()} == {
        "a": ("import", 3),
        "b": ("import", 1),
        "untracked": ("import", 1),
    }
    assert "at HEAD it can" in found["b"]["message"]
    assert "Error" in shown(found["b"]["command"], folder)
    assert "gone_forever" in report["skipped"]["c"]
    assert run(["check", "a.py", "--format", "github"]) == 1
    assert capsys.readouterr().out.startswith("::warning file=a.py,line=3")


@pytest.mark.parametrize("options", [["."], AGAINST[1:]])
def test_where_no_module_can_be_imported_nothing_was_checked(repository, capsys, options):
    repository({"c.py": "import gone_forever\n"}, {"c.py": "import gone_forever, os\n"})
    assert run(["check", *options]) == 2
    shown = capsys.readouterr()
    assert "skipped c: " in shown.out
    assert "nothing was checked" in shown.err
    Path("a.py").write_text("def f(): return 1\n")
    assert run(["check", *options]) == 0


def test_a_private_function_that_nothing_public_uses_is_named(repository, capsys):
    text = "def _alone(n):\n    return n\n\n\ndef f(n):\n    return n\n"
    repository({"own.py": text}, {"own.py": text.replace("return n\n\n\n", "return n + 1\n\n\n")})
    assert run([*AGAINST, "--format", "json"]) == 0
    skipped = json.loads(capsys.readouterr().out)["skipped"]
    assert skipped["own::_alone"] == "it is private, and nothing public here uses it"
    assert skipped["own::f"] == "it has not changed"


def test_the_repository_is_that_of_the_path(repository, tmp_path, monkeypatch, capsys):
    folder = repository(BEFORE, changed(("return n", "return n + 1")))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    place = str(folder / "src")
    assert run([*AGAINST, place, "--format", "json"]) == 1
    [finding] = json.loads(capsys.readouterr().out)["findings"]
    assert shown(finding["command"], tmp_path) == "2\n"
    assert run(["check", place, ".", "--against", "HEAD"]) == 2
    assert "git repository" in capsys.readouterr().err


@pytest.mark.parametrize("place", [".", "src/shop", ".."])
def test_the_way_back_leads_from_any_folder_to_the_earlier_version(
    repository, monkeypatch, capsys, place
):
    folder = repository(BEFORE, changed(("return n", "return n + 1")))
    monkeypatch.chdir(folder / place)
    assert run([*AGAINST, str(folder / "src")]) == 1
    lines = capsys.readouterr().out.splitlines()
    line, way = lines[1], lines[-1].partition(": ")[2]
    assert shown(line, Path.cwd()) == "2\n"
    way, _, here = way.partition(", and write before for ")
    line = line.replace(here.removesuffix(" in the line"), "before") if here else line
    assert "1" in shown(f"{way} && {line}", Path.cwd()).splitlines()


def test_code_that_moved_to_another_module_is_no_finding(repository):
    text = BEFORE["src/shop/prices.py"]
    helper = "def _clamp(value, low, high):\n    return max(low, min(value, high))\n"
    after = {
        "src/shop/prices.py": "from shop.tools import _clamp\n" + text.replace(helper, ""),
        "src/shop/tools.py": helper,
    }
    repository(BEFORE, after)
    assert run(AGAINST) == 0


def test_bad_input_is_said_in_a_line(repository, capsys):
    repository(BEFORE, {})
    for arguments, message in {
        "--against nowhere": "commit, branch or tag",
        "nowhere.py": "no such file",
        "--timeout 0": "--timeout",
    }.items():
        assert run(["check", *arguments.split()]) == 2
        assert message in capsys.readouterr().err


def test_contradicted_examples_and_endless_calls_are_found(tmp_path, monkeypatch, capsys):
    (tmp_path / "own.py").write_text('''\
def half(n: int) -> int:
    """Halve.

    >>> half(4)  # a comment (
    2
    >>> half(5)
    3
    >>> half(7)
    4
    """
    return n // 2


def down(n=3):
    while n != 0:
        n -= 1
    return n


def money(text: str) -> str:
    """Format.

    >>> money("1")
    '1 EUR'
    """
    import package_that_is_not_there
    return text
''')
    monkeypatch.chdir(tmp_path)
    assert run(["check", "own.py", "--timeout", "2"]) == 1
    out = capsys.readouterr().out
    assert "half(5) gives 2; the docstring says 3" in out
    assert "half(7)" not in out.replace("print", "")
    assert "down(-1) does not end" in out
    assert "2 findings" in out
    command = out.splitlines()[1].strip()
    assert shown(command, tmp_path).endswith("2\n")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (">>> f()\nabc\n", {"f": lambda: "abc"}),
        (">>> f()\n0.33\n", {"f": lambda: 1 / 3}),
        (">>> f()\nValueError: other words\n", {"f": lambda: int("x")}),
        (">>> x = unknown\n>>> f(x)\n1\n", {"f": lambda: 2}),
        (">>> f()  # doctest: +SKIP\n1\n", {"f": lambda: 2}),
        (">>> time.time()\n1\n", {"time": __import__("time")}),
        (">>> f(\n", {}),
    ],
)
def test_what_an_example_says_in_its_own_way_is_no_contradiction(text, names):
    assert contradiction(text, names) == {}


def test_the_hook_of_pre_commit_names_the_command():
    hook = Path(codea1_env.__file__).parents[1] / ".pre-commit-hooks.yaml"
    assert "entry: codea1 check --against HEAD" in hook.read_text()
