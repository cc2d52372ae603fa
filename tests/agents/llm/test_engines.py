"""Engines of a run: one for each different model, or a line that says why not."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from test_openai_backend import Server, server
from tiny import tiny_model, tiny_tokenizer

from codea1_env.agents.llm.completions import BackendError, Completion, Message, SamplingConfig
from codea1_env.agents.llm.engines import Engines
from codea1_env.agents.llm.training_state import save_weights

__all__ = ["server"]  # a fixture

CHATS = [[Message(role="user", content=f"Write {name}.")] for name in ("add", "multiply")]
LONG = [
    [Message(role="user", content="Write a function. " * 20)]
]  # vLLM keeps blocks of 128 tokens
SAMPLING = SamplingConfig(temperature=0.8, max_completion_length=16)
STRONG: dict[str, Any] = {"vocab_size": 264, "hidden_size": 64, "initializer_range": 0.3}


def save_model(folder: Path, seed: int, **changes: Any) -> Path:
    """A model whose opinions are strong, of a size that vLLM computes."""
    model = tiny_model(seed, **STRONG | changes)
    model.save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    return {role: save_model(root / role, seed) for seed, role in enumerate(("coder", "tester"))}


def make(kind: Any, models: dict[str, Path], **changes: Any) -> Engines:
    settings = {"context_length": 128, "lora_rank": 4, "server_url": "http://127.0.0.1:1/v1"}
    return Engines(kind, models, **settings | changes)


def distance(folder: Path, answer: Completion) -> float:
    """Mean difference between an engine's log-probabilities and those of the model in a folder."""
    from codea1_env.agents.models import load_model

    assert answer.logprobs is not None
    ids = torch.tensor([answer.prompt_ids + answer.completion_ids])
    with torch.no_grad():
        logits = load_model(folder, dtype="float32")(input_ids=ids).logits
    at = logits[0, len(answer.prompt_ids) - 1 : -1] / SAMPLING.temperature
    chosen = at.log_softmax(-1)[range(answer.completion_tokens), list(answer.completion_ids)]
    return float((chosen - torch.tensor(answer.logprobs)).abs().mean())


@pytest.fixture
def both(models: dict[str, Path]) -> Iterator[Engines]:
    engines = make("vllm", models)
    yield engines
    engines.close()


@pytest.mark.slow
@pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed")
def test_each_model_answers_by_itself(both: Engines, models: dict[str, Path]) -> None:
    for role, folder in models.items():
        other = models["tester" if role == "coder" else "coder"]
        for answer in both.of(role).generate(CHATS, SAMPLING, seed=1):
            assert distance(folder, answer) < 0.1
            assert distance(other, answer) > 0.5
    assert both.of("coder") is both.of("coder")
    assert both.of("coder") is not both.of("tester")


@pytest.mark.slow
@pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed")
@pytest.mark.parametrize("tied", [True, False])
def test_whole_weights_reach_the_engine_of_the_player_that_learned_them(
    tmp_path: Path, tied: bool
) -> None:
    kind = {"tie_word_embeddings": tied}
    folder = save_model(tmp_path / "model", 1, **kind)
    same = {"coder": folder, "tester": folder}
    engines = make("vllm", same, context_length=512, lora_rank=0)
    try:
        weights = {"coder": folder, "tester": folder}
        for seed in (None, 2, 3):
            if seed is not None:
                (tmp_path / f"{seed}").mkdir()
                learned = tiny_model(seed, **STRONG | kind)  # in float32, as what is trained
                weights["coder"] = save_weights(learned, tiny_tokenizer(), tmp_path / f"{seed}")
                engines.of("coder").update(weights["coder"])
            for role in same:
                for answer in engines.of(role).generate(LONG + CHATS, SAMPLING, seed=1):
                    errors = {path: distance(path, answer) for path in weights.values()}
                    assert errors[weights[role]] < 0.1
                    assert all(
                        error > 0.5 for path, error in errors.items() if path != weights[role]
                    )
    finally:
        engines.close()


class StandIn:
    """Stands where vLLM would be, and remembers what it was made with."""

    made: list[dict[str, Any]]

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.made.append({"folder": folder, **settings})
        self.closed = False

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> type[StandIn]:
    StandIn.made = []
    monkeypatch.setattr(
        "codea1_env.agents.llm.engines.find_spec", lambda name: ModuleSpec(name, None)
    )
    monkeypatch.setattr("codea1_env.agents.llm.vllm_backend.VLLMBackend", StandIn)
    return StandIn


def test_models_share_the_memory_with_a_stand_in_engine(
    models: dict[str, Path], stand_in: type[StandIn]
) -> None:
    engines = make("vllm", models)
    assert stand_in.made == []  # before it is asked for
    found: Any = [engines.of(role) for role in (*models, *models)]
    assert found[:2] == found[2:]
    assert [made["folder"] for made in stand_in.made] == list(models.values())
    for made in stand_in.made:
        assert made["gpu_memory_utilization"] == pytest.approx(0.2)
        assert (made["max_loras"], made["max_lora_rank"]) == (1, 8)
    engines.close()
    assert all(engine.closed for engine in found)


def test_players_of_one_model_share_a_stand_in_engine(
    models: dict[str, Path], stand_in: type[StandIn]
) -> None:
    engines = make("vllm", {"coder": models["coder"], "tester": models["coder"]}, lora_rank=64)
    assert engines.of("coder") is engines.of("tester")
    (made,) = stand_in.made
    assert made["gpu_memory_utilization"] == pytest.approx(0.4)
    assert (made["max_loras"], made["max_lora_rank"]) == (2, 64)


def test_players_without_adapters_share_no_stand_in_engine(
    models: dict[str, Path], stand_in: type[StandIn]
) -> None:
    engines = make("vllm", {"coder": models["coder"], "tester": models["coder"]}, lora_rank=0)
    assert engines.of("coder") is not engines.of("tester")
    for made in stand_in.made:
        assert made["folder"] == models["coder"]
        assert made["gpu_memory_utilization"] == pytest.approx(0.2)
        assert made["max_lora_rank"] is None
    make("vllm", {"model": models["coder"]}, lora_rank=0).of("model")
    assert stand_in.made[-1]["gpu_memory_utilization"] == pytest.approx(0.4)


def test_a_server_has_one_model(models: dict[str, Path]) -> None:
    with pytest.raises(
        BackendError, match=r"Expect one model for all players with .*server"
    ) as seen:
        make("server", models)
    assert "\n" not in str(seen.value)


def test_players_of_one_model_share_a_server(models: dict[str, Path], server: Server) -> None:
    same = {"coder": models["tester"], "tester": models["tester"]}
    engines = make("server", same, server_url=server.url)
    assert engines.of("coder") is engines.of("tester")
    assert engines.of("tester").context_length == 128
    engines.close()


def test_vllm_in_several_processes_is_refused(
    models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(BackendError, match="Expect one process with backend='vllm', actually: 2"):
        make("vllm", models)
