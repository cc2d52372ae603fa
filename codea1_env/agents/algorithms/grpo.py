r"""GRPO (Shao et al. 2024, arXiv 2402.03300) with the asymmetric clipping of DAPO (Yu et al. 2025, arXiv 2503.14476).

A_i  = (r_i - mean(r)) / (std(r) + 1e-4)                   over the answers i of one group
rho  = pi(y) / pi_old(y)                                   of each draw y
loss = -min(rho A, clip(rho, 1 - epsilon, 1 + epsilon_high) A) + beta KL(pi, pi_start)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from codea1_env.agents.policy import (
    Sample,
    SoftmaxPolicy,
    by_table,
    clipped_loss,
    descend,
    group_advantages,
    k3,
    log_probs,
    mean,
)


@dataclass(frozen=True)
class GRPO:
    """GRPO (Shao et al. 2024, arXiv 2402.03300) with the asymmetric clipping of DAPO (2503.14476).

    Answers to one question are each other's baseline. Clipping keeps several passes over one batch (`num_iterations`) near
    the policy that wrote it. An answer without reward is left out. A group of equal rewards teaches nothing.
    """

    trainer: ClassVar[Mapping[str, Any]] = {}
    """Language models learn with what the run says of `epsilon`, `epsilon_high` and `loss_type`."""
    of_run: ClassVar[Sequence[str]] = ("epsilon", "epsilon_high", "beta", "loss_type", "num_iterations")  # fmt: skip

    learning_rate: float = 1.0
    epsilon: float = 0.2
    epsilon_high: float = 0.28
    beta: float = 0.0
    """Weight of the KL divergence from the uniform policy that training began with."""
    loss_type: Literal["grpo", "dapo", "dr_grpo"] = "dapo"
    """"grpo" and "dapo" are the mean over all draws, since answers are equally long here. "dr_grpo" (2503.20783) does not
    divide advantages by the group's deviation."""
    num_iterations: int = 1

    def update(self, policy: SoftmaxPolicy, samples: Sequence[Sample]) -> dict[str, float]:
        """See `Algorithm.update`."""
        losses: list[float] = []
        clipped: list[float] = []
        for key, batch in by_table(samples).items():
            advantages = group_advantages(batch, scale=self.loss_type != "dr_grpo")
            if not advantages.any():
                continue
            uniform = np.zeros_like(policy.logits[key])
            old, reference = log_probs(policy, key, batch), log_probs(policy, key, batch, uniform)
            for _ in range(self.num_iterations):
                new = log_probs(policy, key, batch)
                loss, slopes, stopped = clipped_loss(
                    new - old, advantages[:, None], self.epsilon, self.epsilon_high
                )
                kl, kl_slopes = k3(new - reference)
                slopes = (slopes + self.beta * kl_slopes) / new.size
                descend(policy, key, batch, self.learning_rate * slopes)
                losses.append(float((loss + self.beta * kl).mean()))
                clipped.append(float(stopped.mean()))
        return {"loss": mean(losses), "clip_ratio": mean(clipped)}
