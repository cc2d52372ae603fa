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
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from codea1_env.agents.llm.computing import thread_number
from codea1_env.agents.llm.loss_checks import LossError, check_losses
from codea1_env.agents.llm.randomness import own_randomness
from codea1_env.agents.llm.rows import TrainingRow, rollout_of
from codea1_env.agents.llm.shared_prompts import shared_prompts
from codea1_env.agents.policy import AlgorithmError
from codea1_env.support.extras import require

_NOT_METRICS = {"epoch", "step", "step_time", "total_flos", "learning_rate"}
"""Entries of a trainer's log that differ between equal runs, or say nothing. (The learning rate is taken as it
was last; all others are averaged over the optimizer steps of an update.)"""


class UpdateError(RuntimeError):
    """An update of a language model failed. Its cause is the trainer's own error."""


class Drive:
    """A trainer that waits between updates.

    Args:
        make: Makes the trainer, whose `train()` must call `_wait` for the answers of each update.
        size: Answers of an update, of all processes together.
        name: For messages.
        seed: Decides what the trainer draws.
    """

    def __init__(self, make: Callable[[], Any], size: int, *, name: str, seed: int) -> None:
        greenlet = require("greenlet").greenlet
        from transformers import PrinterCallback

        self._rows: list[TrainingRow] = []
        self._size = size
        self._name = name
        self._seed = seed
        self._updates = 0
        self.threads: int | None = None
        """Threads of an update on a CPU; None for as many as torch takes."""
        with _quiet(), own_randomness(seed):
            self.trainer = make()
            self.trainer.remove_callback(PrinterCallback)
            check_losses(self.trainer, lambda: f"step {self._updates + 1} of the {name}")
            self._training = greenlet(lambda: self.trainer.train())
            self._enter()

    @property
    def model(self) -> Any:
        """The trained model, without what the trainer wrapped around it for several processes."""
        return self.trainer.accelerator.unwrap_model(self.trainer.model)

    @property
    def updates(self) -> int:
        """Updates done."""
        return self._updates

    @updates.setter
    def updates(self, number: int) -> None:
        self._updates = number

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
                f"({self._updates} are done), and none after a failed one."
            )
        size = len(rows) // self.trainer.args.world_size
        first = size * self.trainer.args.process_index
        self._rows = list(rows[first : first + size])
        before = len(self.trainer.state.log_history)
        seed = self._seed + self._updates + 1
        with ExitStack() as stack:
            stack.enter_context(_quiet())
            stack.enter_context(_scoring_answers_only())
            stack.enter_context(shared_prompts(self.model))
            stack.enter_context(thread_number(self.threads))
            stack.enter_context(own_randomness(seed))
            self._enter()
        self._updates += 1
        logs = self.trainer.state.log_history[before:]
        return _metrics([entry for entry in logs if "loss" in entry])

    def _enter(self) -> None:
        """Let the trainer run until it wants answers, or has done all its updates."""
        from greenlet import getcurrent

        self._training.parent = getcurrent()  # where it goes on when the trainer waits or fails
        try:
            self._training.switch()
        except AlgorithmError as error:
            raise AlgorithmError(
                f"{error} It was in step {self._updates + 1} of the {self._name}."
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
        peft_config: Makes the trainer train an adapter; None to train the model itself.
        engine_samples: Answers come from another engine than the trained model, whose probabilities differ a
            little: correct for it by importance sampling.
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
        peft_config: Any = None,
        engine_samples: bool = False,
        name: str = "model",
        seed: int = 0,
    ) -> None:
        from datasets import Dataset

        def make() -> Any:
            # Its prompts are never read: the answers that `rollout_func` returns bring their own.
            prompts = [""] * (args.generation_batch_size // args.num_generations)
            trainer = trainer_cls(
                model=model,
                reward_funcs=_rewards,
                args=args,
                train_dataset=Dataset.from_dict({"prompt": prompts}),
                processing_class=tokenizer,
                peft_config=peft_config,
                rollout_func=self._wait_for_rows,
            )
            if engine_samples:
                _correct_for_engine(trainer)
            return trainer

        self._engine_samples = engine_samples

        super().__init__(make, args.generation_batch_size, name=name, seed=seed)

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


def _rewards(game_reward: Sequence[float | None], **_: Any) -> list[float | None]:
    """Be the trainer's reward function: the referee has judged already. The trainer leaves out None."""
    return list(game_reward)


class _Engine:
    """Stands where a trainer has its vLLM: its weights are brought up to date after each update."""

    def sync_weights(self) -> None:
        """Do nothing."""


def _correct_for_engine(trainer: Any) -> None:
    """Switch the trainer's importance sampling on, which it has for its own vLLM."""
    trainer.use_vllm = True
    trainer.vllm_generation = _Engine()
    trainer._last_loaded_step = -1


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

    class Expected(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            return "All reward functions returned None" not in record.getMessage()

    expected, logger = Expected(), logging.getLogger("trl.trainer.grpo_trainer")
    silence = os.environ.get("TRL_EXPERIMENTAL_SILENCE")
    logger.addFilter(expected)
    os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"  # rollout_func is experimental
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*reductions.*rank.*")
            yield
    finally:
        logger.removeFilter(expected)
        if silence is None:
            del os.environ["TRL_EXPERIMENTAL_SILENCE"]
        else:
            os.environ["TRL_EXPERIMENTAL_SILENCE"] = silence
