"""The settings of one player: the blocks `[coder]` and `[tester]` of a configuration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from codea1_env.agents.llm.completions import SamplingConfig

CODERS = ("tabular", "llm", "reference", "mutant")
TESTERS = ("tabular", "llm", "golden", "boundary", "copier")


@dataclass(frozen=True)
class PlayerConfig:
    """Who plays a role, and how they learn. `TrainConfig` checks the values, and knows what both players share.

    Example:
        >>> PlayerConfig("llm", learning_rate=1e-5).freeze
        False
    """

    player: str = "tabular"
    """Who plays; `--coder NAME` and `--tester NAME` are short for it. A learning player ("tabular", a table of
    answers, or "llm", a language model), a script (coders: "reference", or a "mutant" of it; testers: "golden" or
    "boundary" tests, or "copier", which submits the examples of the problem's text), or a player of yours (FILE.py:NAME)."""
    freeze: bool = False
    """The player plays but does not learn."""
    learning_rate: float = 1.0
    """Step size. A table of logits wants one near 1, a language model one near 1e-6."""
    algorithm: str | None = None
    """Another algorithm for this player; None for the one of both."""
    model: str | None = None
    """Another language model for this player; None for the one of both."""
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    """How a language model's answers are drawn."""
    trainer: dict[str, Any] = field(default_factory=dict)
    """More fields of TRL's GRPOConfig, or of SFTConfig for a tester that imitates. They win over the settings that
    both players share, and over those of the algorithm."""


@dataclass(frozen=True)
class TesterConfig(PlayerConfig):
    """The settings of the tester.

    Example:
        >>> TesterConfig("golden").learning_rate
        16.0
    """

    __test__ = False  # pytest would collect a class of this name

    learning_rate: float = 16.0
    """Step size. Larger than the coder's, because the loss of an answer is the mean over its draws: a tester that
    draws K tests moves each of them K times less than a coder moves its one program."""
    objective: Literal["rewards", "golden-tests"] = "rewards"
    """What the tester learns from: what its suites earn, or golden tests that it imitates (supervised
    fine-tuning)."""
