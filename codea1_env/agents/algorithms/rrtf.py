"""RRTF (Shen et al. 2023, arXiv 2307.14936): pairs that the policy ranks wrongly are moved apart, the best is imitated."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codea1_env.agents.policy import (
    Sample,
    SoftmaxPolicy,
    by_group,
    by_table,
    gradient_step,
    log_probs,
    mean,
    rewards_of,
)


@dataclass(frozen=True)
class RRTF:
    """Ranking of the answers of a group, as RRTF (Shen et al. 2023, arXiv 2307.14936) does with tests as feedback.

    Pairs of answers that the policy ranks otherwise than their rewards are moved apart, and the best answer of a group is
    imitated. The imitation weighs as much as all pairs of one answer together.
    """

    learning_rate: float = 1.0

    def update(self, policy: SoftmaxPolicy, samples: Sequence[Sample]) -> dict[str, float]:
        """See `Algorithm.update`."""
        losses = []
        for key, batch in by_table(samples).items():
            likely = log_probs(policy, key, batch).mean(axis=1)
            rewards, weights = rewards_of(batch), np.zeros(len(batch))
            for members in by_group(batch):
                scored = [index for index in members if not np.isnan(rewards[index])]
                if len({rewards[index] for index in scored}) < 2:
                    continue
                for better, worse in itertools.permutations(scored, 2):
                    if rewards[better] > rewards[worse] and likely[better] <= likely[worse]:
                        weights[better] += 1
                        weights[worse] -= 1
                weights[max(scored, key=lambda index: rewards[index])] += len(batch)
            weights /= [len(sample.drawn) for sample in batch]
            losses.append(gradient_step(policy, key, batch, weights, self.learning_rate))
        return {"loss": mean(losses)}
