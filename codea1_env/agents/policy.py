"""The policy of the tabular agents: softmax tables, drawn from without replacement."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from codea1_env.support.plugins import explained

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Sample:
    """One answer of a policy and what it earned."""

    key: str
    """The table that the answer was drawn from."""
    drawn: tuple[int, ...]
    """Indices of the drawn items, in order."""
    reward: float | None
    """None: the answer could not be scored."""
    group: str
    """Answers of one group had the same question and are compared with each other."""


CARRIED = 0.5
"""Share of what is learned against a program that goes to all programs of its question."""
MAX_SHOWN = 1024
"""Texts of a question that have a table of their own; later ones share tables by their hash."""
_BUCKETS = 64


class SoftmaxPolicy:
    """Draws items from a table by the softmax of its logits, without replacement.

    A question may come with a text that is shown beside it, such as the program that a tester attacks. The logits
    are then a sum: the table of the question, and one for this text. What is learned against one program is divided
    between both. An answer of K items is drawn as Plackett and Luce do: each draw is a softmax over the items left.

    Args:
        sizes: Number of items of every table. All items start equally likely.
        draws: Items of an answer, or fewer if a table is smaller.
        carried: Share of what is learned against a program that goes to the question's table.

    Example:
        >>> policy = SoftmaxPolicy({"a": 4}, draws=2)
        >>> np.exp(policy.log_probs("a", (3, 1))).round(2).tolist()
        [0.25, 0.33]
        >>> key = policy.table("a", "the text of a program")
        >>> before = {key: policy.logits[key].copy()}
        >>> policy.logits[key][2] += 1.0
        >>> policy.settle(before)
        >>> [float(policy.logits[each][2]) for each in (key, policy.table("a", "another"))]
        [1.0, 0.5]
    """

    def __init__(self, sizes: Mapping[str, int], draws: int = 1, carried: float = CARRIED) -> None:
        self.draws, self.carried = draws, carried
        self.logits: dict[str, Floats] = {key: np.zeros(size) for key, size in sizes.items()}
        """Key of a table -> its logits; of one with a text the sum, which `table` makes anew."""
        self._shown: dict[str, Floats] = {}
        self._question_of: dict[str, str] = {}
        self._texts: Counter[str] = Counter()

    def table(self, question: str, shown: str = "") -> str:
        """Return the key of the table for a question and the text that is shown beside it, "" for none."""
        if not shown:
            return question
        digest = hashlib.sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        key = f"{question}, shown {digest}"
        if key not in self._shown and self._texts[question] >= MAX_SHOWN:
            key = f"{question}, shown one of {int(digest, 16) % _BUCKETS}"
        self._question_of[key] = question
        self.logits[key] = self.logits[question] + self._shown.get(key, 0.0)
        return key

    def settle(self, before: Mapping[str, Floats]) -> None:
        """Divide what was learned on tables with a text between their two parts; `before` has their logits before that."""
        shown = {key: self._question_of[key] for key in before if key in self._question_of}
        for key, question in shown.items():
            change = self.logits[key] - before[key]
            if key not in self._shown:
                self._shown[key] = np.zeros_like(change)
                self._texts[question] += 1
            self._shown[key] += (1 - self.carried) * change
            self.logits[question] += self.carried * change
        for key, question in shown.items():
            self.logits[key] = self.logits[question] + self._shown[key]

    def state_dict(self) -> dict[str, dict[str, Any]]:
        """Return all tables as plain data."""
        questions = (key for key in self.logits if key not in self._question_of)
        return {
            "questions": {key: self.logits[key].tolist() for key in questions},
            "shown": {
                key: [self._question_of[key], part.tolist()] for key, part in self._shown.items()
            },
        }

    def load_state_dict(self, state: Mapping[str, Mapping[str, Any]]) -> None:
        """Restore what `state_dict` returned, for the same questions."""
        self.logits = {key: np.array(row, np.float64) for key, row in state["questions"].items()}
        self._shown = {key: np.array(row, np.float64) for key, (_, row) in state["shown"].items()}
        self._question_of = {key: question for key, (question, _) in state["shown"].items()}
        self._texts = Counter(self._question_of.values())

    def draw(self, key: str, rng: np.random.Generator) -> tuple[int, ...]:
        """Draw one answer (the Gumbel-max trick: the largest perturbed logits are such a sample)."""
        logits = self.logits[key]
        noisy = logits + rng.gumbel(size=len(logits))
        return tuple(int(index) for index in np.argsort(-noisy, kind="stable")[: self.draws])

    def log_probs(self, key: str, drawn: Sequence[int], logits: Floats | None = None) -> Floats:
        """Log-probability of each draw, given those before it. `logits` replaces the table."""
        left = (self.logits[key] if logits is None else logits).copy()
        log_probs = np.empty(len(drawn))
        for position, index in enumerate(drawn):
            log_probs[position] = left[index] - _log_sum_exp(left)
            left[index] = -np.inf
        return log_probs

    def gradients(self, key: str, drawn: Sequence[int]) -> Floats:
        """Return the derivatives of `log_probs` with respect to the logits: one row per draw."""
        left = self.logits[key].copy()
        rows = np.zeros((len(drawn), len(left)))
        for row, index in zip(rows, drawn, strict=True):
            row -= np.exp(left - _log_sum_exp(left))
            row[index] += 1.0
            left[index] = -np.inf
        return rows

    def probabilities(self, key: str) -> Floats:
        """Probability of each item to be drawn first."""
        logits = self.logits[key]
        return np.exp(logits - _log_sum_exp(logits))

    def answers(self, question: str, shown: Sequence[str]) -> Floats:
        """Probabilities of the items, a row for each text that may be shown beside the question."""
        keys = [self.table(question, text) for text in shown]
        return np.array([self.probabilities(key) for key in keys])

    def entropy(self, key: str) -> float:
        """Entropy of the first draw, in nats."""
        chances = self.probabilities(key)
        chances = chances[chances > 0]
        return float(-(chances * np.log(chances)).sum())


class Algorithm(Protocol):
    """What turns samples into better tables. An implementation is registered in `ALGORITHMS`.

    One that has `advantages` needs no `update`: see `policy_gradient`.
    """

    @property
    def learning_rate(self) -> float:
        """Step size."""
        ...

    def update(self, policy: SoftmaxPolicy, samples: Sequence[Sample]) -> Mapping[str, float]:
        """Change the logits of the tables that the samples came from; return metrics."""
        ...


class AlgorithmError(TypeError):
    """An algorithm of yours does not return what it must, or breaks the policy."""


def updated(algorithm: Any, policy: SoftmaxPolicy, samples: Sequence[Sample]) -> dict[str, float]:
    """Let an algorithm change the policy, and return its metrics. Raises an AlgorithmError if it breaks either."""
    before = {sample.key: policy.logits[sample.key].copy() for sample in samples}
    if hasattr(algorithm, "update"):
        with explained(type(algorithm), "update", AlgorithmError):
            metrics = algorithm.update(policy, samples)
    else:
        with explained(type(algorithm), "advantages", AlgorithmError):
            metrics = policy_gradient(
                policy, samples, algorithm.advantages, algorithm.learning_rate
            )
    for key, old in before.items():
        table = np.asarray(policy.logits.get(key), dtype=float)
        if table.shape != old.shape or not np.isfinite(table).all():
            raise AlgorithmError(
                f"Expect {type(algorithm).__name__}.update to leave finite logits of shape {old.shape} for {key!r}, actually: "
                f"shape {table.shape}, {table!r:.100}. Is the step too large, or a reward None?"
            )
    check_metrics(f"{type(algorithm).__name__}.update", metrics, AlgorithmError)
    policy.settle(before)
    return dict(metrics)


def check_metrics(name: str, metrics: Any, error: type[Exception]) -> None:
    """Raise an error if what a function of a player or an algorithm returned is no finite numbers by name."""
    if not isinstance(metrics, Mapping):
        raise error(
            f"Expect {name} to return metrics, a mapping of str to float, actually: {type(metrics)}. "
            "Return {} if there are none."
        )
    for key, value in metrics.items():
        number = isinstance(value, (int, float, np.number))
        if not (isinstance(key, str) and number and math.isfinite(value)):
            raise error(
                f"Expect {name} to return finite numbers by name, actually: {key!r}: {value!r}"
            )


def checked_advantages(find: Callable[[Floats], Floats], rewards: Floats) -> Floats:
    """Let an algorithm's `advantages` find those of answers; of one without reward (NaN) it is 0.

    Raises an AlgorithmError if that is not one finite number for each reward.
    """
    found = np.asarray(find(rewards.copy()))
    what = ""
    if found.shape != rewards.shape or found.dtype.kind not in "fiub":
        what = f"{found.dtype} of shape {found.shape}"
    elif not np.isfinite(found[~np.isnan(rewards)]).all():
        what = "NaN or infinite values for answers that have a reward"
    if what:
        raise AlgorithmError(
            f"Expect {find.__qualname__} to return an array of finite numbers of the rewards' shape {rewards.shape}, "
            f"actually: {what}. Is a reward NaN (an answer without one), or a group of equal rewards divided by its deviation?"
        )
    return np.where(np.isnan(rewards), 0.0, found)


def in_groups(samples: Sequence[Sample], find: Callable[[Floats], Floats]) -> Floats:
    """Find the advantages of samples by a function of whole groups, as `checked_advantages` wants it."""
    groups, rewards = by_group(samples), rewards_of(samples)
    table = np.full((len(groups), max(map(len, groups), default=0)), np.nan)
    for row, members in zip(table, groups, strict=True):
        row[: len(members)] = rewards[members]
    found = checked_advantages(find, table)
    advantages = np.zeros(len(rewards))
    for row, members in zip(found, groups, strict=True):
        advantages[members] = row[: len(members)]
    return advantages


def by_table(samples: Sequence[Sample]) -> dict[str, list[Sample]]:
    """Sort the scorable samples by table. Each table is a model of its own, and its samples one batch."""
    tables: dict[str, list[Sample]] = {}
    for sample in samples:
        if sample.reward is not None:
            tables.setdefault(sample.key, []).append(sample)
    return tables


def by_group(samples: Sequence[Sample]) -> list[list[int]]:
    """Return indices of the samples of each group."""
    groups: dict[str, list[int]] = {}
    for index, sample in enumerate(samples):
        groups.setdefault(sample.group, []).append(index)
    return list(groups.values())


def rewards_of(samples: Sequence[Sample]) -> Floats:
    """Rewards as an array; NaN where a sample could not be scored."""
    return np.array([np.nan if s.reward is None else s.reward for s in samples], dtype=np.float64)


def _log_sum_exp(values: Floats) -> float:
    top = values.max()
    return float(top + np.log(np.exp(values - top).sum()))


def group_advantages(samples: Sequence[Sample], *, scale: bool = True) -> Floats:
    """Reward minus the group's mean, over its deviation (of the sample, plus 1e-4, as in TRL).

    Unscorable answers get 0 and do not count for the others.

    Example:
        >>> rewards = [1.0, 0.0, None, 0.5]
        >>> group = [Sample("t", (0,), reward, "g") for reward in rewards]
        >>> group_advantages(group).round(3).tolist()
        [1.0, -1.0, 0.0, 0.0]
    """
    rewards = rewards_of(samples)
    advantages = np.zeros(len(rewards))
    for members in by_group(samples):
        scored = [index for index in members if not np.isnan(rewards[index])]
        group = rewards[scored]
        if len(group) < 2 or np.all(group == group[0]):
            continue
        centred = group - group.mean()
        advantages[scored] = centred / (group.std(ddof=1) + 1e-4) if scale else centred
    return advantages


def clipped_loss(
    log_ratio: Floats, advantage: Floats | float, epsilon: float, epsilon_high: float
) -> tuple[Floats, Floats, Floats]:
    """Loss of each draw, its derivative by the draw's log-probability, and 1 where clipping stopped it.

    Example:
        >>> ratio = np.array([0.5, 1.0, 1.5])
        >>> loss, slope, stopped = clipped_loss(np.log(ratio), 1.0, 0.2, 0.28)
        >>> print(loss, stopped)
        [-0.5  -1.   -1.28] [0. 0. 1.]
    """
    ratio = np.exp(log_ratio)
    free = ratio * advantage
    bound = np.clip(ratio, 1 - epsilon, 1 + epsilon_high) * advantage
    stopped = bound < free
    return -np.minimum(free, bound), np.where(stopped, 0.0, -free), stopped.astype(np.float64)


def k3(log_ratio: Floats) -> tuple[Floats, Floats]:
    """Schulman's estimate of the KL divergence of each draw, exp(-x) - 1 + x, and its derivative."""
    return np.exp(-log_ratio) - 1 + log_ratio, 1 - np.exp(-log_ratio)


def entropy_gradient(policy: SoftmaxPolicy, key: str) -> Floats:
    """Return the derivative of the entropy of the first draw by the logits."""
    chances = policy.probabilities(key)
    gradient: Floats = -chances * (np.log(np.maximum(chances, 1e-300)) + policy.entropy(key))
    return gradient


def log_probs(
    policy: SoftmaxPolicy, key: str, batch: Sequence[Sample], logits: Floats | None = None
) -> Floats:
    """Log-probabilities of the draws of a batch, one row per answer. `logits` replaces the table."""
    return np.array([policy.log_probs(key, sample.drawn, logits) for sample in batch])


def descend(policy: SoftmaxPolicy, key: str, batch: Sequence[Sample], slopes: Floats) -> None:
    """Change a table against the slopes of a loss by the log-probabilities of its draws."""
    rows = zip(slopes, batch, strict=True)
    policy.logits[key] -= sum(row @ policy.gradients(key, sample.drawn) for row, sample in rows)


def mean(values: Sequence[float]) -> float:
    """Mean of values; 0 if there are none."""
    return float(np.mean(values)) if values else 0.0


def gradient_step(
    policy: SoftmaxPolicy, key: str, batch: Sequence[Sample], weights: Floats, rate: float
) -> float:
    """Take one step of the policy gradient on a table; returns the loss before it."""
    gradient, loss = np.zeros_like(policy.logits[key]), 0.0
    for sample, weight in zip(batch, weights, strict=True):
        loss -= weight * policy.log_probs(key, sample.drawn).sum() / len(batch)
        gradient -= weight * policy.gradients(key, sample.drawn).sum(axis=0) / len(batch)
    policy.logits[key] -= rate * gradient
    return loss


def policy_gradient(
    policy: SoftmaxPolicy,
    samples: Sequence[Sample],
    advantages: Callable[[Floats], Floats],
    rate: float,
    *,
    per_draw: bool = True,
) -> dict[str, float]:
    """Take one step of the policy gradient on all tables, with the advantages of a batch.

    Args:
        policy: The tables.
        samples: The batch. Answers without a reward are left out.
        advantages: Rewards of shape (groups, size of a group) -> advantages.
        rate: Step size.
        per_draw: Whether a sample weighs the mean of its draws, as in GRPO, and not their sum.

    Example:
        >>> policy = SoftmaxPolicy({"t": 3})
        >>> batch = [Sample("t", (0,), 1.0, "g"), Sample("t", (1,), 0.0, "g")]
        >>> metrics = policy_gradient(policy, batch, lambda rewards: rewards - rewards.mean(1), rate=1.0)
        >>> policy.logits["t"].tolist()
        [0.25, -0.25, 0.0]
    """
    scored = [sample for sample in samples if sample.reward is not None]
    weights = in_groups(scored, advantages)
    if per_draw:
        weights = weights / [len(sample.drawn) for sample in scored]
    losses = []
    for key, batch in by_table(scored).items():
        own = weights[[sample.key == key for sample in scored]]
        losses.append(gradient_step(policy, key, batch, own, rate))
    return {"loss": mean(losses)}


def check_ranges(algorithm: Any, **fits: bool) -> None:
    """Raise a ValueError for the first hyperparameter that does not fit."""
    for name, right in fits.items():
        if not right:
            raise ValueError(f"Expect {name} in its range, actually: {getattr(algorithm, name)!r}")
