"""Rewards of other systems that depend on one suite and one program.

Each is a row of the benchmark: ``--rewards NAME``. A function pays one suite and the program that it attacked. What a
paper says about many programs at once (a solve rate, a mutation score) is said here of the tests of one suite, or
becomes an average over the group by itself; the docstrings say which. Formulas without a citation of an equation were
decided here.
"""

from __future__ import annotations

from codea1_env.rewards import (
    RewardConfig,
    SuiteOutcome,
    code_a1,
    code_reward,
    reward_for_tests,
    validity_reward,
)

_RUNS, _ALL_PASS, _SOME_FAIL, _NO_PROGRAM = -0.6, 1.0, -0.3, -1.0
_CLIP = 4
"""UTRL's threshold: fewer valid tests than this are paid as if there were invalid ones beside them."""


def rltf(outcome: SuiteOutcome, config: RewardConfig) -> tuple[float | None, float]:
    """Pay programs by category and pass ratio, as RLTF (Liu et al. 2023, arXiv 2307.04349, section 3.3).

    A program that does not run gets -1, one that runs and fails every test -0.6, any other -0.3 + 1.3 times the share
    of tests that it passes, which is 1 where it passes all. RLTF tells a syntax error from an exception; here a
    program that does not load is the first, one that fails everything the second. Suites are paid as in Code-A1's
    paper, since RLTF trains no tester.

    Example:
        >>> [rltf(SuiteOutcome(True, failed, 0, 0, 0), RewardConfig())[0] for failed in ([0, 0], [0, 0, 0, 1], [1, 1])]
        [1.0, 0.675, -0.6]
    """
    passed = code_reward(outcome, config)
    code: float | None
    if passed is None:
        code = None
    elif not outcome.code_executes:
        code = _NO_PROGRAM
    else:
        code = _RUNS if passed == 0 else _SOME_FAIL + (_ALL_PASS - _SOME_FAIL) * passed
    return code, code_a1(outcome, config)[1]


def utrl(outcome: SuiteOutcome, config: RewardConfig) -> tuple[float | None, float]:
    """Pay suites by discrimination and clipped validity, as UTRL (Lee et al. 2025, arXiv 2508.21107, section 4).

    Discrimination: 1 if any valid test breaks the program, else 0; over the programs of a group its mean is the share
    of detected programs. Validity: valid tests by all tests, where all counts as at least 4, so that two copied
    examples earn little. Both weigh the same. A program gets the share of tests that it passes.

    Example:
        >>> utrl(SuiteOutcome(True, [False, True], 0, 0, 0), RewardConfig())
        (0.5, 0.75)
    """
    if not outcome.code_executes:
        return code_reward(outcome, config), 0.0
    valid = len(outcome.failed)
    validity = valid / max(valid + outcome.invalid, _CLIP)
    return code_reward(outcome, config), (float(outcome.broke() > 0) + validity) / 2


def incremental(outcome: SuiteOutcome, config: RewardConfig) -> tuple[float | None, float]:
    """Pay suites as MIST-RL does: for a program that no earlier test kills, those of the Mistake Book included.

    A second test that breaks the same program earns nothing, nor does any where an old one breaks it. Validity has the
    weight `alpha`, as in Code-A1's paper, by which the program is paid.

    Example:
        >>> [incremental(SuiteOutcome(True, [True], 0, passed, 2), RewardConfig(num_tests=1))[1] for passed in (2, 1)]
        [1.0, 0.5]
    """
    known = outcome.history_broke > 0
    new = outcome.broke(config.num_tests) > 0 and not known
    test = reward_for_tests(outcome, config, config.alpha, float(new))
    return code_a1(outcome, config)[0], test


def solve_rate(outcome: SuiteOutcome, config: RewardConfig) -> tuple[float | None, float]:
    """Pay suites as Absolute Zero pays the proposer of tasks (Zhao et al. 2025, arXiv 2505.03335, equation 4).

    1 minus the share of tests that the program passes, and 0 where it passes none or all: a task must be hard and
    solvable. A test is the task here, and the tests of one suite take the place of repeated answers to one.

    Example:
        >>> [solve_rate(SuiteOutcome(True, [1] * n + [0] * (4 - n), 0, 0, 0), RewardConfig())[1] for n in (0, 1, 4)]
        [0.0, 0.25, 0.0]
    """
    code = code_reward(outcome, config)
    rate = _share_passed(outcome)
    return code, 0.0 if rate in (0.0, 1.0, None) else 1 - (rate or 0.0)


def learnability(outcome: SuiteOutcome, config: RewardConfig) -> tuple[float | None, float]:
    """Pay suites 4p(1 - p), with p the share of tests that the program passes.

    The variance of an outcome, scaled to 1: most is learned where half is passed (as in SFL, Rutherford et al. 2024,
    arXiv 2408.15099, which uses p(1 - p)).

    Example:
        >>> [learnability(SuiteOutcome(True, [1] * n + [0] * (4 - n), 0, 0, 0), RewardConfig())[1] for n in (0, 1, 2, 4)]
        [0.0, 0.75, 1.0, 0.0]
    """
    rate = _share_passed(outcome)
    return code_reward(outcome, config), 0.0 if rate is None else 4 * rate * (1 - rate)


def prediction_accuracy(outcome: SuiteOutcome, config: RewardConfig) -> tuple[float | None, float]:
    """Pay suites for right predictions alone, as systems that train models to predict the output of code.

    The paper's validity: nothing is paid for breaking programs. Under it the simplest tests are the best ones.

    Example:
        >>> prediction_accuracy(SuiteOutcome(True, [False] * 2, 0, 0, 0), RewardConfig(num_tests=4))
        (1.0, 0.5)
    """
    validity = validity_reward(len(outcome.failed), outcome.invalid, config.num_tests)
    return code_reward(outcome, config), validity if outcome.code_executes else 0.0


def difficulty_weighted(outcome: SuiteOutcome, config: RewardConfig) -> tuple[float | None, float]:
    """Pay suites more for breaking programs that are hard to break, as CVeDRL (Shi et al. 2026, arXiv 2601.22803) does.

    The paper tells difficulty by static analysis of a sample. Here it is the share of the Mistake Book's tests that the
    program passes, and the adversarial part is weighted with (1 + that share) / 2. Without a replay the program counts as hard.

    Example:
        >>> [difficulty_weighted(SuiteOutcome(True, [1, 1], 0, passed, 2), RewardConfig(num_tests=2))[1] for passed in (0, 2)]
        [0.75, 1.0]
    """
    total = outcome.history_total
    hard = 1 - outcome.history_broke / total if total else 1.0
    broken = outcome.broke(config.num_tests) / config.num_tests
    test = reward_for_tests(outcome, config, config.alpha, broken * (1 + hard) / 2)
    return code_a1(outcome, config)[0], test


def _share_passed(outcome: SuiteOutcome) -> float | None:
    """Share that the program passes of the suite's tests with an answer; None without such, or a program that runs."""
    answered = len(outcome.failed) - sum(map(bool, outcome.unpaid))
    if not answered or not outcome.code_executes:
        return None
    return 1 - outcome.broke() / answered
