"""A language model as a player: what it is asked, what it answers, and what that takes."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from codea1_env.agents.llm import prompts
from codea1_env.agents.llm.completions import Backend, Completion, Message, SamplingConfig
from codea1_env.agents.scripted import FixedAgent
from codea1_env.agents.state import read_json, write_json
from codea1_env.spaces import Observation

Field = Literal["code", "feedback", "tests", "problem"]
ORDER: tuple[Field, ...] = ("code", "feedback", "tests", "problem")
"""What is shortened first: the program, then what is said about it, and the task itself last."""
MARK = "\n... (shortened)"


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


@dataclass(frozen=True)
class Fitted:
    """A prompt that is short enough."""

    messages: list[Message]
    tokens: int
    """Its length."""
    cut: dict[Field, int]
    """Characters that were left out of each field."""


def fit(
    observation: Observation,
    write: prompts.PromptTemplate,
    count: Callable[[list[Message]], int],
    limit: int,
) -> Fitted:
    """Write a prompt of at most `limit` tokens. Raises a ValueError if the wording alone is longer than the limit.

    A field loses its end, as little of it as needed; when all of it is gone, the next field follows. `count` returns the
    length in tokens of a chat.
    """
    messages = write(observation)
    tokens = count(messages)
    cut: dict[Field, int] = {}
    shown = observation
    for name in ORDER:
        if tokens <= limit:
            break
        # By bisection: all of the field is known not to fit.
        kept, too_much = 0, len(observation[name])
        while too_much - kept > 1:
            middle = (kept + too_much) // 2
            if count(write(_shortened(shown, name, middle))) <= limit:
                kept = middle
            else:
                too_much = middle
        if observation[name]:
            shown = _shortened(shown, name, kept)
            cut[name] = len(observation[name]) - kept
            messages = write(shown)
            tokens = count(messages)
    if tokens > limit:
        raise ValueError(
            f"Expect prompts of at most {limit} tokens to hold the instructions, actually: these alone have "
            f"{tokens}. Raise max_prompt_length, or lower max_completion_length if the model's context is full."
        )
    return Fitted(messages, tokens, cut)


def _shortened(observation: Observation, name: Field, kept: int) -> Observation:
    shown = observation.copy()
    shown[name] = observation[name][:kept] + MARK if kept else ""
    return shown


def longest_prompt(sampling: SamplingConfig, context: int) -> int:
    """Tokens that a prompt may have in a context of so many; a ValueError if the longest answer leaves no room."""
    room = context - sampling.max_completion_length
    if room < 1:
        raise ValueError(
            f"Expect max_completion_length to leave room for a prompt in the model's context of {context} tokens, "
            f"actually: {sampling.max_completion_length}. Lower it."
        )
    return min(sampling.max_prompt_length, room)


class LLMAgent(FixedAgent):
    """A player that asks a language model.

    After each call of `act`, `completions` holds the sampled tokens in the order of the observations, `prompts` the
    chats, and `usage` what it took.

    Args:
        backend: The engine that generates. Both roles may share one.
        sampling: How answers are drawn.
        seed: Seed of the draws.
        adapter: The engine's adapter for this player; None for the model without one.
        write: The wording: turns an observation into a chat.
        tester_sampling: How suites are drawn, by one model in both roles; None for a player of one role.

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
        tester_sampling: SamplingConfig | None = None,
    ) -> None:
        self.backend = backend
        self.sampling = sampling
        self.seed = seed
        self.adapter = adapter
        self.completions: list[Completion] = []
        self.prompts: list[Fitted] = []
        self.usage = Usage()
        self._tester_sampling = tester_sampling
        self._write = write
        self._limits = [
            longest_prompt(each, backend.context_length)
            for each in (sampling, tester_sampling or sampling)
        ]
        self._calls = 0

    def reset(self, seed: int) -> None:
        """Start the draws anew, from a seed."""
        self.seed, self._calls = seed, 0

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Return one answer for each observation, in order: the model's text as it is."""
        started = time.perf_counter()
        self.prompts = self._fitted(observations)
        seed = np.random.SeedSequence([self.seed, self._calls]).generate_state(1)[0]
        if self._tester_sampling is None:
            parts = [(list(range(len(observations))), self.sampling)]
        else:  # each role's, also without any: of several processes all must ask as often
            of_turn: list[list[int]] = [[], []]
            for place, observation in enumerate(observations):
                of_turn[observation["turn"]].append(place)
            parts = list(zip(of_turn, (self.sampling, self._tester_sampling), strict=True))
        answers: dict[int, Completion] = {}
        for places, sampling in parts:
            chats = [self.prompts[place].messages for place in places]
            found = self.backend.generate(chats, sampling, int(seed), self.adapter)
            answers.update(zip(places, found, strict=True))
        self.completions = [answers[place] for place in range(len(observations))]
        self._calls += 1
        self.usage = self._used(time.perf_counter() - started)
        return [answer.text for answer in self.completions]

    def _used(self, seconds: float) -> Usage:
        answers = self.completions
        return Usage(
            answers=len(answers),
            prompt_tokens=sum(answer.prompt_tokens for answer in answers),
            completion_tokens=sum(answer.completion_tokens for answer in answers),
            truncated=sum(answer.truncated for answer in answers),
            shortened=sum(bool(prompt.cut) for prompt in self.prompts),
            seconds=seconds,
            untold=sum(answer.prompt_tokens + answer.completion_tokens == 0 for answer in answers),
        )

    @property
    def calls(self) -> int:
        """How many batches were drawn: together with the seed all that the next draws depend on."""
        return self._calls

    def draw_from(self, calls: int) -> None:
        """Draw the next batch as if so many had been drawn."""
        self._calls = calls

    def chat(self, observation: Observation) -> list[Message]:
        """Return the chat that the model is shown for an observation, shortened if it had to be."""
        return self._fitted([observation])[0].messages

    def save(self, path: Path) -> None:
        """Write how many batches were drawn."""
        write_json(path / "agent.json", {"calls": self._calls})

    def load(self, path: Path) -> None:
        """Go on with the draws where `save` was called."""
        self._calls = int(read_json(path / "agent.json")["calls"])

    def _fitted(self, observations: Sequence[Observation]) -> list[Fitted]:
        """Write the prompts. Equal observations, as in a group, get one."""
        known: dict[tuple[object, ...], Fitted] = {}
        found = []
        for seen in observations:
            key = tuple(seen.values())
            if key not in known:
                limit = self._limits[seen["turn"]]
                known[key] = fit(seen, self._write, self.backend.count_tokens, limit)
            found.append(known[key])
        return found


class LanguagePlayer:
    """A player that answers through an agent, and counts what that takes."""

    def __init__(self, agent: LLMAgent) -> None:
        self.agent = agent
        self._usage: list[Usage] = []

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Answer each observation. See `LLMAgent.act`."""
        answers = self.agent.act(observations)
        self._usage.append(self.agent.usage)
        return answers

    def take_usage(self) -> Usage:
        """Return the usage of all answers since the last call of this method."""
        used, self._usage = self._usage, []
        return Usage(*map(sum, zip(*map(dataclasses.astuple, used), strict=True)))

    def save(self, path: Path) -> None:
        """Write how far its random numbers are used up."""
        self.agent.save(path)

    def load(self, path: Path) -> None:
        """Restore what `save` wrote."""
        self.agent.load(path)

    def close(self) -> None:
        """Remove what lies on the disk for it. It cannot learn afterwards."""


class FrozenLanguagePlayer(LanguagePlayer, FixedAgent):
    """A language model that plays but does not learn."""
