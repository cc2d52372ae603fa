r"""What programs read: one form of each input, and the format that golden inputs share.

Runs inside `Sandbox.analyse`. A line of a format is what its words are: whole numbers, numbers, others. An input has the
format if each of its lines follows one that golden inputs show before such a line. Numbers of lines, and of words of a
line, count where all golden inputs have the same and no whole number before it announces it. Only where a golden input has
characters other than printable ASCII, an input may.

    >>> shown = ["3\n1 2 3\n", "1\n7\n"]
    >>> [deviation(each, format_of(shown)) for each in ("2\n5 6\n", "2\n5 x\n", "2\n")]
    ['', 'line 2 is whole numbers and words, which no golden input has there', 'it has 1 line, the golden inputs 2']
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from itertools import groupby, pairwise
from typing import Any

from codea1_env.sandbox.inside.analysis.literals import NotLiteralError

from .syntax import lone_surrogate

MAX_INPUT_BYTES = 65_536
"""Of an input of a test."""
_MANY = 3
"""Shapes of lines with words, above which a line is a text in which anything may stand."""
_INTEGER = re.compile(r"[+-]?[0-9]{1,4000}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_UNUSUAL = re.compile(r"[^ -~\t\r\n]")
"""Characters that a program which reads bytes may not expect where no golden input has any."""
_NAMES = {"i": "whole numbers", "d": "numbers", "w": "words", "": "empty", "$": "the end"}
_PARAMETERS = ("stdin", "input", "text")


def canonical(text: str) -> str:
    r"""Return the form in which an input is given to programs: lines end as in Unix, the last one, too.

    Example:
        >>> canonical("1 2\r\n3")
        '1 2\n3\n'
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if not text or text.endswith("\n") else f"{text}\n"


def normal(text: str) -> str:
    """Return the same text for inputs that differ only in blanks behind a line and empty lines at the end."""
    return "\n".join(line.rstrip() for line in canonical(text).rstrip().split("\n"))


def left_by(method: str, printed: Any) -> Any:
    r"""Return what a method of texts leaves of what a program prints: "strip", "rstrip", or "" for none.

    Example:
        >>> left_by("strip", " 2\n"), left_by("rstrip", " 2\n"), left_by("", " 2\n")
        ('2', ' 2', ' 2\n')
    """
    if type(printed) is not str or not method:
        return printed
    return printed.strip() if method == "strip" else printed.rstrip()


def plain(text: str) -> str:
    r"""Return an input with one blank between words and none before them, and whole numbers without plus and leading zeros.

    Example:
        >>> plain("03\n +1  -02 x\n")
        '3\n1 -2 x'
    """
    return "\n".join(" ".join(map(_plain_word, line.split())) for line in normal(text).split("\n"))


def _plain_word(word: str) -> str:
    if not _INTEGER.fullmatch(word):
        return word
    digits = word.lstrip("+-").lstrip("0")
    return ("-" if word[0] == "-" and digits else "") + (digits or "0")


class InputSignature:
    r"""What programs take: one text, in the format of the golden inputs. Stands for a `Signature`.

    Example:
        >>> signature = InputSignature('{"input": null}')
        >>> signature.bound(["1 2"], {})
        (['1 2\n'], {}, ["'1 2\\n'"])
    """

    fault = "outside the format"
    longest = MAX_INPUT_BYTES
    """Characters of the literal of an input."""

    def __init__(self, text: str) -> None:
        self._format: dict[str, Any] | None = json.loads(text)["input"]

    def bound(
        self, arguments: list[Any], keywords: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any], list[str]]:
        """The input in its one form, and as a literal.

        Raises:
            NotLiteralError: It is not one text, too long, or has characters that no text file has.
        """
        given = [*arguments, *keywords.values()]
        named = all(name in _PARAMETERS for name in keywords)
        if len(given) != 1 or not named or type(given[0]) is not str:
            raise NotLiteralError("a program reads one text")
        text = given[0]
        # Blanks and spellings that no golden input has could break what reads the golden inputs.
        if self._format and not self._format["blanks"]:
            text = plain(text) if self._format["plain"] else normal(text)
        text = canonical(text)
        if "\0" in text:
            raise NotLiteralError("the input has a NUL")
        if bad := lone_surrogate(text):
            raise NotLiteralError(f"the input has a lone surrogate ({bad})")
        if (size := len(text.encode())) > MAX_INPUT_BYTES:
            said = f"the input has {size:,} bytes, of at most {MAX_INPUT_BYTES:,}"
            raise NotLiteralError(said)
        return [text], {}, [repr(text)]

    def outside(self, arguments: list[Any], keywords: dict[str, Any]) -> str:
        """Why an input has another format than the golden inputs, "" if it has theirs."""
        return deviation(arguments[0], self._format) if self._format else ""

    @staticmethod
    def as_returned(value: Any) -> Any:
        """The text that is printed where a test predicts a number: `int(run("2")) == 4`."""
        return str(value) if type(value) in (int, float) else value

    def same_as(self, arguments: list[Any], keywords: dict[str, Any], source: str) -> str:
        """The same text for the same input."""
        return repr(normal(arguments[0]))


def read_formats(problems: list[list[str]]) -> list[str]:
    """Return the formats of problems' golden inputs, as JSON for `InputSignature`."""
    return [json.dumps({"input": format_of(inputs)}) for inputs in problems]


def format_of(inputs: Sequence[str]) -> dict[str, Any] | None:
    """The format of golden inputs, as data for `deviation`; None where there are none."""
    lines = [_lines(text) for text in inputs]
    if not lines:
        return None
    shapes = [_shapes(each) for each in lines]
    texts = {shape for each in shapes for shape in each if "w" in shape}
    if len(texts) > _MANY:
        shapes = [["w" if "w" in shape else shape for shape in each] for each in shapes]
    fewest, most = min(map(len, lines)), max(map(len, lines))

    def words(place: int, end: int) -> int | None:
        """Number of words on these lines of all inputs, if it is one and nothing announces it."""
        counts = {len(line) for each in lines for line in each[place:end]}
        return (
            counts.pop() if len(counts) == 1 and not _announcing(lines, _of_words(place)) else None
        )

    return {
        "follows": sorted({pair for each in shapes for pair in pairwise(["^", *each, "$"])}),
        "blanks": any(normal(text) != canonical(text).removesuffix("\n") for text in inputs),
        "plain": all(plain(text) == normal(text) for text in inputs),
        "is_text": len(texts) > _MANY,
        "ascii": not any(map(_UNUSUAL.search, inputs)),
        "lines": fewest if fewest == most and not _announcing(lines, _of_lines) else None,
        "words": [words(place, place + 1) for place in range(fewest)],
        "rest": words(fewest, most),
    }


def deviation(text: str, known: dict[str, Any]) -> str:
    """Why an input has not a known format; "" if it has."""
    if known["ascii"] and (found := _UNUSUAL.search(text)):
        return f"it has U+{ord(found[0]):04X}, the golden inputs only printable ASCII"
    lines = _lines(text)
    count = known["lines"]
    if count is not None and len(lines) != count:
        return f"it has {_counted(len(lines), 'line')}, the golden inputs {count}"
    follows = {(before, after) for before, after in known["follows"]}
    before = {"^"}
    for number, shape in enumerate([*_shapes(lines), "$"], 1):
        shape = "w" if known["is_text"] and "w" in shape else shape
        after = {shape, "d"} if shape == "i" else {shape}  # a whole number is a number
        before = {each for each in after for last in before if (last, each) in follows}
        if not before:
            if shape == "$":
                return f"it ends behind line {number - 1}, where no golden input does"
            return f"line {number} is {_described(shape)}, which no golden input has there"
    words = [*known["words"], *[known["rest"]] * len(lines)]
    for number, (line, count) in enumerate(zip(lines, words, strict=False), 1):
        if count is not None and len(line) != count:
            return f"line {number} has {_counted(len(line), 'word')}, in the golden inputs {count}"
    return ""


def _lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.rstrip().split("\n")] if text.strip() else []


def _shapes(lines: list[list[str]]) -> list[str]:
    """Kinds of the words of each line: "i", "d", or where words that are no numbers stand among them, such as "wi"."""
    shapes = []
    for line in lines:
        kinds = "".join(kind for kind, _ in groupby(map(kind_of, line)))
        shapes.append(kinds if "w" in kinds else ("d" if "d" in kinds else kinds[:1]))
    return shapes


def kind_of(word: str) -> str:
    """Kind of a word: "i" for a whole number, "d" for another number, "w" else."""
    if _INTEGER.fullmatch(word):
        return "i"
    return "d" if _NUMBER.fullmatch(word) else "w"


# Which whole numbers announce how much follows

_Announces = Callable[[list[list[str]], int, int, int], bool]
"""Lines of an input, line and place of a whole number, the number -> whether it announces something."""


def announcing_places(inputs: Sequence[str]) -> set[tuple[int, int]]:
    r"""Places, line and word, at which each input has a number that says how much follows: words, lines, or letters.

    Example:
        >>> announcing_places(["3\n1 2 3\n", "1\n5\n"]), announcing_places(["1 2\n", "5 5\n"])
        ({(0, 0)}, set())
    """
    return _announcing([_lines(text) for text in inputs], _of_anything)


def _announcing(inputs: list[list[list[str]]], announces: _Announces) -> set[tuple[int, int]]:
    """Return the places at which each input has a number that announces something."""
    found = [
        {
            (i, j)
            for i, line in enumerate(lines)
            for j, word in enumerate(line)
            if len(word) < 8 and _INTEGER.fullmatch(word) and announces(lines, i, j, int(word))
        }
        for lines in inputs
    ]
    return set.intersection(*found) if found else set()


def _of_anything(lines: list[list[str]], i: int, j: int, number: int) -> bool:
    below = [line for line in lines[i + 1 : i + 2] if line]
    letters_or_words = any(number in (len(line), len(line[0])) for line in below)
    return letters_or_words or len(lines[i]) - j - 1 == number or _of_lines(lines, i, j, number)


def _of_lines(lines: list[list[str]], i: int, j: int, number: int) -> bool:
    """So many lines follow, or groups of lines of one size."""
    left = len(lines) - i - 1
    return number > 0 and left > 0 and left % number == 0


def _of_words(place: int) -> _Announces:
    """So many words stand on a line, behind the number or below it."""

    def announces(lines: list[list[str]], i: int, j: int, number: int) -> bool:
        if i == place:
            return len(lines[i]) - j - 1 == number
        return i < place and all(len(line) == number for line in lines[place : place + 1])

    return announces


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _described(shape: str) -> str:
    return " and ".join(_NAMES[kind] for kind in shape or [""])
