"""A program in which sets have the other order: what it returns then tells whether their order is in it.

Only used inside `Sandbox.analyse`. Two runs under different hash seeds have a set of two texts in the same order half
of the time, and a set of integers always. Here every set that the program makes, or gets, is passed through backwards.
"""

from __future__ import annotations

import ast

_VIEWS = ("keys", "items")
_OPERATORS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.Sub)
_BEFORE = """
import builtins as _builtins

def _backwards(base):
    class Turned(base):
        __slots__ = ()
        def __iter__(self):
            return iter([*base.__iter__(self)][::-1])
        def __repr__(self):
            items = ", ".join(map(repr, self))
            shown = "{" + items + "}" if items else ""
            return shown if shown and base is _builtins.set else base.__name__ + "(" + shown + ")"
        def pop(self):
            item = next(iter(self))
            self.remove(item)
            return item
    def of(made):
        def method(self, *others):
            found = made(self, *others)
            return found if found is NotImplemented else Turned(found)
        return method
    for name in ("and", "or", "sub", "xor", "rand", "ror", "rsub", "rxor"):
        setattr(Turned, f"__{name}__", of(getattr(base, f"__{name}__")))
    for name in ("union", "intersection", "difference", "symmetric_difference", "copy"):
        setattr(Turned, name, of(getattr(base, name)))
    Turned.__name__ = Turned.__qualname__ = base.__name__
    return Turned

set, frozenset = _backwards(_builtins.set), _backwards(_builtins.frozenset)

def _with_sets(value, one, other):
    kind = type(value)
    if isinstance(value, (_builtins.set, _builtins.frozenset)):
        return (one if isinstance(value, _builtins.set) else other)(
            [_with_sets(each, one, other) for each in _builtins.list(value)])
    if kind is list or kind is tuple:
        return kind([_with_sets(each, one, other) for each in value])
    if kind is dict:
        return {_with_sets(key, one, other): _with_sets(each, one, other) for key, each in value.items()}
    return value

def _turned(value):
    return _with_sets(value, set, frozenset)
"""
_AFTER = """
def _called(function):
    def called(*arguments, **keywords):
        found = function(*_turned(arguments), **_turned(keywords))
        return _with_sets(found, _builtins.set, _builtins.frozenset)
    return called

{0} = _called({0})
"""


class _Turn(ast.NodeTransformer):
    """Has every set made by a call of `set`, which is another one there."""

    def visit_Set(self, node: ast.Set) -> ast.AST:
        self.generic_visit(node)
        return _call("set", ast.List(node.elts, ast.Load()))

    def visit_SetComp(self, node: ast.SetComp) -> ast.AST:
        self.generic_visit(node)
        return _call("set", ast.GeneratorExp(node.elt, node.generators))

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        sides = (node.left, node.right)
        is_set = isinstance(node.op, _OPERATORS) and any(map(_is_view, sides))
        return _call("_turned", node) if is_set else node


def turned(programs: list[tuple[str, str]]) -> list[str]:
    """Return programs with all sets in the other order; "" where the entry point is no function of the text.

    Args:
        programs: Text and entry point of each.
    """
    return [_turned(code, entry_point) for code, entry_point in programs]


def _turned(code: str, entry_point: str) -> str:
    try:
        tree = ast.parse(code)
        return _text_of(tree, entry_point)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""


def _text_of(tree: ast.Module, entry_point: str) -> str:
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    if entry_point not in defined:
        return ""
    first = 0
    for node in tree.body:
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not (is_text or is_future):
            break
        first += 1
    tree = _Turn().visit(tree)
    tree.body[first:first] = ast.parse(_BEFORE).body
    tree.body += ast.parse(_AFTER.format(entry_point)).body
    return ast.unparse(ast.fix_missing_locations(tree))


def _call(name: str, argument: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), [argument], [])


def _is_view(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _VIEWS
    )
