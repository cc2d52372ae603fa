"""Reward models: what a program earns is predicted from its text, and it is not run for that.

AceCoder (Zeng et al. 2025, arXiv 2502.01718) trains a scorer on programs that tests judged, and learns from its scores;
CodeScaler (Zhu et al. 2026, arXiv 2602.17684) extracts code by its syntax first, which is not done here.
Here (`codea1_env.training.lessons`) the first steps of a run are judged as usual, and the scorer is fitted on these verdicts. From then on
the coder is paid what it predicts; the tester, the Mistake Book and all measures go on with verdicts.

A model of your own is a `RewardModel`, made from these verdicts: `--reward-model FILE.py:NAME`. With `reward_model_after = 0`
there are none, and a model that was trained elsewhere, such as a language model's head, scores from the first step.
"""

from __future__ import annotations

import itertools
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from codea1_env.support.plugins import find


class PaidProgram(NamedTuple):
    """What a reward model is fitted on."""

    problem: str
    """The text of the problem."""
    program: str
    reward: float
    """What it earned when it was run."""


class RewardModel(Protocol):
    """Says what a program is worth without running it."""

    def score(self, problem: str, program: str) -> float:
        """Return a number from 0 to 1, always the same for the same texts."""
        ...


_TOKENS = re.compile(r"\w+|[^\w\s]")
_LONGEST = 3
_WIDTH = 4096
_RIDGE = 0.1


class NgramRidge:
    r"""Ridge regression over hashed n-grams of a program's tokens, each alone and together with its problem.

    Args:
        judged: Programs with what they earned. Without any every score is 0.5.

    Example:
        >>> good, bad = ("def f(n): return n + 1", "def f(n): return n - 1")
        >>> model = NgramRidge([PaidProgram("add", good, 1.0), PaidProgram("add", bad, 0.0)] * 9)
        >>> model.score("add", good) > 0.8, model.score("add", bad) < 0.2
        (True, True)
    """

    def __init__(self, judged: Sequence[PaidProgram]) -> None:
        rewards = np.array([each.reward for each in judged])
        self._mean = float(rewards.mean()) if judged else 0.5
        self._weights = np.zeros(_WIDTH)
        if judged:
            rows = np.stack([_features(each.problem, each.program) for each in judged])
            kernel = rows @ rows.T + _RIDGE * np.eye(len(judged))
            self._weights = rows.T @ np.linalg.solve(kernel, rewards - self._mean)

    def score(self, problem: str, program: str) -> float:
        """Return what the program is predicted to earn."""
        predicted = self._mean + float(_features(problem, program) @ self._weights)
        return min(max(predicted, 0.0), 1.0)


def _features(problem: str, program: str) -> NDArray[np.float64]:
    """Count the n-grams in their places, to length 1."""
    counts = np.zeros(_WIDTH)
    own = zlib.crc32(problem.encode("utf-8", "surrogatepass"))
    for ngram in _ngrams(_TOKENS.findall(program)):
        for start in (0, own):
            counts[zlib.crc32(ngram.encode("utf-8", "surrogatepass"), start) % _WIDTH] += 1
    return counts / max(float(np.linalg.norm(counts)), 1.0)


def _ngrams(tokens: Sequence[str]) -> Iterator[str]:
    for size in range(1, _LONGEST + 1):
        parts = (itertools.islice(tokens, start, None) for start in range(size))
        yield from map(" ".join, zip(*parts, strict=False))


REWARD_MODELS: dict[str, Callable[[Sequence[PaidProgram]], RewardModel]] = {"ngrams": NgramRidge}
"""Name -> class."""


def find_reward_model(name: str) -> Any:
    """Return the class of a reward model, by its name in `REWARD_MODELS`, ``module:NAME`` or ``FILE.py:NAME``.

    Raises:
        ValueError: There is none.
    """
    if name in REWARD_MODELS:
        return REWARD_MODELS[name]
    if ":" not in name:
        raise ValueError(
            f"Expect reward_model to be {', '.join(REWARD_MODELS)}, module:NAME or FILE.py:NAME, actually: {name!r}"
        )
    found = find(name, "reward model")
    if not (isinstance(found, type) and callable(getattr(found, "score", None))):
        raise ValueError(
            f"Expect {name!r} to be a class with a method score(problem, program), actually: {found!r:.200}"
        )
    return found
