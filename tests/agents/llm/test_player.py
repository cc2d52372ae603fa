"""Players by the name of a model, as the command line takes them."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from test_transformers_backend import peft_model
from tiny import tiny_model, tiny_tokenizer

from codea1_env.agents.llm.computing import Computing
from codea1_env.agents.llm.engines import load_player
from codea1_env.agents.models import ModelError
from codea1_env.cli.app import run
from codea1_env.problems import load_problems
from codea1_env.spaces import observe


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    tiny_model(max_position_embeddings=8192).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


def save_adapter(folder: Path, base: Path) -> Path:
    """As `codea1 export` writes it."""
    model = peft_model(std=0.5)
    model.peft_config["coder"].base_model_name_or_path = str(base)
    model.save_pretrained(folder, selected_adapters=["coder"])
    return folder / "coder"


def test_adapter_plays_on_its_base(model_folder: Path, tmp_path: Path) -> None:
    seen = [observe(load_problems("starter")[0])]
    adapter = save_adapter(tmp_path / "adapter", model_folder)
    same = Computing(
        "float32", "float32", 1, 1
    )  # what is measured as fastest may differ between two loads
    answers = load_player(str(adapter), computing=same).act(seen)
    assert load_player(str(adapter), computing=same).act(seen) == answers
    assert load_player(str(model_folder), computing=same).act(seen) != answers


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
def test_without_vllm_the_extra_is_named(
    model_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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


def test_command_line_plays_language_models(
    model_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    adapter = save_adapter(tmp_path / "adapter", model_folder)
    options = ["--coder", str(adapter), "--tester", str(model_folder), "--json"]
    assert run(["play", *options]) == 0
    turns = json.loads(capsys.readouterr().out)["turns"]
    assert [turn["agent"] for turn in turns] == ["coder_0", "tester_0"]
    assert run(["play", "--coder", str(tmp_path / "nothing")]) == 2
    assert "which is no folder" in capsys.readouterr().err
