"""The game for TRL's GRPOTrainer: a reward function for plain answers, and an environment for `environment_factory`.

    side = OneSide("tester", "mutant", split="train")
    GRPOTrainer(model, AnswerRewards(side), args, Dataset.from_list(dataset_rows(side)))

TRL lets models use tools in environments, so their chat template must know tools; a reward function needs none. All that is
here can be pickled; a copy in another process has a sandbox and an opponent of its own. None of it imports TRL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from gymnasium.error import ResetNeeded

from codea1_env.agents.llm.completions import BackendError
from codea1_env.integrations.side import PARTS, OneSide, SideAnswer

OVER = "The episode is over."


def dataset_rows(
    side: OneSide, task_ids: Sequence[str] | None = None, seeds: Iterable[int] = (0,)
) -> list[dict[str, Any]]:
    """Return rows of a data set with the columns prompt, task_id and code, for each seed.

    The program that a tester attacks is drawn anew for each seed: `seeds=range(3)` are three epochs.
    """
    return [
        {"prompt": question.messages, "task_id": question.task_id, "code": question.code}
        for question in side.questions(task_ids, seeds)
    ]


def environment_rows(side: OneSide, seeds: Iterable[int] = (0,)) -> list[dict[str, Any]]:
    """Return rows for `environment_factory`: TRL puts what `GameEnvironment.reset` asks behind the empty prompt."""
    return [
        {"prompt": [{"role": "user", "content": ""}], "task_id": task_id, "seed": seed}
        for seed in seeds
        for task_id in side.problems
    ]


class AnswerRewards:
    """A reward function: pays each answer of a batch.

    An answer that nothing could score gets None, which leaves it out of its group.

    Args:
        side: The side that is trained.
        part: What is paid: "reward", or another measure of `SideScore.parts` to log it (then give it the weight 0).

    Example:
        >>> pay = AnswerRewards(OneSide("coder", "copier"))
        >>> pay(completions=["def add_numbers(a, b): return a + b"], task_id=["starter/add_numbers"])
        [1.0]
    """

    def __init__(self, side: OneSide, part: str = "reward") -> None:
        if part not in ("reward", *PARTS):
            raise ValueError(
                f"Expect part to be one of reward, {', '.join(PARTS)}, actually: {part!r}"
            )
        self.side, self.part = side, part
        self.__name__ = f"{side.side}_{part}"

    def __call__(
        self,
        completions: Sequence[Any],
        task_id: Sequence[str],
        code: Sequence[str] | None = None,
        **_: Any,
    ) -> list[float | None]:
        """Return a reward for each completion: a text, or the messages of one."""
        if code is None and self.side.side == "tester":
            raise ValueError(
                "Expect the column code, the program that a tester attacks, actually: none"
            )
        codes = [""] * len(task_id) if code is None else code
        scores = self.side.judge(
            [
                SideAnswer(name, text_of(completion), program)
                for name, completion, program in zip(task_id, completions, codes, strict=True)
            ]
        )
        if self.part == "reward":
            return [score.reward for score in scores]
        return [score.parts.get(self.part) for score in scores]


class GameEnvironment:
    """One rollout: `reset` starts an episode, the tool `submit` plays a turn.

    A model that answers without the tool is paid, too: `episode_rewards` hands in what it wrote.
    """

    def __init__(self, side: OneSide) -> None:
        self._side = side
        self._game = side.game(own_book=True)
        self._rewards: list[float | None] = []

    def reset(self, task_id: str | None = None, seed: int | None = None, **_: Any) -> str:
        """Start an episode and return what the player is asked: the same for the same problem and seed."""
        options = {} if task_id is None else {"problem_id": task_id}
        self._rewards = []
        self._side.begin_one(self._game, seed, options)
        return self._asked()

    def submit(self, answer: str) -> str:
        """Hand in your answer and learn what came of it.

        Args:
            answer: The whole Python program, or the tests as assert statements.

        Returns:
            What came of it, and the next task if there is one.
        """
        if self._game.actor is None:
            return OVER
        self._rewards.append(self._side.step_one(self._game, answer))
        if self._game.actor is not None:
            return self._asked()
        return f"{self._game.observation()['feedback']}\n{OVER}".strip()

    def _asked(self) -> str:
        *_, last = self._side.messages(self._game.observation())
        return last["content"]


class GameFactory:
    """Makes the environments of a trainer: `GRPOTrainer(..., environment_factory=GameFactory(side))`."""

    def __init__(self, side: OneSide) -> None:
        self.side = side

    def __call__(self) -> GameEnvironment:
        """Make one."""
        return GameEnvironment(self.side)


def episode_rewards(
    completions: Sequence[Any], environments: Sequence[GameEnvironment], **_: Any
) -> list[float | None]:
    """Pay the episodes of environments, the sum of their rounds: the reward function beside `GameFactory`.

    Who never called the tool is taken to have handed in the text of its answer. Where the opponent fails nothing is paid.
    """
    for environment, completion in zip(environments, completions, strict=True):
        if not environment._rewards:
            with suppress(BackendError, ResetNeeded):
                environment.submit(text_of(completion))
    paid = [[each for each in env._rewards if each is not None] for env in environments]
    return [sum(rewards) if rewards else None for rewards in paid]


def text_of(completion: Any) -> str:
    """Return the text of a completion as trainers give it: a text, or messages, of which the last assistant's counts.

    Its content may be a list of parts. What is none of these has no text.

    Example:
        >>> text_of([{"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}])
        'ab'
    """
    if isinstance(completion, str):
        return completion
    messages = completion if isinstance(completion, Sequence) else []
    texts = [
        each.get("content")
        for each in messages
        if isinstance(each, Mapping) and each.get("role") == "assistant"
    ]
    content = texts[-1] if texts else None
    if isinstance(content, Sequence) and not isinstance(content, str):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        return "".join([part for part in parts if isinstance(part, str)])
    return content if isinstance(content, str) else ""
