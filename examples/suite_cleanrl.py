"""PPO for both players of codea1-suite, in torch, in one file that reads from top to bottom, as CleanRL's do.

    python examples/suite_cleanrl.py --ids rare-faults/0 --seeds 1                          # a trial, without a record
    python examples/suite_cleanrl.py --ids rare-faults/0 --seeds 10 --record runs/cleanrl   # a record of each seed
    codea1 suite score runs/cleanrl                                                         # after tuning: docs/suite.md

An episode is one decision of each player, so that there is nothing to discount: the return is the reward.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.distributions import Categorical

from codea1_env import suite


@dataclass
class Args:
    """Hyperparameters, the same for both players."""

    games: int = 256
    """Episodes of an update."""
    hidden: int = 64
    """Units of the layer of the value network; the policy is linear."""
    learning_rate: float = 0.03
    epochs: int = 4
    """Passes over the episodes of an update."""
    clip: float = 0.2
    entropy: float = 0.001
    value_weight: float = 0.5


class Agent(nn.Module):  # type: ignore[misc]  # torch is not read by mypy here
    """A policy over `choices`, from which `draws` actions are drawn, and a value."""

    def __init__(self, inputs: int, choices: int, draws: int, args: Args) -> None:
        super().__init__()
        self.args, self.draws = args, draws
        self.policy = nn.Linear(inputs, choices)
        nn.init.zeros_(self.policy.weight)
        nn.init.zeros_(self.policy.bias)
        self.value = nn.Sequential(
            nn.Linear(inputs, args.hidden), nn.Tanh(), nn.Linear(args.hidden, 1)
        )
        self.optimizer = torch.optim.Adam(self.parameters(), lr=args.learning_rate, eps=1e-5)

    def act(self, seen: Any) -> Any:
        """Draw actions for all games, shape (games, draws)."""
        self.seen = torch.as_tensor(seen)
        with torch.no_grad():
            policy = Categorical(logits=self.policy(self.seen))
            self.drawn = policy.sample((self.draws,)).T
            self.before = policy.log_prob(self.drawn.T).T
        return self.drawn.numpy()

    def learn(self, rewards: Any) -> None:
        """Take the steps of PPO on what the last actions earned."""
        earned = torch.as_tensor(rewards, dtype=torch.float32)
        with torch.no_grad():
            advantage = earned - self.value(self.seen)[:, 0]
            advantage = ((advantage - advantage.mean()) / (advantage.std() + 1e-8))[:, None]
        for _ in range(self.args.epochs):
            policy = Categorical(logits=self.policy(self.seen))
            ratio = (policy.log_prob(self.drawn.T).T - self.before).exp()
            bounded = ratio.clamp(1 - self.args.clip, 1 + self.args.clip)
            policy_loss = -torch.min(ratio * advantage, bounded * advantage).mean()
            value_loss = (self.value(self.seen)[:, 0] - earned).square().mean()
            loss = policy_loss + self.args.value_weight * value_loss
            loss = loss - self.args.entropy * policy.entropy().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


def train(games: Any, seed: int, episodes: int, args: Args) -> None:
    """Play an id to its end, or for some episodes."""
    torch.manual_seed(seed)
    coder_space, programs = games.spaces["coder"]
    tester_space, tests = games.spaces["tester"]
    coder = Agent(coder_space.shape[0], int(programs.n), 1, args)
    tester = Agent(tester_space.shape[0], int(tests.nvec[0]), len(tests.nvec), args)
    for _ in range(0, episodes, args.games):
        program = coder.act(games.begin())[:, 0]
        suites = tester.act(games.show(program))
        coder_rewards, tester_rewards = games.end(suites)
        coder.learn(coder_rewards)
        tester.learn(tester_rewards)


def main() -> None:
    """Play ids."""
    torch.set_num_threads(1)  # the arrays are small
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ids", nargs="+", default=suite.IDS["v1"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=0, help="1000 for tuning")
    parser.add_argument("--record", help="folder of the submission")
    parser.add_argument("--episodes", type=int, help="fewer, for a trial")
    parser.add_argument("--learning-rate", type=float, default=Args.learning_rate)
    asked = parser.parse_args()
    for id in asked.ids:
        for seed in range(asked.first_seed, asked.first_seed + asked.seeds):
            args = Args(learning_rate=asked.learning_rate)
            games = suite.make(id, seed, record=asked.record, api="vector", num_envs=args.games)
            train(games, seed, asked.episodes or suite.episodes(id), args)
            games.close()
            print(f"{id} seed {seed}: played")


if __name__ == "__main__":
    main()
