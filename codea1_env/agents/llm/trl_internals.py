"""All private parts of TRL that we touch. tests/agents/llm/test_llm_algorithms.py says what a new version has changed."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from codea1_env.agents.policy import AlgorithmError, checked_advantages
from codea1_env.support.extras import Lazy, replaced, require

torch: Any = Lazy("torch")
_ENTROPY = ("entropy_coef", "_last_world_entropy")


def with_algorithm(trainer_cls: Any, algorithm: Any) -> Any:
    """Subclass `trl.GRPOTrainer`, or a subclass of it, to learn with an algorithm's `advantages` and `loss`, as far as it has them."""
    if hasattr(algorithm, "advantages"):
        trainer_cls = _with_advantages(trainer_cls, algorithm)
    return _with_loss(trainer_cls, algorithm) if hasattr(algorithm, "loss") else trainer_cls


def with_equal_groups(trainer_cls: Any) -> Any:
    """Subclass `trl.GRPOTrainer` so that a group of equal rewards has no advantages at all.

    TRL subtracts their mean with the precision of float32. What is left has one sign and is divided by 0.0001.
    """

    def without(trainer: Any, rewards: Any, theirs: Any, mine: slice) -> Any:
        summed = trainer.multi_objective_aggregation == "sum_then_normalize"
        if trainer.scale_rewards == "batch" or not summed:
            return theirs
        least = torch.nan_to_num(rewards, nan=torch.inf).amin(1)
        equal = torch.nan_to_num(rewards, nan=-torch.inf).amax(1) <= least
        equal = equal.repeat_interleave(trainer.num_generations)[mine]
        return theirs.masked_fill(equal.to(theirs.device), 0.0)

    if hasattr(trainer_cls, "own_advantages"):
        return trainer_cls
    made = _with_changed_advantages(trainer_cls, without)
    made.__name__ = made.__qualname__ = trainer_cls.__name__
    return made


def _with_advantages(trainer_cls: Any, algorithm: Any) -> Any:
    def own(trainer: Any, rewards: Any, theirs: Any, mine: slice) -> Any:
        found = checked_advantages(algorithm.advantages, rewards.double().cpu().numpy())
        return torch.from_numpy(found).flatten()[mine].to(theirs)

    made = _named(_with_changed_advantages(trainer_cls, own), algorithm)
    made.own_advantages = True
    return made


def _with_changed_advantages(trainer_cls: Any, change: Callable[..., Any]) -> Any:
    """Change advantages from a trainer, the rewards of all processes, [groups, size], its advantages, and its share of both."""

    class Changed(trainer_cls):  # type: ignore[misc]
        def _calculate_rewards(self, *given: Any, **named: Any) -> Any:
            self._of_all_processes = super()._calculate_rewards(*given, **named)
            return self._of_all_processes

        def _generate_and_score_completions(self, inputs: Any) -> Any:
            output = super()._generate_and_score_completions(inputs)
            theirs = output["advantages"]
            rewards = self._of_all_processes[:, 0].view(-1, self.num_generations)
            first = self.accelerator.process_index * len(theirs)
            mine = slice(first, first + len(theirs))
            return {**output, "advantages": change(self, rewards, theirs, mine)}

    return Changed


def _with_loss(trainer_cls: Any, algorithm: Any) -> Any:
    class WithLoss(trainer_cls):  # type: ignore[misc]
        def _get_per_token_logps_and_entropies(self, *given: Any, **named: Any) -> Any:
            found = super()._get_per_token_logps_and_entropies(*given, **named)
            self._log_probs = found[0]
            return found

        def _compute_loss(self, model: Any, inputs: Any) -> Any:
            advantages = inputs["advantages"]
            # With zero advantages the rest of TRL's loss is left: KL, entropy bonus, loss of routers.
            rest = super()._compute_loss(
                model, {**inputs, "advantages": torch.zeros_like(advantages)}
            )
            for name in [name for name in self._metrics["train"] if "clip_ratio" in name]:
                del self._metrics["train"][name]  # of TRL's loss
            log_probs, self._log_probs = self._log_probs, None
            mask = inputs["completion_mask"] * inputs.get("tool_mask", 1)
            weight = inputs.get("importance_sampling_ratio", 1.0)  # as TRL weighs its own loss
            old = inputs.get("old_per_token_logps", log_probs.detach())
            own = algorithm.loss(log_probs, old, advantages.unsqueeze(1) * weight, mask)
            if not own.requires_grad:
                raise AlgorithmError(
                    f"Expect {type(algorithm).__name__}.loss to depend on log_probs, actually: it does not."
                )
            return rest + own / self.current_gradient_accumulation_steps

    return _named(WithLoss, algorithm)


def _named(trainer_cls: Any, algorithm: Any) -> Any:
    trainer_cls.__name__ = trainer_cls.__qualname__ = type(algorithm).__name__  # for messages
    trainer_cls.own_algorithm = algorithm  # whose state is saved with the trainer
    return trainer_cls


class _Engine:
    """Stands in for a trainer's vLLM. The player itself gives the weights to its engine."""

    def sync_weights(self) -> None:
        """Do nothing."""


def correct_for_engine(trainer: Any) -> None:
    """Switch on a GRPOTrainer's importance sampling, which it has for its own vLLM."""
    trainer.use_vllm = True
    trainer.vllm_generation = _Engine()
    trainer._last_loaded_step = -1


def answers_only() -> AbstractContextManager[None]:
    """Have TRL compute probabilities of answers alone on processors, as it does on GPUs.

    Elsewhere it computes those of prompts, too, and drops them: more than half of an update.
    """
    utils = require("trl.trainer.utils")
    original = getattr(utils, "_use_triton", None)
    if original is None:  # another version, which may do so by itself
        return nullcontext()
    return replaced(utils, "_use_triton", lambda device: device.type == "cpu" or original(device))


def groups_together(trainer: Any) -> AbstractContextManager[None]:
    """Let a trainer on a processor keep the order of its answers, where each step of the optimizer sums all of them.

    It shuffles them. Then few answers of a mini-batch have one prompt, which is computed once for all of them.
    """
    module, name = require("trl.trainer.grpo_trainer"), "shuffle_sequence_dict"
    sums_all = trainer.args.gradient_accumulation_steps == trainer.args.steps_per_generation
    if not (hasattr(module, name) and sums_all and trainer.model.device.type == "cpu"):
        return nullcontext()
    return replaced(module, name, lambda answers: answers)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence what the trainer says about our use of it."""

    def unexpected(record: logging.LogRecord) -> bool:
        return "All reward functions returned None" not in record.getMessage()

    logger = logging.getLogger("trl.trainer.grpo_trainer")
    silence = os.environ.get("TRL_EXPERIMENTAL_SILENCE")
    logger.addFilter(unexpected)
    os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"  # rollout_func is experimental
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*reductions.*rank.*")
            yield
    finally:
        logger.removeFilter(unexpected)
        if silence is None:
            del os.environ["TRL_EXPERIMENTAL_SILENCE"]
        else:
            os.environ["TRL_EXPERIMENTAL_SILENCE"] = silence


def counters_of(trainer: Any) -> dict[str, Any]:
    """Counters of a trainer that its own checkpoints leave out."""
    return {
        "micro_steps": trainer._step,
        "entropy": {name: getattr(trainer, name, None) for name in _ENTROPY},
    }


def restore_counters(trainer: Any, state: Mapping[str, Any]) -> None:
    """Restore what `counters_of` returned, behind the trainer's own state."""
    for name, value in state["entropy"].items():
        if value is not None:
            setattr(trainer, name, value)
    trainer._step = state["micro_steps"]
    trainer._globalstep_last_logged = trainer.state.global_step
