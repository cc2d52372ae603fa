"""The rules that a referee judges by."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from codea1_env.rewards import RewardConfig
from codea1_env.sandbox import Limits

WrongOracle = Literal["correct", "drop"]
Domain = Literal["signature", "any"]

FLOAT_TOLERANCE = 1e-6
"""EvalPlus's tolerance for floats."""


@dataclass(frozen=True)
class RefereeConfig:
    """How rounds are judged.

    Raises:
        TypeError: ``rewards`` or ``limits`` is of another type.
        ValueError: A field is outside its range.
    """

    rewards: RewardConfig = field(default_factory=RewardConfig)
    """How outcomes turn into rewards."""
    wrong_oracle: WrongOracle = "correct"
    """What becomes of a test that predicts another value than the reference returns. It counts as invalid in
    any case. ``"correct"``: its call still attacks, with the reference's value, as released. ``"drop"``: it
    does not, as drawn in the paper's figure."""
    domain: Domain | None = None
    """Which arguments a test may use. ``"signature"``: those that the problem's signature allows (its annotations, or
    else what its golden tests and examples show), so that what the prompt leaves open cannot fail a right program.
    ``"any"``: all, as released. None: ``"any"`` under ``rewards.strict_paper``, else ``"signature"``."""
    float_tolerance: float | None = None
    """Relative and absolute tolerance for floats; 0 compares exactly, as released. None: 0 under
    ``rewards.strict_paper``, else `FLOAT_TOLERANCE`."""
    limits: Limits | None = None
    """What one call of a program may use; None for the limits of the sandbox. Its wall-clock time is at most twice
    its CPU time: a call waits for nothing."""
    reference_share: float = 0.25
    """Share of the time of a call that the reference may use: a test that needs more does not count, because
    a program as good as the reference could time out on it by chance."""
    max_suite_tests: int = 64
    """Tests of one suite that are looked at; those after them are invalid. Bounds what a suite can cost. Of an answer no more
    than 64 are read; those after them are left out, and are not invalid."""

    def __post_init__(self) -> None:
        if not isinstance(self.rewards, RewardConfig):
            raise TypeError(
                f"Expect RefereeConfig.rewards to be a RewardConfig, actually: {self.rewards!r:.200}. Other rewards, by "
                "name or as a function: RefereeConfig(rewards=RewardConfig(function=...)), or "
                "parallel_env(rewards=...)."
            )
        if not (self.limits is None or isinstance(self.limits, Limits)):
            raise TypeError(
                f"Expect RefereeConfig.limits to be Limits or None, actually: {self.limits!r:.200}. "
                "Write Limits(call_cpu_time=1.0), for example."
            )
        paper = self.rewards.strict_paper
        if self.domain is None:
            object.__setattr__(self, "domain", "any" if paper else "signature")
        if self.float_tolerance is None:
            object.__setattr__(self, "float_tolerance", 0.0 if paper else FLOAT_TOLERANCE)
        for name, known in (("wrong_oracle", WrongOracle), ("domain", Domain)):
            if getattr(self, name) not in get_args(known):
                raise ValueError(
                    f"Expect RefereeConfig.{name} to be one of {', '.join(get_args(known))}, "
                    f"actually: {getattr(self, name)!r}"
                )
        if not _is_number(self.float_tolerance) or not 0 <= self.tolerance < 1:
            raise ValueError(
                "Expect RefereeConfig.float_tolerance to be a number from 0 (exact) to below 1, "
                f"actually: {self.float_tolerance!r}. EvalPlus uses 1e-6."
            )
        if not _is_number(self.reference_share) or not 0 < self.reference_share <= 1:
            raise ValueError(
                f"Expect RefereeConfig.reference_share to be above 0 and at most 1, "
                f"actually: {self.reference_share!r}"
            )
        if not isinstance(self.max_suite_tests, int) or self.max_suite_tests < 1:
            raise ValueError(
                f"Expect RefereeConfig.max_suite_tests to be a positive integer, "
                f"actually: {self.max_suite_tests!r}"
            )

    @property
    def tolerance(self) -> float:
        """`float_tolerance`, which is never None once the object exists."""
        assert self.float_tolerance is not None
        return self.float_tolerance


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
