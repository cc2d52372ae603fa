"""Starts what generates: engines beside trained models, and a player from the name of a model or from what a run has exported."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

from codea1_env.agents.llm import vllm_backend
from codea1_env.agents.llm.agent import LLMAgent
from codea1_env.agents.llm.completions import Backend, BackendError, SamplingConfig
from codea1_env.agents.llm.computing import Computing, choose_computing
from codea1_env.agents.llm.openai_backend import OpenAIBackend
from codea1_env.agents.llm.prompts import DEFAULT, PromptTemplate
from codea1_env.agents.llm.transformers_backend import TransformersBackend
from codea1_env.agents.models import (
    DEFAULT_MODEL,
    ModelError,
    best_device,
    check_chat,
    context_of,
    load_model,
    load_tokenizer,
    resolve,
)
from codea1_env.support.extras import missing

Engine = Literal["transformers", "vllm"]
"""What can generate in this process."""

_GPU_SHARE_ALONE = 0.9  # for an engine that shares it with nobody
_VLLM_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""Ranks of adapters that vLLM makes room for; an adapter may be of any rank up to that."""
_ADAPTER = "player"
SAMPLING = SamplingConfig(
    temperature=0.7,
    top_p=0.95,
    max_prompt_length=4096,
    max_completion_length=512,
    stop=("\n```\n",),
)
"""As the paper evaluates its models; answers end behind their first block of code."""


def check_engine(kind: Any) -> None:
    """Refuse vLLM's engine where it is not installed, before anything is loaded."""
    if kind == "vllm" and find_spec("vllm") is None:
        raise missing("vllm", "vllm")


def server_engine(url: str, folder: Path, context_length: int) -> Backend:
    """Ask a vLLM server that takes the adapters of players. Raises a BackendError if there is none."""
    tokenizer = load_tokenizer(folder)
    return OpenAIBackend(url, tokenizer=tokenizer, context_length=context_length, vllm=True)


def vllm_engine(
    folder: Path, context_length: int, rank: int | None, adapters: int, gpu_share: float
) -> Backend:
    """Start vLLM in this process, for so many adapters of a rank, None for none, and a share of the GPU's memory.

    Raises a BackendError if it cannot start.
    """
    return vllm_backend.VLLMBackend(
        folder,
        context_length=context_length,
        max_lora_rank=rank and next((room for room in _VLLM_RANKS if room >= rank), rank),
        max_loras=adapters,
        gpu_memory_utilization=gpu_share,
        # A graph is not worth its compilation where there is no GPU.
        enforce_eager=best_device() == "cpu",
    )


def is_model(name: str) -> bool:
    """Whether a player's name means a language model: the default one, a folder, or owner/name on the hub.

    Example:
        >>> is_model("smollm2-135m"), is_model("owner/name"), is_model("golden")
        (True, True, False)
    """
    return name == DEFAULT_MODEL or "/" in name or Path(name).is_dir()


def load_player(
    name: str,
    seed: int = 0,
    sampling: SamplingConfig = SAMPLING,
    backend: Engine = "transformers",
    computing: Computing | None = None,
    write: PromptTemplate = DEFAULT,
) -> LLMAgent:
    """Return a player that generates in this process, on a GPU where there is one.

    Args:
        name: A model as `resolve` takes it, or a folder with an adapter as peft writes it.
        seed: Seed of the draws.
        sampling: How answers are drawn.
        backend: What generates. vLLM is many times faster where there are many answers to draw on a GPU.
        computing: Number format and threads for "transformers"; None for what suits this machine.
        write: The wording, which says how many tests are wanted.

    Raises:
        ModelError: There is no such model, or the adapter is of another one.
        BackendError: The engine cannot start.
        MissingExtraError: The engine is not installed.
    """
    weights = _weights_of(name)
    engine: Backend
    if backend == "transformers":
        chosen = computing or choose_computing(best_device())
        model = load_model(weights.model, dtype=chosen.dtype, device=best_device())
        tokenizer = load_tokenizer(weights.model)
        engine = TransformersBackend(model, tokenizer, threads=chosen.threads)
    else:
        wanted = sampling.max_prompt_length + sampling.max_completion_length
        length = min(wanted, context_of(weights.model) or wanted)
        engine = vllm_engine(weights.model, length, weights.rank, 1, _GPU_SHARE_ALONE)
    if weights.adapter is None:
        return LLMAgent(engine, sampling, seed, write=write)
    try:
        engine.update(weights.adapter, _ADAPTER)
    except BackendError as error:
        raise ModelError(str(error)) from error
    return LLMAgent(engine, sampling, seed, adapter=_ADAPTER, write=write)


class _Weights(NamedTuple):
    """Weights that a name stands for."""

    model: Path
    adapter: Path | None = None
    rank: int | None = None
    """Rank of the adapter."""


def _weights_of(name: str) -> _Weights:
    folder = Path(name).expanduser()
    if not (folder / "adapter_config.json").is_file():
        return _Weights(_of_chats(name))
    try:
        settings = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
        base, rank = str(settings["base_model_name_or_path"]), int(settings["r"])
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"Expect {folder}/adapter_config.json to name the adapter's model and rank, actually: {error!r}"
        ) from error
    return _Weights(_of_chats(base), folder, rank)


def _of_chats(name: str) -> Path:
    folder = resolve(name)
    check_chat(folder)  # before anything is measured or loaded
    return folder
