"""Test text -> plan: either an expression over plain data and calls, or "run it as a program".

Runs in the analysis process. In a value plan the calls' arguments and every constant are literals: the supervisor makes the
calls and evaluates the rest (`planner.py`) with exactly Python's result. What is large or slow to plan runs as a program.

    ("value", names, calls, nodes)   the function of each call and its arguments, as they are sent; a tree of tuples
    ("text",)                        a program of its own, that runs together with the program under test
    ("syntax_error", message)
"""

from __future__ import annotations

import ast
import builtins
import marshal
import signal
import types
import warnings
from typing import Any

from .. import codec
from .literals import UNKNOWN, LiteralMeter, NotLiteralError, read
from .plain import NUMBERS

_MAX_ITEMS = 100_000
_MAX_ENCODED = 256 << 10  # of one test's calls and constants
# Seconds of CPU time for one test: honest ones of many pages of data need a quarter as much. A slow or busy
# machine takes twice the time of a quick one for the same text, and must not come to another verdict.
_TIME_LIMIT = 1.0
_TIME_PER_CHARACTER = 6e-6
_MAX_TIME = 6.0
_COMPARISONS = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_FUNCTIONS = ("abs", "len", "round", "sorted", "set", "list", "tuple", "sum", "min", "max")
_ITERATING = ("sorted", "set", "list", "tuple", "sum", "min", "max")
ITERATED = "*"
"""Stands before the name of a call whose value is iterated over: it may be a generator."""
_BUILTINS = frozenset(dir(builtins))


class _TooSlowError(BaseException):
    """Planning takes too long."""


class _ValuePlan:
    """Builds the expression tree of one asserted expression."""

    def __init__(self, entry_point: str | None) -> None:
        self.entry_point = entry_point
        self.calls: list[tuple[str, list[Any], dict[str, Any]]] = []
        self.uses_math = False
        self._names = {entry_point: UNKNOWN} if entry_point is not None else {}
        self._meter = LiteralMeter(_MAX_ITEMS, exact=True, work=10 * _MAX_ITEMS)

    def literal(self, node: ast.expr) -> Any:
        """Return the value of an expression that is plain data or a range, just as Python would make it."""
        if not isinstance(node, ast.Call) or not self._makes_range(node):
            return read(node, self._names, self._meter)
        try:
            return range(*(self.literal(end) for end in node.args))
        except (TypeError, ValueError):
            raise NotLiteralError from None

    def _makes_range(self, node: ast.Call) -> bool:
        name = node.func.id if isinstance(node.func, ast.Name) and not node.keywords else ""
        return name == "range" and name not in self._names

    def finished(self, nodes: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the plan, if it is small."""
        try:
            calls = [_encoded_call(arguments, keywords) for _, arguments, keywords in self.calls]
            codec.encode(nodes, limit=_MAX_ENCODED)
        except codec.EncodeError:
            raise NotLiteralError from None
        return ("value", [name for name, _, _ in self.calls], calls, nodes)

    def expression(self, node: ast.expr) -> tuple[Any, ...]:
        try:
            return ("constant", self.literal(node))
        except NotLiteralError:
            pass
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self.comparison(node.left, node.ops[0], node.comparators[0])
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return ("not", self.expression(node.operand))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            return ("-", self.expression(node.left), self.expression(node.right))
        raise NotLiteralError

    def comparison(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> tuple[Any, ...]:
        if isinstance(operator, (ast.Is, ast.IsNot)):
            value = right.value if isinstance(right, ast.Constant) else ...
            if not any(value is singleton for singleton in (True, False, None)):
                raise NotLiteralError
            name = "is" if isinstance(operator, ast.Is) else "is not"
            return (name, self.expression(left), ("constant", value))
        return (_COMPARISONS[type(operator)], self.expression(left), self.expression(right))

    def call(self, node: ast.Call) -> tuple[Any, ...]:
        if any(keyword.arg is None for keyword in node.keywords):
            raise NotLiteralError
        if isinstance(node.func, ast.Attribute):
            module = node.func.value
            if isinstance(module, ast.Name) and (module.id, node.func.attr) == ("math", "isclose"):
                return self.isclose(node)
            raise NotLiteralError
        if not isinstance(node.func, ast.Name):
            raise NotLiteralError
        name = node.func.id
        if name in _FUNCTIONS and name != self.entry_point:
            more = node.args[1:]
            if node.keywords or not node.args or len(more) > 1:
                raise NotLiteralError
            if more and not (name == "round" and self._is_digits(more[0])):
                raise NotLiteralError
            before = len(self.calls)
            operands = [self.expression(argument) for argument in node.args]
            if name in _ITERATING and operands[0] == ("call", before):
                called, given, keywords = self.calls[before]
                self.calls[before] = (f"{ITERATED}{called}", given, keywords)
            return (name, *operands)
        if name in _BUILTINS and name != self.entry_point:
            raise NotLiteralError
        arguments = [self.literal(argument) for argument in node.args]
        keywords = {str(keyword.arg): self.literal(keyword.value) for keyword in node.keywords}
        if len(keywords) != len(node.keywords):
            raise NotLiteralError
        self.calls.append((name, arguments, keywords))
        return ("call", len(self.calls) - 1)

    def _is_digits(self, node: ast.expr) -> bool:
        digits = self.literal(node)
        return type(digits) is int and abs(digits) <= 100

    def isclose(self, node: ast.Call) -> tuple[Any, ...]:
        self.uses_math = True
        keywords = {str(keyword.arg): self.literal(keyword.value) for keyword in node.keywords}
        if len(node.args) != 2 or not set(keywords) <= {"rel_tol", "abs_tol"}:
            raise NotLiteralError
        if any(type(value) not in NUMBERS for value in keywords.values()):
            raise NotLiteralError
        left, right = (self.expression(argument) for argument in node.args)
        return ("isclose", left, right, ("constant", keywords))


def _value_plan(tree: ast.Module, entry_point: str | None) -> tuple[Any, ...]:
    statements = tree.body
    imported = False
    if len(statements) == 2 and isinstance(statements[0], ast.Import):
        names = [(alias.name, alias.asname) for alias in statements[0].names]
        if names != [("math", None)]:
            raise NotLiteralError
        imported = True
        statements = statements[1:]
    if len(statements) != 1:
        raise NotLiteralError
    plan = _ValuePlan(entry_point)
    (statement,) = statements
    if isinstance(statement, ast.Expr):
        nodes = plan.expression(statement.value)
        if nodes != ("call", 0):
            raise NotLiteralError
        return plan.finished(("returned", nodes))
    if not isinstance(statement, ast.Assert):
        raise NotLiteralError
    if statement.msg is not None:
        plan.literal(statement.msg)
    nodes = plan.expression(statement.test)
    if not plan.calls or (plan.uses_math and not imported):
        raise NotLiteralError
    if imported and any(name == "math" for name, _, _ in plan.calls):
        raise NotLiteralError
    return plan.finished(nodes)


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


def plan_test(text: str, entry_point: str | None = None) -> tuple[Any, ...]:
    r"""Plan one test.

    Example:
            >>> kind, names, calls, nodes = plan_test("assert add(1, 2) == 3")
        >>> kind, names, marshal.loads(calls[0]), nodes
        ('value', ['add'], ([1, 2], {}), ('==', ('call', 0), ('constant', 3)))
        >>> plan_test("for i in range(3):\n    assert add(i, 0) == i")
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
                return _value_plan(tree, entry_point)
            except (NotLiteralError, RecursionError):
                return ("text",)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return ("syntax_error", f"{type(error).__name__}: {error}"[:300])


def encoded_plans(texts: list[str], entry_point: str | None = None) -> list[tuple[Any, ...]]:
    """Plan tests in the form in which plans are kept: the expression of a plan is encoded, too.

    So whoever keeps it knows its size. What would be costly to read becomes a text to run.
    """
    return [_encoded(plan) for plan in plan_tests(texts, entry_point)]


def _encoded_call(arguments: list[Any], keywords: dict[str, Any]) -> bytes:
    try:
        data = marshal.dumps((arguments, keywords), 2)
    except ValueError:  # a range
        data = codec.encode((arguments, keywords), limit=_MAX_ENCODED)
    if len(data) > _MAX_ENCODED:
        raise NotLiteralError("too large")
    return data


def _encoded(plan: tuple[Any, ...]) -> tuple[Any, ...]:
    if plan[0] != "value":
        return plan
    kind, names, calls, nodes = plan
    encoded = codec.encode(nodes)
    try:
        codec.decode(encoded, meter=codec.Meter(codec.CHEAP))
    except codec.BudgetError:
        return ("text",)
    return (kind, names, calls, encoded)


def _too_slow(number: int, frame: types.FrameType | None) -> None:
    raise _TooSlowError


def plan_tests(texts: list[str], entry_point: str | None = None) -> list[tuple[Any, ...]]:
    """Plan many tests in one request. One that takes too long to plan is no test."""
    before = signal.signal(signal.SIGVTALRM, _too_slow)
    plans: list[tuple[Any, ...]] = []
    try:
        for text in texts:
            try:
                limit = min(_TIME_LIMIT + len(text) * _TIME_PER_CHARACTER, _MAX_TIME)
                signal.setitimer(signal.ITIMER_VIRTUAL, limit)
                plans.append(plan_test(text, entry_point))
            except _TooSlowError:
                plans.append(("syntax_error", f"takes more than {limit:.1f} s to parse"))
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    return plans
