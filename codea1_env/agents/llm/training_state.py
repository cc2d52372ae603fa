"""Saves and restores what a trainer knows: weights, optimizer, schedule and counters, to the last bit.

    adapter/           what peft loads: adapter_config.json, adapter_model.safetensors
    model/             or, if all weights are trained, what transformers loads
    optimizer.safetensors
    trainer.json       everything that is not a tensor

Equal state gives equal bytes, which `torch.save` and `save_pretrained` do not promise.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from codea1_env.agents.llm.completions import rank
from codea1_env.agents.llm.trainer_drive import TrainerDrive
from codea1_env.agents.llm.trl_internals import counters_of, restore_counters
from codea1_env.agents.models import public_name
from codea1_env.agents.state import load_saved_state, read_json, saved_state, write_json
from codea1_env.support.extras import Lazy

torch: Any = Lazy("torch")
sharding: Any = Lazy("torch.distributed.tensor")
peft: Any = Lazy("peft")
safetensors: Any = Lazy("safetensors")
tensor_files: Any = Lazy("safetensors.torch")
_VERSION = 1
_COUNTERS = ("global_step", "num_input_tokens_seen")
_OF_SCHEDULE = ("lr", "initial_lr")


def fingerprint(model: Any) -> str:
    """Digest of a model's shapes and of a few of its weights."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        few = tensor.detach().flatten()[:16].to("cpu", torch.float32)
        digest.update(f"{name} {tuple(tensor.shape)}".encode())
        digest.update(few.to(torch.bfloat16).view(torch.int16).numpy().tobytes())
    return digest.hexdigest()[:16]


def save_weights(model: Any, tokenizer: Any, folder: Path) -> Path:
    """Write trained weights so that plain peft or transformers loads them, a tokenizer beside whole ones; returns their folder."""
    if hasattr(model, "peft_config"):
        target = folder / "adapter"
        target.mkdir()
        _write(peft.get_peft_model_state_dict(model), target / "adapter_model.safetensors")
        config = model.peft_config["default"].to_dict() | {"inference_mode": True}
        base = config["base_model_name_or_path"] or ""
        config["base_model_name_or_path"] = public_name(base) or base  # another machine finds that
        write_json(target / "adapter_config.json", config, _plain)
        return target
    target = folder / "model"
    sharded = any(map(is_shard, model.parameters()))
    gathered = _on_cpu(model.state_dict()) if sharded else None
    if sharded and rank() > 0:  # the first process has all
        return target
    with _as_os_error(target):
        model.save_pretrained(target, state_dict=gathered)
    tokenizer.save_pretrained(target)
    return target


def _write(tensors: Mapping[str, Any], path: Path) -> None:
    """Write tensors with an ordinary mode: safetensors writes for the owner alone."""
    with _as_os_error(path.parent):
        tensor_files.save_file(_on_cpu(tensors), path)
    path.chmod(0o644)


@contextmanager
def _as_os_error(folder: Path) -> Iterator[None]:
    """Raise an OSError where safetensors, which has an error class of its own, cannot write: the disk is full, say."""
    try:
        yield
    except safetensors.SafetensorError as error:
        raise OSError(f"cannot write to {folder}: {error}") from error


def load_weights(model: Any, folder: Path) -> None:
    """Restore what `save_weights` wrote into this folder. Raises a ValueError if it is damaged, or of another model."""
    try:
        if hasattr(model, "peft_config"):
            weights = tensor_files.load_file(folder / "adapter" / "adapter_model.safetensors")
            if other := weights.keys() ^ peft.get_peft_model_state_dict(model).keys():
                raise KeyError(f"another adapter, by {min(other)}")
            peft.set_peft_model_state_dict(model, weights)
        else:
            weights = tensor_files.load_file(folder / "model" / "model.safetensors")
            own = model.state_dict()
            weights = {name: _divided(value, own.get(name)) for name, value in weights.items()}
            model.load_state_dict(weights, strict=False)  # tied weights are there once
    except (OSError, RuntimeError, KeyError, safetensors.SafetensorError) as error:
        raise ValueError(f"Expect weights of this model in {folder}, actually: {error}") from error


def save_trainer(drive: TrainerDrive, base: str, folder: Path) -> None:
    """Write optimizer, schedule, counters, and what an algorithm remembers, beside the fingerprint of the base."""
    trainer = drive.trainer
    optimizer = trainer.optimizer.state_dict()
    values = {
        f"{index}.{name}": value
        for index, named in optimizer["state"].items()
        for name, value in named.items()
    }
    tensors = {key: value for key, value in values.items() if isinstance(value, torch.Tensor)}
    _write(tensors, folder / "optimizer.safetensors")
    state = {
        "version": _VERSION,
        "base": base,
        "updates": drive.updates,
        "counters": {name: getattr(trainer.state, name) for name in _COUNTERS},
        **counters_of(trainer),
        "schedule": trainer.lr_scheduler.state_dict(),
        "param_groups": optimizer["param_groups"],
        "algorithm": saved_state(getattr(trainer, "own_algorithm", None)),
        "numbers": {key: value for key, value in values.items() if key not in tensors},
    }
    write_json(folder / "trainer.json", state)


def load_trainer(drive: TrainerDrive, base: str, folder: Path) -> None:
    """Restore what `save_trainer` wrote. Raises a ValueError if it is damaged, or of another model or version."""
    state = read_json(folder / "trainer.json")
    if state.get("version") != _VERSION:
        raise ValueError(
            f"Expect {folder} to be saved by a version of this package with format {_VERSION}, actually: "
            f"{state.get('version')!r}. Resume with that version, or start a new run."
        )
    if state["base"] != base:
        raise ValueError(
            f"Expect {folder} to be saved with the same model, actually another one was trained there. "
            "Name that model, or start a new run."
        )
    try:
        tensors = tensor_files.load_file(folder / "optimizer.safetensors")
    except Exception as error:  # safetensors has an error class of its own beside OSError
        raise ValueError(f"Expect {folder} to hold an optimizer, actually: {error}") from error
    trainer = drive.trainer
    # How far the rate had come is of the checkpoint; other settings of the optimizer are those of the run now.
    groups = [
        {**now, **{k: saved[k] for k in _OF_SCHEDULE if k in saved}, "params": saved["params"]}
        for now, saved in zip(trainer.optimizer.param_groups, state["param_groups"], strict=True)
    ]
    parameters = [each for group in trainer.optimizer.param_groups for each in group["params"]]
    values: dict[int, dict[str, Any]] = {}
    for key, value in {**tensors, **state["numbers"]}.items():
        index, name = key.split(".", 1)
        values.setdefault(int(index), {})[name] = _divided(value, parameters[int(index)])
    trainer.optimizer.load_state_dict({"state": values, "param_groups": groups})
    trainer.lr_scheduler.load_state_dict(state["schedule"])
    for name, value in state["counters"].items():
        setattr(trainer.state, name, value)
    load_saved_state(getattr(trainer, "own_algorithm", None), state.get("algorithm"))
    restore_counters(trainer, state)
    drive.updates = state["updates"]


def is_shard(tensor: Any) -> bool:
    """Whether a process has only a part of a tensor (FSDP)."""
    return isinstance(tensor, sharding.DTensor)


def _on_cpu(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Copy tensors; of those that are divided among processes, which all must call this, the first gets all."""
    found = {}
    for name, tensor in tensors.items():
        shard = is_shard(tensor)
        whole = tensor.full_tensor() if shard else tensor
        if not shard or rank() == 0:
            found[name] = whole.detach().cpu().contiguous()
    return found


def _divided(value: Any, like: Any) -> Any:
    """Divide a tensor as another one is, if that is, and has its shape."""
    if not is_shard(like) or getattr(value, "shape", None) != like.shape:
        return value
    # Every process has read the whole.
    return sharding.distribute_tensor(
        value.to(like.device), like.device_mesh, like.placements, src_data_rank=None
    )


def _plain(value: Any) -> Any:
    # Kinds of peft's configuration that JSON has not; sets in a fixed order.
    return sorted(value) if isinstance(value, (set, frozenset)) else str(value)
