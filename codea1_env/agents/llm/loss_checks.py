"""Stops a trainer before a loss that is no number, or its gradient, can spoil the weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class LossError(ValueError):
    """A trainer's loss, or its gradient, is not what one can learn from."""


def check_losses(trainer: Any, where: Callable[[], str]) -> None:
    """Let a trainer raise at a loss that is not one finite number, and at a gradient that is not finite.

    By itself it would hide the first from its log and spoil all weights with both. With float16 the trainer skips
    steps whose gradient has overflowed, so that gradients are left to it.

    Args:
        trainer: A trainer of transformers.
        where: Tells which update this is, as "step 3 of the coder".

    Raises:
        LossError: Not here, but in the trainer's `train()`.
    """
    import torch
    from transformers import TrainerCallback

    compute = trainer.compute_loss
    algorithm = _algorithm(trainer)

    def compute_loss(*arguments: Any, **named: Any) -> Any:
        result = compute(*arguments, **named)
        loss = result[0] if isinstance(result, tuple) else result
        found = None
        if not isinstance(loss, torch.Tensor):
            found = f"{loss!r:.100}, a {type(loss).__name__}. Return a tensor"
        elif loss.numel() != 1:
            found = f"a tensor of shape {tuple(loss.shape)}. Return its mean or sum"
        elif not torch.isfinite(loss).all():
            found = f"{loss.item()}. Look for a division by 0 or a logarithm of 0"
        if found is not None:
            raise LossError(
                f"Expect the loss of {algorithm} to be one finite number, actually in "
                f"{where()}: {found}."
            )
        return result

    class Gradients(TrainerCallback):  # type: ignore[misc]
        def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **named: Any) -> None:
            if args.fp16:
                return
            for name, parameter in named["model"].named_parameters():
                if parameter.grad is not None and not torch.isfinite(parameter.grad).all():
                    raise LossError(
                        f"Expect {algorithm} to have a finite gradient, actually in {where()}: that of {name} is not. "
                        "Look for a function of its loss that is not differentiable there."
                    )

    trainer.compute_loss = compute_loss
    trainer.add_callback(Gradients)


def _algorithm(trainer: Any) -> str:
    """The trainer's class, and which of its losses it takes."""
    loss_type = getattr(trainer, "loss_type", None)
    name = type(trainer).__name__
    return name if loss_type is None else f"{name} (loss_type={loss_type!r})"
