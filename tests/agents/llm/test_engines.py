"""Engines of a run: one for each different model, or a line that says why not; and runs with two models."""

from __future__ import annotations

import io
import json
import os
import socket
import tempfile
import traceback
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate.state import AcceleratorState, GradientState, PartialState
from chat_server import ChatServer
from rich.console import Console
from test_llm_algorithms import Own
from test_openai_backend import server
from test_trainer_drive import REWARDS, make_drive, make_rows
from tiny import save_tiny
from trl import GRPOTrainer

from codea1_env import Sandbox
from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.agents.llm.trl_internals import with_algorithm
from codea1_env.support.logs import read_rows
from codea1_env.training import PlayerConfig, RunError, TesterConfig, TrainConfig, train
from codea1_env.training.language_models import LanguageModels
from codea1_env.training.run_folder import METRICS
from codea1_env.training.settings import replaced
from codea1_env.training.trainer_arguments import Role

__all__ = ["server"]  # a fixture


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    return {role: Path(save_tiny(root / role)) for role in ("coder", "tester")}


def make(backend: str, models: dict[str, Path], **changes: Any) -> LanguageModels:
    short = SamplingConfig(max_prompt_length=1000, max_completion_length=128)
    players = {
        role: kind("llm", model=str(models[role]), learning_rate=1e-4, sampling=short)
        for role, kind in (("coder", PlayerConfig), ("tester", TesterConfig))
    }
    return LanguageModels(TrainConfig(backend=backend, **players, **changes), problems=1)


class StandIn:
    """Stands where vLLM would be, and remembers what it was made with."""

    made: list[dict[str, Any]]

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.made.append({"folder": folder, **settings})
        self.closed = False

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> type[StandIn]:
    StandIn.made = []
    monkeypatch.setattr(
        "codea1_env.agents.llm.engines.find_spec", lambda name: ModuleSpec(name, None)
    )
    monkeypatch.setattr("codea1_env.agents.llm.vllm_backend.VLLMBackend", StandIn)
    return StandIn


@pytest.mark.parametrize(
    ("tester", "rank", "made"),
    [("tester", 4, [(0.2, 1, 8)] * 2), ("coder", 64, [(0.4, 2, 64)]), ("coder", 0, [(0.2, 1, None)] * 2)],
)  # fmt: skip
def test_stand_in_engines_share_the_memory(models, stand_in, tester, rank, made) -> None:
    """Players of one model share an engine, unless each has all weights of its own."""
    engines = make("vllm", {"coder": models["coder"], "tester": models[tester]}, lora_rank=rank)
    assert stand_in.made == []  # before it is asked for
    roles: tuple[Role, ...] = ("coder", "tester", "coder", "tester")
    found: Any = [engines.engine(role) for role in roles]
    assert found[:2] == found[2:]
    assert (found[0] is found[1]) is (len(made) == 1)
    assert [each["folder"] for each in stand_in.made] == [models["coder"], models[tester]][
        : len(made)
    ]
    names = ("gpu_memory_utilization", "max_loras", "max_lora_rank")
    for settings, expected in zip(stand_in.made, made, strict=True):
        assert [settings[name] for name in names] == pytest.approx(list(expected))
    engines.close()
    assert all(engine.closed for engine in found)


def test_players_of_one_model_share_a_server(models: dict[str, Path], server: ChatServer) -> None:
    same = {"coder": models["tester"], "tester": models["tester"]}
    engines = make("server", same, server_url=server.url)
    assert engines.engine("coder") is engines.engine("tester")
    assert engines.engine("tester").context_length == 1128
    engines.close()


SAMPLING = SamplingConfig(max_prompt_length=1000, max_completion_length=8, stop=("a", "e"))
TRAINER = {"gradient_checkpointing": False, "vllm_importance_sampling_mode": "token_truncate"}


def save_model(folder: Path, seed: int) -> str:
    """A model whose opinions are strong, of a size that vLLM computes."""
    return save_tiny(folder, seed, vocab_size=704, hidden_size=64, initializer_range=0.3)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> TrainConfig:
    root = tmp_path_factory.mktemp("models")
    rates: dict[str, Any] = {"learning_rate": 1e-3, "sampling": SAMPLING, "trainer": TRAINER}
    return TrainConfig(
        max_problems=2,
        problems_per_step=2,
        num_generations=2,
        num_suites=2,
        coder=PlayerConfig("llm", model=save_model(root / "coder", 1), **rates),
        tester=TesterConfig("llm", model=save_model(root / "tester", 2), **rates),
        lora_rank=4,
        dtype="float32",
        threads=1,
        max_steps=2,
        eval_steps=4,
        eval_samples=1,
        save_steps=4,
    )


def run(config: TrainConfig, sandbox: Sandbox, **changes: Any) -> list[dict[str, Any]]:
    config = replaced(config, changes)
    train(config, sandbox=sandbox, console=Console(file=io.StringIO()))
    assert config.output_dir is not None
    return list(read_rows(config.output_dir / METRICS))


@pytest.mark.slow
@pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed")
@pytest.mark.parametrize("whole", [False, True])
def test_with_vllm_each_player_answers_with_its_own_model(config, tmp_path, sandbox, whole) -> None:
    """Or with all the weights that it learned, at rates so large that answers of those before are other ones."""
    changes: dict[str, Any] = {"backend": "vllm"}
    if whole:
        rates = dict.fromkeys(("coder.learning_rate", "tester.learning_rate"), 0.02)
        changes |= {"lora_rank": 0, "tester.model": config.coder.model} | rates
    rows = run(config, sandbox, output_dir=tmp_path / "run", **changes)
    assert [row["step"] for row in rows] == [0, 1, 2]
    for row in rows[1:]:
        for role in ("coder", "tester"):
            # Of answers of the other model it would be above 1.
            assert row[f"{role}/sampling/sampling_logp_difference/mean"] < 0.15
        assert row["coder/completions/clipped_ratio"] == pytest.approx(row["coder/truncated"])


def test_with_transformers_each_player_learns_its_own_model(
    config: TrainConfig, tmp_path: Path, sandbox: Sandbox
) -> None:
    rows = run(config, sandbox, output_dir=tmp_path / "run", max_steps=1)
    # TRL's count is that of the game, though a stop text ends answers; the tester learns from some of its own.
    last = rows[-1]
    assert last["coder/completions/clipped_ratio"] == pytest.approx(last["coder/truncated"])
    assert {"coder/loss", "tester/loss"} <= last.keys()


def test_a_server_with_two_models_is_refused_at_once(config, tmp_path, sandbox) -> None:
    with pytest.raises(RunError, match="Expect one model for all players with backend='server'"):
        run(config, sandbox, output_dir=tmp_path / "run", backend="server")
    assert not (tmp_path / "run").exists()


LOSSES = ("dapo", "own")


def learn(loss_type: str) -> dict[str, Any]:
    """What comes of two updates on fixed rows; empty in all processes but the first."""
    with tempfile.TemporaryDirectory() as folder:
        own = {"trainer_cls": with_algorithm(GRPOTrainer, Own())} if loss_type == "own" else {}
        drive = make_drive(
            Path(folder),
            optim="adamw_torch",
            learning_rate=1e-2,
            loss_type="grpo" if own else loss_type,
            per_device_train_batch_size=2,
            **own,
        )
        metrics = [drive.update(make_rows(REWARDS, seed)) for seed in range(2)]
    if drive.trainer.args.process_index != 0:
        return {}
    return {
        "processes": drive.trainer.args.world_size,
        "loss": [row["loss"] for row in metrics],
        "grad_norm": [row["grad_norm"] for row in metrics],
        "weights": [float(p.detach().double().sum()) for p in drive.model.parameters()],
    }


def learns_as(rank: int, port: int, folder: Path) -> None:
    """In a forked process: learn as one of two, as variables of the environment say, and write down what came of it."""
    os.dup2(os.open(folder / f"{rank}.log", os.O_WRONLY | os.O_CREAT), 2)
    try:
        for state in (AcceleratorState, GradientState, PartialState):
            state._reset_state()
        os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}  # fmt: skip
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"}  # fmt: skip
        torch.set_num_threads(1)
        found = {loss: learn(loss) for loss in LOSSES}
        (folder / f"{rank}.json").write_text(json.dumps(found))
        torch.distributed.destroy_process_group()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_two_processes_learn_what_one_learns(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = []
    for rank in range(2):
        process = os.fork()
        if not process:
            learns_as(rank, port, tmp_path)
        processes.append(process)
    ends = [os.waitpid(process, 0)[1] for process in processes]
    assert ends == [0, 0], "".join(log.read_text()[-2000:] for log in tmp_path.glob("*.log"))
    together = json.loads((tmp_path / "0.json").read_text())
    for loss in LOSSES:
        alone = learn(loss)
        assert (alone["processes"], together[loss]["processes"]) == (1, 2)
        for name in ("loss", "grad_norm", "weights"):
            assert together[loss][name] == pytest.approx(alone[name], rel=1e-3, abs=1e-4)
