"""REINFORCE (Williams 1992): loss = -r log pi(y) - entropy H(pi)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from codea1_env.agents.policy import (
    Sample,
    SoftmaxPolicy,
    by_table,
    check_ranges,
    entropy_gradient,
    gradient_step,
    mean,
    rewards_of,
)


@dataclass(frozen=True)
class Reinforce:
    """REINFORCE (Williams 1992): the policy gradient of the reward itself, without any baseline."""

    learning_rate: float = 1.0
    entropy: float = 0.0
    """Weight of the entropy of an answer's first draw."""

    def __post_init__(self) -> None:
        check_ranges(self, entropy=0 <= self.entropy < math.inf)

    def update(self, policy: SoftmaxPolicy, samples: Sequence[Sample]) -> dict[str, float]:
        """See `Algorithm.update`."""
        losses = []
        for key, batch in by_table(samples).items():
            rise = self.learning_rate * self.entropy * entropy_gradient(policy, key)
            # As GRPO: the mean over the draws of an answer.
            weights = rewards_of(batch) / [len(sample.drawn) for sample in batch]
            losses.append(gradient_step(policy, key, batch, weights, self.learning_rate))
            policy.logits[key] += rise
        return {"loss": mean(losses)}
