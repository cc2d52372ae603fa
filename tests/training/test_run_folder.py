from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from codea1_env.training.config import PlayerConfig, RunError, TesterConfig, TrainConfig
from codea1_env.training.run_folder import METRICS, RunFolder, decided
from codea1_env.training.settings import replaced


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
    fewer = dataclasses.replace(begun, threads=1, generation_threads=1)
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
    assert path.read_text().startswith("version = 1\n")
    path.write_text(path.read_text().replace("version = 1\n", first))
    with pytest.raises(RunError, match=f"config.toml to be of version 1, actually: {actually}"):
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
