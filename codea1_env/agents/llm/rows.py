"""What a trainer is given: one row for each answer, in groups."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from codea1_env.agents.llm.completions import Completion
from codea1_env.agents.protocols import Experience
from codea1_env.spaces import Observation


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


class Memory:
    """Remembers the tokens of answers until they are learned from: experience has only their text."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], deque[Completion]] = defaultdict(deque)

    def add(self, observations: Sequence[Observation], completions: Sequence[Completion]) -> None:
        """Remember the answers to a batch of observations."""
        for observation, completion in zip(observations, completions, strict=True):
            self._known[_key(observation, completion.text)].append(completion)

    def rows(self, experience: Sequence[Experience], group_size: int) -> list[TrainingRow]:
        """Turn experience into rows, group after group.

        Raises:
            ValueError: An answer is not of this player, or a group is not of the wanted size.
        """
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

    def clear(self) -> None:
        """Forget everything: the next step has answers of its own."""
        self._known.clear()

    def _row(self, item: Experience) -> TrainingRow:
        known = self._known.get(_key(item.observation, item.action))
        if not known:
            raise ValueError(
                "Expect experience with answers that this player gave since it last learned, actually: "
                f"{item.action!r:.200}"
            )
        completion = known.popleft()
        if not completion.prompt_ids or not completion.completion_ids:
            raise ValueError(
                "Expect an engine that tells the tokens of its answers, actually: it does not. Learn with "
                "the backend 'transformers' or 'vllm'."
            )
        return TrainingRow(
            completion.prompt_ids,
            completion.completion_ids,
            completion.logprobs,
            item.reward,
            completion.truncated,
        )


def rollout_of(
    rows: Sequence[TrainingRow], end_ids: Collection[int], end_id: int
) -> dict[str, Any]:
    """What a `rollout_func` returns for these rows.

    To TRL an answer that does not end with an end token was cut off. One that a stop text ended gets such a token
    here, which the model did not draw: `env_mask` has 0 for it, by which TRL leaves it out of lengths, probabilities
    and the loss.

    Args:
        rows: Answers.
        end_ids: Tokens that end an answer for the trainer.
        end_id: The one that is appended.
    """
    known = all(row.logprobs is not None for row in rows)
    added = [not row.truncated and row.completion_ids[-1] not in end_ids for row in rows]
    found: dict[str, Any] = {
        "prompt_ids": [list(row.prompt_ids) for row in rows],
        "completion_ids": [
            [*row.completion_ids, *[end_id] * more] for row, more in zip(rows, added, strict=True)
        ],
        "logprobs": [
            [*(row.logprobs or ()), *[0.0] * more] for row, more in zip(rows, added, strict=True)
        ]
        if known
        else None,
    }
    if any(added):
        found["env_mask"] = [
            [1] * len(row.completion_ids) + [0] * more
            for row, more in zip(rows, added, strict=True)
        ]
    return found


def _key(observation: Observation, answer: str) -> tuple[object, ...]:
    return (*observation.values(), answer)
