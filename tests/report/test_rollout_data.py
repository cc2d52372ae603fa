"""Episodes of a finished run as data sets."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from codea1_env.cli.app import run as command
from codea1_env.rendering.display import fenced
from codea1_env.support.logs import read_rows
from codea1_env.training import TrainConfig, train

pytestmark = pytest.mark.usefixtures("sandboxes_stay_open")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "one"
    train(TrainConfig(output_dir=folder, max_steps=3, problems_per_step=4, num_generations=4, max_problems=4, eval_steps=3))  # fmt: skip
    return folder


@pytest.mark.parametrize(("kind", "file"), [("sft", "jsonl"), ("preference", "parquet")])
def test_data_sets_load_and_say_what_they_are(finished, tmp_path, kind, file):
    datasets = pytest.importorskip("datasets")
    options = ["--format", kind, "--file", file, "--output-dir", str(tmp_path / kind)]
    assert command(["export", str(finished), *options]) == 0
    cache = str(tmp_path / "cache")
    rows = list(datasets.load_dataset(str(tmp_path / kind), split="train", cache_dir=cache))
    assert rows
    card = (tmp_path / kind / "README.md").read_text()
    for player in ("coder", "tester"):
        number = sum(row["player"] == player for row in rows)
        assert f"| rows of the {player} | {number} |" in card
    chats = [row["messages"][-1] if kind == "sft" else row["chosen"][0] for row in rows]
    assert all(chat["content"].startswith("```python\n") for chat in chats), "as prompts ask"
    if kind == "sft":
        assert {row["messages"][-1]["role"] for row in rows} == {"assistant"}
    else:
        assert all(row["reward_chosen"] > row["reward_rejected"] for row in rows)
        assert all(row["chosen"] != row["rejected"] for row in rows)


def test_all_answers_of_a_step_are_kept_and_exported(tmp_path):
    run = tmp_path / "run"
    numbers = {"max_steps": 2, "problems_per_step": 2, "num_generations": 3, "max_problems": 2}
    train(TrainConfig(output_dir=run, num_suites=2, logged_programs=3, **numbers))
    rows = list(read_rows(run / "episodes.jsonl"))
    kept = Counter((row["step"], row["task_id"]) for row in rows)
    assert list(kept.values()) == [3] * 4
    assert {len(row["suites"]) for row in rows} == {2}
    for step in (1, 2):
        programs = sorted(row["program"] for row in rows if row["step"] == step)
        assert programs == [0, 0, 1, 1, 2, 2]
    assert (
        command(["export", str(run), "--format", "sft", "--output-dir", str(tmp_path / "o")]) == 0
    )
    chats = [row["messages"] for row in read_rows(tmp_path / "o" / "train.jsonl")]
    written = {chat[-1]["content"] for chat in chats}
    right = [row for row in rows if row["executes"] and _passes(row)]
    assert right
    assert all(fenced(row["code"].strip("\n"), "python") in written for row in right)


def _passes(row):
    tests = [test for suite in row["suites"] for test in suite["tests"]] + row["history"]
    return {test["outcome"] for test in tests if "outcome" in test} == {"pass"}


def test_bad_input_is_one_line(finished: Path, tmp_path: Path, capsys) -> None:
    for run, to, message in (
        (tmp_path / "nothing", tmp_path / "new", "there is no such folder"),
        (finished / "episodes.jsonl", tmp_path / "new", "it is a file"),
        (finished.parent, tmp_path / "new", f"It holds runs: name {finished}"),
        (finished, finished, "it exists"),
    ):
        words = ["export", str(run), "--format", "sft", "--output-dir", str(to)]
        assert command(words) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_lines_that_are_left_out_are_told(finished: Path, tmp_path: Path, capsys) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    log = run / "episodes.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    strange = json.loads(lines[0]) | {"task_id": "starter/nothing"}
    log.write_text("".join([*lines, '{"step": 1\n', "hello\n", json.dumps(strange) + "\n"]))
    export = ["export", str(run), "--format", "sft", "--output-dir"]
    assert command([*export, str(tmp_path / "a")]) == 0
    assert "3 lines of" in capsys.readouterr().out
    for text, message in (("hello\n", "none of 0"), (None, "to hold episodes.jsonl")):
        log.write_text(text) if text else log.unlink()
        assert command([*export, str(tmp_path / "b")]) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "b").exists()
