"""A language model as a player."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from codea1_env.agents.llm import prompts
from codea1_env.agents.llm.completions import Backend, Completion, Message, SamplingConfig
from codea1_env.agents.llm.fitting import Fitted, fit
from codea1_env.agents.scripted import FixedAgent
from codea1_env.agents.state import read_json, write_json
from codea1_env.spaces import Observation


@dataclass(frozen=True)
class Usage:
    """What one call of `act` took."""

    answers: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    truncated: int = 0
    """Answers that were cut off."""
    shortened: int = 0
    """Prompts that did not fit and were shortened."""
    seconds: float = 0.0
    """Wall-clock time."""
    untold: int = 0
    """Answers whose tokens a server did not tell: they count as none."""

    def metrics(self) -> dict[str, float]:
        """As a run's metrics name it, without the time (equal runs have equal metrics)."""
        answers = max(self.answers, 1)
        return {
            "tokens/prompt": self.prompt_tokens,
            "tokens/completion": self.completion_tokens,
            "tokens/completion_mean": self.completion_tokens / answers,
            "truncated": self.truncated / answers,
            "prompts_shortened": self.shortened / answers,
        }


class LLMAgent(FixedAgent):
    """A player that asks a language model.

    After each call of `act`, `completions` holds what was sampled, token by token, in the order of the
    observations, `prompts` what was asked, and `usage` what it took. A learner trains on exactly these tokens.

    Args:
        backend: The engine that generates. Both roles may share one.
        sampling: How answers are drawn.
        seed: Seed of the draws.
        adapter: The engine's adapter for this player; None for the model without one.
        write: The wording: turns an observation into a chat.

    Raises:
        ValueError: The model's context has no room for a prompt beside the longest answer.
    """

    def __init__(
        self,
        backend: Backend,
        sampling: SamplingConfig,
        seed: int = 0,
        *,
        adapter: str | None = None,
        write: prompts.PromptTemplate = prompts.DEFAULT,
    ) -> None:
        room = backend.context_length - sampling.max_completion_length
        if room < 1:
            raise ValueError(
                f"Expect max_completion_length to leave room for a prompt in the model's context of "
                f"{backend.context_length} tokens, actually: {sampling.max_completion_length}"
            )
        self.backend = backend
        self.sampling = sampling
        self.seed = seed
        self.adapter = adapter
        self.completions: list[Completion] = []
        self.prompts: list[Fitted] = []
        self.usage = Usage()
        self._write = write
        self._limit = min(sampling.max_prompt_length, room)
        self._calls = 0

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Return one answer for each observation, in order: the model's text as it is.

        Raises:
            BackendError: The engine cannot answer.
        """
        started = time.perf_counter()
        self.prompts = self._fitted(observations)
        seed = np.random.SeedSequence([self.seed, self._calls]).generate_state(1)[0]
        self.completions = self.backend.generate(
            [prompt.messages for prompt in self.prompts], self.sampling, int(seed), self.adapter
        )
        self._calls += 1
        self.usage = Usage(
            answers=len(self.completions),
            prompt_tokens=sum(answer.prompt_tokens for answer in self.completions),
            completion_tokens=sum(answer.completion_tokens for answer in self.completions),
            truncated=sum(answer.truncated for answer in self.completions),
            shortened=sum(bool(prompt.cut) for prompt in self.prompts),
            seconds=time.perf_counter() - started,
            untold=sum(
                not answer.prompt_tokens and not answer.completion_tokens
                for answer in self.completions
            ),
        )
        return [answer.text for answer in self.completions]

    def chat(self, observation: Observation) -> list[Message]:
        """Return the chat that the model is shown for an observation, shortened if it had to be."""
        return self._fitted([observation])[0].messages

    def save(self, path: Path) -> None:
        """Write how many batches were drawn: together with the seed all that the next draws depend on."""
        write_json(path / "agent.json", {"calls": self._calls})

    def load(self, path: Path) -> None:
        """Go on with the draws where `save` was called."""
        state = read_json(path / "agent.json")
        if not isinstance(state, Mapping) or not isinstance(state.get("calls"), int):
            raise ValueError(
                f"Expect a number of calls in {path / 'agent.json'}, actually: {state!r}"
            )
        self._calls = state["calls"]

    def _fitted(self, observations: Sequence[Observation]) -> list[Fitted]:
        """The prompts. Equal observations, as in a group, get one."""
        known: dict[tuple[object, ...], Fitted] = {}
        fitted = []
        for observation in observations:
            key = tuple(observation.values())
            if key not in known:
                known[key] = fit(observation, self._write, self.backend.count_tokens, self._limit)
            fitted.append(known[key])
        return fitted
