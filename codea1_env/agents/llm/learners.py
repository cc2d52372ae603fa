"""Language models that learn from rewards: they answer through an engine, and a TRL trainer updates them."""

from __future__ import annotations

import copy
import itertools
import tempfile
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from codea1_env.agents.llm import prompts, training_state
from codea1_env.agents.llm.agent import LanguagePlayer, LLMAgent
from codea1_env.agents.llm.completions import Backend, Completion, shared_backend
from codea1_env.agents.llm.computing import Computing
from codea1_env.agents.llm.trainer_drive import TrainerDrive, TrainingRow
from codea1_env.agents.llm.trainer_settings import TrainerSetup
from codea1_env.agents.llm.transformers_backend import TransformersBackend
from codea1_env.rollout import Experience
from codea1_env.spaces import Observation
from codea1_env.support.extras import Lazy

torch: Any = Lazy("torch")
trl: Any = Lazy("trl")
ADAPTER = "default"
"""What TRL calls the adapter that it makes and trains."""


class GRPOLearner(LanguagePlayer):
    """A player that answers through an engine, and whose model TRL's GRPOTrainer updates once per step of the game.

    Trained parameters and the optimizer's state are float32; computing is in bfloat16 unless the setup's fields say
    otherwise (`bf16 = False`, for a model that was loaded in float32).

    Args:
        role: Which player it is; "model" for one that plays both.
        model: A causal language model. Without an adapter its weights are trained and must be float32; with one they may
            be shared with another player (`share_weights`).
        tokenizer: The model's, with a chat template.
        setup: How the trainer is made, and how answers are drawn.
        peft_config: The adapter to train, such as `peft.LoraConfig(r=16)`; None to train all weights.
        engine: Samples the answers, and gets the new weights after each update. None generates with the trained model.
        seed: Decides what is drawn, by the player and by the trainer.
        write: The wording of prompts.
        batch_size: Answers that the trained model generates at the same time.
        computing: Number format and threads of what the trained model generates; None for its own, and torch's number.
    """

    def __init__(
        self,
        role: Literal["coder", "tester", "model"],
        model: Any,
        tokenizer: Any,
        setup: TrainerSetup,
        *,
        peft_config: Any = None,
        engine: Backend | None = None,
        seed: int = 0,
        write: prompts.PromptTemplate = prompts.DEFAULT,
        batch_size: int = 64,
        computing: Computing | None = None,
    ) -> None:
        if peft_config is None and any(p.dtype != torch.float32 for p in model.parameters()):
            raise ValueError(
                "Expect a model in float32 if all its weights are trained (bfloat16 would round small "
                f"updates away), actually: {model.dtype}. Load it so, or train an adapter."
            )
        self.shape = setup.shape
        self.tokenizer = tokenizer
        self._memory = Memory()
        self.base = training_state.fingerprint(model)
        """Digest of the model before it learns."""
        self._folder = tempfile.TemporaryDirectory(prefix="codea1-trainer-")
        self._engine = engine
        self.drive = TrainerDrive(
            setup.trainer_cls or trl.GRPOTrainer,
            model,
            setup.config(seed, self._folder.name),
            tokenizer,
            engine_samples=engine is not None,
            peft_config=peft_config,
            name=role,
            seed=seed,
        )
        dtype, threads = (computing.dtype, computing.threads) if computing else (None, None)
        self.drive.threads = threads
        name = ADAPTER if engine is None else role
        self._adapter = None if peft_config is None else name
        model = self.drive.model
        agent = LLMAgent(
            shared_backend(
                engine or TransformersBackend(model, tokenizer, batch_size, dtype, threads)
            ),
            setup.sampling,
            seed,
            adapter=self._adapter,
            write=write,
            tester_sampling=setup.tester_sampling,
        )
        super().__init__(agent)
        self.update_engine()

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Answer each observation, and remember the tokens to learn from."""
        answers = super().act(observations)
        self._memory.add(observations, self.agent.completions)
        return answers

    def learn(self, experience: Sequence[Experience]) -> Mapping[str, float]:
        """Update the model once. Raises an UpdateError if the trainer fails, a ValueError for another player's experience."""
        metrics = self.drive.update(self._memory.rows(experience, self.shape.group_size))
        self._memory = Memory()  # the next step has answers of its own
        self.update_engine()
        return metrics

    def save_weights(self, path: Path) -> Path:
        """Write the weights alone: the adapter, or the whole model; returns their folder."""
        return training_state.save_weights(self.drive.model, self.tokenizer, path)

    def save(self, path: Path) -> None:
        """Write weights, optimizer and counters."""
        self.save_weights(path)
        training_state.save_trainer(self.drive, self.base, path)
        self.agent.save(path)

    def load(self, path: Path) -> None:
        """Restore what `save` wrote. Raises a ValueError if it is of another model, version or adapter, or incomplete."""
        training_state.load_trainer(self.drive, self.base, path)
        training_state.load_weights(self.drive.model, path)
        self.agent.load(path)
        self.update_engine()

    def update_engine(self) -> None:
        """Give the weights to the engine that answers, if that is not the trained model itself."""
        if self._engine is not None:
            with tempfile.TemporaryDirectory(prefix="codea1-weights-") as folder:
                self._engine.update(self.save_weights(Path(folder)), self._adapter)

    def close(self) -> None:
        """Remove the trainer's folder. The player cannot learn afterwards."""
        self._folder.cleanup()


class Memory:
    """Tokens of answers that are not learned from yet: experience has only their text."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], deque[Completion]] = defaultdict(deque)

    def add(self, observations: Sequence[Observation], completions: Sequence[Completion]) -> None:
        """Remember the answers to a batch of observations."""
        for observation, completion in zip(observations, completions, strict=True):
            self._known[(*observation.values(), completion.text)].append(completion)

    def rows(self, experience: Sequence[Experience], group_size: int) -> list[TrainingRow]:
        """Turn experience into rows, group after group. Raises a ValueError for answers of others, and groups of other sizes."""
        groups: dict[str, list[TrainingRow]] = defaultdict(list)
        for item in experience:
            groups[item.group].append(self._row(item))
        for name, rows in groups.items():
            if len(rows) != group_size:
                raise ValueError(
                    f"Expect groups of {group_size} answers, actually {len(rows)} in group {name!r}. "
                    "Make the learner with the group size of the run."
                )
        return [row for rows in groups.values() for row in rows]

    def _row(self, item: Experience) -> TrainingRow:
        known = self._known.get((*item.observation.values(), item.action))
        if not known:
            raise ValueError(
                "Expect experience with answers that this player gave since it last learned, actually: "
                f"{item.action!r:.200}"
            )
        found = known.popleft()
        if not found.prompt_ids or not found.completion_ids:
            raise ValueError(
                "Expect an engine that tells the tokens of its answers, actually: it does not. Learn with "
                "the backend 'transformers' or 'vllm'."
            )
        return TrainingRow(
            found.prompt_ids, found.completion_ids, found.logprobs, item.reward, found.truncated
        )


def share_weights(model: Any) -> Any:
    """Copy a model without its weights: both have the same tensors, and each can get its own adapter."""
    tensors = itertools.chain(model.parameters(), model.buffers())
    return copy.deepcopy(model, {id(tensor): tensor for tensor in tensors})
