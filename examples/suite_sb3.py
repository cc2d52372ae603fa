"""Stable-Baselines3's PPO on one side of codea1-suite: `pip install stable-baselines3` first.

    python examples/suite_sb3.py rare-faults/0 --side coder --record runs/sb3

Eight environments share one record: the environment knows, and SB3 need not.
"""

from __future__ import annotations

import argparse

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

from codea1_env import suite

GAMES = 8

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("id")
    parser.add_argument("--side", choices=("coder", "tester"), default="coder")
    parser.add_argument("--seed", type=int, default=0, help="the world's; from 1000 on for tuning")
    parser.add_argument("--record", help="folder of the submission")
    parser.add_argument("--episodes", type=int, help="fewer, for a trial")
    parser.add_argument("--learning-rate", type=float, default=0.01)
    asked = parser.parse_args()
    arguments = {"record": asked.record, "api": "gym", "side": asked.side}
    games = make_vec_env(lambda: suite.make(asked.id, asked.seed, **arguments), n_envs=GAMES)
    model = PPO(
        "MlpPolicy", games, learning_rate=asked.learning_rate, n_steps=32, batch_size=256, n_epochs=4,
        gamma=0.0, policy_kwargs={"net_arch": {"pi": [], "vf": [64]}}, seed=asked.seed, device="cpu",
    )  # fmt: skip
    model.learn(total_timesteps=asked.episodes or suite.episodes(asked.id))
    games.close()
    print(f"{asked.id} seed {asked.seed}: played")
