from __future__ import annotations

import pytest

from codea1_env import Sandbox
from codea1_env.mistake_book import MistakeBook
from codea1_env.problems import Problem
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.referee import Referee, RefereeConfig
from codea1_env.rollout import RolloutConfig, Rollouts, rollout
from codea1_env.sandbox import Limits
from codea1_env.training.metrics import invalid_metrics, slug

REFERENCE = '''
import random
calls = 0

def odd(n: int):
    """Do something else for each n."""
    if n == 1:
        raise ValueError("one")
    if n == 2:
        while True:
            pass
    if n == 3:
        return random.random()
    if n == 4:
        return object()
    if n == 5:
        raise SystemExit
    if n == 6:
        import nothing_of_this_name
    if n == 7:
        return [bytearray(100_000)]
    return n
'''
PROBLEM = Problem("odd", 'def odd(n: int):\n    """Do something."""\n', "odd", REFERENCE.strip())


class Says:
    def __init__(self, text: str) -> None:
        self.text = text

    def act(self, observations: object) -> list[str]:
        return [self.text for _ in observations]  # type: ignore[attr-defined]


def play(sandbox: Sandbox, *tests: str, **rules: object) -> Rollouts:
    """One program, and one suite with these tests."""
    limits = Limits(call_cpu_time=0.2)
    referee = Referee(sandbox, RefereeConfig(limits=limits, **rules))  # type: ignore[arg-type]
    coder = Says(f"```python\n{PROBLEM.reference}\n```")
    tester = Says("```python\n" + "\n".join(tests) + "\n```")
    return rollout([PROBLEM], coder, tester, referee, MistakeBook(), RolloutConfig(1, 1))


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        ("assert odd(0) == 1", "wrong_value"),
        ("assert odd(2) == 1", "timeout"),
        ("assert odd(3) == 1", "non_deterministic"),
        ("assert odd(6) == 1", "not_installed"),
        ("assert odd('a') == 1", "outside_the_signature"),
        ("assert odd(0) < 1", "unreadable"),
        ("assert odd(0) == 0", None),
    ],
)
def test_a_test_is_counted_under_its_reason(sandbox, test, reason) -> None:
    metrics = invalid_metrics(play(sandbox, test).episodes)
    counted = {f"tester/invalid/{reason}"} if reason else set()
    assert {name for name, value in metrics.items() if value} == counted
    assert list(metrics) == [f"tester/invalid/{slug(each)}" for each in InvalidReason]


def test_reasons_of_the_game(sandbox: Sandbox) -> None:
    many = [f"assert odd({n}) == {n}" for n in range(10, 15)]
    found = invalid_metrics(play(sandbox, *many, max_suite_tests=4).episodes)
    assert found["tester/invalid/too_many"] == 1
    slow = [f"assert odd(n={n}) == 1" for n in (2, 5)]
    # What is not made after them is no invalid test.
    found = invalid_metrics(play(sandbox, *slow, "assert odd(n=8) == 8").episodes)
    assert sum(found.values()) == 2
    assert found["tester/invalid/timeout"] == found["tester/invalid/limit"] == 1


def test_together_they_are_all_invalid_tests(sandbox: Sandbox) -> None:
    tests = ["assert odd(0) == 1", "assert odd(n=0) == 2", "assert odd(1) == 1", "assert odd('a') == 0", "assert odd(9) == 9", "assert odd(4) == 1"]  # fmt: skip
    for rule in ("correct", "drop"):
        episodes = play(sandbox, *tests, wrong_oracle=rule).episodes
        metrics = invalid_metrics(episodes)
        assert sum(value or 0 for value in metrics.values()) == 5
        assert episodes[0].verdict.suites[0].outcome.invalid == 5
        assert metrics["tester/invalid/wrong_value"] == 2
