"""Episodes of a finished run: paid again, and as data sets."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from codea1_env.cli.app import run as command
from codea1_env.training import TrainConfig, train


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "one"
    train(TrainConfig(output_dir=folder, max_steps=3, problems_per_step=4, num_generations=4, max_problems=4, eval_steps=3))  # fmt: skip
    return folder


def summary(capsys: pytest.CaptureFixture[str], run: Path, *options: str) -> dict:
    assert command(["rejudge", str(run), "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_the_same_rules_pay_the_same(finished: Path, capsys) -> None:
    found = summary(capsys, finished)
    assert (found["episodes"], found["changed"]) == (12, 0)
    before, now = found["reward/tester/mean"]
    assert before == now


@pytest.mark.slow
def test_other_rules_are_told_episode_by_episode(finished: Path, tmp_path: Path, capsys) -> None:
    file = tmp_path / "rewards.jsonl"
    found = summary(capsys, finished, "--alpha", "1", "--output", str(file))
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert sum(row["changed"] for row in rows) == found["changed"] > 0
    logged = [json.loads(line) for line in (finished / "episodes.jsonl").read_text().splitlines()]
    for row, episode in zip(rows, logged, strict=True):
        # A suite is paid for its validity alone, where the program runs.
        wanted = [suite["validity"] * episode["executes"] for suite in episode["suites"]]
        assert [now for _, now in row["tester"]] == pytest.approx(wanted)
        assert row["coder"][0] == row["coder"][1]


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rejudge", "nothing"], "nothing"),
        (["rejudge", "RUN", "--rewards", "nobody"], "nobody"),
        (["export", "RUN", "--output-dir", "RUN", "--format", "sft"], "it exists"),
    ],
)
def test_bad_input_is_one_line(finished: Path, arguments, message, capsys) -> None:
    given = [str(finished) if each == "RUN" else each for each in arguments]
    assert command(given) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1


@pytest.mark.slow
def test_lines_that_are_left_out_are_told(finished: Path, tmp_path: Path, capsys) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    log = run / "episodes.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    strange = json.loads(lines[0]) | {"task_id": "starter/nothing"}
    log.write_text("".join([*lines, '{"step": 1\n', "hello\n", json.dumps(strange) + "\n"]))
    assert command(["rejudge", str(run)]) == 0
    assert "3 lines of" in capsys.readouterr().err
    log.write_text("hello\n")
    export = ["export", str(run), "--format", "sft", "--output-dir", str(tmp_path / "a")]
    assert command(export) == 2
    assert "none of 0" in capsys.readouterr().err
    log.unlink()
    for words in (["rejudge", str(run)], export):
        assert command(words) == 2
        assert "to hold episodes.jsonl" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()
