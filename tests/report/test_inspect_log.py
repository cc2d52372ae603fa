"""Episodes as a log of inspect_ai: read by its own reader, shown by its own viewer."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from run_logs import episode, write_run

from codea1_env.cli.app import run
from codea1_env.report.inspect_log import write_inspect_log
from codea1_env.report.runs import read_run

needs_inspect = pytest.mark.skipif(
    importlib.util.find_spec("inspect_ai") is None, reason="needs inspect_ai, of the extra inspect"
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
BAD = "</script><img src=x onerror='window.hacked = 2'>\n```\n<svg onload=alert(1)>\ud800\x00\u202e"


def hostile_episode(step: int) -> dict[str, object]:
    tests = [{"test": BAD, "status": "kept", "outcome": "fail", "reason": BAD}]
    suite = {"answer": BAD, "reward": None, "validity": 1e308, "adversarial": "x", "tests": tests}
    chat = [{"role": "system", "content": BAD}, {"role": "tool", "content": 7}, 7]
    return episode(
        step, f"own/{BAD}", problem=BAD, code="#" * 100_000, answer=BAD, suites=[suite],
        reward=10**400, program=["<b>"], prompt=chat, test_prompt=chat,
    )  # fmt: skip


@needs_inspect
def test_its_own_reader_finds_programs_tests_verdicts_and_rewards(tmp_path, capsys):
    from inspect_ai.log import read_eval_log

    passing = episode(2, suites=[], history=[], executes=False, reward=0.0)
    folder = write_run(tmp_path / "a", [episode(1), passing, hostile_episode(3)])
    with (folder / "episodes.jsonl").open("a") as log:
        log.write("damaged\n")
    words = ["export", str(folder), "--format", "inspect", "--output-dir", str(tmp_path / "logs")]
    assert run(words) == 0
    assert "3 of 3 episodes" in capsys.readouterr().out
    (path,) = (tmp_path / "logs").iterdir()
    log = read_eval_log(str(path))
    assert (log.status, log.eval.task, log.eval.model) == ("success", "a", "codea1/tabular")
    assert log.eval.metadata["damaged_lines"] == {"episodes.jsonl": 1}
    assert log.eval.task_args["seed"] == 0
    first, second, third = log.samples
    assert first.id == "1-0-own-one"
    scores = {name: score.value for name, score in first.scores.items()}
    assert scores == {"coder_wins": "I", "coder_reward": 0.25, "tester_reward": 0.375, "validity": 0.25, "adversarial": 0.5}  # fmt: skip
    explained = first.scores["coder_wins"].explanation
    assert "- **fail** `assert one() == 1`" in explained
    assert "- **invalid** `assert one(`: `is no Python`" in explained
    assert "- **timeout** `assert one(3) == 3`" in explained
    assert first.metadata["suites"][0]["tests"][1]["reason"] == "is no Python"
    assert [message.role for message in first.messages] == ["user", "assistant", "user", "assistant"]  # fmt: skip
    assert second.scores["coder_wins"].answer == "does not run"
    assert third.messages[0].role == "system"
    assert third.metadata["code"].endswith("(80000 more characters)")
    means = {score.name: score.metrics["mean"].value for score in log.results.scores}
    assert means["coder_wins"] == 0.0
    assert means["coder_reward"] == 0.125
    assert run(words) == 2
    assert "exists" in capsys.readouterr().err


@needs_inspect
def test_of_many_episodes_some_of_each_step_are_drawn(tmp_path: Path) -> None:
    from inspect_ai.log import read_eval_log

    rows = [episode(step, f"own/{n}") for step in (1, 2, 3) for n in range(20)]
    found = read_run(write_run(tmp_path / "a", rows), "a")
    written = write_inspect_log(found, tmp_path / "logs", 6)
    assert (written.episodes, written.total) == (6, 60)
    log = read_eval_log(str(written.path))
    assert sorted(sample.metadata["step"] for sample in log.samples) == [1, 1, 2, 2, 3, 3]
    assert log.eval.metadata["episodes"] == "6 of 60, drawn from all steps alike"


@contextmanager
def served(folder: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


@needs_inspect
@pytest.mark.skipif(
    CHROMIUM is None or importlib.util.find_spec("playwright") is None,
    reason="needs Chromium, and playwright of the extra dev",
)
def test_its_own_viewer_shows_an_episode_and_runs_nothing_of_it(tmp_path: Path) -> None:
    from inspect_ai.log import bundle_log_dir
    from playwright.sync_api import sync_playwright

    found = read_run(write_run(tmp_path / "a", [episode(1), hostile_episode(2)]), "a")
    write_inspect_log(found, tmp_path / "logs", 9)
    bundle_log_dir(str(tmp_path / "logs"), str(tmp_path / "bundle"))
    said: list[str] = []
    with served(tmp_path / "bundle") as address, sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-dev-shm-usage"]
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        page = chromium.new_page(viewport={"width": 1500, "height": 900})
        page.set_default_timeout(30_000)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        page.get_by_text("codea1/tabular").first.click()
        page.get_by_text("1-0-own-one").first.wait_for()
        samples = page.url
        page.get_by_text("1-0-own-one").first.click()
        page.get_by_text("The tester attacks this program").first.wait_for()
        assert "def one(n=1):\n    return 1" in page.inner_text("body")
        page.get_by_text("Scoring", exact=True).first.click()
        page.get_by_text("assert one(3) == 3").first.wait_for()
        page.goto(samples)
        page.get_by_text("2-1-own-script").first.click()
        page.get_by_text("Scoring", exact=True).first.click()
        page.get_by_text("Replayed from the Mistake Book").first.wait_for()
        assert page.evaluate("window.hacked") is None
        chromium.close()
    assert said == []
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--step", "1"], "no --step"),
        (["--output-dir", "a/config.toml"], "is a file"),
    ],
)
def test_wrong_words_are_told_in_one_line(words, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "a", [episode(1)])
    assert run(["export", "a", "--format", "inspect", "--output-dir", "logs", *words]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert run(["export", "none", "--format", "inspect", "--output-dir", "logs"]) == 2
    assert run(["export", "a", "--max-episodes", "3", "--output-dir", "logs"]) == 2
    assert not os.path.exists("logs")


def test_a_missing_package_names_the_extra(tmp_path, monkeypatch, capsys):
    for name in [name for name in sys.modules if name.partition(".")[0] == "inspect_ai"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    folder = write_run(tmp_path / "a", [episode(1)])
    words = ["export", str(folder), "--format", "inspect", "--output-dir", str(tmp_path / "logs")]
    assert run(words) == 2
    assert "codea1-env[inspect]" in capsys.readouterr().err
    assert not (tmp_path / "logs").exists()
