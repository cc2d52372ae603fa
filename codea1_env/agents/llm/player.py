"""Makes a player from the name of a model, or from what a training run has exported."""

from __future__ import annotations

import json
from pathlib import Path

from codea1_env.agents.llm.agent import LLMAgent
from codea1_env.agents.llm.completions import BackendError, SamplingConfig
from codea1_env.agents.llm.transformers_backend import TransformersBackend
from codea1_env.agents.models import (
    DEFAULT_MODEL,
    ModelError,
    load_model,
    load_tokenizer,
    resolve,
)

SAMPLING = SamplingConfig(
    temperature=0.7,
    top_p=0.95,
    max_prompt_length=4096,
    max_completion_length=512,
    stop=("\n```\n",),
)
"""As the paper evaluates its models; answers end behind their first block of code."""
_ADAPTER = "player"


def is_model(name: str) -> bool:
    """Whether a player's name means a language model: the default one, a folder, or owner/name on the hub.

    Example:
        >>> is_model("smollm2-135m"), is_model("owner/name"), is_model("golden")
        (True, True, False)
    """
    return name == DEFAULT_MODEL or "/" in name or Path(name).is_dir()


def load_player(name: str, seed: int = 0, sampling: SamplingConfig = SAMPLING) -> LLMAgent:
    """A player that generates with transformers, in this process.

    Args:
        name: A model as `resolve` takes it, or a folder with an adapter as peft writes it.
        seed: Seed of the draws.
        sampling: How answers are drawn.

    Raises:
        ModelError: There is no such model, or the adapter is of another one.
    """
    folder = Path(name).expanduser()
    if not (folder / "adapter_config.json").is_file():
        return LLMAgent(_engine(resolve(name)), sampling, seed)
    engine = _engine(resolve(_base_of(folder)))
    try:
        engine.update(folder, _ADAPTER)
    except BackendError as error:
        raise ModelError(str(error)) from error
    return LLMAgent(engine, sampling, seed, adapter=_ADAPTER)


def _engine(folder: Path) -> TransformersBackend:
    return TransformersBackend(load_model(folder), load_tokenizer(folder))


def _base_of(folder: Path) -> str:
    """The model that an adapter belongs to."""
    try:
        settings = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
        return str(settings["base_model_name_or_path"])
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"Expect {folder}/adapter_config.json to name the adapter's model, actually: {error!r}"
        ) from error
