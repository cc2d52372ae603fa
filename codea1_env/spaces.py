"""Spaces of the game: one observation for both players, plain text as the action.

The players hide nothing from each other, so both share one flat dictionary of texts and counters. Neither sees the
reference or golden tests. All that a player must know to act is in it; what happened to an action, in detail, is in ``infos``.
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any, TypedDict

from gymnasium import spaces

from codea1_env.responses import MAX_ACTION_CHARS

if TYPE_CHECKING:
    from codea1_env.problems import Problem

CODER = "coder_0"
"""The player that writes a program."""
TESTER = "tester_0"
"""The player that sees the program and writes tests to break it."""
AGENTS = (CODER, TESTER)
"""Both players, in the order of their turns."""
MAX_TEXT_CHARS = 1 << 20
"""Longest text field of an observation. A problem's prompt may be longer than any answer to it."""

_TEXTS = ("task_id", "problem", "entry_point", "code", "tests", "feedback")
SAMPLE_CHARS = string.printable[:95] + "\n"
SAMPLE_LENGTH = 32


class Text(spaces.Space[str]):
    r"""Every string of at most ``max_length`` characters.

    `gymnasium.spaces.Text` is made for short strings over a small alphabet: it looks at each character,
    refuses newlines, and samples strings as long as allowed. Programs and tests are any text, so only
    the length counts here, and samples are short.

    Args:
        max_length: The greatest length, in characters.
        seed: Seed of the generator that `sample` draws from.

    Example:
        >>> text = Text(5)
        >>> "a\nb" in text, "too long" in text, 3 in text
        (True, False, False)
        >>> Text(5, seed=1).sample() == Text(5, seed=1).sample()
        True
    """

    def __init__(self, max_length: int, *, seed: int | None = None) -> None:
        self.max_length = max_length
        super().__init__(shape=None, dtype=str, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """False: a text has no fixed size."""
        return False

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> str:
        """Draw a short printable string, enough to try an interface out. Masks and probabilities are not supported."""
        if mask is not None or probability is not None:
            raise ValueError("Expect mask and probability to be None, actually: others")
        length = int(self.np_random.integers(min(SAMPLE_LENGTH, self.max_length) + 1))
        picked = self.np_random.integers(len(SAMPLE_CHARS), size=length)
        return "".join(SAMPLE_CHARS[index] for index in picked)

    def contains(self, x: Any) -> bool:
        """Whether ``x`` is a string of at most ``max_length`` characters."""
        return isinstance(x, str) and len(x) <= self.max_length

    def __repr__(self) -> str:
        return f"Text({self.max_length})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Text) and other.max_length == self.max_length

    def __hash__(self) -> int:
        return hash((Text, self.max_length))


class Observation(TypedDict):
    """Observation of both players. Build it with `observe`."""

    task_id: str
    """Names the problem: by it a player finds what it knows of it."""
    problem: str
    """The task as the coder gets it: signature and docstring."""
    entry_point: str
    """Name of the function or class that the program must define and the tests must call."""
    code: str
    """The coder's latest program; empty before there is one."""
    tests: str
    """Half of the tests that the previous round's program failed; empty in the first round."""
    feedback: str
    """What came of the previous round, for a reader; empty in the first round."""
    round: int
    """Rounds finished so far."""
    turn: int
    """0: the coder is to act. 1: the tester is to act."""


def observation_space(max_rounds: int = 1) -> spaces.Dict:
    """Return a new space that holds every `Observation` of a game of ``max_rounds`` rounds.

    Example:
        >>> list(observation_space())
        ['task_id', 'problem', 'entry_point', 'code', 'tests', 'feedback', 'round', 'turn']
    """
    return spaces.Dict(
        {
            **{name: Text(MAX_TEXT_CHARS) for name in _TEXTS},
            "round": spaces.Discrete(max_rounds + 1),
            "turn": spaces.Discrete(2),
        },
        sort_keys=False,
    )


def action_space() -> Text:
    """Return a new space of the texts that are read as an answer. Longer ones are scored as an empty answer.

    Example:
        >>> action_space()
        Text(65536)
    """
    return Text(MAX_ACTION_CHARS)


def observe(
    problem: Problem,
    *,
    code: str = "",
    tests: str = "",
    feedback: str = "",
    round: int = 0,
    turn: int = 0,
) -> Observation:
    """Build the observation of a situation. The problem's reference and golden tests stay out of it."""
    return Observation(
        task_id=problem.task_id,
        problem=problem.prompt,
        entry_point=problem.entry_point,
        code=code,
        tests=tests,
        feedback=feedback,
        round=round,
        turn=turn,
    )
