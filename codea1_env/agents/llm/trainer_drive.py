"""Drives a stock TRL trainer one update at a time.

A GRPOTrainer has one long `train()`, which asks its `rollout_func` for answers when it wants them. Here `train()` runs
in a greenlet, a function that can be left and entered again. Where it asks, it is left, and `update` enters it with the
answers of the next step. So the trainer keeps its optimizer and schedule between updates, without a thread.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from codea1_env.agents.llm import trl_internals
from codea1_env.agents.llm.computing import thread_number
from codea1_env.agents.llm.shared_prompts import shared_prompts
from codea1_env.agents.policy import AlgorithmError
from codea1_env.support.extras import Lazy, require

torch: Any = Lazy("torch")
transformers: Any = Lazy("transformers")
greenlet: Any = Lazy("greenlet")
_ROUNDING = 1e-9  # difference of rewards that are equal
_NOT_METRICS = {"epoch", "step", "step_time", "total_flos", "learning_rate", "reward"}
"""Entries of a trainer's log that differ between equal runs, or say nothing, or nothing new: the run has
`reward/ROLE/selected`. The learning rate is taken as it was last."""
_REWARDS = "rewards/"
"""Begins the same again, for each reward function."""


class UpdateError(RuntimeError):
    """An update of a language model failed. Its cause is the trainer's own error."""


@dataclass(frozen=True)
class TrainingRow:
    """One answer and what it earned."""

    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    logprobs: tuple[float, ...] | None
    """Log probabilities by the engine that sampled the answer; None if it does not tell them."""
    reward: float | None
    """None: it could not be scored, and must not count in its group."""
    truncated: bool = False
    """Whether it was cut off at its greatest length."""


class TrainerDrive:
    """A GRPOTrainer that waits between updates.

    Args:
        trainer_cls: `trl.GRPOTrainer`, or a subclass of it.
        model: The model, or the base of the adapter, that is trained.
        args: The trainer's configuration.
        tokenizer: Of the model. Has a padding token.
        engine_samples: Whether to correct by importance sampling, since answers come from another engine than the
            trained model.
        peft_config: The adapter to train; None to train the model itself.
        name: For messages.
        seed: Decides what the trainer draws.
    """

    def __init__(
        self,
        trainer_cls: Any,
        model: Any,
        args: Any,
        tokenizer: Any,
        *,
        engine_samples: bool = False,
        peft_config: Any = None,
        name: str = "model",
        seed: int = 0,
    ) -> None:
        self._rows: list[TrainingRow] = []
        self._engine_samples = engine_samples
        self._size = args.generation_batch_size  # answers of all processes together
        self._name, self._seed = name, seed
        self.updates = 0
        """Updates done."""
        self.threads: int | None = None
        """Threads of an update on a CPU; None for as many as torch takes."""
        with trl_internals.quiet(), own_randomness(seed):
            self.trainer = trl_internals.with_equal_groups(trainer_cls)(
                model=model,
                args=args,
                processing_class=tokenizer,
                peft_config=peft_config,
                # Never read: the answers that `rollout_func` returns bring their own prompts.
                train_dataset=require("datasets").Dataset.from_dict(
                    {"prompt": [""] * (self._size // args.num_generations)}
                ),
                reward_funcs=_rewards,
                rollout_func=self._rollout,
            )
            if engine_samples:
                trl_internals.correct_for_engine(self.trainer)
            self.trainer.remove_callback(transformers.PrinterCallback)
            self._check_losses()
            self._training = greenlet.greenlet(lambda: self.trainer.train())
            self._enter()

    @property
    def model(self) -> Any:
        """The trained model, without what the trainer wrapped around it for several processes."""
        return self.trainer.accelerator.unwrap_model(self.trainer.model)

    def update(self, rows: Sequence[TrainingRow]) -> dict[str, float]:
        """Learn from the answers of one step, of all processes together; returns the trainer's metrics.

        Raises:
            ValueError: Not the number of answers that the trainer was made for.
            UpdateError: The trainer failed, or has done all its updates.
            AlgorithmError: An algorithm's own advantages or loss are none.
        """
        if len(rows) != self._size:
            raise ValueError(
                f"Expect {self._size} answers in an update, the same number every time, actually: {len(rows)}"
            )
        if self._training.dead:
            raise UpdateError(
                f"Expect at most the number of updates that the {self._name} was made for "
                f"({self.updates} are done), and none after a failed one."
            )
        size = len(rows) // self.trainer.args.world_size
        first = size * self.trainer.args.process_index
        rows = _evened(rows, self.trainer.args.num_generations)
        self._rows = rows[first : first + size]
        before = len(self.trainer.state.log_history)
        with (
            trl_internals.quiet(),
            trl_internals.answers_only(),
            trl_internals.groups_together(self.trainer),
            shared_prompts(self.model),
            thread_number(self.threads),
            own_randomness(self._seed + self.updates + 1),
        ):
            self._enter()
        self._check_weights()
        self.updates += 1
        return _metrics([e for e in self.trainer.state.log_history[before:] if "loss" in e])

    def _check_losses(self) -> None:
        """Let the trainer raise at a loss that is not one finite number, and at a gradient that is not finite.

        By itself it would hide the first from its log, and spoil all weights with both. With float16 it skips steps
        whose gradient has overflowed, so that gradients are left to it.
        """
        compute, algorithm = self.trainer.compute_loss, type(self.trainer).__name__

        def compute_loss(*arguments: Any, **named: Any) -> Any:
            result = compute(*arguments, **named)
            loss = result[0] if isinstance(result, tuple) else result
            if loss.numel() != 1 or not torch.isfinite(loss).all():
                found = loss.item() if loss.numel() == 1 else f"a tensor of {tuple(loss.shape)}"
                raise self._failed(f"the loss of {algorithm} to be one finite number", found)
            return result

        def check_gradients(args: Any, state: Any, control: Any, **named: Any) -> None:
            for name, parameter in named["model"].named_parameters():
                gradient = None if args.fp16 else parameter.grad
                if gradient is not None and not torch.isfinite(gradient).all():
                    raise self._failed(f"{algorithm} to have a finite gradient", f"not of {name}")

        self.trainer.compute_loss = compute_loss
        watcher = transformers.TrainerCallback()
        watcher.on_pre_optimizer_step = check_gradients
        self.trainer.add_callback(watcher)

    def _check_weights(self) -> None:
        """Refuse weights that the optimizer has spoiled, though loss and gradient were numbers."""
        for name, weights in self.model.named_parameters():
            if weights.requires_grad and not torch.isfinite(weights).all():
                raise self._failed(
                    "finite weights", f"not in {name}. Look at learning_rate and adam_epsilon"
                )

    def _failed(self, wanted: str, found: Any) -> UpdateError:
        step = f"step {self.updates + 1} of the {self._name}"
        return UpdateError(f"Expect {wanted}, actually in {step}: {found}.")

    def _enter(self) -> None:
        """Let the trainer run until it wants answers, or has done all its updates."""
        self._training.parent = (
            greenlet.getcurrent()
        )  # where it goes on when the trainer waits or fails
        try:
            self._training.switch()
        except UpdateError:
            raise
        except AlgorithmError as error:
            raise AlgorithmError(
                f"{error} It was in step {self.updates + 1} of the {self._name}."
            ) from error
        except Exception as error:
            raise UpdateError(
                f"The update of the {self._name} failed: {type(error).__name__}: {error}"
            ) from error

    def _rollout(self, prompts: list[Any], trainer: Any) -> dict[str, Any]:
        self._training.parent.switch()  # here the trainer waits for the next update
        rows, self._rows = self._rows, []
        trainer.model.train()  # who sampled answers meanwhile had switched it
        given = rollout_of(rows, trainer.eos_token_ids, trainer.eos_token_ids[0])
        if self._engine_samples and given["logprobs"] is None:
            raise ValueError(
                "Expect answers with the probabilities that they were drawn with, since they were not drawn by the "
                "trained model as it is; actually: some have none. Use the backend 'transformers' or 'vllm'."
            )
        return {**given, "game_reward": [row.reward for row in rows]}


def _evened(rows: Sequence[TrainingRow], group: int) -> list[TrainingRow]:
    """Give the answers of a group one reward where all differ by rounding only, before float32 rounds them."""
    found: list[TrainingRow] = []
    for start in range(0, len(rows), group):
        members = rows[start : start + group]
        scored = [row.reward for row in members if row.reward is not None]
        if scored and 0 < max(scored) - min(scored) <= _ROUNDING:
            one = scored[0]
            members = [row if row.reward is None else replace(row, reward=one) for row in members]
        found += members
    return found


def _rewards(game_reward: Sequence[float | None], **_: Any) -> list[float | None]:
    # The referee has judged already. The trainer leaves out None.
    return list(game_reward)


def rollout_of(
    rows: Sequence[TrainingRow], end_ids: Collection[int], end_id: int
) -> dict[str, Any]:
    """Make the result of a `rollout_func` from these rows.

    To TRL an answer without an end token was cut off. One that a stop text ended gets `end_id`, which the model
    did not draw: with 0 in `env_mask` TRL leaves it out of lengths, probabilities and the loss.
    """
    added = [int(not row.truncated and row.completion_ids[-1] not in end_ids) for row in rows]
    pairs = list(zip(rows, added, strict=True))
    logprobs = [[*(row.logprobs or ()), *[0.0] * more] for row, more in pairs]
    found: dict[str, Any] = {
        "prompt_ids": [list(row.prompt_ids) for row in rows],
        "completion_ids": [[*row.completion_ids, *[end_id] * more] for row, more in pairs],
        "logprobs": logprobs if all(row.logprobs is not None for row in rows) else None,
    }
    if any(added):
        found["env_mask"] = [[1] * len(row.completion_ids) + [0] * more for row, more in pairs]
    return found


def _metrics(logs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Mean of each metric over the optimizer steps of an update."""
    metrics = {}
    for name in sorted({name for entry in logs for name in entry} - _NOT_METRICS):
        values = [entry[name] for entry in logs if isinstance(entry.get(name), (int, float))]
        if values and not name.startswith(_REWARDS):
            shown = "selected_reward_std" if name == "reward_std" else name
            metrics[shown] = float(sum(values) / len(values))
    if logs:
        metrics["learning_rate"] = float(logs[-1]["learning_rate"])
    return metrics


@contextmanager
def own_randomness(seed: int) -> Iterator[None]:
    """Seed the global generators of Python, numpy and torch inside, and restore them afterwards.

    TRL, PEFT and torch draw from them. A resumed run need not save their state.
    """
    python, arrays = random.getstate(), np.random.get_state()
    with torch.random.fork_rng():
        random.seed(seed)
        np.random.seed(seed % 2**32)
        torch.manual_seed(seed % 2**63)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(arrays)
