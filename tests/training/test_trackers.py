"""Real trackers, where they are installed: without a network, and through a kill."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from test_train import contents, run

from codea1_env.cli.app import run as codea1
from codea1_env.support.logs import read_rows
from codea1_env.training import RunError, TrainConfig, loop
from codea1_env.training import run as steps
from codea1_env.training.run_folder import METRICS, TIMINGS
from codea1_env.training.trackers import MAKERS, TRACKING, TrackedRun, check_installed

pytestmark = pytest.mark.usefixtures("sandboxes_stay_open")


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
    max_problems=3, problems_per_step=2, num_generations=4, num_suites=2, max_steps=5, eval_steps=2, eval_samples=1,
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
    assert config["num_suites"] == 2
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
    assert "num_suites = 2" in text


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


class Page(NamedTuple):
    step: int
    values: Mapping[str, float]


class Notebook:
    """A tracker that keeps everything, in a list that outlives it."""

    def __init__(self, pages: list[Page], run: TrackedRun, last: int) -> None:
        self.run, self.last, self.pages, self.closed = run, last, pages, False

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self.pages.append(Page(step, values))

    def close(self) -> None:
        self.closed = True


class Breaking(Notebook):
    def log(self, step: int, values: Mapping[str, float]) -> None:
        if step == 2:
            raise ConnectionError("no route\nto the host")
        super().log(step, values)


@pytest.fixture
def notebooks(monkeypatch: pytest.MonkeyPatch) -> list[Notebook]:
    """Whoever is opened as trackio or wandb: the first knows what it has, the second what it was told."""
    opened: list[Notebook] = []
    pages: dict[str, list[Page]] = {"trackio": [], "wandb": []}

    def make(name: str) -> Any:
        def opens(run: TrackedRun) -> Notebook:
            known = max((page.step for page in pages[name]), default=-1)
            book = Notebook(pages[name], run, known if name == "trackio" else run.handed)
            opened.append(book)
            return book

        return opens

    for name in pages:
        monkeypatch.setitem(MAKERS, name, make(name))
    monkeypatch.setattr(loop, "check_installed", lambda names: None)
    return opened


@pytest.fixture(scope="module")
def alone(finished: Any) -> dict[str, bytes]:
    """The files of a run without a tracker."""
    return without_config(finished[0])


def without_config(folder: Path) -> dict[str, bytes]:
    """The files of a run, but for those that say which trackers it has."""
    return contents(folder, without=(TIMINGS, ".lock", "config.toml", TRACKING))


def test_all_of_a_step_is_shown_and_a_tracker_that_raises_is_named_once(
    notebooks, alone, tmp_path, sandbox, monkeypatch
) -> None:
    pages: list[Page] = []
    monkeypatch.setitem(MAKERS, "wandb", lambda run: Breaking(pages, run, -1))
    _, said = run(tmp_path / "run", sandbox, tracker=("trackio", "wandb", "trackio"))
    assert without_config(tmp_path / "run") == alone, "trackers change nothing"
    assert said.count("The tracker wandb failed, and is not used any more") == 1
    assert "ConnectionError: no route" in said
    assert [page.step for page in pages] == [0, 1]
    [shown] = notebooks
    assert shown.closed
    assert shown.run.settings["coder.learning_rate"] == 1.0
    json.dumps(shown.run.settings)
    assert shown.run.name == f"run-{shown.run.id}"
    assert [page.step for page in shown.pages] == [0, 1, 2, 3, 4, 5]
    rows = list(read_rows(tmp_path / "run" / METRICS))
    timings = {row["step"]: row for row in [{"step": 0}, *read_rows(tmp_path / "run" / TIMINGS)]}
    for page, row in zip(shown.pages, rows, strict=True):
        known = {k: v for k, v in (row | timings[row["step"]]).items() if v is not None}
        assert dict(page.values) | {"step": row["step"]} == known


def test_a_resumed_run_goes_on_without_doubled_steps(notebooks, alone, tmp_path, sandbox) -> None:
    """It is killed in step 4; the checkpoint is that of step 2, and step 3 is shown already."""
    folder, logged = tmp_path / "run", steps.episode_rows

    def killed(played: Any, number: int, *more: Any) -> Any:
        if number == 4:
            raise SystemError("killed")
        return logged(played, number, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "episode_rows", killed)
        with pytest.raises(SystemError):
            run(folder, sandbox, tracker=("wandb",))
    assert [page.step for page in notebooks[0].pages] == [0, 1, 2, 3]
    # The other one is asked for later, and gets what it lacks.
    run(folder, sandbox, resume=True, tracker=("wandb", "trackio"))
    assert len({book.run.id for book in notebooks}) == 1
    for book in notebooks:
        assert [page.step for page in book.pages] == [0, 1, 2, 3, 4, 5]
    assert without_config(folder) == alone


def test_what_is_not_installed_is_refused_at_the_start(tmp_path, monkeypatch, capsys) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "trackio" else found(name)
    )
    folder = tmp_path / "run"
    words = ["train", "--preset", "tabular", "--tracker", "trackio", "--output-dir", str(folder)]
    assert codea1(words) == 2
    error = capsys.readouterr().err.strip()
    assert error.count("\n") == 0
    assert "pip install 'codea1-env[trackio]'" in error
    assert not folder.exists()


def test_a_folder_of_that_name_is_not_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such folders are where people work: wandb leaves one behind."""
    spec = importlib.util.spec_from_loader("wandb", None, is_package=True)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    with pytest.raises(RunError, match=r"codea1-env\[wandb\]"):
        check_installed(["wandb"])


@pytest.mark.parametrize("wrong", ["trackio", ("tensorflow",)])
def test_what_is_no_tracker(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"tracker(\.\d)? to be (a valid tuple|'trackio', )"):
        TrainConfig(tracker=wrong)
