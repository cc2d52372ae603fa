"""Trackers and metrics of runs with language models: tiny ones, with random weights."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="language models need the extra llm")
from test_documented_metrics import documented, names_in
from test_language_models import run
from test_trackers import Notebook

from codea1_env import Sandbox
from codea1_env.agents.llm.trainer_drive import TrainerDrive
from codea1_env.training import loop
from codea1_env.training.run_folder import METRICS, TIMINGS
from codea1_env.training.trackers import MAKERS

sys.path.insert(0, str(Path(__file__).parents[1] / "agents" / "llm"))
from tiny import save_tiny


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_tiny(tmp_path_factory.mktemp("model"))


def test_a_tracker_changes_nothing_and_gets_everything(
    tmp_path: Path, sandbox: Sandbox, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model that writes computes in another format than the one that learns, so that all metrics are there."""
    books: list[Notebook] = []
    trainers: list[Any] = []
    made = TrainerDrive.__init__

    def remembered(self: TrainerDrive, *args: Any, **more: Any) -> None:
        made(self, *args, **more)
        trainers.append(self.trainer)

    def opens(shown: Any) -> Notebook:
        books.append(Notebook([], shown, -1))
        return books[-1]

    monkeypatch.setattr(TrainerDrive, "__init__", remembered)
    monkeypatch.setattr(loop, "check_installed", lambda names: None)
    monkeypatch.setitem(MAKERS, "wandb", opens)
    changes = {"max_steps": 1, "eval_problems": 1}
    run(tmp_path / "shown", sandbox, model, tracker=("wandb",), **changes)
    run(tmp_path / "alone", sandbox, model, **changes)
    files = [(tmp_path / name / METRICS).read_bytes() for name in ("shown", "alone")]
    assert files[0] == files[1]

    of = ("all", "language models")
    for heading, name in (("Metrics", METRICS), ("Timings", TIMINGS)):
        wanted = documented(heading, of, ("tester",), 1)
        wanted |= documented(heading, ("all",), ("coder",), 1)
        found = names_in(tmp_path / "shown" / name)
        assert wanted - found == set()
        # One name for the mean over all answers, one for those that are learned from, whoever the trainer is.
        assert {each for each in found if "reward" in each} <= wanted | documented(
            heading, of, ("coder",), 1
        )
    (book,) = books
    assert [page.step for page in book.pages] == [0, 1]
    for name in ("speed/coder/generation", "speed/tester/update"):
        assert book.pages[1].values[name] > 0

    assert len(trainers) >= 4, "two runs; one may measure the machine with more"
    for trainer in trainers:
        callbacks = [type(each).__name__ for each in trainer.callback_handler.callbacks]
        assert sorted(callbacks) == ["DefaultFlowCallback", "TrainerCallback"], (
            "nothing that reports"
        )
