"""A job at which the sandbox fails, while others are judged: it pays nobody, is remembered nowhere, and is counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from codea1_env.mistake_book import MistakeBook
from codea1_env.problems import Problem
from codea1_env.referee import Referee, Round
from codea1_env.rollout import RolloutConfig, rollout
from codea1_env.sandbox import Outcome, Sandbox, ScriptResult, TestResult
from codea1_env.service.schemas import run_response
from codea1_env.training.metrics import step_metrics

MARK = "# at this the sandbox fails"
WHY = TestResult(Outcome.UNJUDGED, "killed three times")
RIGHT = "def inc(n):\n    return n + 1"
SUITE = ["assert inc(1) == 2", "assert inc(2) == 3", "assert inc(3) == 9"]
INC = Problem("inc", "def inc(n):", "inc", RIGHT)


class FailingSandbox(Sandbox):
    """Fails at marked programs."""

    def _run(self, task: Any) -> Any:
        asked = task.arguments[0]
        if MARK in getattr(asked, "code", asked):
            return task.unjudged(WHY)
        return super()._run(task)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[FailingSandbox]:
    with FailingSandbox() as made:
        yield made


def test_an_unjudged_program_pays_nobody_and_is_in_no_book(sandbox: FailingSandbox) -> None:
    referee = Referee(sandbox)
    rounds = [
        Round(INC, f"{RIGHT}  {MARK}", [SUITE, []], SUITE[:1]),
        Round(INC, "def inc(n): return n", [SUITE, []], SUITE[:1]),
    ]
    unjudged, wrong = referee.judge(rounds)
    assert (unjudged.code_reward, wrong.code_reward) == (None, 0.0)
    assert [suite.rewards.test for suite in unjudged.suites] == [None, None]
    assert all(suite.rewards.test is not None for suite in wrong.suites)
    assert (unjudged.failed, unjudged.forgettable, unjudged.history) == ((), (), ())
    assert [test.outcome for test in unjudged.suites[0].tests] == [Outcome.UNJUDGED] * 3
    assert unjudged.load.outcome is Outcome.UNJUDGED
    assert len(wrong.failed) == 3


def test_an_unjudged_reference_pays_nobody_and_is_asked_again(
    sandbox: FailingSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    referee = Referee(sandbox)
    other = Problem("other", "def inc(n):", "inc", f"{RIGHT}\n# other")
    round_ = Round(other, "def inc(n): return n", [SUITE], SUITE[:1])
    with monkeypatch.context() as patched:
        patched.setitem(globals(), "MARK", "# other")
        [verdict] = referee.judge([round_])
    assert verdict.suites[0].rewards.test is None
    assert (verdict.code_reward, verdict.failed, verdict.forgettable) == (None, (), ())
    [verdict] = referee.judge([round_])
    assert (verdict.code_reward, len(verdict.failed)) == (0.0, 3)


class Says:
    """Answers the same every time, one after the other."""

    def __init__(self, *answers: str) -> None:
        self._answers = answers

    def act(self, observations: Any) -> list[str]:
        return [self._answers[i % len(self._answers)] for i in range(len(observations))]


def test_a_step_goes_on_and_counts_them(sandbox: FailingSandbox) -> None:
    referee, book = Referee(sandbox), MistakeBook()
    coder = Says(f"```python\n{RIGHT}  {MARK}\n```", "```python\ndef inc(n): return n\n```")
    tester = Says("```python\n" + "\n".join(SUITE) + "\n```")
    config = RolloutConfig(num_generations=2, num_suites=2)
    played = rollout([INC], coder, tester, referee, book, config)
    rewards = [each.reward for each in played.coder_experience()]
    assert rewards == [None, 0.0]
    assert [each.reward is None for each in played.tester_experience("all")] == [
        True,
        True,
        False,
        False,
    ]
    row = step_metrics(played, played.coder_experience(), played.tester_experience(), len(book))
    assert row["sandbox/unjudged"] > 0
    assert row["reward/coder/mean"] == 0.0


def test_over_http_it_is_a_failure_of_ours() -> None:
    said = run_response(ScriptResult(Outcome.UNJUDGED, message="killed"), "", {})
    assert said["status"] == "SandboxError"
