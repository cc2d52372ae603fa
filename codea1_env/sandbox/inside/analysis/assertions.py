"""Which assertions are data: the closed list of what the sandbox judges outside. Reading answers begins with it, too.

    f(..) == value, value == f(..)     what a call returns
    f(..) is None, True or False       either way round
    f(..), not f(..)                   whether what it returns is true
    isclose(f(..), value)              either way round, with tolerances

The arguments and the value are literals. In a test of the sandbox `list(f(..))` may stand for a call: an iterator is no data.
Runs in the analysis process.
"""

from __future__ import annotations

import ast
import builtins
import marshal
import warnings
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeVar

from .. import codec
from ..run.running import ITERATED
from .literals import UNKNOWN, LiteralMeter, NotLiteralError, read
from .plain import NUMBERS

Rule = Literal["==", "is", "true", "false", "close"]
_RULES: dict[type, Rule] = {ast.Eq: "==", ast.Is: "is"}
C = TypeVar("C")


class Form(NamedTuple):
    """A condition as the list has it. Of `==`, `is` and `isclose` either side may be the call."""

    rule: Rule
    left: ast.expr
    right: ast.expr | None = None


def form_of(node: ast.expr, is_close: Callable[[ast.expr], bool]) -> Form:
    """Return the form of a condition; "true" for what has no other. `is_close`: whether an expression names `isclose`.

    Example:
        >>> form = form_of(ast.parse("not f(1)", mode="eval").body, lambda name: False)
        >>> form.rule, ast.unparse(form.left)
        ('false', 'f(1)')
    """
    kind = type(node)
    if kind is ast.Compare and len(node.ops) == 1:  # type: ignore[attr-defined]
        rule = _RULES.get(type(node.ops[0]))  # type: ignore[attr-defined]
        if rule is not None:
            return Form(rule, node.left, node.comparators[0])  # type: ignore[attr-defined]
    elif kind is ast.UnaryOp and type(node.op) is ast.Not:  # type: ignore[attr-defined]
        return Form("false", node.operand)  # type: ignore[attr-defined]
    elif kind is ast.Call and len(node.args) > 1 and is_close(node.func):  # type: ignore[attr-defined]
        return Form("close", *node.args[:2])  # type: ignore[attr-defined]
    return Form("true", node)


def sides(
    left: ast.expr, right: ast.expr, call_of: Callable[[ast.expr], C | None]
) -> tuple[C | None, ast.expr]:
    """Return the side that is a call, if one is, and the other side.

    Raises:
        NotLiteralError: Both are.
    """
    call = call_of(left)
    if call is None:
        return call_of(right), left
    if call_of(right) is not None:
        raise NotLiteralError("compares two calls, and predicts no value")
    return call, right


def arguments_of(
    node: ast.Call, value: Callable[[ast.expr], Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a call, read one by one; a NotLiteralError if there is `**` among them."""
    if any(keyword.arg is None for keyword in node.keywords):
        raise NotLiteralError("** among the arguments")
    arguments = [value(argument) for argument in node.args]
    return arguments, {str(keyword.arg): value(keyword.value) for keyword in node.keywords}


_MAX_ITEMS = 100_000
_MAX_ENCODED = 256 << 10  # bytes of the arguments, and of the value
_BUILTINS = frozenset(dir(builtins))
_Call = tuple[str, bytes]


class _AssertionReader:
    """Reads one assertion for the sandbox: exactly what Python would compare, or nothing."""

    def __init__(self, entry_point: str | None, imports_math: bool) -> None:
        self._entry_point = entry_point
        self._imports_math = imports_math
        self._names = {entry_point: UNKNOWN} if entry_point is not None else {}
        self._meter = LiteralMeter(_MAX_ITEMS, exact=True, work=10 * _MAX_ITEMS)

    def literal(self, node: ast.expr) -> Any:
        return read(node, self._names, self._meter)

    def assertion(self, node: ast.expr) -> tuple[Any, ...]:
        rule, left, right = form_of(node, self._is_close)
        call, value = self.call(left) if right is None else None, None
        if right is not None:
            call, other = sides(left, right, self.call)
            value = self.literal(other)
        if call is None or (rule == "is" and type(value) not in (bool, type(None))):
            raise NotLiteralError("not on the list")
        tolerances = self._tolerances(node) if rule == "close" else {}
        try:
            expected = codec.encode(value, limit=_MAX_ENCODED)
        except codec.EncodeError as error:
            raise NotLiteralError(str(error)) from None
        return ("call", *call, rule, expected, tolerances)

    def call(self, node: ast.expr) -> _Call | None:
        """Return the call of a function of the program that an expression is: its name, and what is sent."""
        if type(node) is not ast.Call or type(node.func) is not ast.Name:
            return None
        name = node.func.id
        if name in _BUILTINS and name != self._entry_point:
            if name != "list" or len(node.args) != 1 or node.keywords:
                return None
            inner = self.call(node.args[0])
            return (ITERATED + inner[0], inner[1]) if inner and inner[0][0] != ITERATED else None
        if name == "math" and self._imports_math:
            raise NotLiteralError("a call of a module")
        try:
            data = marshal.dumps(arguments_of(node, self.literal), 2)
        except ValueError:
            raise NotLiteralError("nested too deep") from None
        if len(data) > _MAX_ENCODED:
            raise NotLiteralError("too large")
        return name, data

    def _is_close(self, node: ast.expr) -> bool:
        if not self._imports_math or type(node) is not ast.Attribute:
            return False
        return node.attr == "isclose" and type(node.value) is ast.Name and node.value.id == "math"

    def _tolerances(self, node: Any) -> dict[str, float]:
        found = {str(each.arg): self.literal(each.value) for each in node.keywords}
        numbers = all(type(value) in NUMBERS for value in found.values())
        if len(node.args) != 2 or not found.keys() <= {"rel_tol", "abs_tol"} or not numbers:
            raise NotLiteralError("tolerances that are not on the list")
        return found


def _read(body: list[ast.stmt], entry_point: str | None) -> tuple[Any, ...]:
    imports = type(body[0]) is ast.Import and ast.unparse(body[0]) == "import math"
    reader = _AssertionReader(entry_point, imports)
    match body[imports:]:
        case [ast.Expr(expression)] if (call := reader.call(expression)) is not None:
            return ("call", *call, "returned", codec.encode(None), {})
        case [ast.Assert(test, message)]:
            if message is not None:
                reader.literal(message)
            return reader.assertion(test)
    raise NotLiteralError("no assertion")


def _tests_nothing(tree: ast.Module) -> bool:
    """Whether a text neither asserts nor runs anything: it is empty, binds names, or compares and drops the result."""
    for node in tree.body:
        if isinstance(node, ast.Expr) and not isinstance(node.value, (ast.Call, ast.Await)):
            continue
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and not any(
            isinstance(each, ast.Call) for each in ast.walk(node)
        ):
            continue
        if not isinstance(node, (ast.Import, ast.ImportFrom, ast.Pass)):
            return False
    return True


def read_test(text: str, entry_point: str | None = None) -> tuple[Any, ...]:
    r"""Read a test of the sandbox.

    Returns:
        `("call", name, arguments, rule, expected, tolerances)` for an assertion of the list: what is sent, and the value as
        the codec has it; the rule of a statement that only calls is "returned". `("text",)` for another program text,
        `("nothing",)` for one that tests nothing, `("syntax_error", message)`.

    Example:
        >>> kind, name, call, rule, expected, _ = read_test("assert add(1, 2) == 3")
        >>> kind, name, marshal.loads(call), rule, codec.decode(expected)
        ('call', 'add', ([1, 2], {}), '==', 3)
        >>> read_test("assert add(1, 2) > 2")
        ('text',)
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "invalid escape sequence" and the like
            tree = ast.parse(text.removeprefix("\ufeff"))
            # Compiling finds what parsing does not, such as `return` outside of a function.
            compile(tree, "<test>", "exec", dont_inherit=True)
            if _tests_nothing(tree):
                return ("nothing",)
            try:
                return _read(tree.body, entry_point)
            except (NotLiteralError, RecursionError):
                return ("text",)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return ("syntax_error", f"{type(error).__name__}: {error}"[:300])


def read_tests(texts: list[str], entry_point: str | None = None) -> list[tuple[Any, ...]]:
    """Read many tests in one request."""
    return [read_test(text, entry_point) for text in texts]
