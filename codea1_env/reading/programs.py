"""A coder's answer -> the program in it. Runs inside `Sandbox.analyse`."""

from __future__ import annotations

import ast
import builtins
import itertools
import re
import symtable
from collections.abc import Iterator

from .chunks import Chunk, chunks
from .definitions import code_in, completion, defines, is_word, put_before
from .fences import Block, answer_in, python_in, unfenced
from .json_texts import strings_with
from .syntax import DEFINITIONS, IMPORTS, PARSE_ERRORS, bound_by, first_line, lone_surrogate, parsed

_BUILTINS = frozenset(dir(builtins))
_DEFINE_ONLY = (*DEFINITIONS, *IMPORTS, ast.Assign, ast.AnnAssign)
_EXAMPLE = 0.5
"""A block that has at most this share of the characters of another one is an example of its use."""
_MOST_BLOCKS = 50
"""Other blocks in which helpers are looked for."""
_PRINTS = re.compile(r"\bprint\s*\(|\bstdout\b|\bos\.write\b")
_READS = re.compile(r"\binput\b|\bstdin\b|\bopen\(0|\bos\.read\b")
_MOST_READINGS = 10
"""Strings of JSON, in an answer in which no code stands openly."""


def read_programs(answers: list[tuple[str, str | None, str]]) -> list[tuple[str, str | None]]:
    r"""Return the programs in answers.

    An answer that is Python as a whole, with fences only in its strings and comments, is the program.
    Else it is the last block that defines the entry point, with what it needs of other blocks (imports, functions,
    constants) in front. A bare header, a stub and a use of the function define nothing; a block that is cut off counts
    only if no other one does. Without such a block it is the code between the prose, the body of the function that the
    prompt begins, or a string of JSON. A last statement that is cut off is left out if the rest is a program.
    Where the name is "", a program runs whole: it is the last block that reads and prints, or else prints, behind blocks that only
    define something, or the code between the prose. A block of at most half the length of another one is an example.
    What is found is otherwise taken as it is: whether it is Python shows when it runs.

    Args:
        answers: The text, the name that the program must define ("": it runs whole; None: it is not known), and the prompt, or "".

    Returns:
        For each, the program and why there is none (None if there may be one).

    Example:
        >>> read_programs([("Sure:\n```python\ndef f():\n    return 1\n```\nDone.", "f", ""), (" ", "f", "")])
        [('def f():\n    return 1\n', None), ('', 'the answer is empty')]
    """
    return [_read(*answer) for answer in answers]


def _read(text: str, entry_point: str | None, prompt: str) -> tuple[str, str | None]:
    if not text.strip():
        return "", "the answer is empty"
    answer = answer_in(text)
    if not answer.strip():
        return "", "the answer is nothing but reasoning"
    return _checked(_program(answer, entry_point, prompt))


def read_first_blocks(answers: list[tuple[str, str | None, str]]) -> list[tuple[str, str | None]]:
    r"""Return the programs in answers as the paper's release takes them: the first closed ```python block, or the whole text.

    Example:
        >>> read_first_blocks([("```python\nx = 1\n```\nor\n```python\nx = 2\n```", "x", "")])
        [('x = 1', None)]
    """
    return [_checked(_first_block(text)) for text, *_ in answers]


def _first_block(text: str) -> str:
    block, closed, _ = "".join(text.split("```python", 2)[1:2]).partition("```")
    return (block if closed else text).strip("\n")


def _checked(code: str) -> tuple[str, str | None]:
    if not code.strip():
        return code, "the code block is empty"
    if "\0" in code:
        return code, "the code has a null byte, which Python does not allow"
    if bad := lone_surrogate(code):
        return code, f"the code has a lone surrogate ({bad}), which Python does not allow"
    return code, None


def _program(answer: str, entry_point: str | None, prompt: str) -> str:
    blocks = python_in(answer)
    if blocks and not answer.lstrip().startswith(("```", "~~~")) and _is_whole(answer, entry_point):
        return answer
    if entry_point:
        name = entry_point.partition(".")[0]
        stub, code = _defining(blocks, answer, name)
        if code is None:
            code = completion(answer, [block.code for block in blocks], prompt, name)
        readings = strings_with(answer, name) if code is None else ()
        for text in itertools.islice(readings, _MOST_READINGS):
            code = _defining(python_in(text), text, name)[1]
            if code is not None:
                break
        if code is not None or stub is not None:
            return code or stub or ""
    if entry_point == "":
        return _script(answer, [block.code for block in blocks])
    if not blocks:
        return answer
    functions = _holding(blocks, r"(?:async\s+)?(?:def|class)\s+(?!test)\w")
    return blocks[functions[-1] if functions else -1].code


def _is_whole(answer: str, entry_point: str | None) -> bool:
    """Whether all of an answer with fences is a program: Python has them in strings and comments only."""
    body = parsed(answer)
    if not body or not (defines(answer, entry_point.partition(".")[0]) if entry_point else True):
        return False
    return any(not isinstance(node, ast.Expr) or isinstance(node.value, ast.Call) for node in body)


def _script(answer: str, codes: list[str]) -> str:
    """Return the program of an answer that runs whole: the last that reads and prints, if it is no mere example of its use."""
    whole = list(_running(codes))
    printing = [code for code in whole if _PRINTS.search(code)]
    reading = [code for code in printing if _READS.search(code)]
    for found in (reading, printing, whole, codes):
        own = [code for code in found if "subprocess" not in code] or found
        if own:
            longest = max(map(len, own))
            return [code for code in own if len(code) > _EXAMPLE * longest][-1]
    if parsed(answer) is not None:
        return answer
    parts = [part for part in chunks(unfenced(answer)) if part.body and not part.removed]
    code = _joined([part for part in parts if not any(map(is_word, part.body))])
    return code if _PRINTS.search(code) else answer


def _running(codes: list[str]) -> Iterator[str]:
    """Yield the blocks that run something; one that only defines stands before the next that does."""
    before = ""
    for code in codes:
        body = parsed(code)
        if body is not None and all(isinstance(node, _DEFINE_ONLY) for node in body):
            before += f"{code}\n"
        elif body is not None:
            yield before + code
            before = ""
    if before:
        yield before


def _defining(blocks: list[Block], text: str, name: str) -> tuple[str | None, str | None]:
    """Return what only names the function, and what defines it."""
    word = re.escape(name)
    naming = _holding(
        blocks, rf"(?:async\s+)?(?:def|class)\s+{word}\b|{word}\s*(?::[^=\n]*)?=(?!=)"
    )
    real = [place for place in naming if defines(blocks[place].code, name)]
    code = None
    if places := real or naming:
        place = next((i for i in reversed(places) if blocks[i].closed), places[-1])
        code = _without_cut_end(blocks[place].code.removeprefix("\ufeff"), name)
        code = _with_helpers(code, blocks[:place], blocks[place + 1 :])
    if real:
        return None, code
    found = _between_prose(unfenced(text), name) if name in text else None
    if found is not None and (defines(found, name) or not naming):
        return (code, found) if defines(found, name) else (found, None)
    return code, None


def _holding(blocks: list[Block], pattern: str) -> list[int]:
    beginning = re.compile(f"^(?:{pattern})", re.MULTILINE)
    return [place for place, block in enumerate(blocks) if beginning.search(block.code)]


def _without_cut_end(code: str, name: str) -> str:
    """Return code without a last statement that is cut off, if the rest defines the function."""
    if parsed(code) is not None:
        return code
    parts = [chunk for chunk in chunks(code) if chunk.text.strip()]
    broken = [bool(chunk.error or chunk.removed) for chunk in parts]
    is_cut_off = any(broken[-1:]) and not any(broken[:-1])
    return _joined(parts[:-1]) if is_cut_off and _define(parts[:-1], name) else code


def _between_prose(text: str, name: str) -> str | None:
    """Return the code in a text, if it defines the function."""
    body = parsed(text)
    if body is not None and not any(map(is_word, body)):
        return text if _define([Chunk(text, body)], name) else None
    parts = code_in(text)
    return _joined(parts) if _define(parts, name) else None


def _joined(parts: list[Chunk]) -> str:
    return "\n".join(chunk.text for chunk in parts) + "\n"


def _define(parts: list[Chunk], name: str) -> bool:
    return any(name in _bound(node) for chunk in parts for node in chunk.body)


def _bound(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement defines, imports or gives a value."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import() | ast.ImportFrom():
            for alias in node.names:
                yield from bound_by(alias)
        case ast.Assign() | ast.AnnAssign():
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
                yield from (each.id for each in parts if isinstance(each, ast.Name))
        case ast.If() | ast.Try() | ast.With() | ast.ExceptHandler():
            for inner in ast.iter_child_nodes(node):
                yield from _bound(inner)


def _with_helpers(code: str, before: list[Block], behind: list[Block]) -> str:
    """Return a program behind what it needs of other blocks: definitions, imports and constants that it lacks."""
    missing = _missing(code) if before or behind else set()
    if not missing:
        return code
    pieces: list[str] = []
    offered: dict[str, int] = {}
    # Of several definitions, the last one before the program counts.
    for block in [*behind[:_MOST_BLOCKS][::-1], *before[-_MOST_BLOCKS:]]:
        lines = block.code.split("\n")
        for node in parsed(block.code) or ():
            if isinstance(node, (*_DEFINE_ONLY, ast.Try, ast.If)):
                offered.update(dict.fromkeys(_bound(node), len(pieces)))
                pieces.append("\n".join(lines[first_line(node) - 1 : node.end_lineno]))
    taken: set[int] = set()
    while missing:
        place = offered.get(missing.pop())
        if place is not None and place not in taken:
            taken.add(place)
            missing |= _missing(pieces[place])
    return put_before("\n".join(pieces[place] for place in sorted(taken)), code)


def _missing(code: str) -> set[str]:
    try:
        top = symtable.symtable(code, "<answer>", "exec")
    except PARSE_ERRORS:
        return set()
    bound = {
        symbol.get_name()
        for symbol in top.get_symbols()
        if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
    }
    used: set[str] = set()
    tables = [top]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        used.update(
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_referenced() and (table is top or symbol.is_global())
        )
    return used - bound - _BUILTINS
