"""A language model that learns to play: it answers through an engine, and a TRL trainer updates it."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from codea1_env.agents.llm.completions import Backend, Completion, Message, SamplingConfig
from codea1_env.agents.llm.computing import Computing
from codea1_env.agents.llm.grpo_settings import UpdateShape, trainer_config
from codea1_env.agents.llm.rows import Memory
from codea1_env.agents.llm.trained_player import TrainedPlayer
from codea1_env.agents.llm.trainer_drive import TrainerDrive
from codea1_env.agents.protocols import Experience
from codea1_env.spaces import Observation


class GRPOLearner(TrainedPlayer):
    """A player whose model is trained by TRL's GRPOTrainer, one update per step of the game.

    Trained parameters and the optimizer's state are float32; computing is in bfloat16 unless `fields` say
    otherwise (`bf16 = False`, for a model that was loaded in float32).

    Args:
        role: Which player it is; "model" for one that plays both.
        model: A causal language model. With an adapter its own weights stay as they are, and may be shared
            with another player (`share_weights`); without, they are trained and must be float32.
        tokenizer: The model's, with a chat template.
        shape: What one update learns from.
        sampling: How answers are drawn: from all tokens. Its temperature is also that of the probabilities learned
            from.
        fields: Field of `trl.GRPOConfig` -> value; defaults are TRL's.
        peft_config: The adapter to train, such as `peft.LoraConfig(r=16)`; None to train all weights.
        engine: Samples the answers. None generates with the trained model itself. After each update the
            engine gets the new weights as an adapter with the name of the role.
        trainer_cls: The trainer: `trl.GRPOTrainer`, or a subclass of it.
        config_cls: The trainer's configuration: `trl.GRPOConfig`, or a subclass of it.
        seed: Decides what is drawn, by the player and by the trainer.
        write: The wording of prompts; None for the default.
        batch_size: Answers that the trained model generates at the same time.
        tester_sampling: How suites are drawn by a model that plays both roles, which then draws its programs
            as `sampling` says. None for a player of one role.
        computing: Number formats and threads of this machine; None for those of `fields` and of torch.
        taught: Whether answers come from elsewhere (`remember`), perhaps of older weights: their probabilities are
            corrected for by importance sampling.
    """

    def __init__(
        self,
        role: Literal["coder", "tester", "model"],
        model: Any,
        tokenizer: Any,
        *,
        shape: UpdateShape,
        sampling: SamplingConfig,
        fields: Mapping[str, Any] | None = None,
        peft_config: Any = None,
        engine: Backend | None = None,
        trainer_cls: Any = None,
        config_cls: Any = None,
        seed: int = 0,
        write: Callable[[Observation], list[Message]] | None = None,
        batch_size: int = 64,
        tester_sampling: SamplingConfig | None = None,
        computing: Computing | None = None,
        taught: bool = False,
    ) -> None:
        from trl import GRPOConfig, GRPOTrainer

        samplings = [sampling] if tester_sampling is None else [sampling, tester_sampling]
        for each in samplings:
            each.check_for_learning()
        if len({each.temperature for each in samplings}) > 1:
            raise ValueError(
                "Expect one temperature for both roles of a model (its trainer has one), actually: "
                f"{sampling.temperature!r} and {samplings[1].temperature!r}"
            )
        self.shape = shape
        self._memory = Memory()
        # Then the probabilities that answers were drawn with are not quite those that are learned from.
        mixed = computing is not None and computing.dtype != computing.generation_dtype

        def make_drive(folder: str) -> TrainerDrive:
            args = trainer_config(
                fields or {},
                shape,
                config_cls=config_cls or GRPOConfig,
                temperature=sampling.temperature,
                max_completion_length=max(each.max_completion_length for each in samplings),
                seed=seed,
                folder=folder,
            )
            return TrainerDrive(
                trainer_cls or GRPOTrainer,
                model,
                args,
                tokenizer,
                peft_config=peft_config,
                engine_samples=engine is not None or mixed or taught,
                name=role,
                seed=seed,
            )

        super().__init__(
            role,
            model,
            tokenizer,
            make_drive,
            samplings=samplings,
            peft_config=peft_config,
            engine=engine,
            seed=seed,
            write=write,
            batch_size=batch_size,
            computing=computing,
        )

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Answer each observation, and remember the tokens to learn from."""
        answers = super().act(observations)
        self.remember(observations, self.agent.completions)
        return answers

    def remember(
        self, observations: Sequence[Observation], completions: Sequence[Completion]
    ) -> None:
        """Take answers for this player's own, to learn from next."""
        self._memory.add(observations, completions)

    def learn(self, experience: Sequence[Experience]) -> Mapping[str, float]:
        """Update the model once.

        Raises:
            UpdateError: The trainer failed.
            ValueError: The experience is not of this player, or of another size than it was made for.
        """
        rows = self._memory.rows(experience, self.shape.group_size)
        metrics = self.drive.update(rows)
        self._memory.clear()
        self.update_engine()
        return metrics


def share_weights(model: Any) -> Any:
    """Copy a model without its weights: both have the same tensors, and each can get its own adapter.

    Modes, hooks and adapters of the two do not meet, as they would if two adapters lived in one model.
    """
    tensors = itertools.chain(model.parameters(), model.buffers())
    return copy.deepcopy(model, {id(tensor): tensor for tensor in tensors})
