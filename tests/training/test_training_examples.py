"""The examples run as they are; those with language models with a tiny one."""

from __future__ import annotations

import importlib.util
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.training import TrainConfig

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_custom_agent(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    loaded("custom_agent").main()
    output = capsys.readouterr().out
    assert "Docstring examples break" in output
    assert "10 steps" in output
    assert list(tmp_path.iterdir()) == []
    assert len((EXAMPLES / "custom_agent.py").read_text().splitlines()) < 60


def test_train_tabular(tmp_path, monkeypatch, capsys) -> None:
    """On few problems."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["train_tabular.py", "--max-steps", "1"])
    example = loaded("train_tabular")
    monkeypatch.setattr(example, "TrainConfig", partial(TrainConfig, max_problems=2))
    example.main()
    assert "coder: pass_rate on what training held back, 0." in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("trl")
    sys.path.insert(0, str(EXAMPLES.parent / "tests" / "agents" / "llm"))
    from tiny import save_tiny

    return save_tiny(tmp_path_factory.mktemp("model"))


SHORT = {"max_completion_length": 16}


def with_changes(made: Any, **changes: Any) -> Any:
    """A class whose settings are others than those that it is given."""
    return lambda *given, **own: made(*given, **own | changes)


def loaded(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["train_llm", "own_algorithm"])
def test_an_example_trains(name, model, tmp_path, monkeypatch) -> None:
    """On few problems, with short answers."""
    monkeypatch.chdir(tmp_path)
    example = loaded(name)
    few = {"max_problems": 2, "problems_per_step": 2, "num_generations": 2, "num_suites": 2}
    few |= {"panel_size": 1, "eval_problems": 2}
    monkeypatch.setattr(example, "TrainConfig", with_changes(TrainConfig, **few))
    monkeypatch.setattr(example, "SamplingConfig", with_changes(SamplingConfig, **SHORT))
    result = example.main(model, max_steps=1)
    assert (result.step, result.finished) == (1, True)


@pytest.mark.parametrize(("side", "environment"), [("tester", False), ("coder", True)])
def test_the_reward_function(side, environment, model, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    example = loaded("trl_reward_function")
    for made in (example.SamplingConfig, example.GRPOConfig):
        monkeypatch.setattr(example, made.__name__, with_changes(made, **SHORT))
    example.main(model, 1, side, environment)
    name = "episode_rewards" if environment else f"{side}_reward"
    assert f"'rewards/{name}/mean'" in capsys.readouterr().out
    assert len((EXAMPLES / "trl_reward_function.py").read_text().splitlines()) < 90
