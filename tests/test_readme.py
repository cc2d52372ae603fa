"""What the README and the other pages show works."""

from __future__ import annotations

import json
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


PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))] if README.is_file() else []
# Those in _made are by docs/conf.py. The libraries of the other page need environments of their own: tests/integrations.
PAGES = [page for page in PAGES if not {"_made", "integrations.md"} & set(page.parts)]
SNIPPETS = {
    f"{page.name}-{number}": snippet
    for page in PAGES
    for number, snippet in enumerate(
        re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE), 1
    )
}
RUNNER = """
import json, os, sys, traceback
import codea1_env.agents, codea1_env.evaluation, codea1_env.integrations.one_side, codea1_env.training
from codea1_env.sandbox.levels import strongest_level
strongest_level(), codea1_env.parallel_env  # looked for, and imported, once
for name, snippet in json.load(sys.stdin).items():
    os.mkdir(name)
    child = os.fork()
    if not child:
        os.chdir(name)
        os.dup2(os.open("stderr", os.O_WRONLY | os.O_CREAT), 2)
        try:
            exec(compile(snippet, name, "exec"), {"__name__": "__main__"})
        except BaseException:
            traceback.print_exc()
        sys.exit()
    os.waitpid(child, 0)
    with open(name + "/stderr") as file:
        errors = file.read()
    if errors:
        print(name, errors, sep="\\n", file=sys.stderr)
"""


def test_snippets_run(tmp_path: Path) -> None:
    """Each in a process of its own, which is forked from one that has the package."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUNNER],
        input=json.dumps(SNIPPETS),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert {path.name for path in tmp_path.iterdir()} == set(SNIPPETS)


@pytest.mark.parametrize("page", [*PAGES, *ROOT.glob("C*.md")], ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (page.parent / target).exists()] == []


def test_every_page_is_in_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    others = {str(page.relative_to(index.parent)) for page in PAGES if page not in (README, index)}
    assert others > {"tutorials/agent.md", "index.md"}
    others -= {"index.md"}  # the site's order of the same pages
    assert [name for name in others if f"({name})" not in index.read_text("utf-8")] == []


def test_readme_opens_with_a_picture_and_fits_on_a_page() -> None:
    lines = README.read_text("utf-8").splitlines()
    assert len(lines) <= 120
    assert any(line.startswith("![") for line in lines[:12])


def test_folders_in_the_readme_exist() -> None:
    named = re.findall(r"^\| `([\w/]+)/`", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(named) >= 5
    assert [name for name in named if not (ROOT / name).is_dir()] == []
