"""Imports a module and describes what it defines, as plain data. Its text stands in programs and runs in the sandbox."""

from __future__ import annotations

import ast
import collections.abc
import contextlib
import copy
import dis
import doctest
import enum
import functools
import importlib
import inspect
import io
import re
import sys
import time
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any

Kind = tuple[Any, ...]
_PLAIN = (bool, int, float, str, bytes, complex)
_NAMED = ("date", "datetime", "timedelta", "Decimal", "Fraction")
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


def listing(module: str) -> dict[str, Any]:
    """Import a module and say which functions and classes it defines, and what they use of it.

    Returns:
        ``error``, ``missing``, ``seconds`` of the import; ``names`` (name -> public, lines, source, uses);
        ``constants`` (name -> text of a plain value).
    """
    started, found, error, missing = time.monotonic(), None, "", ""
    try:
        found = importlib.import_module(module)
    except Exception as raised:
        error = f"{type(raised).__name__}: {str(raised)[:300]}"
        missing = str(getattr(raised, "name", "") or "")
    seconds = time.monotonic() - started
    space = {} if found is None else vars(found)
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
                    "uses": sorted(_names_used(value)),
                }
        elif isinstance(value, (*_PLAIN, list, tuple, dict, set, frozenset)) and name[:2] != "__":
            with contextlib.suppress(Exception):
                constants[name] = str(sorted(map(repr, value)) if isinstance(value, (set, frozenset)) else repr(value))  # fmt: skip
    return {"error": error, "missing": missing, "seconds": seconds, "names": names, "constants": constants}  # fmt: skip


def home_of(module: str, name: str) -> tuple[str, str]:
    """Return the module and the name under which something was defined that a module offers; two empty texts if unknown."""
    value = _unwrapped(getattr(importlib.import_module(module), name, None))
    home, called = getattr(value, "__module__", ""), getattr(value, "__qualname__", "")
    return (home, called) if isinstance(home, str) and isinstance(called, str) else ("", "")


def describe(module: str, name: str, readme: str) -> dict[str, Any]:
    """Describe a function or class: its parameters, what its examples call, words and numbers in its code."""
    space = vars(importlib.import_module(module))
    value = space[name]
    plain = _unwrapped(value)
    docs = [inspect.getdoc(plain) or ""]
    methods: dict[str, Any] = {}
    if isinstance(plain, type):
        for key, method in _methods(plain):
            methods[key] = {
                "parameters": _parameters(method, plain),
                "sets": key == "__setitem__" or key in _MUTATORS or _sets(method),
                "awaited": inspect.iscoroutinefunction(method),
            }
            docs.append(inspect.getdoc(method) or "")
    used = _reached(plain, space)
    words, numbers = _hints(plain, used, space)
    return {
        "is_class": isinstance(plain, type),
        "asynchronous": inspect.iscoroutinefunction(plain),
        "signature": _signature_text(plain, name),
        "docs": docs,
        "parameters": _parameters(plain, plain),
        "methods": methods,
        "attributes": _attributes(plain),
        "raises": sorted(
            {each for each in used if each.endswith(("Error", "Exception"))}
            | set(re.findall(r"\w+(?:Error|Exception)\b", "\n".join(docs)))
        ),
        "words": words,
        "numbers": numbers,
        "uses": sorted(used),
        "examples": [*_recorded(value, name, module, docs), *called_in("\n".join([*docs, readme]), name)],
    }  # fmt: skip


# What a module defines


def _unwrapped(value: Any) -> Any:
    for _ in range(20):
        if not hasattr(value, "__wrapped__"):
            break
        value = value.__wrapped__
    return value


def _is_defined_in(value: Any, name: str, module: str) -> bool:
    value = _unwrapped(value)
    return (
        isinstance(value, (type, types.FunctionType))
        and getattr(value, "__module__", None) == module
        and value.__qualname__ == name
    )


def _is_special(value: Any) -> bool:
    """Whether nobody tests it on its own: exceptions and protocols."""
    return isinstance(value, type) and (
        issubclass(value, BaseException) or getattr(value, "_is_protocol", False)
    )


def _source(value: Any) -> tuple[str, int]:
    try:
        lines, first = inspect.getsourcelines(_unwrapped(value))
    except (OSError, TypeError, IndentationError, SyntaxError):
        return "", 0
    return "".join(lines) + ("" if lines[-1].endswith("\n") else "\n"), first


def _functions(value: Any) -> Iterator[types.FunctionType]:
    """Yield a function, or all functions of a class."""
    if isinstance(value, type):
        for each in vars(value).values():
            parts = (each.fget, each.fset) if isinstance(each, property) else (each,)
            for part in parts:
                part = _unwrapped(getattr(part, "__func__", getattr(part, "func", part)))
                if isinstance(part, types.FunctionType):
                    yield part
    elif isinstance(value, types.FunctionType):
        yield value


def _codes(value: Any) -> Iterator[types.CodeType]:
    left = [each.__code__ for each in _functions(value)]
    while left:
        code = left.pop()
        yield code
        left += [each for each in code.co_consts if isinstance(each, types.CodeType)]


def _names_used(value: Any) -> set[str]:
    found = {name for code in _codes(value) for name in code.co_names}
    if isinstance(value, type):
        found |= {each.__name__ for each in value.__bases__}
    return found


def _reached(value: Any, space: dict[str, Any]) -> set[str]:
    """Return the names that a definition uses, also through others of its module."""
    found: set[str] = set()
    left = [value]
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
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return []
    target: Any = vars(function).get("__init__") if isinstance(function, type) else function
    try:
        hints = typing.get_type_hints(target)
    except Exception:  # a name is only there for type checkers
        hints = {}
        for name, each in getattr(target, "__annotations__", {}).items():
            with contextlib.suppress(Exception):
                hints[name] = eval(each, target.__globals__) if isinstance(each, str) else each
    rows = []
    values = list(signature.parameters.values())
    if not isinstance(function, type) and isinstance(owner, type) and values[:1] and values[0].name in ("self", "cls"):  # fmt: skip
        values = values[1:]
    for each in values:
        private = each.name.startswith("_") and each.default is not each.empty
        if each.kind is each.VAR_KEYWORD or private:
            continue
        hint = hints.get(each.name, each.empty)
        star, keyword = each.kind is each.VAR_POSITIONAL, each.kind is each.KEYWORD_ONLY
        way = "star" if star else "keyword" if keyword else "place"
        default = (
            [] if each.default is each.empty or not _is_plain(each.default) else [each.default]
        )
        kinds = (
            [] if hint is each.empty else [kind for kind in [_kind(hint)] if kind != ("unknown",)]
        )
        rows.append({
            "name": each.name, "way": way, "kinds": kinds,
            "optional": way == "star" or each.default is not each.empty, "default": default,
        })  # fmt: skip
    return rows


def _kind(hint: Any) -> Kind:
    """Return a type hint as data: which values it allows."""
    origin, inside = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin is typing.Annotated:
        return _kind(inside[0])
    if hint in (None, type(None)):
        return ("none",)
    if hint in _PLAIN:
        return (hint.__name__,)
    if origin in (typing.Union, types.UnionType):
        return ("union", *(_kind(each) for each in inside))
    if origin is typing.Literal:
        return ("literal", *(each for each in inside if _is_plain(each)))
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
    if getattr(hint, "__name__", "") in _NAMED:
        return (hint.__name__,)
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
        for name, value in vars(base).items():
            wanted = not name.startswith("_") or (name in _OPERATORS and base in own) or name == "__getitem__" or name == "__setitem__"  # fmt: skip
            if wanted and callable(getattr(kind, name, None)) and not isinstance(value, type):
                yield name, getattr(kind, name)


def _sets(method: Any) -> bool:
    """Whether a method seems to change its object."""
    codes = list(_codes(_unwrapped(method)))
    stores = {"STORE_ATTR", "STORE_SUBSCR", "DELETE_SUBSCR"}
    return any(
        each.opname in stores or (each.argval in _MUTATORS and each.opname.startswith("LOAD_"))
        for code in codes
        for each in dis.get_instructions(code)
        if isinstance(each.argval, (str, type(None)))
    )


def _attributes(value: Any) -> list[str]:
    """Return the public attributes that a class stores, annotates or computes, and ``len()`` if it has a length."""
    if not isinstance(value, type) or issubclass(value, enum.Enum):
        return []
    found = {
        each.argval
        for code in _codes(value)
        for each in dis.get_instructions(code)
        if each.opname == "STORE_ATTR"
    }
    for base in value.__mro__[:-1]:
        found |= set(inspect.get_annotations(base))
        found |= {name for name, each in vars(base).items() if isinstance(each, (property, functools.cached_property))}  # fmt: skip
    found = {
        name
        for name in found
        if not name.startswith("_") and not callable(getattr(value, name, None))
    }
    return [*sorted(found), *(["len()"] if hasattr(value, "__len__") else [])]


def _signature_text(value: Any, name: str) -> str:
    kind = "class" if isinstance(value, type) else "def"
    try:
        text = str(inspect.signature(value))
    except (ValueError, TypeError):
        text = "(...)"
    return f"{kind} {name}{text}:"


# Words and numbers


def _hints(value: Any, used: set[str], space: dict[str, Any]) -> tuple[list[str], list[Any]]:
    """Return words and numbers in the code, in messages, and in constants of the module that it uses."""
    found: list[Any] = []
    reached = [value, *(_unwrapped(space[name]) for name in sorted(used) if name in space)]
    for each in reached:
        docs = {function.__doc__ for function in _functions(each)} | {getattr(each, "__doc__", "")}
        for code in _codes(each):
            found += [
                part for const in code.co_consts if const not in docs for part in _parts(const)
            ]
    for each in reached:
        found += _parts(each)
        if isinstance(each, dict):
            keys = [key for key in each if isinstance(key, str)]
            pairs = zip(keys[1::3], keys[::-3], strict=False)
            found += [f"{one} {other}" for one, other in list(pairs)[:3]]
    words, numbers = [], []
    for each in found:
        if isinstance(each, str) and each:
            quoted = [text for some in _QUOTED.findall(each) for text in some if text]
            words += [
                *quoted,
                *([each] if len(each) <= 30 and "%" not in each and "{" not in each else []),
            ]
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


def _recorded(value: Any, name: str, module: str, docs: list[str]) -> list[Any]:
    """Run the examples of docstrings and return what they call."""
    found: list[Any] = []
    if any(">>>" in each for each in docs):
        space = vars(sys.modules[module])
        before, space[name] = space[name], _recorder(value, found)
        runner = doctest.DocTestRunner(verbose=False)
        for text in docs:
            with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
                test = doctest.DocTestParser().get_doctest(text, dict(space), name, None, 0)
                runner.run(test, out=lambda _: None)
        space[name] = before
    return [each for each in found if _is_plain(each)]


def _recorder(value: Any, found: list[Any]) -> Any:
    """Return something that behaves as the value and notes how it is called."""
    if not isinstance(value, type):

        @functools.wraps(value)
        def called(*args: Any, **words: Any) -> Any:
            found.append((copy.deepcopy([*args]), copy.deepcopy(words), []))
            return value(*args, **words)

        return called
    rows: dict[int, Any] = {}

    def noted(key: str) -> Callable[..., Any]:
        def method(self: Any, *args: Any, **words: Any) -> Any:
            if id(self) in rows:
                rows[id(self)][2].append((key, copy.deepcopy([*args]), copy.deepcopy(words)))
            return getattr(super(kind, self), key)(*args, **words)

        return method

    def init(self: Any, *args: Any, **words: Any) -> None:
        row: Any = (copy.deepcopy([*args]), copy.deepcopy(words), [])
        rows[id(self)] = row
        found.append(row)
        super(kind, self).__init__(*args, **words)

    try:
        kind: Any = type(value.__name__, (value,), {"__init__": init, **{
            key: noted(key) for key, _ in _methods(value) if isinstance(vars(value).get(key), types.FunctionType)
        }})  # fmt: skip
    except TypeError:
        return value
    return kind


def called_in(text: str, name: str) -> list[Any]:
    """Return the calls of a name with literal arguments in any text."""
    found: list[Any] = []
    for match in list(re.finditer(rf"(?<![\w]){re.escape(name)}\(", text))[:100]:
        for end in [
            each.end() for each in re.finditer(r"\)", text[match.start() : match.start() + 300])
        ][:4]:
            try:
                call: Any = ast.parse(
                    text[match.start() : match.start() + end].strip(), mode="eval"
                ).body
                args = [ast.literal_eval(each) for each in call.args]
                words = {
                    each.arg: ast.literal_eval(each.value) for each in call.keywords if each.arg
                }
            except Exception:  # no call, or arguments that are no literals
                continue
            if _is_plain((args, words)):
                found.append((args, words, []))
            break
    return found


def _is_plain(value: Any, depth: int = 0) -> bool:
    if isinstance(value, (list, tuple, set, frozenset)) and type(value).__module__ == "builtins":
        return depth < 8 and all(_is_plain(each, depth + 1) for each in value)
    if type(value) is dict:
        return depth < 8 and all(
            _is_plain(one, depth + 1) and _is_plain(other, depth + 1)
            for one, other in value.items()
        )
    return value is None or type(value) in _PLAIN
