"""The shipped scores: of this version, whole, and telling good algorithms from bad ones where the flags say so."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from codea1_env.suite import tasks
from codea1_env.suite.players import BAD, FAULTY, find_entry
from codea1_env.suite.running import play, with_rates
from codea1_env.suite.scores import paired, score_tracks, shipped

SEEDS = [str(seed) for seed in tasks.SEEDS]


def test_the_file_of_the_version_is_frozen() -> None:
    # A changed v1.toml is v2, and needs scores of its own.
    assert {row["suite_sha256"] for row in shipped().values()} == {tasks.digest("v1")}
    assert len(shipped()) >= 12
    for name, row in shipped().items():
        values = row["values"]["both"]
        assert list(values) == sorted(values), name
        assert {id: list(own) for id, own in values.items()} == dict.fromkeys(values, SEEDS), name
        assert values.keys() == {id for id, task in tasks.tasks().items() if "both" in task.tracks}
        assert len(row["commit"]) == 40, name
        assert row["machine"]["processor"], name


def test_random_players_score_0_and_the_oracle_1() -> None:
    for name, number in (("random", 0.0), ("oracle", 1.0)):
        for scored in score_tracks(shipped()[name]["values"]):
            assert scored.number is not None
            assert scored.held_out is not None
            assert scored.number.value == pytest.approx(number, abs=1e-9)
            assert scored.held_out.value == pytest.approx(number, abs=1e-9)


@pytest.mark.parametrize("track", tasks.TRACKS)
def test_every_id_that_separates_tells_the_bad_rows_from_grpo(track: tasks.Track) -> None:
    grpo = shipped()["grpo"]
    for task in tasks.tasks().values():
        if not task.separates or track not in task.tracks:
            continue
        for name in BAD:
            row = shipped()[name]
            one, two = (each["values"][track][task.id] for each in (row, grpo))
            assert list(one) == list(two) == SEEDS
            less = paired(task, track, one, two)
            assert less is not None
            assert less.high < 0, (task.id, name)


@pytest.mark.parametrize("name", FAULTY)
def test_bad_rows_have_the_tuning_of_grpo(name: str) -> None:
    rates = [shipped()[each]["settings"]["rates"] for each in (name, "grpo")]
    assert rates[0] == rates[1]


def test_every_experiment_has_an_id_that_separates_and_an_expectation() -> None:
    path = Path(tasks.__file__).with_name("expectations.toml")
    expected = tomllib.loads(path.read_text(encoding="utf-8"))
    known = tasks.tasks().values()
    assert set(expected) == {task.experiment for task in known}
    for name in expected:
        parts = {task.part for task in known if task.experiment == name and task.separates}
        assert parts == {"score", "held-out"}


def test_grpo_through_an_environment_scores_as_in_our_loop() -> None:
    script = Path(__file__).parents[2] / "benchmarks" / "suite_agreement.py"
    words = [sys.executable, str(script), "cycling/0", "--seeds", "2"]
    table = subprocess.run(words, capture_output=True, text=True, check=True, timeout=280).stdout
    one, two, less = (float(cell.split()[0]) for cell in table.splitlines()[-1].split("|")[2:5])
    assert min(one, two) > 0.7
    assert abs(less) < 0.06


@pytest.mark.parametrize("name", ["grpo", "negated-rewards", "ppo", "memory"])
def test_a_shipped_number_comes_again(name: str) -> None:
    row, task = shipped()[name], tasks.find_task("cycling/0")
    settings = row["settings"]
    plain = find_entry(settings["algorithm"], settings["args"])
    entry = with_rates(plain, settings["rates"], "both", "cycling")
    value = play(entry, tasks.RecordKey("both", task, 7)).value
    shown = row["values"]["both"]["cycling/0"]["7"]
    assert value == pytest.approx(shown, abs=0.05)  # processors round differently
