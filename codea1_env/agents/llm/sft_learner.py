"""A language model that learns by imitation: TRL's SFTTrainer shows it answers that are not its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from codea1_env.agents.llm import prompts
from codea1_env.agents.llm.chat import encode_chat
from codea1_env.agents.llm.completions import Backend, SamplingConfig
from codea1_env.agents.llm.computing import Computing
from codea1_env.agents.llm.grpo_settings import UpdateShape
from codea1_env.agents.llm.rows import TrainingRow
from codea1_env.agents.llm.sft_settings import imitation_config
from codea1_env.agents.llm.task_text import in_block
from codea1_env.agents.llm.trained_player import TrainedPlayer
from codea1_env.agents.llm.trainer_drive import Drive
from codea1_env.agents.protocols import Experience
from codea1_env.agents.scripted import TEST_SEPARATOR

_IGNORED = -100
"""Label of a token that is not learned."""


class SFTDrive(Drive):
    """An SFTTrainer that waits between updates.

    Loss and padding are the trainer's own. Its data loader is not: one that is asked for the last batch of an
    update looks ahead to the next, which does not exist yet.

    Args:
        model: What is trained, or the base of the adapter that is.
        args: The trainer's configuration.
        tokenizer: Of the model.
        size: Answers of an update, of all processes together.
        peft_config: Makes the trainer train an adapter; None to train the model itself.
        name: For messages.
        seed: Decides what the trainer draws.
    """

    def __init__(
        self,
        model: Any,
        args: Any,
        tokenizer: Any,
        size: int,
        *,
        peft_config: Any = None,
        name: str = "model",
        seed: int = 0,
    ) -> None:
        from datasets import Dataset
        from trl import SFTTrainer

        def make() -> Any:
            trainer = SFTTrainer(
                model=model,
                args=args,
                # Never read, but looked at.
                train_dataset=Dataset.from_dict({"input_ids": [[0]], "labels": [[0]]}),
                processing_class=tokenizer,
                peft_config=peft_config,
            )
            trainer.get_train_dataloader = self._batches
            return trainer

        super().__init__(make, size, name=name, seed=seed)

    def update(self, rows: Sequence[TrainingRow]) -> dict[str, float]:
        """Imitate the answers of one step. See `Drive.update`."""
        # Where a GRPOTrainer counts its tokens, and checkpoints look for them.
        state = self.trainer.state
        self.trainer._total_train_tokens = state.num_input_tokens_seen
        metrics = super().update(rows)
        state.num_input_tokens_seen = self.trainer._total_train_tokens
        return metrics

    def _batches(self) -> Iterator[Any]:
        """Be the trainer's data loader: this process's batches, update after update."""
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


class SFTLearner(TrainedPlayer):
    """A tester whose model is trained by TRL's SFTTrainer to write the tests that it is shown.

    An answer to imitate has the form of the worked example in the prompts: one block of code, then the end of the
    turn. Prompts have the very tokens that the player answers to.

    Args:
        model: A causal language model; see `TrainedPlayer`.
        tokenizer: The model's, with a chat template.
        shape: What one update learns from.
        sampling: How answers are drawn. An answer to imitate is no longer than one that is drawn.
        fields: Field of `trl.SFTConfig` -> value; defaults are TRL's.
        peft_config: The adapter to train; None to train all weights.
        engine: Samples the answers; None generates with the trained model itself.
        seed: Decides what is drawn, by the player and by the trainer.
        write: The wording of prompts; None for the default.
        batch_size: Answers that the trained model generates at the same time.
        computing: Number formats and threads of this machine; None for those of `fields` and of torch.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        shape: UpdateShape,
        sampling: SamplingConfig,
        fields: Mapping[str, Any] | None = None,
        peft_config: Any = None,
        engine: Backend | None = None,
        seed: int = 0,
        write: prompts.PromptTemplate | None = None,
        batch_size: int = 64,
        computing: Computing | None = None,
    ) -> None:
        def make_drive(folder: str) -> SFTDrive:
            args = imitation_config(fields or {}, shape, seed=seed, folder=folder)
            return SFTDrive(
                model,
                args,
                tokenizer,
                shape.rows,
                peft_config=peft_config,
                name="tester",
                seed=seed,
            )

        super().__init__(
            "tester",
            model,
            tokenizer,
            make_drive,
            samplings=[sampling],
            peft_config=peft_config,
            engine=engine,
            seed=seed,
            write=write,
            batch_size=batch_size,
            computing=computing,
        )

    def imitate(self, demonstrations: Sequence[Experience]) -> Mapping[str, float]:
        """Update the model once, so that it gives these answers more often.

        A demonstration is tests with an empty line between them. Those that would make the answer longer than
        the sampling settings allow are left out (metric `tests_left_out`: their share).

        Raises:
            UpdateError: The trainer failed.
            ValueError: Not as many demonstrations as the learner was made for.
        """
        asked: list[tuple[int, ...]] = []
        for observation, same in itertools.groupby(demonstrations, lambda each: each.observation):
            prompt = encode_chat(self.tokenizer, self.agent.chat(observation))
            asked += [prompt for _ in same]
        suites = [list(filter(None, each.action.split(TEST_SEPARATOR))) for each in demonstrations]
        answers = [self._answer(tests) for tests in suites]
        metrics = self.drive.update(
            [
                TrainingRow(prompt, ids, None, None)
                for prompt, (ids, _) in zip(asked, answers, strict=True)
            ]
        )
        self.update_engine()
        shown = sum(map(len, suites))
        left_out = shown - sum(kept for _, kept in answers)
        return metrics | {"tests_left_out": left_out / max(shown, 1)}

    def learn(self, experience: Sequence[Experience]) -> Mapping[str, float]:
        """Refuse: this player learns from demonstrations.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(
            "Expect a player that imitates to be taught with imitate, not by rewards. Make a GRPOLearner for these."
        )

    def _answer(self, tests: Sequence[str]) -> tuple[tuple[int, ...], int]:
        """Tokens of an answer with the tests that it has room for, and their number."""
        kept: list[str] = []
        answer: tuple[int, ...] = ()
        for test in tests:
            text = in_block("\n".join([*kept, test]))
            ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
            if len(ids) < self.agent.sampling.max_completion_length:
                kept.append(test)
                answer = (*ids, self.tokenizer.eos_token_id)
        return answer, len(kept)
