"""Makes the configuration of a TRL trainer: every field can be set, but for those that the game decides."""

from __future__ import annotations

import dataclasses
import difflib
import enum
import math
import numbers
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_DRAWING = "the sampling settings of the run, which have all that its engines can do"
_OF_ITS_ENGINE = (
    "vllm_mode", "vllm_model_impl", "vllm_enable_sleep_mode", "vllm_max_model_length", "vllm_tensor_parallel_size",
    "vllm_gpu_memory_utilization", "vllm_group_port", "vllm_server_base_url", "vllm_server_host", "vllm_server_port",
    "vllm_server_timeout", "vllm_structured_outputs_regex",
)  # fmt: skip

DECIDED: Mapping[str, str] = {
    "generation_batch_size": "problems_per_step and num_generations or num_suites",
    "steps_per_generation": "per_device_train_batch_size",
    "num_generations": "num_generations and num_suites of the run",
    **dict.fromkeys(("max_steps", "num_train_epochs"), "max_steps of the run"),
    **dict.fromkeys(
        ("max_completion_length", "temperature", "top_p", "top_k"),
        "the sampling settings of the run",
    ),
    **dict.fromkeys(
        ("min_p", "repetition_penalty", "generation_kwargs", "cache_implementation"), _DRAWING
    ),
    "chat_template_kwargs": "prompts of the run",
    "use_vllm": "backend of the run",
    **dict.fromkeys(_OF_ITS_ENGINE, "backend of the run, whose engine is not the trainer's"),
    "output_dir": "output_dir of the run",
    "seed": "seed of the run",
    "report_to": "tracker of the run",
    "resume_from_checkpoint": "--resume",
    **dict.fromkeys(("save_strategy", "save_steps"), "save_steps of the run"),
    "eval_strategy": "eval_steps of the run",
    **dict.fromkeys(("logging_strategy", "logging_steps"), "nothing: every step is logged"),
}
"""Fields that follow from the run -> what decides them."""


_TOGETHER_ON_GPU, _TOGETHER_ON_CPU = 8, 16
"""Answers that are learned from at the same time, if the user does not say how many."""


@dataclass(frozen=True)
class UpdateShape:
    """Size of the batch that one update learns from, and their number.

    Raises:
        ValueError: A size is too small.
    """

    groups: int
    """Groups of all processes together."""
    group_size: int
    """Answers of a group."""
    updates: int
    """Updates of the whole run; schedules of the learning rate end with the last."""

    def __post_init__(self) -> None:
        if self.groups < 1 or self.group_size < 2 or self.updates < 1:
            raise ValueError(
                "Expect at least 1 group of 2 answers and 1 update, actually: "
                f"{self.groups} of {self.group_size}, {self.updates}"
            )

    @property
    def rows(self) -> int:
        """Answers of one update."""
        return self.groups * self.group_size


def check_fields(
    fields: Mapping[str, Any], *config_cls: Any, decided: Mapping[str, str] = DECIDED
) -> None:
    """Check the names of fields, and the values of those that are numbers, texts, True or False, or one of a few words.

    Args:
        fields: Field -> value.
        config_cls: Configurations, of which at least one must know a field.
        decided: Fields that must not be set -> what decides them.

    Raises:
        ValueError: TRL does not know a field, or the run decides it, or its value is of another type or none of its words.
    """
    all_of = {
        each: {field.name: field for field in dataclasses.fields(each)} for each in config_cls
    }
    known = {name for named in all_of.values() for name in named}
    for name, value in fields.items():
        if name in decided:
            raise ValueError(
                f"Expect {name} not to be set for a trainer: it is decided by {decided[name]}."
            )
        if name not in known:
            near = difflib.get_close_matches(name, known, n=3)
            hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
            names = " or ".join(each.__name__ for each in config_cls)
            raise ValueError(f"Expect the fields of {names}, actually: {name!r}.{hint}")
        wanted = [
            _unmet(name, value, each) or _unnamed(value, named[name]) or _out_of_range(name, value)
            for each, named in all_of.items()
            if name in named
        ]
        if all(wanted):
            raise ValueError(f"Expect {name} to be {wanted[0]}, actually: {value!r:.200}")


_TYPES: Mapping[Any, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "True or False"),
    int: ((numbers.Integral,), "an integer"),
    float: ((numbers.Real,), "a number"),
    str: ((str, bool), "a text"),  # TRL takes True and False for some of them
    type(None): ((type(None),), "None"),
}


def _unmet(name: str, value: Any, config_cls: Any) -> str:
    """Return in words what a field wants to be that a value is not; nothing if it may be, or if that is not simple."""
    try:
        hint = typing.get_type_hints(config_cls).get(name)
    except (NameError, TypeError):  # annotations of the user's own
        return ""
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    kinds = typing.get_args(hint) if union else (hint,)
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            words = [each.value for each in kind]
            known = value in words or isinstance(value, kind)
            return "" if known else f"one of {', '.join(map(str, words))}"
    if not set(kinds) <= _TYPES.keys():
        return ""
    for kind in kinds:
        # True is an integer to Python, not to us.
        if isinstance(value, _TYPES[kind][0]) and (
            kind in (bool, str) or not isinstance(value, bool)
        ):
            return ""
    return " or ".join(_TYPES[kind][1] for kind in kinds)


_RANGES: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(
        ("weight_decay", "max_grad_norm", "warmup_steps", "max_steps"), (0.0, math.inf)
    ),
    **dict.fromkeys(("adam_beta1", "adam_beta2"), (0.0, math.nextafter(1.0, 0.0))),
    **dict.fromkeys(("adam_epsilon", "delta"), (math.ulp(0.0), math.inf)),
    "top_entropy_quantile": (0.0, 1.0),
}
"""Fields whose range TRL does not look at, or only when the model is loaded."""
_MAY_BE_INFINITE = ("max_grad_norm", "epsilon_high", "delta")


def _out_of_range(name: str, value: Any) -> str:
    """Return in words which numbers a field takes, if its value is another one."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return ""
    if math.isnan(value) or (math.isinf(value) and name not in _MAY_BE_INFINITE):
        return "a finite number"
    low, high = _RANGES.get(name, (-math.inf, math.inf))
    if low <= float(value) <= high:
        return ""
    least = "above 0" if 0 < low < 1e-300 else f"at least {low:g}"
    return (
        f"{least} and below 1"
        if 0.9 < high < 1
        else least
        if high == math.inf
        else f"{least} and at most {high:g}"
    )


_WORDS = (
    "loss_type",
    "scale_rewards",
    "importance_sampling_level",
    "vllm_importance_sampling_mode",
)
"""Fields whose value TRL does not look at before the first update, but names in their documentation."""
_QUOTED = re.compile(r"(?<![=\w])['`](\w+)'")


def _unnamed(value: Any, field: Any) -> str:
    """Return in words what a field wants to be, if its value is none of the words that TRL says it takes."""
    if field.name not in _WORDS or not isinstance(value, str):
        return ""
    words = field.metadata.get("choices") or _QUOTED.findall(field.metadata.get("help", ""))
    known = not words or value in words  # a configuration of one's own need not say
    return "" if known else f"one of {', '.join(dict.fromkeys(words))}"


def _made(config_cls: Any, **fields: Any) -> Any:
    """Make a configuration.

    Raises:
        ValueError: It does not take these values.
    """
    try:
        return config_cls(**fields)
    except (TypeError, AttributeError) as error:
        raise ValueError(
            f"Expect values that {config_cls.__name__} takes, actually it raises {type(error).__name__}: {error}. "
            "Look at its documentation."
        ) from error


def trainer_config(
    fields: Mapping[str, Any],
    shape: UpdateShape,
    *,
    config_cls: Any,
    temperature: float,
    max_completion_length: int,
    seed: int,
    folder: str,
) -> Any:
    """Make the configuration of a trainer.

    Args:
        fields: Field -> value, as the user set them.
        shape: What one update learns from.
        config_cls: `trl.GRPOConfig` or a subclass.
        temperature: At which answers are sampled: probabilities are those of this temperature.
        max_completion_length: Tokens of an answer.
        seed: Seed of the trainer.
        folder: Where the trainer may write; nothing of it is kept.

    Raises:
        ValueError: A field is unknown or decided by the run, or the batch cannot be divided as asked.
    """
    check_fields(fields, config_cls)
    return _made(
        config_cls,
        **common_fields(fields, shape, fields.get("num_iterations", 1), seed=seed, folder=folder),
        generation_batch_size=shape.rows,
        num_generations=shape.group_size,
        temperature=temperature,
        max_completion_length=max_completion_length,
    )


def common_fields(
    fields: Mapping[str, Any], shape: UpdateShape, passes: int, *, seed: int, folder: str
) -> dict[str, Any]:
    """Return the fields that the configurations of all trainers have in common, and those that the user set.

    To the user a step is one of the game, to a trainer one of its optimizer, of which an update may have several:
    `warmup_steps` is converted.

    Args:
        fields: Field -> value, as the user set them.
        shape: What one update learns from.
        passes: How often an update goes through its answers.
        seed: Seed of the trainer.
        folder: Where the trainer may write; nothing of it is kept.

    Raises:
        ValueError: The batch cannot be divided as asked.
    """
    import torch
    from accelerate import PartialState

    gpu = torch.cuda.is_available()
    processes = PartialState(cpu=not gpu).num_processes
    batches = batches_of(fields, shape.groups, shape.group_size, passes, processes, gpu)
    each = batches.optimizer_steps
    values = {
        **fields,
        "per_device_train_batch_size": batches.size,
        "gradient_accumulation_steps": batches.accumulation,
    }
    warmup = values.get("warmup_steps", 0)
    if isinstance(warmup, (int, float)) and warmup >= 1:  # below 1 it is a share of all steps
        values["warmup_steps"] = warmup * each
    return {
        # Not the library's defaults: progress and logs are the run's.
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": not gpu,
        "dataloader_pin_memory": gpu,
        "ddp_find_unused_parameters": False,
        **values,
        "output_dir": folder,
        "max_steps": shape.updates * each,
        "seed": seed % 2**31,
        "save_strategy": "no",
        "logging_steps": 1,
    }


@dataclass(frozen=True)
class Batches:
    """How the answers of an update are divided."""

    size: int
    """Answers of a process that are learned from at the same time."""
    accumulation: int
    """Of such batches, how many make one step of the optimizer."""
    optimizer_steps: int
    """Of an update."""


def batches_of(
    fields: Mapping[str, Any], groups: int, group_size: int, passes: int, processes: int, gpu: bool
) -> Batches:
    """Divide the answers of an update among processes and batches.

    Args:
        fields: Field of the trainer -> value, as the user set them.
        groups: Groups of all processes together.
        group_size: Answers of a group.
        passes: How often an update goes through its answers.
        processes: Those that learn together.
        gpu: Whether each has a GPU.

    Raises:
        ValueError: They cannot be divided as asked.

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
            f"number of processes ({processes}). Change problems_per_step."
        )
    size = fields.get("per_device_train_batch_size", default_batch(share, gpu))
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


def default_batch(share: int, gpu: bool) -> int:
    """Return how many of a process's answers are learned from at the same time, if the user does not say."""
    # A CPU computes the prompt of a group once, if the group is not divided.
    return _largest_divisor(share, _TOGETHER_ON_GPU if gpu else _TOGETHER_ON_CPU)


def _largest_divisor(number: int, limit: int) -> int:
    return next(size for size in range(min(limit, number), 0, -1) if number % size == 0)


_ROWS = "the game: each demonstration is a row, and its answer is what is learned"
_DECIDED: Mapping[str, str] = {
    **DECIDED,
    "max_length": "the sampling settings of the run",
    "truncation_mode": "the sampling settings of the run",
    **dict.fromkeys(("packing", "packing_strategy", "eval_packing"), _ROWS),
    **dict.fromkeys(("completion_only_loss", "assistant_only_loss"), _ROWS),
    **dict.fromkeys(("dataset_kwargs", "dataset_num_proc", "dataset_text_field"), _ROWS),
}
"""Fields that follow from the run -> what decides them."""


def check_imitation_fields(fields: Mapping[str, Any]) -> None:
    """Check the fields of a trainer that imitates: it takes those of a run with rewards, too. See `check_fields`."""
    from trl import GRPOConfig, SFTConfig

    check_fields(fields, SFTConfig, GRPOConfig, decided=_DECIDED)


def imitation_config(
    fields: Mapping[str, Any], shape: UpdateShape, *, seed: int, folder: str
) -> Any:
    """Make the configuration of an SFTTrainer.

    The same settings serve a run with rewards and one that imitates, so fields that only a GRPOTrainer has are
    left out, and so is a `loss_type` of GRPO.

    Args:
        fields: Field -> value, as the user set them.
        shape: What one update learns from.
        seed: Seed of the trainer.
        folder: Where the trainer may write; nothing of it is kept.

    Raises:
        ValueError: A field is unknown or decided by the run, or the batch cannot be divided as asked.
    """
    from trl import SFTConfig

    check_imitation_fields(fields)
    known = {field.name: field for field in dataclasses.fields(SFTConfig)}
    losses = known["loss_type"].metadata["choices"]
    taken = {
        name: value
        for name, value in fields.items()
        if name in known and (name != "loss_type" or value in losses)
    }
    return _made(
        SFTConfig,
        **common_fields(taken, shape, passes=1, seed=seed, folder=folder),
        max_length=None,
        dataset_kwargs={"skip_prepare_dataset": True},  # rows come as tokens, with labels
    )
