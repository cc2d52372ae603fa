"""What memory a run of language models needs, phase by phase, before anything is loaded."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from rich.table import Table

from codea1_env.agents.llm.engines import GPU_SHARE
from codea1_env.agents.llm.memory import ModelShape, Numbers, learning, resident, serving, writing
from codea1_env.agents.llm.trainer_settings import default_batch
from codea1_env.training.algorithms import imitates
from codea1_env.training.batches import learn_together, passes_of
from codea1_env.training.config import RunError, TrainConfig
from codea1_env.training.language_models import Role, roles_of, update_of
from codea1_env.training.settings import flat, inline_table, replaced

_LIBRARIES = 0.6e9
"""Bytes of Python, torch, transformers and TRL on a processor, before any weights."""
FULL = 0.6
"""Length of prompts and answers as they come, as a share of what they may have."""
_CONTEXT = 1.5e9
"""Bytes of a GPU for its libraries, and lost between tensors; a guess."""
_RANK, _ALPHA, _RATE = 64, 128, 2e-5
"""Adapters that are proposed instead of all weights, and the learning rate that they want at least: those of the presets."""
_SHORTEST = {"max_completion_length": 512, "max_prompt_length": 1024}
"""Lengths below which none is proposed: programs and prompts would not fit into them."""


@dataclass(frozen=True)
class Devices:
    """Where the processes of a run compute, one process on each device."""

    number: int
    """Processes; on a processor they share its memory."""
    memory: float
    """Bytes of a GPU, or of memory that are free."""
    gpu: bool


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes of one process at full length of prompts and answers."""

    held: Mapping[str, float]
    """ProcessKind -> bytes, all the time."""
    phases: Mapping[str, Mapping[str, float]]
    """Phase -> part -> bytes beside those."""
    batches: Mapping[str, int]
    """Phase -> sequences that are computed together."""
    engines: float = 0.0
    """Bytes without which vLLM's engines do not start, each with an equal share of what is theirs."""

    def needed(self, phase: str) -> float:
        """Bytes of a phase, with what is held."""
        return sum(self.held.values()) + sum(self.phases[phase].values())

    @property
    def peak(self) -> str:
        """The phase that needs most."""
        return max(self.phases, key=self.needed)


@dataclass(frozen=True)
class ProcessKind:
    """What the processes of one kind do for a run."""

    roles: tuple[Role, ...]
    writes: bool = True
    learns: bool = True
    processes: int = 1
    """Those that learn together."""


def kinds_of(config: TrainConfig) -> list[ProcessKind]:
    """Return the kinds of processes that hold language models: on a Ray cluster each role has its own."""
    if config.engine != "ray":
        return [ProcessKind(roles_of(config))]
    parts = []
    for role in roles_of(config):
        ahead = bool(config.max_staleness) and not config.player(role).freeze
        parts.append(ProcessKind((role,), writes=not ahead, processes=config.learner_processes))
        if ahead:
            parts.append(ProcessKind((role,), learns=False))
    return parts


def plan_memory(
    config: TrainConfig,
    shapes: Mapping[str, ModelShape],
    devices: Devices,
    length: float = 1.0,
    does: ProcessKind | None = None,
) -> MemoryPlan:
    """Compute what each phase of a run needs.

    Args:
        config: The run. A number format that is left open is bfloat16 on GPUs, and float32 on a processor.
        shapes: The models by their names in the configuration.
        devices: Where it runs.
        length: Of prompts and answers, as a share of what they may have.
        does: What a process does, if others do the rest.
    """
    does = does or ProcessKind(roles_of(config))
    roles = does.roles
    dtype = config.dtype
    if dtype == "auto":
        dtype = "bfloat16" if devices.gpu else "float32"
    numbers = Numbers(
        dtype, config.generation_dtype or dtype, config.lora_rank, devices.number, devices.gpu
    )
    held = {"libraries": _CONTEXT if devices.gpu else _LIBRARIES}
    # An engine has weights of its own.
    own = [
        role
        for role in roles
        if config.backend == "transformers" or (does.learns and not config.player(role).freeze)
    ]
    for name in dict.fromkeys(map(config.model_of, own)):
        here = [role for role in own if config.model_of(role) == name]
        learn = [role for role in here if does.learns and not config.player(role).freeze]
        kept = sum(_has_reference(config, role) for role in learn)
        parts = resident(shapes[name], numbers, len(learn), len(here), references=kept)
        for part, size in parts.items():
            held[part] = held.get(part, 0.0) + size
    engines = 0.0
    if config.backend == "vllm" and does.writes:
        names = [config.model_of(role) for role in roles]
        # Adapters of one model share an engine.
        names = list(dict.fromkeys(names)) if config.lora_rank else names
        samplings = (config.coder.sampling, config.tester.sampling)
        context = max(each.max_prompt_length + each.max_completion_length for each in samplings)
        engines = len(names) * max((serving(shapes[name], context) for name in names), default=0.0)
        held["vLLM"] = GPU_SHARE * devices.memory if devices.gpu else engines
    phases: dict[str, Mapping[str, float]] = {}
    batches: dict[str, int] = {}
    for role in roles:
        shape, sampling = shapes[config.model_of(role)], config.player(role).sampling
        if role == "model":  # it writes and reads suites, too, which have the longer prompts
            sampling = config.tester.sampling
        prompt = int(sampling.max_prompt_length * length)
        answer = int(sampling.max_completion_length * length)
        groups, size = update_of(config, role, config.problems_per_step)
        if does.writes and config.backend == "transformers":
            rows = min(config.generation_batch, _answers(config, role) // devices.number)
            # A measurement asks as often as it has samples.
            prompts = -(-rows // min(size, config.eval_samples))
            phase = f"{role} writes"
            batches[phase] = rows
            phases[phase] = writing(
                shape, numbers, rows=rows, prompts=prompts, prompt=prompt, answer=answer
            )
        elif not does.learns or (does.writes and config.backend == "vllm"):
            phases[f"{role} writes"], batches[f"{role} writes"] = {}, _answers(config, role)
        if does.learns and not config.player(role).freeze:
            trainer = config.player(role).trainer
            rows = _batch(config, role, groups * size // devices.number, devices.gpu)
            read = rows if devices.gpu else -(-rows // size)  # a processor reads a prompt once
            phase = f"{role} learns"
            batches[phase] = rows
            phases[phase] = learning(
                shape,
                numbers,
                rows=read,
                length=prompt + answer * (rows // read),
                tokens=read * prompt + rows * answer,
                answers=rows * answer,
                checkpointing=trainer.get("gradient_checkpointing", True),
            )
    return MemoryPlan(held, phases, batches, engines)


def plans_of(
    config: TrainConfig, shapes: Mapping[str, ModelShape], devices: Devices
) -> Iterator[tuple[Devices, MemoryPlan]]:
    """Yield for each kind of processes where one of them computes, and what it needs there."""
    kinds = kinds_of(config)
    for kind in kinds:
        on = devices
        if config.engine == "ray":
            # One process gets a GPU or a part of it; those of one kind their part of this machine's memory.
            share = kind.processes / sum(each.processes for each in kinds)
            if devices.gpu:
                share = min(1.0, config.learner_gpus or 1.0)
            on = Devices(kind.processes, share * devices.memory, devices.gpu)
        yield on, plan_memory(config, shapes, on, does=kind)


def _has_reference(config: TrainConfig, role: Role) -> bool:
    """Whether a player that learns stays close to what it was at the start."""
    return not imitates(config, role) and config.player(role).trainer.get("beta", config.beta) > 0


def _batch(config: TrainConfig, role: Role, share: int, gpu: bool) -> int:
    """Answers of a process that are learned from at the same time."""
    chosen = config.player(role).trainer.get("per_device_train_batch_size")
    return chosen or default_batch(max(1, share), gpu)


def _answers(config: TrainConfig, role: Role) -> int:
    """Answers of a step."""
    programs = config.problems_per_step * config.num_generations
    return programs if role == "coder" else programs * config.num_suites


def memory_table(plan: MemoryPlan, devices: Devices) -> Table:
    """Show a plan: one column a phase, in GB."""
    where = "GPU" if devices.gpu else "processor"
    table = Table(
        title=f"GB per process, at full length of prompts and answers ({devices.number} x {where} with "
        f"{devices.memory / 1e9:.1f} GB)"
    )
    table.add_column("", no_wrap=True)
    for phase in plan.phases:
        table.add_column(f"{phase}\n(batch {plan.batches[phase]})", justify="right")
    for part, size in plan.held.items():
        table.add_row(part, *[f"{size / 1e9:.1f}"] * len(plan.phases))
    for part in dict.fromkeys(part for parts in plan.phases.values() for part in parts):
        sizes = [parts.get(part) for parts in plan.phases.values()]
        table.add_row(part, *["" if size is None else f"{size / 1e9:.1f}" for size in sizes])
    table.add_section()
    table.add_row("together", *[f"{plan.needed(phase) / 1e9:.1f}" for phase in plan.phases])
    return table


# ---- What to change ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Lack:
    """What does not fit."""

    phase: str
    """Empty for vLLM's engines, which do not start."""
    needed: float
    room: float
    batch: int = 1

    def __str__(self) -> str:
        if not self.phase:
            return f"{self.needed / 1e9:.1f} GB for the weights of vLLM's engines and one answer at a time"
        return f"{self.needed / 1e9:.1f} GB while the {self.phase}"


def check_fits(
    config: TrainConfig,
    shapes: Mapping[str, ModelShape],
    devices: Devices,
    below: TrainConfig | None = None,
) -> None:
    """Refuse a run that does not fit.

    Args:
        config: The run.
        shapes: The models by their names in the configuration.
        devices: Where it runs.
        below: The run without the options of its command line, which what is proposed is added to; None if it has none.

    Raises:
        RunError: It does not; the message names options with which it does, if there are any.
    """
    lack = _lacking(config, shapes, devices)
    if lack is None:
        return
    fitted, still = _fitted(config, shapes, devices)
    wanted = "a run that fits" if lack.phase else "vLLM's engines to fit"
    room = "for each process" if lack.phase else f"({GPU_SHARE:.0%} of the memory)"
    message = f"Expect {wanted} into {lack.room / 1e9:.1f} GB {room}, actually: {lack}."
    changes = ", ".join(_in_words(config, fitted))
    role = (still or lack).phase.partition(" ")[0] or "coder"
    other = f"a smaller model than {config.model_of(role)}, or a larger device"
    if still is None:
        raise RunError(
            f"{message} Choose {other}, or {changes}, with which it fits: "
            + " ".join(_options(config, fitted, below or config))
        )
    if changes:
        message += f" It does not fit with {changes} either: {still}, of {still.room / 1e9:.1f} GB."
    raise RunError(f"{message} Choose {other}.")


def _lacking(
    config: TrainConfig, shapes: Mapping[str, ModelShape], devices: Devices
) -> _Lack | None:
    """Return what exceeds its room most, engines first; None if everything fits."""
    found = []
    for on, plan in plans_of(config, shapes, devices):
        if not plan.phases:
            continue
        share = plan.held.get("vLLM", 0.0)
        if plan.engines > share:
            return _Lack("", plan.engines, share)
        room = on.memory if on.gpu else on.memory / on.number
        peak = plan.peak
        if plan.needed(peak) > room:
            found.append(_Lack(peak, plan.needed(peak), room, plan.batches[peak]))
    return max(found, key=lambda each: each.needed - each.room, default=None)


def _fitted(
    config: TrainConfig, shapes: Mapping[str, ModelShape], devices: Devices
) -> tuple[TrainConfig, _Lack | None]:
    """Return the run with the changes that cost least, and what does not fit even with all of them."""
    for role in roles_of(config):
        if not config.player(role).freeze:
            rows = _batch(config, role, _share(config, role, devices), devices.gpu)
            config = _with_batch(config, role, rows, devices)
    for change in (lambda _: {}, _adapters, lambda _: {"backend": "transformers"}):
        config = replaced(config, change(config))
        fitted, lack = _smaller(config, shapes, devices, shorter=False)
        if lack is None:
            return fitted, None
    return _smaller(config, shapes, devices, shorter=True)


def _smaller(
    config: TrainConfig, shapes: Mapping[str, ModelShape], devices: Devices, *, shorter: bool
) -> tuple[TrainConfig, _Lack | None]:
    """Return the run with batches as small as they must be, and what does not fit with the smallest.

    Args:
        config: The run.
        shapes: The models by their names in the configuration.
        devices: Where it runs.
        shorter: Whether prompts and answers may be shorter, too.
    """
    while (lack := _lacking(config, shapes, devices)) is not None:
        role, _, doing = lack.phase.partition(" ")
        if doing == "learns" and lack.batch > 1:
            config = _with_batch(config, cast(Role, role), lack.batch - 1, devices)
        elif doing == "writes" and lack.batch > 1 and config.backend == "transformers":
            config = replaced(config, {"generation_batch": lack.batch // 2})
        elif shorter and role and (lengths := _shorter_lengths(config, role)):
            config = replaced(config, lengths)
        else:
            break
    return config, lack


def _share(config: TrainConfig, role: Role, devices: Devices) -> int:
    """Answers of an update that a process learns from."""
    answers = math.prod(update_of(config, role, config.problems_per_step))
    return max(1, answers // learn_together(config, devices.number))


def _with_batch(config: TrainConfig, role: Role, most: int, devices: Devices) -> TrainConfig:
    """Return the run with a batch to learn from of at most so many answers, and steps of the optimizer as large as before.

    Its trainer accepts both: a batch that divides the answers of a process, and an accumulation that divides the batches.
    """
    trainer = config.player(role).trainer
    share, number = _share(config, role, devices), learn_together(config, devices.number)
    before = _batch(config, role, share, devices.gpu)
    rows = next(
        (each for each in range(most, 0, -1) if share % each == 0 and before % each == 0), 1
    )
    fields: dict[str, Any] = {} if rows == before else {"per_device_train_batch_size": rows}
    if "gradient_accumulation_steps" in trainer:
        batches = share // rows * passes_of(config, role)
        together = trainer["gradient_accumulation_steps"] * before
        # What was meant for one process does not divide the share of several.
        sizes = [together // rows, together // number // rows]
        steps = next((each for each in sizes if each and batches % each == 0), None)
        fields["gradient_accumulation_steps"] = steps or math.gcd(batches, sizes[0])
    block = "tester" if role == "tester" else "coder"
    return replaced(config, {f"{block}.trainer": trainer | fields})


def _adapters(config: TrainConfig) -> dict[str, Any]:
    """Return the changes to a run for adapters instead of all weights."""
    if config.lora_rank:
        return {}
    changes: dict[str, Any] = {"lora_rank": _RANK, "lora_alpha": _ALPHA}
    for role in roles_of(config):
        player, block = config.player(role), "tester" if role == "tester" else "coder"
        if player.freeze:
            continue
        if "learning_rate" in player.trainer:  # goes before the player's own
            rate = max(_RATE, player.trainer["learning_rate"])
            changes[f"{block}.trainer"] = player.trainer | {"learning_rate": rate}
        else:
            changes[f"{block}.learning_rate"] = max(_RATE, player.learning_rate)
    return changes


def _shorter_lengths(config: TrainConfig, role: str) -> dict[str, int]:
    """Return half of the longer of both lengths of a role, if it may be shorter."""
    block = "coder" if role == "coder" else "tester"
    sampling = config.player(block).sampling
    lengths = {name: getattr(sampling, name) for name in _SHORTEST}
    may = [name for name, least in _SHORTEST.items() if lengths[name] // 2 >= least]
    longest = max(may, key=lengths.__getitem__, default=None)
    return {f"{block}.sampling.{longest}": lengths[longest] // 2} if longest else {}


def _in_words(before: TrainConfig, after: TrainConfig) -> list[str]:
    """Say what is different between two runs."""
    old, new = flat(before), flat(after)
    changed = {name.rpartition(".")[2] for name, value in new.items() if value != old[name]}
    words = {
        "smaller batches": {"generation_batch", "trainer"},
        f"adapters instead of all weights (with learning rates from {_RATE:g})": {"lora_rank"},
        "answers from transformers instead of vLLM": {"backend"},
        "shorter prompts and answers": set(_SHORTEST),
    }
    return [word for word, names in words.items() if names & changed]


def _options(before: TrainConfig, after: TrainConfig, below: TrainConfig) -> Iterator[str]:
    """Yield what the second run adds to the command line of the first.

    Args:
        before: A run.
        after: Another.
        below: The first one without the options of its command line. Of a trainer's fields the last option has all that
            others than this say.
    """
    old, new, beneath = flat(before), flat(after), flat(below)
    for name, value in new.items():
        if value == old[name]:
            continue
        said = f"{value:g}" if isinstance(value, float) else str(value)
        if name.endswith(".trainer"):
            fields = {key: each for key, each in value.items() if each != beneath[name].get(key)}
            said = shlex.quote(inline_table(fields))
        yield f"--{name.replace('_', '-')} {said}"
