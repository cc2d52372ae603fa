"""What one run of a benchmark measured, and what it goes on with."""

from __future__ import annotations

import dataclasses
import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from runs_here import run_here

from codea1_env.baselines import BASELINES
from codea1_env.baselines.bench.results import (
    DamagedRunError,
    Result,
    RunTable,
    forgetting,
    jobs_of,
    read_logs,
    results_of,
)
from codea1_env.baselines.bench.schedule import run_all
from codea1_env.baselines.bench.score_table import Table, standings
from codea1_env.baselines.bench.suite import BenchConfig, Rates, find_entry
from codea1_env.baselines.payoffs import cross_play, decomposition, gains
from codea1_env.sandbox import Sandbox
from codea1_env.support.jobs import BENCHMARK, Jobs
from codea1_env.training import TrainConfig, train

pytestmark = pytest.mark.usefixtures("sandboxes_stay_open")

CONFIG = BenchConfig(
    ("golden-tests",), problems="starter", seeds=1, max_problems=4, max_steps=2, processes=1
)


RATES = {"golden-tests": Rates()}


def run_in(folder: Path, config: BenchConfig = CONFIG) -> Result:
    (job,) = jobs_of(config, [find_entry("golden-tests")], RATES)
    with Jobs(folder, {}, BENCHMARK, resume=None) as jobs:
        table = RunTable(jobs)
        run_all(config, [job], table)
        (result,) = results_of(table.rows, [job])
        return result


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("bench") / "results"
    with pytest.MonkeyPatch.context() as patch:
        run_here(patch)
        run_in(folder)
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """The run folder of a finished job."""
    shutil.copytree(finished, tmp_path / "copy")
    (found,) = tmp_path.glob("copy/runs/*/*/*/run")
    return found


def _changed(**values: object):
    """Changes the third row of a log."""

    def change(lines: list[str]) -> list[str]:
        return [*lines[:2], json.dumps(json.loads(lines[2]) | values), *lines[3:]]

    return change


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("held_out.jsonl", lambda lines: [lines[0][:50]], "those of step 0 are others, or incomplete"),
        ("held_out.jsonl", _changed(task_id="x"), "those of step 1 are others"),
        ("metrics.jsonl", lambda lines: lines[:2], "from 0 to 2, actually its whole rows are those of steps 0, 1"),
    ],
)  # fmt: skip
def test_logs_that_are_not_whole(run: Path, name: str, change, message: str):
    path = run / name
    path.write_text("".join(line + "\n" for line in change(path.read_text().splitlines())))
    with pytest.raises(DamagedRunError, match=message):
        read_logs(run, CONFIG.max_steps)


def test_rows_after_a_checkpoint_may_be_cut_off(run: Path):
    for name in ("metrics.jsonl", "held_out.jsonl"):
        path = run / name
        path.write_bytes(path.read_bytes()[:-1])  # a last row without its end of line is not whole
    logs = read_logs(run, 1)
    assert [row["step"] for row in logs.metrics] == [0, 1]
    assert len(logs.end) == 4
    with pytest.raises(DamagedRunError, match="those of steps 0, 1"):
        read_logs(run, 2)


def begun_again(folder: Path) -> None:
    """Make a table as it was before its run ended."""
    begun, *_ = (folder / "jobs.jsonl").read_text().splitlines(keepends=True)
    (folder / "jobs.jsonl").write_text(begun)


def test_a_run_that_died_before_it_told_is_not_made_again(run: Path, monkeypatch):
    run_here(monkeypatch)
    folder, timings = run.parents[4], (run / "timings.jsonl").read_text()
    before = run_in(folder)
    begun_again(folder)
    assert dataclasses.replace(run_in(folder), seconds=before.seconds) == before
    assert (run / "timings.jsonl").read_text() == timings


@pytest.mark.parametrize("name", ["coder/tabular.json", "held_out.jsonl", None])
def test_a_run_goes_on_from_a_whole_checkpoint_only(run: Path, name, monkeypatch):
    run_here(monkeypatch)
    # As if the run had been killed after the second of three steps.
    longer, folder = dataclasses.replace(CONFIG, max_steps=3), run.parents[4]
    begun_again(folder)
    if name is not None:
        file = next(each for each in run.rglob(Path(name).name) if str(each).endswith(name))
        file.write_bytes(file.read_bytes()[:20])
    timings = (run / "timings.jsonl").read_text().splitlines()
    result = run_in(folder, longer)
    assert (result.status, [row["step"] for row in result.curves]) == ("ok", [0, 1, 2, 3])
    anew = "This run starts anew. Expect" in (run.parent / "log.txt").read_text()
    kept = (run / "timings.jsonl").read_text().splitlines()[:2] == timings
    assert (anew, kept) == (name is not None, name is None)


def test_what_was_passed_before_is_forgotten():
    times = [{"a": 0.5, "b": 0.0, "c": None}, {"a": 0.75, "b": 0.25, "c": None}, {"a": 0.5, "b": 1.0, "c": None}]  # fmt: skip
    scores = [{task: {"pass_rate": rate} for task, rate in row.items()} for row in times]
    assert forgetting(scores) == {"a": 0.25, "b": 0.0}
    assert forgetting(scores[:1]) == {}


def test_rows_of_other_problems_must_be_those_of_the_means(run: Path):
    log = run / "metrics.jsonl"
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    for row in rows:
        if "held_out/pass_rate" in row:
            row["unseen/pass_rate"] = 0.5
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DamagedRunError, match=r"unseen\.jsonl to have the rows"):
        read_logs(run, CONFIG.max_steps)
    measures = {"pass_rate": 0.5, "kill_rate": None, "copier_kill_rate": 1.0, "new_kill_rate": None}
    steps = [row["step"] for row in rows if "unseen/pass_rate" in row]
    unseen = [json.dumps({"step": step, "task_id": "u", **measures}) + "\n" for step in steps]
    (run / "unseen.jsonl").write_text("".join(unseen))
    assert read_logs(run, CONFIG.max_steps).end["u"]["unseen/pass_rate"] == 0.5


def test_code_a1_is_the_default() -> None:
    assert BASELINES["code-a1"].apply(TrainConfig()) == TrainConfig()


def test_baselines_differ_from_each_other() -> None:
    named = BASELINES.items()
    configs = [each.apply(TrainConfig()) for name, each in named if name != "alpha=0.5"]
    assert all(a != b for i, a in enumerate(configs) for b in configs[:i])


def last_row(name: str, folder: Path, sandbox: Sandbox) -> dict[str, Any]:
    """Train for two steps; the metrics of the second."""
    config = TrainConfig(
        max_problems=2, num_generations=4, num_suites=2, max_steps=2, eval_samples=1,
        output_dir=folder / name,
    )  # fmt: skip
    console = Console(file=io.StringIO())
    train(BASELINES[name].apply(config), sandbox=sandbox, console=console)
    rows = (folder / name / "metrics.jsonl").read_text().splitlines()
    return json.loads(rows[-1])


@pytest.mark.parametrize(
    ("name", "learners", "book"),
    [
        ("code-a1", {"coder", "tester"}, True),
        ("golden-tests", {"coder"}, False),
        ("self-play", {"model"}, True),
        ("self-play-white-box", {"model"}, True),
        ("self-collusion", {"model"}, True),
        ("code-a1-no-reference", {"coder", "tester"}, True),
        ("sft", {"tester"}, True),
        ("drop-wrong-oracle", {"coder", "tester"}, True),
        ("all-suites", {"coder", "tester"}, True),
        ("alpha=0", {"coder", "tester"}, True),
        ("frozen-tester", {"coder"}, True),
        ("copier", {"coder"}, True),
        ("frozen-coder", {"tester"}, True),
        ("no-book", {"coder", "tester"}, False),
        ("black-box", {"coder", "tester"}, True),
        ("past-opponents", {"tester"}, True),  # in this step the coder is of the past, by its seed
        ("repair", {"coder", "tester"}, True),
        ("sketch", {"coder", "tester"}, True),
    ],
)
def test_baseline_trains_whom_it_says(name, learners, book, tmp_path, sandbox) -> None:
    row = last_row(name, tmp_path, sandbox)
    losses = {"coder": "coder/loss", "tester": "tester/loss", "model": "model/programs/loss"}
    assert {player for player, loss in losses.items() if loss in row} == learners
    assert (row["book/size"] > 0) == book


def test_every_baseline_is_tried() -> None:
    (marks,) = test_baseline_trains_whom_it_says.pytestmark
    others = {name for name in BASELINES if name.startswith("alpha=")}  # one number more or less
    assert {name for name, *_ in marks.args[1]} | others == set(BASELINES)


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
