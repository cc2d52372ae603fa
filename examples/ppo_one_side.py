"""PPO by hand, in torch, on one side of the game: a tester learns which tests break which programs.

The environment is an ordinary `gymnasium` vector environment: vectors in, numbers out. The coder inside it draws
programs from a pool: a right one, and wrong ones, each wrong on another few inputs. No suite breaks all of them, so the
best tester is one that sees the program; `--blind` hides it from the network, as the control.

    python examples/ppo_one_side.py            # less than a minute on two cores
    python examples/ppo_one_side.py --blind
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

from codea1_env import RefereeConfig, RewardConfig, Sandbox
from codea1_env.agents import GRPO, Pool, TabularAgent
from codea1_env.integrations.one_side import OneSideVectorEnv, PoolVectorEnv, PoolView
from codea1_env.problem_sets.cells import pools_of
from codea1_env.problems import load_problems

GAMES, UPDATES, TESTS = 64, 150, 1
CLIP, ENTROPY, LEARNING_RATE, EPOCHS = 0.2, 0.01, 0.003, 4


class Policy(nn.Module):  # type: ignore[misc]  # torch is not read by mypy here
    """One categorical distribution over the pool, from which each test of the suite is drawn; and a value."""

    def __init__(self, inputs: int, choices: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.choice, self.value = nn.Linear(64, choices), nn.Linear(64, 1)

    def forward(self, seen: torch.Tensor) -> tuple[Categorical, torch.Tensor]:
        """Return the choice and the value of each row of `seen`."""
        hidden = self.body(seen)
        return Categorical(logits=self.choice(hidden)[:, None]), self.value(hidden).squeeze(-1)


def make_env(sandbox: Sandbox, seed: int) -> PoolVectorEnv:
    """Games of a tester against a coder that draws from its pool."""
    problems = load_problems("cells:C=32,faults=1/16,families=8,problems=2")
    pools = [pools_of(problem) for problem in problems]
    programs = [Pool(problem, each.programs) for problem, each in zip(problems, pools, strict=True)]
    tests = [Pool(problem, each.tests) for problem, each in zip(problems, pools, strict=True)]
    games = OneSideVectorEnv(
        GAMES,
        "tester",
        TabularAgent(programs, GRPO(), np.random.default_rng(seed)),
        problems=problems,
        # What a program of a pool replies is asked once: it is the same each time.
        referee=RefereeConfig(RewardConfig(num_tests=TESTS), reuse_programs=True),
        sandbox=sandbox,
    )
    return PoolVectorEnv(games, PoolView(tests, programs, draws=TESTS))


def update(
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    seen: torch.Tensor,
    actions: torch.Tensor,
    rewards: torch.Tensor,
) -> None:
    """Take some steps on PPO's clipped objective. An episode has one step, so the return is its reward."""
    with torch.no_grad():
        before, values = policy(seen)
        old = before.log_prob(actions).sum(1)
        advantages = rewards - values
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    for _ in range(EPOCHS):
        now, values = policy(seen)
        ratio = (now.log_prob(actions).sum(1) - old).exp()
        clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
        policy_loss = -torch.min(ratio * advantages, clipped * advantages).mean()
        value_loss = 0.5 * (rewards - values).square().mean()
        loss = policy_loss + value_loss - ENTROPY * now.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main() -> None:
    """Train, and print the rewards."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blind", action="store_true", help="hide the program from the network")
    parser.add_argument("--updates", type=int, default=UPDATES)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    torch.manual_seed(asked.seed)
    with Sandbox() as sandbox:
        env = make_env(sandbox, asked.seed)
        shown = torch.ones(env.view.size)
        if asked.blind:
            shown[len(env.view.pools) :] = 0
        choices = max(map(len, env.view.pools.values()))
        policy = Policy(env.view.size, choices)
        optimizer = torch.optim.Adam(policy.parameters(), lr=LEARNING_RATE)
        seen, _ = env.reset(seed=asked.seed)
        recent: list[float] = []
        for number in range(asked.updates):
            vectors = torch.from_numpy(seen) * shown
            with torch.no_grad():
                actions = policy(vectors)[0].expand((GAMES, TESTS)).sample()
            seen, rewards, _, _, _ = env.step(actions.numpy())
            update(policy, optimizer, vectors, actions, torch.from_numpy(rewards).float())
            recent = [*recent[-9:], float(rewards.mean())]
            if number % 25 == 24:
                print(f"update {number + 1:3}: mean reward of the tester {np.mean(recent):.3f}")


if __name__ == "__main__":
    main()
