"""The engines of a run that does not generate with the trained models themselves: one for each different model."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from codea1_env.agents.llm.completions import Backend, BackendError
from codea1_env.agents.llm.processes import world_size
from codea1_env.support.extras import missing

EngineKind = Literal["vllm", "server"]
"""vLLM in this process, or a server elsewhere."""

GPU_SHARE = 0.4
"""Of the GPU's memory for all engines together; the learners want the rest."""
_VLLM_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""What vLLM makes room for; an adapter may be of any rank up to that."""


class Engines:
    """Starts the engine of a model when it is asked for, and remembers it.

    Players with the same model share an engine, in which each has an adapter of its own.

    Args:
        kind: What generates.
        models: Role -> folder of the model that plays it, of all roles that language models play.
        context_length: Tokens that prompt and answer together may have.
        lora_rank: Of the adapters.
        server_url: Where a server answers.

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
    ) -> None:
        check_engine(kind)
        self._players: dict[Path, int] = {}
        for folder in models.values():
            self._players[folder] = self._players.get(folder, 0) + 1
        if kind == "server" and len(self._players) > 1:
            named = ", ".join(f"{role}: {folder}" for role, folder in models.items())
            raise BackendError(
                f"Expect one model for all players with backend='server' (a server has one), actually: {named}. Leave "
                "coder.model and tester.model out, or set backend to 'vllm' or 'transformers'"
            )
        self._kind = kind
        self._context_length = context_length
        self._lora_rank = lora_rank
        self._server_url = server_url
        self._started: dict[Path, Backend] = {}

    def of(self, folder: Path) -> Backend:
        """The engine of the model in this folder.

        Raises:
            BackendError: It cannot start.
            MissingExtraError: vLLM is not installed.
        """
        if folder not in self._started:
            start = self._server if self._kind == "server" else self._vllm
            self._started[folder] = start(folder)
        return self._started[folder]

    def close(self) -> None:
        """Free what the engines hold. All at once: of several in one process none works after the first is gone."""
        for engine in self._started.values():
            engine.close()
        self._started.clear()

    def _server(self, folder: Path) -> Backend:
        from codea1_env.agents.llm.openai_backend import OpenAIBackend
        from codea1_env.agents.models import load_tokenizer

        return OpenAIBackend(
            self._server_url,
            tokenizer=load_tokenizer(folder),
            context_length=self._context_length,
            vllm=True,
        )

    def _vllm(self, folder: Path) -> Backend:
        from codea1_env.agents.llm.vllm_backend import VLLMBackend
        from codea1_env.agents.models import best_device

        # A graph is not worth its compilation where there is no GPU.
        return VLLMBackend(
            folder,
            context_length=self._context_length,
            max_lora_rank=room_for(self._lora_rank),
            max_loras=self._players[folder],
            gpu_memory_utilization=GPU_SHARE / len(self._players),
            enforce_eager=best_device() == "cpu",
        )


def check_engine(kind: Any) -> None:
    """Refuse vLLM's engine where it is not installed, before anything is loaded, and in one of several processes.

    Each of them would take the first GPU, and no group of all of them.

    Raises:
        BackendError: There are several.
        MissingExtraError: vLLM is not installed.
    """
    if kind != "vllm":
        return
    if world_size() > 1:
        raise BackendError(
            f"Expect one process with backend='vllm', actually: {world_size()}. Set backend to 'transformers', or start "
            "one process without accelerate or torchrun"
        )
    if find_spec("vllm") is None:
        raise missing("vllm", "vllm")


def room_for(rank: int) -> int:
    """The smallest rank of adapters that vLLM takes and that has room for this one.

    Example:
        >>> room_for(2), room_for(16), room_for(20)
        (8, 16, 32)
    """
    return next((room for room in _VLLM_RANKS if room >= rank), rank)
