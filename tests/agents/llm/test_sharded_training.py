"""A model that is divided among processes (FSDP) learns, is saved and goes on as one in one process."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent


def begun(rank: int, of: int, port: int, *arguments: Path) -> subprocess.Popen[str]:
    places = {
        "RANK": rank,
        "WORLD_SIZE": of,
        "LOCAL_RANK": 0,
        "LOCAL_WORLD_SIZE": 1,
        "MASTER_PORT": port,
    }
    about = {name: str(value) for name, value in places.items()} if of > 1 else {}
    also = {"MASTER_ADDR": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, str(HERE / "sharded.py"), *map(str, arguments)],
        env=os.environ | about | also,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip


def said(process: subprocess.Popen[str]) -> Any:
    out, errors = process.communicate(timeout=280)
    assert process.returncode == 0, errors[-2000:]
    return json.loads(out.splitlines()[-1])


def test_two_processes_with_a_part_each_learn_what_one_learns(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    one = said(begun(0, 1, 0, whole))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    first, second = (begun(rank, 2, port, parts, whole, parts) for rank in (0, 1))
    with ThreadPoolExecutor() as readers:  # both: one that nobody reads waits in the end
        found, _ = readers.map(said, (first, second))
    assert (one["sharded"], found["sharded"]) == (False, True)
    third = one["metrics"][2]
    # What either has saved, the two go on from.
    for now, expected in zip(found["metrics"], [*one["metrics"], third, third], strict=True):
        assert now == pytest.approx(expected, rel=1e-4, abs=1e-5)
    for name in ("model/model.safetensors", "optimizer.safetensors"):
        ours, theirs = load_file(whole / name), load_file(parts / name)
        assert ours.keys() == theirs.keys()
        for key, tensor in ours.items():
            assert tensor.allclose(theirs[key], rtol=1e-3, atol=1e-5), (name, key)
