"""Whether code defines a function, completions of a prompt that has begun it, and texts that are put before programs."""

from __future__ import annotations

import ast
import io
import itertools
import re
import tokenize
from collections.abc import Iterator

from .chunks import Chunk, chunks
from .syntax import FUNCTIONS, in_scope, parsed

_CODE = (
    *FUNCTIONS, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign, ast.AugAssign, ast.If, ast.Try, ast.With,
    ast.For, ast.While,
)  # fmt: skip
_NO_FUNCTION = (
    ast.Constant, ast.Compare, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.List, ast.Tuple, ast.Dict, ast.Set,
    ast.JoinedStr, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Await,
)  # fmt: skip
_LONGEST_BODY = 20_000
"""Of a body that is completed."""
_FENCE = re.compile(r"^[ \t]*+(?:```|~~~)[^\n]*+$", re.MULTILINE)


def code_in(text: str) -> list[Chunk]:
    """Return the parts of a text that are code, without the prose between them."""
    return [
        chunk
        for chunk in chunks(text)
        if chunk.body and not chunk.removed and all(map(_is_code, chunk.body))
    ]


def _is_code(node: ast.stmt) -> bool:
    """Whether a statement is meant as code: words of prose are Python expressions, too."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute)
    return isinstance(node, _CODE) or (isinstance(node, ast.AnnAssign) and node.value is not None)


def is_word(node: ast.stmt) -> bool:
    """Whether a statement is a word of prose: it does nothing."""
    return isinstance(node, ast.Expr) and isinstance(node.value, (ast.Name, ast.Tuple))


def defines(code: str, name: str) -> bool:
    r"""Whether code defines a function or class, more of it than a header or a stub.

    Example:
        >>> [defines(code, "f") for code in ("def f(): return 1", "def f():\n    ...", "f = f(4)", "def f():")]
        [True, False, False, False]
    """
    body = parsed(code)
    if body is None:
        return any(_in_part(part.text, part.body, name) for part in chunks(code))
    return any(_defines(node, name) for node in body)


def _in_part(text: str, body: list[ast.stmt], name: str) -> bool:
    if body:
        return any(_defines(node, name) for node in body)
    # A definition with a fault in it is one all the same: whoever wrote it meant it.
    head = re.match(rf"\s*(?:@[^\n]*\n\s*)*(?:async\s+)?(def|class)\s+{re.escape(name)}\b", text)
    if head is None:
        return re.match(rf"{re.escape(name)}\s*=\s*lambda\b", text) is not None
    lines = [line.strip() for line in text[head.end() :].split("\n")[1:]]
    return any(line and line[0] != "#" and line not in ("...", "pass") for line in lines)


def _defines(node: ast.AST, name: str) -> bool:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return node.name == name and not _is_stub(node)
        case ast.ClassDef(body=body):
            methods = [each for each in body if isinstance(each, FUNCTIONS)]
            return node.name == name and not (methods and all(map(_is_stub, methods)))
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            named = [each for target in targets for each in ast.walk(target)]
            is_bound = any(isinstance(each, ast.Name) and each.id == name for each in named)
            return is_bound and _may_be_function(value, name)
        case ast.If() | ast.Try() | ast.With():
            return any(_defines(each, name) for each in ast.iter_child_nodes(node))
    return False


def _may_be_function(value: ast.expr, name: str) -> bool:
    if isinstance(value, _NO_FUNCTION):
        return False
    is_use = any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(value))
    return isinstance(value, ast.Lambda) or not is_use


def _is_stub(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function does nothing: `...`, `pass`, a docstring, `raise NotImplementedError`."""
    return all(map(_says_nothing, node.body))


def _says_nothing(node: ast.stmt) -> bool:
    match node:
        case ast.Raise(exc=ast.Name(id=kind) | ast.Call(func=ast.Name(id=kind))):
            return kind == "NotImplementedError"
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
    return False


def completion(answer: str, blocks: list[str], prompt: str, name: str) -> str | None:
    """Return the function that a prompt begins, with its body from an answer; None if there is no such body.

    The body may stand before a closing fence, or before prose. It may be indented otherwise than the prompt is, and
    its first line not at all.
    """
    if re.search(rf"^(?:async +)?def +{re.escape(name)}\b", prompt, re.MULTILINE) is None:
        return None
    head = prompt.rstrip()
    for text in (_FENCE.split(answer, maxsplit=1)[0], *reversed(blocks[-4:])):
        for body, rest in _bodies(text):
            least = _indentation(body)
            plain = [line[least:] for line in body]
            if not _returns("\n".join(plain)):
                continue
            for lead in dict.fromkeys((" " * least or "    ", "    ", "  ", "\t")):
                shifted = "\n".join(f"{lead}{line}" if line else "" for line in plain)
                code = f"{head}\n{shifted}\n"
                if parsed(code) is not None:
                    return "\n".join([code, *(part.text for part in code_in(rest))])
    return None


def _bodies(text: str) -> Iterator[tuple[list[str], str]]:
    """Yield lines with which a text begins that may be a body, and the text behind them."""
    lines = text.strip("\n").split("\n")
    if not lines[0].strip() or len(text) > _LONGEST_BODY:
        return
    inner = list(itertools.takewhile(lambda line: line[:1] in ("", " ", "\t"), lines[1:]))
    rest = "\n".join(lines[1 + len(inner) :])
    if lines[0][0] in " \t":
        yield [lines[0], *inner], rest
        return
    if inner:  # what was taken from the answer's ends was its indentation, too
        yield [" " * _indentation(inner) + lines[0], *inner], rest
    yield lines, ""
    yield list(itertools.takewhile(str.strip, lines)), ""


def _indentation(lines: list[str]) -> int:
    return min((len(each) - len(each.lstrip()) for each in lines if each.strip()), default=0)


def _returns(code: str) -> bool:
    """Whether code ends the function that it stands in: not only one that it defines, which is another answer."""
    ends = (ast.Return, ast.Raise, ast.Yield, ast.YieldFrom)
    return any(isinstance(node, ends) for node in in_scope(parsed(code) or ()))


# Texts that are put before programs

_FUTURE = ("from", "__future__", "import")


def put_before(given: str, code: str) -> str:
    r"""Return a program behind a text. A docstring and imports from __future__ stay at the very beginning.

    Example:
        >>> put_before("import math", "'Mine.'\nfrom __future__ import annotations; x = 1")
        "'Mine.'\nfrom __future__ import annotations;\nimport math\n\nx = 1"
    """
    if not given.strip() or not code.strip():
        return code
    code = code.removeprefix("\ufeff")
    if "__future__" not in code:
        return f"{given}\n\n{code}"
    (own_text, own, body), (text, futures, rest) = _head_of(code), _head_of(given)
    parts = (part.strip() for part in (own_text or text, futures, own, rest))
    head = "\n".join(filter(None, parts))
    return f"{head}\n\n{body.lstrip(' ')}"


def _head_of(text: str) -> tuple[str, str, str]:
    """Return the docstring of a program, its imports from __future__, and what stands behind them.

    The text is a player's, so nothing parses it here: its tokens are looked at, as far as the head goes.
    """
    starts = [0, *itertools.accumulate(map(len, io.StringIO(text, newline="")))]
    statement: list[str] = []
    ends = [0, 0]  # of the docstring, and of the imports
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            if token.type in (tokenize.COMMENT, tokenize.NL):
                continue
            if token.type == tokenize.NEWLINE and not statement:  # behind a semicolon
                continue
            if statement and (token.type == tokenize.NEWLINE or token.string == ";"):
                ends[1] = starts[token.end[0] - 1] + token.end[1]
                ends[0] = ends[0] if statement[0] == "from" else ends[1]
                statement = []
                continue
            is_text = token.type == tokenize.STRING or token.string in ("(", ")")
            if statement[:1] == ["from"] or token.string == "from":
                known = _FUTURE[len(statement) : len(statement) + 1] in ((), (token.string,))
            else:
                known = is_text and not ends[1]
            if not known:
                break
            statement.append(token.string)
    except (tokenize.TokenError, SyntaxError):
        pass  # what came before the fault stands
    return text[: ends[0]], text[ends[0] : ends[1]], text[ends[1] :]
