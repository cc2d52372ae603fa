"""What may be set of a TRL trainer: every field, but for those that the game decides; and what its value must be."""

from __future__ import annotations

import dataclasses
import difflib
import enum
import math
import numbers
import re
import types
import typing
from collections.abc import Callable, Mapping
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


_ROWS = "the game: each demonstration is a row, and its answer is what is learned"
_OF_IMITATION: Mapping[str, str] = {
    **DECIDED,
    "max_length": "the sampling settings of the run",
    "truncation_mode": "the sampling settings of the run",
    **dict.fromkeys(("packing", "packing_strategy", "eval_packing"), _ROWS),
    **dict.fromkeys(("completion_only_loss", "assistant_only_loss"), _ROWS),
    **dict.fromkeys(("dataset_kwargs", "dataset_num_proc", "dataset_text_field"), _ROWS),
}
"""Fields that follow from the run -> what decides them."""


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


_RANGES: tuple[tuple[tuple[str, ...], Callable[[Any], bool], str], ...] = (
    (("weight_decay", "max_grad_norm", "warmup_steps"), lambda value: value >= 0, "at least 0"),
    (("adam_beta1", "adam_beta2"), lambda value: 0 <= value < 1, "at least 0 and below 1"),
    (("adam_epsilon", "delta"), lambda value: value > 0, "above 0"),
    (("top_entropy_quantile",), lambda value: 0 <= value <= 1, "at least 0 and at most 1"),
)
"""Fields whose range TRL does not look at, or only when the model is loaded; as `config_checks` has those of a run."""
_MAY_BE_INFINITE = ("max_grad_norm", "epsilon_high", "delta")


def _out_of_range(name: str, value: Any) -> str:
    """Return in words which numbers a field takes, if its value is another one."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return ""
    if math.isnan(value) or (math.isinf(value) and name not in _MAY_BE_INFINITE):
        return "a finite number"
    wanted = (words for names, fits, words in _RANGES if name in names and not fits(value))
    return next(wanted, "")


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


def check_imitation_fields(fields: Mapping[str, Any]) -> None:
    """Check the fields of a trainer that imitates: it takes those of a run with rewards, too. See `check_fields`."""
    from trl import GRPOConfig, SFTConfig

    check_fields(fields, SFTConfig, GRPOConfig, decided=_OF_IMITATION)
