"""`codea1 train --dry-run`: the settings, and whether the run fits into the memory of its devices."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any

from rich.console import Console

from codea1_env.agents.llm.memory import ModelShape, available_memory, shape_of
from codea1_env.agents.llm.processes import world_size
from codea1_env.agents.models import DEFAULT_MODEL
from codea1_env.agents.smollm2 import HUB_ID
from codea1_env.cli.errors import InputError
from codea1_env.support.extras import require
from codea1_env.training import TrainConfig
from codea1_env.training.memory_plan import Devices, check_fits, kinds_of, memory_table, plan_memory


def show_plan(config: TrainConfig, devices: str | None) -> None:
    """Show on stderr what memory a run of language models needs.

    Args:
        config: The run.
        devices: GPUs that it is for, as "8x80"; None for those of this machine.

    Raises:
        InputError: `devices` cannot be read.
        RunError: The run does not fit.
    """
    there = None if devices is None else read_devices(devices)
    if not config.has_language_model:
        return
    console = Console(stderr=True)
    there = there or _here()
    if there is None:
        console.print(
            "No memory table: torch, which knows the devices here, is not installed (pip install 'codea1-env[llm]'). "
            "Name the GPUs that the run is for: --devices 8x80"
        )
        return
    shapes: dict[str, ModelShape] = {}
    for role in ("coder", "tester"):
        if config.player(role).player != "llm":
            continue
        name = config.model_of(role)
        shape = shape_of(HUB_ID if name == DEFAULT_MODEL else name)
        if shape is None:
            console.print(
                f"No memory table: it needs the config.json of {name!r}, which is not at hand. Fetch it with "
                f"`hf download {name} config.json`, or give a folder with the model."
            )
            return
        shapes[name] = shape
    kinds = kinds_of(config)
    for kind in kinds:
        on = there
        if (
            config.engine == "ray"
        ):  # the processes of a role share nothing with the others' but memory
            number = sum(each.processes for each in kinds)
            on = Devices(kind.processes, _share(config, there, kind.processes / number), there.gpu)
        plan = plan_memory(config, shapes, on, does=kind)
        console.print(memory_table(plan, on))
        check_fits(config, plan, on)


def _share(config: TrainConfig, there: Devices, share: float) -> float:
    """Bytes of a GPU for one process of a cluster, or of this machine for those of one kind."""
    return (
        min(1.0, config.learner_gpus or 1.0) * there.memory if there.gpu else share * there.memory
    )


def read_devices(text: str) -> Devices:
    """Read the devices that a run is for.

    Raises:
        InputError: It is not a number of GPUs and the memory of each.

    Example:
        >>> read_devices("8x80")
        Devices(number=8, memory=80000000000.0, gpu=True)
    """
    found = re.fullmatch(r"([1-9]\d{0,5})x(\d{1,5}(?:\.\d{1,3})?)", text)
    if found is None or not float(found[2]):
        raise InputError(
            f"expect --devices to be a number of GPUs and the GB of each, as 8x80, actually: {text!r:.200}"
        )
    return Devices(int(found[1]), float(found[2]) * 1e9, gpu=True)


def _here() -> Devices | None:
    """The devices of this machine for the processes that were started; None without torch, which knows them."""
    if find_spec("torch") is None:
        return None
    torch: Any = require("torch")
    if torch.cuda.is_available():
        gpus = range(torch.cuda.device_count())
        free = min(torch.cuda.mem_get_info(gpu)[0] for gpu in gpus)
        return Devices(world_size(), float(free), gpu=True)
    return Devices(world_size(), float(available_memory()), gpu=False)
