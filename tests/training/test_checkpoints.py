"""Checkpoints: what is noticed, and a run that is killed again and again ends as if nothing had happened."""

from __future__ import annotations

import dataclasses
import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from codea1_env.agents import GRPO, GoldenTester, Pool, TabularAgent
from codea1_env.mistake_book import MistakeBook
from codea1_env.problems import Problem
from codea1_env.training import PlayerError, train
from codea1_env.training.checkpoints import (
    Books,
    checkpoints,
    explained_failures,
    load_checkpoint,
    save_checkpoint,
    step_of,
    verify,
)
from codea1_env.training.config import PlayerConfig, RunError, TesterConfig, TrainConfig
from codea1_env.training.run_folder import EPISODES, METRICS, TIMINGS, RunFolder, decided
from codea1_env.training.settings import replaced

PROBLEM = Problem("p", "def f():", "f", "def f(): return 1", tests=("assert f() == 1",))
POOL = Pool(PROBLEM, ("a", "b", "c"))


def players():
    return TabularAgent([POOL], GRPO(), np.random.default_rng(0)), GoldenTester([PROBLEM])


def save(folder, step=2):
    books = Books(MistakeBook(), MistakeBook())
    return save_checkpoint(folder, step, *players(), books, keep=2)


def test_what_a_killed_run_left_is_no_checkpoint(tmp_path):
    whole = save(tmp_path)
    shutil.copytree(whole, tmp_path / "checkpoints" / ".step_4.part")
    assert checkpoints(tmp_path) == [whole]
    save(tmp_path, 4)
    names = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert names == ["step_2", "step_4"]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: (path / "book.jsonl").write_bytes(b"[]"), "book.jsonl was changed"),
        (lambda path: (path / "coder" / "tabular.json").unlink(), "coder/tabular.json is missing"),
        (lambda path: (path / "manifest.json").unlink(), "manifest.json: "),
        (lambda path: (path / "more").write_text(""), "more was changed"),
    ],
)
def test_damage_is_noticed(tmp_path, damage, message):
    path = save(tmp_path)
    verify(path)
    damage(path)
    with pytest.raises(RunError, match=f"to be a complete checkpoint, actually: {message}"):
        load_checkpoint(path, *players(), TrainConfig())


def test_a_renamed_checkpoint_is_noticed(tmp_path):
    path = save(tmp_path)
    with pytest.raises(RunError, match="it is that of step 2"):
        verify(path.rename(path.with_name("step_7")))


def test_players_with_other_pools_do_not_load(tmp_path):
    path = save(tmp_path)
    other = TabularAgent([Pool(PROBLEM, ("a", "b"))], GRPO(), np.random.default_rng(0))
    with pytest.raises(RunError, match="to be of a player with the same pools"):
        load_checkpoint(path, other, GoldenTester([PROBLEM]), TrainConfig())


GROWN_UP = """
from codea1_env.agents import RLOO


class Counts:
    def __init__(self, learning_rate):
        self.learning_rate, self.steps = learning_rate, 0

    def update(self, policy, samples):
        self.steps += 1
        return RLOO(self.learning_rate).update(policy, samples)

    def state_dict(self):
        return {"steps": {1} if self.steps > 1 else self.steps}

    def load_state_dict(self, state):
        pass
"""


def test_a_state_that_cannot_be_saved_any_more_is_a_line_and_the_run_can_be_resumed(
    tmp_path, sandbox
):
    (tmp_path / "own.py").write_text(GROWN_UP)
    sizes = dict.fromkeys(("max_problems", "num_generations", "num_suites"), 2)
    own = {"algorithm": f"{tmp_path}/own.py:Counts", "output_dir": tmp_path / "run"}
    config = TrainConfig(**sizes, **own, max_steps=3, save_steps=1)
    said = r"Counts\.state_dict to return .* type set .*\. The run is saved after step 1.*--resume"
    with pytest.raises(PlayerError, match=said):
        train(config, sandbox=sandbox)
    assert [step_of(each) for each in checkpoints(tmp_path / "run")] == [0, 1]


KILLS = 2
PROGRAM = """
import io, sys
from pathlib import Path
from rich.console import Console
from codea1_env.training import TrainConfig, train

folder = Path(sys.argv[1])
config = TrainConfig(
    output_dir=folder, max_problems=3, problems_per_step=2, num_generations=2, num_suites=2,
    max_steps=9, eval_steps=6, eval_samples=1, save_steps=3, seed=5, workers=1,
)
resume = (folder / "config.toml").exists()
train(config, resume=resume, console=Console(file=io.StringIO()))
"""


def start(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", PROGRAM, str(folder)])


def finish(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["-c", str(folder)])
    exec(PROGRAM, {})


def steps_done(folder: Path) -> int:
    path = folder / METRICS
    return path.read_bytes().count(b"\n") if path.exists() else 0


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in (TIMINGS, ".lock")
    }


@pytest.mark.slow
def test_kills_leave_no_trace(tmp_path, monkeypatch):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    finish(whole, monkeypatch)
    moments = random.Random(0)
    for kill in range(KILLS):
        before = steps_done(killed)
        process = start(killed)
        if kill == 1:
            time.sleep(moments.uniform(0.0, 1.5))  # while it starts
        else:  # after some steps, at any moment of the next one or of a checkpoint
            target = before + moments.randrange(1, 5)
            deadline = time.monotonic() + 60
            while steps_done(killed) < target and process.poll() is None:
                assert time.monotonic() < deadline
                time.sleep(0.001)
            time.sleep(moments.uniform(0.0, 0.05))
        process.send_signal(signal.SIGKILL)
        assert process.wait(timeout=60) == -signal.SIGKILL, "it was too quick: raise max_steps"
    finish(killed, monkeypatch)
    assert contents(killed) == contents(whole)
    assert {METRICS, EPISODES, "checkpoints/step_9/book.jsonl"} <= contents(whole).keys()


class NoRoom(TabularAgent):
    """The disk is full."""

    def save(self, path):
        (path / "half").write_bytes(b"0" * 100)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_one_line_and_leaves_the_last_checkpoint(tmp_path):
    whole = save(tmp_path)
    (tmp_path / METRICS).write_text('{"step": 0}\n{"step": 2}\n{"step": 3}\n')
    full = NoRoom([POOL], GRPO(), np.random.default_rng(0))
    books = Books(MistakeBook(), MistakeBook())
    with pytest.raises(PlayerError) as caught, explained_failures(tmp_path):
        save_checkpoint(tmp_path, 4, full, players()[1], books, keep=2)
    said = str(caught.value)
    assert "to take a checkpoint, actually: [Errno 28] No space left on device" in said
    assert "The run is saved after step 2. Once the cause is removed: codea1 train --resume" in said
    assert "\n" not in said
    assert list((tmp_path / "checkpoints").iterdir()) == [whole], "nothing half written is left"


@pytest.fixture
def config(tmp_path):
    return TrainConfig(output_dir=tmp_path / "run")


def begin(config, rows=()):
    folder = RunFolder.create(config)
    for row in rows:
        folder.append(METRICS, [row])
    folder.close()


def test_resuming_needs_a_run(config):
    with pytest.raises(RunError, match="to be the folder of a run, actually: there is no such"):
        RunFolder.reopen(config)
    with pytest.raises(RunError, match="output_dir to name the run to resume"):
        RunFolder.reopen(TrainConfig())


def test_resuming_with_another_configuration_names_the_differences(config):
    begin(config)
    other = replaced(config, {"coder.learning_rate": 9.0, "max_problems": 3})
    with pytest.raises(RunError, match=r"rate was 1\.0, now 9\.0; max_problems was None, now 3"):
        RunFolder.reopen(other)


def language_models(**changes):
    coder = PlayerConfig("llm", learning_rate=1e-4)
    tester = TesterConfig("llm", learning_rate=1e-4)
    return replaced(TrainConfig(coder=coder, tester=tester), changes)


def test_what_was_left_to_the_machine_is_taken_from_the_run(tmp_path):
    folder = tmp_path / "run"
    asked = language_models(output_dir=folder)
    assert decided(asked) == asked  # there is no run yet
    fitted = language_models(output_dir=folder, dtype="float32", threads=1)
    begin(fitted)
    assert decided(asked) == fitted
    RunFolder.reopen(decided(asked)).close()
    other = dataclasses.replace(asked, dtype="bfloat16")
    with pytest.raises(RunError, match="dtype was 'float32', now 'bfloat16'"):
        RunFolder.reopen(decided(other))
    longer = dataclasses.replace(asked, max_minutes=5.0, max_steps=120)
    RunFolder.reopen(decided(longer)).close()


def test_another_machine_may_have_fewer_cores(tmp_path):
    begun = language_models(output_dir=tmp_path / "run", dtype="float32", threads=2)
    begin(begun)
    fewer = dataclasses.replace(begun, threads=1)
    assert decided(fewer) == fewer
    RunFolder.reopen(decided(fewer)).close()


def test_a_run_that_is_discarded_leaves_nothing_of_its_own(tmp_path, config):
    folder = RunFolder.create(config)
    folder.append(METRICS, [{"step": 0}])
    folder.discard()
    assert not config.output_dir.exists()
    config.output_dir.mkdir()
    (config.output_dir / "notes.txt").write_text("mine")
    RunFolder.create(config).discard()
    assert [path.name for path in config.output_dir.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(("first", "actually"), [("", "None"), ("version = 0\n", "0")])
def test_a_run_of_another_version_is_refused_with_its_version(config, first, actually):
    begin(config)
    path = config.output_dir / "config.toml"
    assert path.read_text().startswith("version = 2\n")
    path.write_text(path.read_text().replace("version = 2\n", first))
    with pytest.raises(RunError, match=f"config.toml to be of version 2, actually: {actually}"):
        RunFolder.reopen(config)


def test_only_one_process_works_on_a_run(config):
    folder = RunFolder.create(config)
    with pytest.raises(RunError, match="another process does"):
        RunFolder.reopen(config)
    folder.close()
    RunFolder.reopen(config).close()


def test_the_lock_of_a_dead_process_is_gone(config):
    program = (
        "import os, signal, sys; from pathlib import Path\n"
        "from codea1_env.training.config import TrainConfig\n"
        "from codea1_env.training.run_folder import RunFolder\n"
        "folder = RunFolder.create(TrainConfig(output_dir=Path(sys.argv[1])))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(config.output_dir)], check=False)
    assert done.returncode == -9
    RunFolder.reopen(config).close()


@pytest.mark.parametrize(
    "tail",
    ["", '{"step": 3, "x"', '{"step": 12}\n{"st', "[1]\n", "{}\n", '{"step": "1"}\n'],
)  # fmt: skip
def test_truncating_drops_later_and_broken_rows(config, tail):
    begin(config, [{"step": step, "value": 0.1 * step} for step in range(6)])
    path = config.output_dir / METRICS
    kept = "".join(path.read_text().splitlines(keepends=True)[:3])
    path.write_text(kept + tail)
    folder = RunFolder.reopen(config)
    folder.truncate(2)
    folder.append(METRICS, [{"step": 3}])
    folder.close()
    assert path.read_text() == kept + '{"step": 3}\n'


def test_missing_rows_are_noticed(config):
    begin(config, [{"step": 0}, {"step": 1}])
    folder = RunFolder.reopen(config)
    with pytest.raises(RunError, match="to reach to step 5, where the checkpoint is"):
        folder.truncate(5)
    folder.close()
