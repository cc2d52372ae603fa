"""Players and algorithms of your own, found by name; and what a player is made from."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from codea1_env.agents.pools import Pool
from codea1_env.sandbox import Sandbox


@dataclass(frozen=True)
class Setting:
    """What a player of your own is made from: `Class(setting)` must give a `Learner`."""

    role: Literal["coder", "tester"]
    pools: tuple[Pool, ...]
    """Programs or tests of each problem that a tabular player chooses from; `pool.problem` is the problem.
    Nothing in them is held back for measuring."""
    num_tests: int
    """Tests of a suite that count."""
    learning_rate: float
    """The step size that tabular players of this role have."""
    seed: int
    """Seed of the player's random choices."""
    sandbox: Sandbox

    @property
    def draws(self) -> int:
        """Items of one answer: one program, or `num_tests` tests."""
        return 1 if self.role == "coder" else self.num_tests

    @property
    def rng(self) -> np.random.Generator:
        """A new generator from the seed."""
        return np.random.default_rng(self.seed)


class FileError(ValueError):
    """A file cannot be run at all; what it raises when it runs is its own error."""


def find_class(name: str) -> type[Any]:
    """Find a class.

    Args:
        name: `module:Class`, or `FILE.py:Class`.

    Raises:
        ValueError: There is no such module or class; the nearest names are offered.

    Example:
        >>> find_class("codea1_env.agents:GRPO").__name__
        'GRPO'
    """
    home, colon, attribute = name.rpartition(":")
    if not colon or not home or not attribute:
        raise ValueError(f"Expect module:Class or FILE.py:Class, actually: {name!r}")
    module = load_file(Path(home)) if home.endswith(".py") else _from_path(home, name)
    found = getattr(module, attribute, None)
    if not isinstance(found, type):
        classes = [key for key, value in vars(module).items() if isinstance(value, type)]
        near = difflib.get_close_matches(attribute, classes, n=3)
        hint = f"Did you mean {' or '.join(near)}?" if near else f"It has: {', '.join(classes)}"
        raise ValueError(f"Expect {home} to define the class {attribute!r}. {hint}")
    return found


def _from_path(module: str, name: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"Expect {name!r} to name a module that can be imported, actually: {error}. A file is named "
            "FILE.py:Class."
        ) from error


def load_file(path: Path) -> Any:
    """Run a Python file of the user's, in this process, and return it as a module.

    Raises:
        FileError: There is no such file, or its name does not end with .py.
    """
    if not path.is_file():
        raise FileError(f"Expect {path} to be a Python file, actually: there is no such file")
    spec = importlib.util.spec_from_file_location(f"codea1_custom_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise FileError(f"Expect the name of {path} to end with .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickle look there
    spec.loader.exec_module(module)
    return module
