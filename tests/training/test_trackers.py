"""Trackers and the loop, with trackers of our own."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from test_train import contents, run

from codea1_env import Sandbox
from codea1_env.cli.app import run as codea1
from codea1_env.support.logs import read_rows
from codea1_env.training import RunError, TrainConfig, loop
from codea1_env.training import run as steps
from codea1_env.training.run_folder import METRICS, TIMINGS
from codea1_env.training.trackers import (
    COLUMNS,
    MAKERS,
    TRACKING,
    StepReport,
    TrackedRun,
    Tracking,
    check_installed,
)


class Notebook:
    """A tracker that keeps everything, in a list that outlives it."""

    def __init__(self, pages: list[StepReport], run: TrackedRun, last: int) -> None:
        self.run, self.last, self.pages, self.closed = run, last, pages, False

    def log(self, report: StepReport) -> None:
        self.pages.append(report)

    def close(self) -> None:
        self.closed = True


class Breaking(Notebook):
    def log(self, report: StepReport) -> None:
        if report.step == 2:
            raise ConnectionError("no route\nto the host")
        super().log(report)


@pytest.fixture
def notebooks(monkeypatch: pytest.MonkeyPatch) -> list[Notebook]:
    """Whoever is opened as trackio or wandb: the first knows what it has, the second what it was told."""
    opened: list[Notebook] = []
    pages: dict[str, list[StepReport]] = {"trackio": [], "wandb": []}

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
def alone(tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox) -> dict[str, bytes]:
    """The files of a run without a tracker."""
    folder = tmp_path_factory.mktemp("alone") / "run"
    run(folder, sandbox)
    return without_config(folder)


def without_config(folder: Path) -> dict[str, bytes]:
    """The files of a run, but for those that say which trackers it has."""
    return contents(folder, without=(TIMINGS, ".lock", "config.toml", TRACKING))


def test_all_of_a_step_is_shown(
    notebooks: list[Notebook], alone: dict[str, bytes], tmp_path: Path, sandbox: Sandbox
) -> None:
    run(tmp_path / "run", sandbox, tracker=("trackio", "wandb", "trackio"))
    assert without_config(tmp_path / "run") == alone, "trackers change nothing"
    first, second = notebooks
    assert first.closed
    assert second.closed
    assert first.run.settings["coder.learning_rate"] == 1.0
    json.dumps(first.run.settings)
    assert first.run.name == f"run-{first.run.id}"
    assert [page.step for page in first.pages] == [0, 1, 2, 3, 4, 5]
    rows = list(read_rows(tmp_path / "run" / METRICS))
    timings = {row["step"]: row for row in [{"step": 0}, *read_rows(tmp_path / "run" / TIMINGS)]}
    for page, row in zip(first.pages, rows, strict=True):
        known = {k: v for k, v in (row | timings[row["step"]]).items() if v is not None}
        assert dict(page.values) | {"step": row["step"]} == known
    for page in first.pages[1:]:
        assert {name: sum(counts) for name, counts in page.rewards.items()} == {
            "reward/coder": 8,
            "reward/tester": 24,
        }
        assert len(page.samples) == 2
        assert all(len(row) == len(COLUMNS) for row in page.samples)
        assert all("def " in row[COLUMNS.index("code")] for row in page.samples)


def test_a_tracker_that_raises_is_named_once(
    notebooks: list[Notebook],
    alone: dict[str, bytes],
    tmp_path: Path,
    sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pages: list[StepReport] = []
    monkeypatch.setitem(MAKERS, "wandb", lambda run: Breaking(pages, run, -1))
    _, said = run(tmp_path / "run", sandbox, tracker=["wandb", "trackio"])
    assert said.count("The tracker wandb failed, and is not used any more") == 1
    assert "ConnectionError: no route" in said
    assert [page.step for page in pages] == [0, 1]
    assert [page.step for page in notebooks[0].pages] == [0, 1, 2, 3, 4, 5]
    assert without_config(tmp_path / "run") == alone


def test_a_tracker_that_cannot_be_opened_or_closed(tmp_path: Path) -> None:
    said: list[str] = []

    def opens(run: TrackedRun) -> Notebook:
        book = Notebook([], run, -1)
        book.close = lambda: 1 / 0  # type: ignore[method-assign,assignment,return-value]
        return book

    def fails(run: TrackedRun) -> Notebook:
        raise TimeoutError

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(MAKERS, "trackio", opens)
        patch.setitem(MAKERS, "wandb", fails)
        with Tracking(("trackio", "wandb"), tmp_path, {}, said.append) as shown:
            assert shown.active
            shown.log(StepReport(1, {"a": 1.0}))
    assert [line.partition(" failed")[0] for line in said] == [
        "The tracker wandb",
        "The tracker trackio",
    ]
    assert [line.rpartition(" without it. ")[2] for line in said] == [
        "TimeoutError: ",
        "ZeroDivisionError: division by zero",
    ]


def kill_in_step(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    logged = steps.episode_rows

    def killed(played: Any, number: int, *more: Any) -> Any:
        if number == step:
            raise SystemError("killed")
        return logged(played, number, *more)

    monkeypatch.setattr(steps, "episode_rows", killed)


def test_a_resumed_run_goes_on_without_doubled_steps(
    notebooks: list[Notebook], alone: dict[str, bytes], tmp_path: Path, sandbox: Sandbox
) -> None:
    """It is killed in step 4; the checkpoint is that of step 2, and step 3 is shown already."""
    folder = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        kill_in_step(4, patch)
        with pytest.raises(SystemError):
            run(folder, sandbox, tracker=("wandb",))
    assert [page.step for page in notebooks[0].pages] == [0, 1, 2, 3]
    # The other one is asked for later, and gets what it lacks.
    run(folder, sandbox, resume=True, tracker=("wandb", "trackio"))
    assert len({book.run.id for book in notebooks}) == 1
    for book in notebooks:
        assert [page.step for page in book.pages] == [0, 1, 2, 3, 4, 5]
    assert without_config(folder) == alone


def test_a_run_that_comes_to_nothing_leaves_nothing(
    notebooks: list[Notebook], tmp_path: Path, sandbox: Sandbox
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        kill_in_step(1, patch)
        patch.setattr(steps, "play", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(tmp_path / "run", sandbox, tracker=("wandb",))
    assert not (tmp_path / "run").exists()


def test_a_damaged_file_begins_anew(tmp_path: Path, notebooks: list[Notebook]) -> None:
    (tmp_path / TRACKING).write_text('{"id": "a"')
    Tracking(("wandb",), tmp_path, {}, print)
    assert notebooks[0].last == -1


def test_what_is_not_installed_is_refused_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
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


def test_a_folder_of_that_name_is_not_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such folders are where people work: wandb leaves one behind."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: namespace(tmp_path))
    with pytest.raises(RunError, match=r"codea1-env\[wandb\]"):
        check_installed(["wandb"])


def namespace(path: Path) -> Any:
    spec = importlib.util.spec_from_loader("wandb", None, is_package=True)
    assert spec is not None
    return spec


@pytest.mark.parametrize("wrong", ["trackio", ("tensorflow",), ("trackio", 1), None])
def test_what_is_no_tracker(wrong: Any) -> None:
    with pytest.raises(
        ValueError, match=r"Expect tracker(\.\d)? to be (a valid tuple|'trackio', )"
    ):
        TrainConfig(tracker=wrong)
