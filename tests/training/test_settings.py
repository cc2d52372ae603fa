"""Settings from TOML: every type of field, errors that name the key, and the way back."""

from __future__ import annotations

import tomllib
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from pydantic import with_config

from codea1_env.agents import ALGORITHMS
from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.training import TrainConfig
from codea1_env.training.config import PlayerConfig, TesterConfig
from codea1_env.training.contradictions import CODERS, TESTERS
from codea1_env.training.settings import (
    STRICT,
    SettingsError,
    apply_table,
    inline_table,
    moved_names,
    read_inline_table,
    read_toml,
    to_toml,
)


@dataclass(frozen=True)
class Inner:
    rate: float = 0.5
    kind: Literal["one", "two"] = "one"


@with_config(STRICT)
@dataclass(frozen=True)
class Settings:
    steps: int = 1
    rate: float = 0.25
    name: str = "x"
    fast: bool = True
    folder: Path | None = None
    limit: int | None = 3
    sizes: tuple[int, ...] = (1,)
    inner: Inner = field(default_factory=Inner)

    def __post_init__(self) -> None:
        if self.steps < 0:
            raise ValueError(f"Expect steps not to be negative, actually: {self.steps}")


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"steps": 5}, Settings(steps=5)),
        ({"rate": 2}, Settings(rate=2.0)),
        ({"fast": False}, Settings(fast=False)),
        ({"folder": "a/b"}, Settings(folder=Path("a/b"))),
        ({"sizes": [1, 2]}, Settings(sizes=(1, 2))),
        ({"limit": "None"}, Settings(limit=None)),
        ({"inner": {"kind": "two"}}, Settings(inner=Inner(kind="two"))),
    ],
)
def test_value_reaches_its_field(table: dict[str, Any], expected: Settings) -> None:
    assert apply_table(Settings(), table, "file") == expected


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"stepps": 1}, "file: unknown key 'stepps'. Did you mean 'steps'?"),
        ({"inner": {"rat": 1}}, "file: unknown key 'inner.rat'. Did you mean 'inner.rate'?"),
        ({"steps": "5"}, "file: Expect steps to be a valid integer, actually: '5'"),
        ({"steps": 1.5}, "file: Expect steps to be a valid integer, actually: 1.5"),
        ({"fast": 1}, "file: Expect fast to be a valid boolean, actually: 1"),
        ({"rate": "high"}, "file: Expect rate to be a valid number, actually: 'high'"),
        (
            {"folder": 3},
            "file: Expect folder to be a valid string, actually: 3",
        ),
        ({"inner": 1}, "file: Expect inner to be an object, actually: 1"),
        (
            {"inner": {"kind": "three"}},
            "file: Expect inner.kind to be 'one' or 'two', actually: 'three'",
        ),
        ({"steps": -1}, "file: Expect steps not to be negative, actually: -1"),
    ],
)
def test_wrong_table_is_explained(table: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        apply_table(Settings(), table, "file")
    assert str(caught.value) == message


@given(
    st.builds(
        Settings,
        steps=st.integers(0),
        rate=st.floats(allow_nan=False),
        name=st.text(st.characters(exclude_categories=["Cs"])),
        fast=st.booleans(),
        limit=st.none() | st.integers(),
        sizes=st.lists(st.integers()).map(tuple),
        inner=st.builds(
            Inner, rate=st.floats(allow_nan=False), kind=st.sampled_from(["one", "two"])
        ),
    )
)
def test_written_settings_are_read_back(settings: Settings) -> None:
    assert apply_table(Settings(), tomllib.loads(to_toml(settings)), "text") == settings


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
    int: st.integers(2, 2**60),
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


HINTS = typing.get_type_hints(TrainConfig)
CONFIGURATIONS = st.lists(st.sampled_from(sorted(HINTS)), unique=True, max_size=6).flatmap(
    lambda names: st.fixed_dictionaries({name: values_of(HINTS[name]) for name in names})
)


@given(CONFIGURATIONS)
def test_every_configuration_is_written_and_read_back(changes: dict[str, Any]) -> None:
    try:
        config = TrainConfig(**changes)
    except ValueError:  # a combination that is refused
        reject()
    table = tomllib.loads(to_toml(config))
    assert apply_table(TrainConfig(), table, "text") == config
    assert moved_names(table) == ""


@given(blocks_of(PlayerConfig), blocks_of(TesterConfig))
def test_blocks_survive_over_any_others(coder: PlayerConfig, tester: TesterConfig) -> None:
    """None, too, where it is put back over something else."""
    try:
        config = TrainConfig(coder=coder, tester=tester)
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


@pytest.mark.parametrize("content", [b"seed = = 1", b"\xff\xfe", b"a = 1\na = 2"])
def test_what_is_not_toml_is_explained(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(SettingsError, match=r"expect .*bad\.toml to be a TOML file"):
        read_toml(path)
