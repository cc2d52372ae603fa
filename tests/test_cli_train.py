"""`codea1 train`: where its settings come from, and a whole run from the shell."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import tomllib
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from codea1_env.baselines import BASELINES
from codea1_env.cli.app import run
from codea1_env.cli.train import SourcesAndFolder, base_settings
from codea1_env.problems import load_problems
from codea1_env.support.logs import read_rows
from codea1_env.training import RunError
from codea1_env.training.settings import PRESETS, replaced
from codea1_env.training.trainer_arguments import check_batches, tokens_of_step

pytestmark = pytest.mark.usefixtures("sandboxes_stay_open")


def dry_run(*arguments: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert run(["train", "--dry-run", *arguments]) == 0
    return tomllib.loads(capsys.readouterr().out)


@pytest.mark.parametrize("baseline", ["self-play", "sft"])
def test_baseline_reaches_the_settings(baseline: str, capsys: pytest.CaptureFixture[str]) -> None:
    settings = dry_run("--baseline", baseline, capsys=capsys)
    blocks = {f"tester.{name}": value for name, value in settings["tester"].items()}
    blocks |= {f"coder.{name}": value for name, value in settings["coder"].items()}
    assert (settings | blocks).items() >= dict(BASELINES[baseline].overrides).items()


def test_the_baseline_sft_of_language_models_is_an_example(capsys) -> None:
    assert run(["train", "--baseline", "sft", "--preset", "smollm2-cpu", "--dry-run"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "baseline 'sft'" in said
    assert "examples/sft_tester.py" in said


def test_command_line_wins_over_file_over_baseline_over_preset(capsys, tmp_path) -> None:
    path = tmp_path / "run.toml"
    path.write_text('seed = 5\nmax_steps = 50\nuse_book = true\nsplit = "None"\n')
    options = ["--max-steps", "60", "--config", str(path), "--baseline", "no-book", "--quick"]
    settings = dry_run(*options, capsys=capsys)
    expected = {"max_steps": 60, "seed": 5, "use_book": True, "split": "None", "num_generations": 4}
    assert settings.items() >= expected.items()


def test_settings_of_a_run_come_back_whole(capsys, tmp_path) -> None:
    """Settings that are None are not lost, although TOML has no word for it."""
    folder = tmp_path / "run"
    arguments = ["train", "--preset", "shortest", "--split", "None", "--max-steps", "2", "--json"]
    assert run([*arguments, "--output-dir", str(folder)]) == 0
    resume = ["train", "--resume", "--output-dir", str(folder), "--max-steps", "3"]
    capsys.readouterr()
    assert run([*resume, "--dry-run"]) == 0
    settings = tomllib.loads(capsys.readouterr().out)
    assert settings["split"] == "None"
    assert settings["max_steps"] == 3

    # Where the cluster of a run was is of no use to whom goes on without it.
    config = folder / "config.toml"
    local = config.read_text()
    ray = local.replace('engine = "local"', 'engine = "ray"')
    config.write_text(ray.replace('address = "local"', 'address = "auto"'))
    assert tomllib.loads(config.read_text())["address"] == "auto"
    assert run([*resume, "--engine", "local", "--dry-run"]) == 0
    assert tomllib.loads(capsys.readouterr().out)["address"] == "local"
    config.write_text(local)
    assert run([*resume, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["step"] == 3


def test_quick_run_from_the_shell(tmp_path, capsys, monkeypatch) -> None:
    command = [
        sys.executable,
        "-m",
        "codea1_env.cli",
        "train",
        "--quick",
        "--output-dir",
        "mine[b]",
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "Run folder: mine[b]" in done.stdout
    assert "\x1b" not in done.stdout
    assert (tmp_path / "mine[b]" / "config.toml").is_file()
    rows = list(read_rows(tmp_path / "mine[b]" / "metrics.jsonl"))
    for name in ("held_out/pass_rate", "held_out/kill_rate"):  # the first command shows learning
        assert rows[-1][name] > rows[0][name] + 0.1
    end = rows[-1]  # and a tester that learned more than to copy
    assert end["held_out/kill_rate"] > end["held_out/copier_kill_rate"]
    assert end["held_out/new_kill_rate"] > 0.2
    assert "and the copier does not" in done.stdout

    monkeypatch.chdir(tmp_path)
    assert run(["play", "--coder", "mine[b]", "--tester", "mine[b]", "--json"]) == 0
    starter = load_problems("starter", "train", "medium")
    played = json.loads(capsys.readouterr().out)
    assert played["problem"] in {each.task_id for each in starter[:6]}
    assert run(["play", "--coder", "mine[b]", "--problem", "is_leap_year"]) == 2
    told = capsys.readouterr().err
    assert f"The tables of mine[b] know only these 6 problems: {starter[0].task_id}, " in told
    for options, message in (
        (["--quick"], "it holds a run"),
        (["--resume"], "Raise max_steps"),
        (["--resume", "--seed", "5"], "seed was 0, now 5"),
    ):
        assert run(["train", *options, "--output-dir", "mine[b]"]) == 2
        assert message in capsys.readouterr().err


def test_the_quick_preset_takes_all_problems_of_another_source(capsys) -> None:
    assert dry_run("--quick", capsys=capsys)["difficulty"] == "medium"
    other = dry_run("--quick", "--problems", "cells:C=64,faults=1/64,problems=2", capsys=capsys)
    assert other["difficulty"] == "None"


def test_run_at_another_level_of_the_sandbox(capsys, tmp_path, monkeypatch) -> None:
    """And without a folder: it makes one."""
    monkeypatch.chdir(tmp_path)
    results = []
    for level in ("kernel", "None"):
        arguments = ["--preset", "shortest", "--max-steps", "1", "--json"]
        assert run(["train", *arguments, "--sandbox-level", level]) == 0
        result = json.loads(capsys.readouterr().out)
        assert result["finished"] is True
        results.append((tmp_path / result["output_dir"] / "metrics.jsonl").read_bytes())
    assert results[0] == results[1]
    assert len(list((tmp_path / "runs").iterdir())) == 2


def test_ctrl_c_ends_cleanly_and_the_run_goes_on(tmp_path, capsys, monkeypatch) -> None:
    command = [sys.executable, "-m", "codea1_env.cli", "train", "--preset", "shortest"]
    command += ["--max-steps", "200", "--eval-steps", "200", "--output-dir", "mine"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_for_step(tmp_path / "mine" / "metrics.jsonl", 2)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "Traceback" not in errors
    *_, last = read_rows(tmp_path / "mine" / "metrics.jsonl")
    step = last["step"]
    assert 2 <= step < 200
    assert (tmp_path / "mine" / "checkpoints" / f"step_{step}").is_dir()
    monkeypatch.chdir(tmp_path)
    more = ["--max-steps", str(step + 1), "--json"]
    assert run(["train", "--resume", "--output-dir", "mine", *more]) == 0
    assert json.loads(capsys.readouterr().out)["step"] == step + 1


def wait_for_step(log: Path, step: int) -> None:
    for _ in range(600):
        if log.exists() and f'"step": {step},' in log.read_text():
            return
        time.sleep(0.1)
    raise AssertionError(f"{log} did not reach step {step} within a minute")


LLM = ["--preset", "smollm2-cpu"]


def test_fields_of_a_trainer_stay_beside_those_of_the_command_line(capsys) -> None:
    before = dry_run(*LLM, capsys=capsys)["coder"]["trainer"]
    assert before
    given = dry_run(*LLM, "--coder.trainer", "warmup_steps = 3", capsys=capsys)["coder"]["trainer"]
    assert given == before | {"warmup_steps": 3}


REWARDS = """
def odd(outcome, config):
    return "a lot"

def away(outcome, config):
    raise SystemExit(0)
"""


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("odd", 2, "the reward function 'mine.py:odd' to return the program's reward (or None)"),
        ("away", 1, "actually it ended the program: SystemExit(0) in "),
    ],
)
def test_rewards_of_ones_own_that_fail_take_a_line(
    name: str, code: int, said: str, capsys, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(REWARDS)
    short = ["train", "--preset", "shortest", "--output-dir", "r"]
    assert run([*short, "--rewards", f"mine.py:{name}"]) == code
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err
    assert not Path("r").exists()


def test_a_resumed_run_says_that_a_file_of_ones_own_is_another(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = Path("mine.py")
    file.write_text("def same(outcome, config):\n    return 0.5, 0.5\n")
    short = ["train", "--preset", "shortest", "--eval-steps", "9", "--output-dir", "r"]
    assert run([*short, "--rewards", "mine.py:same", "--max-steps", "1"]) == 0
    file.write_text("def same(outcome, config):\n    return 1.0, 0.0\n")
    assert run(["train", "--resume", "--output-dir", "r", "--max-steps", "2"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "after step 1. Not the same as before: mine.py:same." in out
    assert [row["step"] for row in read_rows(Path("r/own_files.jsonl"))] == [0, 1]


def test_a_file_extends_a_preset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('extends = "qwen2.5-coder-7b"\nseed = 5\n[coder.trainer]\nwarmup_steps = 3\n')
    settings = dry_run("--config", str(path), capsys=capsys)
    preset = dry_run("--preset", "qwen2.5-coder-7b", capsys=capsys)
    preset["coder"]["trainer"]["warmup_steps"] = 3
    assert settings == preset | {"seed": 5}
    path.write_text('extends = "qwen"')
    assert run(["train", "--dry-run", "--config", str(path)]) == 2
    assert "unknown preset 'qwen'" in capsys.readouterr().err


def test_a_runs_own_settings_do_not_undo_a_baseline(tmp_path, capsys) -> None:
    assert run(["train", "--dry-run"]) == 0
    path = tmp_path / "config.toml"
    path.write_text(capsys.readouterr().out)
    assert run(["train", "--dry-run", "--config", str(path), "--baseline", "no-book"]) == 2
    assert "leaves use_book to --baseline no-book" in capsys.readouterr().err
    path.write_text(path.read_text().replace("use_book = true", "use_book = false"))
    assert run(["train", "--dry-run", "--config", str(path), "--baseline", "no-book"]) == 0


def test_short_forms_name_the_players(capsys: pytest.CaptureFixture[str]) -> None:
    own = "examples/custom_agent.py:DocstringTester"
    arguments = ["--coder", "mutant", f"--tester={own}", "--coder.freeze", "--algorithm", "rloo"]
    short = dry_run(*arguments, "--tester.algorithm", "grpo", capsys=capsys)
    table = "[coder]\nplayer = 'mutant'\nfreeze = true\n[tester]\nalgorithm = 'grpo'\n"
    expected = tomllib.loads(f"algorithm = 'rloo'\n{table}player = '{own}'")
    for name in ("coder", "tester"):
        expected[name] = {**dry_run(capsys=capsys)[name], **expected[name]}
    assert short == dry_run(capsys=capsys) | expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--coder", "a-model"], "A language model is 'llm', with its name or folder as coder.m"),
        (["--config", "name.toml"], "name.toml: unknown key 'tester_sampling'"),
        (["--config", "block.toml"], "block.toml: Expect coder to be "),
        (["--config", "run.toml"], "Expect run.toml to be of version 2, actually: 0"),
    ],
)
def test_files_of_other_versions_and_unknown_players(
    arguments: list[str], message: str, tmp_path: Path, capsys, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("name.toml").write_text("[tester_sampling]\ntop_k = 3\n")
    Path("block.toml").write_text('coder = "mutant"\n')
    Path("run.toml").write_text("version = 0\nmax_steps = 3\n")
    assert run(["train", "--dry-run", *arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert message in error
    assert "\n" not in error


def test_every_preset_is_read() -> None:
    for preset in PRESETS:
        assert base_settings(SourcesAndFolder(preset=preset)).max_steps > 0


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["tabular", "smollm2-cpu", "qwen2.5-coder-7b"])
def test_a_dry_run_says_what_a_step_writes_and_learns(preset, capsys) -> None:
    assert run(["train", "--preset", preset, "--dry-run"]) == 0
    shown = capsys.readouterr()
    settings = tomllib.loads(shown.out)
    models = "llm" in (settings["coder"]["player"], settings["tester"]["player"])
    assert shown.err.startswith("A step writes at most") == models
    if preset == "tabular":  # which writes out the defaults, but for one
        assert run(["train", "--dry-run", "--num-tests", "4"]) == 0
        assert tomllib.loads(capsys.readouterr().out) == settings


def test_the_tokens_of_a_step_are_those_of_its_answers() -> None:
    config = replaced(
        base_settings(SourcesAndFolder(preset="smollm2-cpu")),
        {
            "problems_per_step": 3,
            "num_generations": 4,
            "num_suites": 2,
            "sparring": 0.0,
            "coder.sampling.max_completion_length": 100,
            "tester.sampling.max_completion_length": 10,
        },
    )
    # 12 programs and 24 suites are written; of each problem the suites of one program teach.
    assert tokens_of_step(config) == (12 * 100 + 24 * 10, 12 * 100 + 6 * 10)
    frozen = replaced(config, {"coder.freeze": True})
    assert tokens_of_step(frozen) == (12 * 100 + 24 * 10, 6 * 10)
    spars = replaced(config, {"sparring": 0.5})  # three groups more
    assert tokens_of_step(spars) == (12 * 100 + 30 * 10, 12 * 100 + 12 * 10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--threads", "1000000"], "Expect --threads to be from 1 to "),
        (
            ["--coder.sampling.max-completion-length", "1000000000"],
            "in the model's context of 8192 tokens, actually: 1000000000. Lower it.",
        ),
    ],
)
def test_what_this_machine_or_the_model_cannot_do(options, message, capsys) -> None:
    assert run(["train", "--preset", "smollm2-cpu", "--dry-run", *options]) == 2
    assert message in capsys.readouterr().err


def test_a_batch_must_divide_the_answers_of_a_step() -> None:
    preset = base_settings(SourcesAndFolder(preset="smollm2-cpu"))
    preset = replaced(preset, {"problems_per_step": 2})  # two groups of four
    for size, taken in ((4, True), (8, True), (5, False), (16, False)):
        config = replaced(preset, {"coder.trainer": {"per_device_train_batch_size": size}})
        with nullcontext() if taken else pytest.raises(RunError, match="to divide the 8 answers"):
            check_batches(config, 12, gpu=False)
    config = replaced(preset, {"coder.trainer": {"per_device_train_batch_size": 4}})
    check_batches(config, 1, gpu=False)  # a step has no more problems than there are
