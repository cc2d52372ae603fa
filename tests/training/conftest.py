"""One finished run of tables, and one Ray cluster, for all files of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters import two_nodes
from test_train import run

from codea1_env import Sandbox


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox) -> tuple[Path, Any, str]:
    """Folder, result and output of a run of five steps. Read only."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    return folder, *run(folder, sandbox)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """Two nodes, each with one processor for a player and one that judges."""
    pytest.importorskip("ray")
    with two_nodes() as made:
        yield made
