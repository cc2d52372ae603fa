"""Settings from TOML files and presets: typed, with errors that name the key, and written back by `--dry-run`."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import json
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import tomli_w
from pydantic import ConfigDict, TypeAdapter, ValidationError

from codea1_env.game import did_you_mean

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


Settings = TypeVar("Settings", bound="DataclassInstance")
STRICT = ConfigDict(extra="forbid", strict=True, revalidate_instances="always")
"""How settings are checked: an int is fine for a float, and nothing else is bent."""
NONE = "None"
"""How TOML, which has no word for it, says None; the command line says `--split None`."""
_FOLDER = files("codea1_env") / "training" / "presets"
PRESETS = sorted(Path(entry.name).stem for entry in _FOLDER.iterdir())
"""Names of presets."""
VERSION = 2
"""Of a run's config.toml. It rises when a setting goes, or means something else."""


class SettingsError(ValueError):
    """A value is not what its setting needs. The message is one line, and names the key."""


def in_one_line(kind: type[Settings]) -> type[Settings]:
    """Let a class of settings raise `SettingsError` for a wrong value, and take numbers of numpy."""
    init: Any = kind.__init__

    @functools.wraps(init)
    def checked(self: Any, *values: Any, **named: Any) -> None:
        numbers = {
            name: value.item() for name, value in named.items() if isinstance(value, np.generic)
        }
        try:
            init(self, *values, **named | numbers)
        except ValidationError as error:
            raise _reason(error, [each.name for each in dataclasses.fields(kind)]) from None

    kind.__init__ = checked  # type: ignore[method-assign]
    return kind


def _reason(error: ValidationError, known: list[str]) -> ValueError:
    first = error.errors(include_url=False)[0]
    place, value = ".".join(map(str, first["loc"])), first["input"]
    own = first.get("ctx", {}).get("error")
    if isinstance(own, ValueError):  # raised by a check of ours, which names the setting
        return SettingsError(f"{place}: {own}") if place else own
    if first["type"] == "unexpected_keyword_argument":
        return SettingsError(f"unknown key {place!r}{did_you_mean(place, known)}")
    said = first["msg"].replace("Input should be", f"Expect {place} to be", 1)
    return SettingsError(
        f"{said if place in said else f'{place}: {said}'}, actually: {value!r:.200}"
    )


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file. Raises a SettingsError if the file cannot be read, or is not TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read the configuration {path}: {error.strerror}") from error
    except ValueError as error:  # no UTF-8, or no TOML
        raise SettingsError(f"expect {path} to be a TOML file: {error}") from error


def apply_table(settings: Settings, table: Mapping[str, Any], source: str) -> Settings:
    """Return the settings with the values of a table in place of their own. Blocks keep what the table does not name.

    Raises a SettingsError that begins with `source` if a key does not exist, or a value is not what its field takes.
    """
    written = json.dumps(_over(settings, table), default=_for_json)
    try:
        return TypeAdapter(type(settings)).validate_json(written)
    except ValidationError as error:
        raise SettingsError(f"{source}: {_reason(error, list(flat(settings)))}") from None


def _over(settings: Any, table: Mapping[str, Any]) -> dict[str, Any]:
    """Join a table with the settings below it; blocks keep what it does not name."""
    values = dict(vars(settings))
    for key, value in table.items():
        before = values.get(key)
        block = dataclasses.is_dataclass(before) and isinstance(value, Mapping)
        values[key] = _over(before, value) if block else _not_plain(value)
    return values


def _for_json(value: Any) -> Any:
    return vars(value) if dataclasses.is_dataclass(value) else str(value)


def flat(settings: Any, block: str = "") -> dict[str, Any]:
    """All settings in one table: the names in a block begin with that of the block, as in `coder.freeze`."""
    found: dict[str, Any] = {}
    for each in dataclasses.fields(settings):
        name, value = f"{block}{each.name}", getattr(settings, each.name)
        found |= flat(value, f"{name}.") if dataclasses.is_dataclass(value) else {name: value}
    return found


def replaced(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    """Return the settings with other values, named as by `flat`; a whole block may be given, too."""
    own: dict[str, Any] = {}
    for name, value in changes.items():
        block, inside, rest = name.partition(".")
        before = own.get(block, getattr(settings, block))
        own[block] = replaced(before, {rest: value}) if inside else value
    return dataclasses.replace(settings, **own)


def to_toml(settings: Any) -> str:
    """Write settings as TOML, which `apply_table` reads back to the same values."""
    return tomli_w.dumps(_plain(settings))


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value) if value is None or isinstance(value, Path) else value


def _not_plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _not_plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_not_plain(item) for item in value]
    return None if value == NONE else value


def inline_table(table: Mapping[str, Any]) -> str:
    """Write a table in one line, without its braces.

    Example:
        >>> inline_table({"beta": 0.1, "optim": "adamw_torch"})
        'beta = 0.1, optim = "adamw_torch"'
    """
    # TOML writes a table in one line where it stands in a list of lists.
    written = tomli_w.dumps({"table": [[_plain(table)]]})
    return written[written.index("{") + 1 : written.rindex("}")].strip()


def read_inline_table(text: str) -> dict[str, Any]:
    """Read what `inline_table` wrote. Raises a ValueError if the text is something else."""
    try:
        return dict(_not_plain(tomllib.loads(f"table = {{{text}}}")["table"]))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(
            f"expect settings such as 'beta = 0.01, optim = \"adamw_torch\"', actually: {text!r} ({error})"
        ) from error


def preset_table(name: str) -> dict[str, Any]:
    """Read a preset. Raises a SettingsError if there is none of this name."""
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
    """Read a file of settings, with the preset that it extends below it.

    Raises a SettingsError if it cannot be read, or is the configuration of a run of another version.
    """
    table = read_toml(path)
    check_version(path, table.pop("version", VERSION))
    below = table.pop("extends", None)
    if below is None:
        return table
    if not isinstance(below, str):
        raise SettingsError(f"expect extends to name a preset in quotes, actually: {below!r}")
    return _joined(preset_table(below), table)


def _joined(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    joined = dict(below)
    for name, value in above.items():
        both = isinstance(value, Mapping) and isinstance(joined.get(name), Mapping)
        joined[name] = _joined(joined[name], value) if both else value
    return joined


def check_version(path: Path, version: object) -> None:
    """Refuse the configuration of a run of another version of the settings."""
    if version != VERSION:
        raise SettingsError(
            f"Expect {path} to be of version {VERSION}, actually: {version!r:.40}. Begin a new run."
        )
