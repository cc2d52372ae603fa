"""Presets: settings in TOML files that come with the package, or in files of the user's that extend them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from codea1_env.training.moved_settings import moved_names
from codea1_env.training.settings import SettingsError, read_toml

_FOLDER = files("codea1_env") / "training" / "presets"
PRESETS = sorted(Path(entry.name).stem for entry in _FOLDER.iterdir())
"""Names of presets."""


def preset_table(name: str) -> dict[str, Any]:
    """What a preset says.

    Raises:
        SettingsError: There is none of this name.
    """
    if name not in PRESETS:
        near = difflib.get_close_matches(name, PRESETS, n=3)
        known = (
            f"Did you mean {' or '.join(map(repr, near))}?"
            if near
            else f"Expect one of: {', '.join(PRESETS)}"
        )
        raise SettingsError(f"unknown preset {name!r}. {known}")
    return file_table(Path(str(_FOLDER / f"{name}.toml")))


def file_table(path: Path) -> dict[str, Any]:
    """What a file says, with the preset that it extends below it.

    Raises:
        SettingsError: It cannot be read, or has names of older versions.
    """
    table = read_toml(path)
    if moved := moved_names(table):
        raise SettingsError(f"{path}: {moved}")
    below = table.pop("extends", None)
    if below is None:
        return table
    if not isinstance(below, str):
        raise SettingsError(f"expect extends to name a preset in quotes, actually: {below!r}")
    return _joined(preset_table(below), table)


def _joined(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Two tables in one; tables in both are joined, too."""
    joined = dict(below)
    for name, value in above.items():
        both = isinstance(value, Mapping) and isinstance(joined.get(name), Mapping)
        joined[name] = _joined(joined[name], value) if both else value
    return joined
