"""The simulation of many nodes: bounds that hold for any cluster."""

from __future__ import annotations

from dataclasses import replace

from cluster_simulation import TESTS, Costs, run_here, run_jobs, run_judges


def test_few_workers_are_the_limit() -> None:
    run = run_jobs(Costs(job=0.05), 3, 2, 2000)
    assert 0.95 * 120 < run.rate < 1.05 * 120
    assert run.controller < 0.1
    assert run == run_jobs(Costs(job=0.05), 3, 2, 2000)


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
