"""Two processes on one machine learn what one process learns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from one_update import LOSSES, learn

SCRIPT = str(Path(__file__).parent / "one_update.py")
# As the processes of a player are on a cluster: variables of the environment say which is which.
TWO = ["-m", "torch.distributed.run", "--nproc_per_node", "2", "--rdzv_backend", "c10d"]
TWO += ["--rdzv_endpoint", "127.0.0.1:0"]


@pytest.mark.slow
def test_two_processes_learn_what_one_learns() -> None:
    done = subprocess.run(
        [sys.executable, *TWO, SCRIPT],
        capture_output=True,
        text=True,
        timeout=280,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (line,) = [each for each in done.stdout.splitlines() if each[:6] == '{"dapo']
    together = json.loads(line)
    for loss in LOSSES:
        alone = learn(loss)
        assert (alone["processes"], together[loss]["processes"]) == (1, 2)
        for name in ("loss", "grad_norm", "weights"):
            assert together[loss][name] == pytest.approx(alone[name], rel=1e-3, abs=1e-4)
