"""Train two tabular players against each other on two cores, no GPU: about a minute.

python examples/train_tabular.py [--seed N] [--max-steps N]
"""

from __future__ import annotations

import argparse

from codea1_env.training import TrainConfig, train


def main() -> None:
    """Train, and say what was learned."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max-steps", type=int, default=60)
    options = parser.parse_args()
    result = train(TrainConfig(seed=options.seed, max_steps=options.max_steps))
    measures = {"pass_rate": "coder", "kill_rate": "tester", "copier_kill_rate": "one who copies"}
    for name, who in measures.items():
        start, end = (row[f"held_out/{name}"] for row in (result.start, result.end))
        print(f"{who}: {name} on what training held back, {start:.2f} -> {end:.2f}")


if __name__ == "__main__":
    main()
