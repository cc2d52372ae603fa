"""How much memory there is, and how much is needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tiny import save_tiny

from codea1_env.agents.llm import memory
from codea1_env.agents.llm.memory import (
    available_memory,
    own_memory,
    weights_memory,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(save_tiny(tmp_path_factory.mktemp("model")))


def test_what_is_free_is_less_than_what_there_is() -> None:
    import psutil

    assert 0 < available_memory() < psutil.virtual_memory().total
    assert 1e7 < own_memory() < 1e11


LIMITED = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
from codea1_env.agents.llm.memory import available_memory
print(available_memory())
"""


def test_a_limit_of_the_process_counts() -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 1 << 30 < int(done.stdout) < 3 << 30


def write(folder: Path, **files: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(f"{content}\n")


def test_containers_of_version_2(tmp_path: Path) -> None:
    write(tmp_path, groups="0::/job/one")
    write(tmp_path / "root" / "job" / "one", memory__max=4000, memory__current=1500)
    (tmp_path / "root" / "job" / "one" / "memory.stat").write_text("anon 1000\ninactive_file 300\n")
    assert memory._containers(tmp_path / "root", tmp_path / "groups") == [4000 - 1500 + 300]
    write(tmp_path / "root" / "job" / "one", memory__max="max")
    assert memory._containers(tmp_path / "root", tmp_path / "groups") == []


def test_a_container_that_sees_its_own_group_as_the_root(tmp_path: Path) -> None:
    write(tmp_path, groups="3:cpu,memory:/docker/abc\n0::/docker/abc")
    write(tmp_path / "root" / "memory", memory__limit_in_bytes=5000, memory__usage_in_bytes=1000)
    assert memory._containers(tmp_path / "root", tmp_path / "groups") == [4000]


def test_weights_in_another_format(folder: Path) -> None:
    assert weights_memory(folder, "bfloat16") * 2 == weights_memory(folder, "float32")
