"""Learning players without a language model: real algorithms, on a CPU, in seconds.

A tabular player chooses from a pool of ready answers instead of writing them. It learns by the same rewards,
groups and losses as a language model, so the game and the algorithms can be studied without one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from codea1_env.agents.policy import Algorithm, Sample, SoftmaxPolicy, updated
from codea1_env.agents.pools import Pool
from codea1_env.agents.protocols import Experience
from codea1_env.agents.scripted import TEST_SEPARATOR
from codea1_env.agents.state import ByPrompt, of_other_pools, read_json, rng_state, write_json
from codea1_env.spaces import Observation


class TabularAgent:
    r"""A softmax over the pool of each problem, trained by a policy-gradient algorithm.

    Args:
        pools: One pool per problem.
        algorithm: What turns rewards into new logits.
        rng: The player's own random generator.
        draws: Items of an answer: 1 for a coder, the number of tests for a tester.

    Example:
        >>> from codea1_env.agents.grpo import GRPO
        >>> from codea1_env.problems import Problem
        >>> from codea1_env.spaces import observe
        >>> problem = Problem("one", "def one():", "one", "def one():\n    return 1\n")
        >>> pool = Pool(problem, ("right", "wrong"))
        >>> coder = TabularAgent([pool], GRPO(), np.random.default_rng(0))
        >>> for _ in range(20):
        ...     answers = coder.act([observe(problem)] * 4)
        ...     _ = coder.learn([Experience(observe(problem), a, float(a == "right"), "g") for a in answers])
        >>> coder.act([observe(problem)] * 4)
        ['right', 'right', 'right', 'right']
    """

    def __init__(
        self,
        pools: Sequence[Pool],
        algorithm: Algorithm,
        rng: np.random.Generator,
        draws: int = 1,
    ) -> None:
        twice = [pool.problem.task_id for pool in pools if len(set(pool.items)) < len(pool.items)]
        if twice:
            raise ValueError(f"Expect the items of a pool to differ, actually not in: {twice[0]!r}")
        self.algorithm = algorithm
        self.rng = rng
        self._problems = ByPrompt(pool.problem for pool in pools)
        self._pools = {pool.problem.task_id: pool for pool in pools}
        self._index = {
            key: {item: index for index, item in enumerate(pool.items)}
            for key, pool in self._pools.items()
        }
        sizes = {key: len(pool.items) for key, pool in self._pools.items()}
        self.policy = SoftmaxPolicy(sizes, draws)

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Draw one answer for each observation."""
        answers = []
        for observation in observations:
            key = self._problems[observation].task_id
            drawn = self.policy.draw(key, self.rng)
            answers.append(TEST_SEPARATOR.join(self._pools[key].items[index] for index in drawn))
        return answers

    def learn(self, experience: Sequence[Experience]) -> Mapping[str, float]:
        """Update the tables of the problems that were played."""
        samples = [self._sample(item) for item in experience]
        metrics = updated(self.algorithm, self.policy, samples)
        tables = sorted({sample.key for sample in samples})
        if tables:
            metrics["entropy"] = float(np.mean([self.policy.entropy(key) for key in tables]))
        return metrics

    def imitate(self, demonstrations: Sequence[Experience]) -> Mapping[str, float]:
        """Take one step of supervised learning: the gradient of the mean log-probability of the draws.

        Items that are in no pool are skipped. The step size is that of the algorithm.
        """
        rows: dict[str, list[tuple[int, ...]]] = {}
        for item in demonstrations:
            key = self._problems[item.observation].task_id
            parts = item.action.split(TEST_SEPARATOR)
            drawn = tuple(self._index[key][part] for part in parts if part in self._index[key])
            if drawn:
                rows.setdefault(key, []).append(drawn)
        losses = []
        for key, answers in rows.items():
            gradient = np.concatenate([self.policy.gradients(key, drawn) for drawn in answers])
            log_probs = [self.policy.log_probs(key, drawn) for drawn in answers]
            losses.append(-float(np.concatenate(log_probs).mean()))
            self.policy.logits[key] += self.algorithm.learning_rate * gradient.mean(axis=0)
        return {"loss": float(np.mean(losses)) if losses else 0.0}

    def save(self, path: Path) -> None:
        """Write the tables and the state of the random generator."""
        tables = {
            key: {"logits": logits.tolist(), "pool": self._pools[key].fingerprint}
            for key, logits in self.policy.logits.items()
        }
        write_json(path / "tabular.json", {"tables": tables, "rng": rng_state(self.rng)})

    def load(self, path: Path) -> None:
        """Restore what `save` wrote.

        Raises:
            ValueError: It was saved by a player with other pools.
        """
        state = read_json(path / "tabular.json")
        saved = {key: table["pool"] for key, table in state["tables"].items()}
        if saved != {key: pool.fingerprint for key, pool in self._pools.items()}:
            raise of_other_pools(path)
        for key, table in state["tables"].items():
            self.policy.logits[key] = np.array(table["logits"], dtype=np.float64)
        self.rng.bit_generator.state = state["rng"]

    def _sample(self, item: Experience) -> Sample:
        key = self._problems[item.observation].task_id
        parts = item.action.split(TEST_SEPARATOR) if self.policy.draws > 1 else [item.action]
        try:
            drawn = tuple(self._index[key][part] for part in parts)
        except KeyError as error:
            raise ValueError(
                f"Expect experience with answers of this player, actually: {error.args[0]!r:.200}"
            ) from error
        return Sample(key, drawn, item.reward, item.group)
