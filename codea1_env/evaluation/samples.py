"""Programs to be judged, in the format of evalplus: one JSON object a line.

    {"task_id": "HumanEval/0", "solution": "def has_close_elements(...): ..."}
    {"task_id": "HumanEval/0", "completion": "    for ..."}

A solution is a whole program; a completion goes on where the prompt ends. Other fields are kept and ignored.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

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


S = TypeVar("S")


@dataclass(frozen=True)
class SampleFile(Generic[S]):
    """What a file of samples holds, as far as it belongs to a problem set."""

    samples: tuple[S, ...]
    unknown: Mapping[str, int]
    """Task that is not in the problem set -> its samples."""
    missing: tuple[str, ...]


def read_samples(path: Path, problems: Sequence[Problem]) -> SampleFile[ProgramSample]:
    """Read programs made elsewhere."""
    names = {evalplus_id(each): each for each in problems} | {
        each.task_id: each for each in problems
    }
    return read_file(path, problems, names, _checked, _sample)


def read_file(
    path: Path,
    problems: Sequence[Problem],
    names: Mapping[str, Problem],
    task_of: Callable[[Any, str], str],
    make: Callable[[Problem, int, Mapping[str, Any]], S],
) -> SampleFile[S]:
    """Read samples of any kind."""
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
        name = task_of(row.fields, row.where)
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


def digest_of_file(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _rows_of(path: Path) -> Iterator[Row]:
    try:
        for row in rows(str(path)):
            if isinstance(row, ProblemsError):
                raise SamplesError(str(row))
            yield row
    except (ProblemsError, OSError) as error:
        raise SamplesError(str(error)) from error


def check_task(fields: Any, where: str, kinds: tuple[type, ...] = (str,)) -> str:
    """Return the task of a row; a SamplesError if it is no row of samples."""
    if not isinstance(fields, Mapping):
        raise SamplesError(
            f"{where}: Expect a JSON object, actually: {fields!r:.80}. Write one object a line."
        )
    task_id = fields.get("task_id")
    if type(task_id) not in kinds:
        raise SamplesError(
            f"{where}: Expect 'task_id' to be text, actually: {task_id!r:.80}. Correct or remove the line."
        )
    return str(task_id)


def _checked(fields: Any, where: str) -> str:
    task_id = check_task(fields, where)
    name = _field(fields)
    if name not in fields:
        raise SamplesError(
            f"{where}: Expect a field 'solution' (a whole program) or 'completion' (what follows the prompt), "
            f"actually: {', '.join(map(str, fields))}. Correct or remove the line."
        )
    if not isinstance(fields[name], str):
        raise SamplesError(
            f"{where}: Expect {name!r} to be text, actually: {type(fields[name]).__name__}. Write one line for "
            "each program, with the same task_id."
        )
    return task_id


def _field(fields: Mapping[str, Any]) -> str:
    return "solution" if "solution" in fields else "completion"


def _sample(problem: Problem, index: int, fields: Mapping[str, Any]) -> ProgramSample:
    name = _field(fields)
    code = fields[name] if name == "solution" else problem.prompt + fields[name]
    return ProgramSample(problem.task_id, index, code, fields)
