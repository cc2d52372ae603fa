"""The site: built without a warning, and no page fetches anything from another host."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import codea1_env

ROOT = Path(codea1_env.__file__).resolve().parent.parent
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / "docs" / "conf.py").is_file(), reason="needs the repository"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built from a copy: pages that are made lie beside those that are written."""
    pytest.importorskip("furo", reason="needs the extra docs")
    folder = tmp_path_factory.mktemp("repository")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("_made"))
    for name in ("examples", "CHANGELOG.md", "CONTRIBUTING.md"):
        (folder / name).symlink_to(ROOT / name)
    out = folder / "site"
    build = ["-m", "sphinx", "--builder", "html", "--fail-on-warning", "--keep-going", "--quiet"]
    build += ["-D", "toc_object_entries=0"]  # they are in no list of contents here: it takes long
    done = subprocess.run(
        [sys.executable, *build, str(folder / "docs"), str(out)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=240,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return out


def test_links_lead_somewhere_and_nothing_is_fetched(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 35
    wrong = []
    for page in pages:
        text = page.read_text("utf-8")
        fetched = r'<(?:img|script|iframe|source)[^>]* src="([^"]+)"|<link rel="stylesheet"[^>]* href="([^"]+)"'
        wrong += [(page, url) for pair in re.findall(fetched, text) for url in pair if "//" in url]
        for url in re.findall(r'href="([^"]+)"', text):
            path = unquote(urlsplit(url).path)
            if path.startswith("gallery/") or urlsplit(url).scheme or not path:
                continue  # pages of `make gallery`; other hosts; this page
            if not (page.parent / path).exists():
                wrong.append((page, url))
    assert wrong == []


def test_public_names_are_documented(site: Path) -> None:
    text = "".join(page.read_text("utf-8") for page in (site / "_made" / "api").glob("*.html"))
    documented = set(re.findall(r'<dt class="[^"]*" id="codea1_env\.([\w.]+)"', text))
    assert {"parallel_env", "TrainConfig.max_steps", "sandbox.Sandbox.run_tests"} <= documented
    assert {"agents.GoldenTester", "rollout.rollout", "evaluation.pass_rate"} <= documented


def test_the_picture_is_of_this_version(tmp_path: Path) -> None:
    drawn = tmp_path / "episode.svg"
    script = [sys.executable, str(ROOT / "docs" / "gallery.py"), "--picture", str(drawn)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(script, check=True, capture_output=True, env=environment, timeout=120)
    kept = ROOT / "docs" / "pictures" / "episode.svg"
    assert drawn.read_text("utf-8") == kept.read_text("utf-8"), (
        "Make it anew: docs/gallery.py --picture"
    )
    assert "http" not in kept.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
