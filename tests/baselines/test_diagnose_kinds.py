"""Kinds of faults: the programs are what they are called, and the measure is what can be counted by hand."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from codea1_env.agents import FixedAgent
from codea1_env.baselines.diagnose.experiments import EXPERIMENTS
from codea1_env.baselines.diagnose.kinds import KindsConfig, measure_kinds
from codea1_env.baselines.diagnose.play_config import PlayConfig
from codea1_env.baselines.diagnose.playing import play
from codea1_env.problem_sets.cells import CellsConfig, cells, pools_of, program_with
from codea1_env.referee import Referee, Round

WORLD = CellsConfig(C=16, faults=Fraction(1, 16), families=4, holes=2, problems=1)
SMALL = PlayConfig(world=WORLD, steps=3, num_generations=4, num_suites=2)


class Says(FixedAgent):
    """Always makes the same calls."""

    def __init__(self, problem, called):
        tests = pools_of(problem).tests
        self.text = "\n\n".join(tests[cell] for cell in called)
        self.shown = set()

    def act(self, observations):
        self.shown |= {each["code"] for each in observations}
        return [self.text] * len(observations)


def measured(called, *, black_box=False, **changes):
    problem = cells(WORLD)[0]
    tester, rng = Says(problem, called(problem)), np.random.default_rng(0)
    config = KindsConfig(**{"overlap": Fraction(0), "rounds": 2, **changes})
    options = {"num_suites": 3, "black_box": black_box, "rng": rng}
    return measure_kinds(tester, [problem], WORLD, config, **options), tester


def of_sets(*numbers):
    return lambda problem: sorted(program_with(problem, numbers)[1])


@pytest.mark.parametrize(
    ("called", "overlap", "known", "other"),
    [
        # Each of 4 programs has 2 fault sets of the 4 of its kind.
        (of_sets(0), Fraction(1, 2), 1 / 2, 1 / 4),
        (of_sets(0, 2), Fraction(1, 2), 1, 1 / 2),
        (of_sets(4), 0, 0, 1 / 2),
        (of_sets(4), 1, 0, 0),
        (of_sets(0, 1, 2, 3, 4, 5, 6, 7), 0, 1, 1),
    ],
)
def test_the_measure_is_what_can_be_counted(called, overlap, known, other):
    found, _ = measured(called, overlap=Fraction(overlap))
    assert found["killed/seen"] == found["killed/in"] == known
    assert found["killed/out"] == other
    assert found["right/in"] == pytest.approx(1 / (1 + 4 * (1 - known)))
    assert found["right/out"] == pytest.approx(1 / (1 + 4 * (1 - other)))


def test_a_black_box_tester_is_shown_no_program():
    assert measured(of_sets(0), black_box=True)[1].shown == {""}
    assert len(measured(of_sets(0))[1].shown) == 12


def test_programs_of_no_pool_fail_where_it_is_said_and_nowhere_else(sandbox):
    problem = cells(WORLD)[0]
    pools = pools_of(problem)
    assert [program_with(problem, [n])[1] for n in range(4)] == list(pools.families)
    assert tuple(map(pools.faults_of, pools.programs)) == pools.faults
    for numbers in ((0, 1), (1, 6), (5, 7)):
        code, faults = program_with(problem, numbers)
        assert pools.faults_of(code) == faults
        assert code not in pools.programs
        verdict = Referee(sandbox).judge([Round(problem, code, [[t] for t in pools.tests])])[0]
        assert {n for n, s in enumerate(verdict.suites) if any(s.outcome.failed)} == faults


def test_a_run_is_a_function_of_its_seed_and_at_overlap_1_all_are_in_kind(sandbox):
    config = dataclasses.replace(SMALL, overlap=Fraction(1), carried=0.5)
    found = play(config, sandbox)
    assert found == play(config, sandbox)
    assert found["killed/out"] == found["killed/in"]
    assert found["right/out"] == found["right/in"]
    other = play(dataclasses.replace(config, seed=1), sandbox)
    assert other["killed/out"] != found["killed/out"]
    assert "killed/out" not in play(SMALL, sandbox)


@pytest.mark.parametrize("row", ["iid-tests", "oracle-tester", "past-opponents"])
def test_rows_can_meet_new_programs(row, sandbox):
    config = EXPERIMENTS["kinds"].config("0/4", row, 1000)
    world = dataclasses.replace(config.world, problems=1, C=64)
    found = play(dataclasses.replace(config, world=world, steps=2), sandbox)
    assert 0 <= found["killed/out"] <= 1
    if row == "oracle-tester":
        assert found["killed/out"] == found["killed/in"] == found["right/out"] == 1
    if row == "iid-tests":
        assert found["killed/out"] == 0 < found["killed/in"]


def test_worlds_without_room_for_other_kinds_are_an_error_before_anything_runs():
    world = dataclasses.replace(WORLD, C=4, faults=Fraction(1, 4))
    with pytest.raises(ValueError, match="8 disjoint fault sets"):
        dataclasses.replace(SMALL, world=world, overlap=Fraction(0))
