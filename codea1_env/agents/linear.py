"""A tabular player whose problems share features: what it learns of one moves its choices in others.

The logit of item i of problem p is sqrt(1 - overlap) u[p, i] + sqrt(overlap) v[feature of i in p]. Every item of a problem has
another feature, in an order drawn for each problem, so what is right in one problem may be wrong in the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from codea1_env.agents.policy import Algorithm, Floats, SoftmaxPolicy
from codea1_env.agents.tabular import Pool, TabularAgent


class LinearPolicy(SoftmaxPolicy):
    """Logits that are linear in features, of which problems share a part.

    Args:
        features: Problem -> the feature of each of its items; all problems have the same number.
        overlap: Share of shared features: 0 for tables, 1 for nothing of a problem's own.
        draws: Items of an answer.
    """

    def __init__(self, features: Mapping[str, Sequence[int]], overlap: float, draws: int) -> None:
        super().__init__({key: len(each) for key, each in features.items()}, draws, 1.0)
        self.overlap = overlap
        self._features = {key: np.array(each) for key, each in features.items()}

    def table(self, question: str, shown: str = "") -> str:
        """Return the key of the question: what is shown beside it has no features."""
        return question

    def settle(self, before: Mapping[str, Floats]) -> None:
        """Make of a step on logits the step on features: the gradient of the weights, seen in all problems."""
        shared = np.zeros(len(next(iter(self._features.values()))))
        own = {key: self.logits[key] - before[key] for key in before if key in self._features}
        for key, change in own.items():
            shared[self._features[key]] += change
        for key, features in self._features.items():
            if key in own:
                self.logits[key] = before[key] + (1 - self.overlap) * own[key]
            self.logits[key] = self.logits[key] + self.overlap * shared[features]


class LinearAgent(TabularAgent):
    """A tabular player with a `LinearPolicy`; it does not look at programs.

    Args:
        pools: As of `TabularAgent`, all of one size.
        algorithm: What teaches it.
        rng: Draws its answers, and first the order of features.
        draws: Items of an answer.
        overlap: Share of features that problems share.
    """

    def __init__(
        self,
        pools: Sequence[Pool],
        algorithm: Algorithm,
        rng: np.random.Generator,
        draws: int = 1,
        overlap: float = 0.5,
    ) -> None:
        super().__init__(pools, algorithm, rng, draws)
        sizes = {len(pool.items) for pool in pools}
        if len(sizes) > 1 or not 0 <= overlap <= 1:
            raise ValueError(
                f"Expect pools of one size and an overlap from 0 to 1, actually: {sorted(sizes)} and {overlap}"
            )
        order = {pool.problem.task_id: rng.permutation(len(pool.items)).tolist() for pool in pools}
        self.policy = LinearPolicy(order, overlap, draws)
