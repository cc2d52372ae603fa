"""Which tests kill which mutants, and the smallest suite that kills the same."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from codea1_env.mutation import Mutant, generate_mutants
from codea1_env.mutation.kills import find_kills
from codea1_env.problems import load_problems
from codea1_env.sandbox import Job, Limits, Outcome
from codea1_env.testgen.choosing import reduce_suite

STARTER = load_problems("starter")
QUICK = Limits(call_cpu_time=0.1, calls_per_test=1)


def test_reduction_covers_the_same_with_fewer_tests():
    rng = np.random.default_rng(0)
    for _ in range(200):
        kills = [
            frozenset(map(int, rng.permutation(12)[: rng.integers(6)]))
            for _ in range(rng.integers(1, 9))
        ]
        tests = [f"assert f({number}) == 0" for number in range(len(kills))]
        chosen = reduce_suite(kills, tests)
        everything = frozenset().union(*kills)
        assert frozenset().union(*(kills[each] for each in chosen)) == everything
        if everything:
            for each in chosen:  # no test can go
                others = (kills[other] for other in chosen if other != each)
                assert frozenset().union(*others) != everything
        fewest = next(
            size
            for size in range(len(kills) + 1)
            for some in itertools.combinations(kills, size)
            if frozenset().union(*some) == everything
        )
        assert max(fewest, 1) <= len(chosen) <= fewest + 2


def test_of_equals_the_simpler_test_stays():
    tests = ["x = 1\nassert f(x) == 1", "assert f(1000) == 1", "assert f(1) == 1"]
    assert reduce_suite([frozenset({1, 2})] * 3, tests) == [2]
    assert reduce_suite([frozenset()] * 3, tests) == [2]
    assert reduce_suite([], []) == []


@pytest.mark.slow
def test_reduced_suites_of_starter_problems_kill_the_same_mutants(sandbox):
    smaller = 0
    for problem in STARTER[::10]:
        mutants = generate_mutants(problem.reference, sandbox)
        kills = find_kills(problem.reference, problem.entry_point, problem.tests, mutants, sandbox)
        assert len(kills.killed) + len(kills.survivors) == len(mutants)
        suite = [problem.tests[each] for each in reduce_suite(kills.by_test, problem.tests)]
        smaller += len(suite) < len(problem.tests)
        # The reduced suite is run again on its own.
        results = sandbox.run_many([Job(mutant.code, suite, limits=QUICK) for mutant in mutants])
        dead = {
            number
            for number, each in enumerate(results)
            if any(result.outcome is not Outcome.PASS for result in each)
        }
        assert dead == kills.killed, problem.task_id
    assert len(STARTER[::10]) >= 10
    assert smaller >= 10


def test_a_mutant_that_never_ends_is_killed_by_the_first_test_on_which_it_hangs(sandbox):
    code = "def f(n):\n    while n > 0:\n        n = n - 1\n    return n\n"
    tests = [f"assert f({n}) == 0" for n in range(12)]
    returns_none = next(each for each in generate_mutants(code, sandbox) if each.operator == "RVR")
    mutants = [Mutant(code.replace("n - 1", "n"), "SDL", 3, "endless"), returns_none]
    kills = find_kills(code, "f", tests, mutants, sandbox)
    assert [number for number, each in enumerate(kills.by_test) if 0 in each] == [1]
    assert all(1 in each for each in kills.by_test)
