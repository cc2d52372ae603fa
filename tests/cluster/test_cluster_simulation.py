"""The simulation of many nodes: bounds that hold for any cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cluster_simulation import TESTS, Costs, run_here, run_jobs, run_judges


def test_the_same_seed_is_the_same_cluster() -> None:
    assert run_jobs(Costs(), 4, 2, 500, seed=3) == run_jobs(Costs(), 4, 2, 500, seed=3)
    assert run_judges(Costs(), 8, 40, seed=3) == run_judges(Costs(), 8, 40, seed=3)


@pytest.mark.parametrize("nodes", [1, 3])
def test_few_workers_are_the_limit(nodes: int) -> None:
    run = run_jobs(Costs(job=0.05), nodes, 2, 2000)
    assert 0.95 * 40 * nodes < run.rate < 1.05 * 40 * nodes
    assert run.controller < 0.1


def test_many_workers_wait_for_the_controller() -> None:
    costs = Costs(job=1e-3)
    run = run_jobs(costs, 32, 8, 5000)
    assert run.controller > 0.95
    assert run.rate <= 1 / (costs.take + costs.read)
    assert run.rate > run_jobs(costs, 32, 8, 5000, batch=4).rate > 1000


def test_judges_move_the_limit() -> None:
    costs = Costs()
    run = run_judges(costs, 64, 256)
    assert run_here(costs) * 4 < run.rate <= 1 / costs.judged_elsewhere
    slow = run_judges(replace(costs, delay=0.05), 64, 256)
    assert slow.rate < run.rate
    assert TESTS == 8**3
