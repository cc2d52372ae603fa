r"""Inputs near the boundaries of golden inputs, in their format. Runs in a helper process, as `variants` does.

>>> near_inputs(["3\n1 2 3\n", "1\n5\n"])[0][:3]
['1\n1\n', '3\n1 1 1\n', '3\n3 2 1\n']
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from codea1_env.reading.inputs import announcing_places, deviation, format_of, kind_of

MOST = 24
"""Inputs made from one golden input at most."""
_FAR = 1_000_000_000
_Lines = list[list[str]]


def near_inputs(inputs: Sequence[str]) -> list[list[str]]:
    """Return for each golden input others: single, repeated, sorted and no items, and numbers at their ends.

    Where a whole number announces how many items or lines follow, it changes with them. What has another format than the
    golden inputs is left out.
    """
    known = format_of(inputs)
    assert known is not None or not inputs
    ends, fixed = _ends(inputs), announcing_places(inputs)
    return [
        list(itertools.islice(_distinct(each, _near(each, ends, fixed), known or {}), MOST))
        for each in inputs
    ]


def _distinct(given: str, made: Iterator[_Lines], known: dict[str, object]) -> Iterator[str]:
    seen = {given}
    for lines in made:
        text = "".join(" ".join(line) + "\n" for line in lines)
        if text not in seen and not deviation(text, known):
            seen.add(text)
            yield text


def _near(text: str, ends: Sequence[int], fixed: set[tuple[int, int]]) -> Iterator[_Lines]:
    lines = [line.split() for line in text.rstrip("\n").split("\n")]
    for place, line in enumerate(lines):
        for items in _lists(line):
            yield _with_items(lines, place, items)
    for count in (1, 0):
        yield from _with_lines(lines, count)
    widths = [len(line[0]) for line in lines if len(line) == 1 and not _is_integer(line[0])]
    for i, line in enumerate(lines):
        for j, word in enumerate(line):
            for other in _words(word, ends) if (i, j) not in fixed else ():
                if widths.count(len(word)) > 1 and len(other) != len(word):
                    continue  # the rows of a grid are of one width
                yield [*lines[:i], [*line[:j], other, *line[j + 1 :]], *lines[i + 1 :]]


def _lists(line: list[str]) -> Iterator[list[str]]:
    """Items of a line: one, the same again, in another order, none."""
    if len(line) < 2:
        return
    yield line[:1]
    yield line[:1] * len(line)
    numeric = all(map(_is_integer, line))
    ordered = sorted(line, key=int) if numeric else sorted(line)
    yield ordered[::-1]
    yield ordered
    yield []


def _with_items(lines: _Lines, place: int, items: list[str]) -> _Lines:
    """Change the items of a line, and a number before it that announced how many there are."""
    old, new = str(len(lines[place])), str(len(items))
    changed = [list(line) for line in lines]
    changed[place] = items
    for line in changed[:place][::-1] if old != new else ():
        if old in line:
            line[line.index(old)] = new
            break
    return changed


def _with_lines(lines: _Lines, count: int) -> Iterator[_Lines]:
    """Keep the first so many of the lines that a number announces."""
    for i, line in enumerate(lines):
        left = len(lines) - i - 1
        for j, word in enumerate(line):
            if word == str(left) and left > count:
                head = [*line[:j], str(count), *line[j + 1 :]]
                yield [*lines[:i], head, *lines[i + 1 : i + 1 + count]]


def _words(word: str, ends: Sequence[int]) -> Iterator[str]:
    if _is_integer(word):
        number = int(word)
        for other in (0, 1, -1, *ends, number + 1, number - 1, -number, _FAR, -_FAR):
            if other != number:
                yield str(other)
    elif kind_of(word) == "w":
        yield from (word[:1], word[::-1], word * 2, word[:1] * len(word), word.swapcase())


def _ends(inputs: Sequence[str]) -> list[int]:
    """The smallest and the largest number of all golden inputs."""
    numbers = [int(word) for text in inputs for word in text.split() if _is_integer(word)]
    return [min(numbers), max(numbers)] if numbers else []


def _is_integer(word: str) -> bool:
    return kind_of(word) == "i"
