"""Real trackers, where they are installed: without a network, and through a kill."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codea1_env.support.logs import read_rows
from codea1_env.training.run_folder import METRICS

NAMES = ("trackio", "tensorboard", "wandb")
INSTALLED = [name for name in NAMES if (s := importlib.util.find_spec(name)) and s.origin]

PROGRAM = """
import dataclasses, os, signal, socket, sys
from collections.abc import Iterator
from pathlib import Path
from codea1_env.training import TrainConfig, train
from codea1_env.training import run as steps

connect = socket.socket.connect
def only_near(self, address):
    if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
        Path(sys.argv[1], "..", "far").resolve().write_text(repr(address))
        raise OSError("this test has no network")
    return connect(self, address)
socket.socket.connect = only_near

config = TrainConfig(
    max_problems=4, problems_per_step=2, num_generations=4, num_suites=3, max_steps=5, eval_steps=2, eval_samples=1,
    save_steps=2, output_dir=Path(sys.argv[1]), tracker=tuple(sys.argv[3].split()),
)
logged = steps.episode_rows
def killed(played, step, *more):
    if step == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return logged(played, step, *more)
if sys.argv[2] == "killed":
    steps.episode_rows = killed
train(config, resume=sys.argv[2] == "resumed")
"""


def environment(home: Path) -> dict[str, str]:
    ours = ("WANDB", "TRACKIO", "HF_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return kept | {
        "HOME": str(home),
        "TRACKIO_DIR": str(home / "trackio"),
        "HF_HOME": str(home / "hf"),
        "HF_HUB_OFFLINE": "1",
        "WANDB_MODE": "offline",
    }


def python(home: Path, program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a run was shown that was killed in step 4, and resumed from the checkpoint of step 2."""
    home = tmp_path_factory.mktemp("shown")
    folder = home / "run"
    names = " ".join(INSTALLED)
    done = python(home, PROGRAM, folder, "killed", names)
    assert done.returncode == -9, done.stderr
    done = python(home, PROGRAM, folder, "resumed", names)
    assert done.returncode == 0, done.stderr
    assert "failed" not in done.stdout
    assert "Uploading" not in done.stdout, "standard output is the run's"
    assert not (home / "far").exists(), (home / "far").read_text()
    return home


def needs(name: str) -> Any:
    return pytest.mark.skipif(name not in INSTALLED, reason=f"{name} is not installed")


def expected(home: Path, name: str) -> list[tuple[int, float]]:
    """Steps and values of a metric, as the run's files have them."""
    rows = read_rows(home / "run" / METRICS)
    return sorted((row["step"], row[name]) for row in rows if row.get(name) is not None)


@pytest.mark.skipif(not INSTALLED, reason=f"none of {', '.join(NAMES)} is installed")
def test_results_are_the_same_bytes(shown: Path, finished: Any) -> None:
    for name in ("metrics.jsonl", "episodes.jsonl", "held_out.jsonl"):
        assert (shown / "run" / name).read_bytes() == (finished[0] / name).read_bytes()


@needs("trackio")
def test_trackio(shown: Path) -> None:
    program = """
import json, trackio
from trackio.sqlite_storage import SQLiteStorage
(run,) = trackio.Api().runs("codea1")
print(json.dumps([run.name, run.config, SQLiteStorage.get_logs("codea1", run.name)]))
"""
    done = python(shown, program)
    name, config, logs = json.loads(done.stdout.splitlines()[-1])
    state = json.loads((shown / "run" / "tracking.json").read_text())
    assert name == f"run-{state['id']}"
    assert config["num_suites"] == 3
    assert [log["step"] for log in logs] == [0, 1, 2, 3, 4, 5]
    for metric in ("reward/coder/mean", "held_out/pass@1"):
        found = [(log["step"], log[metric]) for log in logs if metric in log]
        assert found == [(step, pytest.approx(value)) for step, value in expected(shown, metric)]


@needs("tensorboard")
def test_tensorboard(shown: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(shown / "run" / "tensorboard"), {"tensors": 0, "scalars": 0})
    found.Reload()
    for metric in ("reward/coder/mean", "held_out/pass@1"):
        values = [(event.step, pytest.approx(event.value)) for event in found.Scalars(metric)]
        assert expected(shown, metric) == values
    text = found.Tensors("settings")[-1].tensor_proto.string_val[0].decode()
    assert "num_suites = 3" in text


@needs("wandb")
def test_wandb(shown: Path) -> None:
    files = sorted((shown / "run" / "wandb").glob("offline-run-*/*.wandb"))
    run = json.loads((shown / "run" / "tracking.json").read_text())["id"]
    assert len(files) == 2, "one of each process"
    for path in files:
        assert path.stem == f"run-{run}"
        written = path.read_bytes()
        assert b"reward/coder/mean" in written
        assert b"num_suites" in written
