"""REINFORCE with a baseline, for both players, in NumPy: the smallest algorithm that plays codea1-suite.

python examples/suite_bandit.py --ids rare-faults/0 --record runs/bandit    # seeds 0 and 1 of one id, recorded
python examples/suite_bandit.py --seeds 10 --record runs/bandit             # all of track both
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from codea1_env import suite

GAMES = 256


class Player:
    """A softmax that is linear in what the player sees; each of its `draws` actions is drawn from it."""

    def __init__(self, inputs: int, actions: int, draws: int, rate: float, seed: int) -> None:
        self.weights = np.zeros((inputs, actions))
        self.draws, self.rate, self.rng = draws, rate, np.random.default_rng(seed)

    def act(self, seen: Any) -> Any:
        """Draw the actions of all games, shape (games, draws)."""
        logits = seen @ self.weights
        self.seen, chances = seen, np.exp(logits - logits.max(axis=1, keepdims=True))
        self.chances = chances / chances.sum(axis=1, keepdims=True)
        levels = self.rng.random((len(seen), self.draws, 1))
        below = (self.chances.cumsum(axis=1)[:, None] < levels).sum(axis=2)
        self.drawn = np.minimum(below, chances.shape[1] - 1)
        return self.drawn

    def learn(self, rewards: Any) -> None:
        """Take a step up the rewards, less those that the same observations earned in this batch."""
        _, same = np.unique(self.seen, axis=0, return_inverse=True)
        baseline = (np.bincount(same, rewards) / np.bincount(same))[same]
        advantage = (rewards - baseline) / (rewards.std() + 1e-4)
        slopes = -self.draws * self.chances
        np.add.at(slopes, (np.arange(len(rewards))[:, None], self.drawn), 1.0)
        self.weights += self.rate / GAMES * self.seen.T @ (slopes * advantage[:, None])


def train(games: Any, seed: int, episodes: int, rates: tuple[float, float]) -> None:
    """Play an id to its end, or for some episodes."""
    sees_coder, programs = games.spaces["coder"]
    sees_tester, tests = games.spaces["tester"]
    coder = Player(sees_coder.shape[0], programs.n, 1, rates[0], 2 * seed)
    tester = Player(sees_tester.shape[0], tests.nvec[0], len(tests.nvec), rates[1], 2 * seed + 1)
    for _ in range(0, episodes, GAMES):
        chosen = coder.act(games.begin())[:, 0]
        suites = tester.act(games.show(chosen))
        for player, rewards in zip((coder, tester), games.end(suites), strict=True):
            player.learn(rewards)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ids", nargs="+", default=suite.IDS["v1"])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=0, help="1000 for tuning")
    parser.add_argument("--record", help="folder of the submission")
    parser.add_argument("--episodes", type=int, help="fewer, for a trial")
    parser.add_argument("--rates", type=float, nargs=2, default=(8.0, 32.0))
    asked = parser.parse_args()
    for id in asked.ids:
        for seed in range(asked.first_seed, asked.first_seed + asked.seeds):
            games = suite.make(id, seed, record=asked.record, api="vector", num_envs=GAMES)
            train(games, seed, asked.episodes or suite.episodes(id), tuple(asked.rates))
            games.close()
            print(f"{id} seed {seed}: played")
