"""`codea1 train --dry-run`: what fits into the memory of which devices."""

from __future__ import annotations

import shlex
import tomllib
from contextlib import nullcontext
from pathlib import Path

import pytest

from codea1_env.cli import train
from codea1_env.cli.app import run
from codea1_env.cli.train_settings import SourcesAndFolder, base_settings
from codea1_env.training import RunError
from codea1_env.training.batches import check_batches
from codea1_env.training.memory_plan import Devices
from codea1_env.training.settings import PRESETS, replaced

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
        (["--preset", "qwen2.5-coder-3b"], "--lora-rank 64"),
        (["--preset", "qwen2.5-coder-1.5b", "--generation-batch", "64"], "--generation-batch"),
        (["--preset", "qwen2.5-coder-1.5b-lora", "--max-problems", "None"], None),
        (["--preset", "qwen2.5-coder-7b", "--lora-rank", "0"], "smaller model"),
        (["--preset", "qwen2.5-coder-1.5b", "--backend", "vllm"], "--lora-rank 64"),
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
    assert "It does not fit with smaller batches, adapters instead of all weights" in shown
    assert "either: 3.2 GB while the coder learns, of 1.2 GB. Choose a smaller model" in shown
    assert run([*arguments, "1x1.2"]) == 2  # one engine fits, but not what is learned with
    assert "engines" not in capsys.readouterr().err


SAID = "with which it fits: "
MORE: tuple[list[str], ...] = (
    [],
    ["--lora-rank", "0"],
    ["--coder.trainer", "gradient_checkpointing = false"],
    ["--baseline", "sft"],
    ["--engine", "ray", "--max-steps", "2"],
)


@pytest.mark.parametrize("devices", ["1x4", "1x24", "1x80", "8x80", "1x141"])
@pytest.mark.parametrize(
    "preset", [each for each in PRESETS if "smollm2" in each or "qwen" in each]
)
def test_what_is_proposed_fits_and_is_accepted(
    preset: str, devices: str, capsys: pytest.CaptureFixture[str]
) -> None:
    processes = int(devices[0])
    for more in MORE:
        words = ["train", "--preset", preset, *more, "--devices", devices, "--dry-run"]
        if run(words) == 0:
            continue
        (message,) = [
            line for line in capsys.readouterr().err.splitlines() if line.startswith("codea1: ")
        ]
        if "Expect one process with backend='vllm'" in message:
            assert processes > 1
            continue
        if "divide the" in message:  # 512 batches for one GPU are not there for each of 8
            assert processes > 1
            assert "128 would" in message
            continue
        if SAID not in message:
            assert "while the" in message, message
            assert message.endswith("a larger device."), message
            continue
        proposed = shlex.split(message.partition(SAID)[2])
        assert run([*words, *proposed]) == 0, message
        settings = tomllib.loads(capsys.readouterr().out)
        if more[:1] == ["--coder.trainer"]:  # what was said before still holds
            assert settings["coder"]["trainer"]["gradient_checkpointing"] is False
        for role, size in (("coder", "num_generations"), ("tester", "num_suites")):
            trainer = settings[role]["trainer"]
            if settings[role]["freeze"] or settings["engine"] == "ray":
                continue
            share = settings["problems_per_step"] * settings[size] // processes
            batch = trainer.get("per_device_train_batch_size", 1)
            assert share % batch == 0
            assert share // batch % trainer.get("gradient_accumulation_steps", 1) == 0


def test_batches_go_before_adapters_and_keep_the_steps_of_the_optimizer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["train", "--preset", "qwen2.5-coder-1.5b", "--dry-run", "--devices"]
    assert run([*words, "8x80"]) == 2
    shown = capsys.readouterr().err
    batches = "'per_device_train_batch_size = 1, gradient_accumulation_steps = 128'"
    for option in (f"--coder.trainer {batches}", f"--tester.trainer {batches}"):
        assert option in shown
    assert "--generation-batch 8" in shown
    assert "lora" not in shown
    assert run([*words, "1x24"]) == 2
    shown = capsys.readouterr().err
    assert "--coder.learning-rate 2e-05" in shown
    assert "--lora-rank 64" in shown


@pytest.mark.parametrize("preset", ["smollm2-gpu", "qwen2.5-coder-1.5b-lora"])
def test_vllm_in_several_processes_is_refused_as_by_the_run(
    preset: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["train", "--preset", preset, "--dry-run", "--devices", "8x80"]) == 2
    assert "Expect one process with backend='vllm', actually: 8. Set" in capsys.readouterr().err


def test_who_imitates_has_no_reference_model(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "--preset", "qwen2.5-coder-1.5b", "--dry-run", "--devices", "1x80"]
    assert run([*words, "--baseline", "sft"]) == 0
    assert "reference model" not in capsys.readouterr().err
    assert run([*words, "--baseline", "frozen-coder"]) == 0
    assert "reference model" in capsys.readouterr().err


def test_a_batch_that_is_too_large(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.toml"
    path.write_text(
        'extends = "qwen2.5-coder-1.5b-lora"\n[tester.trainer]\nper_device_train_batch_size = 64\n'
        "gradient_accumulation_steps = 16\n"
    )
    assert run(["train", "--config", str(path), "--dry-run", "--devices", "1x80"]) == 2
    proposed = (
        "--tester.trainer 'per_device_train_batch_size = 8, gradient_accumulation_steps = 128'"
    )
    assert capsys.readouterr().err.endswith(f"{proposed}\n")


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


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            "per_device_train_batch_size = 7",
            "16 answers of a step and process, actually: 7. 4 would.",
        ),
        ("gradient_accumulation_steps = 3", "mini-batches of a step, actually: 3. "),
        ('per_device_train_batch_size = "x"', "to be an integer, actually: 'x'"),
        ('loss_type = "dapoo"', "loss_type to be one of grpo, "),
    ],
)
@pytest.mark.parametrize("more", [[], ["--dry-run"], ["--dry-run", "--devices", "1x80"]])
def test_what_a_trainer_does_not_take_is_named_before_anything_is_measured(
    table: str, message: str, more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.toml"
    path.write_text(f'extends = "smollm2-cpu"\n[coder.trainer]\n{table}\n')
    folder = ["--output-dir", str(tmp_path / "run")]
    assert run(["train", "--config", str(path), *folder, *more]) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert "Computing in" not in shown


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
def test_what_this_machine_or_the_model_cannot_do(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["train", "--preset", "smollm2-cpu", "--dry-run", *options]) == 2
    assert message in capsys.readouterr().err


def test_of_a_run_whose_size_is_open_one_size_must_be_divided() -> None:
    preset = base_settings(SourcesAndFolder(preset="smollm2-cpu"))  # steps of 2 to 4 problems
    for size, taken in ((8, True), (12, True), (16, True), (5, False), (32, False)):
        config = replaced(preset, {"coder.trainer": {"per_device_train_batch_size": size}})
        with nullcontext() if taken else pytest.raises(RunError, match="to divide the 16 answers"):
            check_batches(config, 12, 1, gpu=False)
    config = replaced(preset, {"time_budget": None, "problems_per_step": 3})
    config = replaced(config, {"coder.trainer": {"per_device_train_batch_size": 8}})
    with pytest.raises(RunError, match="to divide the 12 answers of a step and process"):
        check_batches(config, 12, 1, gpu=False)
    check_batches(config, 2, 1, gpu=False)  # a step has no more problems than there are
