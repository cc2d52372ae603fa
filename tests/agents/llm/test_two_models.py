"""Runs in which each player has a language model of its own."""

from __future__ import annotations

import dataclasses
import io
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tiny import tiny_model, tiny_tokenizer

from codea1_env import Sandbox
from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.support.logs import read_rows
from codea1_env.training import PlayerConfig, RunError, TesterConfig, TrainConfig, train
from codea1_env.training.run_folder import METRICS
from codea1_env.training.settings import replaced

SAMPLING = SamplingConfig(max_prompt_length=1000, max_completion_length=8, stop=("a", "e"))
TRAINER = {"gradient_checkpointing": False, "vllm_importance_sampling_mode": "token_truncate"}


def save_model(folder: Path, seed: int) -> str:
    """A model whose opinions are strong, of a size that vLLM computes."""
    model = tiny_model(seed, vocab_size=704, hidden_size=64, initializer_range=0.3)
    model.save_pretrained(folder)
    tiny_tokenizer(words=True).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> TrainConfig:
    root = tmp_path_factory.mktemp("models")
    rates: dict[str, Any] = {"learning_rate": 1e-3, "sampling": SAMPLING, "trainer": TRAINER}
    return TrainConfig(
        max_problems=2,
        problems_per_step=2,
        num_generations=2,
        num_suites=2,
        coder=PlayerConfig("llm", model=save_model(root / "coder", 1), **rates),
        tester=TesterConfig("llm", model=save_model(root / "tester", 2), **rates),
        lora_rank=4,
        dtype="float32",
        threads=1,
        max_steps=2,
        eval_steps=4,
        eval_samples=1,
        save_steps=4,
    )


def run(config: TrainConfig, sandbox: Sandbox, **changes: Any) -> list[dict[str, Any]]:
    config = replaced(config, changes)
    train(config, sandbox=sandbox, console=Console(file=io.StringIO()))
    assert config.output_dir is not None
    return list(read_rows(config.output_dir / METRICS))


@pytest.mark.slow
@pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed")
def test_with_vllm_each_player_answers_with_its_own_model(
    config: TrainConfig, tmp_path: Path, sandbox: Sandbox
) -> None:
    rows = run(config, sandbox, output_dir=tmp_path / "run", backend="vllm")
    assert [row["step"] for row in rows] == [0, 1, 2]
    for row in rows[1:]:
        for role in ("coder", "tester"):
            # Of answers of the other model it would be above 1.
            assert row[f"{role}/sampling/sampling_logp_difference/mean"] < 0.15
        assert row["coder/completions/clipped_ratio"] == pytest.approx(row["coder/truncated"])


@pytest.mark.slow
@pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed")
def test_with_vllm_each_player_answers_with_all_the_weights_that_it_learned(
    config: TrainConfig, tmp_path: Path, sandbox: Sandbox
) -> None:
    changes = {
        "backend": "vllm",
        "lora_rank": 0,
        "tester.model": config.coder.model,
        "coder.learning_rate": 0.02,  # so large that answers of the weights before are other ones
        "tester.learning_rate": 0.02,
    }
    rows = run(config, sandbox, output_dir=tmp_path / "run", **changes)
    for row in rows[1:]:
        for role in ("coder", "tester"):
            assert row[f"{role}/sampling/sampling_logp_difference/mean"] < 0.15


def test_with_transformers_each_player_learns_its_own_model(
    config: TrainConfig, tmp_path: Path, sandbox: Sandbox
) -> None:
    rows = run(config, sandbox, output_dir=tmp_path / "run")
    for row in rows[1:]:
        # TRL's count is that of the game, though a stop text ends answers; the tester learns from some of its own.
        assert row["coder/completions/clipped_ratio"] == pytest.approx(row["coder/truncated"])
        assert {"coder/loss", "tester/loss"} <= row.keys()


def test_a_frozen_tester_may_draw_from_some_tokens(
    config: TrainConfig, tmp_path: Path, sandbox: Sandbox
) -> None:
    sampling = dataclasses.replace(SAMPLING, top_p=0.9, top_k=20)
    changes = {"tester.freeze": True, "tester.sampling": sampling, "max_steps": 1}
    rows = run(config, sandbox, output_dir=tmp_path / "run", **changes)
    assert "coder/loss" in rows[-1]
    assert "tester/loss" not in rows[-1]


def test_a_server_with_two_models_is_refused_at_once(
    config: TrainConfig, tmp_path: Path, sandbox: Sandbox
) -> None:
    with pytest.raises(RunError, match="Expect one model for all players with backend='server'"):
        run(config, sandbox, output_dir=tmp_path / "run", backend="server")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("backend", "freeze"), [("transformers", True), ("server", False)])
def test_a_tester_without_chat_template_is_named_before_the_coder_is_loaded(
    config: TrainConfig,
    tmp_path: Path,
    sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    backend: str,
    freeze: bool,
) -> None:
    broken = tmp_path / "broken"
    save_model(broken, 3)
    tokenizer = tiny_tokenizer(words=True)
    tokenizer.chat_template = None
    (broken / "chat_template.jinja").unlink()
    tokenizer.save_pretrained(broken)

    def load_model(*_: Any, **__: Any) -> Any:
        raise AssertionError("a model was loaded")

    monkeypatch.setattr("codea1_env.training.language_models.load_model", load_model)
    with pytest.raises(RunError, match=r"Cannot make the tester: .* chat template") as caught:
        run(
            config,
            sandbox,
            output_dir=tmp_path / "run",
            backend=backend,
            **{"tester.model": str(broken), "tester.freeze": freeze},
        )
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()
