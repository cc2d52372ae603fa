"""Makes a player from the name of a model, or from what a training run has exported."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from codea1_env.agents.llm.agent import LLMAgent
from codea1_env.agents.llm.completions import Backend, BackendError, SamplingConfig
from codea1_env.agents.llm.computing import Computing, Dtype, choose_computing
from codea1_env.agents.llm.transformers_backend import TransformersBackend
from codea1_env.agents.models import (
    DEFAULT_MODEL,
    ModelError,
    best_device,
    load_model,
    load_tokenizer,
    resolve,
)
from codea1_env.support.extras import require

SAMPLING = SamplingConfig(
    temperature=0.7,
    top_p=0.95,
    max_prompt_length=4096,
    max_completion_length=512,
    stop=("\n```\n",),
)
"""As the paper evaluates its models; answers end behind their first block of code."""
_ADAPTER = "player"
_GPU_SHARE = 0.9  # of its memory for an engine that shares it with nobody

Engine = Literal["transformers", "vllm"]
"""What can generate in this process."""


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
) -> LLMAgent:
    """A player that generates in this process, on a GPU where there is one.

    Args:
        name: A model as `resolve` takes it, or a folder with an adapter as peft writes it.
        seed: Seed of the draws.
        sampling: How answers are drawn.
        backend: What generates. vLLM is many times faster where there are many answers to draw on a GPU.
        computing: Number format and threads for "transformers"; None measures what is fastest here.

    Raises:
        ModelError: There is no such model, or the adapter is of another one.
        BackendError: The engine cannot start.
        MissingExtraError: The engine is not installed.
    """
    start: Callable[[Path, SamplingConfig, int | None], Backend] = _vllm
    if backend == "transformers":
        start = partial(_transformers, computing or computing_for(name))
    folder = Path(name).expanduser()
    if not (folder / "adapter_config.json").is_file():
        return LLMAgent(start(resolve(name), sampling, None), sampling, seed)
    settings = _adapter_settings(folder)
    engine = start(resolve(settings.base), sampling, settings.rank)
    try:
        engine.update(folder, _ADAPTER)
    except BackendError as error:
        raise ModelError(str(error)) from error
    return LLMAgent(engine, sampling, seed, adapter=_ADAPTER)


def computing_for(name: str, dtype: Dtype | None = None, threads: int | None = None) -> Computing:
    """Choose how a player computes that `load_player` makes with transformers.

    Args:
        name: As for `load_player`.
        dtype: The number format, if asked for; None measures which is fastest.
        threads: The number of threads on a processor, if asked for.

    Raises:
        ModelError: There is no such model.
        ValueError: This machine does not have what is asked for.
    """
    folder = Path(name).expanduser()
    if (folder / "adapter_config.json").is_file():
        name = _adapter_settings(folder).base
    return choose_computing(resolve(name), best_device(), dtype=dtype, threads=threads)


def _transformers(
    computing: Computing, folder: Path, sampling: SamplingConfig, rank: int | None
) -> Backend:
    model = load_model(folder, dtype=computing.generation_dtype, device=best_device())
    return TransformersBackend(model, load_tokenizer(folder), threads=computing.generation_threads)


def _vllm(folder: Path, sampling: SamplingConfig, rank: int | None) -> Backend:
    from codea1_env.agents.llm.vllm_backend import VLLMBackend

    config = require("transformers").AutoConfig.from_pretrained(folder, local_files_only=True)
    wanted = sampling.max_prompt_length + sampling.max_completion_length
    return VLLMBackend(
        folder,
        context_length=min(wanted, config.max_position_embeddings),
        max_lora_rank=rank,
        max_loras=1,
        gpu_memory_utilization=_GPU_SHARE,
        enforce_eager=best_device() == "cpu",
    )


class _Adapter(NamedTuple):
    base: str
    """The model that it belongs to."""
    rank: int


def _adapter_settings(folder: Path) -> _Adapter:
    try:
        settings = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
        return _Adapter(str(settings["base_model_name_or_path"]), int(settings["r"]))
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"Expect {folder}/adapter_config.json to name the adapter's model and rank, actually: {error!r}"
        ) from error
