"""Settings: wrong ones, those of TOML, errors that name the key, and the way back."""

from __future__ import annotations

import dataclasses
import tomllib
import types
import typing
from pathlib import Path
from typing import Any, Literal

import docstring_parser
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from codea1_env.agents import ALGORITHMS, make_algorithm
from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.agents.llm.prompts import Detailed, FewShot
from codea1_env.cli.app import run as main
from codea1_env.rewards import RewardConfig
from codea1_env.training import train
from codea1_env.training.config import (
    CODERS,
    TESTERS,
    PlayerConfig,
    RunError,
    TesterConfig,
    TrainConfig,
)
from codea1_env.training.settings import (
    SettingsError,
    apply_table,
    inline_table,
    read_inline_table,
    to_toml,
)

pytestmark = pytest.mark.usefixtures("sandboxes_stay_open")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"max_stepz": 1}, "unknown key 'max_stepz'. Did you mean 'max_steps'?"),
        ({"coder": {"freez": True}}, "unknown key 'coder.freez'. Did you mean 'coder.freeze'?"),
        ({"max_steps": 1.5}, "Expect max_steps to be a valid integer, actually: 1.5"),
        ({"problems": 3}, "Expect problems to be a valid string, actually: 3"),
        ({"decay": "never"}, "Expect decay to be 'per-program' or 'per-step', actually: 'never'"),
    ],
)
def test_wrong_table_is_explained(table: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        apply_table(TrainConfig(), table, "file")
    assert str(caught.value) == f"file: {message}"


TEXT = st.text(st.characters(exclude_categories=["Cs"])).filter(lambda text: text != "None")
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT
TABLES = st.dictionaries(
    TEXT,
    st.recursive(
        LEAVES, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=5
    ),
    max_size=3,
)
OF_TYPE = {
    bool: st.booleans(),
    int: st.integers(2, 1000),
    float: st.floats(1e-9, 0.09),
    str: TEXT,
    type(None): st.none(),
    Path: TEXT.map(Path),
    dict: TABLES,
    SamplingConfig: st.builds(
        SamplingConfig,
        temperature=st.floats(0.1, 2),
        stop=st.lists(TEXT.filter(bool), max_size=2).map(tuple),
    ),
}


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    if hint in (PlayerConfig, TesterConfig):
        return blocks_of(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (typing.Union, types.UnionType):
        return st.one_of(*map(values_of, arguments))
    if origin is tuple:
        return st.lists(values_of(arguments[0]), max_size=3).map(tuple)
    return OF_TYPE[origin or hint]


def blocks_of(block: type[PlayerConfig]) -> st.SearchStrategy[PlayerConfig]:
    hints = typing.get_type_hints(block)
    known = CODERS if block is PlayerConfig else TESTERS
    fields = {name: values_of(hint) for name, hint in hints.items()} | {
        "player": st.sampled_from(known) | TEXT.map("mine.py:{}".format),
        "algorithm": st.none() | st.sampled_from(sorted(ALGORITHMS)),
    }
    return st.fixed_dictionaries({}, optional=fields).map(lambda values: block(**values))


PROMPTS = Literal["few-shot", "detailed", "mine.py:chat"]
HINTS = {**typing.get_type_hints(TrainConfig), "prompts": PROMPTS}
CONFIGURATIONS = st.lists(st.sampled_from(sorted(HINTS)), unique=True, max_size=6).flatmap(
    lambda names: st.fixed_dictionaries({name: values_of(HINTS[name]) for name in names})
)


@pytest.mark.parametrize(
    ("table", "size"),
    [
        ({}, 64),
        ({"max_tests_per_problem": "None"}, None),
        ({"strict_paper": True}, None),
        ({"strict_paper": True, "max_tests_per_problem": 9}, 9),
    ],
)
def test_pages_have_no_bound_as_released(table: dict[str, Any], size: int | None) -> None:
    config = apply_table(TrainConfig(), table, "text")
    assert config.page_size == size
    assert apply_table(TrainConfig(), tomllib.loads(to_toml(config)), "text").page_size == size


def test_suites_have_as_many_tests_everywhere() -> None:
    defaults = {RewardConfig().num_tests, TrainConfig().num_tests, Detailed().num_tests}
    assert defaults | {FewShot().num_tests} == {8}


@given(CONFIGURATIONS)
def test_every_configuration_is_written_and_read_back(changes: dict[str, Any]) -> None:
    try:
        config = TrainConfig(**changes)
    except ValueError:  # a combination that is refused
        reject()
    table = tomllib.loads(to_toml(config))
    assert apply_table(TrainConfig(), table, "text") == config


@given(blocks_of(PlayerConfig), blocks_of(TesterConfig))
def test_blocks_survive_over_any_others(coder: PlayerConfig, tester: TesterConfig) -> None:
    """None, too, where it is put back over something else."""
    try:
        config = TrainConfig(coder=coder, tester=tester, engine="ray")  # which knows all of them
    except ValueError:
        reject()
    others = TrainConfig(
        coder=PlayerConfig("mutant", algorithm="rloo", model="one", trainer={"beta": 1.0}),
        tester=TesterConfig("golden", freeze=True, algorithm="rloo", model="two"),
    )
    assert apply_table(others, tomllib.loads(to_toml(config)), "text") == config


@given(TABLES)
def test_a_table_on_the_command_line_is_read_back(table: dict[str, Any]) -> None:
    assert read_inline_table(inline_table(table)) == table


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_steps": 0}, "max_steps to be greater than 0, actually: 0"),
        ({"alpha": 1.5}, "alpha to be less than or equal to 1"),
        (
            {"time_limit": float("inf")},
            "time_limit to be less than or equal to 86400, actually: inf",
        ),
        (
            {"tester": TesterConfig(learning_rate=0.0)},
            r"tester\.learning_rate to be a finite number greater than 0",
        ),
        (
            {"coder": PlayerConfig(learning_rate=-1.0)},
            r"coder\.learning_rate to be a finite number greater than 0, actually: -1",
        ),
        ({"coder": PlayerConfig(algorithm="ddpg")}, r"coder\.algorithm to be one of grpo, dapo, "),
        ({"coder": PlayerConfig("human")}, r"coder\.player to be one of"),
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


def test_a_folder_is_no_player(tmp_path):
    with pytest.raises(ValueError, match=r"'llm', with its name or folder as coder\.model"):
        TrainConfig(coder=PlayerConfig(str(tmp_path)))


def test_suites_larger_than_every_pool_are_refused_before_a_step(tmp_path):
    config = TrainConfig(problems="cells:C=8,problems=1", num_tests=9, output_dir=tmp_path / "run")
    with pytest.raises(RunError, match="num_tests to be at most 8"):
        train(config)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "own"), [("ppo", {"entropy": -1.0}), ("reinforce", {"entropy": float("inf")})]
)
def test_hyperparameters_out_of_range_are_refused(name, own):
    with pytest.raises(ValueError, match=next(iter(own))):
        make_algorithm(name, {"learning_rate": 1.0}, own=own)


def test_rounds_of_the_tester_need_rounds():
    with pytest.raises(ValueError, match="max_rounds"):
        TrainConfig(tester_rounds="first")
    assert TrainConfig(tester_rounds="first", max_rounds=2).tester_rounds == "first"


def test_a_preset_made_short_divides_its_batches(capsys):
    assert main(["train", "--preset", "qwen2.5-coder-7b", "--quick", "--dry-run"]) == 0
    assert "max_steps = 4" in capsys.readouterr().out
