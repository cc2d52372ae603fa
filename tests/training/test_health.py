"""What a run says of itself while it goes on."""

from __future__ import annotations

import pytest

from codea1_env.training.health import Health


@pytest.mark.parametrize(
    ("metric", "bad", "good", "words"),
    [
        ("coder/truncated", 0.6, 0.5, "60% of the coder's answers are cut off"),
        ("tester/frac_reward_zero_std", 0.75, 0.4, "75% of the tester's groups"),
        ("tester/copied", 1.0, 0.9, "100% of the tester's tests are copies"),
        ("coder/sampling/sampling_logp_difference/mean", 0.3, 0.05, "differ by 0.30"),
    ],
)
def test_a_sign_is_told_once(metric: str, bad: float, good: float, words: str) -> None:
    well, ill = Health(), Health()
    assert not [line for step in range(9) for line in well.news({"step": step, metric: good})]
    [line] = [line for step in range(9) for line in ill.news({"step": step, metric: bad})]
    assert line.startswith("Step 2: ")
    assert words in line


def test_one_bad_step_is_no_sign() -> None:
    health = Health()
    values = [0.2, 1.0, 0.2, None, 0.2, 0.9]
    assert not [
        line for value in values for line in health.news({"step": 1, "coder/truncated": value})
    ]
