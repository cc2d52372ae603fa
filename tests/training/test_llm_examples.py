"""The examples with language models run, with a tiny one."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "agents" / "llm"))
from tiny import save_tiny  # noqa: E402


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_tiny(tmp_path_factory.mktemp("model"))


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["train_llm", "own_algorithm"])
def test_an_example_trains(
    name: str, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = load(name).main(model, max_steps=1)
    assert (result.step, result.finished) == (1, True)


@pytest.mark.parametrize(
    ("side", "environment"), [("coder", False), ("tester", False), ("coder", True)]
)
def test_the_reward_function(
    side: str,
    environment: bool,
    model: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    load("trl_reward_function").main(model, 1, side, environment)
    name = "episode_rewards" if environment else f"{side}_reward"
    assert f"'rewards/{name}/mean'" in capsys.readouterr().out
    assert len((ROOT / "examples" / "trl_reward_function.py").read_text().splitlines()) < 90
