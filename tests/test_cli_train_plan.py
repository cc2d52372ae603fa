"""`codea1 train --dry-run`: what fits into the memory of which devices."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from codea1_env.cli import train
from codea1_env.cli.app import run
from codea1_env.training.memory_plan import Devices

DEVICES = {
    "qwen2.5-coder-1.5b": "1x80",
    "qwen2.5-coder-1.5b-lora": "1x80",
    "qwen2.5-coder-1.5b-8gpu": "8x80",
    "qwen2.5-coder-3b": "1x141",
    "qwen2.5-coder-7b": "8x80",
    "smollm2-gpu": "1x24",
}
"""What the head of each preset's file says it is for."""


@pytest.mark.parametrize("preset", DEVICES)
def test_presets_fit_where_they_say(preset: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "--preset", preset, "--dry-run", "--devices", DEVICES[preset]]) == 0
    shown = capsys.readouterr()
    tomllib.loads(shown.out)
    assert "learns" in shown.err
    assert "optimizer" in shown.err
    whole = preset in ("qwen2.5-coder-1.5b", "qwen2.5-coder-1.5b-8gpu", "qwen2.5-coder-3b")
    assert ("reference model" in shown.err) == whole


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--preset", "qwen2.5-coder-3b"], "lora_rank"),
        (["--preset", "qwen2.5-coder-1.5b", "--generation-batch", "64"], "--generation-batch"),
        (["--preset", "qwen2.5-coder-1.5b-lora", "--max-problems", "None"], None),
        (["--preset", "qwen2.5-coder-7b", "--lora-rank", "0"], "smaller model"),
        (["--preset", "qwen2.5-coder-1.5b", "--backend", "vllm"], "lora_rank"),
    ],
)
def test_what_does_not_fit_is_refused(
    arguments: list[str], named: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["train", *arguments, "--dry-run", "--devices", "1x80"]) == (2 if named else 0)
    shown = " ".join(capsys.readouterr().err.split())
    assert ("Expect a run that fits into 80.0 GB" in shown) == (named is not None)
    assert named is None or named in shown


def test_engines_of_whole_models_have_half_of_their_share_each(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["train", "--preset", "smollm2-gpu", "--dry-run", "--devices"]
    assert run([*arguments, "1x24", "--lora-rank", "0"]) == 0
    capsys.readouterr()
    assert run([*arguments, "1x1.2", "--lora-rank", "0"]) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert "Expect vLLM's engines to fit into 0.5 GB (40% of the memory), actually: 0.6 GB" in shown
    assert "Choose adapters instead of all weights (--lora-rank), backend='transformers'" in shown
    assert run([*arguments, "1x1.2"]) == 2  # one engine fits, but not what is learned with
    assert "engines" not in capsys.readouterr().err


def test_a_batch_that_is_too_large(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.toml"
    path.write_text(
        'extends = "qwen2.5-coder-1.5b-lora"\n[tester.trainer]\nper_device_train_batch_size = 64\n'
        "gradient_accumulation_steps = 16\n"
    )
    assert run(["train", "--config", str(path), "--dry-run", "--devices", "1x80"]) == 2
    assert "tester.trainer.per_device_train_batch_size" in " ".join(capsys.readouterr().err.split())


def test_the_devices_of_this_machine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for memory, code in ((64e9, 0), (2e9, 2)):
        monkeypatch.setattr(train, "_here", lambda memory=memory: Devices(1, memory, False))
        assert run(["train", "--preset", "smollm2-cpu", "--dry-run"]) == code
        assert "processor" in capsys.readouterr().err


def test_a_model_whose_configuration_is_not_at_hand(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    model = str(tmp_path / "nothing")
    arguments = ["--preset", "smollm2-gpu", "--model", model, "--dry-run", "--devices", "1x24"]
    assert run(["train", *arguments]) == 0
    assert "needs the config.json" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("devices", ["80", "0x80", "8x0", "8x", "eight", "1e3x80"])
def test_bad_devices(devices: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "--preset", "quick", "--dry-run", "--devices", devices]) == 2
    assert "as 8x80, actually" in capsys.readouterr().err


def test_each_process_of_a_cluster_has_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = ["--preset", "smollm2-cpu", "--engine", "ray", "--dry-run", "--devices", "4x80"]
    assert run(["train", *cluster]) == 0
    assert capsys.readouterr().err.count("together") == 2
    # A number of steps goes before the preset's time budget, which vLLM has no speed for.
    ahead = ["--max-staleness", "1", "--backend", "vllm", "--max-steps", "2"]
    assert run(["train", *cluster, *ahead]) == 0
    shown = capsys.readouterr().err
    assert [shown.count(word) for word in ("together", "learns", "writes", "vLLM")] == [4, 2, 2, 2]


def test_devices_are_for_plans_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "--quick", "--devices", "1x80"]) == 2
    assert "--devices with --dry-run" in capsys.readouterr().err
