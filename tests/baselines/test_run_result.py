"""Damaged files of one run: it is repeated or has failed, and the rest of the benchmark does not notice."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
from runs_here import run_here

from codea1_env.baselines.bench.results import (
    DamagedRunError,
    TrainingJob,
    collect,
    forgetting,
    jobs_of,
    read_ending,
    read_logs,
)
from codea1_env.baselines.bench.schedule import forget_unusable, run_all
from codea1_env.baselines.bench.suite import BenchConfig, Rates, find_entry

pytestmark = pytest.mark.usefixtures("sandboxes_stay_open")

CONFIG = BenchConfig(
    ("golden-tests",), problems="starter", seeds=1, max_problems=4, max_steps=2, processes=1
)


def job_in(folder: Path) -> TrainingJob:
    (job,) = jobs_of(CONFIG, [find_entry("golden-tests")], folder, {"golden-tests": Rates()})
    return job


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("bench") / "results"
    with pytest.MonkeyPatch.context() as patch:
        run_here(patch)
        run_all(CONFIG, [job_in(folder)])
    return folder


@pytest.fixture
def job(finished: Path, tmp_path: Path) -> TrainingJob:
    shutil.copytree(finished, tmp_path / "copy")
    return job_in(tmp_path / "copy")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "[" * 100_000,
        '{"status": "ok", "error": "", "seconds": NaN}',
    ],
)
def test_a_result_that_is_none(job: TrainingJob, content: str):
    (job.folder / "result.json").write_text(content)
    with pytest.raises(DamagedRunError, match=r"result\.json to "):
        read_ending(job.folder)
    (result,) = collect([job])
    assert (result.status, result.end) == ("failed", {})
    assert "result.json to " in result.error
    assert "--resume runs it again" in result.error
    (damage,) = forget_unusable([job])
    assert "result.json to " in damage
    assert not job.done


def _changed(**values: object):
    """Changes the third row of a log."""

    def change(lines: list[str]) -> list[str]:
        return [*lines[:2], json.dumps(json.loads(lines[2]) | values), *lines[3:]]

    return change


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("held_out.jsonl", lambda lines: [lines[0][:50]], "those of step 0 are others, or incomplete"),
        ("held_out.jsonl", _changed(pass_rate="1"), "number or null for pass_rate of step 0, actually: '1'"),
        ("held_out.jsonl", _changed(task_id="x"), "those of step 1 are others"),
        ("metrics.jsonl", lambda lines: lines[:2], "from 0 to 2, actually its whole rows are those of steps 0, 1"),
        ("metrics.jsonl", _changed(**{"tester/validity": "x"}), "for tester/validity of step 2"),
    ],
)  # fmt: skip
def test_logs_that_are_not_whole(job: TrainingJob, name: str, change, message: str):
    path = job.folder / "run" / name
    path.write_text("".join(line + "\n" for line in change(path.read_text().splitlines())))
    with pytest.raises(DamagedRunError, match=message):
        read_logs(job.folder / "run", CONFIG.max_steps)
    (damage,) = forget_unusable([job])
    assert message in damage
    assert not job.done


def test_rows_after_a_checkpoint_may_be_cut_off(job: TrainingJob):
    run = job.folder / "run"
    for name in ("metrics.jsonl", "held_out.jsonl"):
        path = run / name
        path.write_bytes(path.read_bytes()[:-1])  # a last row without its end of line is not whole
    logs = read_logs(run, 1)
    assert [row["step"] for row in logs.metrics] == [0, 1]
    assert len(logs.end) == 4
    with pytest.raises(DamagedRunError, match="those of steps 0, 1"):
        read_logs(run, 2)


@pytest.mark.parametrize("name", ["coder/tabular.json", None])
def test_a_run_goes_on_from_a_whole_checkpoint_only(job: TrainingJob, name, monkeypatch):
    run_here(monkeypatch)
    # As if the run had been killed after the second of three steps.
    longer = dataclasses.replace(CONFIG, max_steps=3)
    (job.folder / "result.json").unlink()
    (job,) = jobs_of(longer, [job.entry], job.folder.parents[2], {job.entry.name: job.rates})
    if name is not None:
        (file,) = job.folder.rglob(f"step_*/{name}")
        file.write_bytes(file.read_bytes()[:20])
    begun = (job.folder / "run" / "timings.jsonl").read_text().splitlines()
    run_all(longer, [job])
    (result,) = collect([job])
    assert (result.status, [row["step"] for row in result.curves]) == ("ok", [0, 1, 2, 3])
    anew = "This run starts anew. Expect" in (job.folder / "log.txt").read_text()
    kept = (job.folder / "run" / "timings.jsonl").read_text().splitlines()[:2] == begun
    assert (anew, kept) == (name is not None, name is None)


def test_what_was_passed_before_is_forgotten():
    times = [{"a": 0.5, "b": 0.0, "c": None}, {"a": 0.75, "b": 0.25, "c": None}, {"a": 0.5, "b": 1.0, "c": None}]  # fmt: skip
    scores = [{task: {"pass_rate": rate} for task, rate in row.items()} for row in times]
    assert forgetting(scores) == {"a": 0.25, "b": 0.0}
    assert forgetting(scores[:1]) == {}


def test_rows_of_other_problems_must_be_those_of_the_means(job: TrainingJob):
    run = job.folder / "run"
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
