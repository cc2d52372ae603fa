"""A problem: what the coder is asked for, and how an answer is judged."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from codea1_env.compare import COMPARISONS, Compare
from codea1_env.problem_sets.golden import Golden, read_statements
from codea1_env.reading.calls import MAX_CALLS
from codea1_env.reading.examples import RUN, called
from codea1_env.sandbox import UNKNOWN, Case, EncodedCases, encoded_cases
from codea1_env.sandbox.inside.analysis.literals import write
from codea1_env.sandbox.jobs import exact

Kind = Literal["function", "program"]
"""What a problem asks for: a function that is called, or a program that reads standard input and prints."""


class ProblemsError(ValueError):
    """A problem set that cannot be used.

    Attributes:
        where: File and line, or data set and row; empty when the whole source is meant.
        expectation: What was expected there, what was found, and what to do.
    """

    def __init__(self, where: str, expectation: str) -> None:
        super().__init__(f"{where}: {expectation}" if where else expectation)
        self.where = where
        self.expectation = expectation

    def __reduce__(self) -> tuple[Any, ...]:
        return ProblemsError, (self.where, self.expectation)


class GoldenStatements(Sequence[str]):
    """The golden tests as text, `assert f(args) == value`, written when somebody asks for them.

    Cases that no statement says are left out: those of an unknown value, and those of functions that are compared by a
    rule of their own.
    """

    def __init__(self, entry_point: str, cases: tuple[Case, ...]) -> None:
        self._entry_point = entry_point
        self._cases = cases

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """All of them."""
        texts = (statement(self._entry_point, case) for case in self._cases)
        return tuple(text for text in texts if text is not None)

    def __getitem__(self, index: Any) -> Any:
        return self.texts[index]

    def __len__(self) -> int:
        return len(self.texts)

    def __eq__(self, other: object) -> bool:
        return self.texts == getattr(other, "texts", other)

    def __hash__(self) -> int:
        return hash(self.texts)

    def __repr__(self) -> str:
        return repr(self.texts)

    def __reduce__(self) -> tuple[Any, ...]:
        return GoldenStatements, (self._entry_point, self._cases)


def statement(entry_point: str, case: Case) -> str | None:
    """Return a case as a statement; None if there is none, or it is too long to be read again.

    Example:
        >>> statement("Solution.f", Case((1,), {"by": [2]}, 3))
        'assert Solution().f(1, by=[2]) == 3'
    """
    value = None if case.expected is UNKNOWN else write(case.expected)
    call = None if value is None else call_of(entry_point, case)
    return None if call is None else f"assert {call} == {value}"


def call_of(entry_point: str, case: Case) -> str | None:
    """Return the call of a case as text; None if there is none, or an argument is too long to be read again."""
    named = [(f"{name}=", value) for name, value in case.kwargs.items()]
    texts = [(name, write(value)) for name, value in [*(("", each) for each in case.args), *named]]
    if any(text is None for _, text in texts):
        return None
    given = ", ".join(f"{name}{text}" for name, text in texts)
    return f"{called(entry_point)}({given})"


@dataclass(frozen=True)
class Problem:
    """One programming problem.

    Attributes:
        task_id: Names the problem; unique in its set. The Mistake Book files tests under it.
        prompt: What the coder sees: imports that the signature needs, the signature, the docstring.
        entry_point: Name of the function that is asked for, or `Solution.f` for a method of a new instance; "" where a
            program is run and nothing of it called.
        reference: A complete program that solves the problem. "" where none is known, as in LiveCodeBench: such
            a problem can be evaluated on, and played only with `oracle="coder"`.
        tests: Golden tests as text. Statements that are given here are read into `cases` and take the place of those
            given there; what cannot be data of them goes to `test_module`. Afterwards this is a view of the cases.
        metadata: Texts such as source, difficulty and split.
        preamble: Program text that stands before every program that is judged: what the problem gives, such
            as imports.
        cases: Golden tests as data. Where programs read standard input: `Case((stdin,), {}, stdout)`.
        compare: When an output is right, see `codea1_env.compare`.
        atol: Absolute tolerance of floats; 0 for that of the rule.
        checker: Text that defines `check(args, output, expected) -> bool`, for problems of several right outputs;
            where programs print `check(stdin, output_text, expected_text)`. It takes the place of `compare`.
        contract: Python text with asserts over the parameters of the function: which arguments the problem
            speaks of. A test that calls with others is invalid. It may import from the standard library. Where programs
            read standard input, it defines `check(stdin)`, which asserts and returns None.
        test_module: A test module for pytest or unittest, of what cannot be data. It shares a process with the
            program, which can forge its verdict: nothing of it reaches a reward.
        base: How many of the first cases are those of the original data set, where the set says so (MBPP+).
        kind: "function", or "program": it reads standard input and prints. An empty `entry_point` says the same.

    Raises:
        TypeError: A field has the wrong type.
        ValueError: A field has a value that cannot be used.

    Example:
        >>> problem = Problem(
        ...     task_id="demo/double",
        ...     prompt="def double(x: int) -> int:",
        ...     entry_point="double",
        ...     reference="def double(x): return 2 * x",
        ...     tests=["assert 4 == double(2)"],
        ... )
        >>> problem.cases, problem.tests
        ((Case(args=(2,), kwargs={}, expected=4),), ('assert double(2) == 4',))
    """

    task_id: str
    prompt: str
    entry_point: str
    reference: str
    tests: Sequence[str] = field(default=(), compare=False)
    metadata: Mapping[str, str] = field(default_factory=dict, hash=False)
    preamble: str = ""
    cases: tuple[Case, ...] = field(default=(), repr=False)
    compare: Compare = "equal"
    atol: float = 0.0
    checker: str = ""
    contract: str = ""
    test_module: str = ""
    base: int = 0
    kind: Kind = "function"

    def __post_init__(self) -> None:
        for name in _TEXTS:
            _check_text(name, getattr(self, name))
            object.__setattr__(self, name, exact(getattr(self, name)))
        for name in ("task_id", "prompt"):
            _check(bool(getattr(self, name).strip()), f"{name} not to be empty")
        self._check_kind()
        self._check_rule()
        self._take_statements()
        if not isinstance(self.metadata, Mapping):
            raise TypeError(f"Expect Problem.metadata to be a mapping: {type(self.metadata)}")
        for key, value in self.metadata.items():
            _check_text("a key of metadata", key)
            _check_text(f"metadata[{key!r:.50}]", value)
        object.__setattr__(self, "metadata", dict(self.metadata))
        self._check_tests()

    def _check_kind(self) -> None:
        _check(
            self.kind in ("function", "program"), 'kind to be "function" or "program"', self.kind
        )
        if self.entry_point:
            _check(
                self.kind == "function",
                "entry_point to be empty where kind is program",
                self.entry_point,
            )
            names = self.entry_point.split(".")
            is_name = len(names) <= 2 and all(map(_is_name, names))
            _check(is_name, "entry_point to be a Python name, or Class.method", self.entry_point)
            return
        object.__setattr__(self, "kind", "program")
        if self.compare == "equal":
            object.__setattr__(self, "compare", "lines")

    def _check_rule(self) -> None:
        known = ", ".join(COMPARISONS)
        _check(self.compare in COMPARISONS, f"compare to be one of {known}", self.compare)
        for name, value, kinds in (("atol", self.atol, (int, float)), ("base", self.base, (int,))):
            is_number = isinstance(value, kinds) and not isinstance(value, bool)
            in_range = is_number and 0 <= value < _MOST
            _check(in_range, f"{name} to be a number from 0 to below {_MOST:g}", value)
        validates = self.kind == "program" and self.contract.strip()
        defined = not validates or bool(_CHECKER.search(self.contract))
        _check(defined, "contract of a program to define check(stdin)", self.contract)
        defined = not self.checker or bool(_CHECKER.search(self.checker))
        _check(defined, "checker to define check(args, output, expected)", self.checker)

    def _take_statements(self) -> None:
        self._take_all("cases", Case)
        if not isinstance(self.tests, GoldenStatements):
            self._take_all("tests", str)
            for index, test in enumerate(self.tests):
                _check_text(f"tests[{index}]", test)
            if self.tests:
                self._take(read_statements(self.tests, self.entry_point or RUN))
        by_value = self.compare == "equal" and not self.checker
        shown = self.cases if by_value or self.kind == "program" else ()
        object.__setattr__(self, "tests", GoldenStatements(self.entry_point, shown))

    def _take_all(self, name: str, kind: type) -> None:
        given = getattr(self, name)
        if not (isinstance(given, (list, tuple)) and all(isinstance(each, kind) for each in given)):
            raise TypeError(
                f"Expect Problem.{name} to be a list or tuple of {kind.__name__}, actually: {given!r:.100}"
            )
        object.__setattr__(self, name, tuple(map(exact, given)))

    def _take(self, golden: Golden) -> None:
        object.__setattr__(self, "cases", golden.cases)
        if self.compare == "equal":
            object.__setattr__(self, "compare", golden.compare)
            object.__setattr__(self, "atol", self.atol or golden.atol)
        module = "\n\n\n".join(filter(None, (self.test_module, golden.test_module)))
        object.__setattr__(self, "test_module", module)

    @cached_property
    def encoded(self) -> EncodedCases:
        """The cases as bytes, made once for many programs; an unknown value is an empty frame."""
        unknown = {number for number, case in enumerate(self.cases) if case.expected is UNKNOWN}
        known = (
            replace(case, expected=None) if case.expected is UNKNOWN else case
            for case in self.cases
        )
        calls, expected = encoded_cases(list(known))
        frames = (b"" if number in unknown else frame for number, frame in enumerate(expected))
        return EncodedCases(calls, tuple(frames))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in _MADE}

    @cached_property
    def golden_calls(self) -> tuple[str, ...]:
        """The calls of the first cases as text: which arguments the problem means."""
        texts = (call_of(self.entry_point, case) for case in self.cases[:MAX_CALLS])
        return tuple(text for text in texts if text is not None)

    @property
    def number_of_tests(self) -> int:
        """Cases; a test module counts as one."""
        return len(self.cases) + bool(self.test_module)

    @property
    def playable(self) -> bool:
        """Whether it can be played: a referee asks the reference which tests of the tester are right."""
        return bool(self.reference.strip())

    def _check_tests(self) -> None:
        prints = self.kind == "program"
        fits = prints == (self.compare in ("lines", "loose-lines"))
        _check(
            fits,
            "compare to be lines or loose-lines where programs print, and only there",
            self.compare,
        )
        if prints:
            _check(
                not self.test_module, "test_module to be empty where programs read standard input"
            )
            for number, case in enumerate(self.cases, 1):
                check_printed(number, case)
        if not self.reference.strip():
            can_judge = bool(self.number_of_tests)
            _check(can_judge, "reference not to be empty where there are no tests to judge by")
            known = all(each.expected is not UNKNOWN for each in self.cases)
            _check(known, "reference where cases have no expected value: it is asked for them")
        count = len(self.cases)
        _check(self.base <= count, f"base to be at most the number of cases, {count}", self.base)


def check_printed(number: int, case: Case) -> None:
    """Refuse a case that is not an input and what is printed for it."""
    is_one = len(case.args) == 1 and not case.kwargs
    texts: dict[str, Any] = {"stdin": case.args[0] if is_one else case.args}
    texts |= {} if case.expected is UNKNOWN else {"stdout": case.expected}
    for name, text in texts.items():
        _check_text(f"case {number}: {name}", text)
        place = text.find("\0")
        _check(place < 0, f"case {number}: {name} to be text without NUL", f"one at {place}")


_TEXTS = (
    "task_id", "prompt", "entry_point", "reference", "preamble", "checker", "contract", "test_module",
)  # fmt: skip
_MOST = 1e100
_CHECKER = re.compile(r"^(?:def check *\(|check *=|from .* import .*\bcheck\b)", re.MULTILINE)


_MADE = ("encoded", "golden_calls")
"""What is made of a problem when it is needed, and not copied."""


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def _check(holds: bool, expected: str, *actual: object) -> None:
    if not holds:
        actually = f", actually: {actual[0]!r:.100}" if actual else ""
        raise ValueError(f"Expect Problem.{expected}{actually}")


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"Expect Problem.{name} to be a str, actually: {type(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        bad = f"the lone surrogate {value[error.start]!a} at {error.start}"
        raise ValueError(f"Expect Problem.{name} to be text in UTF-8, actually: {bad}") from None
