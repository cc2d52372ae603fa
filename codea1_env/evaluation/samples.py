"""Files of samples to be judged: one JSON object a line.

Programs, in the format of evalplus. A solution is a whole program; a completion goes on where the prompt ends:

    {"task_id": "HumanEval/0", "solution": "def has_close_elements(...): ..."}
    {"task_id": "HumanEval/0", "completion": "    for ..."}

Suites of tests. Each of the `tests` is one test, however many calls it makes. An answer is a model's text: each call that it
predicts is a test, as in the game:

    {"task_id": "ULT/10", "tests": ["assert f(1) == 2", "def test_zero(): ..."]}
    {"task_id": "ULT/10", "answer": "Here are some tests: ..."}

The files of UnLeakedTestBench can be read as they are: `test_list` is another name for `tests`, and a task may be called by the
last part of its name. Other fields are kept and ignored.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from codea1_env.problem_sets.rows import Row
from codea1_env.problem_sets.sources import rows
from codea1_env.problems import Problem, ProblemsError

_SUFFIXES = (".jsonl", ".jsonl.gz")


class SamplesError(ValueError):
    """A file of samples that cannot be used. The message names file and line, and says what to do."""


@dataclass(frozen=True)
class ProgramSample:
    """One program for one problem."""

    task_id: str
    index: int
    code: str
    row: Mapping[str, Any]


@dataclass(frozen=True)
class SuiteSample:
    """One suite for one problem."""

    task_id: str
    index: int
    row: Mapping[str, Any]

    @property
    def content(self) -> str | Sequence[str]:
        """An answer, or a list of texts."""
        return self.row[_field_in(self.row, _SUITES)]  # type: ignore[no-any-return]


S = TypeVar("S")


@dataclass(frozen=True)
class SampleFile(Generic[S]):
    """What a file of samples holds, as far as it belongs to a problem set."""

    samples: tuple[S, ...]
    unknown: Mapping[str, int]
    """Task that is not in the problem set -> its samples."""
    missing: tuple[str, ...]


class _Field(NamedTuple):
    """A field that may hold a sample."""

    means: str
    is_list: bool = False
    remedy: str = "Correct or remove the line."


_ONE_EACH = "Write one line for each program, with the same task_id."
_PROGRAMS = {
    "solution": _Field("a whole program", remedy=_ONE_EACH),
    "completion": _Field("what follows the prompt", remedy=_ONE_EACH),
}
_SUITES = {
    "tests": _Field("a list of texts", is_list=True),
    "test_list": _Field("", is_list=True),
    "answer": _Field("what a model wrote", remedy="Write a list of tests as 'tests'."),
}


def read_samples(path: Path, problems: Sequence[Problem]) -> SampleFile[ProgramSample]:
    """Read programs made elsewhere, a .jsonl or .jsonl.gz file; a SamplesError names a line that is none."""

    def make(problem: Problem, index: int, row: Mapping[str, Any]) -> ProgramSample:
        name = _field_in(row, _PROGRAMS)
        code = row[name] if name == "solution" else problem.prompt + row[name]
        return ProgramSample(problem.task_id, index, code, row)

    return _read(path, problems, _names(problems), _PROGRAMS, make)


def read_suites(path: Path, problems: Sequence[Problem]) -> SampleFile[SuiteSample]:
    """Read suites made elsewhere, as `read_samples` reads programs."""
    last = Counter(problem.task_id.rpartition("/")[2] for problem in problems)
    short = {problem.task_id.rpartition("/")[2]: problem for problem in problems}
    clear = {name: problem for name, problem in short.items() if last[name] == 1}

    def make(problem: Problem, index: int, row: Mapping[str, Any]) -> SuiteSample:
        return SuiteSample(problem.task_id, index, row)

    return _read(path, problems, clear | _names(problems), _SUITES, make)


def _names(problems: Sequence[Problem]) -> dict[str, Problem]:
    theirs = {evalplus_id(problem): problem for problem in problems}
    return theirs | {problem.task_id: problem for problem in problems}


def _read(
    path: Path,
    problems: Sequence[Problem],
    names: Mapping[str, Problem],
    fields: Mapping[str, _Field],
    make: Callable[[Problem, int, Mapping[str, Any]], S],
) -> SampleFile[S]:
    if not path.name.endswith(_SUFFIXES):
        raise SamplesError(
            f"Expect a file of samples to end in {' or '.join(_SUFFIXES)}, actually: {path}. Rename or convert it."
        )
    if not path.is_file():
        raise SamplesError(
            f"Expect a file of samples, actually {f'{path} is a folder' if path.is_dir() else f'there is no {path}'}. "
            "Check the path."
        )
    counts: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    samples: list[S] = []
    for row in _rows_of(path):
        if fault := _fault(row.fields, fields):
            raise SamplesError(f"{row.where}: Expect {fault}")
        name = str(row.fields["task_id"])
        problem = names.get(name)
        if problem is None:
            unknown[name] += 1
            continue
        samples.append(make(problem, counts[problem.task_id], row.fields))
        counts[problem.task_id] += 1
    if not samples and not unknown:
        raise SamplesError(f"Expect at least one sample in {path}, actually: none.")
    missing = tuple(each.task_id for each in problems if not counts[each.task_id])
    return SampleFile(tuple(samples), dict(unknown), missing)


def _rows_of(path: Path) -> Iterator[Row]:
    try:
        for row in rows(str(path)):
            if isinstance(row, ProblemsError):
                raise SamplesError(str(row))
            yield row
    except (ProblemsError, OSError) as error:
        raise SamplesError(str(error)) from error


def _field_in(row: Mapping[str, Any], fields: Mapping[str, _Field]) -> str:
    return next((name for name in fields if name in row), "")


def _fault(row: Any, fields: Mapping[str, _Field]) -> str:
    """Say what is expected of a row, what it is and what to do; "" for a sample."""
    if not isinstance(row, Mapping):
        return f"a JSON object, actually: {row!r:.80}. Write one object a line."
    task = row.get("task_id")
    if type(task) is not str and not (type(task) is int and fields is _SUITES):
        return f"'task_id' to be text, actually: {task!r:.80}. Correct or remove the line."
    name = _field_in(row, fields)
    if not name:
        wanted = " or ".join(
            f"{name!r} ({each.means})" for name, each in fields.items() if each.means
        )
        return (
            f"a field {wanted}, actually: {', '.join(map(str, row))}. Correct or remove the line."
        )
    value, field = row[name], fields[name]
    texts = value if field.is_list else [value]
    if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
        return ""
    what, shown = ("a list of texts", f"{value!r:.80}") if field.is_list else ("text", type(value).__name__)  # fmt: skip
    return f"{name!r} to be {what}, actually: {shown}. {field.remedy}"


def sample_row(problem: Problem, code: str, answer: str) -> dict[str, str]:
    """Return the row of a program that an agent wrote; its whole answer is kept where that is more.

    Example:
        >>> problem = Problem("MBPP/7", "def f():", "f", "def f(): pass", metadata={"source": "mbpp+"})
        >>> sample_row(problem, "def f(): pass", "def f(): pass")
        {'task_id': 'Mbpp/7', 'solution': 'def f(): pass'}
    """
    row = {"task_id": evalplus_id(problem), "solution": code}
    return row if answer == code else row | {"answer": answer}


def evalplus_id(problem: Problem) -> str:
    """Return the name that evalplus has for a problem: MBPP+ is written Mbpp/7 there, and MBPP/7 elsewhere."""
    if problem.metadata.get("source") == "mbpp+":
        return problem.task_id.replace("MBPP/", "Mbpp/", 1)
    return problem.task_id


def digest(problem: Problem) -> str:
    """Return a short text that changes whenever what a program must do for this problem changes."""
    parts = (
        problem.prompt, problem.entry_point, problem.preamble, problem.compare,
        problem.atol, problem.checker, problem.test_module,
    )  # fmt: skip
    whole = hashlib.sha256(repr(parts).encode())
    for frames in problem.encoded:
        for frame in frames:
            whole.update(b"%d " % len(frame) + frame)
    return whole.hexdigest()[:16]


def digest_of_problems(problems: Sequence[Problem]) -> str:
    """Return a text that changes whenever one of the problems changes, or its reference, or their order."""
    parts = ((each.task_id, digest(each), each.reference) for each in problems)
    return hashlib.sha256("".join(map(repr, parts)).encode()).hexdigest()
