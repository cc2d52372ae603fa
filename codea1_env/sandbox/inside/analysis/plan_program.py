"""What a test that runs as a program needs: the names that it uses, and its code, compiled once.

Runs in the analysis process. The code of a long test takes many times longer to compile than to read, and a
test is run against many programs. It is made here, nobody but the test's process reads it, which would run
the same text otherwise, and to everybody in between it is bytes. So what Python's `marshal` makes of
hostile bytes is not a question here: no program and no test has a way to choose them.
"""

from __future__ import annotations

import ast
import builtins
import marshal
import re
import symtable
import types
import zlib

from ..preimported import MODULE_NAMES, STANDARD_NAMES

FILE_NAME = "<test>"
_LONG = 2000  # characters from which on the code is kept, and no syntax tree is made without need
_MAX_CODE = 4 << 20
_MAX_KEPT = 1 << 20
_BUILTINS = frozenset(dir(builtins))

TYPES = "type"
"""Stands among the modules of a test that calls `type` with one argument, and uses it in no other way."""

_TYPE_CALLED, _TYPE_USED = re.compile(r"\btype\([^,()]*(\([^()]*\))?\)"), re.compile(r"\btype\b")

Program = tuple[list[str], list[str], bytes]
"""The names that may come from the program under test, common modules and names, and the code for `unpacked`."""


def quickly(text: str, entry_point: str | None) -> Program | None:
    """Plan a long test that defines functions, without its syntax tree; None for any other text.

    Args:
        text: The test.
        entry_point: See `plan.plan_test`.

    Raises:
        SyntaxError: It is no program; or any other error of `compile`.
    """
    closing = _closing_statement(text) if len(text) >= _LONG else None
    if closing is None:
        return None
    code = compile(text, FILE_NAME, "exec", dont_inherit=True)
    if not any(isinstance(constant, types.CodeType) for constant in code.co_consts):
        return None  # it may be an expression over plain data
    top = symtable.symtable(text, FILE_NAME, "exec")
    functions = {table.get_name() for table in top.get_children() if table.get_type() == "function"}
    names, modules = _used_names(top, {entry_point, _checked_name(closing, functions)}, set())
    if any(
        re.search(rf"(?<![\w.]){name}\s*\(", text) for name in MODULE_NAMES.intersection(modules)
    ):
        return None  # it may be called, or stand in a string
    asked = len(_TYPE_CALLED.findall(text))
    if asked and asked == len(_TYPE_USED.findall(text)):
        modules.append(TYPES)
    return (names, modules, _packed(code))


def from_tree(
    text: str, tree: ast.Module, code: types.CodeType, entry_point: str | None
) -> Program:
    """Plan any test. For the arguments see `quickly`."""
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    checked = _checked_name(tree.body[-1], functions) if tree.body else None
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    called = {function.id for function in calls if isinstance(function, ast.Name)}
    names = _used_names(symtable.symtable(text, FILE_NAME, "exec"), {entry_point, checked}, called)
    if TYPES in called and _only_asks_for_types(tree):
        names[1].append(TYPES)
    return (*names, _packed(code) if len(text) >= _LONG else b"")


def _only_asks_for_types(tree: ast.Module) -> bool:
    used = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == TYPES]
    asked = [
        node.func
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords
    ]
    return all(any(name is function for function in asked) for name in used)


def unpacked(packed: bytes) -> types.CodeType:
    """Return the code of a plan. For the test's process only."""
    code: types.CodeType = marshal.loads(zlib.decompress(packed))
    return code


def _packed(code: types.CodeType) -> bytes:
    """Return the code as bytes; none where they are too many."""
    try:
        written = marshal.dumps(code)
    except (ValueError, MemoryError):
        return b""
    packed = zlib.compress(written, 1) if len(written) <= _MAX_CODE else b""
    return packed if len(packed) <= _MAX_KEPT else b""


def _closing_statement(text: str) -> ast.stmt | None:
    """Return the last statement of a program, if it stands in the last line alone; None where that is not clear."""
    before, _, last = text.rstrip().rpartition("\n")
    if before.endswith("\\") or "#" in last or len(last) > _LONG:
        return None
    try:
        statements = ast.parse(last).body
    except (SyntaxError, ValueError):
        return None
    return statements[-1] if statements else None


def _checked_name(last: ast.stmt, functions: set[str]) -> str | None:
    """Return the name in a closing `check(name)`: the function under test, even if it is called `sum`."""
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        call = last.value
        names = [argument.id for argument in call.args if isinstance(argument, ast.Name)]
        if isinstance(call.func, ast.Name) and call.func.id in functions and len(names) == 1:
            return names[0]
    return None


def _used_names(
    top: symtable.SymbolTable, tested: set[str | None], called: set[str]
) -> tuple[list[str], list[str]]:
    """Names that a test does not define: those that may come from the program, and common modules and names of theirs.

    Builtins and common modules are Python's, or a program could replace `abs` and `math`; all but the names
    under test. What is called is no module: `bisect(xs, 2)` is a function of the program.
    """
    # The name under test is offered even if the test binds it too: `from solution import double`.
    own = {symbol.get_name() for symbol in top.get_symbols() if _binds(symbol)} - tested
    own |= _BUILTINS - MODULE_NAMES - tested
    names: dict[str, None] = {}
    tables = [top]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            name = symbol.get_name()
            free = table is top or symbol.is_global()
            if free and symbol.is_referenced() and name not in own and not name.startswith("__"):
                names[name] = None
    modules = MODULE_NAMES - tested - called
    parts = names.keys() & (STANDARD_NAMES.keys() - tested - modules)
    common = {*(names.keys() & modules), *(f"{STANDARD_NAMES[name]}.{name}" for name in parts)}
    return sorted(names.keys() - modules), sorted(common)


def _binds(symbol: symtable.Symbol) -> bool:
    return symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
