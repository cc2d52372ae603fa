"""Starts what generates: the engines of a run, and a player from the name of a model or from what a run has exported."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
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

EngineKind = Literal["vllm", "server"]
"""What generates for a run beside the trained models: vLLM in this process, or a server elsewhere."""
Engine = Literal["transformers", "vllm"]
"""What can generate in this process."""

_GPU_SHARE_ALONE = 0.9  # for an engine that shares it with nobody
_Place = tuple[Path, str | None]
"""Folder of an engine's model, and the player that has the engine to itself."""
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


class Engines:
    """Starts the engine of a player when it is asked for, and remembers it.

    Players with the same model share an engine, in which each has an adapter of its own. Without adapters each player
    has an engine to itself.

    Args:
        kind: What generates.
        models: Role -> folder of the model that plays it, of all roles that language models play.
        context_length: Tokens that prompt and answer together may have.
        lora_rank: Of the adapters; 0 if all weights are trained.
        server_url: Where a server answers.
        gpu_share: Of the GPU's memory for all engines of vLLM together; the learners want the rest.

    Raises:
        BackendError: There can be no such engines here.
    """

    def __init__(
        self,
        kind: EngineKind,
        models: Mapping[str, Path],
        *,
        context_length: int,
        lora_rank: int,
        server_url: str,
        gpu_share: float = 0.4,
    ) -> None:
        check_engine(kind)
        if kind == "server" and len(set(models.values())) > 1:
            named = ", ".join(f"{role}: {folder}" for role, folder in models.items())
            raise BackendError(
                f"Expect one model for all players with backend='server' (a server has one), actually: {named}. Leave "
                "coder.model and tester.model out, or set backend to 'vllm' or 'transformers'"
            )
        self._kind = kind
        self._context_length = context_length
        self._lora_rank = lora_rank
        self._server_url = server_url
        self._gpu_share = gpu_share
        self._places: dict[str, _Place] = {
            role: (folder, None if lora_rank else role) for role, folder in models.items()
        }
        self._started: dict[_Place, Backend] = {}

    def of(self, role: str) -> Backend:
        """Return the engine that answers for a role. Raises a BackendError if it cannot start."""
        place = self._places[role]
        if place not in self._started:
            self._started[place] = self._start(place)
        return self._started[place]

    def close(self) -> None:
        """Free what the engines hold. All at once: of several in one process none works after the first is gone."""
        for engine in self._started.values():
            engine.close()
        self._started.clear()

    def _start(self, place: _Place) -> Backend:
        folder = place[0]
        if self._kind == "server":
            return OpenAIBackend(
                self._server_url,
                tokenizer=load_tokenizer(folder),
                context_length=self._context_length,
                vllm=True,
            )
        players = Counter(self._places.values())
        wanted = self._lora_rank  # vLLM takes some ranks only: the smallest that has room for it
        rank = next((room for room in _VLLM_RANKS if room >= wanted), wanted) if wanted else None
        return _vllm(
            folder, self._context_length, rank, players[place], self._gpu_share / len(players)
        )


def check_engine(kind: Any) -> None:
    """Refuse vLLM's engine where it is not installed, before anything is loaded."""
    if kind == "vllm" and find_spec("vllm") is None:
        raise missing("vllm", "vllm")


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
        engine = _vllm(weights.model, length, weights.rank, 1, _GPU_SHARE_ALONE)
    if weights.adapter is None:
        return LLMAgent(engine, sampling, seed, write=write)
    try:
        engine.update(weights.adapter, _ADAPTER)
    except BackendError as error:
        raise ModelError(str(error)) from error
    return LLMAgent(engine, sampling, seed, adapter=_ADAPTER, write=write)


def _vllm(
    folder: Path, context_length: int, rank: int | None, adapters: int, gpu_share: float
) -> Backend:
    # A graph is not worth its compilation where there is no GPU.
    return vllm_backend.VLLMBackend(
        folder,
        context_length=context_length,
        max_lora_rank=rank,
        max_loras=adapters,
        gpu_memory_utilization=gpu_share,
        enforce_eager=best_device() == "cpu",
    )


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
