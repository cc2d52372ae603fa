"""What the co-evolution is compared with: each baseline is the same loop with other settings, so that only those differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from codea1_env.training.config import TrainConfig
from codea1_env.training.settings import replaced


@dataclass(frozen=True)
class Baseline:
    """Settings that make a training run the thing that another run is compared with.

    Example:
        >>> config = BASELINES["no-book"].apply(TrainConfig(seed=3))
        >>> config.use_book, config.seed
        (False, 3)
    """

    summary: str
    """What it shows, in one line."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Field of `TrainConfig` -> value; one of a player as `coder.freeze`."""

    def apply(self, config: TrainConfig) -> TrainConfig:
        """Return the configuration with this baseline's settings in it."""
        return replaced(config, self.overrides)


BASELINES: Mapping[str, Baseline] = {
    "code-a1": Baseline(
        "Both players learn against each other, and the Mistake Book replays what broke programs.",
        {"coder.freeze": False, "tester.freeze": False, "use_book": True, "black_box": False},
    ),
    "golden-tests": Baseline(
        "The coder learns from three tests of the problem's own, as many as MBPP has: the usual way to train "
        "on code.",
        {"tester.player": "golden", "golden_tests": 3, "use_book": False},
    ),
    "self-play": Baseline(
        "One model in both roles, whose tester does not see the program: what two models are worth.",
        {"self_play": True, "black_box": True},
    ),
    "self-play-white-box": Baseline(
        "One model in both roles, whose tester sees the program: what hiding it is worth in self-play.",
        {"self_play": True},
    ),
    "self-collusion": Baseline(
        "One model in both roles, and its own program says which tests are right: rewards without truth.",
        {"self_play": True, "oracle": "coder"},
    ),
    "code-a1-no-reference": Baseline(
        "Two models, and the coder's program says which tests are right: what the reference is worth.",
        {"oracle": "coder"},
    ),
    "sft": Baseline(
        "The tester imitates golden tests, and the coder stays as it was: what rewards are worth to the tester.",
        {"tester.objective": "golden-tests", "coder.freeze": True},
    ),
    "frozen-tester": Baseline(
        "The tester stays as it was at the start: what a learning opponent is worth to the coder.",
        {"tester.freeze": True},
    ),
    "copier": Baseline(
        "The tester submits the examples of the problem's text: what an opponent is worth to the coder that does no more.",
        {"tester.player": "copier"},
    ),
    "frozen-coder": Baseline(
        "The coder stays as it was at the start: what a learning opponent is worth to the tester.",
        {"coder.freeze": True},
    ),
    "no-book": Baseline(
        "Nothing is replayed: what the Mistake Book is worth.", {"use_book": False}
    ),
    "past-opponents": Baseline(
        "In half of the steps one side is an earlier version of itself: what a mixture of opponents is worth.",
        {"opponents": "past", "past_steps": 1},
    ),
    "repair": Baseline(
        "The coder sees what broke its program and answers again: what a repair round is worth.",
        {"max_rounds": 2},
    ),
    "sketch": Baseline(
        "0.6 for what runs and 0.4 for the contest, and a book that is drawn from by quality.",
        {"rewards": "execution-first", "book_replay": "quality"},
    ),
    "drop-wrong-oracle": Baseline(
        "A test that predicts a wrong value does not attack: what correcting such tests is worth.",
        {"wrong_oracle": "drop"},
    ),
    "all-suites": Baseline(
        "The tester learns from its suites against every program, not only the most telling one.",
        {"suite_selection": "all"},
    ),
    **{
        f"alpha={alpha:g}": Baseline(
            f"Weight of validity in the tester's reward: {alpha:g}"
            + (", the paper's choice." if alpha == 0.5 else "."),
            {"alpha": alpha},
        )
        for alpha in (0.0, 0.25, 0.5, 0.75, 1.0)
    },
    "black-box": Baseline(
        "The tester does not see the program: what white-box testing is worth.", {"black_box": True}
    ),
}
"""Name -> baseline. `codea1 train --baseline NAME` runs one."""
