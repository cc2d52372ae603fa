"""Literals: expressions that are plain data. The one place where they are read and written.

What is read is what people write in tests: constants, containers, signs, arithmetic (`[0] * 3`, `10**6`,
`"a" + "b"`), comparisons, `set()`, `float("inf")`, `math.inf`, `list(range(5))`, items of literals (`case["n"]`),
and names that are bound to such values. Nothing is run, and everything is bounded before it is computed.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from typing import Any

from .literal_texts import MAX_SOURCE, write
from .literal_values import (
    ATOMS,
    COMPARISONS,
    COPIERS,
    MAX_BITS,
    MAX_ITEMS,
    NUMBERS,
    SEQUENCES,
    SET_OPERATORS,
    SETS,
    UNKNOWN,
    LiteralMeter,
    NotLiteralError,
    arithmetic,
    copied,
    hashable,
    repeated,
    weight,
)

__all__ = [
    "MAX_BITS",
    "MAX_ITEMS",
    "MAX_SOURCE",
    "UNKNOWN",
    "LiteralMeter",
    "NotLiteralError",
    "read",
    "read_items",
    "write",
]

_MODULES = frozenset({"cmath", "math", "np", "numpy"})
_CONSTANTS = {name: getattr(math, name) for name in ("inf", "nan", "pi", "e", "tau")}
_CONSTANTS |= {"NaN": math.nan, "Inf": math.inf, "infty": math.inf}


def read(
    node: ast.expr, names: Mapping[str, Any] | None = None, meter: LiteralMeter | None = None
) -> Any:
    """The value of an expression that is plain data. Each place in it is an object of its own.

    Args:
        node: Any expression.
        names: What names stand for: plain data or `UNKNOWN`. Attributes of names go by "self.items".
        meter: What may be computed, and how exactly. By default `MAX_ITEMS` for this expression.

    Raises:
        NotLiteralError: It is something else, or too large.

    Example:
        >>> read(ast.parse("[[0] * 2] * n + [-1, float('inf')]", mode="eval").body, {"n": 2})
        [[0, 0], [0, 0], -1, inf]
    """
    if type(node) is ast.Constant and node.value is not Ellipsis:
        return node.value
    try:
        return _read(node, _NOTHING if names is None else names, meter or LiteralMeter())
    except RecursionError:
        raise NotLiteralError("nested too deep") from None


def read_items(
    node: ast.expr, names: Mapping[str, Any] | None = None, meter: LiteralMeter | None = None
) -> list[Any]:
    """The items of an expression that can be iterated over: a literal, a range, `zip` of such, `d.items()`, ...

    Those of a set come in an order of their texts.

    Raises:
        NotLiteralError: It is something else, or too large.

    Example:
        >>> read_items(ast.parse("zip('ab', range(5))", mode="eval").body)
        [('a', 0), ('b', 1)]
    """
    try:
        return _items(node, _NOTHING if names is None else names, meter or LiteralMeter(), _always)
    except RecursionError:
        raise NotLiteralError("nested too deep") from None


_NOTHING: Mapping[str, Any] = {}


def _read(node: ast.expr, names: Mapping[str, Any], meter: LiteralMeter) -> Any:
    meter.work(1)
    kind = type(node)
    if kind is ast.Constant:
        value = node.value  # type: ignore[attr-defined]
        if value is Ellipsis:
            raise NotLiteralError("... is no plain data")
        return value
    reader = _READERS.get(kind)
    if reader is None:
        raise NotLiteralError(f"{_shown(node)} is no literal")
    return reader(node, names, meter)


def _shown(node: ast.expr) -> str:
    """What an expression is, for a message."""
    name = node.func if isinstance(node, ast.Call) else node
    if isinstance(name, ast.Name):
        return f"{name.id}(...)" if isinstance(node, ast.Call) else name.id
    if isinstance(name, ast.Attribute):
        return f"(...).{name.attr}(...)" if isinstance(node, ast.Call) else f"(...).{name.attr}"
    return f"an expression ({type(node).__name__})"


def _elements(nodes: list[ast.expr], names: Mapping[str, Any], meter: LiteralMeter) -> list[Any]:
    meter.spend(len(nodes))
    values = []
    for node in nodes:
        if type(node) is ast.Constant and node.value is not Ellipsis:
            values.append(node.value)
        elif type(node) is ast.Starred:
            values += _items(node.value, names, meter)
        else:
            values.append(_read(node, names, meter))
    return values


def _list(node: Any, names: Mapping[str, Any], meter: LiteralMeter) -> list[Any]:
    return _elements(node.elts, names, meter)


def _tuple(node: Any, names: Mapping[str, Any], meter: LiteralMeter) -> tuple[Any, ...]:
    return tuple(_elements(node.elts, names, meter))


def _set(node: Any, names: Mapping[str, Any], meter: LiteralMeter) -> set[Any]:
    return set(hashable(_elements(node.elts, names, meter)))


def _dict(node: Any, names: Mapping[str, Any], meter: LiteralMeter) -> dict[Any, Any]:
    meter.spend(len(node.values))
    pairs: list[tuple[Any, Any]] = []
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            inner = _read(value, names, meter)
            if type(inner) is not dict:
                raise NotLiteralError("** needs a dict")
            pairs += inner.items()
        else:
            pairs.append((_read(key, names, meter), _read(value, names, meter)))
    hashable([key for key, _ in pairs])
    return dict(pairs)


def _name(node: Any, names: Mapping[str, Any], meter: LiteralMeter) -> Any:
    return _named(node.id, names, meter)


def _named(name: str, names: Mapping[str, Any], meter: LiteralMeter) -> Any:
    if name not in names:
        raise NotLiteralError(f"the value of {name} is not known")
    return copied(_bound(name, names), meter)


def _bound(name: str, names: Mapping[str, Any]) -> Any:
    value = names[name]
    if type(value) not in COPIERS and type(value) not in ATOMS:
        raise NotLiteralError(f"the value of {name} is not known")
    return value


def _attribute(node: Any, names: Mapping[str, Any], meter: LiteralMeter) -> Any:
    if type(node.value) is ast.Name:
        module = node.value.id
        meter.work((len(module) + len(node.attr)) // 100)  # a long name is looked up as well
        if f"{module}.{node.attr}" in names:
            return _named(f"{module}.{node.attr}", names, meter)
        known = module in _MODULES and node.attr in _CONSTANTS and not meter.exact
        if known and not _hidden(module, names):
            return _CONSTANTS[node.attr]
    raise NotLiteralError(f"the value of {_shown(node)} is not known")


def _hidden(name: str, names: Mapping[str, Any]) -> bool:
    """Whether a builtin or module is not what its name says. An import leaves it `UNKNOWN`, which is no harm."""
    return name in names and names[name] is not UNKNOWN


def _subscript(node: Any, names: Mapping[str, Any], meter: LiteralMeter) -> Any:
    if type(node.value) is ast.Name and node.value.id in names:
        base = _bound(node.value.id, names)  # not copied: only an item of it is wanted
    else:
        base = _read(node.value, names, meter)
    try:
        if type(node.slice) is ast.Slice:
            if type(base) not in SEQUENCES:
                raise NotLiteralError("a slice of something else than a sequence")
            ends = (node.slice.lower, node.slice.upper, node.slice.step)
            bounds = [None if end is None else _read(end, names, meter) for end in ends]
            meter.spend(len(base))
            return copied(base[slice(*bounds)], meter)
        key = _read(node.slice, names, meter)
        if type(base) not in (*SEQUENCES, dict):
            raise NotLiteralError("an item of something else than a sequence or dict")
        return copied(base[key], meter)
    except (LookupError, TypeError, ValueError):
        raise NotLiteralError("an item that is not there") from None


# Arithmetic


def _unary(node: Any, names: Mapping[str, Any], meter: LiteralMeter) -> Any:
    kind, operand = type(node.op), node.operand
    value: Any = (
        operand.value
        if type(operand) is ast.Constant and type(operand.value) in (int, float)
        else _read(operand, names, meter)
    )
    if kind is ast.Not:
        return not value
    if type(value) not in NUMBERS or (kind is ast.Invert and type(value) not in (int, bool)):
        raise NotLiteralError("a sign before something else than a number")
    if kind is ast.USub:
        return -value
    return +value if kind is ast.UAdd else ~int(value)


def _binary(node: Any, names: Mapping[str, Any], meter: LiteralMeter) -> Any:
    left, right = _read(node.left, names, meter), _read(node.right, names, meter)
    kind = type(node.op)
    if kind is ast.Mult and type(left) in SEQUENCES and type(right) in (int, bool):
        return repeated(left, right, meter)
    if kind is ast.Mult and type(right) in SEQUENCES and type(left) in (int, bool):
        return repeated(right, left, meter)
    if kind is ast.Add and type(left) is type(right) and type(left) in SEQUENCES:
        meter.spend(len(left) + len(right))
        return left + right
    if kind in SET_OPERATORS and type(left) in SETS and type(right) in SETS:
        meter.spend(len(left) + len(right))
        return SET_OPERATORS[kind](left, right)
    if kind is ast.BitOr and type(left) is dict and type(right) is dict:
        meter.spend(len(left) + len(right))
        return left | right
    if type(left) not in NUMBERS or type(right) not in NUMBERS:
        raise NotLiteralError("arithmetic of something else than numbers")
    return arithmetic(kind, left, right)


def _compare(node: Any, names: Mapping[str, Any], meter: LiteralMeter) -> bool:
    left = _read(node.left, names, meter)
    for kind, other in zip(map(type, node.ops), node.comparators, strict=True):
        right = _read(other, names, meter)
        identity = kind in (ast.Is, ast.IsNot)
        if kind not in COMPARISONS or (identity and not (_is_single(left) and _is_single(right))):
            raise NotLiteralError("a comparison that is no literal")
        meter.work(weight(left) + weight(right))
        try:
            holds = COMPARISONS[kind](left, right)
        except (TypeError, ValueError):  # -1 in b"x"
            raise NotLiteralError("a comparison that fails") from None
        if not holds:
            return False
        left = right
    return True


def _is_single(value: Any) -> bool:
    return value is None or type(value) is bool


def _boolean(node: Any, names: Mapping[str, Any], meter: LiteralMeter) -> Any:
    stops_at = type(node.op) is ast.Or
    value = None
    for part in node.values:
        value = _read(part, names, meter)
        if bool(value) is stops_at:
            break
    return value


def _conditional(node: Any, names: Mapping[str, Any], meter: LiteralMeter) -> Any:
    return _read(node.body if _read(node.test, names, meter) else node.orelse, names, meter)


# Calls of builtins


def _call(node: Any, names: Mapping[str, Any], meter: LiteralMeter) -> Any:
    name = node.func.id if type(node.func) is ast.Name else None
    if name is None or name not in _CALLS or name in names:
        raise NotLiteralError(f"{_shown(node)} is a call")
    meter.work(len(node.args) + len(node.keywords))
    if name == "dict":
        return _dict_call(node, names, meter)
    if node.keywords or any(type(argument) is ast.Starred for argument in node.args):
        raise NotLiteralError(f"{name}(...) with such arguments is a call")
    arguments = node.args
    if name in _CONTAINERS:
        if len(arguments) > 1:
            raise NotLiteralError(f"{name}(...) takes one argument")
        values = (
            _items(arguments[0], names, meter, _always if "set" in name else _never)
            if arguments
            else []
        )
        return _CONTAINERS[name](hashable(values) if name in ("set", "frozenset") else values)
    if name in _AGGREGATES:
        if len(arguments) != 1:
            raise NotLiteralError(f"{name}(...) with such arguments is a call")
        unordered = _always if name == "len" else _is_total
        return _aggregate(name, _items(arguments[0], names, meter, unordered), meter)
    return _number_call(name, [_read(argument, names, meter) for argument in arguments])


def _dict_call(node: Any, names: Mapping[str, Any], meter: LiteralMeter) -> dict[Any, Any]:
    if len(node.args) > 1 or any(keyword.arg is None for keyword in node.keywords):
        raise NotLiteralError("dict(...) with such arguments is a call")
    pairs: list[Any] = []
    if node.args:
        given = node.args[0]
        is_pairs = type(given) in (ast.List, ast.Tuple, ast.Call)
        value = _items(given, names, meter) if is_pairs else _read(given, names, meter)
        pairs = list(value.items()) if type(value) is dict else value
        if type(pairs) is not list or any(
            type(pair) not in (list, tuple) or len(pair) != 2 for pair in pairs
        ):
            raise NotLiteralError("dict(...) needs pairs")
    meter.spend(len(node.keywords))
    pairs += [(keyword.arg, _read(keyword.value, names, meter)) for keyword in node.keywords]
    hashable([key for key, _ in pairs])
    return dict(pairs)


def _aggregate(name: str, values: list[Any], meter: LiteralMeter) -> Any:
    if name == "len":
        return len(values)
    if name == "sum":
        if any(type(value) not in NUMBERS for value in values):
            raise NotLiteralError("sum(...) of something else than numbers")
        return _sum(values)
    meter.spend(len(values))
    meter.work(weight(values))
    try:
        return _AGGREGATES[name](values)
    except (TypeError, ValueError, RecursionError):
        raise NotLiteralError(f"{name}(...) fails") from None


def _sum(values: list[Any]) -> Any:
    if any(type(value) is int and value.bit_length() > MAX_BITS for value in values):
        raise NotLiteralError(f"too large: an integer of more than {MAX_BITS} bits")
    try:
        return sum(values)  # not one after the other: newer Pythons add floats with care
    except ArithmeticError:
        raise NotLiteralError("sum(...) fails") from None


def _number_call(name: str, arguments: list[Any]) -> Any:
    kinds = [type(argument) for argument in arguments]
    try:
        if name == "float" and len(kinds) <= 1:
            if not kinds:
                return 0.0
            if kinds[0] is str and len(arguments[0]) < 100:
                return float(arguments[0])
            if kinds[0] in (int, float, bool):
                return float(arguments[0])
        if name == "complex" and len(kinds) <= 2 and all(kind in NUMBERS for kind in kinds):
            return complex(*arguments)
        if name == "abs" and len(kinds) == 1 and kinds[0] in NUMBERS:
            return abs(arguments[0])
    except (ArithmeticError, TypeError, ValueError):
        raise NotLiteralError(f"{name}(...) fails") from None
    raise NotLiteralError(f"{name}(...) with such arguments is a call")


_CONTAINERS: dict[str, Callable[[list[Any]], Any]] = {
    "list": lambda values: values, "tuple": tuple, "set": set, "frozenset": frozenset,
}  # fmt: skip
_AGGREGATES: dict[str, Callable[[list[Any]], Any]] = {
    "len": len, "max": max, "min": min, "sorted": sorted, "sum": sum,
}  # fmt: skip
_CALLS = {*_CONTAINERS, *_AGGREGATES, "dict", "float", "complex", "abs"}
_READERS: dict[type, Callable[[Any, Mapping[str, Any], LiteralMeter], Any]] = {
    ast.List: _list, ast.Tuple: _tuple, ast.Set: _set, ast.Dict: _dict, ast.Name: _name,
    ast.Attribute: _attribute, ast.Subscript: _subscript, ast.UnaryOp: _unary, ast.BinOp: _binary,
    ast.Call: _call, ast.Compare: _compare, ast.BoolOp: _boolean, ast.IfExp: _conditional,
}  # fmt: skip


# What can be iterated over


def _never(values: Any) -> bool:
    return False


def _always(values: Any) -> bool:
    return True


def _is_total(values: Any) -> bool:
    """Whether it makes no difference in which order a set's items are sorted, compared or added."""
    return {*map(type, values)} in ({int}, {str})


def _items(
    node: ast.expr,
    names: Mapping[str, Any],
    meter: LiteralMeter,
    unordered: Callable[[Any], bool] = _never,
) -> list[Any]:
    """The items of what can be iterated over; of a set (its order depends on hashes) only where it may be `unordered`."""
    if isinstance(node, ast.Call) and (
        not node.keywords or [each.arg for each in node.keywords] == ["start"]
    ):
        function = node.func
        if isinstance(function, ast.Name) and function.id not in names:
            if function.id == "enumerate" and len(node.args) + len(node.keywords) == 2:
                return _enumerated(node, names, meter)
            if function.id == "range" and not node.keywords:
                return _range([_read(each, names, meter) for each in node.args], meter)
            if function.id in ("zip", "enumerate", "reversed") and node.args and not node.keywords:
                # Never of a Starred: `_items` does not read one.
                columns = [_items(each, names, meter) for each in node.args]
                meter.spend(max(map(len, columns)))
                if function.id == "zip":
                    return list(zip(*columns, strict=False))
                if len(columns) == 1:
                    return list(
                        enumerate(columns[0]) if function.id == "enumerate" else columns[0][::-1]
                    )
        if (
            isinstance(function, ast.Attribute)
            and function.attr in ("items", "keys", "values")
            and not node.args
            and not node.keywords
        ):
            base = _read(function.value, names, meter)
            if type(base) is dict:
                return list(getattr(base, function.attr)())
    value = _read(node, names, meter)
    if type(value) in SETS:
        if len(value) > 1 and not unordered(value):
            raise NotLiteralError("the order of a set")
        meter.work(weight(value))
        return sorted(value, key=lambda item: write(item) or "")
    if type(value) not in (*SEQUENCES, dict):
        raise NotLiteralError(f"{_shown(node)} cannot be iterated over")
    meter.spend(len(value))
    return list(value)


def _enumerated(node: ast.Call, names: Mapping[str, Any], meter: LiteralMeter) -> list[Any]:
    """`enumerate(items, 1)`."""
    first = _read(node.keywords[0].value if node.keywords else node.args[1], names, meter)
    if not node.args or type(first) is not int or first.bit_length() > MAX_BITS:
        raise NotLiteralError("enumerate(...) with such arguments is a call")
    items = _items(node.args[0], names, meter)
    meter.spend(len(items))
    return list(enumerate(items, first))


def _range(ends: list[Any], meter: LiteralMeter) -> list[int]:
    if not 1 <= len(ends) <= 3 or any(type(end) is not int for end in ends) or ends[2:] == [0]:
        raise NotLiteralError("range(...) with such arguments is a call")
    numbers = range(*ends)
    if numbers and (numbers[-1] - numbers[0]) // numbers.step >= MAX_ITEMS:  # len() may overflow
        raise NotLiteralError("too large: it has too many items")
    meter.spend(len(numbers))
    return list(numbers)
