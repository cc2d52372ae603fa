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
class Problem:
    """One programming problem.

    Attributes:
        task_id: Names the problem; unique in its set. The Mistake Book files tests under it.
        prompt: What the coder sees: imports that the signature needs, the signature, the docstring.
        entry_point: Name of the function (or class) that is asked for.
        reference: A complete program that solves the problem.
        tests: Golden tests, each a piece of Python text that stands on its own.
        test_program: One larger test in the style of HumanEval+, ending with its own call
            ``check(entry_point)``.
        metadata: Texts such as source, difficulty and split. It cannot be changed.

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

    def __post_init__(self) -> None:
        for name in ("task_id", "prompt", "entry_point", "reference"):
            _check_text(name, getattr(self, name))
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
        object.__setattr__(self, "tests", tuple(self.tests))
        object.__setattr__(self, "metadata", Metadata(self.metadata))

    @property
    def all_tests(self) -> tuple[str, ...]:
        """The golden tests, and the test program where there is one."""
        return self.tests if self.test_program is None else (*self.tests, self.test_program)


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
