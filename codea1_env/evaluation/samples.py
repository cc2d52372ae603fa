"""Programs to be judged, in the format of evalplus: one JSON object a line.

    {"task_id": "HumanEval/0", "solution": "def has_close_elements(...): ..."}
    {"task_id": "HumanEval/0", "completion": "    for ..."}

A solution is a whole program; a completion goes on where the prompt ends. Other fields are kept and ignored.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env.data.sources import rows
from codea1_env.problems import Problem, ProblemsError

_SUFFIXES = (".jsonl", ".jsonl.gz")


class SamplesError(ValueError):
    """A file of samples that cannot be used. The message names file and line, and says what to do."""


@dataclass(frozen=True)
class Sample:
    """One program for one problem."""

    task_id: str
    """As the problem set has it."""
    index: int
    """Number among the samples of its problem, from 0."""
    code: str
    """The whole program."""
    row: Mapping[str, Any]
    """What stands in the file."""


@dataclass(frozen=True)
class SampleFile:
    """What a file of samples holds, as far as it belongs to a problem set."""

    samples: tuple[Sample, ...]
    """In the order of the file."""
    unknown: Mapping[str, int]
    """Task that is not in the problem set -> its samples."""
    missing: tuple[str, ...]
    """Problems without samples."""


def read_samples(path: Path, problems: Sequence[Problem]) -> SampleFile:
    """Read programs made elsewhere.

    Args:
        path: A .jsonl or .jsonl.gz file.
        problems: What they are meant for. MBPP's tasks may be called MBPP/2, or Mbpp/2 as evalplus does.

    Raises:
        SamplesError: The file cannot be read, or a line is no sample.
    """
    if not path.name.endswith(_SUFFIXES):
        raise SamplesError(
            f"Expect a file of samples to end in {' or '.join(_SUFFIXES)}, actually: {path}. Rename or convert it."
        )
    if not path.is_file():
        raise SamplesError(
            f"Expect a file of samples, actually there is no {path}. Check the path."
        )
    by_name = {problem.task_id: problem for problem in problems}
    evalplus_names = {evalplus_id(problem): problem for problem in problems}
    counts: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    samples: list[Sample] = []
    for row in _rows(path):
        task_id, name = _checked(row.fields, row.where)
        problem = by_name.get(task_id) or evalplus_names.get(task_id)
        if problem is None:
            unknown[task_id] += 1
            continue
        code = row.fields[name] if name == "solution" else problem.prompt + row.fields[name]
        samples.append(Sample(problem.task_id, counts[problem.task_id], code, row.fields))
        counts[problem.task_id] += 1
    if not samples and not unknown:
        raise SamplesError(f"Expect at least one sample in {path}, actually: none.")
    missing = tuple(name for name in by_name if not counts[name])
    return SampleFile(tuple(samples), dict(unknown), missing)


def whole_program(problem: Problem, code: str) -> str:
    r"""A program behind what stands above the function in the prompt: imports and helpers that were given.

    Whoever is shown them may use them, and need not repeat them; a completion has them, too.

    Example:
        >>> problem = Problem("demo", "from typing import List\n\ndef f(x: List):\n", "f", "def f(x): pass")
        >>> whole_program(problem, "def f(x: List): ...")
        'from typing import List\n\n\ndef f(x: List): ...'
    """
    name = re.escape(problem.entry_point)
    function = re.search(rf"^(?:async +)?(?:def|class) +{name}\b", problem.prompt, re.MULTILINE)
    given = problem.prompt[: function.start()].strip() if function else ""
    # What comes from __future__ must stay at the very beginning.
    if not given or not code.strip() or given in code or "__future__" in code:
        return code
    return f"{given}\n\n\n{code}"


def sample_row(problem: Problem, code: str, answer: str) -> dict[str, str]:
    """The row of a program that an agent wrote; its whole answer is kept where that is more.

    Example:
        >>> problem = Problem("MBPP/7", "def f():", "f", "def f(): pass", metadata={"source": "mbpp+"})
        >>> sample_row(problem, "def f(): pass", "def f(): pass")
        {'task_id': 'Mbpp/7', 'solution': 'def f(): pass'}
    """
    row = {"task_id": evalplus_id(problem), "solution": code}
    return row if answer == code else row | {"answer": answer}


def evalplus_id(problem: Problem) -> str:
    """The name that evalplus has for a problem: MBPP+ is written Mbpp/7 there, and MBPP/7 elsewhere."""
    if problem.metadata.get("source") == "mbpp+":
        return problem.task_id.replace("MBPP/", "Mbpp/", 1)
    return problem.task_id


def digest(problem: Problem) -> str:
    """A short text that changes whenever what a program must do for this problem changes."""
    parts = (problem.prompt, problem.entry_point, *problem.all_tests)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _rows(path: Path) -> Any:
    try:
        for row in rows(str(path)):
            if isinstance(row, ProblemsError):
                raise SamplesError(str(row))
            yield row
    except (ProblemsError, OSError) as error:
        raise SamplesError(str(error)) from error


def _checked(fields: Any, where: str) -> tuple[str, str]:
    """The task of a row, and the field that holds its program."""
    if not isinstance(fields, Mapping):
        raise SamplesError(
            f"{where}: Expect a JSON object, actually: {fields!r:.80}. Write one object a line."
        )
    task_id = fields.get("task_id")
    if not isinstance(task_id, str):
        raise SamplesError(
            f"{where}: Expect 'task_id' to be text, actually: {task_id!r:.80}. Correct or remove the line."
        )
    name = "solution" if "solution" in fields else "completion"
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
    return task_id, name
