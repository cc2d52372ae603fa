"""Inputs and outputs of contest problems, as public sets have them, made into cases.

What can be read in two ways is refused, with the number of the test: a wrong test costs more than a lost one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from codea1_env.problem_sets.livecodebench import json_of
from codea1_env.problem_sets.program_cases import MAX_GOLDEN_INPUT, first_of_inputs, program_case
from codea1_env.problem_sets.rows import show
from codea1_env.sandbox import Case


class Tests(NamedTuple):
    """Inputs and outputs as a row has them, and the function that takes them; "" for programs that read."""

    inputs: Sequence[Any]
    outputs: Sequence[Any]
    function: str = ""


def printed_cases(tests: Tests) -> list[Case]:
    r"""Return the cases of programs that read standard input, each input once.

    Raises what `program_case` raises, and a ValueError for two outputs of one input.

    Example:
        >>> for case in printed_cases(Tests(["2\n", ["1", "2"]], ["4", None])):
        ...     print(case.args, repr(case.expected))
        ('2\n',) '4'
        ('1\n2\n',) ''
    """
    pairs = zip(tests.inputs, tests.outputs, strict=True)
    cases = [program_case(number, *map(_text, pair)) for number, pair in enumerate(pairs, 1)]
    return first_of_inputs(cases, loose=True)


def _text(value: Any) -> Any:
    """Return the text of a list of lines, and no text for None; anything else as it is."""
    if _is_list(value) and value and all(map(_is_list, value)):
        # One list of lines, or a list for each line: where both are possible, nobody knows.
        if len(value) == 1:
            value = value[0]
        elif all(len(line) == 1 for line in value):
            value = [line[0] for line in value]
    if _is_list(value) and all(isinstance(line, str) for line in value):
        return "".join(line.removesuffix("\n") + "\n" for line in value)
    return "" if value is None else value


def called_cases(tests: Tests, starter: str) -> Iterator[Case]:
    """Yield the cases of a function: lists of arguments and values, or JSON text of both with an argument a line.

    Args:
        tests: They name a function.
        starter: What the problem gives, with the annotations of the function, or "".

    Raises a TypeError for inputs that are neither, a ValueError for text that is no JSON.

    Example:
        >>> [*called_cases(Tests([[2], [3]], [[4], [6]], "double"), "")]
        [Case(args=(2,), kwargs={}, expected=4), Case(args=(3,), kwargs={}, expected=6)]
    """
    wrapped = _wrapped(tests.outputs, starter)
    for number, (given, value) in enumerate(zip(tests.inputs, tests.outputs, strict=True), 1):
        if isinstance(given, str) and isinstance(value, str):
            _check_size(f"input {number}", len(given))
            lines = [line for line in given.split("\n") if line.strip()]
            arguments = [json_of(f"input {number}", line) for line in lines]
            yield Case(tuple(arguments), {}, json_of(f"output {number}", value))
        elif _is_list(given):
            # JSON has no numbers as keys. The graders of these sets restore them where a dict is the only argument.
            arguments = [_with_numbers(given[0])] if len(given) == 1 else given
            yield Case(tuple(arguments), {}, _with_numbers(value[0] if wrapped else value))
        else:
            raise TypeError(
                f"Expect input {number} to be a list of arguments, or it and output {number} to be JSON text, "
                f"actually: {show(given)} and {show(value)}"
            )


def check_sizes(frames: Sequence[bytes]) -> None:
    """Refuse calls that are too large."""
    for number, frame in enumerate(frames, 1):
        _check_size(f"input {number}", len(frame))


def _check_size(what: str, size: int) -> None:
    if size > MAX_GOLDEN_INPUT:
        raise ValueError(
            f"Expect {what} to have at most {MAX_GOLDEN_INPUT:,} bytes, actually: {size:,}"
        )


def _with_numbers(value: Any) -> Any:
    keys = value if isinstance(value, Mapping) else ()
    numbers = bool(keys) and all(re.fullmatch(r"-?[0-9]{1,18}", str(key)) for key in keys)
    return {int(key): item for key, item in value.items()} if numbers else value


def _wrapped(outputs: Sequence[Any], starter: str) -> bool:
    """Whether each value stands in a list of its own, as in the rows that APPS has from Codewars."""
    if not all(_is_list(each) and len(each) == 1 for each in outputs):
        return False
    said = re.search(r"->\s*((?:(?:typing\.)?[Ll]ist\[)*)", starter)
    depth, level = 0, list(outputs)
    while said and depth <= said[1].count("[") and any(map(_is_list, level)):
        depth, level = depth + 1, [item for each in level if _is_list(each) for item in each]
    return said is None or depth > said[1].count("[")


def _is_list(value: object) -> bool:
    return isinstance(value, (list, tuple))
