"""The faults that mutants have, and how they are written into a program.

`mutants` is pure and needs only the standard library: it runs in a helper process (`Sandbox.analyse`),
which loads this file on its own, because the text is untrusted. Use `mutation.generate_mutants`.

A fault is written into the original text, so that a mutant differs from its program in that place alone.
Mutants that compile to the same code as the program, or as an earlier mutant, are left out (trivial
compiler equivalence, which is stricter than comparing syntax trees).
"""

from __future__ import annotations

import ast
import copy
import warnings
from collections.abc import Iterator, Mapping
from types import CodeType
from typing import Any, NamedTuple

_BINARY: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub, ast.Mult),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Add, ast.FloorDiv),
    ast.Div: (ast.Mult, ast.FloorDiv),
    ast.FloorDiv: (ast.Div, ast.Mult),
    ast.Mod: (ast.FloorDiv, ast.Mult),
    ast.Pow: (ast.Mult,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
    ast.BitAnd: (ast.BitOr, ast.BitXor),
    ast.BitOr: (ast.BitAnd, ast.BitXor),
    ast.BitXor: (ast.BitOr, ast.BitAnd),
}
_BITWISE = (ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.BitXor)
_RELATIONAL: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_PAIRS = (
    "min max", "any all", "ceil floor", "lower upper", "lstrip rstrip", "startswith endswith",
    "find rfind", "isalpha isalnum", "isupper islower", "union intersection", "ljust rjust",
    "bisect_left bisect_right",
)  # fmt: skip
_SWAPPED = {a: b for pair in _PAIRS for a, b in (pair.split(), reversed(pair.split()))} | {
    "sorted": "list", "reversed": "iter", "set": "list", "strip": "lstrip", "isdigit": "isalnum",
    "appendleft": "append", "popleft": "pop", "keys": "values",
}  # fmt: skip
_UNWRAPPED = {"abs", "int", "round", "str", "bool", "float"}
_UNWRAPPED_METHODS = {
    "strip", "lstrip", "rstrip", "lower", "upper", "title", "capitalize", "casefold", "replace",
    "zfill", "copy",
}  # fmt: skip
_OPTIONAL_LAST = {
    "round", "sum", "int", "enumerate", "pow", "next", "deque",
    "pop", "strip", "lstrip", "rstrip", "split", "rsplit",
}  # fmt: skip
_OPTIONAL_SECOND = {"get", "setdefault"}
_ADVANCING = {"pop", "popleft", "popitem", "remove", "discard", "clear", "heappop"}
_ATOMS: tuple[type[ast.AST], ...] = (
    ast.Name, ast.Constant, ast.Call, ast.Attribute, ast.Subscript, ast.Slice,
    ast.List, ast.Dict, ast.Set, ast.ListComp, ast.JoinedStr, ast.stmt,
)  # fmt: skip
_OPEN = (ast.stmt, ast.Call, ast.keyword, ast.List, ast.Tuple, ast.Subscript)
"""Nodes below which an expression needs no brackets."""
_UNTOUCHED = {
    "annotation", "returns", "decorator_list", "bases",  # not what the program computes
    "type", "exc", "cause", "msg", "pattern", "format_spec",  # which error, which pattern, how wide
}  # fmt: skip


def mutants(source: str, limit: int | None = None) -> list[tuple[str, str, int, str]]:
    """Return (code, operator, line, description) of every mutant, in the order of the text.

    Raises what `ast.parse` raises: a SyntaxError, ValueError or RecursionError.
    """
    source = source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `x is not 0` and the like are what a fault may look like
        tree = ast.parse(source)
        text = _Text(source)
        sites = sorted(_sites(tree, text), key=_position)
        seen = {_fingerprint(compile(source, "<program>", "exec", dont_inherit=True))}
        found: dict[int, tuple[str, str, int, str]] = {}
        for index in _spread(len(sites), limit):
            if limit is not None and len(found) == limit:
                break
            site = sites[index]
            try:
                code = text.render(site)
                fingerprint = _fingerprint(compile(code, "<mutant>", "exec", dont_inherit=True))
            except (SyntaxError, ValueError):
                continue  # such as a quote that an f-string cannot hold in this version of Python
            if fingerprint not in seen:
                seen.add(fingerprint)
                found[index] = (code, site.operator, _position(site)[0], site.description)
    return [found[index] for index in sorted(found)]


class _FaultPlace(NamedTuple):
    """What the rules need to know about the surroundings of a node."""

    parent: ast.AST
    field: str
    item: int | None = None
    anchor: ast.AST | None = None
    loop: ast.AST | None = None
    guards: frozenset[str] = frozenset()
    """Names in the conditions of the while loops around the node."""
    bound: Mapping[str, int] = {}
    """Line in which a name of the enclosing function gets its first value."""


class _Site(NamedTuple):
    operator: str
    old: ast.AST
    new: ast.AST
    place: _FaultPlace

    @property
    def anchor(self) -> Any:
        """The node whose text is rewritten: `old`, or the f-string around it, in which positions are not reliable."""
        return self.place.anchor or self.old

    @property
    def description(self) -> str:
        return f"{_brief(self.old)} -> {_brief(self.new)}"

    def put(self, node: ast.AST) -> None:
        """Set the place in the tree to the given node."""
        parent, field, item = self.place[:3]
        if item is None:
            setattr(parent, field, node)
        else:
            getattr(parent, field)[item] = node


def _position(site: _Site) -> tuple[int, int]:
    return getattr(site.anchor, "lineno", 0), getattr(site.anchor, "col_offset", 0)


class _Text:
    """The program text, with positions as `ast` counts them: lines from 1, columns in UTF-8 bytes."""

    def __init__(self, source: str) -> None:
        self.data = source.encode()
        self.lines = [0]
        for line in self.data.split(b"\n"):
            self.lines.append(self.lines[-1] + len(line) + 1)

    def span(self, node: Any) -> tuple[int, int]:
        start = self.lines[node.lineno - 1] + node.col_offset
        return start, self.lines[node.end_lineno - 1] + node.end_col_offset

    def is_elif(self, node: ast.If) -> bool:
        return self.data.startswith(b"elif", self.span(node)[0])

    def render(self, site: _Site) -> str:
        """Return the program with the fault in it."""
        start, end = self.span(site.anchor)
        if site.anchor is site.old:
            new = ast.unparse(site.new)
            compared = isinstance(site.new, ast.Compare) and isinstance(site.old, ast.Compare)
            bracketed = self.data[start - 1 : start] + self.data[end : end + 1] == b"()"
            safe = compared or bracketed or isinstance(site.new, _ATOMS)
            if not safe and not isinstance(site.place.parent, _OPEN):
                new = f"({new})"
        else:
            site.put(site.new)
            new = ast.unparse(site.anchor)
            site.put(site.old)
        before, after = self.data[:start].decode(), self.data[end:].decode()
        space = " " if _glues(before[-1:], new[:1]) else ""
        return before + space + new + (" " if _glues(new[-1:], after[:1]) else "") + after


def _glues(left: str, right: str) -> bool:
    return (left.isalnum() or left == "_") and (right.isalnum() or right in ("_", '"', "'"))


def _brief(node: ast.AST) -> str:
    text = ast.unparse(node).split("\n")
    first = text[0] if len(text) == 1 else text[0] + " ..."
    return first if len(first) <= 60 else first[:57] + "..."


def _fingerprint(value: Any) -> Any:
    """A form of a code object that is equal for equal code, wherever it stands in the text."""
    if not isinstance(value, CodeType):
        return type(value).__name__, repr(value)
    constants = tuple(_fingerprint(constant) for constant in value.co_consts)
    names = (value.co_name, value.co_names, value.co_varnames, value.co_freevars, value.co_cellvars)
    counts = (value.co_argcount, value.co_posonlyargcount, value.co_kwonlyargcount, value.co_flags)
    return value.co_code, value.co_exceptiontable, names, counts, constants


def _spread(size: int, limit: int | None) -> list[int]:
    if limit is None or limit >= size:
        return list(range(size))
    chosen = [(2 * k + 1) * size // (2 * limit) for k in range(limit)]
    return chosen + sorted(set(range(size)).difference(chosen))


def _sites(tree: ast.Module, text: _Text) -> Iterator[_Site]:
    for index, statement in enumerate(tree.body):
        if isinstance(statement, ast.If) and "__name__" in _names(statement.test):
            continue
        yield from _visit(statement, _FaultPlace(tree, "body", index, bound=_bindings(tree)), text)


def _visit(node: ast.AST, place: _FaultPlace, text: _Text) -> Iterator[_Site]:
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)):
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return  # a docstring, or text that does nothing
    advances = isinstance(node, ast.stmt) and _advances(node, place.guards)
    for operator, new in _step_rules(node) if advances else _rules(node, place, text):
        yield _Site(operator, node, new, place)
    if advances and isinstance(node, ast.AugAssign):
        return
    below = place._replace(parent=node)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        below = below._replace(loop=None, guards=frozenset(), bound=_bindings(node))
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        below = below._replace(loop=node)
    elif isinstance(node, ast.While):
        below = below._replace(loop=node, guards=place.guards | _names(node.test))
    elif isinstance(node, ast.JoinedStr) and place.anchor is None:
        below = below._replace(anchor=node)
    for field, value in ast.iter_fields(node):
        if field in _UNTOUCHED or (field == "keywords" and isinstance(node, ast.ClassDef)):
            continue
        if isinstance(value, ast.AST):
            yield from _visit(value, below._replace(field=field, item=None), text)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                if isinstance(item, ast.AST):
                    yield from _visit(item, below._replace(field=field, item=index), text)


def _step_rules(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if not isinstance(node, ast.AugAssign) or not isinstance(node.value, ast.Constant):
        return
    if type(node.value.value) is int:
        yield "CRP", ast.AugAssign(node.target, node.op, ast.Constant(node.value.value + 1))


def _rules(node: ast.AST, place: _FaultPlace, text: _Text) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.expr):
        if place.field in ("test", "ifs", "guard"):
            yield from _negation(node)
        yield from _expression_rules(node)
    elif isinstance(node, ast.AugAssign):
        for operator, op in _binary_rules(node.op, node.target, node.value):
            yield operator, ast.AugAssign(node.target, op, node.value)
        yield "ASR", ast.Assign([node.target], node.value, lineno=node.lineno)
        yield "SDL", ast.Pass()
    elif isinstance(node, ast.Return) and node.value is not None:
        if isinstance(node.value, (ast.Compare, ast.BoolOp)):
            for _, negation in _negation(node.value):
                yield "RVR", ast.Return(negation)
        is_none = isinstance(node.value, ast.Constant) and node.value.value is None
        yield "RVR", ast.Return(ast.Constant(0 if is_none else None))
        yield "SDL", ast.Pass()
    elif isinstance(node, ast.Break) and isinstance(place.loop, ast.For):
        yield "BCR", ast.Continue()  # in a while loop this is mostly an endless loop
    elif isinstance(node, ast.Continue):
        yield "BCR", ast.Break()
        yield "SDL", ast.Pass()
    elif isinstance(node, ast.Assign):
        stored = [name for target in node.targets for name in ast.walk(target)]
        names = [n.id for n in stored if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        if all(place.bound[name] < node.lineno for name in names):
            yield "SDL", ast.Pass()  # else every use of the name would fail: any test finds that
    elif isinstance(node, ast.If):
        if not node.orelse and not text.is_elif(node):
            yield "SDL", ast.Pass()
    elif isinstance(node, (ast.For, ast.While)):
        if not node.orelse and len(node.body) > 1:
            yield "SDL", ast.Pass()
    elif isinstance(node, (ast.Expr, ast.Raise, ast.Assert, ast.Delete)):
        yield "SDL", ast.Pass()


def _expression_rules(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Constant):
        yield from _constant_rules(node.value)
    elif isinstance(node, ast.BinOp):
        for operator, op in _binary_rules(node.op, node.left, node.right):
            yield operator, ast.BinOp(node.left, op, node.right)
        if isinstance(node.op, ast.Add) and (_sequence(node.left) or _sequence(node.right)):
            yield "AOR", node.left
            yield "AOR", node.right
    elif isinstance(node, ast.Compare):
        for index, old in enumerate(node.ops):
            for new in _RELATIONAL[type(old)]:
                ops = [*node.ops[:index], new(), *node.ops[index + 1 :]]
                yield "ROR", ast.Compare(node.left, ops, node.comparators)
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "LCR", ast.BoolOp(other, node.values)
        for index in range(len(node.values)):
            rest = node.values[:index] + node.values[index + 1 :]
            yield "LCR", rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
    elif isinstance(node, ast.UnaryOp):
        yield "UOD", node.operand
    elif isinstance(node, ast.Slice):
        yield from _slice_rules(node)
    elif isinstance(node, ast.Call):
        yield from _call_rules(node)
    elif isinstance(node, (ast.List, ast.Set, ast.Tuple)) and isinstance(
        getattr(node, "ctx", ast.Load()), ast.Load
    ):
        if len(node.elts) > 1 and all(isinstance(item, ast.Constant) for item in node.elts):
            for elements in (node.elts[:-1], node.elts[1:]):
                shorter = copy.copy(node)
                shorter.elts = elements
                yield "CRP", shorter
    elif isinstance(node, ast.Dict) and len(node.keys) > 1:
        yield "CRP", ast.Dict(node.keys[:-1], node.values[:-1])
        yield "CRP", ast.Dict(node.keys[1:], node.values[1:])


def _binary_rules(
    op: ast.operator, left: ast.expr, right: ast.expr
) -> Iterator[tuple[str, ast.operator]]:
    """Yield what to replace an operator by, except where any use of the result would fail."""
    if isinstance(op, (ast.Add, ast.Mult, ast.Mod)) and (_sequence(left) or _sequence(right)):
        return
    name = "BOR" if isinstance(op, _BITWISE) else "AOR"
    for new in _BINARY.get(type(op), ()):
        yield name, new()


def _constant_rules(value: object) -> Iterator[tuple[str, ast.expr]]:
    new: list[Any] = []
    if isinstance(value, bool):
        new = [not value]
    elif isinstance(value, (int, float)):
        new = [value + 1, value - 1, type(value)(0)]
    elif isinstance(value, (str, bytes)):
        new = [value[:0], value[:-1]] if value else [b"XX" if isinstance(value, bytes) else "XX"]
    for number, item in enumerate(new):
        if item != value and item not in new[:number]:
            yield "CRP", ast.Constant(item)


def _negation(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    simple = isinstance(node, ast.Compare) and len(node.ops) == 1  # ROR and UOD make these
    if not simple and not isinstance(node, (ast.UnaryOp, ast.Constant)):
        yield "COI", ast.UnaryOp(ast.Not(), node)


def _slice_rules(node: ast.Slice) -> Iterator[tuple[str, ast.expr]]:
    for field in ("lower", "upper", "step"):
        bound = getattr(node, field)
        if bound is None:
            continue
        new = copy.copy(node)
        setattr(new, field, None)
        yield "SIR", new
        if field != "step":
            for moved in _moved(bound):
                new = copy.copy(node)
                setattr(new, field, moved)
                yield "SIR", new


def _call_rules(node: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    function, count = node.func, len(node.args)
    plain = not any(isinstance(argument, ast.Starred) for argument in node.args)
    if isinstance(function, ast.Name):
        name = function.id
        if name in _SWAPPED and count > 0:
            keywords = [] if name == "sorted" else node.keywords
            yield "FNR", ast.Call(ast.Name(_SWAPPED[name]), node.args, keywords)
        if name in _UNWRAPPED and plain and count == 1 and not node.keywords:
            yield "FND", node.args[0]
        if name == "range" and plain:
            for index in range(min(count, 2)):
                for moved in _moved(node.args[index]):
                    arguments = [*node.args[:index], moved, *node.args[index + 1 :]]
                    yield "SIR", ast.Call(function, arguments, [])
            if count > 1:
                yield "SIR", ast.Call(function, node.args[1 if count == 2 else 0 :][:2], [])
        if name in _OPTIONAL_LAST and plain and count > 1:
            yield "ARD", ast.Call(function, node.args[:-1], node.keywords)
    elif isinstance(function, ast.Attribute):
        if function.attr in _SWAPPED:
            method = ast.Attribute(function.value, _SWAPPED[function.attr])
            yield "FNR", ast.Call(method, node.args, node.keywords)
        if function.attr in _UNWRAPPED_METHODS:
            yield "FND", function.value
        required = 2 if function.attr in _OPTIONAL_SECOND else 1
        if plain and count >= required and function.attr in _OPTIONAL_LAST | _OPTIONAL_SECOND:
            yield "ARD", ast.Call(function, node.args[:-1], node.keywords)
    for index in range(len(node.keywords)):
        rest = node.keywords[:index] + node.keywords[index + 1 :]
        yield "ARD", ast.Call(function, node.args, rest)


def _moved(bound: ast.expr) -> Iterator[ast.expr]:
    inner = bound.operand if isinstance(bound, ast.UnaryOp) else bound
    if isinstance(inner, ast.BinOp) and isinstance(inner.right, ast.Constant):
        return
    if not isinstance(inner, ast.Constant):
        yield ast.BinOp(bound, ast.Add(), ast.Constant(1))
        yield ast.BinOp(bound, ast.Sub(), ast.Constant(1))


def _sequence(node: ast.expr) -> bool:
    """Whether the value is certainly text, a list or a tuple, so that arithmetic on it fails."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (str, bytes))
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, (ast.Add, ast.Mult)) and (
            _sequence(node.left) or _sequence(node.right)
        )
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Slice)
    if isinstance(node, ast.Call):
        function = node.func
        name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
        return name in {"str", "list", "tuple", "sorted", "chr", "join", *_UNWRAPPED_METHODS}
    return isinstance(node, (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp))


def _advances(node: ast.stmt, guards: frozenset[str]) -> bool:
    """Whether a statement changes what the condition of a while loop around it depends on."""
    if not guards or not isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr)):
        return False
    for child in ast.walk(node):
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store) and child.id in guards:
            return True
        if isinstance(child, ast.Call) and guards & _names(child):
            name = getattr(child.func, "attr", getattr(child.func, "id", ""))
            if name in _ADVANCING:
                return True
    return False


def _names(node: ast.AST) -> frozenset[str]:
    return frozenset(child.id for child in ast.walk(node) if isinstance(child, ast.Name))


def _bindings(scope: Any) -> dict[str, int]:
    first: dict[str, int] = {}
    for node in ast.walk(scope):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            first[node.id] = min(node.lineno, first.get(node.id, node.lineno))
        elif isinstance(node, ast.arg):
            first[node.arg] = 0
    return first


# Programs that may not end


def lines_before_loops_end(source: str) -> list[int]:
    r"""Return the lines of each function up to the end of its last `while` loop.

    A fault there easily makes the loop endless: in the loop itself, in what it starts from, or in the check
    that protects it.

    Example:
        >>> lines_before_loops_end("def f(n):\n    while n > 9:\n        n -= 9\n    return n")
        [1, 2, 3]
    """
    found: set[int] = set()
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            ends = [
                loop.end_lineno or 0 for loop in ast.walk(function) if isinstance(loop, ast.While)
            ]
            if ends:
                found.update(range(function.lineno, max(ends) + 1))
    return sorted(found)
