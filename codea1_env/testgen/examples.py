"""Runs the examples of docstrings as doctest does. Its text stands in programs and runs in the sandbox."""

from __future__ import annotations

import ast
import contextlib
import doctest
import re
from typing import Any

_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
_NOT_HERE = (ImportError, NameError, SyntaxError, OSError, EOFError)
"""What an example raises that does not run on its own, or asks for what the sandbox has not."""
_ABSENT = re.compile("No module named|requires|install")
_NOT_RUN = re.compile(r"\b(input|open|exit|quit)\(")
_CHANGING = re.compile(
    r"\b(time|now|today|date|datetime|random|randint|shuffle|uuid\w*|getpid|id)\b"
)
_NOISE = re.compile(r"\bat 0x[0-9A-Fa-f]+|\b[uU](?=['\"])|\b(?:[A-Za-z_]\w*\.)+(?=[A-Za-z_]\w*\()")
"""Addresses, marks of old Pythons, and the modules before the name of a class."""


class _Runner(doctest.DocTestRunner):
    """Keeps the first example that fails."""

    first: tuple[Any, str] | None = None
    is_lost = False
    """An example could not run, so that those below it may fail for that reason."""

    def _keep(self, example: Any, got: str) -> None:
        if not self.is_lost and self.first is None:
            self.first = (example, got)

    def report_failure(self, out: Any, test: Any, example: Any, got: str) -> None:
        """Keep what came, unless it shows the same in its own way."""
        if not _is_same(example.want, got, test.globs):
            self._keep(example, got.strip() or "nothing")

    def report_unexpected_exception(self, out: Any, test: Any, example: Any, exc_info: Any) -> None:
        """Keep the exception, unless the example names it or could not run here."""
        kind, error, _ = exc_info
        causes = (error, error.__cause__, error.__context__)
        absent = any(isinstance(each, _NOT_HERE) for each in causes) or _ABSENT.search(str(error))
        if absent or not example.want:
            self.is_lost = True
        elif kind.__name__ not in example.want:
            self._keep(example, f"{kind.__name__}: {error}".removesuffix(": "))


def contradiction(text: str, names: dict[str, Any]) -> dict[str, str]:
    r"""Return the first example of a docstring that the program contradicts; empty if there is none.

    Example:
        >>> contradiction(">>> half(4) == 2\nTrue\n>>> half(5)\n3\n", {"half": lambda n: n // 2})
        {'before': '', 'source': 'half(5)', 'want': '3', 'got': '2'}
    """
    try:
        examples = doctest.DocTestParser().get_examples(text)
    except ValueError:
        return {}
    if any(_NOT_RUN.search(each.source) for each in examples):
        return {}
    runner = _Runner(verbose=False, optionflags=_FLAGS)
    test = doctest.DocTest(examples, dict(names), "docstring", None, 0, text)
    runner.run(test, out=lambda _: None)
    if runner.first is None:
        return {}
    example, got = runner.first
    if _CHANGING.search(example.source) or not example.want.strip():
        return {}
    before = [_without_comment(each.source) for each in examples[: examples.index(example)]]
    needed = before if any(map(_defines, before)) else []
    return {
        "before": ("\n" if any("\n" in each for each in needed) else "; ").join(needed),
        "source": _without_comment(example.source),
        "want": (example.exc_msg or example.want).strip(),
        "got": got,
    }


def _defines(source: str) -> bool:
    """Whether what follows may need it: it is more than an expression."""
    with contextlib.suppress(SyntaxError, ValueError):
        return not all(isinstance(each, ast.Expr) for each in ast.parse(source).body)
    return True


def _without_comment(source: str) -> str:
    with contextlib.suppress(SyntaxError, ValueError):
        return ast.unparse(ast.parse(source))
    return source.strip()


def _is_same(want: str, got: str, names: dict[str, Any]) -> bool:
    """Whether two texts show the same value: quotes, the order of a set, or the number of digits may differ."""
    one, other = (_NOISE.sub("", text).replace('"', "'") for text in (want, got))
    if not want.strip() or re.sub(r"[\s']", "", one) == re.sub(r"[\s']", "", other):
        return True
    if "Traceback (most recent" in got and re.search(r"\b\w+(?:Error|Exception)\b", want):
        return got.strip().rpartition("\n")[2].partition(":")[0].rpartition(".")[2] in want
    if sorted(re.findall(r"\w+", one)) == sorted(re.findall(r"\w+", other)):
        return True
    with contextlib.suppress(Exception):
        return _is_near(eval(want.strip(), dict(names)), eval(got.strip(), dict(names)))
    return False


def _is_near(one: Any, other: Any) -> bool:
    if isinstance(one, float) or isinstance(other, float):
        digits = len(repr(one).partition(".")[2])
        rounded = digits > 1 and round(other, digits) == one
        return bool(abs(one - other) <= 1e-6 * abs(other) or rounded)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_is_near, one, other))
    return bool(one == other)
