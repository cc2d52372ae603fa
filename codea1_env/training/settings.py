"""Settings from TOML files and presets: typed, with errors that name the key, and written back by `--dry-run`."""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
import types
import typing
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union

import tomli_w

from codea1_env.game import did_you_mean

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


Settings = TypeVar("Settings", bound="DataclassInstance")
NONE = "None"
"""How TOML, which has no word for it, says None; the command line says `--split None`."""
_FOLDER = files("codea1_env") / "training" / "presets"
PRESETS = sorted(Path(entry.name).stem for entry in _FOLDER.iterdir())
"""Names of presets."""
MOVED = {
    "coder": "coder.player",
    "freeze_coder": "coder.freeze",
    "learning_rate": "coder.learning_rate",
    "coder_sampling": "coder.sampling",
    "coder_trainer": "coder.trainer",
    "tester": "tester.player",
    "freeze_tester": "tester.freeze",
    "tester_learning_rate": "tester.learning_rate",
    "tester_model": "tester.model",
    "tester_sampling": "tester.sampling",
    "tester_trainer": "tester.trainer",
    "tester_objective": "tester.objective",
}
"""Old name -> new name. "coder" and "tester" were the names of players; now they are the names of the blocks."""


class SettingsError(ValueError):
    """A file does not say what settings need. The message names the key."""


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        SettingsError: The file cannot be read, or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read the configuration {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"expect {path} to be a TOML file in UTF-8: {error.reason}") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"expect {path} to be a TOML file: {error}") from error


def apply_table(settings: Settings, table: Mapping[str, Any], source: str) -> Settings:
    """Return the settings with the values of a table in place of their own.

    Args:
        settings: A dataclass instance; its fields may be dataclasses.
        table: Field name -> value; a table for a field that is a dataclass.
        source: Where the table comes from, for messages.

    Raises:
        SettingsError: A key does not exist, or a value is of another type than its field.
    """
    hints = typing.get_type_hints(type(settings))
    known = [field.name for field in dataclasses.fields(settings)]
    changes: dict[str, Any] = {}
    for key, value in table.items():
        if key not in known:
            raise SettingsError(f"{source}: unknown key {key!r}{did_you_mean(key, known)}")
        current = getattr(settings, key)
        nested = dataclasses.is_dataclass(current) and not isinstance(current, type)
        if nested and isinstance(value, Mapping):
            changes[key] = apply_table(current, value, f"{source}: [{key}]")
        else:
            changes[key] = _convert(value, hints[key], f"{source}: {key}")
    try:
        return dataclasses.replace(settings, **changes)
    except (TypeError, ValueError) as error:  # the class checks its own values
        raise SettingsError(f"{source}: {error}") from error


def flat(settings: Any, block: str = "") -> dict[str, Any]:
    """All settings in one table: the names in a block begin with that of the block, as in `coder.freeze`."""
    found: dict[str, Any] = {}
    for each in dataclasses.fields(settings):
        name, value = f"{block}{each.name}", getattr(settings, each.name)
        found |= flat(value, f"{name}.") if dataclasses.is_dataclass(value) else {name: value}
    return found


def replaced(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    """Return the settings with other values, named as by `flat`; a whole block may be given, too.

    Example:
        >>> @dataclasses.dataclass(frozen=True)
        ... class Block:
        ...     rate: float = 1.0
        ...     fixed: bool = False
        >>> @dataclasses.dataclass(frozen=True)
        ... class Whole:
        ...     seed: int = 0
        ...     block: Block = Block()
        >>> replaced(Whole(), {"block.rate": 2.0, "seed": 3})
        Whole(seed=3, block=Block(rate=2.0, fixed=False))
    """
    own: dict[str, Any] = {}
    for name, value in changes.items():
        block, inside, rest = name.partition(".")
        before = own.get(block, getattr(settings, block))
        own[block] = replaced(before, {rest: value}) if inside else value
    return dataclasses.replace(settings, **own)


def _convert(value: Any, hint: Any, where: str) -> Any:
    """Return the value as its field's type, or an error. An int is fine for a float; nothing else is bent."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        if value == NONE and type(None) in arguments:
            return None
        for option in arguments:
            try:
                return _convert(value, option, where)
            except SettingsError:
                continue
    elif origin is Literal:
        if any(value == choice and type(value) is type(choice) for choice in arguments):
            return value
    elif origin is tuple and isinstance(value, list):
        items = [arguments[0]] * len(value) if arguments[-1] is Ellipsis else list(arguments)
        if len(items) == len(value):
            return tuple(
                _convert(item, kind, where) for item, kind in zip(value, items, strict=True)
            )
    elif origin is dict and isinstance(value, Mapping):
        return dict(_not_plain(value))
    elif hint is float and type(value) in (int, float):
        return float(value)
    elif hint is Path and isinstance(value, str):
        return Path(value)
    elif isinstance(hint, type) and type(value) is hint:
        return value
    raise SettingsError(f"{where}: expect {_describe(hint)}, actually: {value!r}")


def _describe(hint: Any) -> str:
    """Return a type in the words of a TOML author."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_describe(option) for option in arguments if option is not type(None))
    if origin is Literal:
        return "one of " + ", ".join(map(repr, arguments))
    names = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}
    names |= {Path: "a path in quotes", tuple: "a list", dict: "a table"}
    if dataclasses.is_dataclass(hint):
        return "a table"
    return names.get(origin or hint, str(hint))


def to_toml(settings: Any) -> str:
    """Write settings as TOML, which `apply_table` reads back to the same values.

    Example:
        >>> @dataclasses.dataclass(frozen=True)
        ... class Example:
        ...     seed: int = 0
        ...     name: str | None = None
        >>> print(to_toml(Example()), end="")
        seed = 0
        name = "None"
    """
    return tomli_w.dumps(_plain(settings))


def _plain(value: Any) -> Any:
    """Return what TOML can say."""
    if dataclasses.is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value) if value is None or isinstance(value, Path) else value


def _not_plain(value: Any) -> Any:
    """Return a value of a table without types, as it was before it was written."""
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
    """Read what `inline_table` wrote.

    Raises:
        ValueError: The text is something else.
    """
    try:
        return dict(_not_plain(tomllib.loads(f"table = {{{text}}}")["table"]))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(
            f"expect settings such as 'beta = 0.01, optim = \"adamw_torch\"', actually: {text!r} ({error})"
        ) from error


def preset_table(name: str) -> dict[str, Any]:
    """Return what a preset says.

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
    """Return what a file says, with the preset that it extends below it.

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


def moved_names(settings: Mapping[str, Any]) -> str:
    """Say which settings have other names now; nothing if none has.

    Args:
        settings: Name -> value, as in a TOML file or a call of `TrainConfig`.

    Example:
        >>> moved_names({"tester": "golden", "seed": 3, "learning_rate": 1.0})
        'learning_rate is now coder.learning_rate; tester is now tester.player'
    """
    return "; ".join(
        f"{old} is now {new}"
        for old, new in MOVED.items()
        if old in settings and (old not in ("coder", "tester") or isinstance(settings[old], str))
    )
