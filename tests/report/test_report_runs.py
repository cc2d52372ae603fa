"""Groups of runs, their curves and tables."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from run_logs import episode, write_run

from codea1_env.cli.app import run as command
from codea1_env.rendering.display import fenced
from codea1_env.report.charts import BOOK, HELD_OUT, REWARDS, curve, measures
from codea1_env.report.episode_log import EpisodeSample, sample, scan
from codea1_env.report.folders import RunGroup, differing_settings, grouped, read_run
from codea1_env.report.tables import health_signs, overview, side_by_side
from codea1_env.support.logs import read_rows
from codea1_env.training import TrainConfig, train
from codea1_env.training.run_folder import EPISODES, METRICS
from codea1_env.training.setting_groups import PlayerConfig

pytestmark = pytest.mark.usefixtures("sandboxes_stay_open")


def groups_of(tmp_path: Path) -> list[RunGroup]:
    for seed in range(2):
        write_run(tmp_path / f"book{seed}", [], seed=seed)
    write_run(tmp_path / "none", [], use_book=False)
    return grouped([read_run(tmp_path / name, name) for name in ("book0", "none", "book1")])


def test_runs_that_differ_by_their_seed_are_one_group(tmp_path: Path) -> None:
    groups = groups_of(tmp_path)
    assert [(group.name, len(group.runs)) for group in groups] == [("book0 and 1 more", 2), ("none", 1)]  # fmt: skip
    assert differing_settings(groups) == {"use_book": ["True", "False"]}
    both, alone = (curve(group, "held_out/pass_rate")[0] for group in groups)
    assert (both["step"], round(both["value"], 6)) == (0, 0.505)
    assert "low" not in both
    assert "low" not in alone
    # Two runs are two thin lines; the lone one is the line of its group.
    drawn = str(next(measures(groups, HELD_OUT)).spec)
    assert drawn.count("'line': 'run'") == 2 * len(groups[0].runs[0].metrics)


def test_five_runs_have_a_band_inside_the_range(tmp_path: Path) -> None:
    for seed in range(5):
        write_run(tmp_path / f"{seed}", [], seed=seed)
    (group,) = grouped([read_run(tmp_path / f"{seed}", f"{seed}") for seed in range(5)])
    points = curve(group, "held_out/pass_rate")
    assert points[0]["low"] < points[0]["value"] < points[0]["high"]
    clipped = curve(group, "held_out/pass_rate", share=True)
    assert all(0 <= each["low"] <= each["high"] <= 1 for each in clipped)
    assert "'line': 'run'" not in str(next(measures([group], HELD_OUT)).spec)


def test_a_second_run_of_a_seed_makes_no_interval_narrower(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("again", 0), ("b", 1)):
        write_run(tmp_path / name, [], seed=seed)
    groups = grouped([read_run(tmp_path / name, name) for name in ("a", "again", "b")])
    assert [[run.name for run in group.runs] for group in groups] == [["a", "b"], ["again"]]
    assert differing_settings(groups) == {}


def test_a_measure_stands_beside_its_control(tmp_path: Path) -> None:
    groups = groups_of(tmp_path)
    passes, kills, new = measures(groups, HELD_OUT)
    rows = kills.spec["datasets"] if "datasets" in kills.spec else kills.spec["layer"][0]["data"]
    assert "0.6" in str(rows)
    assert [chart.title.partition(":")[0] for chart in (passes, kills, new)] == ["Coder", "Tester", "Tester"]  # fmt: skip
    table = side_by_side(groups)
    labels = [row[0].text for row in table.rows]
    at = labels.index("held-out mutants that the tester kills")
    assert labels[at + 1] == "↳ that the copier kills"
    assert table.rows[at][2].text == "0.400 → 0.700"
    assert table.rows[at + 1][2].text == "0.600 → 0.600"


def test_a_run_that_goes_on_and_damaged_lines_are_told(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", [], max_steps=90)
    with (path / METRICS).open("a") as log:
        log.write('nothing\n{"step": 4, "reward/coder/mean": NaN, "book/size": "<b>"}\n{"step": 5')
    run = read_run(path, "run")
    assert run.damaged == {METRICS: 2}
    assert run.metrics[-1] == {"step": 4}
    sheet = overview(grouped([run]), {path: run.damaged})
    assert [cell.text for cell in sheet.rows[0]] == ["run", "run", "0", "4 of 90 steps so far", "metrics.jsonl: 2"]  # fmt: skip


def test_signs_of_weak_learning_of_language_models(tmp_path: Path) -> None:
    tables, models = write_run(tmp_path / "tables", []), tmp_path / "models"
    write_run(models, [], coder=PlayerConfig(player="llm", learning_rate=1e-4))
    for path in (tables, models):
        with (path / METRICS).open("a") as log:
            log.writelines(f'{{"step": {step}, "coder/truncated": 0.8}}\n' for step in range(4, 8))
    sheet = health_signs(grouped([read_run(path, path.name) for path in (tables, models)]))
    [[run, sign]] = sheet.rows
    assert run.text == "models"
    assert sign.text.startswith("Step 6: 80% of the coder's answers are cut off")


def test_what_is_drawn_are_metrics_that_runs_have() -> None:
    page = Path(__file__).parents[2] / "docs" / "training.md"
    if not page.is_file():
        pytest.skip("needs the repository")
    documented = set(re.findall(r"`([a-z_]+/[^` ]+)`", page.read_text("utf-8")))
    documented |= (
        {"reward/coder/mean", "reward/tester/mean"} if "reward/ROLE/mean" in documented else set()
    )
    drawn = {measure.metric for measure in (*REWARDS, *HELD_OUT, *BOOK)}
    drawn |= {measure.control for measure in HELD_OUT} - {"start"}
    assert drawn <= documented


def drawn(folder: Path, limit: int = 1_000_000) -> EpisodeSample:
    return sample([scan(read_run(folder, "run"))], limit)


def test_a_sample_has_all_steps_alike_and_is_the_same_each_time(tmp_path: Path) -> None:
    rows = [episode(step, f"own/{step}-{i}") for step in range(1, 21) for i in range(20)]
    run = write_run(tmp_path / "run", rows)
    some = drawn(run, 20_000)
    per_step = Counter(row["step"] for row in some.rows)
    assert some.total == 400
    assert 40 < len(some.rows) < 400
    assert set(per_step) == set(range(1, 21))
    assert max(per_step.values()) - min(per_step.values()) <= 1
    assert drawn(run, 20_000).data() == some.data()
    assert len(drawn(run).rows) == 400


def test_an_episode_names_its_outcome_and_the_difference_to_the_last_program(tmp_path):
    tests = [{"test": "assert one() == 1", "status": "kept", "outcome": "pass"}]
    passing = episode(3, suites=[{"tests": tests}], history=[])
    page = drawn(write_run(tmp_path / "run", [episode(1), episode(2, executes=False), passing]))
    first, second, third = page.rows
    texts = page.texts.all()
    assert (first["outcome"], first["winner"]) == ("broken by new tests", "tester")
    assert (second["outcome"], third["outcome"]) == ("does not run", "passes all tests")
    assert third["winner"] == "coder"
    assert "last" not in first
    assert second["last"]["step"] == 1
    assert texts[second["last"]["diff"]].endswith("-    return 1\n+    return 2")


def test_the_program_before_is_of_another_step_or_round(tmp_path: Path) -> None:
    rows = [episode(1), episode(1, program=1), episode(2), episode(2, program=1)]
    rows += [episode(2, round=1), episode(2, program=1, round=1), episode(2, "own/other")]
    log = scan(read_run(write_run(tmp_path / "run", rows), "run"))
    assert [before for *_, before in log.places] == [-1, -1, 0, 0, 2, 2, -1]


def test_lines_that_are_no_episodes_are_counted(tmp_path: Path) -> None:
    odd = [{"test": "a", "status": "kept", "outcome": []}]
    rows = [episode(1), episode(2, suites="none"), episode(2, history=odd), {"step": 3}]
    run = write_run(tmp_path / "run", rows)
    with (run / EPISODES).open("ab") as log:
        log.write(b"\xff\n[1]\n" + b"[" * 100_000 + b'\n{"step": 4, "task')
    log = scan(read_run(run, "run"))
    assert (len(log.places), log.damaged) == (1, 7)


def test_long_and_invisible_text_is_cut_and_escaped(tmp_path: Path) -> None:
    page = drawn(write_run(tmp_path / "run", [episode(1, code="\u202e\x1b" + "x" * 1_000_000)]))
    (text,) = (text for text in page.texts.all() if "xxx" in text)
    assert text.startswith("\\u202e\\x1bxxx")
    assert text.endswith("x ... (980002 more characters)")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "one"
    numbers = {"max_steps": 2, "problems_per_step": 2, "num_generations": 3, "max_problems": 2}
    train(TrainConfig(output_dir=folder, num_suites=2, logged_programs=3, **numbers))
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


def test_all_answers_of_a_step_are_kept_and_exported(finished, tmp_path):
    rows = list(read_rows(finished / "episodes.jsonl"))
    kept = Counter((row["step"], row["task_id"]) for row in rows)
    assert list(kept.values()) == [3] * 4
    assert {len(row["suites"]) for row in rows} == {2}
    for step in (1, 2):
        programs = sorted(row["program"] for row in rows if row["step"] == step)
        assert programs == [0, 0, 1, 1, 2, 2]
    assert (
        command(["export", str(finished), "--format", "sft", "--output-dir", str(tmp_path / "o")])
        == 0
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
