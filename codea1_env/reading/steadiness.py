"""Can what a program returns depend on more than its arguments? A look at its text. Runs inside `Sandbox.analyse`.

The look is conservative: a program is steady only if everything that it does is known to be. What is not known says
nothing; whoever asks then runs the program under several hash seeds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

MODULES = frozenset({
    "__future__", "bisect", "cmath", "collections", "fractions", "functools", "heapq", "itertools", "math", "operator",
    "re", "statistics", "string", "textwrap", "typing", "unicodedata",
})  # fmt: skip
"""Modules that answer the same every time."""
_UNSTEADY = frozenset({
    "__import__", "breakpoint", "cache", "cached_property", "delattr", "dir", "eval", "exec", "exit", "getattr",
    "globals", "hash", "help", "id", "input", "locals", "lru_cache", "memoryview", "object", "open", "quit", "setattr",
    "super", "vars",
})  # fmt: skip
"""Names that lead to hashes, identity, state or the machine."""
_MAKERS = frozenset({"set", "frozenset"})
_OPERATORS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.Sub)
_TO_SETS = frozenset({"union", "intersection", "difference", "symmetric_difference", "copy"})
_OF_SETS = _TO_SETS | {
    "add", "clear", "difference_update", "discard", "intersection_update", "isdisjoint", "issubset", "issuperset",
    "remove", "symmetric_difference_update", "update",
}  # fmt: skip
_ORDERLESS = (
    frozenset({"all", "any", "bool", "isinstance", "len", "max", "min", "sorted", "sum"}) | _MAKERS
)
_ORDERLESS_OF_ITEMS = frozenset({"max", "min", "sorted"}) | _MAKERS
"""Of what is made from the items of a set: each item is made, and none comes first."""
_READERS = frozenset({
    "all", "any", "dict", "enumerate", "filter", "iter", "len", "list", "map", "max", "min", "reversed", "sorted", "sum",
    "tuple", "zip",
})  # fmt: skip
_READING = frozenset({"count", "get", "index", "items", "keys", "values"})
_CONSTANT_CALLS = frozenset({"dict", "float", "int", "list", "range", "str", "tuple"}) | _MAKERS
_VIEWS = frozenset({"items", "keys"})
_KNOWN = _ORDERLESS | _READERS | _CONSTANT_CALLS
"""Names that are taken for what they are in Python."""


def look_at(programs: list[tuple[str, str]]) -> list[tuple[bool, bool]]:
    """Look at programs.

    Args:
        programs: Text and entry point of each.

    Returns:
        Of each, whether it depends on no state, time, chance, identity or hash; and whether on no order of sets,
        unless its arguments hold some.
    """
    return [_look_at(code, entry_point) for code, entry_point in programs]


def _look_at(code: str, entry_point: str) -> tuple[bool, bool]:
    try:
        look = _Look(_Bare().visit(ast.parse(code)), entry_point)
        return look.is_free(), look.is_orderless()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False, False


class _Bare(ast.NodeTransformer):
    """Takes annotations away: they are never called."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        if node.value is None:
            return ast.Pass()
        return ast.Assign([node.target], node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)


class _Look:
    """What is known of one program."""

    def __init__(self, tree: ast.Module, entry_point: str) -> None:
        self.tree = tree
        self.entry_point = entry_point
        self.nodes = list(ast.walk(tree))
        self.parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        self.sets: set[str] = set()
        for _ in range(3):  # a name may be bound to another, and that to a third
            self.sets.update(self._names_of_sets())

    # State, time, chance, identity

    def is_free(self) -> bool:
        """Whether every run that gets the same arguments does the same, but for the order of sets."""
        return all(map(self._may_stand_outside, self.tree.body)) and all(
            map(self._is_free, self.nodes)
        )

    def _is_free(self, node: ast.AST) -> bool:
        parent = self.parents.get(node)
        if isinstance(node, ast.Name) and node.id in ("type", "compile"):
            # Which class something is, but no new one; of `re` alone.
            return node.id == "type" and isinstance(parent, ast.Call) and len(parent.args) == 1
        if isinstance(node, ast.Name):
            return node.id not in _UNSTEADY and (
                not node.id.startswith("__") or (parent is not None and self._is_main(parent))
            )
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            return node.name not in _KNOWN
        if isinstance(node, ast.alias):
            return (node.asname or node.name) not in _KNOWN
        if isinstance(node, ast.Attribute):
            stored = not isinstance(node.ctx, ast.Load)
            own = isinstance(node.value, ast.Name) and node.value.id == "self"
            return (
                node.attr not in _UNSTEADY
                and not node.attr.startswith("__")
                and (own or not stored)
            )
        if isinstance(node, ast.Import):
            return all(alias.name in MODULES for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names}
            return node.module in MODULES and node.level == 0 and not names & {*_UNSTEADY, "*"}
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            identical = any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops)
            return not identical or any(_is_single(side) for side in sides)
        return not isinstance(node, (ast.Global, ast.AsyncFunctionDef))

    def _is_main(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Compare) and isinstance(self.parents[node], ast.If)

    def _may_stand_outside(self, node: ast.stmt) -> bool:
        """Whether a statement of the module, or of a class, leaves nothing that a call could change."""
        if isinstance(node, ast.FunctionDef):
            known = {"staticmethod", "classmethod"}
            defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
            return all(map(_is_immutable, defaults)) and all(
                isinstance(each, ast.Name) and each.id in known for each in node.decorator_list
            )
        if isinstance(node, ast.ClassDef):
            plain = not (node.decorator_list or node.keywords or node.bases)
            return plain and all(map(self._may_stand_outside, node.body))
        if isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if len(names) < len(node.targets) or not _is_constant(node.value):
                return False
            return _is_immutable(node.value) or all(map(self._is_only_read, names))
        if isinstance(node, ast.If) and isinstance(node.test, ast.Compare):
            left = node.test.left
            return isinstance(left, ast.Name) and left.id == "__name__" and not node.orelse
        if isinstance(node, ast.Expr):
            return isinstance(node.value, ast.Constant)
        return isinstance(node, (ast.Import, ast.ImportFrom, ast.Pass))

    def _is_only_read(self, name: str) -> bool:
        """Whether nothing is done with a table that could change it, or hand it to somebody who could."""
        return all(
            isinstance(node.ctx, ast.Store) and self.parents[node] in self.tree.body
            if not isinstance(node.ctx, ast.Load)
            else self._reads(node)
            for node in self._uses(name)
        )

    def _reads(self, node: ast.AST) -> bool:
        parent = self.parents[node]
        if isinstance(parent, ast.Subscript):
            return parent.value is node and isinstance(parent.ctx, ast.Load)
        if isinstance(parent, ast.Attribute):
            return parent.attr in _READING
        return (
            isinstance(parent, ast.Compare)
            or (isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is node)
            or _calls(parent, _READERS)
        )

    def _uses(self, name: str) -> Iterator[ast.Name]:
        return (node for node in self.nodes if isinstance(node, ast.Name) and node.id == name)

    # The order of sets

    def is_orderless(self) -> bool:
        """Whether the order of no set can be seen."""
        return all(map(self._is_orderless, self.nodes))

    def _is_orderless(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name) and node.id in _MAKERS:
            parent = self.parents[node]
            return isinstance(parent, ast.Call) and (
                parent.func is node or _calls(parent, frozenset({"isinstance"}))
            )
        if isinstance(node, ast.Attribute) and node.attr in _VIEWS:
            call = self.parents[node]
            return isinstance(call, ast.Call) and self._shows_nothing_of_view(call)
        return not self._is_set(node) or self._shows_no_order(node)

    def _names_of_sets(self) -> Iterator[str]:
        for node in self.nodes:
            if isinstance(node, ast.Assign) and self._is_set(node.value):
                yield from (each.id for each in node.targets if isinstance(each, ast.Name))
            elif isinstance(node, (ast.AugAssign, ast.NamedExpr)) and self._is_set(node.value):
                yield from [node.target.id] if isinstance(node.target, ast.Name) else []

    def _is_set(self, node: ast.AST) -> bool:
        """Whether an expression is, or may be, a set."""
        if isinstance(node, ast.Name):
            return node.id in self.sets and isinstance(node.ctx, ast.Load)
        if isinstance(node, ast.BinOp):
            return isinstance(node.op, _OPERATORS) and any(
                self._is_set(side) or self._is_view(side) for side in (node.left, node.right)
            )
        if isinstance(node, ast.IfExp):
            return self._is_set(node.body) or self._is_set(node.orelse)
        if isinstance(node, ast.NamedExpr):
            return self._is_set(node.value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return node.func.attr in _TO_SETS and self._is_set(node.func.value)
        return isinstance(node, (ast.Set, ast.SetComp)) or _calls(node, _MAKERS)

    @staticmethod
    def _is_view(node: ast.AST) -> bool:
        return (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _VIEWS
        )

    def _shows_no_order(self, node: ast.AST) -> bool:
        """Whether what is done with a set would be the same in any order of its items."""
        parent = self.parents[node]
        if isinstance(parent, (ast.Compare, ast.Expr, ast.AugAssign)):
            return True
        if isinstance(parent, ast.Assign):
            return all(isinstance(target, ast.Name) for target in parent.targets)
        if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute):
            return self._is_set(
                parent.func.value
            )  # another set, and not an argument of something else
        if isinstance(parent, ast.Attribute):
            return parent.attr in _OF_SETS and isinstance(self.parents[parent], ast.Call)
        if isinstance(parent, ast.comprehension):
            return parent.iter is node and self._makes_orderless(self.parents[parent])
        if isinstance(parent, (ast.If, ast.While, ast.Assert)):
            return parent.test is node
        if isinstance(parent, ast.IfExp):
            return parent.test is node or self._is_set(parent)
        if isinstance(parent, ast.Return):
            return self._is_answer(parent)
        return (
            _calls(parent, _ORDERLESS)
            or (isinstance(parent, (ast.BinOp, ast.NamedExpr)) and self._is_set(parent))
            or (isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not))
        )

    def _makes_orderless(self, node: ast.AST) -> bool:
        if isinstance(node, ast.SetComp):
            return True
        of_items = isinstance(node, (ast.GeneratorExp, ast.ListComp))
        return of_items and _calls(self.parents[node], _ORDERLESS_OF_ITEMS)

    def _is_answer(self, node: ast.AST) -> bool:
        """Whether a return is that of the entry point to somebody outside, who compares sets as such."""
        while not isinstance(node, (ast.FunctionDef, ast.Lambda, ast.Module)):
            node = self.parents[node]
        return (
            isinstance(node, ast.FunctionDef)
            and node.name == self.entry_point
            and not any(self._uses(node.name))
        )

    def _shows_nothing_of_view(self, node: ast.Call) -> bool:
        """Whether a view of a dict is not combined with another, which makes a set."""
        parent = self.parents[node]
        return (
            (isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is node)
            or isinstance(parent, (ast.Compare, ast.Starred, ast.YieldFrom))
            or _calls(parent, _READERS)
            or _calls(parent, _MAKERS)
            or (isinstance(parent, ast.BinOp) and self._is_set(parent))  # whose order is looked at
        )


def _calls(node: ast.AST, names: frozenset[str]) -> bool:
    """Whether a node calls one of some builtins; `sorted` with a key shows the order of what is equal by it."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in names
        and (names is _READERS or not any(each.arg != "reverse" for each in node.keywords))
    )


def _is_single(node: ast.AST) -> bool:
    """Whether an expression is an object of which there is one."""
    return isinstance(node, ast.Constant) and (node.value is None or type(node.value) is bool)


def _is_immutable(node: ast.AST) -> bool:
    if isinstance(node, ast.Tuple):
        return all(map(_is_immutable, node.elts))
    if isinstance(node, ast.UnaryOp):
        return _is_immutable(node.operand)
    if isinstance(node, ast.BinOp):
        return _is_immutable(node.left) and _is_immutable(node.right)
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name)  # such as math.inf
    return isinstance(node, ast.Constant) or (
        _calls(node, frozenset({"float", "int", "str", "range"}))
        and isinstance(node, ast.Call)
        and all(map(_is_immutable, node.args))
    )


def _is_constant(node: ast.AST) -> bool:
    """Whether an expression is immutable, or one container of what is."""
    if isinstance(node, (ast.List, ast.Set)):
        return all(map(_is_immutable, node.elts))
    if isinstance(node, ast.Dict):
        return all(key is not None and _is_immutable(key) for key in node.keys) and all(
            map(_is_immutable, node.values)
        )
    if isinstance(node, ast.Call) and _calls(node, _CONSTANT_CALLS):
        return all(map(_is_constant, node.args))
    return _is_immutable(node)
