"""Drives a stock TRL trainer one update at a time.

A trainer has one long `train()`, which asks for answers when it wants them: a GRPOTrainer its `rollout_func`,
others their data. Here `train()` runs in a greenlet, a function that can be left in the middle and entered
again: where it asks, it is left, and `update` enters it with the answers of the next step. So the trainer keeps
its optimizer, schedule, callbacks and wrapped model between updates, as it does when it works alone, and there
is no thread: nothing to lock, an exception in the trainer is an exception of `update`, and Ctrl-C reaches
whatever is running.
"""

from __future__ import annotations

import logging
import os
import random
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

import numpy as np

from codea1_env.agents.llm.computing import thread_number
from codea1_env.agents.llm.fast_on_cpu import shared_prompts
from codea1_env.agents.llm.own_trainer import LossError, check_losses
from codea1_env.agents.policy import AlgorithmError
from codea1_env.support.extras import require

_NOT_METRICS = {"epoch", "step", "step_time", "total_flos", "learning_rate"}
"""Entries of a trainer's log that differ between equal runs, or say nothing. (The learning rate is taken as it
was last; all others are averaged over the optimizer steps of an update.)"""
_IGNORED = -100
"""Label of a token that is not learned."""


class UpdateError(RuntimeError):
    """An update of a language model failed. Its cause is the trainer's own error."""


@dataclass(frozen=True)
class TrainingRow:
    """One answer and what it earned."""

    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    logprobs: tuple[float, ...] | None
    """Of the engine that sampled the answer; None if it does not tell them."""
    reward: float | None
    """None: it could not be scored, and must not count in its group; or it is to be imitated."""
    truncated: bool = False
    """Whether it was cut off at its greatest length."""


class DriveOptions(TypedDict, total=False):
    """What any `Drive` may be made with; the defaults are there."""

    peft_config: Any
    name: str
    seed: int


class Drive:
    """A trainer that waits between updates.

    Args:
        trainer_cls: A trainer of TRL, whose `train()` must come to call `_wait` for the answers of each update.
        model: What is trained, or the base of the adapter that is.
        args: The trainer's configuration.
        tokenizer: Of the model.
        size: Answers of an update, of all processes together.
        more: What else the trainer is made with.
        peft_config: Makes the trainer train an adapter; None to train the model itself.
        name: For messages.
        seed: Decides what the trainer draws.
    """

    def __init__(
        self,
        trainer_cls: Any,
        model: Any,
        args: Any,
        tokenizer: Any,
        size: int,
        more: Mapping[str, Any],
        *,
        peft_config: Any = None,
        name: str = "model",
        seed: int = 0,
    ) -> None:
        greenlet = require("greenlet").greenlet
        from transformers import PrinterCallback

        self._rows: list[TrainingRow] = []
        self._size = size
        self._name = name
        self._seed = seed
        self.updates = 0
        """Updates done."""
        self.threads: int | None = None
        """Threads of an update on a CPU; None for as many as torch takes."""
        with _quiet(), own_randomness(seed):
            self.trainer = trainer_cls(
                model=model, args=args, processing_class=tokenizer, peft_config=peft_config, **more
            )
            self._prepare()
            self.trainer.remove_callback(PrinterCallback)
            check_losses(self.trainer, lambda: f"step {self.updates + 1} of the {name}")
            self._training = greenlet(lambda: self.trainer.train())
            self._enter()

    @property
    def model(self) -> Any:
        """The trained model, without what the trainer wrapped around it for several processes."""
        return self.trainer.accelerator.unwrap_model(self.trainer.model)

    def update(self, rows: Sequence[TrainingRow]) -> dict[str, float]:
        """Learn from the answers of one step, of all processes together.

        Returns:
            The trainer's metrics.

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
        self._rows = list(rows[first : first + size])
        before = len(self.trainer.state.log_history)
        with (
            _quiet(),
            _scoring_answers_only(),
            shared_prompts(self.model),
            thread_number(self.threads),
            own_randomness(self._seed + self.updates + 1),
        ):
            self._enter()
        self._check_weights()
        self.updates += 1
        logs = self.trainer.state.log_history[before:]
        return _metrics([entry for entry in logs if "loss" in entry])

    def _check_weights(self) -> None:
        """Refuse weights that a step of the optimizer has spoiled, though its loss and gradient were numbers.

        Raises:
            UpdateError: One is no finite number.
        """
        import torch

        for name, weights in self.model.named_parameters():
            if weights.requires_grad and not torch.isfinite(weights).all():
                raise UpdateError(
                    f"Expect finite weights after step {self.updates + 1} of the {self._name}, actually: {name} has others. "
                    "Look at its learning rate and the fields of its optimizer, such as adam_epsilon and weight_decay."
                )

    def _prepare(self) -> None:
        """Change the trainer before it starts."""

    def _enter(self) -> None:
        """Let the trainer run until it wants answers, or has done all its updates."""
        from greenlet import getcurrent

        self._training.parent = getcurrent()  # where it goes on when the trainer waits or fails
        try:
            self._training.switch()
        except AlgorithmError as error:
            raise AlgorithmError(
                f"{error} It was in step {self.updates + 1} of the {self._name}."
            ) from error
        except LossError as error:
            raise UpdateError(str(error)) from error
        except Exception as error:
            raise UpdateError(
                f"The update of the {self._name} failed: {type(error).__name__}: {error}"
            ) from error

    def _wait(self) -> list[TrainingRow]:
        """Leave the trainer until the next update; returns this process's share of its answers."""
        self._training.parent.switch()
        rows, self._rows = self._rows, []
        return rows


class TrainerDrive(Drive):
    """A GRPOTrainer that waits between updates.

    Args:
        trainer_cls: `trl.GRPOTrainer`, or a class that is made and behaves like it.
        model: What is trained, or the base of the adapter that is.
        args: The trainer's configuration.
        tokenizer: Of the model. Has a padding token.
        engine_samples: Answers come from another engine than the trained model, whose probabilities differ a
            little: correct for it by importance sampling.
        options: See `Drive`.
    """

    def __init__(
        self,
        trainer_cls: Any,
        model: Any,
        args: Any,
        tokenizer: Any,
        *,
        engine_samples: bool = False,
        **options: Unpack[DriveOptions],
    ) -> None:
        from datasets import Dataset

        self._engine_samples = engine_samples
        # The prompts are never read: the answers that `rollout_func` returns bring their own.
        prompts = [""] * (args.generation_batch_size // args.num_generations)
        more = {
            "train_dataset": Dataset.from_dict({"prompt": prompts}),
            "reward_funcs": _rewards,
            "rollout_func": self._wait_for_rows,
        }
        size = args.generation_batch_size
        super().__init__(trainer_cls, model, args, tokenizer, size, more, **options)

    def _prepare(self) -> None:
        """Switch the trainer's importance sampling on, which it has for its own vLLM."""
        if self._engine_samples:
            self.trainer.use_vllm = True
            self.trainer.vllm_generation = _Engine()
            self.trainer._last_loaded_step = -1

    def _wait_for_rows(self, prompts: list[Any], trainer: Any) -> dict[str, Any]:
        """Be the trainer's `rollout_func`."""
        rows = self._wait()
        trainer.model.train()  # who sampled answers meanwhile had switched it
        given = rollout_of(rows, trainer.eos_token_ids, trainer.eos_token_ids[0])
        if self._engine_samples and given["logprobs"] is None:
            raise ValueError(
                "Expect answers with the probabilities that they were drawn with, since they were not drawn by the "
                "trained model as it is; actually: some have none. Use the backend 'transformers' or 'vllm'."
            )
        return {**given, "game_reward": [row.reward for row in rows]}


class _Engine:
    """Stands where a trainer has its vLLM: its weights are brought up to date after each update."""

    def sync_weights(self) -> None:
        """Do nothing."""


def _rewards(game_reward: Sequence[float | None], **_: Any) -> list[float | None]:
    """Be the trainer's reward function: the referee has judged already. The trainer leaves out None."""
    return list(game_reward)


def rollout_of(
    rows: Sequence[TrainingRow], end_ids: Collection[int], end_id: int
) -> dict[str, Any]:
    """Return what a `rollout_func` returns for these rows.

    To TRL an answer that does not end with an end token was cut off. One that a stop text ended gets such a token
    here, which the model did not draw: `env_mask` has 0 for it, by which TRL leaves it out of lengths, probabilities
    and the loss.

    Args:
        rows: Answers.
        end_ids: Tokens that end an answer for the trainer.
        end_id: The one that is appended.
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


class SFTDrive(Drive):
    """An SFTTrainer that waits between updates.

    Loss and padding are the trainer's own. Its data loader is not: one that is asked for the last batch of an
    update looks ahead to the next, which does not exist yet.

    Args:
        model: What is trained, or the base of the adapter that is.
        args: The trainer's configuration.
        tokenizer: Of the model.
        size: Answers of an update, of all processes together.
        options: See `Drive`.
    """

    def __init__(
        self, model: Any, args: Any, tokenizer: Any, size: int, **options: Unpack[DriveOptions]
    ) -> None:
        from datasets import Dataset
        from trl import SFTTrainer

        # Never read, but looked at.
        rows = Dataset.from_dict({"input_ids": [[0]], "labels": [[0]]})
        more = {"train_dataset": rows}
        super().__init__(SFTTrainer, model, args, tokenizer, size, more, **options)

    def update(self, rows: Sequence[TrainingRow]) -> dict[str, float]:
        """Imitate the answers of one step. See `Drive.update`."""
        # Where a GRPOTrainer counts its tokens, and checkpoints look for them.
        state = self.trainer.state
        self.trainer._total_train_tokens = state.num_input_tokens_seen
        metrics = super().update(rows)
        state.num_input_tokens_seen = self.trainer._total_train_tokens
        return metrics

    def _prepare(self) -> None:
        """Take the place of the trainer's data loader."""
        self.trainer.get_train_dataloader = self._batches
        # That of metrics cuts what it gathers to the size that accelerate's last data loader had: another player's. torch fails
        # at that, and looks for the callers of a function whose stack greenlets have moved: the process may end by it.
        accelerator = self.trainer.accelerator
        accelerator.gather_for_metrics = accelerator.gather

    def _batches(self) -> Iterator[Any]:
        """Yield this process's batches, update after update."""
        size = self.trainer.args.per_device_train_batch_size
        while True:
            rows = self._wait()
            for start in range(0, len(rows), size):
                yield self.trainer.data_collator(list(map(_example, rows[start : start + size])))


def _example(row: TrainingRow) -> dict[str, list[int]]:
    return {
        "input_ids": [*row.prompt_ids, *row.completion_ids],
        "labels": [_IGNORED] * len(row.prompt_ids) + list(row.completion_ids),
    }


def _metrics(logs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Mean of each metric over the optimizer steps of an update."""
    metrics = {}
    for name in sorted({name for entry in logs for name in entry} - _NOT_METRICS):
        values = [entry[name] for entry in logs if isinstance(entry.get(name), (int, float))]
        if values:
            metrics[name] = float(sum(values) / len(values))
    if logs:
        metrics["learning_rate"] = float(logs[-1]["learning_rate"])
    return metrics


@contextmanager
def _scoring_answers_only() -> Iterator[None]:
    """Have TRL compute probabilities of answers alone on processors, too, as it does on GPUs.

    There it computes those of prompts as well and drops them, for the sake of accelerators that compile for
    each shape. With a large vocabulary and prompts longer than answers that is more than half of an update.
    """
    from trl.trainer import utils

    original = getattr(utils, "_use_triton", None)
    if original is None:  # another version, which may do so by itself
        yield
        return
    utils._use_triton = lambda device: device.type == "cpu" or original(device)
    try:
        yield
    finally:
        utils._use_triton = original


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep from the user what the trainer says about things that are meant to be as they are."""

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


@contextmanager
def own_randomness(seed: int) -> Iterator[None]:
    """Seed the global generators of Python, numpy and torch inside, and restore them afterwards.

    TRL, PEFT and torch draw from them. What they draw follows from the seed alone, whatever the program does
    elsewhere, and a resumed run need not save their state.

    Args:
        seed: Any integer that is not negative.
    """
    import torch

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
