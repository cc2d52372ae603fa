"""Golden tests of programs that read standard input: texts of rows -> cases. What has two outputs for one input is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from codea1_env.problem_sets.problem import Problem, check_printed
from codea1_env.problem_sets.rows import show
from codea1_env.reading.inputs import canonical
from codea1_env.sandbox import UNKNOWN, Case
from codea1_env.sandbox.compare import Comparison, same
from codea1_env.sandbox.lines import difference

MAX_GOLDEN_INPUT = 8 << 20
"""Bytes of one input, or of what is printed for it, in a row."""


def program_case(number: int, stdin: object, stdout: object = UNKNOWN) -> Case:
    r"""Return one golden test of a program.

    Args:
        number: Which test of its row it is, from 1; for messages.
        stdin: What the program reads.
        stdout: What it prints; UNKNOWN where the reference is asked.

    Raises:
        TypeError: One of them is no text.
        ValueError: One of them is longer than 8 MiB, or has a NUL or a lone surrogate.

    Example:
        >>> program_case(1, "1 2\n", "3\n")
        Case(args=('1 2\n',), kwargs={}, expected='3\n')
    """
    for name, text in (("stdin", stdin), ("stdout", stdout)):
        if text is UNKNOWN and name == "stdout":
            continue
        if not isinstance(text, str):
            raise TypeError(f"Expect {name} of case {number} to be text, actually: {show(text)}")
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > MAX_GOLDEN_INPUT:
            raise ValueError(
                f"Expect {name} of case {number} to have at most {MAX_GOLDEN_INPUT:,} bytes, actually: {size:,}"
            )
    case = Case((stdin,), {}, stdout)
    check_printed(number, case)
    return case


def own_program_cases(given: object) -> tuple[Case, ...]:
    """Return the cases of a row of the own layout: objects with stdin and stdout."""
    if not isinstance(given, (list, tuple)):
        raise TypeError(f"Expect 'cases' to be a list of objects, actually: {show(given)}")
    for number, item in enumerate(given, 1):
        if (
            not isinstance(item, Mapping)
            or item.keys() - {"stdin", "stdout"}
            or "stdin" not in item
        ):
            raise TypeError(
                f"Expect case {number} of a program to be an object with stdin and stdout, actually: {show(item)}"
            )
    cases = [program_case(number, **item) for number, item in enumerate(given, 1)]
    first_of_inputs(cases)
    return tuple(cases)


def first_of_inputs(cases: Sequence[Case], *, loose: bool = False) -> list[Case]:
    r"""Return the first case of each input, as programs get it.

    Raises a ValueError for two outputs of one input that differ by the rule of lines, or the loose one: a program can print
    one of them.

    Example:
        >>> first_of_inputs([Case(("2\n",), {}, "4"), Case(("2",), {}, "4\n")])
        [Case(args=('2\n',), kwargs={}, expected='4')]
    """
    known: dict[str, tuple[int, Case]] = {}
    for number, case in enumerate(cases, 1):
        first, before = known.setdefault(canonical(case.args[0]), (number, case))
        outputs = before.expected, case.expected
        if UNKNOWN not in outputs and difference(*outputs, loose=loose):
            raise ValueError(
                f"Expect one output for each input, actually cases {first} and {number} have the same input, "
                f"and the outputs {outputs[0][:40]!r} and {outputs[1][:40]!r}"
            )
    return [case for _, case in known.values()]


def check_values(problem: Problem) -> None:
    """Refuse a problem whose function would have to return two values for the same arguments."""
    known: dict[bytes, tuple[int, Case]] = {}
    rule = Comparison(problem.compare)
    for number, (call, case) in enumerate(
        zip(problem.encoded.calls, problem.cases, strict=True), 1
    ):
        first, before = known.setdefault(call, (number, case))
        if not same(case.expected, before.expected, rule):
            raise ValueError(
                f"Expect one value for each call, actually cases {first} and {number} have the same arguments, "
                f"and the values {before.expected!r:.40} and {case.expected!r:.40}"
            )


def program_row(case: Case) -> dict[str, Any]:
    """Return a case as JSON of the own layout."""
    known = {} if case.expected is UNKNOWN else {"stdout": case.expected}
    return {"stdin": case.args[0], **known}
