"""Literals: expressions that are plain data. The one place where they are read and written.

What is read is what people write in tests: constants, containers, signs, arithmetic (`[0] * 3`, `10**6`,
`"a" + "b"`), texts (`str(3)`, `" ".join(map(str, items))`, f-strings), comparisons, `set()`, `float("inf")`, `math.inf`, `list(range(5))`, comprehensions, items of literals
(`case["n"]`, `case.get("n")`, `"a b".split()`), and names that are bound to such values. Nothing is run, and everything is bounded before it is computed.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from . import plain
from .plain import LIBRARY, MAX_SOURCE, UNKNOWN, LiteralMeter, NotLiteralError, write

__all__ = [
    "LIBRARY", "MAX_SOURCE", "UNKNOWN", "LiteralMeter", "NotLiteralError", "read", "read_items", "rounds", "write",
]  # fmt: skip

_MODULES = frozenset({"cmath", "math", "np", "numpy"})
_CONSTANTS = {name: getattr(math, name) for name in ("inf", "nan", "pi", "e", "tau")}
_CONSTANTS |= {"NaN": math.nan, "Inf": math.inf, "infty": math.inf}


def read(
    node: ast.expr, names: Mapping[str, Any] | None = None, meter: LiteralMeter | None = None
) -> Any:
    """Return the value of an expression that is plain data. Containers that it shares with names it shares as in Python.

    Raises:
        NotLiteralError: It is something else, or too large.

    Example:
        >>> read(ast.parse("[[0] * 2] * n + [-1, float('inf')]", mode="eval").body, {"n": 2})
        [[0, 0], [0, 0], -1, inf]
    """
    if type(node) is ast.Constant and node.value is not Ellipsis:
        return node.value
    try:
        return _Reader(names or {}, meter or LiteralMeter()).value(node)
    except RecursionError:
        raise NotLiteralError("nested too deep") from None


def read_items(
    node: ast.expr, names: Mapping[str, Any] | None = None, meter: LiteralMeter | None = None
) -> list[Any]:
    """Return the items of an expression that can be iterated over: a literal, a range, `zip` of such, `d.items()`, ...

    Those of a set come in an order of their texts.

    Example:
        >>> read_items(ast.parse("zip('ab', range(5))", mode="eval").body)
        [('a', 0), ('b', 1)]
    """
    try:
        return _Reader(names or {}, meter or LiteralMeter()).items(node, _always)
    except RecursionError:
        raise NotLiteralError("nested too deep") from None


def rounds(
    generators: list[ast.comprehension], names: Mapping[str, Any], meter: LiteralMeter
) -> Iterator[Mapping[str, Any]]:
    """Yield what names stand for in each round of a comprehension; the mapping is the same one, changed."""
    for reader in _Reader(names, meter).rounds(generators):
        yield reader.names


def _never(values: Any) -> bool:
    return False


def _always(values: Any) -> bool:
    return True


def _is_total(values: Any) -> bool:
    """Whether it makes no difference in which order a set's items are sorted, compared or added."""
    return {*map(type, values)} in ({int}, {str})


class _Reader:
    """Reads expressions; see `read` for the arguments."""

    def __init__(self, names: Mapping[str, Any], meter: LiteralMeter) -> None:
        self.names = names
        self.meter = meter

    def value(self, node: ast.expr) -> Any:
        self.meter.work(1)
        kind = type(node)
        if kind is ast.Constant:
            value = node.value  # type: ignore[attr-defined]
            if value is Ellipsis:
                raise NotLiteralError("... is no plain data")
            return value
        reader = _READERS.get(kind)
        if reader is None:
            raise NotLiteralError(f"{_shown(node)} is no literal")
        return reader(self, node)

    def elements(self, nodes: list[ast.expr]) -> list[Any]:
        self.meter.spend(len(nodes))
        values = []
        for node in nodes:
            if type(node) is ast.Constant and node.value is not Ellipsis:
                values.append(node.value)
            elif type(node) is ast.Starred:
                values += self.items(node.value)
            else:
                values.append(self.value(node))
        return values

    def pairs(self, node: Any) -> dict[Any, Any]:
        self.meter.spend(len(node.values))
        pairs: list[tuple[Any, Any]] = []
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                inner = self.value(value)
                if type(inner) is not dict:
                    raise NotLiteralError("** needs a dict")
                pairs += inner.items()
            else:
                pairs.append((self.value(key), self.value(value)))
        return _dict_of(pairs)

    # Names

    def named(self, name: str) -> Any:
        if name not in self.names:
            raise NotLiteralError(f"the value of {name} is not known")
        return plain.paid(self.bound(name), self.meter)

    def bound(self, name: str) -> Any:
        value = self.names[name]
        if type(value) not in plain.CONTAINERS and type(value) not in plain.ATOMS:
            raise NotLiteralError(f"the value of {name} is not known")
        plain.check_unchanged(value, self.meter)
        return value

    def attribute(self, node: Any) -> Any:
        if type(node.value) is ast.Name:
            module = node.value.id
            # A long name is looked up as well.
            self.meter.work((len(module) + len(node.attr)) // 100)
            if f"{module}.{node.attr}" in self.names:
                return self.named(f"{module}.{node.attr}")
            known = module in _MODULES and node.attr in _CONSTANTS and not self.meter.exact
            if known and self.names.get(module, LIBRARY) is LIBRARY:
                return _CONSTANTS[node.attr]
        raise NotLiteralError(f"the value of {_shown(node)} is not known")

    def item(self, node: Any) -> Any:
        if type(node.value) is ast.Name and node.value.id in self.names:
            base = self.bound(node.value.id)  # not paid for: only an item of it is wanted
        else:
            base = self.value(node.value)
        try:
            if type(node.slice) is ast.Slice:
                if type(base) not in plain.SEQUENCES:
                    raise NotLiteralError("a slice of something else than a sequence")
                ends = (node.slice.lower, node.slice.upper, node.slice.step)
                bounds = [None if end is None else self.value(end) for end in ends]
                self.meter.spend(len(base))
                return plain.paid(base[slice(*bounds)], self.meter)
            key = self.value(node.slice)
            if type(base) not in (*plain.SEQUENCES, dict):
                raise NotLiteralError("an item of something else than a sequence or dict")
            return plain.paid(base[key], self.meter)
        except (LookupError, TypeError, ValueError):
            raise NotLiteralError("an item that is not there") from None

    # Arithmetic

    def unary(self, node: Any) -> Any:
        kind, operand = type(node.op), node.operand
        is_number = type(operand) is ast.Constant and type(operand.value) in (int, float)
        value = operand.value if is_number else self.value(operand)
        if kind is ast.Not:
            return not value
        inverts = kind is ast.Invert
        if type(value) not in plain.NUMBERS or (inverts and type(value) not in (int, bool)):
            raise NotLiteralError("a sign before something else than a number")
        if kind is ast.USub:
            return -value
        return ~int(value) if inverts else +value

    def binary(self, node: Any) -> Any:
        left, right = self.value(node.left), self.value(node.right)
        kind, kinds, meter = type(node.op), (type(left), type(right)), self.meter
        if kind is ast.Mult and kinds[0] in plain.SEQUENCES and kinds[1] in (int, bool):
            return plain.repeated(left, right, meter)
        if kind is ast.Mult and kinds[1] in plain.SEQUENCES and kinds[0] in (int, bool):
            return plain.repeated(right, left, meter)
        joins = kind is ast.Add and kinds[0] is kinds[1] and kinds[0] in plain.SEQUENCES
        unites = kind in plain.SET_OPERATORS and all(each in plain.SETS for each in kinds)
        if joins or unites or (kind is ast.BitOr and kinds == (dict, dict)):
            meter.spend(len(left) + len(right))
            return plain.OPERATORS[kind](left, right)
        if any(each not in plain.NUMBERS for each in kinds):
            raise NotLiteralError("arithmetic of something else than numbers")
        return plain.arithmetic(kind, left, right)

    def comparison(self, node: Any) -> bool:
        left = self.value(node.left)
        for kind, other in zip(map(type, node.ops), node.comparators, strict=True):
            right = self.value(other)
            by_identity = kind in (ast.Is, ast.IsNot)
            single = all(each is None or type(each) is bool for each in (left, right))
            if kind not in plain.COMPARISONS or (by_identity and not single):
                raise NotLiteralError("a comparison that is no literal")
            self.meter.work(plain.weight(left) + plain.weight(right))
            try:
                holds = plain.COMPARISONS[kind](left, right)
            except (TypeError, ValueError):  # -1 in b"x"
                raise NotLiteralError("a comparison that fails") from None
            if not holds:
                return False
            left = right
        return True

    def boolean(self, node: Any) -> Any:
        stops_at = type(node.op) is ast.Or
        value = None
        for part in node.values:
            value = self.value(part)
            if bool(value) is stops_at:
                break
        return value

    # Comprehensions

    def rounds(self, generators: list[ast.comprehension]) -> Iterator[_Reader]:
        if not self.meter.loops:
            raise NotLiteralError("a comprehension is no literal")
        first, *rest = generators
        self.meter.work(1 + len(self.names) // 8)
        inner = _Reader({**self.names}, self.meter)
        for item in self.items(first.iter):
            self.meter.work(1)
            _bind(first.target, item, inner.names)
            if all(inner.value(test) for test in first.ifs):
                if rest:
                    yield from inner.rounds(rest)
                else:
                    yield inner

    def comprehension(self, node: Any) -> list[Any]:
        values = []
        for inner in self.rounds(node.generators):
            self.meter.spend(1)
            values.append(inner.value(node.elt))
        return values

    def dict_comprehension(self, node: Any) -> dict[Any, Any]:
        pairs = []
        for inner in self.rounds(node.generators):
            self.meter.spend(1)
            pairs.append((inner.value(node.key), inner.value(node.value)))
        return _dict_of(pairs)

    # Calls of builtins

    def method(self, node: Any) -> Any:
        """Return what a method of plain data returns, such as `case.get("n")`; it changes nothing."""
        name = node.func.attr
        if name not in _METHODS or node.keywords or self.meter.exact:
            raise NotLiteralError(f"{_shown(node)} is a call")
        base = self.value(node.func.value)
        of = self.items if name == "join" else self.value
        arguments: list[Any] = [of(each) for each in node.args]
        if type(base) not in _METHODS[name]:
            raise NotLiteralError(f"{_shown(node)} is a call")
        if name == "join":
            self.meter.spend(len(base) * sum(map(len, arguments)))
        self.meter.work(plain.weight(base) + plain.weight(arguments))
        try:
            return plain.paid(getattr(base, name)(*arguments), self.meter)
        except (LookupError, TypeError, ValueError):
            raise NotLiteralError(f"{_shown(node)} fails") from None

    def call(self, node: Any) -> Any:
        if type(node.func) is ast.Attribute:
            return self.method(node)
        name = node.func.id if type(node.func) is ast.Name else None
        if name is None or name not in _CALLS or name in self.names:
            raise NotLiteralError(f"{_shown(node)} is a call")
        arguments = node.args
        self.meter.work(len(arguments) + len(node.keywords))
        if name == "dict":
            return self.dict_call(node)
        no_call = NotLiteralError(f"{name}(...) with such arguments is a call")
        if node.keywords or any(type(argument) is ast.Starred for argument in arguments):
            raise no_call
        if name in _CONTAINERS:
            if len(arguments) > 1:
                raise NotLiteralError(f"{name}(...) takes one argument")
            is_set = name in ("set", "frozenset")
            unordered = _always if is_set else _never
            values = self.items(arguments[0], unordered) if arguments else []
            return _CONTAINERS[name](plain.hashable(values) if is_set else values)
        if name in _AGGREGATES:
            if len(arguments) != 1:
                raise no_call
            return self.aggregate(
                name, self.items(arguments[0], _always if name == "len" else _is_total)
            )
        values = [self.value(argument) for argument in arguments]
        if name == "str" and len(values) < 2:
            return plain.printed(values[0], "", self.meter) if values else ""
        return _number_call(name, values)

    def formatted(self, node: Any) -> str:
        """Return an f-string, or a part of it."""
        if type(node) is ast.JoinedStr:
            return "".join([self.formatted(part) for part in node.values])
        if type(node) is ast.Constant:
            return str(node.value)
        form = self.formatted(node.format_spec) if node.format_spec else ""
        value = self.value(node.value)
        return plain.printed(value, form, self.meter, node.conversion)

    def dict_call(self, node: Any) -> dict[Any, Any]:
        if len(node.args) > 1 or any(keyword.arg is None for keyword in node.keywords):
            raise NotLiteralError("dict(...) with such arguments is a call")
        pairs: list[Any] = []
        if node.args:
            given = node.args[0]
            is_pairs = type(given) in (ast.List, ast.Tuple, ast.Call)
            value = self.items(given) if is_pairs else self.value(given)
            if type(value) not in (dict, list):
                raise NotLiteralError("dict(...) needs pairs")
            pairs = [*(value.items() if type(value) is dict else value)]
            if any(type(pair) not in (list, tuple) or len(pair) != 2 for pair in pairs):
                raise NotLiteralError("dict(...) needs pairs")
        self.meter.spend(len(node.keywords))
        pairs += [(keyword.arg, self.value(keyword.value)) for keyword in node.keywords]
        return _dict_of(pairs)

    def aggregate(self, name: str, values: list[Any]) -> Any:
        if name == "sum":
            if any(type(value) not in plain.NUMBERS for value in values):
                raise NotLiteralError("sum(...) of something else than numbers")
            plain.check_bits(values)
        elif name != "len":
            self.meter.spend(len(values))
            self.meter.work(plain.weight(values))
        try:
            return _AGGREGATES[name](values)  # also `sum`: newer Pythons add floats with care
        except (ArithmeticError, TypeError, ValueError, RecursionError):
            raise NotLiteralError(f"{name}(...) fails") from None

    # What can be iterated over

    def items(self, node: ast.expr, unordered: Callable[[Any], bool] = _never) -> list[Any]:
        """Return the items of what can be iterated over; of a set (its order depends on hashes) only where it may be `unordered`."""
        if type(node) is ast.GeneratorExp:
            return self.comprehension(node)
        found = self.called_items(node) if isinstance(node, ast.Call) else None
        if found is not None:
            return found
        value = self.value(node)
        if type(value) in plain.SETS:
            if len(value) > 1 and not unordered(value):
                raise NotLiteralError("the order of a set")
            self.meter.work(plain.weight(value))
            return sorted(value, key=lambda item: write(item) or "")
        if type(value) not in (*plain.SEQUENCES, dict):
            raise NotLiteralError(f"{_shown(node)} cannot be iterated over")
        self.meter.spend(len(value))
        return list(value)

    def called_items(self, node: ast.Call) -> list[Any] | None:
        """Return the items of `range(3)`, `zip(...)`, `enumerate(items, 1)`, `d.items()` and the like; None for other calls."""
        function, arguments, keywords = node.func, node.args, node.keywords
        if isinstance(function, ast.Attribute):
            if function.attr in ("items", "keys", "values") and not arguments and not keywords:
                base = self.value(function.value)
                if type(base) is dict:
                    return list(getattr(base, function.attr)())
            return None
        name = function.id if isinstance(function, ast.Name) else ""
        if name in self.names or (not arguments and name != "range"):
            return None
        more = [*arguments[1:], *(keyword.value for keyword in keywords)]
        starts = [each.arg for each in keywords] in ([], ["start"])
        if name == "enumerate" and len(more) < 2 and starts:
            first = self.value(more[0]) if more else 0
            if type(first) is not int or first.bit_length() > plain.MAX_BITS:
                raise NotLiteralError("enumerate(...) with such arguments is a call")
            items = self.items(arguments[0])
            self.meter.spend(len(items))
            return list(enumerate(items, first))
        if keywords:
            return None
        if name == "range":
            return self.range([self.value(each) for each in arguments])
        if name == "map" and len(arguments) == 2:
            to = arguments[0]
            if type(to) is ast.Name and to.id == "str" not in self.names:
                return [plain.printed(each, "", self.meter) for each in self.items(arguments[1])]
        if name == "zip" or (name == "reversed" and len(arguments) == 1):
            # Never of a Starred: `items` does not read one.
            columns = [self.items(each) for each in arguments]
            self.meter.spend(max(map(len, columns)))
            return list(zip(*columns, strict=False)) if name == "zip" else columns[0][::-1]
        return None

    def range(self, ends: list[Any]) -> list[int]:
        if not 1 <= len(ends) <= 3 or any(type(end) is not int for end in ends) or ends[2:] == [0]:
            raise NotLiteralError("range(...) with such arguments is a call")
        numbers = range(*ends)
        # `len` may overflow.
        if numbers and (numbers[-1] - numbers[0]) // numbers.step >= plain.MAX_ITEMS:
            raise NotLiteralError("too large: it has too many items")
        self.meter.spend(len(numbers))
        return list(numbers)


def _shown(node: ast.expr) -> str:
    """Return what an expression is, for a message."""
    name = node.func if isinstance(node, ast.Call) else node
    called = "(...)" if isinstance(node, ast.Call) else ""
    if isinstance(name, ast.Name):
        return name.id + called
    if isinstance(name, ast.Attribute):
        return f"(...).{name.attr}{called}"
    return f"an expression ({type(node).__name__})"


def _bind(target: ast.expr, item: Any, names: Any) -> None:
    if type(target) is ast.Name:
        names[target.id] = item
        return
    parts = target.elts if type(target) in (ast.Tuple, ast.List) else []  # type: ignore[attr-defined]
    if not parts or type(item) not in plain.SEQUENCES or len(parts) != len(item):
        raise NotLiteralError("a round that cannot be read")
    for part, each in zip(parts, item, strict=True):
        _bind(part, each, names)


def _dict_of(pairs: list[Any]) -> dict[Any, Any]:
    plain.hashable([key for key, _ in pairs])
    return dict(pairs)


def _number_call(name: str, arguments: list[Any]) -> Any:
    kinds = [type(argument) for argument in arguments]
    try:
        if name == "float":
            is_text = kinds == [str] and len(arguments[0]) < 100
            if not kinds or is_text or kinds in ([int], [float], [bool]):
                return float(*arguments)
        if name == "complex" and len(kinds) <= 2 and all(kind in plain.NUMBERS for kind in kinds):
            return complex(*arguments)
        if name == "abs" and len(kinds) == 1 and kinds[0] in plain.NUMBERS:
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
_CALLS = {*_CONTAINERS, *_AGGREGATES, "dict", "float", "complex", "abs", "str"}
_METHODS: dict[str, tuple[type, ...]] = {
    "get": (dict,), "copy": (list, dict, set), **dict.fromkeys(("count", "index"), (list, tuple, str)),
    **dict.fromkeys(
        ("capitalize", "endswith", "find", "isdigit", "join", "lower", "lstrip", "rstrip", "split", "splitlines", "startswith",
         "strip", "title", "upper"), (str,)
    ),
}  # fmt: skip
_READERS: dict[type, Callable[[_Reader, Any], Any]] = {
    ast.List: lambda reader, node: reader.elements(node.elts),
    ast.Tuple: lambda reader, node: tuple(reader.elements(node.elts)),
    ast.ListComp: _Reader.comprehension, ast.DictComp: _Reader.dict_comprehension,
    ast.SetComp: lambda reader, node: set(plain.hashable(reader.comprehension(node))),
    ast.Set: lambda reader, node: set(plain.hashable(reader.elements(node.elts))),
    ast.JoinedStr: _Reader.formatted,
    ast.IfExp: lambda reader, node: reader.value(node.body if reader.value(node.test) else node.orelse),
    ast.Name: lambda reader, node: reader.named(node.id),
    ast.Dict: _Reader.pairs, ast.Attribute: _Reader.attribute, ast.Subscript: _Reader.item, ast.UnaryOp: _Reader.unary,
    ast.BinOp: _Reader.binary, ast.Call: _Reader.call, ast.Compare: _Reader.comparison, ast.BoolOp: _Reader.boolean,
}  # fmt: skip
