"""Makes the configuration of a TRL trainer: which fields the run decides, and how the answers of an update are divided."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.support.extras import Lazy, require

torch: Any = Lazy("torch")
trl: Any = Lazy("trl")


def _fields(by: Mapping[str, str]) -> dict[str, str]:
    return {name: reason for reason, names in by.items() for name in names.split()}


DECIDED: Mapping[str, str] = _fields(
    {
        "problems_per_step and num_generations or num_suites": "generation_batch_size",
        "per_device_train_batch_size": "steps_per_generation",
        "num_generations and num_suites of the run": "num_generations",
        "max_steps of the run": "max_steps num_train_epochs",
        "the sampling settings of the run": "max_completion_length temperature top_p top_k min_p repetition_penalty generation_kwargs "
        "cache_implementation",
        "prompts of the run": "chat_template_kwargs",
        "backend of the run": "use_vllm vllm_mode vllm_model_impl vllm_enable_sleep_mode vllm_max_model_length "
        "vllm_tensor_parallel_size vllm_gpu_memory_utilization vllm_group_port vllm_server_base_url "
        "vllm_server_host vllm_server_port vllm_server_timeout vllm_structured_outputs_regex",
        "output_dir of the run": "output_dir",
        "seed of the run": "seed",
        "tracker of the run": "report_to",
        "--resume": "resume_from_checkpoint",
        "save_steps of the run": "save_strategy save_steps",
        "eval_steps of the run": "eval_strategy",
        "nothing: every step is logged": "logging_strategy logging_steps",
    }
)
"""Fields that follow from the run -> what decides them."""
_OF_ALGORITHM = {
    "advantages": ("scale_rewards", "multi_objective_aggregation"),
    "loss": (
        "loss_type", "importance_sampling_level", "epsilon", "epsilon_high", "delta", "off_policy_mask_threshold",
        "sapo_temperature_neg", "sapo_temperature_pos", "vespo_k_pos", "vespo_lambda_pos", "vespo_k_neg", "vespo_lambda_neg",
    ),
}  # fmt: skip
_TOGETHER_ON_GPU, _TOGETHER_ON_CPU = 8, 16
"""Answers that are learned from at the same time, if the user does not say how many."""


def find_trainer(name: str) -> tuple[Any, Any]:
    """Find a `trl.GRPOTrainer` by module:class, and the class of its configuration; a ValueError if there is none."""
    module, _, cls_name = name.partition(":")
    try:
        trainer = getattr(importlib.import_module(module), cls_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"Expect trainer_cls to be module:class, like 'trl:GRPOTrainer', actually: {name!r} ({error})"
        ) from error
    if not (isinstance(trainer, type) and issubclass(trainer, trl.GRPOTrainer)):
        raise ValueError(
            f"Expect trainer_cls to be trl.GRPOTrainer or a subclass of it, actually: {name!r}"
        )
    return trainer, getattr(trainer, "config_cls", trl.GRPOConfig)


def decided_by(algorithm: Any) -> Mapping[str, str]:
    """Fields that have no effect beside an algorithm's own functions -> what decides instead."""
    return {
        name: f"the {function} of {type(algorithm).__name__}"
        for function, names in _OF_ALGORITHM.items()
        if hasattr(algorithm, function)
        for name in names
    }


def check_undecided(fields: Mapping[str, Any], decided: Mapping[str, str] = DECIDED) -> None:
    """Raise a ValueError for fields of a trainer that the run decides. The trainer's configuration checks the others."""
    for name in fields:
        if name in decided:
            raise ValueError(
                f"Expect {name} not to be set for a trainer: it is decided by {decided[name]}."
            )


@dataclass(frozen=True)
class UpdateShape:
    """Size of the batch that one update learns from, and their number."""

    groups: int
    """Groups of all processes together."""
    group_size: int
    """Answers of a group."""
    updates: int
    """Updates of the whole run; schedules of the learning rate end with the last."""


@dataclass(frozen=True)
class Batches:
    """How the answers of an update are divided."""

    size: int
    """Answers of a process that are learned from at the same time."""
    accumulation: int
    """Such batches of one step of the optimizer."""
    optimizer_steps: int
    """Optimizer steps of an update."""


def batches_of(
    fields: Mapping[str, Any], groups: int, group_size: int, passes: int, processes: int, gpu: bool
) -> Batches:
    """Divide the answers of an update, with so many passes, among processes and batches.

    Raises a ValueError if they cannot be divided as the user's fields ask.

    Example:
        >>> batches_of({"per_device_train_batch_size": 4}, 3, 8, 1, 2, gpu=True)
        Batches(size=4, accumulation=3, optimizer_steps=1)
    """
    for name in ("per_device_train_batch_size", "gradient_accumulation_steps"):
        if not isinstance(number := fields.get(name, 1), int) or number < 1:
            raise ValueError(
                f"Expect {name} to be an integer of at least 1, actually: {number!r:.200}"
            )
    share, rest = divmod(groups * group_size, processes)
    if rest:
        raise ValueError(
            f"Expect the answers of a step ({groups} x {group_size}) to be a multiple of the "
            f"number of processes ({processes}). Change problems_per_step, or how many devices learn."
        )
    default = _largest_divisor(share, _TOGETHER_ON_GPU if gpu else _TOGETHER_ON_CPU)
    if not gpu and group_size <= _TOGETHER_ON_CPU and share % group_size == 0:
        # A CPU computes the prompt of a group once, if the group is not divided.
        whole = _largest_divisor(share // group_size, _TOGETHER_ON_CPU // group_size)
        default = group_size * whole
    size = fields.get("per_device_train_batch_size", default)
    steps, rest = divmod(share, size)
    if rest:
        raise ValueError(
            f"Expect per_device_train_batch_size to divide the {share} answers of a step and process, "
            f"actually: {size}. {_largest_divisor(share, size)} would."
        )
    accumulation = fields.get("gradient_accumulation_steps", steps)
    if steps * passes % accumulation:
        raise ValueError(
            f"Expect gradient_accumulation_steps to divide the {steps * passes} mini-batches of a step, "
            f"actually: {accumulation}. {_largest_divisor(steps * passes, accumulation)} would."
        )
    return Batches(size, accumulation, steps * passes // accumulation)


def _largest_divisor(number: int, limit: int) -> int:
    return next(size for size in range(min(limit, number), 0, -1) if number % size == 0)


@dataclass(frozen=True)
class TrainerSetup:
    """What the trainer of a model that learns from rewards is made from."""

    shape: UpdateShape
    sampling: SamplingConfig
    """How answers are drawn: from all tokens. Its temperature is also that of the probabilities learned from."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Field of `trl.GRPOConfig` -> value, as the user set them; defaults are TRL's."""
    tester_sampling: SamplingConfig | None = None
    """How a model that plays both roles draws its suites; None for a player of one role."""
    trainer_cls: Any = None
    """A subclass of `trl.GRPOTrainer`; None for that class."""
    config_cls: Any = None
    """A subclass of `trl.GRPOConfig`; None for that class."""

    def config(self, seed: int, folder: str) -> Any:
        """Make the configuration of the trainer, which may write into a folder; nothing of it is kept.

        Raises a ValueError if a field is wrong, the batch cannot be divided, or such answers teach nothing.
        """
        samplings = [each for each in (self.sampling, self.tester_sampling) if each is not None]
        for each in samplings:
            each.check_for_learning()
        if len({each.temperature for each in samplings}) > 1:
            raise ValueError(
                "Expect one temperature for both roles of a model (its trainer has one), actually: "
                f"{samplings[0].temperature!r} and {samplings[1].temperature!r}"
            )
        check_undecided(self.fields)
        config_cls = self.config_cls or trl.GRPOConfig
        values = {
            # Not the library's defaults: progress and logs are the run's.
            "report_to": "none",
            "disable_tqdm": True,
            "ddp_find_unused_parameters": False,
            **_batch_fields(self.fields, self.shape),
            "output_dir": folder,
            "seed": seed % 2**31,
            "save_strategy": "no",
            "logging_steps": 1,
            "generation_batch_size": self.shape.groups * self.shape.group_size,
            "num_generations": self.shape.group_size,
            "temperature": self.sampling.temperature,
            "max_completion_length": max(each.max_completion_length for each in samplings),
        }
        try:
            return config_cls(**values)
        except Exception as error:  # the class may be of the user's own
            said = " ".join(str(error).split())
            raise ValueError(
                f"{config_cls.__name__} refuses its fields: {type(error).__name__}: {said}"
            ) from error


def _batch_fields(fields: Mapping[str, Any], shape: UpdateShape) -> dict[str, Any]:
    """Add batches and steps to the user's fields. A user's step is one of the game, a trainer's one of its optimizer."""
    gpu = torch.cuda.is_available()
    processes = require("accelerate").PartialState(cpu=not gpu).num_processes
    passes = fields.get("num_iterations", 1)
    batches = batches_of(fields, shape.groups, shape.group_size, passes, processes, gpu)
    values = {
        "use_cpu": not gpu,
        "dataloader_pin_memory": gpu,
        **fields,
        "per_device_train_batch_size": batches.size,
        "gradient_accumulation_steps": batches.accumulation,
        "max_steps": shape.updates * batches.optimizer_steps,
    }
    warmup = values.get("warmup_steps", 0)
    if isinstance(warmup, (int, float)) and warmup >= 1:  # below 1 it is a share of all steps
        values["warmup_steps"] = warmup * batches.optimizer_steps
    return values
