"""What of a text never runs, or says nothing when it fails; and calls that change nothing."""

from __future__ import annotations

import ast

PURE_METHODS = frozenset({
    "allclose", "approx", "array_equal", "copy", "count", "deepcopy", "encode", "endswith", "fabs", "find", "format",
    "get", "index", "isclose", "isdigit", "issubset", "issuperset", "items", "join", "keys", "lower", "lstrip",
    "replace", "rstrip", "split", "startswith", "strip", "title", "union", "upper", "values",
})  # fmt: skip
"""Methods of plain data, and functions of modules, that change neither it nor their arguments."""
_ENDS = frozenset({
    "sys.exit", "os._exit", "os.abort", "pytest.skip", "pytest.exit", "pytest.fail", "pytest.xfail", "self.skipTest",
    "self.fail", "exit", "quit",
})  # fmt: skip
_NEVER = frozenset({"skip", "xfail", "expectedFailure"})
_CATCH = frozenset({"AssertionError", "Exception", "BaseException"})


def called_or_named(node: ast.expr) -> str:
    """The last part of the name of an expression, or of what it calls."""
    if type(node) is ast.Call:
        return called_or_named(node.func)
    if type(node) is ast.Name:
        return node.id
    return node.attr if type(node) is ast.Attribute else ""


def ends(node: ast.stmt) -> bool:
    """Whether what stands behind a statement, in its block, does not run."""
    if type(node) in (ast.Return, ast.Raise):
        return True
    if type(node) is not ast.Expr or type(node.value) is not ast.Call:
        return False
    function = node.value.func
    if type(function) is ast.Name:
        return function.id in _ENDS
    if type(function) is ast.Attribute and type(function.value) is ast.Name:
        return len(function.attr) < 20 and f"{function.value.id[:20]}.{function.attr}" in _ENDS
    return False


def is_skipped(node: ast.FunctionDef | ast.ClassDef) -> bool:
    """Whether a test is marked not to run, or to fail."""
    return any(called_or_named(decorator) in _NEVER for decorator in node.decorator_list)


def swallows(node: ast.Try) -> bool:
    """Whether an assertion that fails within `try` may go unnoticed."""
    return any(_catches(handler.type) and not _is_loud(handler) for handler in node.handlers)


def _catches(kind: ast.expr | None) -> bool:
    if kind is None:
        return True
    kinds = kind.elts if type(kind) is ast.Tuple else [kind]
    return any(called_or_named(each) in _CATCH for each in kinds)


def _is_loud(handler: ast.ExceptHandler) -> bool:
    """Whether a handler ends the test as a failure."""
    last = handler.body[-1]
    is_false = type(last) is ast.Assert and type(last.test) is ast.Constant and not last.test.value
    return (ends(last) and type(last) is not ast.Return) or is_false


def is_main(node: ast.expr) -> bool:
    """Whether it is the condition under which a text runs as a program."""
    return (
        type(node) is ast.Compare
        and type(node.left) is ast.Name
        and node.left.id == "__name__"
        and type(node.ops[0]) is ast.Eq
    )
