"""Rewards of both players: those of Code-A1 (arXiv 2603.15611, section 3), as released.

Everything here is arithmetic on the outcome of one suite of tests against one program. Who counts as
failed, invalid or executed is the referee's business.

With ``K`` tests asked for, ``v`` tests that attack (right or corrected), ``i`` invalid ones, ``f`` failures among the
first ``K`` of them and ``h`` tests replayed from the Mistake Book, of which the program passes ``p``:

* program: mean of ``passed / v`` and ``p / h``, as far as they exist. A suite ends with its Kth attacking test: only the release
  has more, and counts them all here;
* validity: ``clip(min(v / K, 1 - i / K), 0, 1)``;
* adversarial: ``(f / K - (h - p) / h + 1) / 2``, or ``f / K`` where nothing was replayed;
* tests: ``alpha * validity + (1 - alpha) * adversarial`` against a program that runs, else 0; less the
  share of characters that cannot be printed.

Other rewards are functions beside it: see `REWARDS`. One of your own takes the same two arguments.

    >>> def survives(outcome, config):
    ...     return float(not any(outcome.failed)), float(outcome.broke() > 0)
    >>> suite_rewards(SuiteOutcome(True, [False, True], 0, 0, 0), RewardConfig(function=survives)).test
    1.0
"""

from __future__ import annotations

import functools
import inspect
import math
import numbers
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from codea1_env.support.plugins import find


class RewardError(ValueError):
    """A reward function of yours raised, or returned something else than two rewards."""


@dataclass(frozen=True)
class RewardConfig:
    """Settings of the rewards.

    Example:
        >>> RewardConfig().alpha
        0.5
    """

    alpha: float = 0.5
    """Weight of validity against adversarial success in the tester's reward, from 0 to 1. The paper's best is 0.5."""
    num_tests: int = 8
    """K: tests asked for in one suite. More earn nothing, and every invalid one costs 1/K of validity."""
    strict_paper: bool = False
    """Pay a program 0 where it could not be scored at all, as released, instead of None (left out of its group). A
    `RefereeConfig` follows with its defaults: any arguments, exact floats."""
    function: str | RewardFunction = "code-a1"
    """What both players are paid for one suite: a name in `REWARDS`, ``module:NAME``, ``FILE.py:NAME``, or a function."""

    def __post_init__(self) -> None:
        if not 0 <= self.alpha <= 1:
            raise ValueError(
                f"Expect RewardConfig.alpha to be a number from 0 (only adversarial success counts) "
                f"to 1 (only validity counts), actually: {self.alpha!r}. The paper uses 0.5."
            )
        if self.num_tests < 1:
            raise ValueError(
                f"Expect RewardConfig.num_tests to be a positive integer, actually: {self.num_tests!r}. "
                f"The paper asks for 8 tests in a suite."
            )
        find_reward(self.function)  # a wrong name is an error now, not after the first round


@dataclass(frozen=True)
class SuiteOutcome:
    """Outcome of one suite on one program."""

    code_executes: bool
    """Whether the program runs to its end and defines the entry point."""
    failed: Sequence[bool]
    """For each test that attacks, in the order of the suite: whether the program did not pass it."""
    invalid: int
    """Tests that do not count as valid: they cannot be read, have arguments outside the signature, or contradict the
    reference, even where their calls attack with its value."""
    history_passed: int
    """Replayed tests of the Mistake Book that the program passes."""
    history_total: int
    """Tests of the Mistake Book that were replayed on the program."""
    nonprintable_ratio: float = 0.0
    """Share of characters outside `string.printable` in the tester's whole answer."""
    unpaid: Sequence[bool] = ()
    """For each test in `failed`: whether the program gave no answer in the time that its run had. That is not passed, and
    pays the suite nothing. Empty where all are paid."""
    history_unpaid: int = 0
    """Replayed tests that the program gave no answer to, in the time that its run had. It has not passed them, and the
    suite loses nothing for them."""

    def _unpaid_are_failed(self) -> bool:
        return len(self.unpaid) == len(self.failed) and not any(
            each and not failed for each, failed in zip(self.unpaid, self.failed, strict=True)
        )

    @property
    def history_broke(self) -> int:
        """Count the replayed tests that broke the program."""
        return self.history_total - self.history_passed - self.history_unpaid

    def broke(self, num_tests: int | None = None) -> int:
        """Count the failures that are paid, of all tests or of the first ones."""
        failed = [bool(each) for each in self.failed[:num_tests]]
        return sum(failed) - sum(map(bool, self.unpaid[: len(failed)]))

    def __post_init__(self) -> None:
        if not (
            self.invalid >= 0
            and min(self.history_passed, self.history_unpaid) >= 0
            and self.history_passed + self.history_unpaid <= self.history_total
            and 0 <= self.nonprintable_ratio <= 1
            and (not self.unpaid or self._unpaid_are_failed())
        ):
            raise ValueError(
                "Expect invalid >= 0, history_passed + history_unpaid <= history_total, 0 <= nonprintable_ratio <= 1, and unpaid "
                f"tests among the failed ones, actually: {self!r}"
            )


@dataclass(frozen=True)
class SuiteRewards:
    """Rewards that one suite gives to the two players."""

    code: float | None
    """The program's reward from this suite; None where nothing could score it."""
    test: float | None
    """The suite's reward; None where the sandbox could not judge it, which leaves both players out of their groups."""
    validity: float
    """Its part for writing as many tests as asked for, all valid; from 0 to 1."""
    adversarial: float
    """Its part for breaking the program where old tests no longer do; from 0 to 1."""


RewardFunction: TypeAlias = "Callable[[SuiteOutcome, RewardConfig], tuple[float | None, float]]"
"""Pays one suite and the program that it attacked: what the program gets (None where nothing can score it, which
leaves it out of its group), and what the suite gets."""


def code_a1(outcome: SuiteOutcome, config: RewardConfig) -> tuple[float | None, float]:
    """Return the paper's rewards: see the top of this file."""
    code = code_reward(outcome, config)
    adversarial = adversarial_reward(outcome, config.num_tests)
    return code, reward_for_tests(outcome, config, config.alpha, adversarial)


def execution_first(outcome: SuiteOutcome, config: RewardConfig) -> tuple[float | None, float]:
    """Pay 0.6 for execution and 0.4 for the contest, for players whose programs seldom run.

    A program gets 0.6 if it runs, and 0.4 times the paper's reward; a suite 0.6 times its validity, and 0.4 times its
    adversarial part.

    Example:
        >>> outcome = SuiteOutcome(True, [True, False], 0, 0, 0)
        >>> [round(reward, 3) for reward in execution_first(outcome, RewardConfig(num_tests=2))]
        [0.8, 0.8]
    """
    code = code_reward(outcome, config)
    runs = _EXECUTION if outcome.code_executes else 0.0
    adversarial = adversarial_reward(outcome, config.num_tests)
    code = None if code is None else runs + (1 - _EXECUTION) * code
    return code, reward_for_tests(outcome, config, _EXECUTION, adversarial)


def mutation_score(outcome: SuiteOutcome, config: RewardConfig) -> tuple[float | None, float]:
    """Pay a suite for killing a program, as a mutant is killed: a second break earns nothing more.

    Over the programs of a group the adversarial part is the suite's mutation score. A program that lives gets 1.

    Example:
        >>> mutation_score(SuiteOutcome(True, [True, True, False], 0, 0, 0), RewardConfig(num_tests=3))
        (0.0, 1.0)
    """
    scored = bool(outcome.failed or outcome.history_total or config.strict_paper)
    passed_all = outcome.history_passed == outcome.history_total
    failed = any(outcome.failed[: config.num_tests])
    lives = bool(not failed and passed_all and outcome.code_executes)
    code = float(lives) if scored else None
    killed = float(outcome.broke(config.num_tests) > 0)
    return code, reward_for_tests(outcome, config, config.alpha, killed)


_EXECUTION = 0.6

_VARIANTS = "codea1_env.reward_variants"
REWARDS: dict[str, RewardFunction | str] = {
    "code-a1": code_a1,
    "execution-first": execution_first,
    "mutation-score": mutation_score,
    "rltf": f"{_VARIANTS}:rltf",
    "utrl": f"{_VARIANTS}:utrl",
    "incremental": f"{_VARIANTS}:incremental",
    "solve-rate": f"{_VARIANTS}:solve_rate",
    "learnability": f"{_VARIANTS}:learnability",
    "prediction-accuracy": f"{_VARIANTS}:prediction_accuracy",
    "difficulty-weighted": f"{_VARIANTS}:difficulty_weighted",
}
"""Rewards by name; those of other systems are found in their module."""


def reward_for_tests(
    outcome: SuiteOutcome, config: RewardConfig, weight: float, adversarial: float
) -> float:
    """Return the suite's reward: validity by its weight, the rest of the weight adversarial; less what cannot be printed."""
    reward = 0.0
    if outcome.code_executes:
        validity = validity_reward(len(outcome.failed), outcome.invalid, config.num_tests)
        reward = weight * validity + (1 - weight) * adversarial
    return reward - outcome.nonprintable_ratio


@functools.lru_cache
def find_reward(function: str | RewardFunction) -> RewardFunction:
    """Return the function of a name in `REWARDS`, ``module:NAME`` or ``FILE.py:NAME``.

    Example:
        >>> find_reward("mutation-score").__name__
        'mutation_score'
    """
    if isinstance(function, str):
        known = REWARDS.get(function, function)
        if not isinstance(known, str):
            return known
        if ":" not in known:
            raise ValueError(
                f"Expect rewards to be one of {', '.join(REWARDS)}, module:NAME, FILE.py:NAME or a function, "
                f"actually: {function!r}"
            )
        function = find(known, "function")
    try:
        if isinstance(function, (str, type)):
            raise TypeError
        inspect.signature(function).bind(None, None)
    except (TypeError, ValueError):
        raise TypeError(
            f"Expect rewards to be a function (outcome, config) -> (program's reward, suite's reward), "
            f"actually: {function!r:.200}"
        ) from None
    return function


def suite_rewards(outcome: SuiteOutcome, config: RewardConfig = RewardConfig()) -> SuiteRewards:
    """Pay one suite and the program that it attacked.

    Args:
        outcome: What happened.
        config: Who pays, and what it needs to know: weight, size of a suite, what an unscorable program gets.

    Returns:
        The rewards of both players and the paper's two parts of the tester's. These parts are given also where
        the program does not execute and the suite is paid nothing, and where other rewards are paid.

    Raises:
        RewardError: A function of yours raised, or returned something else than two rewards.

    Example:
        >>> suite_rewards(SuiteOutcome(True, [False, True], 1, history_passed=3, history_total=8))
        SuiteRewards(code=0.4375, test=0.25, validity=0.25, adversarial=0.25)
        >>> print(suite_rewards(SuiteOutcome(True, [], 8, 0, 0)).code)
        None
    """
    size = config.num_tests
    function = find_reward(config.function)
    try:
        paid = function(outcome, config)
    except Exception as error:
        line = traceback.extract_tb(error.__traceback__)[-1].lineno
        raise RewardError(
            f"Expect the reward function {config.function!r} to pay every suite, actually, line {line}: "
            f"{type(error).__name__}: {error}"
        ) from error
    code, test = _checked(paid, config)
    return SuiteRewards(
        code=code,
        test=test,
        validity=validity_reward(len(outcome.failed), outcome.invalid, size),
        adversarial=adversarial_reward(outcome, size),
    )


def _number(value: object) -> float:
    """Return a reward as a Python number. A text or a bool is an error of its author."""
    if type(value) is float:  # most are
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError
    return float(value)


def _checked(paid: Any, config: RewardConfig) -> tuple[float | None, float]:
    try:
        code, test = paid
        code = None if code is None else _number(code)
        test = _number(test)
    except (TypeError, ValueError):
        pass
    else:
        if math.isfinite(test) and (code is None or math.isfinite(code)):
            return code, test
    raise RewardError(
        f"Expect the reward function {config.function!r} to return the program's reward (or None) and the suite's, "
        f"two finite numbers, actually: {paid!r:.200}"
    )


def code_reward(outcome: SuiteOutcome, config: RewardConfig = RewardConfig()) -> float | None:
    """Return the program's reward: mean of the share of new and of replayed tests that it passes.

    Of new tests the first K count, in the paper all.

    Without new tests the replayed ones decide alone, and the other way round. Without either there is no
    evidence: None masks the program from its group, because a 0 would punish it for the tester's failure.
    The release pays 0 (``strict_paper``).

    Example:
        >>> code_reward(SuiteOutcome(True, [False, False, True, True], 0, 0, 0))
        0.5
        >>> code_reward(SuiteOutcome(True, [], 8, history_passed=3, history_total=4))
        0.75
    """
    shares = []
    failed = outcome.failed if config.strict_paper else outcome.failed[: config.num_tests]
    if failed:
        shares.append((len(failed) - sum(map(bool, failed))) / len(failed))
    if outcome.history_total:
        shares.append(outcome.history_passed / outcome.history_total)
    if shares:
        return sum(shares) / len(shares)
    return 0.0 if config.strict_paper else None


def validity_reward(kept: int, invalid: int, num_tests: int) -> float:
    """``clip(min(v / K, 1 - i / K), 0, 1)``: enough valid tests, and no invalid ones beside them.

    Example:
        >>> validity_reward(kept=8, invalid=2, num_tests=8)
        0.75
        >>> validity_reward(kept=20, invalid=0, num_tests=8)
        1.0
    """
    return min(max(min(kept / num_tests, 1 - invalid / num_tests), 0.0), 1.0)


def adversarial_reward(outcome: SuiteOutcome, num_tests: int) -> float:
    """``(f / K - (h - p) / h + 1) / 2``: new failures, beyond those that the Mistake Book finds anyway.

    Replayed tests that a program gives no answer to count as passed here: they are not the suite's fault.

    A program that the old tests already break pays little; one that has learned to pass them pays for
    every new way to break it. Only the first K kept tests count, so that writing more does not help.
    Without replayed tests it is ``f / K``; without a kept test it is 0.

    Example:
        >>> adversarial_reward(SuiteOutcome(True, [True] * 4, 0, history_passed=8, history_total=8), 8)
        0.75
        >>> adversarial_reward(SuiteOutcome(True, [True] * 4, 0, 0, 0), 8)
        0.5
    """
    if not outcome.failed:
        return 0.0
    failures = outcome.broke(num_tests) / num_tests
    if not outcome.history_total:
        return failures
    # Written as the release computes it: rearranged, it would differ in the last bit.
    known = outcome.history_broke / outcome.history_total
    return (failures - known + 1) / 2


def program_reward(suites: Iterable[SuiteRewards | float | None]) -> float | None:
    """Return the reward of one program over all suites that attacked it: the mean of those that scored it.

    Example:
        >>> program_reward([1.0, None, 0.5])
        0.75
        >>> print(program_reward([None]))
        None
    """
    rewards = [suite.code if isinstance(suite, SuiteRewards) else suite for suite in suites]
    scored = [reward for reward in rewards if reward is not None]
    return math.fsum(scored) / len(scored) if scored else None
