"""Two updates on fixed rows for each loss, as one of several processes; the first prints what came of them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import torch
from test_llm_algorithms import Own
from test_trainer_drive import REWARDS, make_drive, make_rows
from trl import GRPOTrainer

from codea1_env.agents.llm.trl_internals import with_algorithm

LOSSES = ("dapo", "own")


def main() -> None:
    torch.set_num_threads(1)
    found = {loss_type: learn(loss_type) for loss_type in LOSSES}
    if any(found.values()):
        print(f"\n{json.dumps(found)}", flush=True)
    torch.distributed.destroy_process_group()  # whose threads abort a process that ends before


def learn(loss_type: str) -> dict[str, Any]:
    """What came of the updates; empty in all processes but the first."""
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


if __name__ == "__main__":
    main()
