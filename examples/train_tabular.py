"""Train two tabular players against each other in well under two minutes on two cores, no GPU.

python examples/train_tabular.py [SEED]
"""

from __future__ import annotations

import sys

from codea1_env.training import TrainConfig, train


def main(seed: int) -> None:
    """Train, and say what was learned."""
    result = train(TrainConfig(seed=seed, max_steps=60))
    for name, who in (("pass_rate", "coder"), ("kill_rate", "tester")):
        start, end = (row[f"held_out/{name}"] for row in (result.start, result.end))
        print(f"{who}: {name} on what training held back, {start:.2f} -> {end:.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
