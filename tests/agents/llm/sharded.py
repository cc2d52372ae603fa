"""One process of two that train a model together, of which each has a part (FSDP): updates it, saves it, goes on from what others saved.

python sharded.py FOLDER CHECKPOINT...
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from accelerate import PartialState
from accelerate.utils import DistributedType
from test_trainer_drive import make_drive, make_rows
from tiny import tiny_model, tiny_tokenizer

from codea1_env.agents.llm.completions import rank, world_size
from codea1_env.agents.llm.trainer_drive import TrainerDrive
from codea1_env.agents.llm.training_state import (
    is_shard,
    load_trainer,
    load_weights,
    save_trainer,
    save_weights,
)

ROWS = make_rows([0.0, 1.0, 0.5, 0.2, 1.0, 0.0, 0.0, 0.3])


def shard_on_processors() -> None:
    """Have accelerate divide models among processors, too, as it does among GPUs."""
    begin = PartialState.__init__

    def begun(self: Any, *given: Any, **named: Any) -> None:
        begin(self, *given, **named)
        if self.distributed_type == DistributedType.MULTI_CPU:
            self.distributed_type = DistributedType.MULTI_GPU

    PartialState.__init__ = begun  # type: ignore[method-assign]


def made() -> TrainerDrive:
    fields: dict[str, Any] = {"fsdp": True} if world_size() > 1 else {}
    folder = Path(tempfile.mkdtemp())
    return make_drive(folder, model=tiny_model(), optim="adamw_torch", learning_rate=0.01, **fields)


def main(folder: Path, *checkpoints: Path) -> None:
    if world_size() > 1:
        shard_on_processors()
    drive = made()
    found = [drive.update(ROWS) for _ in range(2)]
    if rank() > 0:
        folder = Path(tempfile.mkdtemp())  # on another machine
    folder.mkdir(exist_ok=True)
    save_weights(drive.model, tiny_tokenizer(), folder)
    save_trainer(drive, "base", folder)
    found.append(drive.update(ROWS))
    sharded = all(map(is_shard, drive.model.parameters()))
    for checkpoint in checkpoints:
        resumed = made()
        load_trainer(resumed, "base", checkpoint)
        load_weights(resumed.model, checkpoint)
        found.append(resumed.update(ROWS))
    print(json.dumps({"sharded": sharded, "metrics": found}))
    # Without this, a thread of gloo may free a tensor while Python ends, which aborts (pytorch/pytorch, #179291).
    PartialState().destroy_process_group()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
