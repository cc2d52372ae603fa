"""A problem: what the coder is asked for, and how an answer is judged."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn


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


class Metadata(dict[str, str]):
    """A dictionary that cannot be changed, so that a problem can be shared and hashed.

    Example:
        >>> Metadata(split="train")["split"]
        'train'
        >>> Metadata(split="train")["split"] = "eval"
        Traceback (most recent call last):
            ...
        TypeError: metadata of a problem cannot be changed; make a new one: {**metadata, key: value}
    """

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError(
            "metadata of a problem cannot be changed; make a new one: {**metadata, key: value}"
        )

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __copy__(self) -> Metadata:
        return self

    def __deepcopy__(self, memo: object) -> Metadata:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Metadata, (dict(self),)


@dataclass(frozen=True)
class StdinTest:
    """What a program must print for an input; see `Problem.stdin_tests`."""

    stdin: str
    stdout: str

    def __post_init__(self) -> None:
        _check_text("stdin_tests: stdin", self.stdin)
        _check_text("stdin_tests: stdout", self.stdout)


ONE_PROCESS = {"judging": "one process"}
"""Metadata of a problem whose tests and programs must share a process, since the tests patch modules or ask for types
of libraries. `codea1 eval code` judges it so; a program can then forge its verdict. Both may write files, which needs
the sandbox's level "namespaces"."""


@dataclass(frozen=True)
class Problem:
    """One programming problem.

    Attributes:
        task_id: Names the problem; unique in its set. The Mistake Book files tests under it.
        prompt: What the coder sees: imports that the signature needs, the signature, the docstring.
        entry_point: Name of the function (or class) that is asked for; "main" by convention where a program
            is run and nothing of it called (`stdin_tests`).
        reference: A complete program that solves the problem. "" where none is known, as in LiveCodeBench: such
            a problem can be evaluated on, but not be played.
        tests: Golden tests, each a piece of Python text that stands on its own.
        test_program: One larger test in the style of HumanEval+, ending with its own call
            ``check(entry_point)``.
        metadata: Texts such as source, difficulty and split. It cannot be changed.
        stdin_tests: For a problem whose programs read standard input and print: what they must print. It has
            no other tests then.
        preamble: Program text that stands before every program that is judged: what the problem gives, such
            as imports.
        contract: Python text with asserts over the parameters of the function: which arguments the problem
            speaks of. A test that calls with others is invalid. It may import from the standard library.

    Raises:
        TypeError: A field has the wrong type.
        ValueError: A field has a value that cannot be used.

    Example:
        >>> problem = Problem(
        ...     task_id="demo/double",
        ...     prompt="def double(x: int) -> int:",
        ...     entry_point="double",
        ...     reference="def double(x): return 2 * x",
        ...     tests=["assert double(2) == 4"],
        ... )
        >>> problem.tests
        ('assert double(2) == 4',)
    """

    task_id: str
    prompt: str
    entry_point: str
    reference: str
    tests: tuple[str, ...] = ()
    test_program: str | None = None
    metadata: Mapping[str, str] = field(default_factory=Metadata)
    stdin_tests: tuple[StdinTest, ...] = ()
    preamble: str = ""
    contract: str = ""

    def __post_init__(self) -> None:
        for name in ("task_id", "prompt", "entry_point", "reference", "preamble", "contract"):
            _check_text(name, getattr(self, name))
        for name in ("task_id", "prompt", "entry_point"):
            if not getattr(self, name).strip():
                raise ValueError(f"Expect Problem.{name} not to be empty")
        if not self.entry_point.isidentifier() or keyword.iskeyword(self.entry_point):
            raise ValueError(
                f"Expect Problem.entry_point to be a Python name, actually: {self.entry_point!r:.100}"
            )
        if not isinstance(self.tests, (list, tuple)):
            raise TypeError(
                f"Expect Problem.tests to be a list or tuple of str, actually: {type(self.tests)}"
            )
        for index, test in enumerate(self.tests):
            _check_text(f"tests[{index}]", test)
        if self.test_program is not None:
            _check_text("test_program", self.test_program)
        if not isinstance(self.metadata, Mapping):
            raise TypeError(
                f"Expect Problem.metadata to be a mapping of str to str, actually: {type(self.metadata)}"
            )
        for key, value in self.metadata.items():
            _check_text("a key of metadata", key)
            _check_text(f"metadata[{key!r:.50}]", value)
        self._check_stdin_tests()
        if not self.reference.strip() and not (self.all_tests or self.stdin_tests):
            raise ValueError(
                "Expect Problem.reference not to be empty where there are no tests to judge a program by"
            )
        object.__setattr__(self, "tests", tuple(self.tests))
        object.__setattr__(self, "stdin_tests", tuple(self.stdin_tests))
        object.__setattr__(self, "metadata", Metadata(self.metadata))

    @property
    def all_tests(self) -> tuple[str, ...]:
        """The golden tests, and the test program where there is one."""
        program = () if self.test_program is None else (self.test_program,)
        return (*self.tests, *program)

    @property
    def playable(self) -> bool:
        """Whether it can be played: a referee asks the reference which tests of the tester are right."""
        return bool(self.reference.strip()) and not self.stdin_tests

    @property
    def in_one_process(self) -> bool:
        """Whether its tests must share a process with the program, see `ONE_PROCESS`."""
        return ONE_PROCESS.items() <= self.metadata.items()

    def _check_stdin_tests(self) -> None:
        if not isinstance(self.stdin_tests, (list, tuple)) or not all(
            isinstance(test, StdinTest) for test in self.stdin_tests
        ):
            raise TypeError(
                "Expect Problem.stdin_tests to be a list or tuple of StdinTest, actually: "
                f"{self.stdin_tests!r:.100}"
            )
        if self.stdin_tests and self.all_tests:
            raise ValueError(
                "Expect either stdin_tests or tests that call the program, actually both: a program is run or "
                "called, not both"
            )


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"Expect Problem.{name} to be a str, actually: {type(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"Expect Problem.{name} to be text that can be written as UTF-8, "
            f"actually it holds the lone surrogate {value[error.start]!a} at {error.start}"
        ) from None
