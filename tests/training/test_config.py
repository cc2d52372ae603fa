from __future__ import annotations

import dataclasses

import docstring_parser
import pytest

from codea1_env.training import train
from codea1_env.training.config import PlayerConfig, RunError, TesterConfig, TrainConfig
from codea1_env.training.settings import MOVED


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_steps": 0}, "max_steps to be greater than 0, actually: 0"),
        ({"num_generations": 1}, "num_generations to be greater than or equal to 2"),
        ({"alpha": 1.5}, "alpha to be less than or equal to 1"),
        ({"beta": float("inf")}, "beta to be a finite number, actually: inf"),
        (
            {"time_limit": float("inf")},
            "time_limit to be less than or equal to 86400, actually: inf",
        ),
        ({"num_generations": 10**12}, "num_generations to be less than or equal to 65536"),
        ({"decay": "never"}, "decay to be 'per-program' or 'per-step', actually: 'never'"),
        (
            {"tester": TesterConfig(learning_rate=0.0)},
            r"tester\.learning_rate to be a finite number greater than 0",
        ),
        ({"tester": TesterConfig(objective="all")}, r"tester\.objective to be 'rewards' or "),
        ({"coder": PlayerConfig(algorithm="ddpg")}, r"coder\.algorithm to be one of grpo, dapo, "),
        ({"coder": PlayerConfig("human")}, r"coder\.player to be one of"),
        (
            {"algorithm": "ddpg"},
            "algorithm to be one of grpo, dapo, .*, module:Class or FILE.py:Class, actually: 'ddpg'",
        ),
        ({"algorithm": "dr-grpo"}, r"actually: 'dr-grpo'. Did you mean dr_grpo\?"),
    ],
)
def test_wrong_values_say_what_was_expected(change, message):
    with pytest.raises(ValueError, match=message) as error:
        TrainConfig(**change)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("settings", [TrainConfig, PlayerConfig, TesterConfig])
def test_every_field_is_documented(settings):
    bases = [docstring_parser.parse_from_object(each).params for each in settings.__mro__[:-1]]
    documented = {each.arg_name for params in bases for each in params if each.description}
    assert documented == {field.name for field in dataclasses.fields(settings)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_steps": "3"}, "max_steps to be a valid integer, actually: '3'"),
        ({"max_steps": 3.5}, "max_steps to be a valid integer, actually: 3.5"),
        ({"use_book": 1}, "use_book to be a valid boolean, actually: 1"),
        ({"problems": len}, "problems to be a valid string, actually"),
        ({"coder": PlayerConfig(freeze=1)}, r"coder\.freeze to be a valid boolean, actually: 1"),
        ({"tester": PlayerConfig()}, "tester to be a TesterConfig .*, actually: PlayerConfig"),
        ({"coder": TesterConfig()}, "coder to be a PlayerConfig .*, actually: TesterConfig"),
        ({"coder": object}, r"coder to be a PlayerConfig.*train\(config, coder="),
        (
            {"coder": PlayerConfig(object)},
            r"coder to be .* whose player is a str.*train\(config, coder=",
        ),
    ],
)
def test_wrong_types_say_what_was_expected(change, message):
    with pytest.raises((TypeError, ValueError), match=message) as error:
        TrainConfig(**change)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", MOVED)
def test_an_old_name_says_the_new_one(name):
    message = f"^{name} is now {MOVED[name]}: "
    with pytest.raises(TypeError, match=message):
        TrainConfig(**{name: "any"})
    with pytest.raises(TypeError, match=message):
        dataclasses.replace(TrainConfig(), **{name: "any"})


def test_a_folder_is_no_player(tmp_path):
    with pytest.raises(ValueError, match=r"'llm', with its name or folder as coder\.model"):
        TrainConfig(coder=PlayerConfig(str(tmp_path)))
    (tmp_path / "config.toml").touch()
    with pytest.raises(ValueError, match=r"folder of a run: --resume .* bench cross-play"):
        TrainConfig(tester=TesterConfig(str(tmp_path)))


def test_suites_larger_than_every_pool_are_refused_before_a_step(tmp_path):
    config = TrainConfig(problems="cells:C=8,problems=1", num_tests=9, output_dir=tmp_path / "run")
    with pytest.raises(RunError, match="num_tests to be at most 8"):
        train(config)
    assert not (tmp_path / "run").exists()
