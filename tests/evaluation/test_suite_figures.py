"""Figures of suites: definitions by hand, and intervals."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from codea1_env.evaluation.suites.figures import difference, estimate, names, values_of
from codea1_env.evaluation.suites.judging import PoolRuns, SuiteScore
from codea1_env.evaluation.suites.ruling import JudgedTest

RIGHT, WRONG = JudgedTest("a", "", ""), JudgedTest("b", "wrong value", "why")
EMPTY = JudgedTest("c", "never calls", "why")


def score(
    *tests: JudgedTest, killed: tuple[int, ...], mutants: int = 10, **more: object
) -> SuiteScore:
    return SuiteScore("", tests, 0, (), "", mutants, killed, **more)  # type: ignore[arg-type]


def test_the_values_of_a_problem():
    first = score(WRONG, RIGHT, RIGHT, killed=(0, 4, 1), pool=PoolRuns(2, 4, 1, 2, 2))
    second = score(WRONG, EMPTY, killed=(0, 0, 0), pool=PoolRuns(2, 0, 0, 2, 0))
    values = values_of([first, second], [1, 3])
    assert values["pass@1"] == 0
    assert values["pass@3"] == pytest.approx((2 / 3 + 0) / 2)
    assert values["mut@1"] == 0
    assert values["mut@1@pass"] is None
    assert values["mut@3"] == pytest.approx(0.25)
    assert values["mut@3@pass"] == pytest.approx(0.5)
    assert values["any-pass@3"] == 0.5
    assert values["all-pass@3"] == 0
    assert values["p_u"] == pytest.approx(2 / 4)  # a test that never calls says nothing
    assert values["p_01"] == pytest.approx(1 / 4)
    assert values["p_00"] == pytest.approx(2 / 4)


def test_whole_suites_have_figures_of_their_own():
    short = score(RIGHT, killed=(3, 0, 0))
    mixed = score(WRONG, RIGHT, RIGHT, killed=(0, 4, 1))
    none = score(killed=(0, 0, 0))
    values = values_of([short, mixed, none], [1])  # whatever k is looked at
    assert values["all pass@1"] == pytest.approx(1 / 3)
    assert values["any pass@1"] == pytest.approx(2 / 3)
    assert values["mutation score"] == pytest.approx((0.3 + 0.5) / 3)
    unread = dataclasses.replace(short, dropped=("cannot be parsed",))
    assert values_of([unread], [1])["all pass@1"] == 0
    assert set(values) >= set(names([1])) - {"Mul@1", "mu"}


def test_a_problem_without_mutants_has_no_score():
    values = values_of([score(RIGHT, killed=(0,), mutants=0)], [1])
    assert values["mut@1"] is None
    assert values["pass@1"] == 1


def test_figures_are_means_over_the_problems_that_have_a_value():
    problems = [
        {"pass@5": 0.4, "mut@5@pass": 0.5, "p_u": 0.4, "p_01": 0.5, "p_00": None},
        {"pass@5": 0.0, "mut@5@pass": None, "p_u": 0.0, "p_01": None, "p_00": 0.1},
    ]
    found = {name: estimate(problems, name) for name in ("pass@5", "mut@5@pass", "Mul@5", "mu")}
    assert all(found.values())
    values = {name: each.value for name, each in found.items() if each}
    assert values["pass@5"] == pytest.approx(0.2)
    assert values["mut@5@pass"] == pytest.approx(0.5)
    assert values["Mul@5"] == pytest.approx(0.1)
    assert values["mu"] == pytest.approx(0.2 * 0.5 - 0.8 * 0.1)
    mul = found["Mul@5"]
    assert mul
    # No problem with a right test, or only that.
    assert (mul.low, mul.high) == (0.0, pytest.approx(0.2))


def test_the_paper_multiplies_percentages():
    # Qwen2.5-Coder-1.5B-Instruct in the table of Code-A1: 16.29, 22.30 -> 3.63.
    found = estimate([{"pass@5": 0.1629, "mut@5@pass": 0.2230}], "Mul@5")
    assert found
    assert round(100 * found.value, 2) == 3.63


def test_figures_that_nothing_tells():
    assert estimate([], "pass@1") is None
    assert estimate([{"pass@1": None}], "pass@1") is None
    nothing_right = [{"pass@1": 0.0, "mut@1@pass": None}]
    assert estimate(nothing_right, "mut@1@pass") is None
    found = estimate(nothing_right, "Mul@1")
    assert found
    assert found.value == 0


def test_mu_without_wrong_tests_or_without_right_ones():
    for values, mu in (
        ({"p_u": 1.0, "p_01": 0.25, "p_00": None}, 0.75),
        ({"p_u": 0.0, "p_01": None, "p_00": 0.25}, -0.25),
    ):
        found = estimate([values], "mu")
        assert found
        assert found.value == mu


def test_differences_are_paired():
    rng = np.random.default_rng(2)
    ours = [{"pass@1": float(each), "mut@1@pass": 0.5} for each in rng.random(50) / 2]
    theirs = [{**each, "pass@1": each["pass@1"] + 0.1} for each in ours]
    found = difference(ours, theirs, "pass@1")
    assert found
    assert (found.value, found.low, found.high) == pytest.approx((0.1, 0.1, 0.1))
    mul = difference(ours, theirs, "Mul@1")
    assert mul
    assert mul.value == pytest.approx(0.05)
    assert difference(ours, [{}] * 50, "pass@1") is None
