"""Which fields of a TRL trainer may be set, and to what: all but those that the game decides."""

from __future__ import annotations

import dataclasses
import difflib
import enum
import importlib
import math
import numbers
import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any


def _fields(by: Mapping[str, str]) -> dict[str, str]:
    """Turn reason -> names into name -> reason."""
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
_TYPES: Mapping[Any, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "True or False"),
    int: ((numbers.Integral,), "an integer"),
    float: ((numbers.Real,), "a number"),
    str: ((str, bool), "a text"),  # TRL takes True and False for some of them
    type(None): ((type(None),), "None"),
}
_RANGES: tuple[tuple[tuple[str, ...], Callable[[Any], bool], str], ...] = (
    (("weight_decay", "max_grad_norm", "warmup_steps"), lambda value: value >= 0, "at least 0"),
    (("adam_beta1", "adam_beta2"), lambda value: 0 <= value < 1, "at least 0 and below 1"),
    (("adam_epsilon", "delta"), lambda value: value > 0, "above 0"),
    (("top_entropy_quantile",), lambda value: 0 <= value <= 1, "at least 0 and at most 1"),
)
"""Fields whose range TRL does not check, or only when the model is loaded."""
_MAY_BE_INFINITE = ("max_grad_norm", "epsilon_high", "delta")
_WORDS = (
    "loss_type", "scale_rewards", "importance_sampling_level", "vllm_importance_sampling_mode",
)  # fmt: skip
"""Fields whose words TRL names in their documentation, and does not check before the first update."""
_QUOTED = re.compile(r"(?<![=\w])['`](\w+)'")


def find_trainer(name: str) -> tuple[Any, Any]:
    """Find a `trl.GRPOTrainer` by module:class, and the class of its configuration; a ValueError if there is none."""
    import trl

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


def check_fields(
    fields: Mapping[str, Any], config_cls: Any, *, decided: Mapping[str, str] = DECIDED
) -> None:
    """Check names and simple values of fields of a trainer's configuration.

    Raises:
        ValueError: A field is unknown or decided by the run, or has a value of another kind.
    """
    known = {field.name: field for field in dataclasses.fields(config_cls)}
    for name, value in fields.items():
        if name in decided:
            raise ValueError(
                f"Expect {name} not to be set for a trainer: it is decided by {decided[name]}."
            )
        if name not in known:
            near = difflib.get_close_matches(name, known, n=3)
            hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise ValueError(
                f"Expect the fields of {config_cls.__name__}, actually: {name!r}.{hint}"
            )
        wanted = (
            _wanted_type(name, value, config_cls)
            or _wanted_word(value, known[name])
            or _wanted_range(name, value)
        )
        if wanted:
            raise ValueError(f"Expect {name} to be {wanted}, actually: {value!r:.200}")


def _wanted_type(name: str, value: Any, config_cls: Any) -> str:
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
    for kind in kinds:  # True is an integer to Python, not to us
        if isinstance(value, _TYPES[kind][0]) and (
            kind in (bool, str) or not isinstance(value, bool)
        ):
            return ""
    return " or ".join(_TYPES[kind][1] for kind in kinds)


def _wanted_word(value: Any, field: Any) -> str:
    if field.name not in _WORDS or not isinstance(value, str):
        return ""
    words = field.metadata.get("choices") or _QUOTED.findall(field.metadata.get("help", ""))
    known = not words or value in words  # a configuration of one's own need not say
    return "" if known else f"one of {', '.join(dict.fromkeys(words))}"


def _wanted_range(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return ""
    if math.isnan(value) or (math.isinf(value) and name not in _MAY_BE_INFINITE):
        return "a finite number"
    wanted = (words for names, fits, words in _RANGES if name in names and not fits(value))
    return next(wanted, "")
