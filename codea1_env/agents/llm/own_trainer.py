"""Finds the trainer of language models that a run names."""

from __future__ import annotations

import importlib
from typing import Any


def find_trainer(name: str) -> tuple[Any, Any]:
    """Find a trainer and the class of its configuration.

    Args:
        name: module:class, such as "trl:GRPOTrainer".

    Raises:
        ValueError: There is no such class, or it is no trainer that can be driven.
    """
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
