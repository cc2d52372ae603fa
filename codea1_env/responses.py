r"""Text of a model to a program, or to tests.

A test is a call and the value that it predicts, read from the answer without running it: every assertion that says what
a call returns, wherever it stands. What cannot be read so is dropped with a reason, and is invalid if it is about the
function. Of a coder's answer the last block that defines the function is taken, and never repaired.

Nothing is parsed in this process: `codea1_env.reading` does it, in the sandbox.
"""

from __future__ import annotations

import itertools
import json
import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from codea1_env.problem_sets.rows import above, behind
from codea1_env.problems import Problem
from codea1_env.reading.calls import MAX_CALLS
from codea1_env.reading.examples import RUN
from codea1_env.reading.inputs import MAX_INPUT_BYTES, read_formats
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.reading.programs import read_first_blocks
from codea1_env.reading.programs import read_programs as programs_in
from codea1_env.reading.signatures import read_signatures
from codea1_env.reading.suites import read_suites
from codea1_env.sandbox import AnalysisError, Sandbox
from codea1_env.sandbox.jobs import exact
from codea1_env.support.texts import LRUCache, in_batches

MAX_ACTION_CHARS = 65_536
"""A longer answer holds no program and no tests."""
_SHOWN = 200
_PRINTABLE = str.maketrans("", "", string.printable)
_PRINTABLE_ASCII = string.printable.encode()
_FAULTS = {fault.value: fault for fault in InvalidReason}
_ANY = '{"parameters": null, "yields": false}'
"""The signature of a problem whose texts break the parser."""
_ANY_INPUT = '{"input": null}'
"""The same of a program."""
_YIELDS = '"yields": true}'
"""End of the signature of a function that yields."""


@dataclass(frozen=True)
class Program:
    """The program in a coder's answer."""

    code: str
    problem: str | None = None
    """Why the answer holds no program that could run; None if it may."""
    shown: frozenset[str] = frozenset()
    """Calls whose values its writer has seen in earlier rounds: tests with them do not score it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "code", exact(self.code))


@dataclass(frozen=True)
class Dropped:
    """A part of a tester's answer that is no test."""

    reason: str
    text: str
    invalid: bool = True
    """Whether it counts as an invalid test: it was meant as one. Prose, prints and unused helpers were not."""
    fault: InvalidReason | None = None
    before: int = 0
    """Tests that stand before it in the answer."""


class Test(NamedTuple):
    """A call of the function under test, and the predicted value."""

    call: bytes
    """The arguments as the signature binds them, in the form of `codea1_env.sandbox.encoded_arguments`."""
    predicted: bytes
    """The value, encoded."""
    call_text: str
    """The same text for the same call, such as "f(2, by=3)", or "list(f(2, by=3))" of a function that yields."""
    same_as: str
    """The same text for calls whose arguments are equal: 2 and 2.0, a dict in another order. Those are one test."""
    value: str
    """Source of the predicted value."""
    absolute: float | None = None
    """How much numbers may differ from the value, as the test states it."""
    relative: float | None = None
    """The same as a share of the value. Where both are stated, the wider one counts; where none is, the game's."""
    fault: InvalidReason | None = None
    """What is wrong with it, if that is known without asking the reference."""
    reason: str = ""
    stripped: str = ""
    """What the test takes off the ends of what a program prints: blanks ("strip"), or those behind it ("rstrip")."""

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


def parse_programs(
    answers: Sequence[tuple[str, str | None]],
    sandbox: Sandbox,
    prompts: Sequence[str] = (),
    *,
    first_block: bool = False,
) -> list[Program]:
    """Find the programs in coders' answers.

    Of several blocks it is the last one that defines the entry point, with what it needs of the others in front.

    Args:
        answers: Pairs of the answer and the function that the program must define, if it is known.
        sandbox: Where the texts are read.
        prompts: What the answers may complete, one for each; none by default.
        first_block: Take the first block, as the paper's release does.

    Returns:
        One program for each. An answer that cannot hold one gives a `problem`; whether the code is Python shows when
        it runs.
    """
    answers = [(exact(text), name) for text, name in answers]
    problems = [text_problem(text) for text, _ in answers]
    rows = zip(answers, prompts or [""] * len(answers), problems, strict=True)
    asked = [(*answer, prompt) for answer, prompt, problem in rows if problem is None]
    read = iter(
        in_batches(
            asked,
            lambda answer: len(answer[0]) + len(answer[2]),
            lambda batch: sandbox.analyse(read_first_blocks if first_block else programs_in, batch),
            # The parser has crashed: what Python makes of such a text shows when it runs.
            lambda answer, error: (answer[0], None),
        )
    )
    return [Program(*(next(read) if problem is None else ("", problem))) for problem in problems]


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
    """Find the tests in testers' answers: one suite for each pair of an answer and its problem.

    A test of a program is `OUTSIDE_FORMAT` if its input differs from the golden inputs, where the problem has no validator.
    Another test is `OUTSIDE_SIGNATURE` if its arguments contradict the annotations of the problem's signature, or where it
    has none, the shapes of the arguments in its golden tests and examples.
    """
    answers = [(exact(text), problem) for text, problem in answers]
    reasons = [text_problem(text) for text, _ in answers]
    left = [answer for answer, reason in zip(answers, reasons, strict=True) if reason is None]
    signatures = _signatures([problem for _, problem in left], sandbox)
    yielding = iter([signature.endswith(_YIELDS) for signature in signatures])
    asked = [
        (problem.entry_point, signature, text)
        for (text, problem), signature in zip(left, signatures, strict=True)
    ]

    def read(batch: list[tuple[str, str, str]]) -> list[Any]:
        # A signature is sent once for all texts in a row.
        groups = itertools.groupby(batch, key=lambda item: item[:2])
        sent = [(*about, [text for *_, text in items]) for about, items in groups]
        rows: list[Any] = json.loads(sandbox.analyse(read_suites, sent))
        return rows

    rows = iter(in_batches(asked, lambda item: len(item[2]) + len(item[1]) // 4, read, _unread))
    suites = []
    for (text, problem), reason in zip(answers, reasons, strict=True):
        nothing: Any = [[], [["", reason, text[:_SHOWN], False, 0]]]
        found, left = next(rows) if reason is None else nothing
        call = _call_of(problem, reason is None and next(yielding))
        tests = tuple([_test(call, row) for row in found])
        dropped = tuple(
            [
                Dropped(why, part, invalid, _FAULTS.get(fault), before)
                for fault, why, part, invalid, before in left
            ]
        )
        suites.append(Suite(tests, dropped, nonprintable_ratio(text)))
    return suites


def _call_of(problem: Problem, is_listed: bool) -> str:
    name = problem.entry_point or RUN
    return f"list({name}({{}}))" if is_listed else f"{name}({{}})"


def _test(called: str, row: Sequence[Any]) -> Test:
    call, predicted, arguments, same, value, absolute, relative, fault, reason, stripped = row
    return Test(
        bytes.fromhex(call), bytes.fromhex(predicted), called.format(arguments), same, value,
        absolute, relative, _FAULTS.get(fault), reason, stripped,
    )  # fmt: skip


def joined(texts: Sequence[str], parts: Sequence[Suite]) -> Suite:
    """Join the suites that were found in several texts."""
    tests = tuple(test for part in parts for test in part.tests)
    dropped = tuple(item for part in parts for item in part.dropped)
    return Suite(tests, dropped, nonprintable_ratio("".join(texts)))


def nonprintable_ratio(text: str) -> float:
    r"""Return the share of characters outside `string.printable`.

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
    """Reason why a text cannot be an answer, or None."""
    if not isinstance(text, str):
        raise TypeError(f"Expect an answer to be a str, actually: {type(text)}")
    if len(text) > MAX_ACTION_CHARS:
        return f"the answer is too long: {len(text)} characters, of at most {MAX_ACTION_CHARS}"
    return None if text.strip() else "the answer is empty"


def _unread(item: tuple[str, str, str], error: AnalysisError) -> Any:
    reason = f"cannot be parsed: {error}"[:_SHOWN]
    return [[], [[InvalidReason.UNPARSABLE.value, reason, item[2][:_SHOWN], True, 0]]]


# Signatures are asked once for each problem

_Asked = tuple[str, str, str, tuple[str, ...]]
"""What a signature is read from."""
_remembered = LRUCache[_Asked, str]()


def _signatures(problems: Sequence[Problem], sandbox: Sandbox) -> list[str]:
    keys: list[_Asked] = [
        (problem.prompt, problem.entry_point, problem.reference, _seen(problem))
        for problem in problems
    ]
    known = {key: _remembered.get(key) for key in dict.fromkeys(keys)}
    unknown = [key for key, signature in known.items() if signature is None]

    def read(batch: list[_Asked]) -> list[str]:
        of_program = not batch[0][1]
        if of_program:
            return sandbox.analyse(read_formats, [list(each[3]) for each in batch])
        return sandbox.analyse(read_signatures, [(*each[:3], list(each[3])) for each in batch])

    unknown.sort(key=lambda each: not each[1])
    parts = [list(each) for _, each in itertools.groupby(unknown, key=lambda each: not each[1])]
    found = [
        text for part in parts for text in in_batches(part, _chars, read, lambda key, error: "")
    ]
    for key, signature in zip(unknown, found, strict=True):
        known[key] = signature
        if signature:
            _remembered.put(key, signature, _chars(key) + len(signature))
    return [known[key] or (_ANY if key[1] else _ANY_INPUT) for key in keys]


def _seen(problem: Problem) -> tuple[str, ...]:
    """What shows which arguments a problem means. A validator says it of inputs itself."""
    if problem.kind == "function":
        return problem.golden_calls
    inputs = (case.args[0] for case in problem.cases if not problem.contract.strip())
    return tuple(
        itertools.islice((text for text in inputs if len(text) <= MAX_INPUT_BYTES), MAX_CALLS)
    )


def yielding(problems: Sequence[Problem], sandbox: Sandbox) -> list[bool]:
    """For each problem: does its function yield. Then a call is `list(f(x))`, since an iterator is no data."""
    return [signature.endswith(_YIELDS) for signature in _signatures(problems, sandbox)]


def _chars(asked: _Asked) -> int:
    *texts, tests = asked
    return sum(map(len, (*texts, *tests)))


def read_program(problem: Problem, answer: str, sandbox: Sandbox) -> Program:
    """Find the program in an answer. See `read_programs`."""
    return read_programs([problem], [answer], sandbox)[0]


def read_programs(
    problems: Sequence[Problem],
    answers: Sequence[str],
    sandbox: Sandbox,
    *,
    first_block: bool = False,
) -> list[Program]:
    """Find the programs in answers, see `parse_programs`, and make them whole, see `whole_program`."""
    names = [problem.entry_point for problem in problems]
    asked = list(zip(answers, names, strict=True))
    prompts = [problem.prompt for problem in problems]
    programs = parse_programs(asked, sandbox, prompts, first_block=first_block)
    return [
        Program(whole_program(problem, program.code), program.problem)
        for problem, program in zip(problems, programs, strict=True)
    ]


def whole_program(problem: Problem, code: str) -> str:
    r"""Return a program behind its problem's preamble, or behind the prompt's code above the function.

    Whoever is shown imports and helpers may use them, and need not repeat them; a completion has them, too.

    Example:
        >>> problem = Problem("demo", "from typing import List\n\ndef f(x: List):\n", "f", "def f(x): pass")
        >>> whole_program(problem, "def f(x: List): ...")
        'from typing import List\n\n\ndef f(x: List): ...'
    """
    name = problem.entry_point
    return behind(problem.preamble or (name and above(problem.prompt, name)), code)
