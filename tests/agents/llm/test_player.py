"""Players by the name of a model, as the command line takes them: to play, to be measured, to be trained."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from test_transformers_backend import peft_model
from tiny import save_tiny, tiny_model

from codea1_env.agents.llm import engines
from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.agents.llm.computing import Computing
from codea1_env.agents.llm.engines import load_player
from codea1_env.agents.models import ModelError
from codea1_env.cli.app import run
from codea1_env.problems import load_problems
from codea1_env.spaces import observe
from codea1_env.training import PlayerConfig, RunError, TesterConfig, TrainConfig
from codea1_env.training.language_models import LanguageModels
from codea1_env.training.settings import replaced
from codea1_env.training.trainer_arguments import check_trainers

pytestmark = pytest.mark.usefixtures("sandboxes_stay_open")

SHORT = replace(engines.SAMPLING, max_completion_length=24)


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    sizes = {"hidden_size": 64, "max_position_embeddings": 8192}  # heads that vLLM computes
    return Path(save_tiny(tmp_path / "model", words=False, **sizes))


@pytest.fixture(autouse=True)
def one_way_on_all_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Expected answers are of float32 on one thread."""
    same = Computing("float32", 1)
    monkeypatch.setattr(engines, "choose_computing", lambda *_, **__: same)


def save_adapter(folder: Path, base: Path) -> Path:
    """As `codea1 export` writes it."""
    model = peft_model(std=0.5, base=tiny_model(hidden_size=64))
    model.peft_config["coder"].base_model_name_or_path = str(base)
    model.save_pretrained(folder, selected_adapters=["coder"])
    return folder / "coder"


def test_adapter_plays_on_its_base(model_folder: Path, tmp_path: Path) -> None:
    seen = [observe(load_problems("starter")[0])]
    adapter = save_adapter(tmp_path / "adapter", model_folder)
    answers = load_player(str(adapter), sampling=SHORT).act(seen)
    assert load_player(str(adapter), sampling=SHORT).act(seen) == answers
    assert load_player(str(model_folder), sampling=SHORT).act(seen) != answers


@pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed")
def test_vllm_plays_with_and_without_an_adapter(model_folder: Path, tmp_path: Path) -> None:
    seen = [observe(load_problems("starter")[0])]
    adapter = save_adapter(tmp_path / "adapter", model_folder)
    answers = []
    for folder in (adapter, adapter, model_folder):
        player = load_player(str(folder), backend="vllm")
        answers.append(player.act(seen))
        player.backend.close()
    assert answers[0] == answers[1] != answers[2]


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed")
def test_without_vllm_the_extra_is_named(model_folder, tmp_path, capsys) -> None:
    options = ["--agent", str(model_folder), "--backend", "vllm", "--max-problems", "1"]
    assert run(["eval", "code", *options, "--output-dir", str(tmp_path / "run")]) == 2
    assert "pip install 'codea1-env[vllm]'" in capsys.readouterr().err


def test_adapter_without_its_base(model_folder: Path, tmp_path: Path) -> None:
    adapter = save_adapter(tmp_path / "adapter", tmp_path / "elsewhere")
    with pytest.raises(ModelError, match=r"actually: '.*elsewhere', which is no folder"):
        load_player(str(adapter))
    (adapter / "adapter_config.json").write_text("{}")
    with pytest.raises(ModelError, match="to name the adapter's model"):
        load_player(str(adapter))


def test_command_line_plays_language_models(model_folder, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr("codea1_env.cli.players.load_player", partial(load_player, sampling=SHORT))
    adapter = save_adapter(tmp_path / "adapter", model_folder)
    options = ["--coder", str(adapter), "--tester", str(model_folder), "--json"]
    assert run(["play", *options]) == 0
    turns = json.loads(capsys.readouterr().out)["turns"]
    assert [turn["agent"] for turn in turns] == ["coder_0", "tester_0"]
    assert run(["play", "--coder", str(tmp_path / "nothing")]) == 2
    assert "which is no folder" in capsys.readouterr().err


@pytest.mark.parametrize("what", [["code"], ["tests", "--protocol", "rounds", "--num-tests", "2"]])
def test_a_model_goes_on_after_a_kill(what, tmp_path, capsys, monkeypatch) -> None:
    model = save_tiny(tmp_path / "model", max_position_embeddings=8192)
    asked = ["--agent", model, "--max-problems", "3", "-n", "2", "--batch-size", "2"]
    options = ["eval", *what, *asked, "--max-completion-length", "6"]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert run([*options, "--output-dir", str(whole), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["samples"] == 6
    assert report["settings"]["max_completion_length"] == 6
    answers = [json.loads(line) for line in (whole / "samples.jsonl").open()]
    assert len({json.dumps(answer) for answer in answers}) > 3  # each batch has draws of its own

    parts.mkdir()
    (parts / "eval.json").write_bytes((whole / "eval.json").read_bytes())
    lines = (whole / "samples.jsonl").read_bytes().splitlines(keepends=True)
    (parts / "samples.jsonl").write_bytes(b"".join(lines[:3]))
    used = (whole / "usage.jsonl").read_bytes().splitlines(keepends=True)
    (parts / "usage.jsonl").write_bytes(b"".join(used[:2]))  # of a batch with half of its samples
    assert report["usage"]["answers"] == (12 if "rounds" in what else 6)
    assert 0 < report["usage"]["completion_tokens"] <= 6 * report["usage"]["answers"]
    assert report["usage"]["prompt_tokens"] > 0
    monkeypatch.setattr("codea1_env.rendering.progress.PAUSE", 0.0)
    assert run([*options, "--output-dir", str(parts), "--resume"]) == 0
    shown = capsys.readouterr().out
    assert f"waiting for 2 answers of {model}" in shown
    assert f"% of 2 answers of {model} in " in shown
    for name in ("samples.jsonl", "verdicts.jsonl", "usage.jsonl", "report.json"):
        assert (parts / name).read_bytes() == (whole / name).read_bytes()


MODELS = TrainConfig(
    coder=PlayerConfig("llm", learning_rate=1e-4), tester=TesterConfig("llm", learning_rate=1e-4)
)
NARROW = SamplingConfig(top_p=0.9)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"coder.sampling": NARROW},
            r"coder\.sampling: Expect top_p=1 and top_k=0 .* actually: top_p=0\.9, top_k=0\. Leave",
        ),
        ({"coder.sampling": SamplingConfig(temperature=0)}, r"coder\.sampling: .* above 0"),
        ({"lora_rank": 0, "backend": "server"}, "or 'vllm' if all weights .* Set lora_rank"),
        (
            {"coder.learning_rate": 0.0},
            r"coder\.learning_rate to be a finite number greater than 0, .* coder\.freeze = true",
        ),
        ({"coder.trainer": {"learning_rate": 1}}, r"trainer\.learning_rate to be far below 0\.1"),
        ({"coder.trainer": {"num_iterations": 0}}, r"coder\.trainer\.num_iterations to be from 1"),
    ],
)
def test_settings_that_teach_nothing(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        replaced(MODELS, changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"coder.sampling": NARROW, "coder.freeze": True},
        {"tester.sampling": NARROW, "tester.freeze": True},
        {"coder.learning_rate": 0.0, "coder.freeze": True},
    ],
)
def test_who_learns_nothing_from_rewards_may_draw_as_it_likes(changes: dict[str, Any]) -> None:
    replaced(MODELS, changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"coder.sampling": SamplingConfig(max_prompt_length=1)}, "coder: .* to hold the instr"),
        (
            {"tester.sampling": SamplingConfig(max_completion_length=10**9)},
            "tester: Expect max_completion_length to leave room for a prompt",
        ),
    ],
)
def test_lengths_are_looked_at_before_a_model_is_loaded(changes, message, tmp_path) -> None:
    model = save_tiny(tmp_path)
    with pytest.raises(RunError, match=message):
        LanguageModels(replaced(MODELS, {"model": model, **changes}), 4).find()


class BadValue:
    trainer = {"optim": "abc"}  # noqa: RUF012


class ManyRounds:
    trainer = {}  # noqa: RUF012
    extra_rounds = "many"


class Decided:
    trainer = {"num_generations": 8}  # noqa: RUF012


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"coder.trainer": {"nope": 1}},
            "coder: GRPOConfig refuses its fields: TypeError: .*'nope'",
        ),
        ({"tester.trainer": {"temperature": 0.5}}, "tester: Expect temperature not to be set"),
        ({"coder.trainer": {"optim": "nope"}}, "ValueError: nope is not a valid OptimizerNames"),
        ({"algorithm": f"{__file__}:BadValue"}, "abc is not a valid OptimizerNames"),
        ({"algorithm": f"{__file__}:ManyRounds"}, "extra_rounds of .* 0 or more, actually: 'many'"),
        ({"algorithm": f"{__file__}:Decided"}, r"Decided\.trainer: Expect num_generations not to"),
        ({"coder.trainer": {"min_p": 1}}, "Expect min_p not to be set .* of the run"),
        ({"coder.trainer": {"report_to": "wandb"}}, "it is decided by tracker of the run"),
    ],
)
def test_trainers_are_checked_without_a_model(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RunError, match=message) as caught:
        check_trainers(replaced(MODELS, changes), 4)
    assert "\n" not in str(caught.value)
