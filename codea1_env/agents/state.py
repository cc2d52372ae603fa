"""Saving what agents and algorithms must remember: as JSON, so that equal state gives equal bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from codea1_env.problems import Problem
from codea1_env.spaces import Observation
from codea1_env.support.plugins import explained


def write_json(path: Path, value: Any, default: Callable[[Any], Any] | None = None) -> None:
    """Write a value. Floats keep every bit; `default` makes plain data of what is none."""
    text = json.dumps(value, sort_keys=True, default=default)
    path.write_text(text + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """Read what `write_json` wrote. Raises a ValueError if there is no such file, or it is not JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"Expect saved state in {path}, actually: {error}") from error


def read_state(file: Path, pools: Mapping[str, Any]) -> Any:
    """Read the state of a player that chooses from pools. Raises a ValueError if it chose from others."""
    state = read_json(file)
    if state.get("pools") != pools:
        raise ValueError(
            f"Expect {file.parent} to be of a player with the same pools, actually they differ: it was saved "
            "with other problems, another seed or pool size, or another version of this package."
        )
    return state


class StateError(ValueError):
    """The state of an algorithm of yours cannot be saved or loaded."""


def saved_state(algorithm: Any) -> Any:
    """Return the state of an algorithm as it is saved, None if it remembers nothing. Raises a StateError if that cannot be saved."""
    if not hasattr(algorithm, "state_dict"):
        return None
    name = type(algorithm).__name__
    if not hasattr(algorithm, "load_state_dict"):
        raise StateError(f"Expect {name} to have load_state_dict beside state_dict")
    with explained(type(algorithm), "state_dict", StateError):
        state = algorithm.state_dict()
    try:
        if state is None:
            raise TypeError("None. Is there no `return`?")
        return json.loads(json.dumps(_plain(state)))
    except (TypeError, ValueError) as error:
        raise StateError(
            f"Expect {name}.state_dict to return numbers, texts, lists, arrays and mappings with keys of text, actually: {error}"
        ) from error


def _plain(value: Any) -> Any:
    """Turn arrays and tensors into lists, and refuse keys that JSON would turn into texts."""
    if isinstance(value, Mapping):
        if others := [key for key in value if not isinstance(key, str)]:
            raise TypeError(f"a key of type {type(others[0]).__name__}")
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return value.tolist() if callable(getattr(value, "tolist", None)) else value


def load_saved_state(algorithm: Any, state: Any) -> None:
    """Give an algorithm the state back that `saved_state` returned."""
    if state is not None and hasattr(algorithm, "load_state_dict"):
        with explained(type(algorithm), "load_state_dict", StateError):
            algorithm.load_state_dict(state)


def rng_state(rng: np.random.Generator) -> dict[str, Any]:
    """State of a generator as plain data."""
    return dict(rng.bit_generator.state)


class KnownProblems:
    """Finds the problem that an observation shows among all that may be shown."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self._problems = {problem.task_id: problem for problem in problems}

    def __getitem__(self, observation: Observation) -> Problem:
        problem = self._problems.get(observation["task_id"])
        if problem is None:
            raise ValueError(
                f"Expect one of the {len(self._problems)} problems that this player was made for, "
                f"actually: {observation['task_id']!r}. Give the player all problems of the game."
            )
        return problem


def shown_to(observation: Observation) -> str:
    """Name the text that a player sees beside the problem, "" for none.

    A tester sees the program that it attacks, unless that is hidden from it; a coder that repairs a program sees it, and
    the tests that broke it.
    """
    if observation["turn"] or not observation["code"]:
        return observation["code"]
    return f"{observation['code']}\n\n{observation['tests']}"
