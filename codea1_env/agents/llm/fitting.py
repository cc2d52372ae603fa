"""Makes prompts short enough: by rule, and with a report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from codea1_env.agents.llm.completions import Message
from codea1_env.spaces import Observation

Field = Literal["code", "feedback", "tests", "problem"]
ORDER: tuple[Field, ...] = ("code", "feedback", "tests", "problem")
"""What is shortened first: the program, then what is said about it, and the task itself last."""
MARK = "\n... (shortened)"


@dataclass(frozen=True)
class Fitted:
    """A prompt that is short enough."""

    messages: list[Message]
    tokens: int
    """Its length."""
    cut: dict[Field, int]
    """Characters that were left out of each field; empty if the prompt is whole."""


def fit(
    observation: Observation,
    write: Callable[[Observation], list[Message]],
    count: Callable[[list[Message]], int],
    limit: int,
) -> Fitted:
    """Write a prompt of at most `limit` tokens.

    A field loses its end, as little of it as needed; when all of it is gone, the next field follows.

    Args:
        observation: What the player sees.
        write: The wording.
        count: Length in tokens of a chat.
        limit: The greatest length.

    Raises:
        ValueError: The wording alone is longer than the limit.
    """
    messages = write(observation)
    tokens = count(messages)
    cut: dict[Field, int] = {}
    shown = observation
    for name in ORDER:
        if tokens <= limit:
            break
        text = observation[name]
        if text:
            kept = _most_that_fits(shown, name, write, count, limit)
            shown = _shortened(shown, name, kept)
            cut[name] = len(text) - kept
            messages = write(shown)
            tokens = count(messages)
    if tokens > limit:
        raise ValueError(
            f"Expect prompts of at most {limit} tokens to hold the instructions, actually: these alone have "
            f"{tokens}. Raise max_prompt_length, or lower max_completion_length if the model's context is full."
        )
    return Fitted(messages, tokens, cut)


def _most_that_fits(
    observation: Observation,
    name: Field,
    write: Callable[[Observation], list[Message]],
    count: Callable[[list[Message]], int],
    limit: int,
) -> int:
    """Characters of the field that can stay, by bisection; 0 if nothing fits."""
    low, high = 0, len(observation[name])  # all of it is known not to fit
    while high - low > 1:
        middle = (low + high) // 2
        if count(write(_shortened(observation, name, middle))) <= limit:
            low = middle
        else:
            high = middle
    return low


def _shortened(observation: Observation, name: Field, kept: int) -> Observation:
    shown = observation.copy()
    shown[name] = observation[name][:kept] + MARK if kept else ""
    return shown
