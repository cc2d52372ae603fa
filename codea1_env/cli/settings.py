"""Settings from TOML files: typed, with errors that name the key, and written back by `--dry-run`."""

from __future__ import annotations

import dataclasses
import json
import tomllib
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union

from codea1_env.cli.errors import InputError, unknown_name

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Settings = TypeVar("Settings", bound="DataclassInstance")

NONE = "None"
"""How TOML, which has no word for it, says None; the command line says `--split None`."""


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        InputError: The file cannot be read, or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read the configuration {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"expect {path} to be a TOML file in UTF-8: {error.reason}") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"expect {path} to be a TOML file: {error}") from error


def apply_table(settings: Settings, table: Mapping[str, Any], source: str) -> Settings:
    """Return the settings with the values of a table in place of their own.

    Args:
        settings: A dataclass instance; its fields may be dataclasses.
        table: Field name -> value; a table for a field that is a dataclass.
        source: Where the table comes from, for messages.

    Raises:
        InputError: A key does not exist, or a value is of another type than its field.
    """
    hints = typing.get_type_hints(type(settings))
    known = [field.name for field in dataclasses.fields(settings)]
    changes: dict[str, Any] = {}
    for key, value in table.items():
        if key not in known:
            raise InputError(f"{source}: {unknown_name('key', key, known)}")
        current = getattr(settings, key)
        nested = dataclasses.is_dataclass(current) and not isinstance(current, type)
        if nested and isinstance(value, Mapping):
            changes[key] = apply_table(current, value, f"{source}: [{key}]")
        else:
            changes[key] = _convert(value, hints[key], f"{source}: {key}")
    try:
        return dataclasses.replace(settings, **changes)
    except (TypeError, ValueError) as error:  # the class checks its own values
        raise InputError(f"{source}: {error}") from error


def _convert(value: Any, hint: Any, where: str) -> Any:
    """The value as its field's type, or an error. An int is fine for a float; nothing else is bent."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        if value == NONE and type(None) in arguments:
            return None
        for option in arguments:
            try:
                return _convert(value, option, where)
            except InputError:
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
        return dict(value)
    elif hint is float and type(value) in (int, float):
        return float(value)
    elif hint is Path and isinstance(value, str):
        return Path(value)
    elif isinstance(hint, type) and type(value) is hint:
        return value
    raise InputError(f"{where}: expect {_describe(hint)}, actually: {value!r}")


def _describe(hint: Any) -> str:
    """A type in the words of a TOML author."""
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
        ...     sizes: tuple[int, ...] = (1, 2)
        >>> print(to_toml(Example()), end="")
        seed = 0
        name = "None"
        sizes = [1, 2]
    """
    return "".join(_toml_lines(settings, ()))


def _toml_lines(settings: Any, path: tuple[str, ...]) -> list[str]:
    plain: list[str] = []
    tables: list[str] = []
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if isinstance(value, Mapping):
            tables += [f"\n[{'.'.join((*path, field.name))}]\n"] if value else []
            tables += [f"{key} = {_toml_value(item)}\n" for key, item in value.items()]
        elif dataclasses.is_dataclass(value):
            inner = (*path, field.name)
            tables += [f"\n[{'.'.join(inner)}]\n", *_toml_lines(value, inner)]
        else:
            plain.append(f"{field.name} = {_toml_value(value)}\n")
    return plain + tables


def inline_table(table: Mapping[str, Any]) -> str:
    """Write a table in one line, without its braces.

    Example:
        >>> inline_table({"beta": 0.1, "optim": "adamw_torch"})
        'beta = 0.1, optim = "adamw_torch"'
    """
    return ", ".join(f"{key} = {_toml_value(value)}" for key, value in table.items())


def read_inline_table(text: str) -> dict[str, Any]:
    """Read what `inline_table` wrote.

    Raises:
        ValueError: The text is something else.
    """
    try:
        return dict(tomllib.loads(f"table = {{{text}}}")["table"])
    except tomllib.TOMLDecodeError as error:
        raise ValueError(
            f"expect settings such as 'beta = 0.01, optim = \"adamw_torch\"', actually: {text!r} ({error})"
        ) from error


def _toml_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{inline_table(value)}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_toml_value(item) for item in value)}]"
    if isinstance(value, float):
        return repr(value)  # also inf and nan are written as TOML has them
    if value is None or isinstance(value, Path):
        value = str(value)
    # JSON's booleans, integers and strings are TOML's, but for DEL, which TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
