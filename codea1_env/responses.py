r"""Model text -> a program, or tests.

A test is a call and the value that it predicts. Tests are read from the answer, and nothing of it is run: every
assertion that says what a call of the function returns, wherever it stands (at the top level, in functions, in
classes of unittest and pytest, in loops and `parametrize` over literals, as JSON), with names that are bound to
literals. What cannot be read so is dropped with a reason, and counts as invalid if it is about the function.

Of a coder's answer the last block that defines the function is taken, as it is: the text is never repaired.

What stands before the end of the last reasoning block (`</think>`) is not the answer. Nothing is parsed in this
process: `codea1_env.reading` does it, in the sandbox.
"""

from __future__ import annotations

import json
import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from codea1_env.problems import Problem
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.reading.programs import read_programs
from codea1_env.reading.signatures import read_signatures
from codea1_env.reading.suites import read_suites
from codea1_env.sandbox import AnalysisError, Sandbox
from codea1_env.support.texts import LRUCache, in_batches

MAX_ACTION_CHARS = 65_536
"""A longer answer holds no program and no tests."""
_SHOWN = 200
_PRINTABLE = str.maketrans("", "", string.printable)
_PRINTABLE_ASCII = string.printable.encode()
_FAULTS = {fault.value: fault for fault in InvalidReason}
_ANY = '{"parameters": null}'
"""The signature of a problem whose texts break the parser."""


@dataclass(frozen=True)
class Program:
    """The program in a coder's answer."""

    code: str
    """Program text, as it was written."""
    problem: str | None = None
    """Why the answer holds no program that could run; None if it may."""


@dataclass(frozen=True)
class Dropped:
    """A part of a tester's answer of which no test was made."""

    reason: str
    text: str
    invalid: bool = True
    """Whether it counts as an invalid test: it was meant as one. Prose, prints and unused helpers were not."""
    fault: InvalidReason | None = None


class Test(NamedTuple):
    """A call of the function under test, and the value that it is to return."""

    call: bytes
    """The arguments as the signature binds them, in the form of `codea1_env.sandbox.encoded_arguments`."""
    predicted: bytes
    """The value, encoded."""
    call_text: str
    """The same text for the same call, such as "f(2, by=3)"."""
    same_as: str
    """The same text for calls whose arguments are equal: 2 and 2.0, a dict in another order. Those are one test."""
    value: str
    """Source of the predicted value."""
    tolerance: float | None = None
    """How much numbers may differ from the value; None for the default of the game."""
    fault: InvalidReason | None = None
    """What is wrong with it, if that is known without asking the reference."""
    reason: str = ""

    @property
    def text(self) -> str:
        """The test as an assertion, without its tolerance."""
        return f"assert {self.call_text} == {self.value}"


Test.__test__ = False  # type: ignore[attr-defined] # pytest would collect a class of this name


@dataclass(frozen=True)
class Suite:
    """The tests in a tester's answer."""

    tests: tuple[Test, ...]
    """In the order in which they stand there, repetitions included."""
    dropped: tuple[Dropped, ...] = ()
    nonprintable_ratio: float = 0.0
    """Share of characters outside `string.printable` in the whole answer."""


def parse_program(text: str, entry_point: str | None, sandbox: Sandbox) -> Program:
    r"""Find the program in a coder's answer. See `parse_programs`.

    Example:
        >>> with Sandbox(workers=1) as sandbox:
        ...     parse_program("Sure:\n```python\ndef f():\n    return 1\n```", "f", sandbox).code
        'def f():\n    return 1\n'
    """
    return parse_programs([(text, entry_point)], sandbox)[0]


def parse_programs(answers: Sequence[tuple[str, str | None]], sandbox: Sandbox) -> list[Program]:
    """Find the programs in coders' answers.

    Of several blocks it is the last one that defines the entry point, with what it needs of the others in front.

    Args:
        answers: Pairs of the answer and the function that the program must define, if it is known.
        sandbox: Where the texts are read.

    Returns:
        One program for each. An answer that cannot hold one (empty, too long, with a null byte or a lone surrogate)
        gives a `problem`; whether the code is Python shows when it runs.

    Raises:
        InfraError: The texts could not be read, for no reason of theirs.
    """
    programs = [_too_long(text) for text, _ in answers]
    left = [place for place, program in enumerate(programs) if program is None]

    def read(batch: list[tuple[str, str | None]]) -> list[Any]:
        found: list[Any] = sandbox.analyse(read_programs, batch)
        return found

    found = in_batches(
        [answers[place] for place in left],
        lambda answer: len(answer[0]),
        read,
        # The parser has crashed: what Python makes of such a text shows when it runs.
        lambda answer, error: (answer[0], None),
    )
    for place, (code, problem) in zip(left, found, strict=True):
        programs[place] = Program(code, problem)
    return [program for program in programs if program is not None]


def _too_long(text: str) -> Program | None:
    problem = text_problem(text)
    return None if problem is None else Program("", problem)


def parse_suite(text: str, problem: Problem, sandbox: Sandbox) -> Suite:
    r"""Find the tests in a tester's answer. See `parse_suites`.

    Example:
        >>> problem = Problem("demo", "def f(n: int) -> int:", "f", "def f(n): return 2 * n")
        >>> with Sandbox(workers=1) as sandbox:
        ...     suite = parse_suite("x = 1 + 1\nassert f(n=x) == 4\nassert f(x) in (3, 4)", problem, sandbox)
        >>> [test.text for test in suite.tests], suite.dropped[0].text
        (['assert f(2) == 4'], 'assert f(x) in (3, 4)')
    """
    return parse_suites([(text, problem)], sandbox)[0]


def parse_suites(answers: Sequence[tuple[str, Problem]], sandbox: Sandbox) -> list[Suite]:
    """Find the tests in testers' answers.

    A test is at fault (`InvalidReason.OUTSIDE_SIGNATURE`) if its arguments contradict the annotations of the problem's signature,
    or where it has none, the shapes of the arguments in its golden tests and examples.

    Args:
        answers: Pairs of the answer and its problem.
        sandbox: Where the texts are read.

    Returns:
        One suite for each answer.

    Raises:
        InfraError: The texts could not be read, for no reason of theirs.
    """
    reasons = [text_problem(text) for text, _ in answers]
    left = [place for place, reason in enumerate(reasons) if reason is None]
    signatures = _signatures([answers[place][1] for place in left], sandbox)
    asked = [
        (answers[place][1].entry_point, signature, answers[place][0])
        for place, signature in zip(left, signatures, strict=True)
    ]

    def read(batch: list[tuple[str, str, str]]) -> list[Any]:
        groups: list[tuple[str, str, list[str]]] = []
        # A signature is sent once for all texts in a row.
        for entry_point, signature, text in batch:
            if not groups or groups[-1][:2] != (entry_point, signature):
                groups.append((entry_point, signature, []))
            groups[-1][2].append(text)
        rows: list[Any] = json.loads(sandbox.analyse(read_suites, groups))
        return rows

    rows = in_batches(asked, lambda item: len(item[2]) + len(item[1]) // 4, read, _unread)
    found: dict[int, Any] = dict(zip(left, rows, strict=True))
    suites = []
    for place, ((text, problem), reason) in enumerate(zip(answers, reasons, strict=True)):
        unread: Any = ([], [["", reason, text[:_SHOWN], False]])
        tests, dropped = found.get(place, unread)
        suites.append(
            Suite(
                tuple([_test(problem.entry_point, *row) for row in tests]),
                tuple([Dropped(row[1], row[2], row[3], _FAULTS.get(row[0])) for row in dropped]),
                nonprintable_ratio(text),
            )
        )
    return suites


def _test(
    name: str,
    call: str,
    predicted: str,
    arguments: str,
    same_as: str,
    value: str,
    tolerance: float | None,
    fault: str,
    reason: str,
) -> Test:
    return Test(
        bytes.fromhex(call),
        bytes.fromhex(predicted),
        f"{name}({arguments})",
        same_as,
        value,
        tolerance,
        _FAULTS[fault] if fault else None,
        reason,
    )


def nonprintable_ratio(text: str) -> float:
    r"""The share of characters outside `string.printable`: all but ASCII letters, digits, signs and spaces.

    Example:
        >>> nonprintable_ratio("caf\u00e9")
        0.25
    """
    if not text:
        return 0.0
    if text.isascii():  # much faster
        return len(text.encode().translate(None, _PRINTABLE_ASCII)) / len(text)
    return len(text.translate(_PRINTABLE)) / len(text)


def text_problem(text: str) -> str | None:
    """Why a text cannot be an answer at all, or None.

    Raises:
        TypeError: It is no text.
    """
    if not isinstance(text, str):
        raise TypeError(f"Expect an answer to be a str, actually: {type(text)}")
    if len(text) > MAX_ACTION_CHARS:
        return f"the answer is too long: {len(text)} characters, of at most {MAX_ACTION_CHARS}"
    return None if text.strip() else "the answer is empty"


def _unread(item: tuple[str, str, str], error: AnalysisError) -> Any:
    reason = f"cannot be parsed: {error}"[:_SHOWN]
    return [[], [[InvalidReason.UNPARSABLE.value, reason, item[2][:_SHOWN], True]]]


# Signatures are asked once for each problem

_Asked = tuple[str, str, str, tuple[str, ...]]
"""What a signature is read from."""
_remembered = LRUCache[_Asked, str]()


def _signatures(problems: Sequence[Problem], sandbox: Sandbox) -> list[str]:
    different = {id(problem): problem for problem in problems}
    keys: dict[int, _Asked] = {
        place: (problem.prompt, problem.entry_point, problem.reference, problem.all_tests)
        for place, problem in different.items()
    }
    known = {key: _remembered.get(key) for key in keys.values()}
    unknown = [key for key, signature in known.items() if signature is None]
    if unknown:
        failed: set[_Asked] = set()

        def read(batch: list[_Asked]) -> list[str]:
            asked = [(*each[:3], list(each[3])) for each in batch]
            return sandbox.analyse(read_signatures, asked)

        def unread(key: _Asked, error: AnalysisError) -> str:
            failed.add(key)
            return _ANY

        found = in_batches(unknown, _chars, read, unread)
        for key, signature in zip(unknown, found, strict=True):
            known[key] = signature
            if key not in failed:
                _remembered.put(key, signature, _chars(key) + len(signature))
    return [known[keys[id(problem)]] or _ANY for problem in problems]


def _chars(asked: _Asked) -> int:
    *texts, tests = asked
    return sum(map(len, (*texts, *tests)))
