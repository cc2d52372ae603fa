"""What the pages name exists: dotted names, commands and their options."""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import codea1_env
from codea1_env.cli.app import run
from codea1_env.support.extras import MissingExtraError

ROOT = Path(codea1_env.__file__).resolve().parent.parent
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
PAGES = [page for page in PAGES if "_made" not in page.parts]  # by docs/conf.py
GROUPS = ("eval", "bench", "sandbox", "problems", "serve", "suite")

pytestmark = [
    pytest.mark.skipif(not PAGES[-1].is_file(), reason="needs the repository"),
    pytest.mark.usefixtures("sandboxes_stay_open"),
]


def exists(name: str) -> bool:
    found: object = codea1_env
    path = "codea1_env"
    for part in name.split(".")[1:]:
        path += f".{part}"
        if hasattr(found, part):
            found = getattr(found, part)
            continue
        try:
            found = importlib.import_module(path)
        except MissingExtraError:
            return True  # the module is there, the library of its adapter is not
        except ImportError:
            return False
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_dotted_names_exist(page: Path) -> None:
    names = set(re.findall(r"\bcodea1_env(?:\.[A-Za-z_]\w*)+(?!\w|\.py)", page.read_text("utf-8")))
    assert [name for name in sorted(names) if not exists(name)] == []


def commands(page: Path) -> Iterator[list[str]]:
    """The words of command lines in blocks of code."""
    text = page.read_text("utf-8").replace("\\\n", " ")
    for line in re.findall(r"^(?: {4}|\$ |)codea1 (.+)$", text, re.MULTILINE):
        yield line.partition("#")[0].split()


@functools.cache
def help_of(command: tuple[str, ...]) -> tuple[int, str]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            code = run([*command, "--help"])
        except SystemExit as end:
            code = int(end.code or 0)
    return code, out.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_their_options_exist(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    wrong = []
    for words in commands(page):
        command = tuple(words[: 2 if words[0] in GROUPS else 1])
        command += ("--panel",) * ("--panel" in words)  # has options of its own
        code, text = help_of(command)
        options = {re.split("[= ]", word)[0] for word in words if word.startswith("--")}
        missing = [option for option in options if not re.search(rf"{option}[ \n,]", text)]
        if code != 0 or missing:
            wrong.append((" ".join(command), code, missing))
    assert wrong == []


def test_targets_of_make_exist() -> None:
    (targets,) = re.findall(
        r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE
    )
    named = {
        name
        for page in PAGES
        for name in re.findall(r"(?:^ {4}|`)make ([\w-]+)", page.read_text("utf-8"), re.MULTILINE)
    }
    assert {"docs", "gallery", "test", "train"} <= named <= set(targets.split())


def test_nightly_leaves_out_only_what_is_there() -> None:
    import documented_commands as nightly

    texts = [command.text for page in nightly.PAGES for command in nightly.commands(page)]
    assert len(texts) > 80
    for pattern in (*nightly.LEFT_OUT, *nightly.SHORTER):
        assert any(re.search(pattern, text) for text in texts), pattern
    words = {word for text in texts for word in text.split()}
    assert set(nightly.FOR_EXAMPLE) <= words
    for why in nightly.LEFT_OUT.values():
        for path in re.findall(r"tests/[\w/.]*\w", why):
            assert (ROOT / path).exists(), path


@pytest.mark.slow
def test_commands_of_tutorials_run(tmp_path, monkeypatch):
    """The quick ones; longer ones, and other pages, run every night, and options in tests of what they are about."""
    import documented_commands as nightly

    monkeypatch.chdir(tmp_path)
    ran = 0
    for name in ("problems", "rewards"):
        page = ROOT / "docs" / "tutorials" / f"{name}.md"
        for file, text in nightly.files(page).items():
            (tmp_path / file).write_text(text, "utf-8")
        for item in nightly.commands(page):
            words = shlex.split(item.to_run)[1:]
            if words[0] in ("problems", "play"):
                assert run(words) == 0, words
                ran += 1
    assert ran == 3


def test_programs_that_pages_include_are_run_by_tests() -> None:
    tests = "".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    for page in PAGES:
        for path in re.findall(
            r"^```{literalinclude} (\S+)", page.read_text("utf-8"), re.MULTILINE
        ):
            file = (page.parent / path).resolve()
            assert file.is_file(), path
            assert file.name in tests


def test_the_page_of_public_names_is_true() -> None:
    rows = re.findall(
        r"^\| [^|]+ \| `(codea1_env[.\w]*)` \| (.+) \|$",
        (ROOT / "docs" / "api.md").read_text("utf-8"),
        re.MULTILINE,
    )
    assert len(rows) >= 8
    missing = [
        f"{home}.{name}"
        for home, text in rows
        for name in re.findall(r"`([A-Za-z_]\w*)`", text)
        if name not in ("inside", "__all__") and not exists(f"{home}.{name}")
    ]
    assert missing == []
    listed = {
        name for home, text in rows if home == "codea1_env" for name in re.findall(r"`(\w+)`", text)
    }
    in_rooms = {"Agent", "Experience", "Job", "Learner", "Limits", "Outcome", "Sandbox"}
    in_rooms |= {"__version__"}
    assert set(codea1_env.__all__) - listed == in_rooms
