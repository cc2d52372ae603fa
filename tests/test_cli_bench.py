"""`codea1 bench algorithms` and `codea1 eval cross-play` from the command line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from runs_here import run_here

from codea1_env.cli.app import run
from codea1_env.support.logs import read_rows

pytestmark = pytest.mark.usefixtures("sandboxes_stay_open")

SMALL = ["--seeds", "1", "--max-problems", "2", "--max-steps", "4", "--sweep", "1"]
NAMES = ["--algorithms", "code-a1", "golden-tests"]


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("bench") / "results"
    with pytest.MonkeyPatch.context() as patch:
        run_here(patch)
        assert run(["bench", "algorithms", *NAMES, *SMALL, "--output-dir", str(folder)]) == 0
    return folder


def test_results_folder(bench: Path):
    names = {path.name for path in bench.iterdir()}
    assert {"bench.json", "jobs.jsonl", "results.jsonl", "LEADERBOARD.md", "runs"} <= names
    text = (bench / "LEADERBOARD.md").read_text()
    assert "2 of 2 runs done, 0 failed" in text
    command = "codea1 bench algorithms --algorithms code-a1 golden-tests --problems starter-medium"
    assert command in text


def test_resumed_with_its_own_settings(bench: Path, capsys):
    assert run(["bench", "algorithms", "--resume", "--output-dir", str(bench), "--json"]) == 0
    about = json.loads(capsys.readouterr().out)
    assert (about["runs"], about["done"], about["failed"]) == (2, 2, 0)
    changed = ["--resume", "--output-dir", str(bench), "--max-steps", "7"]
    assert run(["bench", "algorithms", *changed]) == 2
    assert "actually: --max-steps was 4, now 7" in capsys.readouterr().err


def test_resumed_with_a_broken_learner(bench: Path, tmp_path: Path, capsys, monkeypatch):
    run_here(monkeypatch)
    broken = tmp_path / "broken.py"
    broken.write_text(
        "class Broken:\n    def update(self, policy, samples):\n        return 1 / 0\n"
    )
    example = Path(__file__).resolve().parents[1] / "examples" / "custom_algorithm.py"
    assert len(example.read_text().splitlines()) < 45
    names = [*NAMES, f"{example}:RankGradient", f"{broken}:Broken"]
    arguments = ["bench", "algorithms", *names, *SMALL, "--output-dir", str(bench)]
    assert run(arguments) == 2
    assert "Add --resume" in capsys.readouterr().err
    assert run([*arguments, "--resume", "--json"]) == 1
    about = json.loads(capsys.readouterr().out)
    assert (about["runs"], about["done"], about["failed"]) == (4, 4, 1)
    assert "| custom_algorithm.py:RankGradient | 0." in about["leaderboard"]
    assert "Broken, seed 0: `PlayerError: Expect Broken.update" in about["leaderboard"]
    assert any("in update" in path.read_text() for path in bench.rglob("log.txt"))


def test_a_file_is_no_results_folder(tmp_path: Path, capsys):
    (tmp_path / "a_file").touch()
    assert run(["bench", "algorithms", "--output-dir", str(tmp_path / "a_file")]) == 2
    assert "a_file to be a new or an empty folder" in capsys.readouterr().err


def test_cross_play_with_checkpoints(bench: Path, capsys):
    trained = str(bench / "runs" / "code-a1" / "x1.0-x1.0" / "seed_0" / "run")
    play = ["eval", "cross-play", "reference", "golden", trained, "--num-samples", "2"]
    assert run([*play, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["coders"], result["testers"]) == (["reference", "run"], ["golden", "run"])
    assert len(result["problems"]) == 2, "those that the run was trained on"
    assert result["win_rates"][0] == [1.0, 1.0]
    assert run(play) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "reference 1.000 (" in shown
    rating = result["ratings"]["testers"]["golden"]
    assert f"golden tester {rating['value']:.0f} [" in shown


def test_an_interrupted_benchmark_goes_on_to_the_same_results(
    bench: Path, tmp_path: Path, monkeypatch
):
    parts = tmp_path / "parts"
    arguments = ["bench", "algorithms", "--algorithms", "golden-tests", *SMALL]
    arguments += ["--output-dir", str(parts)]
    command = [sys.executable, "-m", "codea1_env.cli", *arguments]
    begun = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    saved = "runs/*/*/*/run/checkpoints/step_*"  # no `rglob`: folders are renamed meanwhile
    while not list(parts.glob(saved)) and begun.poll() is None:
        time.sleep(0.02)
    begun.send_signal(signal.SIGINT)
    output, _ = begun.communicate(timeout=60)
    assert begun.returncode == 130
    assert "To go on, add: --resume --output-dir" in output
    assert {row["status"] for row in read_rows(parts / "jobs.jsonl")} == {"begun"}
    run_here(monkeypatch)
    assert run([*arguments, "--resume"]) == 0
    [resumed] = read_rows(parts / "results.jsonl")
    [whole] = [row for row in read_rows(bench / "results.jsonl") if row["entry"] == "golden-tests"]
    assert resumed["end"] == whole["end"]


def test_a_benchmark_that_is_stopped_before_its_first_result_shows_no_tables(
    tmp_path: Path, capsys, monkeypatch
):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("codea1_env.cli.bench_algorithms.run_all", interrupted)
    folder = tmp_path / "bench"
    assert run(["bench", "algorithms", "--quick", "--output-dir", str(folder)]) == 130
    shown = capsys.readouterr().out
    told = f"Stopped, 0 of 6 runs done. To go on, add: --resume --output-dir {folder}"
    assert told in shown.replace("\n", " ")
    page = (folder / "LEADERBOARD.md").read_text()
    assert "0 of 6 runs done" in page
    for text in ("Leaderboard", "pass rate", "paired by seed", "Ranks"):
        assert text not in shown
    assert "pass rate" not in page
    for arguments in (["play", "--coder"], ["eval", "code", "--agent"]):
        assert run([*arguments, str(folder)]) == 2
        said = capsys.readouterr().err
        assert "which holds a benchmark. Name a training run, a model or another player" in said
    assert run(["eval", "cross-play", "golden", str(folder)]) == 2
    assert "it holds a benchmark. Name one that `codea1 train` wrote" in capsys.readouterr().err


FUSSY = """
class Fussy:
    def __init__(self, learning_rate):
        self.learning_rate = learning_rate
    def update(self, policy, samples):
        coder = policy.draws == 1
        good = self.learning_rate == (8.0 if coder else 4.0)
        for sample in samples:  # first come the reference, and golden tests that kill here what copies kill
            policy.logits[sample.key][: policy.draws] = 30.0 if coder is good else -30.0
        return {}
"""


RAISES = """
class Raises:
    def __init__(self, learning_rate):
        self.learning_rate = learning_rate
    def update(self, policy, samples):
        raise ValueError("boom")
"""


def test_each_player_gets_its_best_rate_and_the_sweep_may_be_widened(tmp_path: Path, monkeypatch):
    run_here(monkeypatch)
    own = tmp_path / "mine.py"
    own.write_text(FUSSY + RAISES)
    folder = tmp_path / "results"
    command = ["bench", "algorithms", "--algorithms", f"{own}:Fussy", f"{own}:Raises"]
    command += ["--seeds", "1", "--max-problems", "1", "--max-steps", "2", "--sweep-seeds", "1"]
    command += ["--output-dir", str(folder), "--sweep", "0.25"]
    assert run(command) == 1
    before = next(read_rows(folder / "results.jsonl"))
    assert run([*command, "4", "--resume"]) == 1
    rows = [row for row in read_rows(folder / "sweep.jsonl") if row["entry"].endswith("Fussy")]
    assert [(r["player"], r["best"], r["learning_rate"]) for r in rows] == [
        ("coder", 4.0, 8.0),
        ("tester", 0.25, 4.0),
    ]
    assert rows[0]["scores"]["4"] == [1.0]
    [after] = read_rows(folder / "results.jsonl")  # the other row has no rate
    assert all(row["pass_rate"] == 1.0 for row in after["end"].values())
    assert before["end"] != after["end"], (
        "a run with a rate that is no longer the best is not shown"
    )
    found = {row["entry"]: row["best"] for row in read_rows(folder / "sweep.jsonl")}
    assert found[f"{own}:Raises"] is None
    table = (folder / "LEADERBOARD.md").read_text()
    assert "- Sweep: mine.py:Raises, ×4, seed 1000: `PlayerError: Expect Raises.update" in table
    assert "| - | - | - |" in table
