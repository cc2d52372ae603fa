"""Opponents from the past, in runs of tables; and what the settings refuse."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest
from test_train import SMALL, Interrupting, contents, run

from codea1_env.sandbox import Sandbox
from codea1_env.support.logs import read_rows
from codea1_env.training.past import NOBODY, PastOpponents
from codea1_env.training.run_folder import METRICS
from codea1_env.training.settings import replaced

PAST = {"opponents": "past", "past_steps": 1, "past_limit": 3, "past_share": 0.7, "max_steps": 8}


def opponents(folder: Path, **changes: object) -> PastOpponents:
    return PastOpponents(replaced(SMALL, {**PAST, **changes}), folder, None)


def test_the_oldest_and_the_newest_stay(tmp_path: Path) -> None:
    assert [opponents(tmp_path).kept(step) for step in range(5)] == [
        [0],
        [0, 1],
        [0, 1, 2],
        [0, 2, 3],
        [0, 3, 4],
    ]
    assert opponents(tmp_path, opponents="current").kept(5) == []


@pytest.mark.parametrize(("sampling", "expected"), [("latest", {4}), ("uniform", {0, 3, 4})])
def test_who_plays_follows_from_seed_and_step(tmp_path: Path, sampling, expected) -> None:
    past = opponents(tmp_path, past_sampling=sampling, past_steps=1)
    sides = [past.of_step(4) for _ in range(3)]
    assert len(set(sides)) == 1
    many = [
        opponents(tmp_path, past_sampling=sampling, seed=seed).of_step(4) for seed in range(200)
    ]
    share = np.mean([side != NOBODY for side in many])
    assert abs(share - 0.7) < 4 * (0.7 * 0.3 / 200) ** 0.5
    assert {side.step for side in many if side.role} == expected
    assert {side.role for side in many} == {"", "coder", "tester"}


def test_who_wins_plays_more_often(tmp_path: Path) -> None:
    past = opponents(tmp_path, past_sampling="win-rate")
    past._results = {f"{role}/{step}": [1, float(step == 3)] for role in ("coder", "tester") for step in (0, 3, 4)}  # fmt: skip
    rng = np.random.default_rng(0)
    drawn = [past._drawn("coder", [0, 3, 4], rng) for _ in range(100)]
    assert drawn.count(3) > 95


def test_the_side_from_the_past_does_not_learn(sandbox: Sandbox, tmp_path: Path) -> None:
    run(tmp_path / "run", sandbox, **PAST)
    rows = list(read_rows(tmp_path / "run" / METRICS))[1:]
    for row in rows:
        for role in ("coder", "tester"):
            played_before = row[f"past/{role}_of"] is not None
            assert (f"{role}/loss" not in row) == played_before
    assert any(row["past/coder_of"] is not None for row in rows)
    assert any(row["past/tester_of"] is not None for row in rows)
    assert all(row["past/coder_of"] is None or row["past/tester_of"] is None for row in rows)


def test_an_interrupted_run_goes_on_to_the_same_bytes(sandbox: Sandbox, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    settings = {**PAST, "eval_steps": 20, "save_steps": 3}
    run(whole, sandbox, player=Interrupting(signal.SIGINT, after=-1), **settings)
    run(parts, sandbox, player=Interrupting(signal.SIGINT, after=6), **settings)
    run(parts, sandbox, resume=True, player=Interrupting(signal.SIGINT, after=-1), **settings)
    ours, theirs = contents(parts), contents(whole)
    for name, data in theirs.items():
        if "checkpoints" not in name or "step_8" in name:
            assert ours[name] == data, name


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"past_steps": 8}, "past_steps to be below max_steps"),
        ({"past_limit": 1}, "past_limit to be greater than or equal to 2"),
        ({"past_share": 1.5}, "past_share to be less than or equal to 1"),
        ({"past_sampling": "best"}, "past_sampling to be 'uniform', 'latest' or 'win-rate'"),
        ({"self_play": True}, "opponents='past' with two players"),
    ],
)
def test_settings_that_make_no_past_are_refused(changes, message) -> None:
    with pytest.raises(ValueError, match=message):
        replaced(SMALL, {**PAST, **changes})


@pytest.mark.parametrize("tester_rounds", ["every", "first"])
def test_repair_rounds_are_measured(sandbox: Sandbox, tmp_path: Path, tester_rounds) -> None:
    run(tmp_path / "run", sandbox, max_rounds=2, tester_rounds=tester_rounds, max_steps=3)
    rows = list(read_rows(tmp_path / "run" / METRICS))[1:]
    for row in rows:
        both = [row["reward/coder/round_1"], row["reward/coder/round_2"]]
        assert row["reward/coder/mean"] == pytest.approx(np.mean(both))
        assert row["coder/repaired"] is None or 0 <= row["coder/repaired"] <= 1
