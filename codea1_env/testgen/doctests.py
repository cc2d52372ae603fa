"""Runs the examples of docstrings as doctest does. Its text is appended to the program, and runs in the sandbox.

An example contradicts the program only if doctest says so, and if what it shows does not mean the same as what came:
many examples are right although doctest refuses them, because they leave out quotes or the line `Traceback`, or show
a set in another order.
"""

from __future__ import annotations

import ast
import builtins
import cmath
import collections
import contextlib
import datetime
import decimal
import doctest
import fractions
import itertools
import re
import sys
from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from typing import Any

_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
_NOISE = re.compile(
    r"(?<= at )0x[0-9A-Fa-f]+|\b[uU](?=['\"])|\s+|\b(?:[A-Za-z_]\w*\.)+(?=[A-Za-z_]\w*\()"
)
"""What says nothing: addresses, spaces, and modules before the name of a class, which versions and a ``__repr__`` of
one's own leave out."""
_OWN_MISTAKES = (NameError, ImportError, SyntaxError, OSError, EOFError)
"""What an example raises that does not run on its own, or that asks for what the sandbox has not."""
_NEAR = 1e-6
_DATED = re.compile(r"date|time|\d{4}-\d\d")
_SET = re.compile(r"set\(|\{[^:{}]+\}")
"""An example that makes a set."""
_ENDS = re.compile(r"\b(input|open|exit|quit)\(")
_VIEWS = (Iterator, KeysView, ValuesView, ItemsView)
_CLOCKS = re.compile(r"\b(time|now|today|utcnow|localtime|random|randint|shuffle|uuid4)\b")
_KNOWN: dict[str, Any] = {
    "OrderedDict": collections.OrderedDict, "defaultdict": collections.defaultdict, "deque": collections.deque,
    "Counter": collections.Counter, "Decimal": decimal.Decimal, "Fraction": fractions.Fraction,
    "datetime": datetime, "nan": float("nan"), "inf": float("inf"),
}  # fmt: skip


class _Runner(doctest.DocTestRunner):
    """Keeps what came of each example that fails instead of printing it."""

    def __init__(self, sets: bool) -> None:
        super().__init__(verbose=False, optionflags=_FLAGS)
        self.found: dict[int, tuple[str, str, bool]] = {}
        """By line: "returns", "prints" or "raises"; what; and whether the example is to blame."""
        self._sets = sets
        self._returned = False
        self._value: Any = None

    def display(self, value: Any) -> None:
        """Show what an expression gave, as Python does."""
        if value is not None:
            self._returned, self._value = True, value
            print(repr(value))

    def report_start(self, out: Any, test: Any, example: Any) -> None:
        """Say nothing."""
        self._returned, self._value = False, None

    def report_success(self, out: Any, test: Any, example: Any, got: str) -> None:
        """Say nothing."""

    def report_failure(self, out: Any, test: Any, example: Any, got: str) -> None:
        """Keep what came, unless it means the same."""
        if example.exc_msg is not None and got.startswith("Traceback (most recent"):
            said = got.strip().rpartition("\n")[2]
            kind = getattr(builtins, said.partition(":")[0], None)
            self.found[example.lineno] = ("raises", said, _is_own_mistake(kind))
        elif not (
            _same(example.want, got, test.globs)
            or _has(self._value, example.want)
            or ((self._sets or _SET.search(example.source)) and _is_reordered(example.want, got))
        ):
            form = "returns" if self._returned or not got else "prints"
            self.found[example.lineno] = (form, got.strip() or "None", False)

    def report_unexpected_exception(self, out: Any, test: Any, example: Any, exc_info: Any) -> None:
        """Keep what was raised, unless the example says so in its own way."""
        kind, error, _ = exc_info
        if not re.search(rf"\b{kind.__name__}\b", example.want):
            text = f"{kind.__name__}: {error}" if str(error) else kind.__name__
            own = _is_own_mistake(kind) or _is_shorthand(example.source, error, test.globs)
            self.found[example.lineno] = ("raises", text, own)


def _is_own_mistake(kind: Any) -> bool:
    known = isinstance(kind, type) and issubclass(kind, _OWN_MISTAKES)
    return known and kind is not UnboundLocalError


def run_examples(text: str, names: dict[str, Any], sets: bool = False) -> list[dict[str, Any]]:
    r"""Run the examples of one docstring in a copy of these names.

    Args:
        text: The docstring.
        names: Those of the module.
        sets: The program makes sets, so that another order of a list is no other result.

    Returns:
        For each example that shows something else than came: ``line`` (in the text, from 0), ``source``,
        ``want``, ``form`` ("returns", "prints" or "raises") and ``got``. Examples below one that cannot be run here
        (it imports what is not there, or an earlier line has failed) are left out.

    Example:
        >>> run_examples(">>> half(4) == 2\nTrue\n>>> half(5)\n3\n", {"half": lambda n: n // 2})
        [{'line': 2, 'source': 'half(5)', 'want': '3', 'form': 'returns', 'got': '2'}]
    """
    try:
        examples = doctest.DocTestParser().get_examples(text)
    except ValueError:
        return []
    names = dict(names)
    runnable = [*itertools.takewhile(lambda each: _can_run(each, names), examples)]
    runner, display = _Runner(sets), sys.__displayhook__
    sys.__displayhook__ = runner.display  # which doctest uses
    try:
        test = doctest.DocTest(runnable, names, "docstring", None, 0, text)
        runner.run(test, out=lambda _: None, clear_globs=False)
    finally:
        sys.__displayhook__ = display
    found: list[dict[str, Any]] = []
    for example in runnable:
        form, got, own = runner.found.get(example.lineno, ("", "", False))
        if own or (form == "raises" and not example.want):
            break  # what follows may need it
        if form and example.want and not _CLOCKS.search(example.source):
            source = re.sub(r"\s*#\s*doctest:.*", "", example.source).strip()
            want = (example.exc_msg or example.want).strip()
            row = {"line": example.lineno, "source": source, "want": want, "form": form, "got": got}
            found.append(row)
    return found


def _can_run(example: Any, names: dict[str, Any]) -> bool:
    """Whether an example can be run: the package of the program need not be there, if its names are."""
    if _ENDS.search(example.source):
        return False
    try:
        body = ast.parse(example.source).body
    except (SyntaxError, ValueError):
        return True  # doctest says what is wrong
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            try:
                exec(ast.unparse(node), dict(names))
            except Exception:
                known = {alias.asname or alias.name for alias in node.names} <= {*names, "*"}
                if isinstance(node, ast.Import) or not known:
                    return False
                example.source = "pass\n"
    return True


def _same(want: str, got: str, names: dict[str, Any]) -> bool:
    """Whether two texts show the same value."""
    if not want.strip() or _plain(want) == _plain(got) or _is_of_today(want, got):
        return True
    scope = {**_KNOWN, **names}
    with contextlib.suppress(Exception):
        found = ast.literal_eval(got.strip())
        if isinstance(found, str) and _plain(found) == _plain(want):
            return True
    with contextlib.suppress(Exception):
        return _equal(eval(want.strip(), dict(scope)), eval(got.strip(), dict(scope)))
    return False


def _is_of_today(want: str, got: str) -> bool:
    """Whether dates differ in nothing but what they have from the day on which the example runs."""
    one, other = (re.split(r"(\d+)", _plain(text)) for text in (want, got))
    day = datetime.date.today()
    ours = {day.year, day.month, day.day}
    return (
        _DATED.search(got) is not None
        and one[::2] == other[::2]
        and all(a == b or int(b) in ours for a, b in zip(one[1::2], other[1::2], strict=True))
    )


def _has(value: Any, want: str) -> bool:
    """Whether an iterator or a view gives what is shown as a list."""
    with contextlib.suppress(Exception):
        expected = ast.literal_eval(want.strip())
        return (
            isinstance(value, _VIEWS)
            and isinstance(expected, (list, tuple, set))
            and _equal([*expected], [*itertools.islice(value, len(expected) + 1)])
        )
    return False


def _is_reordered(want: str, got: str) -> bool:
    """Whether two lists have the same in another order."""
    with contextlib.suppress(Exception):
        return bool(_sorted(ast.literal_eval(want.strip())) == _sorted(ast.literal_eval(got)))
    return False


def _sorted(value: Any) -> Any:
    return sorted(map(_sorted, value), key=repr) if isinstance(value, (list, tuple)) else value


def _is_shorthand(source: str, error: BaseException, names: dict[str, Any]) -> bool:
    """Whether a method is called on its class, as in ``Stack.pop()``: readers know that an object is meant."""
    owner = re.match(r"\s*(\w+)\.\w+\(", source)
    of_class = owner is not None and isinstance(names.get(owner[1]), type)
    return of_class and isinstance(error, TypeError) and "missing" in str(error)


def _plain(text: str) -> str:
    return _NOISE.sub("", text).replace('"', "'")


def _rounds(found: Any, shown: Any) -> bool:
    """Whether a number is shown with fewer digits, two at least."""
    _, _, digits = repr(shown).partition(".")
    return len(digits) > 1 and digits.isdecimal() and bool(round(found, len(digits)) == shown)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, (float, complex)) or isinstance(other, (float, complex)):
        # Shown with fewer digits than Python does, it still is that number.
        return one == other or cmath.isclose(one, other, rel_tol=_NEAR) or _rounds(other, one)
    if isinstance(one, (list, tuple)) and type(one) is type(other):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    return bool(one == other)
