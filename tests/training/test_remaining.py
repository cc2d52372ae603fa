"""The clock of a run, with a time that the test sets."""

from __future__ import annotations

import pytest

from codea1_env.training import progress
from codea1_env.training.progress import Remaining


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(progress.time, "monotonic", lambda: self.now)
        self.run = Remaining()

    def phase(self, name: str, seconds: float) -> None:
        self.run.begin(name)
        self.now += seconds
        self.run.end()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_nothing_is_known_at_first(clock: Clock) -> None:
    clock.now += 70
    assert clock.run.seconds() is None
    assert clock.run.text() == "1:10 so far"
    assert clock.run.done() == 0.0


def test_what_was_expected_until_it_is_known_better(clock: Clock) -> None:
    clock.run.expect(4, {"coder": 10.0, "judge": 0.0, "learn_coder": 5.0}, 2, 20.0)
    assert clock.run.seconds() == 4 * 15 + 2 * 20
    clock.phase("evaluate", 30)
    assert clock.run.seconds() == 4 * 15 + 30  # the second one will take as long as the first
    clock.phase("coder", 20)
    assert clock.run.seconds() == pytest.approx(4 * 15 - 10 + 30)
    clock.phase("judge", 1)
    clock.phase("learn_coder", 4)
    clock.run.end_step()
    assert clock.run.seconds() == pytest.approx(3 * 25 + 30)
    for _ in range(3):
        clock.phase("coder", 20)
        clock.phase("judge", 1)
        clock.phase("learn_coder", 4)
        clock.run.end_step()
    assert clock.run.seconds() == pytest.approx(30)


def test_a_phase_says_how_far_it_is(clock: Clock) -> None:
    clock.run.expect(1, {"coder": 100.0}, 0, 0.0)
    clock.run.begin("coder")
    clock.now += 10
    assert clock.run.seconds() == pytest.approx(90)
    clock.run.share = 0.5
    assert clock.run.seconds() == pytest.approx(50)
    clock.now += 500  # it takes longer than expected
    assert clock.run.seconds() == pytest.approx(50)


def test_a_phase_that_takes_long_is_never_done_before_it_ends(clock: Clock) -> None:
    clock.run.expect(1, {"learn_coder": 10.0}, 0, 0.0)
    clock.run.begin("learn_coder")
    clock.now += 60
    assert clock.run.seconds() == pytest.approx(0.5)
    assert clock.run.done() < 1
