"""Runs on a real Ray cluster are those of one process; and what becomes of them when something is lost."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

pytest.importorskip("ray")
pytest.importorskip("trl")
sys.path.insert(0, str(Path(__file__).parents[1] / "agents" / "llm"))

from clusters import ray_processes
from tiny import save_tiny

from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.cli.app import run as codea1
from codea1_env.sandbox import Sandbox
from codea1_env.support.logs import read_rows
from codea1_env.training import (
    PlayerConfig,
    PlayerError,
    RunError,
    TesterConfig,
    TrainConfig,
    train,
)
from codea1_env.training.run_folder import METRICS, TIMINGS
from codea1_env.training.settings import replaced, to_toml

pytestmark = pytest.mark.slow
SHORT = SamplingConfig(max_prompt_length=1000, max_completion_length=8)
TRAINER = {"gradient_checkpointing": False, "lr_scheduler_type": "constant"}
TABLES = TrainConfig(
    max_problems=3, problems_per_step=2, num_generations=2, num_suites=2, eval_samples=1, eval_problems=0, max_steps=3,
    eval_steps=3, save_steps=1, workers=1,
)  # fmt: skip
LEARNER = {"learning_rate": 1e-3, "sampling": SHORT, "trainer": TRAINER}
TESTER = TesterConfig("llm", **LEARNER)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> TrainConfig:
    model = save_tiny(tmp_path_factory.mktemp("model"))
    coder = PlayerConfig("llm", **LEARNER)
    settings = {"model": model, "lora_rank": 2, "dtype": "float32", "threads": 1}
    return replaced(TABLES, {"coder": coder, "tester": TESTER, **settings})


def run(
    folder: Path,
    config: TrainConfig,
    sandbox: Sandbox | None = None,
    *,
    resume: bool = False,
    **changes: Any,
) -> None:
    config = replaced(config, {"output_dir": folder, **changes})
    train(config, resume=resume, sandbox=sandbox, console=Console(file=io.StringIO()))


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in (TIMINGS, ".lock", "config.toml")
    }


def until(true: Callable[[], bool], seconds: float = 400) -> None:
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert true()


def steps_of(folder: Path) -> int:
    return max((row["step"] for row in read_rows(folder / METRICS)), default=-1)


def kill_after(steps: int, folder: Path, cluster: Any, actor: str) -> threading.Thread:
    def kill() -> None:
        until(lambda: steps_of(folder) >= steps)
        os.kill(ray_processes(cluster, actor)[-1], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


def test_tables_learn_what_they_learn_here(cluster: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    run(tmp_path / "here", TABLES, sandbox)
    run(tmp_path / "there", TABLES, engine="ray", address=cluster.address)
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


def test_a_killed_run_goes_on_in_one_process(
    cluster: Any, models: TrainConfig, sandbox: Sandbox, tmp_path: Path
) -> None:
    run(tmp_path / "here", models, sandbox)
    settings, folder = tmp_path / "run.toml", tmp_path / "there"
    settings.write_text(
        to_toml(replaced(models, {"engine": "ray", "address": cluster.address})), encoding="utf-8"
    )
    command = [sys.executable, "-m", "codea1_env.cli", "train", "--config", str(settings)]
    driver = subprocess.Popen([*command, "--output-dir", str(folder)], stdout=subprocess.DEVNULL)
    try:
        until(lambda: steps_of(folder) >= 1 or driver.poll() is not None)
        assert len(ray_processes(cluster, "LearnerActor")) == 2
    finally:
        driver.kill()
    assert driver.wait() == -signal.SIGKILL
    until(lambda: not ray_processes(cluster, "Actor"))
    assert 1 <= steps_of(folder) < 3
    run(folder, models, sandbox, resume=True)
    assert contents(folder) == contents(tmp_path / "here")


def test_two_processes_learn_what_one_learns_until_one_is_lost(
    cluster: Any, models: TrainConfig, sandbox: Sandbox, tmp_path: Path
) -> None:
    config = replaced(models, {"coder": PlayerConfig("reference"), "eval_steps": 1000})
    run(tmp_path / "here", config, sandbox)
    folder = tmp_path / "there"
    killing = kill_after(3, folder, cluster, "LearnerActor")
    ray_settings = {"engine": "ray", "address": cluster.address, "learner_processes": 2}
    with pytest.raises(PlayerError) as lost:
        run(folder, config, sandbox, **ray_settings, max_steps=1000)
    killing.join()
    said = str(lost.value)
    assert said.startswith("A process of the tester was lost")
    assert said.endswith(f"codea1 train --resume --output-dir {folder}")
    assert "\n" not in said
    rows = dict(enumerate(read_rows(folder / METRICS)))
    for number, expected in enumerate([*read_rows(tmp_path / "here" / METRICS)][:3]):
        for name, value in expected.items():
            found = rows[number][name]
            assert found == (value and pytest.approx(value, rel=1e-5, abs=1e-5)), (number, name)
    until(lambda: not ray_processes(cluster, "Actor"))


def test_what_the_cluster_has_not(cluster: Any, models: TrainConfig, tmp_path: Path) -> None:
    config = replaced(models, {"engine": "ray", "address": cluster.address})
    with pytest.raises(RunError, match=r"2 GPUs for 2 processes.* has 0.*learner_processes"):
        run(tmp_path / "a", config, learner_gpus=1.0)
    with pytest.raises(RunError, match=r"8 processors for 8 processes.* has 2"):
        run(tmp_path / "b", config, learner_processes=4)
    with pytest.raises(RunError, match="time_budget"):
        run(tmp_path / "c", config, time_budget=5.0)
    wrong = replaced(config, {"coder.trainer": {"loss_type": "dapoo"}})
    with pytest.raises(RunError, match="coder: Expect loss_type to be one of"):
        run(tmp_path / "f", wrong, learner_gpus=1.0)  # before any process is asked for
    with pytest.raises(RunError, match=r"Cannot make the coder: .*no_such_folder"):
        run(tmp_path / "d", config, model="./no_such_folder")
    assert list(tmp_path.iterdir()) == []
    until(lambda: not ray_processes(cluster, "LearnerActor"))


def test_settings_of_ray_are_refused_without_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert codea1(["train", "--learner-processes", "2"]) == 2
    assert "Expect --learner-processes with engine='ray'" in capsys.readouterr().err
