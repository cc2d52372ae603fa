"""Loads a module, calls what it defines, and says what came of it. Its text stands in every program of the sandbox.

It has a namespace of its own there, so that it does not matter which names the program uses. What a call gave
is a pair, which is plain data whatever the program returned:

| form | content | what was returned |
|---|---|---|
| value | the value | plain data |
| items | a list | an iterator that ended |
| first | a list of `MANY` items | an iterator that went on |
| repr | its text | something else, whose text says what it is |
| type | name of its class | something else |
| self | None | the object whose method it was |
| raises | name of the exception, its message | nothing |
| breaks | the same | an iterator that raised |
"""

from __future__ import annotations
import __future__

import asyncio
import builtins
import contextlib
import copy
import importlib
import inspect
import io
import itertools
import operator
import re
import sys
from collections.abc import Callable
from typing import Any

MANY = 20
Result = tuple[str, Any]

_ATOMS = (bool, int, float, str, bytes, type(None))
_DIGITS = 4300  # Python writes no longer integers where the tests will run; the sandbox does
_BITS = 14_000  # Of integers with no more digits
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_DEPTH = 20
_HEARD = 2000  # Bytes of what is printed
OPERATORS = {
    "__getitem__": "{0}[{1}]", "__setitem__": "{0}[{1}] = {2}", "__delitem__": "del {0}[{1}]",
    "__contains__": "({1} in {0})", "__iter__": "iter({0})", "__next__": "next({0})",
    "__reversed__": "reversed({0})", "__str__": "str({0})", "__repr__": "repr({0})",
    "__bool__": "bool({0})", "__int__": "int({0})", "__float__": "float({0})",
}  # fmt: skip
"""How methods are called that nobody calls by their names: in `operator`, or a built-in function."""


def load(module: str, path: str, text: str, name: str) -> dict[str, Any]:
    """Return the names of a module; if a text defines one anew, it does so wherever its package has it."""
    space = vars(importlib.import_module(module))
    if text:
        before = space.get(name, load)
        derived: list[Any] = type.__subclasses__(before) if isinstance(before, type) else []
        # As the file does: what it has from __future__ decides whether annotations are evaluated.
        features = [each for each in space.values() if isinstance(each, __future__._Feature)]
        flags = sum({each.compiler_flag for each in features})
        exec(compile(text, path, "exec", flags, dont_inherit=True), space)
        top = module.partition(".")[0]
        for key, other in list(sys.modules.items()):
            if key.partition(".")[0] == top:
                for each in [each for each, value in vars(other).items() if value is before]:
                    vars(other)[each] = space[name]
        for child in derived:
            with contextlib.suppress(TypeError):  # a fault has given it other slots
                bases = (space[name] if base is before else base for base in child.__bases__)
                child.__bases__ = tuple(bases)
    return {
        key: value
        for key, value in space.items()
        if not (key.startswith("__") and key.endswith("__")) and not key.startswith("_codea1")
    }


def observe(
    target: Callable[..., Any],
    arguments: list[Any],
    keywords: dict[str, Any],
    steps: list[tuple[str, list[Any], dict[str, Any]]],
    attributes: list[str],
) -> dict[str, Any]:
    """Call a function; or make an object, call its methods, and look at it.

    Returns:
        ``results``: of the call, or of each step; or of the making of an object, if it failed.
        ``made``: whether it did not.
        ``after``: the arguments that a function has changed, by position or name, with their new values.
        ``attributes``: name -> value, of those that are plain data.
        ``printed``: the first bytes that it printed.

    Example:
        >>> observe(list.sort, [[2, 1]], {}, [], [])
        {'made': True, 'results': [('value', None)], 'after': {0: [1, 2]}, 'attributes': {}, 'printed': b''}
    """
    sys.set_int_max_str_digits(_DIGITS)
    written = io.BytesIO()
    out = io.TextIOWrapper(written, "utf-8", "backslashreplace", write_through=True)
    with contextlib.redirect_stdout(out):
        found = _observe(target, arguments, keywords, steps, attributes)
    return {**found, "printed": written.getvalue()[:_HEARD]}


def _observe(
    target: Any, arguments: list[Any], keywords: dict[str, Any], steps: list[Any], attributes: list[str]
) -> dict[str, Any]:  # fmt: skip
    given: dict[Any, Any] = {**dict(enumerate(arguments)), **keywords}
    before = copy.deepcopy(given)
    try:
        made = target(*arguments, **keywords)
        if inspect.iscoroutine(made):
            made = asyncio.run(made)
    except Exception as error:
        after = _changed(before, given)
        return {"made": False, "results": [_raised(error)], "after": after, "attributes": {}}
    # What cannot be shown is not what the program raises: then there is no answer.
    results = [_shown(made)] if not inspect.isclass(target) else []
    for name, values, words in steps:
        try:
            if name in OPERATORS:
                by_operator = vars(operator).get(name) or getattr(builtins, name.strip("_"))
                returned = by_operator(made, *values)
            else:
                returned = getattr(made, name)(*values, **words)
            if inspect.iscoroutine(returned):
                returned = asyncio.run(returned)
        except Exception as error:
            results.append(_raised(error))
        else:
            results.append(("self", None) if returned is made else _shown(returned))
    seen = {name: _attribute(made, name) for name in attributes}
    return {
        "made": True,
        "results": results,
        "after": _changed(before, given) if not attributes and not steps else {},
        "attributes": {name: value[0] for name, value in seen.items() if value},
    }


def _shown(value: Any) -> Result:
    if is_plain(value):
        return "value", value
    if hasattr(value, "__next__"):
        try:
            items = list(itertools.islice(value, MANY))
        except Exception as error:
            return "breaks", _raised(error)[1]
        if is_plain(items):
            return ("first" if len(items) == MANY else "items"), items
        return "type", type(value).__name__
    text = repr(value)
    return ("type", type(value).__name__) if ADDRESS.search(text) else ("repr", text)


def _raised(error: Exception) -> Result:
    return "raises", (type(error).__name__, str(error))


def _changed(before: dict[Any, Any], after: dict[Any, Any]) -> dict[Any, Any]:
    return {
        name: value
        for name, value in after.items()
        if is_plain(value) and repr(value) != repr(before[name])
    }


def _attribute(made: Any, name: str) -> list[Any]:
    try:
        value = len(made) if name == "len()" else getattr(made, name)
    except Exception:
        return []
    return [copy.deepcopy(value)] if is_plain(value) else []


def is_plain(value: Any, depth: int = 0) -> bool:
    """Whether a value is plain data that has a literal: exact types, equal to itself, no endless integers.

    A result without a text, such as a list with an integer of 10,000 digits, is none: `observe` raises then.

    Example:
        >>> is_plain([1, {"a": (None, 2.5)}]), is_plain(float("nan")), is_plain(range(3))
        (True, False, False)
    """
    kind = type(value)
    if kind is int:
        return bool(value.bit_length() <= _BITS)
    if kind in _ATOMS:
        return bool(value == value)
    if kind not in (dict, list, tuple, set, frozenset) or depth == _DEPTH:
        return False
    parts = itertools.chain(value.keys(), value.values()) if kind is dict else value
    return all(is_plain(part, depth + 1) for part in parts)
