"""Two processes on one machine learn what one process learns."""

from __future__ import annotations

import json
import os
import socket
import tempfile
import traceback
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate.state import AcceleratorState, GradientState, PartialState
from test_llm_algorithms import Own
from test_trainer_drive import REWARDS, make_drive, make_rows
from trl import GRPOTrainer

from codea1_env.agents.llm.trl_internals import with_algorithm

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
