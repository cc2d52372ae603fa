"""Diagnostics: rows and rules do what they say, scores and marks can be counted by hand, and folders go on."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from codea1_env.baselines.diagnose import experiments
from codea1_env.baselines.diagnose.experiments import EXPERIMENTS, Experiment, find_row
from codea1_env.baselines.diagnose.running import RowRun, runs_in
from codea1_env.baselines.diagnose.scores import content_of, score_rows
from codea1_env.cli.app import run as main
from codea1_env.report.diagnostics import diagnosis
from codea1_env.report.folders import Diagnosed
from codea1_env.suite.players import SuiteEntry, SuiteRun, TablePlayer
from codea1_env.suite.rounds import Book, Rounds
from codea1_env.suite.running import play
from codea1_env.suite.tasks import GROUP, VARIANTS, RecordKey, find_task
from codea1_env.suite.worlds import SuiteWorld


@pytest.mark.parametrize("variant", VARIANTS)
def test_other_rules_can_be_played_and_repeated_in_the_same_world(variant: str) -> None:
    plain = find_task("rare-faults/3", "diagnose")
    task = find_task(f"rare-faults/3@{variant}", "diagnose")
    assert (SuiteWorld(task, 1000).table == SuiteWorld(plain, 1000).table).all()
    short = dataclasses.replace(task, wrong=0.1, episodes=512)
    first, again = (play(SuiteEntry(), RecordKey("both", short, 1000)) for _ in range(2))
    assert first == again


def test_experiments_rows_and_expectations_belong_together() -> None:
    for each in EXPERIMENTS.values():
        assert len(each.signs) == len(each.settings)
        assert each.control in each.rows
        assert set(each.quick) <= set(each.settings)
        assert each.expected
        assert each.refuted_by
        for name in each.rows:
            row = find_row(name)
            assert len(each.keys(row, (0, 1), quick=False)) == 2 * len(each.settings)


# What diagnose.toml has and v1.toml has not


def test_errors_of_a_program_are_the_same_on_all_its_calls() -> None:
    world = SuiteWorld(find_task("noise/2@same-errors-of-a-program", "diagnose"), 1000)
    wrong = world.seen != world.faulty
    for truth in (False, True):
        rows = [set(own[mask == truth].tolist()) for own, mask in zip(wrong.reshape(-1, 256), world.faulty.reshape(-1, 256), strict=True)]  # fmt: skip
        assert all(len(row) <= 1 for row in rows)
        assert 0.05 < np.mean([True in row for row in rows]) < 0.5


@pytest.mark.parametrize(("number", "met"), [(0, 4), (1, 3), (2, 2), (4, 0)])
def test_new_programs_have_so_many_kinds_of_training(number: int, met: int) -> None:
    task = find_task(f"kinds/{number}", "diagnose")
    world = SuiteWorld(task, 1000)
    first = round(world.groups * (1 - task.last)) + 1
    faulty = world.faulty.reshape(world.groups, task.programs, task.C)
    trained = faulty[: first - 2].any(axis=(0, 1))
    assert trained.sum() == task.families - task.hidden
    assert (faulty[first:].sum(axis=2) == task.kinds).all()
    assert (faulty[first:, :, trained].sum(axis=2) == met).all()


def test_a_coders_first_program_is_the_judge_where_the_reference_is_not() -> None:
    task = find_task("collusion/4", "diagnose")
    rounds = Rounds(task, 1000)
    episodes = rounds.begin(GROUP)
    wrong = np.flatnonzero(~rounds.world.right[0])[:2]
    programs = np.repeat(wrong, GROUP // 2)
    cell = rounds.world.faulty[0, wrong[0]].argmax()  # in truth each suite breaks the program
    tests = np.tile([cell, (cell + 1) % task.C], (GROUP, 1))
    paid = rounds.end(episodes, programs, tests)
    assert (paid.coder[: GROUP // 2] == 1).all(), "it passes its own judgement"
    played = episodes, programs, tests, paid.replayed
    validity = rounds.judge(rounds.world.at(episodes), played)[2][:, 2]
    assert (validity < 1).all(), "the pool predicts what is true"


def test_a_book_of_passing_tests_holds_what_broke_nothing() -> None:
    task = dataclasses.replace(find_task("cycling/0@passing-book", "diagnose"), K=3, problems=1)
    book = Book(task, np.zeros((1, 0), np.int64))
    none = np.zeros((GROUP, 3), np.bool_)
    problem, tests = np.zeros(GROUP, np.int64), np.tile([4, 5, 6], (GROUP, 1))
    broken = none.copy()
    broken[3, 1] = True
    book.update(problem, broken, tests, none)
    assert set(np.flatnonzero(book.count[0])) == {4, 6}
    passed = np.tile(np.isin(book.cells[0], [6]), (GROUP, 1))
    book.update(problem, none, np.tile([7, 8, 9], (GROUP, 1)), passed)
    assert set(np.flatnonzero(book.count[0])) == {6, 7, 8, 9}, "4 broke a program"


def test_what_a_coder_learns_moves_other_problems_by_the_share() -> None:
    run = SuiteRun(SuiteEntry(), find_task("forgetting/3", "diagnose"), 1000)
    assert isinstance(run.coder, TablePlayer)
    coder = run.coder.tables
    coder.change(np.array([2]), np.ones((1, 16)))
    problems = coder.logits_of(np.arange(24))
    assert (problems[2] == 1).all()
    assert (np.delete(problems, 2, axis=0) == 0.25).all()


# Scores, and the command

ROWS = ("grpo", "pool-tests", "random", "oracle")


def experiment_of(*rows: str, name: str = "cycling") -> Experiment:
    return dataclasses.replace(EXPERIMENTS[name], rows=rows, quick=("1/8", "1/16"))


def runs_of(**values: tuple[float, float]) -> list[RowRun]:
    found = {name.replace("_", "-"): both for name, both in values.items()}
    return [
        RowRun("cycling", setting, row, seed, value + 0.1 * seed * (row == "grpo"))
        for row, both in {**found, "random": (0.1, 0.1), "oracle": (0.9, 0.6)}.items()
        for setting, value in zip(("1/8", "1/16"), both, strict=True)
        for seed in (0, 1)
    ]


def text_of(experiment: Experiment, runs: list[RowRun]) -> str:
    content = content_of([experiment], runs)
    return diagnosis(Diagnosed("", content["scores"], content["experiments"]))


def test_scores_by_hand() -> None:
    runs = runs_of(grpo=(0.5, 0.3), pool_tests=(0.3, 0.0))
    grpo, control, *_ = score_rows(experiment_of(*ROWS), runs)
    # (x - 0.1) / 0.8 and (x - 0.1) / 0.5, not cut off
    assert grpo.means == pytest.approx({"1/8": 0.45 / 0.8, "1/16": 0.25 / 0.5})
    assert control.means == pytest.approx({"1/8": 0.2 / 0.8, "1/16": -0.1 / 0.5})
    assert grpo.differences["1/8"].value == pytest.approx(0.25 / 0.8)
    assert grpo.area is not None
    assert grpo.area.value == pytest.approx((0.25 / 0.8 + 0.35 / 0.5) / 2)
    assert control.differences == {}
    text = text_of(experiment_of(*ROWS), runs)
    assert "| pool-tests (control) | 0.250 | -0.200 | control |" in text
    assert "1/16: expected" in text


def test_a_column_in_which_a_bad_row_wins_tells_nothing() -> None:
    rows = (*ROWS, "negated-rewards")
    runs = runs_of(grpo=(0.5, 0.3), pool_tests=(0.3, 0.0), negated_rewards=(0.6, 0.1))
    text = text_of(experiment_of(*rows), runs)
    assert "| 1/8 (tells nothing) | 1/16 |" in text
    assert "1/8 (by negated-rewards)" in text


def test_areas_of_two_signs_are_not_summed() -> None:
    experiment = dataclasses.replace(experiment_of(*ROWS), signs=("+", "-", "0", "0", "0"))
    flat = content_of([experiment], runs_of(grpo=(0.9, 0.1), pool_tests=(0.5, 0.5)))["scores"]
    assert [each["area"] for each in flat] == [None] * 4


@pytest.fixture
def short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in; *cycling* has few rows and two settings."""
    monkeypatch.chdir(tmp_path)
    for home in (experiments,):
        monkeypatch.setitem(home.EXPERIMENTS, "cycling", experiment_of(*ROWS))  # type: ignore[arg-type]
    return tmp_path


COMMAND = ["bench", "diagnose", "cycling", "--quick", "--seeds", "2", "--processes", "1", "--output-dir", "out"]  # fmt: skip


def test_the_command_goes_on_where_it_was(short: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(COMMAND) == 0
    capsys.readouterr()
    scores = (short / "out" / "scores.json").read_text()
    gone = short / "out" / "grpo" / "records" / "both" / "cycling-1" / "1" / "rounds.jsonl"
    text = gone.read_text()
    gone.write_text("".join(text.splitlines(keepends=True)[:-1]))  # as after a kill
    assert len(runs_in(short / "out", EXPERIMENTS["cycling"])) == 15
    assert main([*COMMAND, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 16
    assert gone.read_text() == text
    assert (short / "out" / "scores.json").read_text() == scores
    typed = json.loads((short / "out" / "diagnose.json").read_text())["command"]
    assert typed == f"codea1 {' '.join(COMMAND)} --json"


def test_a_row_that_fails_is_named_and_the_rest_is_shown(short: Path) -> None:
    (short / "own.py").write_text("class Own:\n    learning_rate = 1.0\n    def __init__(self, learning_rate=1.0): pass\n    def advantages(self, rewards): 1 / 0\n")  # fmt: skip
    assert main([*COMMAND, "--rows", "own.py:Own", "ppo(entropy=0.02)@no-book"]) == 1
    text = (short / "out" / "DIAGNOSE.md").read_text()
    assert "| failed |" in text
    assert "actually: ZeroDivisionError" in text
    assert "| ppo(entropy=0.02)@no-book | 0." in text


def test_bad_input_is_one_line_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments, message in (
        (["rare-fault"], "Did you mean rare-faults"),
        (["cycling", "--rows", "ppp"], "no row 'ppp'. Did you mean ppo"),
        (["cycling", "--rows", "ppo@no-bok"], "no rules 'no-bok'. Did you mean no-book"),
        (["cycling", "--rows", "ppo(x"], "Expect a row as NAME(KEY=VALUE, ...)"),
        (["cycling", "--seeds", "0"], "--seeds"),
    ):
        assert main(["bench", "diagnose", *arguments]) == 2
        err = capsys.readouterr().err
        assert message in err
        assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "runs").exists()
