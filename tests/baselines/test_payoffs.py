"""Exploitability and cyclic share of games whose figures are known; ranks with ties."""

from __future__ import annotations

import numpy as np
import pytest

from codea1_env.baselines.bench.results import Result
from codea1_env.baselines.bench.score_table import Table, standings
from codea1_env.baselines.payoffs import cross_play, decomposition, gains

ROCK_PAPER_SCISSORS = np.array([[0.5, 1.0, 0.0], [0.0, 0.5, 1.0], [1.0, 0.0, 0.5]])
EVEN = np.full(3, 1 / 3)
FIRST = np.array([1.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("breaks", "coder", "tester", "expected"),
    [
        (ROCK_PAPER_SCISSORS, EVEN, EVEN, (0.0, 0.0)),
        (ROCK_PAPER_SCISSORS, FIRST, FIRST, (0.5, 0.5)),
        # Two holes and two tests, each finds one: a coder that mixes evenly is broken by half of the blind tests,
        (np.eye(2), np.array([0.5, 0.5]), np.array([0.5, 0.5]), (0.0, 0.0)),
        (np.eye(2), np.array([0.8, 0.2]), np.array([0.5, 0.5]), (0.0, 0.3)),
        # and always by a tester that sees the program, against which no program helps.
        (np.eye(2), np.array([0.5, 0.5]), np.eye(2), (0.0, 0.0)),
        (np.eye(2), np.array([0.5, 0.5]), np.full((2, 2), 0.5), (0.0, 0.5)),
        # With a right program in the pool, that is the equilibrium whatever the tester does.
        (np.array([[0, 0], [1, 0]]), np.array([1.0, 0.0]), np.array([0.0, 1.0]), (0.0, 0.0)),
        (np.array([[0, 0], [1, 0]]), np.array([0.0, 1.0]), np.array([1.0, 0.0]), (1.0, 0.0)),
    ],
)  # fmt: skip
def test_gains_by_hand(breaks, coder, tester, expected):
    found = gains(np.asarray(breaks, float), coder, tester)
    assert found == pytest.approx(expected)
    assert found.nash_conv == pytest.approx(sum(expected))


def test_cyclic_share_of_known_games():
    # Checkpoint k plays program k and test k: each breaks the one before it.
    assert decomposition(ROCK_PAPER_SCISSORS).cyclic_share == pytest.approx(1.0)
    assert decomposition(ROCK_PAPER_SCISSORS).ratings == pytest.approx([0, 0, 0])
    ratings = np.array([0.0, 0.1, 0.4, 0.5])
    transitive = 0.5 + (ratings[None, :] - ratings[:, None]) / 2
    found = decomposition(transitive)
    assert found.cyclic_share == pytest.approx(0.0, abs=1e-12)
    assert np.diff(found.ratings) == pytest.approx(np.diff(ratings))
    assert decomposition(np.full((3, 3), 0.2)).cyclic_share == 0.0  # nobody beats anybody


def test_the_parts_sum_to_the_game_and_are_orthogonal():
    broken = np.random.default_rng(0).random((6, 6))
    found = decomposition(broken)
    transitive = found.ratings[:, None] - found.ratings[None, :]
    assert found.cyclic + transitive == pytest.approx(broken.T - broken)
    assert found.cyclic.sum(axis=1) == pytest.approx(np.zeros(6))
    assert (found.cyclic * transitive).sum() == pytest.approx(0.0)
    assert 0 < found.cyclic_share < 1


def test_cross_play_of_blind_and_of_seeing_testers():
    breaks = np.eye(3)
    coders = np.array([EVEN, FIRST])
    blind = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
    assert cross_play(breaks, coders, blind) == pytest.approx(np.array([[1 / 3, 1 / 3], [1.0, 0.0]]))  # fmt: skip
    seeing = np.stack([np.eye(3), np.roll(np.eye(3), 1, axis=1)])
    assert cross_play(breaks, coders, seeing) == pytest.approx(np.array([[1.0, 0.0], [1.0, 0.0]]))


def result(entry: str, seed: int, end: float, curve: list[float]) -> Result:
    scores = {"pass_rate": end, "kill_rate": None, "copier_kill_rate": None, "new_kill_rate": None}
    rows = [{"step": 10 * i, "held_out/pass_rate": value} for i, value in enumerate(curve)]
    start, last = ({"one": {**scores, "pass_rate": value}} for value in (curve[0], end))
    return Result(entry, seed, "ok", "", 1.0, start, last, rows)


def table() -> Table:
    rng = np.random.default_rng(0)
    rows = []
    for seed in range(6):
        noise = rng.normal(0, 0.01, 3)
        rows += [
            result("fast", seed, 0.9 + noise[0], [0.2, 0.9, 0.9]),
            result("slow", seed, 0.9 + noise[1], [0.2, 0.2, 0.9]),
            result("bad", seed, 0.3 + noise[2], [0.2, 0.3, 0.3]),
        ]
    return Table(rows)


def test_entries_that_cannot_be_told_share_their_ranks() -> None:
    found = {each.entry: each for each in standings(table(), "pass_rate")}
    assert found["fast"].rank_text == found["slow"].rank_text == "1-2"
    assert found["bad"].rank == (3, 3)


def test_the_area_and_the_steps_tell_who_was_sooner() -> None:
    found = {each.entry: each for each in standings(table(), "pass_rate")}
    assert found["fast"].area.value == (0.55 * 10 + 0.9 * 10) / 20
    assert found["slow"].area.value < found["fast"].area.value
    assert [found[name].steps for name in ("fast", "slow", "bad")] == [10, 20, None]
