"""Runs on a real Ray cluster are those of one process; and what comes of them when a process is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray")
pytest.importorskip("trl")
sys.path.insert(0, str(Path(__file__).parents[1] / "agents" / "llm"))

from clusters import TABLES, all_end, contents, learners, run, there
from processes import until
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
)
from codea1_env.training.checkpoints import checkpoints, step_of
from codea1_env.training.ray import role_group
from codea1_env.training.ray.role_group import device_of
from codea1_env.training.run import Run
from codea1_env.training.run_folder import METRICS, TIMINGS
from codea1_env.training.settings import replaced, to_toml

pytestmark = pytest.mark.slow
SHORT = SamplingConfig(max_prompt_length=1000, max_completion_length=8)
TRAINER = {"gradient_checkpointing": False, "lr_scheduler_type": "constant"}
LEARNER = {"learning_rate": 1e-3, "sampling": SHORT, "trainer": TRAINER}
TESTER = TesterConfig("llm", **LEARNER)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> TrainConfig:
    model = save_tiny(tmp_path_factory.mktemp("model"))
    coder = PlayerConfig("llm", **LEARNER)
    settings = {"model": model, "lora_rank": 2, "dtype": "float32", "threads": 1}
    return replaced(TABLES, {"coder": coder, "tester": TESTER, **settings})


@pytest.fixture(scope="module")
def tester_here(
    models: TrainConfig, sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[int], TrainConfig]:
    """Finished runs of one process in which a tester learns, by the rank of its adapter. Read only."""

    @cache
    def finished(lora_rank: int) -> TrainConfig:
        folder = tmp_path_factory.mktemp("here")
        changes = {"coder": PlayerConfig("reference"), "lora_rank": lora_rank, "output_dir": folder}
        config = replaced(models, changes)
        run(folder, config, sandbox)
        return config

    return finished


def written(config: TrainConfig, folder: Path) -> str:
    """Path of a file with these settings."""
    path = folder / "run.toml"
    path.write_text(to_toml(config), encoding="utf-8")
    return str(path)


def at_step(
    number: int, act: Callable[[], None], monkeypatch: pytest.MonkeyPatch, before: str = "_play"
) -> None:
    """Have something done just before a step is played, counted from 1, or before it is learned from."""
    part = getattr(Run, before)

    def with_act(self: Run, *given: Any) -> Any:
        if self.step == number - 1:
            act()
        return part(self, *given)

    monkeypatch.setattr(Run, before, with_act)


KILLED = """
import os, signal, sys
from codea1_env.cli.app import run as codea1
from codea1_env.training import run

lessons, calls = run.lessons, []

def killed_in_the_second_step(*args):
    calls.append(1)
    if len(calls) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return lessons(*args)

run.lessons = killed_in_the_second_step
sys.exit(codea1(sys.argv[1:]))
"""
"""The program of a run that is killed between playing and learning."""


def test_a_killed_run_goes_on_in_one_process(
    cluster: Any, models: TrainConfig, sandbox: Sandbox, tmp_path: Path
) -> None:
    run(tmp_path / "here", models, sandbox)
    folder = tmp_path / "there"
    command = ["train", "--config", written(replaced(models, there(cluster)), tmp_path)]
    driver = subprocess.run(
        [sys.executable, "-c", KILLED, *command, "--output-dir", str(folder)],
        stdout=subprocess.DEVNULL,
        timeout=280,
    )
    assert driver.returncode == -signal.SIGKILL
    assert all_end(cluster)
    assert [row["step"] for row in read_rows(folder / METRICS)] == [0, 1]
    [timings] = read_rows(folder / TIMINGS)
    assert "seconds/learn" in timings  # both at the same time
    run(folder, models, sandbox, resume=True)
    assert contents(folder) == contents(tmp_path / "here")


@pytest.mark.parametrize(
    ("lora_rank", "devices", "writers", "lost"),
    [
        (2, 2, 0, "LearnerActor"),
        (2, 2, 1, "WriterActor"),
        (2, 3, 1, "WriterActor"),
        (0, 3, 1, "LearnerActor"),
    ],
)
def test_several_processes_learn_what_one_learns_until_one_is_lost_and_one_goes_on(
    lora_rank: int,
    devices: int,
    writers: int,
    lost: str,
    cluster: Any,
    tester_here: Callable[[int], TrainConfig],
    sandbox: Sandbox,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = tester_here(lora_rank)
    saves = lost == "WriterActor"  # what is learned and not yet saved
    config = replaced(here, {"save_steps": 1000 if saves else 1, "max_steps": 1000})

    def lose_one() -> None:
        os.kill(learners(cluster, lost)[-1], signal.SIGKILL)

    # Where it is lost while others learn, that step is done all the same.
    done, before = (1, "_learn") if saves and devices == 3 else (2, "_play")
    at_step(1 if before == "_learn" else 3, lose_one, monkeypatch, before)
    divided = {"tester.devices": devices, "tester.writers": writers}
    with pytest.raises(PlayerError) as ended:
        run(tmp_path, config, sandbox, **there(cluster), **divided)
    said = str(ended.value)
    who = "that writes" if lost == "WriterActor" else "of the tester"
    assert said.startswith(f"A process {who} was lost")
    assert f"saved after step {done}" in said
    assert said.endswith(f"codea1 train --resume --output-dir {tmp_path}")
    assert "\n" not in said
    assert all_end(cluster)
    found, expected = (list(read_rows(each / METRICS)) for each in (tmp_path, here.output_dir))
    off = 1e-4 if writers else 1e-5
    for now, then in zip(found, expected[: done + 1], strict=True):
        for name, value in then.items():
            assert now[name] == (value and pytest.approx(value, rel=off, abs=off)), name
    if writers:  # with its probabilities a writer also tells how far it is off
        assert found[-1]["tester/sampling/sampling_logp_difference/max"] < 1e-4
    monkeypatch.undo()
    run(tmp_path, config, sandbox, resume=True, max_steps=3)
    assert [row["step"] for row in read_rows(tmp_path / METRICS)] == [0, 1, 2, 3]


def test_one_model_in_both_roles_learns_what_it_learns_here_until_it_is_interrupted(
    cluster: Any,
    models: TrainConfig,
    sandbox: Sandbox,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = replaced(models, {"self_play": True, "lora_rank": 0, "eval_steps": 1000})
    run(tmp_path / "here", config, sandbox)
    at_step(1, lambda: os.kill(os.getpid(), signal.SIGINT), monkeypatch)
    folder = tmp_path / "there"
    command = ["train", "--config", written(replaced(config, there(cluster)), tmp_path)]
    assert codea1([*command, "--output-dir", str(folder)]) == 130
    assert "Stopped after step 1. To go on:" in capsys.readouterr().out
    assert all_end(cluster)
    found, expected = (list(read_rows(each / METRICS)) for each in (folder, tmp_path / "here"))
    assert found == expected[:2]
    assert step_of(checkpoints(folder)[-1]) == 1


def test_what_the_cluster_has_not(
    cluster: Any,
    models: TrainConfig,
    sandbox: Sandbox,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = replaced(models, {**there(cluster), "coder": PlayerConfig("reference")})

    def refused(match: str, **changes: Any) -> None:
        with pytest.raises(RunError, match=match):
            run(tmp_path / "run", config, sandbox, **changes)

    many = {"tester.devices": 4}
    told = r"5 processors for language models .*tester: 4 learn, 0 write.* and a task that judges.* has 4, .*lower .*tester\.devices"
    refused(told, **many)
    # before any process is asked for
    refused(
        "Cannot make the tester: .*no_such_field",
        **{"tester.trainer": {"no_such_field": 1}, **many},
    )
    refused(r"Cannot make the tester: .*no_such_folder", model="./no_such_folder")
    monkeypatch.setattr("codea1_env.__version__", "9.9.9")
    refused(r"Expect node 127.* to have codea1_env 9\.9\.9.*has version")
    assert list(tmp_path.iterdir()) == []
    assert all_end(cluster)


class SomeRay:
    """A cluster with so much of each kind, all of it free."""

    def __init__(self, **resources: float) -> None:
        self.cluster_resources = self.available_resources = lambda: resources


@pytest.mark.parametrize(
    ("resources", "address", "devices", "told"),
    [
        ({"CPU": 99, "GPU": 2}, "auto", (2, 1), "Expect 3 GPUs for language models (coder: 2 learn, 0 write; tester: 1"),
        ({"CPU": 4, "GPU": 8}, "auto", (2, 2), "Expect 5 processors for language models .* has 4, of which 4 are free"),
        ({"CPU": 4}, "auto", (2, 2), "Expect 5 processors for language models .* has 4, of which 4 are free"),
        # Of a run's own there is one for each process and each processor: two share none.
        ({"CPU": 99}, "local", (2, 1), "Expect 3 processors for language models .* has 2, of which 2 are free"),
        ({"CPU": 99}, "local", (1, 1), ""),
        ({"CPU": 99, "GPU": 4}, "local", (2, 2), ""),
        ({"CPU": 99}, "auto", (8, 8), ""),
    ],
)  # fmt: skip
def test_more_devices_than_there_are(
    resources: dict[str, float],
    address: str,
    devices: tuple[int, int],
    told: str,
    models: TrainConfig,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(role_group, "_GIVEN_BACK", 0)
    changes = {"coder.devices": devices[0], "tester.devices": devices[1], "address": address}
    config, said = replaced(models, {"engine": "ray", **changes}), list[str]()
    if told:
        with pytest.raises(RunError, match=told.replace("(", r"\(")):
            device_of(SomeRay(**resources), config, ("coder", "tester"), said.append)
    else:
        gpu = device_of(SomeRay(**resources), config, ("coder", "tester"), said.append)
        assert gpu is ("GPU" in resources)
        assert len(said) == 1


def test_answers_that_cannot_be_divided_are_refused_before_ray_is_asked(
    models: TrainConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nobody = {"engine": "ray", "address": "127.0.0.2:9", "tester.devices": 3}
    command = ["train", "--config", written(replaced(models, nobody), tmp_path)]
    for more in ([], ["--dry-run"]):
        assert codea1([*command, "--output-dir", str(tmp_path / "run"), *more]) == 2
        assert "a multiple of the number of processes (3)" in capsys.readouterr().err
        assert not (tmp_path / "run").exists()


RECEIVES = """
import os, signal, tempfile
from codea1_env.training.ray.files import Receiver
receiver = Receiver(os.getcwd())
receiver.append("weights/model", b"12")
print(tempfile.mkdtemp(), flush=True)
if {orderly}:
    receiver.close()
else:
    os.kill(0 if {group} else os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("end", ["orderly", "alone", "group"])
def test_a_process_on_a_node_leaves_no_files_however_it_ends(end: str, tmp_path: Path) -> None:
    program = RECEIVES.format(orderly=end == "orderly", group=end == "group")
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        start_new_session=True,
        timeout=100,
        text=True,
    )
    assert done.returncode == (0 if end == "orderly" else -signal.SIGKILL)
    assert done.stdout.startswith(f"{tmp_path}/codea1-ray-")
    assert until(lambda: not list(tmp_path.iterdir()))


def test_settings_of_ray_are_refused_without_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert codea1(["train", "--tester.devices", "2"]) == 2
    assert "Expect --tester.devices with engine='ray'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "address", ["", "ray://127.0.0.1:1", "127.0.0.1", ":6379", "127.0.0.1:0", "127.0.0.1:65536"]
)
def test_an_address_that_is_none(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert codea1(["train", "--engine", "ray", "--address", address]) == 2
    assert f"a port from 1 to 65535, actually: {address!r}" in capsys.readouterr().err


def test_a_table_has_no_devices(capsys: pytest.CaptureFixture[str]) -> None:
    assert codea1(["train", "--preset", "tabular", "--engine", "ray", "--coder.devices", "2"]) == 2
    assert "of a language model" in capsys.readouterr().err


def test_a_cluster_of_a_run_leaves_no_token_and_has_its_own_group(tmp_path: Path) -> None:
    known = {name: os.environ[name] for name in os.environ if not name.startswith("RAY_")}
    # Nor is it in the process group of the run, which schedulers and `timeout` send SIGTERM to.
    code = (
        "import os, ray; from codea1_env.training.ray.cluster import connect; connect('local'); "
        "processes = ray._private.worker._global_node.all_processes.values(); "
        "assert all(os.getpgid(each.process.pid) != os.getpgid(0) for (each, *_) in processes); ray.shutdown()"
    )
    subprocess.run(
        [sys.executable, "-c", code], env=known | {"HOME": str(tmp_path)}, check=True, timeout=150
    )
    assert not (tmp_path / ".ray" / "auth_token").exists()


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        (
            {"backend": "vllm", "coder.writers": 0},
            "coder.writers of at least 1 with backend='vllm'",
        ),
        ({"coder.writers": 2}, "coder.writers to leave a device to learn on, actually: 2"),
        ({"backend": "server", "coder.writers": 1}, "no coder.writers with backend='server'"),
        ({"self_play": True, "tester.devices": 2}, "no tester.devices and tester.writers with"),
    ],
)
def test_devices_that_contradict_each_other(
    models: TrainConfig, changes: dict[str, Any], match: str
) -> None:
    with pytest.raises(ValueError, match=match):
        replaced(models, {"engine": "ray", "coder.devices": 2, **changes})


def test_half_of_the_devices_write_with_vllm_and_all_of_a_frozen_player(
    models: TrainConfig,
) -> None:
    config = replaced(models, {"engine": "ray", "backend": "vllm", "coder.devices": 5})
    assert config.devices_of("coder") == (3, 2)
    assert config.devices_of("tester") == (1, 0)
    assert replaced(config, {"coder.freeze": True}).devices_of("coder") == (0, 5)
    assert replaced(config, {"backend": "transformers"}).devices_of("coder") == (5, 0)


def test_no_cluster_at_the_address(tmp_path: Path) -> None:
    command = ["train", "--quick", "--engine", "ray", "--address", "127.0.0.2:9"]
    done = subprocess.run(
        [sys.executable, "-m", "codea1_env.cli", *command, "--output-dir", str(tmp_path / "run")],
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert list(tmp_path.iterdir()) == []
    assert done.returncode == 2
    assert "Expect a Ray cluster at '127.0.0.2:9', actually: " in done.stderr
    assert "ray start --head" in done.stderr
