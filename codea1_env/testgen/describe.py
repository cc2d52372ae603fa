"""Describes what a module defines, and the calls in texts, as plain data. Its text stands in programs of the sandbox."""

from __future__ import annotations

import ast
import collections.abc
import contextlib
import dis
import enum
import functools
import importlib
import inspect
import re
import time
import types
import typing
from collections.abc import Iterator
from typing import Any

Kind = tuple[Any, ...]
_PLAIN = (bool, int, float, str, bytes)
_NAMED = ("date", "datetime", "Decimal")
_SEQUENCES = (
    list, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection,
    collections.abc.MutableSequence, collections.abc.Iterator, collections.abc.Reversible,
)  # fmt: skip
_SETS = (set, frozenset, collections.abc.Set, collections.abc.MutableSet)
_MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_OPERATORS = (
    "__getitem__", "__setitem__", "__delitem__", "__contains__", "__iter__", "__next__", "__reversed__",
    "__str__", "__repr__", "__bool__", "__int__", "__float__",
)  # fmt: skip
_MUTATORS = {
    "append", "add", "update", "extend", "insert", "setdefault", "push", "put", "set", "register", "appendleft",
}  # fmt: skip
_MOST_WORDS = 60
_QUOTED = re.compile(r"'([^'\n]{1,80})'|\"([^\"\n]{1,80})\"|`([^`\n]{1,80})`")
_ERROR = re.compile(r"\w+(?:Error|Exception)\b")


def listing(module: str) -> dict[str, Any]:
    """Import a module and say which functions and classes it defines, and what they use of it.

    Returns:
        ``error``, ``missing``, ``seconds`` of the import; ``names`` (name -> public, lines, source, uses);
        ``constants`` (name -> text of a plain value).
    """
    started, space, error, missing = time.monotonic(), dict[str, Any](), "", ""
    try:
        space = vars(importlib.import_module(module))
    except Exception as raised:
        error = f"{type(raised).__name__}: {str(raised)[:300]}"
        missing = str(raised.name or "") if isinstance(raised, ImportError) else ""
    seconds = time.monotonic() - started
    public = space.get("__all__") or [name for name in space if not name.startswith("_")]
    names, constants = {}, {}
    for name, value in list(space.items()):
        if _is_defined_in(value, name, module):
            source, first = _source(value)
            if first:
                names[name] = {
                    "public": name in public and not _is_special(value),
                    "lines": (first, first + source.count("\n") - 1),
                    "source": source,
                    "uses": frozenset(_names_used(value)),
                }
        elif isinstance(value, (*_PLAIN, list, tuple, dict, set, frozenset)) and name[:2] != "__":
            with contextlib.suppress(Exception):
                ordered = sorted(map(repr, value)) if isinstance(value, (set, frozenset)) else value
                constants[name] = repr(ordered)
    return {"error": error, "missing": missing, "seconds": seconds, "names": names, "constants": constants}  # fmt: skip


def describe(module: str, name: str, readme: str) -> dict[str, Any]:
    """Describe a function or class: its parameters, what its examples call, words and numbers in its code."""
    space = vars(importlib.import_module(module))
    plain = _unwrapped(space[name])
    docs = [inspect.getdoc(plain) or ""]
    methods: dict[str, Any] = {}
    for key, method in _methods(plain) if isinstance(plain, type) else ():
        methods[key] = {
            "parameters": _parameters(method, plain),
            "sets": key == "__setitem__" or key in _MUTATORS or _sets(method),
            "awaited": inspect.iscoroutinefunction(method),
        }
        docs.append(inspect.getdoc(method) or "")
    used = _reached(plain, space)
    words, numbers = _hints(plain, used, space)
    named = {each for each in used if each.endswith(("Error", "Exception"))}
    return {
        "is_class": isinstance(plain, type),
        "asynchronous": inspect.iscoroutinefunction(plain),
        "signature": _signature_text(plain, name),
        "docs": docs,
        "parameters": _parameters(plain, plain),
        "methods": methods,
        "attributes": _attributes(plain),
        "raises": frozenset(named.union(_ERROR.findall("\n".join(docs)))),
        "words": words,
        "numbers": numbers,
        "uses": frozenset(used),
        "examples": called_in("\n".join([*docs, readme]), name),
    }


# What a module defines


def _unwrapped(value: Any) -> Any:
    for _ in range(20):
        value = getattr(value, "__wrapped__", value)
    return value


def _is_defined_in(value: Any, name: str, module: str) -> bool:
    value = _unwrapped(value)
    known = isinstance(value, (type, types.FunctionType)) and value.__qualname__ == name
    return known and getattr(value, "__module__", None) == module


def _is_special(value: Any) -> bool:
    """Whether nobody tests it on its own: exceptions and protocols."""
    protocol = getattr(value, "_is_protocol", False)
    return isinstance(value, type) and (issubclass(value, BaseException) or protocol)


def _source(value: Any) -> tuple[str, int]:
    try:
        lines, first = inspect.getsourcelines(_unwrapped(value))
    except (OSError, TypeError, SyntaxError):
        return "", 0
    return "".join(lines) + ("" if lines[-1].endswith("\n") else "\n"), first


def _functions(value: Any) -> Iterator[types.FunctionType]:
    """Yield a function, or all functions of a class."""
    if isinstance(value, types.FunctionType):
        yield value
    for each in list(vars(value).values()) if isinstance(value, type) else ():
        for part in (each.fget, each.fset) if isinstance(each, property) else (each,):
            part = _unwrapped(getattr(part, "__func__", getattr(part, "func", part)))
            if isinstance(part, types.FunctionType):
                yield part


def _codes(value: Any) -> Iterator[types.CodeType]:
    left = [each.__code__ for each in _functions(value)]
    while left:
        code = left.pop()
        yield code
        left += [each for each in code.co_consts if isinstance(each, types.CodeType)]


def _names_used(value: Any) -> set[str]:
    found = {name for code in _codes(value) for name in code.co_names}
    return found.union(each.__name__ for each in getattr(value, "__bases__", ()))


def _reached(value: Any, space: dict[str, Any]) -> set[str]:
    """Return the names that a definition uses, also through others of its module."""
    found, left = set[str](), [value]
    while left:
        for name in _names_used(left.pop()) - found:
            found.add(name)
            other = _unwrapped(space.get(name))
            if isinstance(other, (type, types.FunctionType)):
                left.append(other)
    return found


# Parameters


def _parameters(function: Any, owner: Any) -> list[dict[str, Any]]:
    try:
        values = list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError):
        return []
    if function is not owner and values[:1] and values[0].name in ("self", "cls"):
        values = values[1:]
    hints, rows = _type_hints(function), []
    for each in values:
        private = each.name.startswith("_") and each.default is not each.empty
        if each.kind is each.VAR_KEYWORD or private:
            continue
        star = each.kind is each.VAR_POSITIONAL
        known = [] if each.name not in hints else [_kind(hints[each.name])]
        rows.append({
            "name": each.name,
            "way": "star" if star else "keyword" if each.kind is each.KEYWORD_ONLY else "place",
            "kinds": [kind for kind in known if kind != ("unknown",)],
            "optional": star or each.default is not each.empty,
            "default": [each.default] if each.default is not each.empty and _is_plain(each.default) else [],
        })  # fmt: skip
    return rows


def _type_hints(function: Any) -> dict[str, Any]:
    target: Any = vars(function).get("__init__") if isinstance(function, type) else function
    try:
        return typing.get_type_hints(target)
    except Exception:  # a name is only there for type checkers
        hints: dict[str, Any] = {}
        for name, each in getattr(target, "__annotations__", {}).items():
            with contextlib.suppress(Exception):
                hints[name] = eval(each, target.__globals__) if isinstance(each, str) else each
        return hints


def _kind(hint: Any) -> Kind:
    """Return a type hint as data: which values it allows."""
    origin, inside = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin is typing.Annotated:
        return _kind(inside[0])
    if hint in (None, type(None)):
        return ("none",)
    if hint in _PLAIN or getattr(hint, "__name__", "") in _NAMED:
        return (hint.__name__,)
    if origin in (typing.Union, types.UnionType):
        return ("union", *map(_kind, inside))
    if origin is typing.Literal:
        return ("literal", *filter(_is_plain, inside))
    item = _kind(inside[0]) if inside else ("str",) if origin in _MAPPINGS else ("int",)
    if origin in _SEQUENCES:
        return ("list", item)
    if origin in _SETS:
        return ("frozenset" if origin is frozenset else "set", item)
    if origin in _MAPPINGS:
        return ("dict", item, _kind(inside[1]) if len(inside) > 1 else ("int",))
    if origin is tuple:
        parts = tuple(("...",) if each is ... else _kind(each) for each in inside)
        return ("tuple", *(parts or (("unknown",), ("...",))))
    if isinstance(hint, typing.TypeVar):
        return _kind(hint.__bound__) if hint.__bound__ else ("unknown",)
    if hint in (Any, object, typing.Hashable, collections.abc.Hashable):
        return ("unknown",)
    return ("other", getattr(hint, "__name__", str(hint)))


def _methods(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods that the class and its bases in the same package define, and operators."""
    top = kind.__module__.partition(".")[0]
    own = [base for base in kind.__mro__ if base.__module__.partition(".")[0] == top]
    data = [base for base in kind.__mro__ if base in (dict, list, set)]
    for base in [*own, *data]:
        operators = _OPERATORS if base in own else ("__getitem__", "__setitem__")
        for name, value in vars(base).items():
            wanted = not name.startswith("_") or name in operators
            if wanted and callable(getattr(kind, name, None)) and not isinstance(value, type):
                yield name, getattr(kind, name)


def _instructions(value: Any) -> Iterator[dis.Instruction]:
    return (each for code in _codes(value) for each in dis.get_instructions(code))


def _sets(method: Any) -> bool:
    """Whether a method seems to change its object."""
    stores = ("STORE_ATTR", "STORE_SUBSCR", "DELETE_SUBSCR")
    return any(
        each.opname in stores
        or (each.opname.startswith("LOAD_") and isinstance(each.argval, str) and each.argval in _MUTATORS)
        for each in _instructions(_unwrapped(method))
    )  # fmt: skip


def _attributes(value: Any) -> tuple[str, ...]:
    """Return the public attributes that a class stores, annotates or computes, and ``len()`` if it has a length."""
    if not isinstance(value, type) or issubclass(value, enum.Enum):
        return ()
    found = {each.argval for each in _instructions(value) if each.opname == "STORE_ATTR"}
    for base in value.__mro__[:-1]:
        found |= set(inspect.get_annotations(base))
        found |= {name for name, each in vars(base).items() if isinstance(each, (property, functools.cached_property))}  # fmt: skip
    names = [name for name in sorted(found) if name[0] != "_" and not callable(getattr(value, name, None))]  # fmt: skip
    return (*names, "len()") if hasattr(value, "__len__") else tuple(names)


def _signature_text(value: Any, name: str) -> str:
    text = "(...)"
    with contextlib.suppress(ValueError, TypeError):
        text = str(inspect.signature(value))
    return f"{'class' if isinstance(value, type) else 'def'} {name}{text}:"


# Words and numbers


def _hints(value: Any, used: set[str], space: dict[str, Any]) -> tuple[list[str], list[Any]]:
    """Return words and numbers in the code, in messages, and in constants of the module that it uses."""
    found: list[Any] = []
    reached = [value, *(_unwrapped(space[name]) for name in sorted(used) if name in space)]
    for each in reached:
        docs = {function.__doc__ for function in _functions(each)} | {getattr(each, "__doc__", "")}
        consts = [const for code in _codes(each) for const in code.co_consts if const not in docs]
        found += [part for const in consts for part in _parts(const)]
    for each in reached:
        found += _parts(each)
    words, numbers = [], []
    for each in found:
        if isinstance(each, str) and each:
            words += [text for some in _QUOTED.findall(each) for text in some if text]
            words += [each] if len(each) <= 30 and not {"%", "{"} & set(each) else []
        elif type(each) in (int, float) and each == each:
            numbers.append(each)
    return [*dict.fromkeys(words)][:_MOST_WORDS], [*dict.fromkeys(numbers)][:_MOST_WORDS]


def _parts(value: Any, depth: int = 0) -> list[Any]:
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return [value]
    if isinstance(value, (tuple, list, set, frozenset, dict)) and depth < 2:
        items = sorted(value, key=repr) if isinstance(value, (set, frozenset)) else list(value)
        return [part for each in items[:20] for part in _parts(each, depth + 1)]
    return []


# Calls in docstrings and other texts


def called_in(text: str, name: str) -> list[Any]:
    """Return the calls of a name with literal arguments in any text."""
    found: list[Any] = []
    for match in list(re.finditer(rf"(?<!\w){re.escape(name)}\(", text))[:100]:
        rest = text[match.start() : match.start() + 300]
        for end in [each.end() for each in re.finditer(r"\)", rest)][:4]:
            try:
                call: Any = ast.parse(rest[:end], mode="eval").body
                args = [ast.literal_eval(each) for each in call.args]
                words = {each.arg: ast.literal_eval(each.value) for each in call.keywords if each.arg}  # fmt: skip
            except Exception:  # no call, or arguments that are no literals
                continue
            if _is_plain((args, words)):
                found.append((args, words, []))
            break
    return found


def _is_plain(value: Any, depth: int = 0) -> bool:
    if type(value) not in (list, tuple, set, frozenset, dict):
        return value is None or type(value) in _PLAIN
    parts = [*value, *value.values()] if isinstance(value, dict) else value
    return depth < 8 and all(_is_plain(part, depth + 1) for part in parts)
