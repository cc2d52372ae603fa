"""One finished run of tables for all files of this folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_train import run

from codea1_env import Sandbox


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox) -> tuple[Path, Any, str]:
    """Folder, result and output of a run of five steps. Read only."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    return folder, *run(folder, sandbox)
