"""What the README shows works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import codea1_env

ROOT = Path(codea1_env.__file__).resolve().parent.parent
README = ROOT / "README.md"

pytestmark = pytest.mark.skipif(not README.is_file(), reason="needs the repository")


def snippets() -> list[str]:
    text = README.read_text(encoding="utf-8") if README.is_file() else ""
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_there_are_snippets() -> None:
    assert len(snippets()) >= 4


@pytest.mark.parametrize("index", range(len(snippets())))
def test_snippet_runs(index: int, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", snippets()[index]],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/README.md"])
def test_links_between_pages_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#\s]+)", text)
    local = [target for target in targets if "://" not in target]
    missing = [target for target in local if not ((ROOT / page).parent / target).exists()]
    assert missing == []


def test_folders_in_the_readme_exist() -> None:
    named = re.findall(r"^\| `([\w/]+)/`", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(named) >= 5
    assert [name for name in named if not (ROOT / name).is_dir()] == []


def test_commands_in_the_readme_exist() -> None:
    from codea1_env.cli.app import COMMANDS

    named = set(re.findall(r"^    codea1 (\w+)", README.read_text(encoding="utf-8"), re.MULTILINE))
    assert named
    assert named <= set(COMMANDS)
