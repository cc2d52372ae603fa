"""The site: built without a warning, read in a real browser, which asks no other host for anything."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

import codea1_env

ROOT = Path(codea1_env.__file__).resolve().parent.parent
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)  # fmt: skip

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


@pytest.mark.skipif(
    CHROMIUM is None or importlib.util.find_spec("playwright") is None,
    reason="needs Chromium, and playwright of the extra dev",
)
def test_pages_fit_their_windows_and_search_works(site: Path) -> None:
    from playwright.sync_api import sync_playwright

    said: list[str] = []
    asked: list[str] = []
    with sync_playwright() as playwright:
        # Without its sandbox, because tests may run as root; what it opens are our own pages.
        arguments = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        grounds = set()
        for width, scheme in ((360, "dark"), (1600, "light")):
            page: Any = browser.new_page(
                viewport={"width": width, "height": 900}, color_scheme=scheme
            )
            page.on("console", lambda message: said.append(message.text))
            page.on("pageerror", lambda error: said.append(str(error)))
            page.on("request", lambda request: asked.append(request.url))
            for name in (
                "index",
                "environment",
                "results",
                "tutorials/agent",
                "_made/api/training",
            ):
                page.goto((site / f"{name}.html").as_uri())
                assert page.evaluate("document.documentElement.scrollWidth") == width, name
            grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert len(grounds) == 2
        page.goto((site / "search.html").as_uri() + "?q=referee")
        page.locator("#search-results li").first.wait_for()
        browser.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


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
