"""PettingZoo's own tests on all forms of the environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pettingzoo.test import (
    api_test,
    parallel_api_test,
    parallel_seed_test,
    render_test,
    seed_test,
    state_test,
)

from codea1_env import code_a1_v1
from codea1_env.sandbox import Sandbox

Make = Callable[..., Any]

pytestmark = pytest.mark.filterwarnings(
    "error",
    # Texts are neither arrays nor boxes; PettingZoo would rather have those.
    "ignore:Observation is not a NumPy array",
    "ignore:Observation space for each agent probably should be",
    "ignore:Action space for each agent probably should be",
    "ignore:State space for each environment probably should be",
    "ignore:State is not NumPy array",
)


@pytest.fixture(params=[1, 3], ids=["one round", "three rounds"])
def settings(request: pytest.FixtureRequest, sandbox: Sandbox) -> dict[str, Any]:
    return {"max_rounds": request.param, "sandbox": sandbox}


@pytest.mark.parametrize("make", [code_a1_v1.env, code_a1_v1.raw_env], ids=["env", "raw_env"])
def test_api(make: Make, settings: dict[str, Any]) -> None:
    api_test(make(**settings), num_cycles=20)


def test_parallel_api(settings: dict[str, Any]) -> None:
    parallel_api_test(code_a1_v1.parallel_env(**settings), num_cycles=20)


def test_seed(settings: dict[str, Any]) -> None:
    seed_test(lambda: code_a1_v1.env(**settings), num_cycles=20)


def test_parallel_seed(settings: dict[str, Any]) -> None:
    parallel_seed_test(lambda: code_a1_v1.parallel_env(**settings), num_cycles=20)


@pytest.mark.slow
def test_render(settings: dict[str, Any]) -> None:
    def make(render_mode: str | None = None) -> Any:
        return code_a1_v1.env(render_mode=render_mode, **settings)

    render_test(make)


def test_state(settings: dict[str, Any]) -> None:
    state_test(code_a1_v1.env(**settings), code_a1_v1.parallel_env(**settings))
