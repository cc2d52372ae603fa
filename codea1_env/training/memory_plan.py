"""What memory a run of language models needs, phase by phase, before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.table import Table

from codea1_env.agents.llm.engines import GPU_SHARE
from codea1_env.agents.llm.memory import ModelShape, Numbers, learning, resident, serving, writing
from codea1_env.agents.llm.trainer_settings import default_batch
from codea1_env.training.config import RunError, TrainConfig
from codea1_env.training.language_models import Role, roles_of, update_shape

_LIBRARIES = 0.6e9
"""Bytes of Python, torch, transformers and TRL on a processor, before any weights."""
FULL = 0.6
"""Length of prompts and answers as they come, as a share of what they may have."""
_CONTEXT = 1.5e9
"""Bytes of a GPU for its libraries, and lost between tensors; a guess."""


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
        learn = sum(does.learns and not config.player(role).freeze for role in here)
        kept = does.learns and config.beta > 0
        for part, size in resident(shapes[name], numbers, learn, len(here), reference=kept).items():
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
        groups, size = update_shape(config, role, config.problems_per_step)
        if does.writes and config.backend == "transformers":
            rows = min(config.generation_batch, _answers(config, role) // devices.number)
            # A measurement asks as often as it has samples.
            prompts = -(-rows // min(size, config.eval_samples))
            phase = f"{role} writes"
            batches[phase] = rows
            phases[phase] = writing(
                shape, numbers, rows=rows, prompts=prompts, prompt=prompt, answer=answer
            )
        elif not does.learns:
            phases[f"{role} writes"], batches[f"{role} writes"] = {}, _answers(config, role)
        if does.learns and not config.player(role).freeze:
            trainer = config.player(role).trainer
            share = groups * size // devices.number
            rows = trainer.get("per_device_train_batch_size") or default_batch(share, devices.gpu)
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


def check_fits(config: TrainConfig, plan: MemoryPlan, devices: Devices) -> None:
    """Refuse a run that does not fit.

    Raises:
        RunError: It does not; the message names what to change.
    """
    if not plan.phases:
        return
    room = devices.memory if devices.gpu else devices.memory / devices.number
    phase, needed = plan.peak, plan.needed(plan.peak)
    share = plan.held.get("vLLM", 0.0)
    if plan.engines > share:
        adapters = "" if config.lora_rank else "adapters instead of all weights (lora_rank), "
        raise RunError(
            f"Expect vLLM's engines to fit into {share / 1e9:.1f} GB ({GPU_SHARE:.0%} of the memory), actually: "
            f"{plan.engines / 1e9:.1f} GB for their weights and one answer at a time. Choose {adapters}backend="
            "'transformers', a smaller model, or a larger device."
        )
    if needed <= room:
        return
    role, _, doing = phase.partition(" ")
    block = "tester" if role == "tester" else "coder"
    lengths = f"{block}.sampling.max_prompt_length and max_completion_length"
    smaller = f"a smaller model than {config.model_of(role)}"
    if config.lora_rank == 0:
        smaller = f"adapters instead of all weights (lora_rank, such as 64, with learning rates of 2e-5), or {smaller}"
    changes = []
    if sum(plan.held.values()) < room:
        if doing == "writes":
            changes.append("a smaller generation_batch")
        elif plan.batches[phase] > 1:
            changes.append(f"a smaller {block}.trainer.per_device_train_batch_size")
        changes.append(f"a smaller {lengths}")
    raise RunError(
        f"Expect a run that fits into {room / 1e9:.1f} GB for each process, actually: {needed / 1e9:.1f} GB while the "
        f"{phase}. Choose {', '.join([*changes, smaller])}, or a larger device."
    )
