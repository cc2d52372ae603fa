"""Ranks with ties, and how soon an entry got where it is."""

from __future__ import annotations

import numpy as np

from codea1_env.baselines.bench.results import Result
from codea1_env.baselines.bench.score_table import Table
from codea1_env.baselines.bench.standing import standing_lines, standings


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


def test_the_section_has_a_row_for_each_entry() -> None:
    names = {"fast": "fast", "slow": "a|b", "bad": "bad"}
    lines = standing_lines(table(), names)
    assert sum(line.startswith("| ") for line in lines) == 4
    assert any("a\\|b" in line for line in lines)
    # A tester that was not measured has no rank.
    assert lines[-1].endswith("| - | - | - |")
    assert standing_lines(Table([result("one", 0, 0.5, [0.1, 0.5])]), {"one": "one"}) == []
