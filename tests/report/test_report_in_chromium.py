"""A report in a real browser: nothing is loaded, nothing that players wrote is run, search, filters and keys work."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from run_logs import episode, write_run

from codea1_env.report.document import document
from codea1_env.report.folders import read_folders
from codea1_env.support.jobs import Jobs

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)  # fmt: skip

pytestmark = pytest.mark.skipif(
    CHROMIUM is None or importlib.util.find_spec("playwright") is None,
    reason="needs Chromium, and playwright",
)

BAD = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'><!-- <svg onload=alert(1)>"
HOSTILE = f"{BAD}\u202e\u2066{{{{ 7 * 7 }}}}\nconstructor __proto__\n"


def hostile_run(folder: Path) -> Path:
    tests = [
        {"test": HOSTILE, "status": "kept", "outcome": "fail", "reason": HOSTILE},
        {"test": "assert f() == " + "9" * 1_000_000, "status": "invalid", "reason": "long"},
    ]
    suite = {"answer": HOSTILE, "reward": None, "validity": 1e308, "adversarial": "x", "tests": tests}  # fmt: skip
    bad = episode(
        1, HOSTILE, problem=HOSTILE, code="#" * 1_000_000 + HOSTILE, answer=HOSTILE, suites=[suite], reward=10**400, program=["<b>"]
    )  # fmt: skip
    many = [episode(step, f"own/{step % 7}") for step in range(1, 251)]
    return write_run(folder / "<img src=x onerror=alert(1)>", [bad, *many])


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("report")
    other = write_run(folder / "other", [episode(9, "own/other")], use_book=False)
    page = folder / "page.html"
    page.write_text(document(read_folders([hostile_run(folder), other])), "utf-8")
    return page.as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Without its sandbox, because tests may run as root; what it opens is our own page.
        arguments = ["--no-sandbox", "--disable-dev-shm-usage"]
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield chromium
        chromium.close()


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1600, "light")])
def test_the_page_draws_everything_loads_nothing_and_runs_nothing(browser, address, width, scheme):
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    page.set_viewport_size({"width": max(width, 850), "height": 900})
    overflow = page.locator("nav").evaluate("bar => bar.scrollWidth - bar.clientWidth")
    assert overflow == 0, "every section can be seen in the bar"
    page.set_viewport_size({"width": width, "height": 900})
    charts = page.locator("[data-chart]")
    assert charts.count() >= 5
    for number in range(charts.count()):
        charts.nth(number).scroll_into_view_if_needed()
        charts.nth(number).locator("svg").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") == width
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == {"dark": "rgb(15, 19, 24)", "light": "rgb(246, 247, 249)"}[scheme]
    page.locator("#list button").first.click()
    shown = page.locator("#episode").inner_text()
    assert BAD in shown
    assert "\\u202e\\u2066{{ 7 * 7 }}" in shown
    assert page.evaluate("window.hacked") is None
    # Why a test is not as written can be read without scrolling aside.
    aside = "[...document.querySelectorAll('#episode .scroll')].map((each) => each.scrollWidth - each.clientWidth)"
    assert set(page.evaluate(aside)) == {0}
    assert [url for url in asked if not url.startswith("data:")] == [address]
    assert said == []
    page.close()


def test_search_filters_pages_keys_and_sorting(browser: Any, address: str) -> None:
    page = browser.new_page()
    page.goto(address)
    count, listed = page.locator("#count"), page.locator("#list button")
    assert count.inner_text() == "1 to 100 of 252 episodes"
    page.locator("#after").click()
    assert count.inner_text() == "101 to 200 of 252 episodes"
    page.fill("[name=search]", "CONSTRUCTOR __proto__")
    assert count.inner_text() == "1 to 1 of 1 episodes"
    page.fill("[name=search]", "no such text")
    assert "No episode fits" in page.locator("#episode").inner_text()
    page.fill("[name=search]", "")
    page.fill("[name=from]", "8")
    page.fill("[name=to]", "9")
    page.select_option("[name=winner]", "tester")
    page.select_option("[name=outcome]", "broken by new tests")
    assert count.inner_text() == "1 to 3 of 3 episodes"
    page.select_option("[name=run]", label="other")
    assert count.inner_text() == "1 to 1 of 1 episodes"
    text = page.locator("#episode").inner_text()
    assert "0.5 × 0.250 + 0.500 × 0.500 = 0.375" in text
    assert "(0/1 + 1/2) / 2" in text
    assert "validity = min(1 kept / 4, 1 - 3 invalid / 4)" in text

    page.select_option("[name=run]", "")
    listed.first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.getAttribute('aria-current')") == "true"
    assert "Difference to the program of step 2" in page.locator("#episode").inner_text()
    page.locator("#overview table").last.locator("th button", has_text="run").first.click()
    first = page.locator("#overview table").last.locator("tbody tr td").first
    assert first.inner_text() == "other"
    page.close()


def test_wrong_answers_of_evaluations_are_read_as_episodes_are(browser, tmp_path):
    figure = {"value": 0.5, "low": 0.25, "high": 0.75}
    names = [f"{name}@{k}" for name in ("pass", "mut", "Mul") for k in (1, 5)]
    programs = {"a": ["own/right", "pass"], "b": [HOSTILE, "fail"]}
    with Jobs(tmp_path / "code", {"agent": "me"}, resume=False) as folder:
        for code, (task, outcome) in programs.items():
            folder.append("samples.jsonl", [{"task_id": task, "solution": code + HOSTILE}])
            verdict = {"task_id": task, "sample": 0, "outcome": outcome, "message": HOSTILE}
            folder.append("verdicts.jsonl", [verdict])
        folder.write("report.json", {"figures": {"all": dict.fromkeys(names, figure)}})
    with Jobs(tmp_path / "tests", {"agent": BAD}, resume=False) as folder:
        folder.append("samples.jsonl", [{"task_id": "own/two", "answer": HOSTILE}])
        tests = [{"text": "assert 1", "fault": ""}, {"text": HOSTILE, "fault": HOSTILE, "reason": HOSTILE}]  # fmt: skip
        folder.append("verdicts.jsonl", [{"task_id": "own/two", "sample": 0, "tests": tests}])
        folder.write("report.json", {"kind": "tests", "figures": dict.fromkeys(names, figure)})
    path = tmp_path / "page.html"
    path.write_text(document(read_folders([tmp_path / "code", tmp_path / "tests"])), "utf-8")
    page = browser.new_page(viewport={"width": 400, "height": 800})
    page.goto(path.as_uri())
    assert page.title() == "Report of 2 results: Evaluation · Code-A1 report"
    assert page.locator("#contents tbody tr").count() == 2
    # All of a table can be read: nothing is cut aside or below.
    cut = "all => all.map((each) => [each.scrollWidth - each.clientWidth, each.scrollHeight - each.clientHeight])"
    tables = page.locator("main .scroll").evaluate_all(cut)
    assert len(tables) > 5
    assert set(map(tuple, tables)) == {(0, 0)}
    folder = page.locator("#evaluations td[data-heading=agent]").first
    shown = folder.evaluate("each => getComputedStyle(each, '::before').content")
    assert shown == '"agent"', "a heading stands beside each value"
    assert [page.locator(".filters label").nth(place).inner_text().split("\n")[0].strip() for place in (1, 3, 5)] == ["Folder", "Sample from", "Result"]  # fmt: skip
    assert page.locator("#count").inner_text() == "1 to 3 of 3 answers"
    first = page.locator("#episode")
    assert "b</script>" in first.inner_text()
    assert first.locator(".badge").first.inner_text() == "fail"
    page.select_option("[name=winner]", "wrong")
    page.locator("#list button").nth(1).click()
    assert "1 of 2 tests right" in first.inner_text()
    assert page.locator("nav").bounding_box()["y"] == 0, "the bar of sections stays"
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    assert page.evaluate("window.hacked") is None
    page.close()
