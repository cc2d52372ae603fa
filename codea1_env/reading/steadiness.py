"""Can what a program returns depend on more than its arguments? A look at its text. Runs inside `Sandbox.analyse`.

The look is conservative: what it does not know is not steady, and is run under several hash seeds.
"""

from __future__ import annotations

import ast
import builtins
import itertools

_MODULES = {
    "__future__": "", "bisect": "", "cmath": "", "heapq": "", "itertools": "", "math": "",
    "collections": "Counter OrderedDict defaultdict deque namedtuple", "fractions": "Fraction",
    "functools": "cmp_to_key partial reduce",
    "operator": "add and_ eq floordiv ge getitem gt itemgetter le lt mod mul ne neg or_ pow sub truediv xor",
    "re": "compile escape findall finditer fullmatch match search split sub subn I IGNORECASE M MULTILINE S DOTALL",
    "string": "ascii_letters ascii_lowercase ascii_uppercase digits hexdigits punctuation whitespace",
    "typing": "Any Callable Dict Generator Iterable Iterator List Mapping Optional Sequence Set Tuple Union",
}  # fmt: skip
"""Modules that answer the same every time, and what of them is used; "" for all."""
_BUILTINS = {
    "abs", "all", "any", "ascii", "bin", "bool", "bytearray", "bytes", "callable", "chr", "complex", "dict", "divmod",
    "enumerate", "filter", "float", "format", "frozenset", "hex", "int", "isinstance", "iter", "len", "list", "map",
    "max", "min", "next", "oct", "ord", "pow", "print", "range", "repr", "reversed", "round", "set", "slice", "sorted",
    "str", "sum", "tuple", "type", "zip", "Exception", "StopIteration", *(name for name in vars(builtins) if name.endswith("Error")),
}  # fmt: skip
_DECORATORS = {"staticmethod", "classmethod"}
_SETS = {"set", "frozenset", "Set"}
_ITERATORS = {
    "elements", "enumerate", "filter", "finditer", "from_iterable", "iter", "map", "merge", "reversed", "scanner", "zip",
    *(name for name in dir(itertools) if name not in ("count", "repeat")),
}  # fmt: skip
"""What returns an iterator whose text has an address."""
_READERS = {
    "all", "any", "dict", "enumerate", "extend", "filter", "frozenset", "iter", "join", "len", "list", "map", "max", "min",
    "next", "set", "sorted", "sum", "tuple", "zip",
}  # fmt: skip
"""What reads its first argument at once, or is itself an iterator."""
_PRINTERS = {"args", "ascii", "format", "format_map", "mod", "print", "repr", "str"}
_NEVER = (ast.Global, ast.AsyncFunctionDef, ast.Match, ast.NamedExpr)
_DEFINITIONS = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Pass)


def look_at(programs: list[tuple[str, str]]) -> list[tuple[bool, bool]]:
    """Return of programs (text, entry point) if they depend on no state, time, chance, identity or hash; if they make no set."""
    found = []
    for code, _ in programs:
        try:
            look = _Look(ast.parse(code))
            found.append((look.is_free(), all(map(look.makes_no_set, look.nodes))))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            found.append((False, False))
    return found


class _Look:
    def __init__(self, tree: ast.Module) -> None:
        main = "__name__ == '__main__'"  # what stands behind that does not run
        self.body = [node for node in tree.body if not isinstance(node, ast.If) or node.orelse or ast.unparse(node.test) != main]  # fmt: skip
        self.nodes = [node for each in self.body for node in ast.walk(each)]
        self.parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        imports = (node for node in self.nodes if isinstance(node, ast.Import))
        self.modules = {alias.asname or alias.name for node in imports for alias in node.names}
        self.bound = {name for name in map(_bound_by, self.nodes) if name}
        self.functions = {node.name for node in self.nodes if isinstance(node, (ast.FunctionDef, ast.alias))} - self.modules  # fmt: skip

    def is_free(self) -> bool:
        # A name of Python's that is bound anywhere may be Python's elsewhere.
        shadowed = self.bound & (vars(builtins).keys() - _BUILTINS)
        known = not shadowed and _leave_nothing(self.body) and all(map(self._is_free, self.nodes))
        return known and not self._may_print_address()

    def _may_print_address(self) -> bool:
        """Whether the text makes texts of values, and has values of which it does more than call or read them at once."""
        hints = [getattr(node, field, None) for node in self.nodes for field in ("annotation", "returns")]  # fmt: skip
        seen = set(self.nodes).difference(*(ast.walk(hint) for hint in hints if hint))
        return any(map(self._prints, seen)) and any(map(self._has_address, seen))

    def _prints(self, node: ast.AST) -> bool:
        if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.Mod):
            return not isinstance(getattr(node, "right", None) or node.value, ast.Constant)  # type: ignore[union-attr]
        named = {_named(node), getattr(node, "name", None)} & _PRINTERS
        return bool(named) or isinstance(node, ast.FormattedValue)

    def _has_address(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name) and (_bound_by(node) or node.id not in {*self.functions, *_ITERATORS - self.bound}):  # fmt: skip
            return False
        if isinstance(node, (ast.Name, ast.Attribute, ast.Lambda)):
            return not self._is_called(node)
        if isinstance(node, ast.GeneratorExp) or _called(node) in _ITERATORS:
            return _called(node) in ("groupby", "tee") or not self._is_read(node)
        return isinstance(node, (ast.ClassDef, ast.Yield, ast.YieldFrom))

    def _is_called(self, node: ast.AST) -> bool:
        """Whether a function is only called: here, as a key, or by `map` and `filter`."""
        place = self.parents.get(node)
        if isinstance(place, ast.keyword):
            by = {"max", "min", "sort", "sorted"} - self.bound
            return place.arg == "key" and _called(self.parents[place]) in by
        if not isinstance(place, ast.Call) or _named(node) in _ITERATORS or place.args[:1] != [node]:  # fmt: skip
            return getattr(place, "func", None) is node
        return _called(place) in {"filter", "map"} - self.bound

    def _is_read(self, node: ast.AST) -> bool:
        """Whether something that can be iterated is read at once."""
        place = self.parents.get(node)
        if isinstance(place, ast.Call):
            first = place.args[:1] == [node] or _called(place) in ("filter", "map", "zip")
            return node in place.args and first and _called(place) in _READERS - self.bound
        return isinstance(place, (ast.Compare, ast.Starred)) or getattr(place, "iter", None) is node

    def _is_free(self, node: ast.AST) -> bool:
        name, parent = _bound_by(node), self.parents.get(node)
        if name and name.startswith("__") and name != "__init__":
            return False
        if isinstance(node, ast.Name) and name is None:
            known = node.id in self.bound | _BUILTINS | _DECORATORS
            if node.id == "type":  # it makes classes, and objects whose class has no name here
                asked = isinstance(parent, ast.Call) and parent.func is node
                known = asked and isinstance(self.parents.get(parent), ast.Compare)  # type: ignore[arg-type]
            return isinstance(parent, ast.Attribute) if node.id in self.modules else known
        if isinstance(node, ast.Attribute):
            if not isinstance(node.ctx, ast.Load):  # also of a module: it would be kept there
                return False
            if getattr(node.value, "id", None) in self.modules:
                return _offers(node.value.id, node.attr)  # type: ignore[attr-defined]
            return not node.attr.startswith(("__", "gi_", "mro"))
        if isinstance(node, ast.Import):
            return all(alias.name in _MODULES and not alias.asname for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            return all(_offers(node.module or "", each.name) and not each.asname for each in node.names)  # fmt: skip
        if isinstance(node, ast.Compare) and any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):  # fmt: skip
            return {*map(ast.unparse, node.comparators)} <= {"None", "True", "False"}
        if isinstance(node, ast.ClassDef):
            return _leave_nothing(node.body) and not (node.decorator_list or node.keywords or node.bases)  # fmt: skip
        if isinstance(node, ast.arguments):
            return all(map(_is_immutable, (*node.defaults, *filter(None, node.kw_defaults))))
        if isinstance(node, ast.FunctionDef):
            return {*map(ast.unparse, node.decorator_list)} <= _DECORATORS
        kept = isinstance(node, ast.Starred) and isinstance(node.ctx, ast.Store)  # in a new list
        return not (kept or isinstance(node, _NEVER))

    def makes_no_set(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Attribute) and node.attr in ("keys", "items"):
            call = self.parents[node]  # two views make a set: one is read at once
            return getattr(call, "func", None) is node and self._is_read(call)
        names = {getattr(node, field, "") for field in ("id", "attr", "name")}
        return not (names & _SETS or isinstance(node, (ast.Set, ast.SetComp)))


def _bound_by(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return None if isinstance(node.ctx, ast.Load) else node.id
    return getattr(node, "asname", None) or getattr(node, "name", getattr(node, "arg", None))


def _named(node: ast.AST | None) -> str | None:
    return getattr(node, "id", getattr(node, "attr", None))


def _called(node: ast.AST | None) -> str | None:
    return _named(node.func) if isinstance(node, ast.Call) else None


def _offers(module: str, name: str) -> bool:
    return name in of.split() if (of := _MODULES.get(module)) else of == "" and name[0] not in "_*"


def _leave_nothing(body: list[ast.stmt]) -> bool:
    """Whether the statements of a module, or of a class, leave nothing that a call could change."""
    constants = (ast.Assign, ast.AnnAssign, ast.Expr)
    return all(isinstance(node, _DEFINITIONS) or isinstance(node, constants) and _is_immutable(node.value) for node in body)  # fmt: skip  # noqa: RUF021


def _is_immutable(node: ast.AST | None) -> bool:
    if isinstance(node, (ast.Tuple, ast.UnaryOp, ast.BinOp)):
        parts = ast.iter_child_nodes(node)
        return all(_is_immutable(each) for each in parts if isinstance(each, ast.expr))
    is_number = isinstance(node, ast.Attribute) and ast.unparse(node) in ("math.inf", "math.pi")
    return is_number or isinstance(node, (ast.Constant, type(None)))
