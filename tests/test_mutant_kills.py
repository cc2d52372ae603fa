"""Outcomes of tests on programs, some of which never end."""

from __future__ import annotations

from codea1_env.mutation.kills import limits_beside
from codea1_env.sandbox import JobResult, Outcome, TestResult


def test_limits_follow_the_reference_in_steps():
    def took(*seconds: float) -> JobResult:
        tests = tuple(TestResult(Outcome.PASS, cpu_time=each) for each in seconds)
        return JobResult(TestResult(Outcome.PASS, cpu_time=0.01), tests)

    assert limits_beside(took(0.001)).run_cpu_time == 0.5
    assert limits_beside(took(0.2, 0.1)).run_cpu_time == 1.5
    assert limits_beside(took(0.2, 0.12)) == limits_beside(took(0.2, 0.1))
