"""Runs on a real Ray cluster in which the next step is played while the present one is learned from."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("ray")
pytest.importorskip("trl")

import ray
from clusters import ray_processes
from test_training_on_ray import kill_after, models, run, steps_of, until

from codea1_env.agents import CopierTester
from codea1_env.cli.app import run as codea1
from codea1_env.support.logs import read_rows
from codea1_env.training import PlayerConfig, PlayerError, RunError, TrainConfig, role_group
from codea1_env.training.checkpoints import checkpoints, step_of
from codea1_env.training.players import Players, check_ahead
from codea1_env.training.role_group import LearnerLostError
from codea1_env.training.run_folder import METRICS, TIMINGS
from codea1_env.training.settings import replaced, to_toml

pytestmark = pytest.mark.slow
RATIO = "sampling/importance_sampling_ratio/mean"
__all__ = ["models"]  # a fixture of the other file, too


def settings_of(cluster: Any, config: TrainConfig, folder: Path, **changes: Any) -> Path:
    path = folder / "run.toml"
    there = {"engine": "ray", "address": cluster.address, "max_steps": 300, "eval_steps": 1000}
    path.write_text(to_toml(replaced(config, {**there, **changes})), encoding="utf-8")
    return path


def test_a_step_learns_from_answers_of_the_weights_before_until_nobody_writes(
    cluster: Any, models: TrainConfig, tmp_path: Path
) -> None:
    config = replaced(
        models, {"coder": PlayerConfig("reference"), "engine": "ray", "address": cluster.address}
    )
    folder = tmp_path / "run"
    killing = kill_after(2, folder, cluster, "WriterActor")
    with pytest.raises(PlayerError) as lost:
        run(folder, config, max_staleness=1, max_steps=300, eval_steps=1000, save_steps=1000)
    killing.join()
    said = str(lost.value)
    assert said.startswith("The writing process of the tester was lost")
    assert said.endswith(f"codea1 train --resume --output-dir {folder}")
    assert "\n" not in said
    until(lambda: not ray_processes(cluster, "Actor"))
    last = steps_of(folder)
    assert [step_of(each) for each in checkpoints(folder)][-1] == last  # what was learned is kept

    run(folder, config, resume=True, max_staleness=1, max_steps=last + 2, eval_steps=1000)
    rows = list(read_rows(folder / METRICS))[1:]
    assert [row["tester/staleness"] for row in rows] == [0, *[1] * (last - 1), 0, 1]
    for row in rows:
        exact = row[f"tester/{RATIO}"] == pytest.approx(1, abs=1e-5)
        assert exact is (row["tester/staleness"] == 0), row["step"]
    ahead = ["ahead/tester" in row for row in read_rows(folder / TIMINGS)]
    assert ahead == [row["tester/staleness"] == 1 for row in rows]


def test_an_interrupt_while_all_weights_of_one_model_learn(
    cluster: Any, models: TrainConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = {"self_play": True, "lora_rank": 0, "max_staleness": 1}
    settings, folder = settings_of(cluster, models, tmp_path, **changes), tmp_path / "run"
    over = threading.Event()

    def interrupt() -> None:
        until(lambda: steps_of(folder) >= 2 or over.is_set())
        if not over.is_set():
            os.kill(os.getpid(), signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    try:
        code = codea1(["train", "--config", str(settings), "--output-dir", str(folder)])
    finally:
        over.set()
    interrupting.join()
    said = capsys.readouterr().out
    last = steps_of(folder)
    assert f"Stopped after step {last}. To go on:" in said
    assert code == 130
    until(lambda: not ray_processes(cluster, "Actor"))
    assert [step_of(each) for each in checkpoints(folder)][-1] == last >= 2
    rows = list(read_rows(folder / METRICS))[1:]
    assert [row["model/staleness"] for row in rows] == [0, *[1] * (last - 1)]
    exact = [row[f"model/{RATIO}"] == pytest.approx(1, abs=1e-5) for row in rows[:2]]
    assert exact == [True, False]


class Silent:
    """Stands for Ray where no process answers any more."""

    exceptions = ray.exceptions
    learn = SimpleNamespace(remote=lambda: "an answer")

    def wait(self, references: list[Any], timeout: float) -> tuple[list[Any], list[Any]]:
        return [], references


def test_a_learner_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(role_group, "_LEAST", 0.01)
    group = object.__new__(role_group.RoleGroup)
    group._ray, group.role, group._failure, group._actors = Silent(), "tester", None, [Silent]
    group._patience = role_group.Patience()
    group._patience.took("learn", 1, 0.001)
    for _ in range(2):  # and nothing is asked any more
        with pytest.raises(LearnerLostError, match="process of the tester hangs: no answer to 'l"):
            group.begin("learn", [()])()


def test_what_cannot_be_played_ahead(
    models: TrainConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    assert codea1(["train", "--max-staleness", "1"]) == 2
    assert "Expect --max-staleness with engine='ray'" in capsys.readouterr().err
    for changes in ({"max_staleness": 2}, {"max_staleness": 1, "coder": PlayerConfig()}):
        with pytest.raises(ValueError, match="Expect max_staleness"):
            replaced(models, {"engine": "ray", **changes})
    uncorrected = replaced(
        models, {"coder.trainer": {"vllm_importance_sampling_correction": False}}
    )
    with pytest.raises(
        ValueError, match=r"actually: coder\.trainer\.vllm_importance_sampling_corr"
    ):
        replaced(uncorrected, {"engine": "ray", "max_staleness": 1})
    engines = {"engine": "ray", "backend": "vllm", "lora_rank": 4, "learner_processes": 2}
    with pytest.raises(ValueError, match="Expect learner_processes=1 with backend='vllm'"):
        replaced(models, engines)
    assert replaced(models, engines | {"max_staleness": 1}).learner_processes == 2
    with pytest.raises(RunError, match=r"the coder is a Own, .* freeze the coder"):
        check_ahead(Players(Own(), CopierTester(4), coder_learns=True, tester_learns=False))
    check_ahead(Players(Own(), CopierTester(4), coder_learns=False, tester_learns=False))


class Own(CopierTester):
    def __init__(self) -> None:
        super().__init__(4)
