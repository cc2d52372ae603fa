"""The world of cells: what is said of its programs and tests is what the sandbox finds."""

from __future__ import annotations

import pytest

from codea1_env.problem_sets.cells import CellsConfig, cells, changed, pools_of
from codea1_env.problems import ProblemsError, load_problems
from codea1_env.referee import Referee, Round
from codea1_env.sandbox import Outcome

WORLD = "cells:C=32,faults=1/8,families=4,problems=2,valid=3/4,seed=5"


@pytest.mark.parametrize("world", [f"{WORLD},disjoint=0", f"{WORLD},holes=3,right=0"])
def test_every_verdict_of_the_referee_is_what_the_pools_say(world, sandbox):
    problems = load_problems(world)
    for problem in (*problems, changed(problems[0], 2)):
        pools = pools_of(problem)
        tests = [[test] for test in pools.tests]
        verdicts = Referee(sandbox).judge([Round(problem, each, tests) for each in pools.programs])
        for verdict, faults in zip(verdicts, pools.faults, strict=True):
            found = [suite.tests[0] for suite in verdict.suites]
            assert {i for i, test in enumerate(found) if test.outcome is not Outcome.PASS} == faults
            assert tuple(test.status == "kept" for test in found) == pools.valid


def test_fault_sets():
    pools = pools_of(load_problems(WORLD)[1])
    assert [len(faults) for faults in pools.faults] == [0, 4, 4, 4, 4]
    assert len(frozenset().union(*pools.families)) == 16
    assert sum(pools.valid) == 24
    assert pools.correctness == (1.0, 0.875, 0.875, 0.875, 0.875)
    holes = pools_of(load_problems(f"{WORLD},holes=2,right=0")[0])
    assert [len(faults) for faults in holes.faults] == [8, 8, 8, 8]
    assert holes.faults[3] == holes.families[3] | holes.families[0]
    assert len(set(holes.programs)) == 4


def test_another_reference_leaves_names_and_pools_as_they_are():
    before = load_problems(WORLD)[0]
    after = changed(before, 2)
    old, new = pools_of(before), pools_of(after)
    assert (before.task_id, before.prompt) == (after.task_id, after.prompt)
    assert (old.programs, old.tests, old.families) == (new.programs, new.tests, new.families)
    assert new.faults[2] == frozenset()
    assert new.faults[0] == new.families[1]
    assert new.faults[1] == new.families[0] | new.families[1]


def test_a_world_follows_from_its_name():
    assert load_problems(WORLD) == load_problems(WORLD) == cells(CellsConfig.read(WORLD[6:]))
    assert pools_of(load_problems(WORLD)[0]) == pools_of(load_problems(WORLD)[0])
    assert load_problems(WORLD) != load_problems(WORLD.replace("seed=5", "seed=6"))
    assert len(load_problems("cells")) == 8


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("C=1", "C from 2 to 4096, actually: 1"),
        ("fault=1/8", "actually 'fault=1/8'. Did you mean faults?"),
        ("x", "actually 'x'. Known: C, faults, "),
        ("C=8,C=16", "Expect C once, actually twice"),
        ("C=many", "C to be of type int, actually: 'many'"),
        ("families=0", "families from 1 to 1024, actually: 0"),
        ("faults=1/2,families=3", "3 disjoint fault sets of 128 cells to fit into C=256"),
    ],
)  # fmt: skip
def test_worlds_that_cannot_be(said, message):
    with pytest.raises(ProblemsError) as caught:
        load_problems(f"cells:{said}")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
