"""Puts what is your own into a GRPOTrainer: the trainer itself, or an algorithm's advantages and loss. Bad losses stop it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from codea1_env.agents.policy import AlgorithmError, checked_advantages


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


_OF_ADVANTAGES = ("scale_rewards", "multi_objective_aggregation")
_OF_LOSS = (
    "loss_type", "importance_sampling_level", "epsilon", "epsilon_high", "delta", "off_policy_mask_threshold",
    "sapo_temperature_neg", "sapo_temperature_pos", "vespo_k_pos", "vespo_lambda_pos", "vespo_k_neg", "vespo_lambda_neg",
)  # fmt: skip


def decided_by(algorithm: Any) -> Mapping[str, str]:
    """Fields of a trainer that have no say beside an algorithm's own functions -> what decides instead."""
    name = type(algorithm).__name__
    return {
        field: f"the {function} of {name}"
        for function, fields in (("advantages", _OF_ADVANTAGES), ("loss", _OF_LOSS))
        if hasattr(algorithm, function)
        for field in fields
    }


def with_algorithm(trainer_cls: Any, algorithm: Any) -> Any:
    """Return the class of a trainer that learns as an algorithm says.

    Args:
        trainer_cls: `trl.GRPOTrainer` or a subclass.
        algorithm: With `advantages`, `loss`, both, or neither: then the class is the trainer's own.
    """
    if hasattr(algorithm, "advantages"):
        trainer_cls = _with_advantages(trainer_cls, algorithm)
    return _with_loss(trainer_cls, algorithm) if hasattr(algorithm, "loss") else trainer_cls


def _with_advantages(trainer_cls: Any, algorithm: Any) -> Any:
    import torch

    class WithAdvantages(trainer_cls):  # type: ignore[misc]
        def _calculate_rewards(self, *given: Any, **named: Any) -> Any:
            self._of_all_processes = super()._calculate_rewards(*given, **named)
            return self._of_all_processes

        def _generate_and_score_completions(self, inputs: Any) -> Any:
            output = super()._generate_and_score_completions(inputs)
            theirs = output["advantages"]
            rewards = self._of_all_processes[:, 0].view(-1, self.num_generations)
            found = checked_advantages(algorithm.advantages, rewards.double().cpu().numpy())
            first = self.accelerator.process_index * len(theirs)
            ours = torch.from_numpy(found).flatten()[first : first + len(theirs)]
            return {**output, "advantages": ours.to(theirs)}

    return _named(WithAdvantages, algorithm)


def _with_loss(trainer_cls: Any, algorithm: Any) -> Any:
    import torch

    class WithLoss(trainer_cls):  # type: ignore[misc]
        def _get_per_token_logps_and_entropies(self, *given: Any, **named: Any) -> Any:
            found = super()._get_per_token_logps_and_entropies(*given, **named)
            self._log_probs = found[0]
            return found

        def _compute_loss(self, model: Any, inputs: Any) -> Any:
            advantages = inputs["advantages"]
            # What is left of TRL's loss where nothing is better or worse: KL, entropy bonus, loss of routers.
            rest = super()._compute_loss(
                model, {**inputs, "advantages": torch.zeros_like(advantages)}
            )
            for name in [name for name in self._metrics["train"] if "clip_ratio" in name]:
                del self._metrics["train"][name]  # of TRL's loss
            log_probs, self._log_probs = self._log_probs, None
            mask = inputs["completion_mask"] * inputs.get("tool_mask", 1)
            # Answers of another engine: as TRL weighs what it adds up.
            weight = inputs.get("importance_sampling_ratio", 1.0)
            old = inputs.get("old_per_token_logps", log_probs.detach())
            own = algorithm.loss(log_probs, old, advantages.unsqueeze(1) * weight, mask)
            _check_loss(own, algorithm)
            return rest + own / self.current_gradient_accumulation_steps

    return _named(WithLoss, algorithm)


def _named(trainer_cls: Any, algorithm: Any) -> Any:
    """Give a trainer the algorithm that it learns by, and the name of its class, for messages."""
    trainer_cls.__name__ = trainer_cls.__qualname__ = type(algorithm).__name__
    trainer_cls.own_algorithm = algorithm  # whose state is saved with the trainer
    return trainer_cls


def _check_loss(loss: Any, algorithm: Any) -> None:
    import torch

    what = ""
    if not isinstance(loss, torch.Tensor):
        what = f"{loss!r:.100}, a {type(loss).__name__}"
    elif loss.dim() != 0:
        what = f"a tensor of shape {tuple(loss.shape)}. Return its mean or sum"
    elif not torch.isfinite(loss):
        what = f"{loss.item()}. Look for a division by 0 or a logarithm of 0"
    elif not loss.requires_grad:
        what = "one that does not depend on log_probs"
    if what:
        raise AlgorithmError(
            f"Expect {type(algorithm).__name__}.loss to return one finite number, a tensor that can be "
            f"differentiated, actually: {what}."
        )


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
    algorithm = type(trainer).__name__
    if getattr(trainer, "loss_type", None) is not None:
        algorithm += f" (loss_type={trainer.loss_type!r})"

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
