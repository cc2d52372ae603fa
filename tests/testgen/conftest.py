"""Modules of users, for tests."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codea1_env.testgen import OpenModule, modules_in

Opener = Callable[..., OpenModule]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opener]:
    """Opens a module of this text."""
    modules: list[OpenModule] = []

    def opener(text: str, name: str = "own") -> OpenModule:
        folder = tmp_path / f"folder{len(modules)}"
        folder.mkdir()
        (folder / f"{name}.py").write_text(text)
        modules.append(OpenModule(modules_in(str(folder / f"{name}.py"))[0]))
        return modules[-1]

    yield opener
    for each in modules:
        each.sandbox.close()


@pytest.fixture
def repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[dict[str, str], dict[str, str]], Path]:
    """Makes a git repository of one commit, with other texts in the work tree."""

    def make(before: dict[str, str], after: dict[str, str]) -> Path:
        folder = tmp_path / "repository"
        folder.mkdir()
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run([*git, "init", "-q"], cwd=folder, check=True)
        for texts in (before, after):
            for name, text in texts.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text)
            if texts is before:
                subprocess.run([*git, "add", "-A"], cwd=folder, check=True)
                subprocess.run([*git, "commit", "-qm", "one"], cwd=folder, check=True)
        monkeypatch.chdir(folder)
        return folder

    return make
