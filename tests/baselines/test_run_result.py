"""Damaged files of one run: it has failed and is repeated, and the rest of the benchmark does not notice."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from codea1_env.baselines.bench.results import TrainingJob, collect, forgetting, jobs_of
from codea1_env.baselines.bench.schedule import prepare, run_all
from codea1_env.baselines.bench.suite import BenchConfig, Rates, find_entry

CONFIG = BenchConfig(("golden-tests",), seeds=1, max_problems=2, max_steps=2, processes=1)


def job_in(folder: Path, config: BenchConfig = CONFIG) -> TrainingJob:
    (job,) = jobs_of(config, [find_entry("golden-tests")], folder, {"golden-tests": Rates()})
    return job


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("bench") / "results"
    run_all(CONFIG, [job_in(folder)])
    return folder


@pytest.fixture
def job(finished: Path, tmp_path: Path) -> TrainingJob:
    shutil.copytree(finished, tmp_path / "copy")
    return job_in(tmp_path / "copy")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("result.json", ""),
        ("result.json", "{}"),
        ("result.json", "[" * 100_000),
        ("run/metrics.jsonl", '{"step": 0}\n'),
        ("run/held_out.jsonl", '{"step": 0, "task_id": "x", "pass_rate": 1}\n'),
        ("run/held_out.jsonl", ""),
        ("game.json", '{"p": 1}'),
    ],
)
def test_a_damaged_run_has_failed_and_is_made_anew(job: TrainingJob, name: str, text: str) -> None:
    (job.folder / name).write_text(text)
    [result] = collect([job])
    assert (result.status, result.end) == ("failed", {})
    assert "--resume runs it again" in result.error
    [damage] = prepare(CONFIG, [job])
    assert str(job.folder) in damage
    assert not job.folder.exists()


def test_a_whole_run_is_kept_and_one_that_was_killed_goes_on(job: TrainingJob) -> None:
    assert prepare(CONFIG, [job]) == []
    assert job.done
    # As if the run had been killed after the second of three steps.
    (job.folder / "result.json").unlink()
    longer = dataclasses.replace(CONFIG, max_steps=3)
    job = job_in(job.folder.parents[2], longer)
    begun = (job.folder / "run" / "timings.jsonl").read_text().splitlines()
    run_all(longer, [job])
    [result] = collect([job])
    assert (result.status, [row["step"] for row in result.curves]) == ("ok", [0, 1, 2, 3])
    assert (job.folder / "run" / "timings.jsonl").read_text().splitlines()[:2] == begun


def test_problems_that_are_not_trained_on_are_read(job: TrainingJob) -> None:
    run = job.folder / "run"
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for row in rows:
        if "held_out/pass_rate" in row:
            row["unseen/pass_rate"] = 0.5
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    measures = {"pass_rate": 0.5, "kill_rate": None, "copier_kill_rate": 1.0, "new_kill_rate": None}
    steps = [row["step"] for row in rows if "unseen/pass_rate" in row]
    unseen = [json.dumps({"step": step, "task_id": "u", **measures}) + "\n" for step in steps]
    (run / "unseen.jsonl").write_text("".join(unseen))
    assert collect([job])[0].end["u"]["unseen/pass_rate"] == 0.5


def test_what_was_passed_before_is_forgotten() -> None:
    times = [{"a": 0.5, "b": 0.0, "c": None}, {"a": 0.75, "b": 0.25, "c": None}, {"a": 0.5, "b": 1.0, "c": None}]  # fmt: skip
    scores = [{task: {"pass_rate": rate} for task, rate in row.items()} for row in times]
    assert forgetting(scores) == {"a": 0.25, "b": 0.0}
    assert forgetting(scores[:1]) == {}
