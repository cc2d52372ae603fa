"""The algorithms by name, for tabular players and for language models alike.

An algorithm is a class. Its hyperparameters are its own: their defaults, or what `--algorithm-args` says. Of the run it gets
`learning_rate`, and what its `of_run` names. Tabular players need

- `update(policy, samples) -> metrics`, which changes the tables (`codea1_env.agents.policy`).

Language models are trained by TRL's GRPOTrainer, as far as the class does not say otherwise with

- `trainer`: fields of `trl.GRPOConfig`;
- `advantages(rewards) -> advantages`: arrays of shape (groups, size of a group), NaN for an answer without reward;
- `loss(log_probs, old_log_probs, advantages, mask) -> loss`: tensors of shape (answers, tokens), but for the advantages,
  which have one column, and the loss, which is one number.

Either may have `extra_rounds`, the rounds in which groups that teach nothing are replaced (dynamic sampling). One
that remembers something has `state_dict` and `load_state_dict`: plain data, arrays or tensors, which come back as lists.
"""

from __future__ import annotations

import difflib
import inspect
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from codea1_env.agents.policy import (
    Floats,
    Sample,
    SoftmaxPolicy,
    by_group,
    by_table,
    clipped_loss,
    descend,
    entropy_gradient,
    gradient_step,
    group_advantages,
    in_groups,
    k3,
    log_probs,
    mean,
    rewards_of,
)
from codea1_env.agents.state import load_saved_state, saved_state
from codea1_env.support.plugins import explained, find_class

Player = Literal["tabular", "llm"]
"""What learns."""

_FORMS: Mapping[Player, tuple[str, ...]] = {
    "tabular": ("update",),
    "llm": ("trainer", "advantages", "loss"),
}
_WORDS = {"tabular": "tabular players", "llm": "language models"}


def _check_ranges(algorithm: Any, **fits: bool) -> None:
    for name, right in fits.items():
        if not right:
            raise ValueError(f"Expect {name} in its range, actually: {getattr(algorithm, name)!r}")


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


@dataclass(frozen=True)
class DAPO(GRPO):
    """DAPO (Yu et al. 2025, arXiv 2503.14476): asymmetric clipping, the mean over tokens, and dynamic sampling.

    Groups whose rewards are all equal are replaced by groups of other problems. A language model's answers that were cut
    off are left out of the loss (overlong filtering).
    """

    trainer: ClassVar[Mapping[str, Any]] = {
        "loss_type": "dapo",
        "epsilon": 0.2,
        "epsilon_high": 0.28,
        "mask_truncated_completions": True,
    }
    extra_rounds: ClassVar[int] = 3


@dataclass(frozen=True)
class DrGRPO(GRPO):
    """Dr. GRPO (Liu et al. 2025, arXiv 2503.20783): advantages are not divided by the group's deviation, nor losses by length."""

    trainer: ClassVar[Mapping[str, Any]] = {"loss_type": "dr_grpo", "scale_rewards": "none"}


class GSPO:
    """Group sequence policy optimisation (Zheng et al. 2025, arXiv 2507.18071).

    One probability ratio for an answer, the geometric mean of its tokens', and so much narrower bounds.
    """

    trainer: Mapping[str, Any] = {
        "importance_sampling_level": "sequence",
        "loss_type": "grpo",
        "epsilon": 3e-4,
        "epsilon_high": 4e-4,
    }


class CISPO:
    """Clipped importance sampling (MiniMax-M1, arXiv 2506.13585; the bound of ScaleRL, 2510.13786).

    Ratios are weights, clipped from above; no token's gradient is cut off.
    """

    trainer: Mapping[str, Any] = {"loss_type": "cispo", "epsilon_high": 5.0}


@dataclass(frozen=True)
class RLOO:
    """RLOO (Kool et al. 2019; Ahmadian et al. 2024, arXiv 2402.14740).

    The plain policy gradient of the whole answer, with the mean reward of the group's *other* answers as the baseline.
    """

    trainer: ClassVar[Mapping[str, Any]] = {
        # The length of an answer times its mean log-ratio: the slope is that of the answer's log-probability.
        "loss_type": "luspo",
        "importance_sampling_level": "sequence",
    }

    learning_rate: float = 1.0

    def update(self, policy: SoftmaxPolicy, samples: Sequence[Sample]) -> dict[str, float]:
        """See `Algorithm.update`."""
        losses = [
            gradient_step(policy, key, batch, in_groups(batch, self.advantages), self.learning_rate)
            for key, batch in by_table(samples).items()
        ]
        return {"loss": mean(losses)}

    def advantages(self, rewards: Floats) -> Floats:
        """Reward minus the mean reward of the group's other answers; 0 for a group of one.

        Example:
            >>> RLOO().advantages(np.array([[1.0, 0.0, np.nan, 0.5], [np.nan, np.nan, np.nan, 1.0]])).tolist()
            [[0.75, -0.75, nan, 0.0], [nan, nan, nan, 0.0]]
        """
        number = np.sum(~np.isnan(rewards), axis=1, keepdims=True)
        others = np.nansum(rewards, axis=1, keepdims=True) - rewards
        return np.where(number < 2, 0.0 * rewards, rewards - others / np.maximum(number - 1, 1))


@dataclass(frozen=True)
class ReinforcePlusPlus:
    """REINFORCE++ (Hu 2025, arXiv 2501.03262), which needs no group: the baseline and the scale are those of the batch.

    The gradient is noisier than with a group's baseline.
    """

    trainer: ClassVar[Mapping[str, Any]] = {
        "loss_type": "dapo",
        "epsilon": 0.2,
        "epsilon_high": 0.2,
    }

    learning_rate: float = 1.0

    def update(self, policy: SoftmaxPolicy, samples: Sequence[Sample]) -> dict[str, float]:
        """See `Algorithm.update`."""
        scored = [sample for sample in samples if sample.reward is not None]
        # As GRPO: the mean over the draws of an answer.
        weights = in_groups(scored, self.advantages) / [len(sample.drawn) for sample in scored]
        losses = []
        for key, batch in by_table(scored).items():
            own = weights[[sample.key == key for sample in scored]]
            losses.append(gradient_step(policy, key, batch, own, self.learning_rate))
        return {"loss": mean(losses)}

    def advantages(self, rewards: Floats) -> Floats:
        """Reward minus the mean of the batch, over the deviation of the batch (of the sample, plus 1e-4, as in TRL).

        Example:
            >>> ReinforcePlusPlus().advantages(np.array([[1.0, 0.0], [np.nan, 0.5]])).round(2).tolist()
            [[1.0, -1.0], [nan, 0.0]]
        """
        scored = rewards[~np.isnan(rewards)]
        if len(scored) < 2 or np.all(scored == scored[0]):
            return 0.0 * rewards
        advantages: Floats = (rewards - scored.mean()) / (scored.std(ddof=1) + 1e-4)
        return advantages


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
        _check_ranges(
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


@dataclass(frozen=True)
class Reinforce:
    """REINFORCE (Williams 1992): the policy gradient of the reward itself, without any baseline."""

    learning_rate: float = 1.0
    entropy: float = 0.0
    """Weight of the entropy of an answer's first draw."""

    def __post_init__(self) -> None:
        _check_ranges(self, entropy=0 <= self.entropy < math.inf)

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


ALGORITHMS: dict[str, Callable[..., Any]] = {
    "grpo": GRPO,
    "dapo": DAPO,
    "dr_grpo": DrGRPO,
    "gspo": GSPO,
    "cispo": CISPO,
    "rloo": RLOO,
    "reinforce++": ReinforcePlusPlus,
    "reinforce": Reinforce,
    "ppo": PPO,
    "rrtf": RRTF,
}
"""Name -> class. Add a class here, and `TrainConfig(algorithm=...)` finds it."""


def teaches(kind: Any, player: Player) -> bool:
    """Whether an algorithm has what players of a kind need.

    Example:
        >>> [name for name, kind in ALGORITHMS.items() if not teaches(kind, "tabular")]
        ['gspo', 'cispo']
    """
    return any(hasattr(kind, name) for name in _FORMS[player])


def make_algorithm(
    name: str,
    settings: Mapping[str, Any],
    player: Player = "tabular",
    own: Mapping[str, Any] | None = None,
) -> Any:
    """Make an algorithm.

    Args:
        name: One of `ALGORITHMS`, or `module:Class` or `FILE.py:Class` for one of your own.
        settings: Settings of the run, of which it gets `learning_rate` and those that its `of_run` names.
        player: Kind of player that is to learn.
        own: Its own hyperparameters, which go before its `trainer`, and that before the settings.

    Raises:
        ValueError: It cannot be had for such players, or with such hyperparameters.

    Example:
        >>> make_algorithm("rloo", {"learning_rate": 0.5, "epsilon": 0.2})
        RLOO(learning_rate=0.5)
        >>> make_algorithm("reinforce", {"learning_rate": 0.5}, own={"entropy": 0.02})
        Reinforce(learning_rate=0.5, entropy=0.02)
    """
    if name not in ALGORITHMS and ":" not in name:
        raise ValueError(no_algorithm("the algorithm", name))
    kind: Callable[..., Any] = ALGORITHMS[name] if name in ALGORITHMS else find_class(name)
    if not teaches(kind, player):
        able = ", ".join(each for each, one in ALGORITHMS.items() if teaches(one, player))
        raise ValueError(
            f"Expect an algorithm for {_WORDS[player]}: {able}, or a class with {' or '.join(_FORMS[player])}; actually: "
            f"{name!r}, which has none. (A class with act and learn is a player, no algorithm.)"
        )
    own = own or {}
    known = inspect.signature(kind).parameters
    open_ended = any(each.kind is each.VAR_KEYWORD for each in known.values())
    if not open_ended and (strange := [key for key in own if key not in known]):
        near = difflib.get_close_matches(strange[0], known, n=1)
        raise ValueError(
            f"Expect hyperparameters of {name} ({', '.join(known) or 'it has none'}), actually: {strange[0]!r:.60}"
            + (f". Did you mean {near[0]}?" if near else "")
        )
    of_run = {"learning_rate", *getattr(kind, "of_run", ())}
    given = {key: settings[key] for key in of_run & settings.keys()}
    given |= {**getattr(kind, "trainer", {}), **own}
    unknown = [each for each in required_parameters(kind) if each not in given]
    if unknown:
        raise ValueError(
            f"Expect {name} to be made from learning_rate and its own hyperparameters, actually it needs: "
            f"{', '.join(unknown)}. Give these a default, or say them with --algorithm-args"
        )
    with explained(kind if isinstance(kind, type) else type(kind), "__init__", ValueError):
        made = kind(**{key: given[key] for key in sorted(given) if key in known or key in own})
    rounds = getattr(made, "extra_rounds", 0)
    if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 0:
        raise ValueError(
            f"Expect extra_rounds of {name} to be a number of rounds, 0 or more, actually: {rounds!r:.200}"
        )
    # What cannot be saved or loaded is an error now, not at a checkpoint.
    load_saved_state(made, saved_state(made))
    return made


def no_algorithm(place: str, name: str) -> str:
    """Say that there is no algorithm of this name, and which may be meant."""
    near = difflib.get_close_matches(name.replace("-", "_"), ALGORITHMS, n=1)
    hint = f". Did you mean {near[0]}?" if near else ""
    known = ", ".join(ALGORITHMS)
    return f"Expect {place} to be one of {known}, module:Class or FILE.py:Class, actually: {name!r}{hint}"


def required_parameters(make: Callable[..., Any]) -> list[str]:
    """Names of the parameters without which a class or function cannot be called."""
    return [
        each.name
        for each in inspect.signature(make).parameters.values()
        if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
