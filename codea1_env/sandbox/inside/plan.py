"""Test text -> plan: either an expression over plain data and calls, or "run it as a program".

Runs in the analysis process. A plan is plain data. In a value plan the calls' arguments and every
constant are literals, so that the supervisor can make the calls and evaluate the rest itself
(`evaluate.py`) with exactly the result that Python would give. What would be large or slow to plan is
run as a program instead, in a process with limits.

    ("value", names, calls, nodes)   names and encoded calls (name, args, kwargs); a tree of tuples
    ("proxy", names, modules, code)  names that the test uses and does not define; modules among them;
                                     what it compiles to (`plan_program.py`), where that is worth keeping
    ("syntax_error", message)
"""

from __future__ import annotations

import ast
import builtins
import signal
import types
import warnings
from typing import Any

from . import codec, plan_program

_MAX_SIZE = 10_000
_MAX_BITS = 1 << 14
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
_BUILTINS = frozenset(dir(builtins))


class _TooSlowError(BaseException):
    """Planning takes too long."""


class NotLiteralError(Exception):
    """The expression is not plain data, or not of a form that a value plan has."""


def literal(node: ast.expr) -> Any:
    """The value of an expression that is plain data.

    Raises:
        NotLiteralError: It is something else, or large.
    """
    value = _literal(node)
    if type(value) is int and value.bit_length() > _MAX_BITS:
        raise NotLiteralError
    return value


def _literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant) and node.value is not Ellipsis:
        return node.value
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        values = [literal(item) for item in node.elts]
        kind = {ast.List: list, ast.Tuple: tuple, ast.Set: set}[type(node)]
        return kind(_hashable(values) if kind is set else values)
    if isinstance(node, ast.Dict):
        if None in node.keys:
            raise NotLiteralError
        keys = _hashable([literal(key) for key in node.keys if key is not None])
        return dict(zip(keys, map(literal, node.values), strict=True))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = _number(literal(node.operand))
        return -value if isinstance(node.op, ast.USub) else +value
    if isinstance(node, ast.BinOp):
        return _arithmetic(node.op, literal(node.left), literal(node.right))
    if isinstance(node, ast.Call) and not node.keywords and isinstance(node.func, ast.Name):
        return _construct(node.func.id, [literal(argument) for argument in node.args])
    raise NotLiteralError


def _digits(node: ast.expr) -> int:
    digits = literal(node)
    if type(digits) is not int:
        raise NotLiteralError
    return digits


def _hashable(values: list[Any]) -> list[Any]:
    try:
        codec.check_hashes(values)
    except codec.DecodeError:
        raise NotLiteralError from None
    return values


def _number(value: Any) -> Any:
    if type(value) not in (int, float, complex, bool):
        raise NotLiteralError
    return value


def _arithmetic(operator: ast.operator, left: Any, right: Any) -> Any:
    """Folds the arithmetic that people write in tests, such as 10**6, [0] * 5 or 2**31 - 1."""
    sequences = (str, list, tuple, bytes)
    try:
        if isinstance(operator, ast.Mult) and type(left) in sequences and type(right) is int:
            if _weight(left) * right > _MAX_SIZE:
                raise NotLiteralError
            return left * right
        if isinstance(operator, ast.Mult) and type(right) in sequences and type(left) is int:
            return _arithmetic(operator, right, left)
        if isinstance(operator, ast.Add) and type(left) is type(right) and type(left) in sequences:
            return left + right
        left, right = _number(left), _number(right)
        if isinstance(operator, ast.Pow):
            if type(left) is complex or type(right) is complex or abs(right) > 1000:
                raise NotLiteralError
            if type(left) is int and left.bit_length() * abs(right) > _MAX_BITS:
                raise NotLiteralError
            return left**right
        if isinstance(operator, ast.Add):
            return left + right
        if isinstance(operator, ast.Sub):
            return left - right
        if isinstance(operator, ast.Mult):
            return left * right
        if isinstance(operator, ast.Div):
            return left / right
        if isinstance(operator, ast.FloorDiv):
            return left // right
        if isinstance(operator, ast.Mod):
            return left % right
    except (ArithmeticError, TypeError, ValueError):
        raise NotLiteralError from None
    raise NotLiteralError


def _weight(values: Any) -> int:
    """How many items there are, nested ones included. To repeat a container would make aliases of it."""
    if type(values) in (str, bytes):
        return len(values)
    weight = 0
    for value in values:
        if type(value) in (list, dict, set):
            raise NotLiteralError
        weight += 1 + (_weight(value) if type(value) in (tuple, str, bytes) else 0)
    return weight


def _is_long(values: Any) -> bool:
    # `len` cannot count the numbers of very long ranges.
    return bool(values[_MAX_SIZE:]) if type(values) is range else len(values) > _MAX_SIZE


def _construct(name: str, arguments: list[Any]) -> Any:
    if name == "float" and len(arguments) == 1 and arguments[0] in ("inf", "-inf", "nan"):
        return float(arguments[0])
    if name in ("set", "list", "dict", "tuple", "frozenset") and not arguments:
        return {"set": set, "list": list, "dict": dict, "tuple": tuple, "frozenset": frozenset}[
            name
        ]()
    if name in ("set", "list", "tuple", "frozenset") and len(arguments) == 1:
        (value,) = arguments
        if type(value) not in (list, tuple, set, str, range) or _is_long(value):
            raise NotLiteralError
        if name in ("list", "tuple"):
            if type(value) is set:  # its order is not the program's
                raise NotLiteralError
            return list(value) if name == "list" else tuple(value)
        values = _hashable(list(value))
        return set(values) if name == "set" else frozenset(values)
    if name == "range" and 1 <= len(arguments) <= 3 and all(type(a) is int for a in arguments):
        try:
            return range(*arguments)
        except ValueError:
            raise NotLiteralError from None
    raise NotLiteralError


class _ValuePlan:
    """Builds the expression tree of one asserted expression."""

    def __init__(self, entry_point: str | None) -> None:
        self.entry_point = entry_point
        self.calls: list[tuple[str, list[Any], dict[str, Any]]] = []

    def finished(self, nodes: tuple[Any, ...]) -> tuple[Any, ...]:
        """The plan, if it is small."""
        try:
            calls = [codec.encode(call, limit=_MAX_ENCODED) for call in self.calls]
            codec.encode(nodes, limit=_MAX_ENCODED)
        except codec.EncodeError:
            raise NotLiteralError from None
        return ("value", [name for name, _, _ in self.calls], calls, nodes)

    def expression(self, node: ast.expr) -> tuple[Any, ...]:
        try:
            return ("constant", literal(node))
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
            singletons = (True, False, None)
            if not isinstance(right, ast.Constant) or right.value not in singletons:
                raise NotLiteralError
            if not any(right.value is singleton for singleton in singletons):
                raise NotLiteralError
            name = "is" if isinstance(operator, ast.Is) else "is not"
            return (name, self.expression(left), ("constant", right.value))
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
            if node.keywords or not node.args or len(node.args) > 2:
                raise NotLiteralError
            if len(node.args) == 2 and not (name == "round" and abs(_digits(node.args[1])) <= 100):
                raise NotLiteralError
            return (name, *(self.expression(argument) for argument in node.args))
        if name in _BUILTINS and name != self.entry_point:
            raise NotLiteralError
        arguments = [literal(argument) for argument in node.args]
        keywords = {str(keyword.arg): literal(keyword.value) for keyword in node.keywords}
        if len(keywords) != len(node.keywords):
            raise NotLiteralError
        self.calls.append((name, arguments, keywords))
        return ("call", len(self.calls) - 1)

    def isclose(self, node: ast.Call) -> tuple[Any, ...]:
        keywords = {str(keyword.arg): _number(literal(keyword.value)) for keyword in node.keywords}
        if len(node.args) != 2 or not set(keywords) <= {"rel_tol", "abs_tol"}:
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
        literal(statement.msg)
    nodes = plan.expression(statement.test)
    if not plan.calls or ("isclose" in _operators(nodes) and not imported):
        raise NotLiteralError
    if imported and any(name == "math" for name, _, _ in plan.calls):
        raise NotLiteralError
    return plan.finished(nodes)


def _operators(nodes: tuple[Any, ...]) -> set[str]:
    if nodes[0] in ("constant", "call"):
        return {nodes[0]}
    return {nodes[0]}.union(*(_operators(node) for node in nodes[1:]))


def plan_test(text: str, entry_point: str | None = None) -> tuple[Any, ...]:
    r"""Plans one test.

    Args:
        text: The test.
        entry_point: The name under test, if it is known. It matters only where Python has that name.

    Example:
        >>> kind, names, calls, nodes = plan_test("assert add(1, 2) == 3")
        >>> kind, names, codec.decode(calls[0]), nodes
        ('value', ['add'], ('add', [1, 2], {}), ('==', ('call', 0), ('constant', 3)))
        >>> plan_test("for i in range(3):\n    assert add(i, 0) == i")
        ('proxy', ['add'], [], b'')
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "invalid escape sequence" and the like
            program = plan_program.quickly(text, entry_point)
            if program is not None:
                return ("proxy", *program)
            tree = ast.parse(text)
            # Compiling finds what parsing does not, such as `return` outside of a function.
            code = compile(tree, plan_program.FILE_NAME, "exec", dont_inherit=True)
            try:
                return _value_plan(tree, entry_point)
            except (NotLiteralError, RecursionError):
                return ("proxy", *plan_program.from_tree(text, tree, code, entry_point))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return ("syntax_error", f"{type(error).__name__}: {error}"[:300])


def _too_slow(number: int, frame: types.FrameType | None) -> None:
    raise _TooSlowError


def plan_tests(texts: list[str], entry_point: str | None = None) -> list[tuple[Any, ...]]:
    """Plans many tests in one request. One that takes too long to plan is no test."""
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
