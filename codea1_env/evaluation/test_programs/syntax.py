"""Python text -> top-level statements with the names they deal in. Runs inside `Sandbox.analyse`.

The text is hostile, so this file is loaded alone in a helper process, imports only the standard library,
and gives plain data. All statements are exact slices of the text. Where the text does not parse as a whole
(an answer that was cut off, prose between the code), it is taken statement by statement.

What the descriptions are for is in `codea1_env.evaluation.test_programs.splitting`.
"""

from __future__ import annotations

import ast
import bisect
import re
import symtable
from collections.abc import Iterable, Iterator
from typing import Any

from codea1_env.reading.chunks import PARSE_ERRORS, message_of

MAX_STATEMENTS = 1_000
MAX_PARSES = 1_000
"""How often pieces of a text that does not parse as a whole are tried."""

# Reading an object with one of these does not change it.
_READERS = frozenset({
    "abs", "bool", "callable", "dir", "float", "format", "getattr", "hasattr", "hash", "id", "int",
    "isinstance", "issubclass", "len", "print", "repr", "round", "str", "type",
})  # fmt: skip
# These make fresh plain data out of plain data.
_DATA_MAKERS = frozenset({
    "abs", "bool", "bytes", "chr", "dict", "float", "frozenset", "int", "len", "list", "max", "min", "ord",
    "pow", "range", "repr", "round", "set", "sorted", "str", "sum", "tuple",
})  # fmt: skip
_DATA_NODES = (
    ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare,
    ast.IfExp, ast.Name, ast.Call, ast.JoinedStr, ast.FormattedValue, ast.Starred, ast.Subscript, ast.Slice,
    ast.ListComp, ast.SetComp, ast.DictComp, ast.comprehension,
    ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context,
)  # fmt: skip
_BLOCKS = (ast.For, ast.While, ast.With, ast.Try, ast.TryStar, ast.If, ast.Match)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_KINDS: dict[type[ast.stmt], str] = {
    ast.Assert: "assert", ast.FunctionDef: "function", ast.AsyncFunctionDef: "function", ast.ClassDef: "class",
    ast.Import: "import", ast.ImportFrom: "import",
}  # fmt: skip
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
# A line that continues the statement before it: no piece of code can begin there.
_CONTINUATION = re.compile(r"\s|[)\]}#]|(?:else|elif|except|finally)\b")
_TEST_LIKE = re.compile(r"^\s*(?:assert\b|(?:async\s+)?def\s+test|self\.assert\w+\()", re.MULTILINE)
_RUNS_ALL = re.compile(r"\b(?:unittest|pytest)\.main\b")

Item = tuple[str, str, bool]
"""What was dropped: (reason, text, whether it counts as an invalid test)."""


def describe(texts: list[str]) -> tuple[list[dict[str, Any]], list[tuple[list[int], list[Item]]]]:
    r"""Return the statements of many texts, as `codea1_env.evaluation.test_programs.splitting.Statement` takes them.

    Tests of one suite have many statements in common: each is described, and sent, only once.

    Returns:
        All different statements; and for each text the places of its own among them, with what was dropped.

    Example:
        >>> statements, [(places, dropped)] = describe(["x = [1]; assert f(x) == 2\nassert f("])
        >>> [statements[place]["text"] for place in places], dropped
        (['x = [1]', 'assert f(x) == 2'], [("cannot be parsed: '(' was never closed", 'assert f(', True)])
    """
    statements: list[dict[str, Any]] = []
    known: _Places = {}
    return statements, [_describe(text, statements, known) for text in texts]


_Places = dict[tuple[type[ast.stmt], str], int]


def _describe(
    code: str, statements: list[dict[str, Any]], known: _Places
) -> tuple[list[int], list[Item]]:
    dropped: list[Item] = []
    places: list[int] = []
    for node, text in _statements(code, dropped):
        if len(places) == MAX_STATEMENTS:
            dropped.append(("too many statements", text[:200], True))
            break
        if (type(node), text) not in known:
            try:
                statements.append(_description(node, text))
            except PARSE_ERRORS as error:
                reason = message_of(error).replace("parsed", "compiled", 1)
                dropped.append((reason, text, True))
                continue
            known[type(node), text] = len(statements) - 1
        places.append(known[type(node), text])
    return places, dropped


def _statements(code: str, dropped: list[Item]) -> Iterator[tuple[ast.stmt, str]]:
    """Yield the top-level statements of a text, piece by piece where it does not parse as a whole."""
    pieces: Iterable[tuple[str, ast.Module]]
    try:
        pieces = [(code, ast.parse(code))]
    except PARSE_ERRORS:
        pieces = _salvage(code, dropped)
    for piece, module in pieces:
        source = _Source(piece)
        for node in module.body:
            yield from _unguarded(node, source)


def _salvage(code: str, dropped: list[Item]) -> Iterator[tuple[str, ast.Module]]:
    """Yield the shortest pieces that parse, each from a line without indentation up to another one."""
    lines = _LINE.findall(code)
    starts = [n for n, line in enumerate(lines) if line.strip() and not _CONTINUATION.match(line)]
    # A stray bracket may end a piece; after one that is needed, the piece does not parse yet.
    ends = sorted({*starts, *(n for n, line in enumerate(lines) if line[0] in ")]}"), len(lines)})
    starts.append(len(lines))
    indented = "".join(lines[: starts[0]])
    if _TEST_LIKE.search(indented):
        dropped.append(("cannot be parsed: unexpected indent", indented.strip("\r\n"), True))
    budget = MAX_PARSES
    first = 0
    while starts[first] < len(lines):
        start = rest = starts[first]
        reason = ""
        next_end = bisect.bisect_right(ends, start)
        for end in ends[next_end : next_end + 30]:
            piece = "".join(lines[start:end])
            budget -= 1 + len(piece) // 2_000
            try:
                module = ast.parse(piece)
            except PARSE_ERRORS as error:
                reason = reason or message_of(error)
                continue
            yield piece, module
            rest = end
            break
        # Go on where the next statement begins, and name what lies before it.
        first = max(first + (rest == start), bisect.bisect_left(starts, rest))
        text = "".join(lines[rest : starts[first]]).rstrip()
        if text:
            reason = reason or "cannot be parsed: unmatched bracket"
            dropped.append((reason, text, _TEST_LIKE.search(text) is not None))
        if budget < 0:
            text = "".join(lines[starts[first] :])
            dropped.append(("too broken to be parsed", text[:200], True))
            return


class _Source:
    """Cuts exact slices out of a text. Columns of the parser count UTF-8 bytes."""

    def __init__(self, code: str) -> None:
        self.data = code.encode()
        self.lines = [0, *(match.end() for match in re.finditer(rb"\r\n|\r|\n", self.data))]

    def slice(self, node: ast.stmt) -> str:
        decorated = isinstance(node, _DEFINITIONS) and node.decorator_list
        line = node.decorator_list[0].lineno if decorated else node.lineno  # type: ignore[attr-defined]
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        end = self.lines[node.end_lineno - 1] + node.end_col_offset
        return self.data[self.lines[line - 1] + node.col_offset : end].decode()

    def indentation(self, node: ast.stmt) -> str:
        return self.data[self.lines[node.lineno - 1] :][: node.col_offset].decode()


def _unguarded(node: ast.stmt, source: _Source) -> Iterator[tuple[ast.stmt, str]]:
    """Yield a statement with its text; for ``if __name__ == "__main__":`` the statements in it."""
    test = node.test if isinstance(node, ast.If) and not node.orelse else None
    if not (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and test.left.id == "__name__"
    ):
        yield node, source.slice(node)
        return
    assert isinstance(node, ast.If)
    for inner in node.body:
        text = source.slice(inner)
        if isinstance(inner, (*_BLOCKS, *_DEFINITIONS)):  # its other lines keep their indentation
            text = f"if True:\n{source.indentation(inner)}{text}"
        yield inner, text


def _description(node: ast.stmt, text: str) -> dict[str, Any]:
    """Return what there is to know of a statement.

    Raises:
        SyntaxError: It parses, but cannot be compiled.
    """
    binds, uses, late = _names(text)
    is_definition = isinstance(node, (*_DEFINITIONS, ast.Import, ast.ImportFrom))
    if isinstance(node, ast.AugAssign):
        uses |= binds
    if isinstance(node, _BLOCKS):
        uses &= _exposed([node], set())
    value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) else None
    return {
        "text": text,
        "kind": _kind(node),
        "binds": binds,
        "kills": binds if is_definition else _bound_by(node),
        "uses": uses,
        "late": late,
        "touches": set() if isinstance(node, _DEFINITIONS) else _touched(node),
        "data": None if value is None else _data_names(value),
        "checks": any(isinstance(inner, (ast.Assert, ast.Raise)) for inner in _walk_now(node)),
        "is_test_like": _TEST_LIKE.search(text) is not None,
        "runs_all": _RUNS_ALL.search(text) is not None,
        "calls": list(_calls(node, text)),
        "missing": _missing(node),
    }


def _kind(node: ast.stmt) -> str:
    if isinstance(node, ast.Expr):
        return "comment" if isinstance(node.value, ast.Constant) else "expression"
    if isinstance(node, ast.ImportFrom) and (
        node.module == "__future__" or node.names[0].name == "*"
    ):
        return "wide import"
    return _KINDS.get(type(node), "block" if isinstance(node, _BLOCKS) else "other")


def _names(text: str) -> tuple[set[str], set[str], set[str]]:
    """Return the top-level names that a statement binds, uses when it runs, and uses when its functions run."""
    binds: set[str] = set()
    uses: set[str] = set()
    late: set[str] = set()
    top = symtable.symtable(text, "<test>", "exec")
    for symbol in top.get_symbols():
        if symbol.is_assigned() or symbol.is_imported():
            binds.add(symbol.get_name())
        if symbol.is_referenced():
            uses.add(symbol.get_name())
    tables = top.get_children()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            if symbol.is_global():
                late.add(symbol.get_name())
                if symbol.is_assigned() or symbol.is_imported():
                    binds.add(symbol.get_name())
    return binds, uses, late


def _walk_now(node: ast.AST) -> Iterator[ast.AST]:
    """Everything in a statement but the bodies of functions and classes inside another statement."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        if current is node or not isinstance(current, _DEFINITIONS):
            stack.extend(ast.iter_child_nodes(current))


def _ids(nodes: Iterable[ast.AST | None]) -> set[str]:
    return {n.id for node in nodes if node for n in ast.walk(node) if isinstance(n, ast.Name)}


def _bound_by(node: ast.stmt) -> set[str]:
    """Return the names that a simple statement surely binds to something new."""
    if isinstance(node, ast.Assign):
        found: list[ast.expr] = list(node.targets)
    elif isinstance(node, ast.AnnAssign) and node.value:
        found = [node.target]
    else:
        return set()
    names = set()
    for target in found:  # it grows
        if isinstance(target, ast.Name):
            names.add(target.id)
        elif isinstance(target, (ast.Tuple, ast.List)):
            found += target.elts
        elif isinstance(target, ast.Starred):
            found.append(target.value)
    return names


def _exposed(body: Iterable[ast.stmt], bound: set[str]) -> set[str]:
    """Return the names that a block may read before it has bound them itself."""
    found: set[str] = set()
    for node in body:
        if isinstance(node, (*_BLOCKS, *_DEFINITIONS)):
            inside = set(bound)
            if isinstance(node, ast.For):
                inside |= _ids([node.target])
            elif isinstance(node, ast.With):
                inside |= _ids([item.optional_vars for item in node.items])
            for child in ast.iter_child_nodes(node):
                if not isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case)):
                    found |= _ids([child]) - inside
            handlers = getattr(node, "handlers", []) + getattr(node, "cases", [])
            for block in [getattr(node, "body", []), *(handler.body for handler in handlers)]:
                found |= _exposed(block, set(inside))
            for handler in handlers:
                found |= _ids(n for n in ast.iter_child_nodes(handler) if isinstance(n, ast.expr))
            for block in (getattr(node, "orelse", []), getattr(node, "finalbody", [])):
                found |= _exposed(block, set(bound))
        else:
            names = _bound_by(node)
            value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else node
            found |= _ids([value]) - bound
            bound |= names
    return found


def _data_names(node: ast.expr) -> set[str] | None:
    """Return the names of which an expression makes fresh plain data; None if it does not."""
    functions: set[int] = set()
    names: dict[int, str] = {}
    stored: set[str] = set()
    for inner in ast.walk(node):
        if not isinstance(inner, _DATA_NODES):
            return None
        if isinstance(inner, ast.Call):
            if not isinstance(inner.func, ast.Name) or inner.func.id not in _DATA_MAKERS:
                return None
            functions.add(id(inner.func))
        elif isinstance(inner, ast.Name):
            names[id(inner)] = inner.id
            if isinstance(inner.ctx, ast.Store):
                stored.add(inner.id)
    return {name for key, name in names.items() if key not in functions} - stored


def _touched(node: ast.stmt) -> set[str]:
    """Names whose objects a statement may change when it runs."""
    nodes: list[ast.expr] = []
    for inner in _walk_now(node):
        if isinstance(inner, ast.Call):
            if not isinstance(inner.func, ast.Name) or inner.func.id not in _READERS:
                nodes += [inner.func, *inner.args, *(keyword.value for keyword in inner.keywords)]
        elif isinstance(inner, (ast.Subscript, ast.Attribute)):
            if not isinstance(inner.ctx, ast.Load):
                nodes.append(inner.value)
        elif isinstance(inner, ast.AugAssign):
            nodes.append(inner.target)
    return _ids(nodes)


def _calls(node: ast.stmt, text: str) -> Iterator[str]:
    """Yield the calls that run a function without arguments, or the test methods of a class."""
    if isinstance(node, ast.FunctionDef):
        table = _parameter_table(text) if node.decorator_list else None
        if table is not None:
            yield table
        elif _missing(node) == 0:
            yield f"{node.name}()"
    elif isinstance(node, ast.ClassDef):
        bases = [ast.unparse(base).split(".")[-1] for base in node.bases]
        methods = [inner.name for inner in node.body if isinstance(inner, ast.FunctionDef)]
        tests = [name for name in methods if name.startswith("test")]
        if "TestCase" in bases:
            first = f"{node.name}.setUpClass()\n" if "setUpClass" in methods else ""
            yield from (f"{first}{node.name}({name!r}).debug()" for name in tests)
        elif node.name.startswith("Test") and not bases and "__init__" not in methods:
            for name in tests:
                if "setup_method" in methods:
                    yield f"_tests = {node.name}()\n_tests.setup_method()\n_tests.{name}()"
                else:
                    yield f"{node.name}().{name}()"


def _missing(node: ast.stmt) -> int:
    """How many arguments a function needs."""
    if not isinstance(node, ast.FunctionDef):
        return 0
    parameters = len(node.args.posonlyargs + node.args.args)
    return parameters - len(node.args.defaults) + node.args.kw_defaults.count(None)


def _parameter_table(text: str) -> str | None:
    """Return the loop over the table of ``@pytest.mark.parametrize("a, b", table)``."""
    node = ast.parse(text).body[0]  # again, for columns that count within the text
    match node:
        case ast.FunctionDef(
            name=name,
            decorator_list=[
                ast.Call(
                    func=ast.Attribute(attr="parametrize"),
                    args=[ast.Constant(value=str(names)), table],
                )
            ],
        ):
            star = "*" if "," in names else ""
            rows = ast.get_source_segment(text, table)
            return f"for _case in {rows}:\n    {name}({star}_case)"
    return None
