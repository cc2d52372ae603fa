"""PPO (Schulman et al. 2017, arXiv 1707.06347): GRPO's clipped loss, with A = r - V(state) in place of a group's mean."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from codea1_env.agents.policy import (
    Sample,
    SoftmaxPolicy,
    by_table,
    check_ranges,
    clipped_loss,
    descend,
    entropy_gradient,
    log_probs,
    mean,
    rewards_of,
)


@dataclass
class PPO:
    """PPO (Schulman et al. 2017, arXiv 1707.06347) with a value function: a table of what each state is worth.

    A state is what the player sees. The baseline is its value, learned over all steps, so that an answer can teach alone.
    A new state has the mean value of those known. Advantages have mean 0 and deviation 1 in a batch.
    """

    learning_rate: float = 1.0
    epsilon: float = 0.2
    num_iterations: int = 4
    """Passes over a batch."""
    value_rate: float = 0.2
    """How far the value of a state moves to the mean reward of its answers, in each step."""
    entropy: float = 0.0
    """Weight of the entropy of an answer's first draw."""
    _values: dict[str, float] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        check_ranges(
            self,
            epsilon=0 < self.epsilon < math.inf,
            num_iterations=self.num_iterations >= 1,
            value_rate=0 <= self.value_rate <= 1,
            entropy=0 <= self.entropy < math.inf,
        )

    def update(self, policy: SoftmaxPolicy, samples: Sequence[Sample]) -> dict[str, float]:
        """See `Algorithm.update`."""
        tables = by_table(samples)
        new = mean(list(self._values.values()))
        raw = {key: rewards_of(batch) - self._values.get(key, new) for key, batch in tables.items()}
        every = np.concatenate([*raw.values(), np.zeros(0)])
        losses, clipped, errors = [], [], []
        for key, batch in tables.items():
            errors.append(float((raw[key] ** 2).mean()))
            value = self._values.get(key, new)
            self._values[key] = value + self.value_rate * float(raw[key].mean())
            if len(every) < 2 or np.all(every == every[0]):
                continue
            advantages = (raw[key] - every.mean()) / (every.std(ddof=1) + 1e-4)
            old = log_probs(policy, key, batch)
            for _ in range(self.num_iterations):
                ratio = log_probs(policy, key, batch) - old
                bounds = (self.epsilon, self.epsilon)
                loss, slopes, stopped = clipped_loss(ratio, advantages[:, None], *bounds)
                rise = self.entropy * entropy_gradient(policy, key)
                descend(policy, key, batch, self.learning_rate * slopes / ratio.size)
                policy.logits[key] += self.learning_rate * rise
                losses.append(float(loss.mean()))
                clipped.append(float(stopped.mean()))
        return {"loss": mean(losses), "clip_ratio": mean(clipped), "value_loss": mean(errors)}

    def state_dict(self) -> dict[str, float]:
        """Return the values of the states."""
        return dict(self._values)

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        """Restore what `state_dict` returned."""
        self._values = dict(state)
