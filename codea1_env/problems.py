"""Problems: `Problem`, and `load_problems` for every source.

| source | what |
|---|---|
| `starter` | bundled: three tiers, written for this project |
| `starter-104` | its first 104 problems, on which the older tables of docs/results.md were measured |
| `starter-easy`, `starter-medium`, `starter-hard` | the tiers of these 104: 48, 32, 24 |
| `starter-programs`, `starter-programs-easy`, `-medium` | bundled: 32 programs that read and print, and the two tiers of 16 |
| `planted` | bundled: 48 one-line functions, in which faults are planted, see `codea1_env.mutation.planted` |
| `cells`, `cells:C=256,faults=1/64,...` | generated tables whose faults are known exactly, see `codea1_env.problem_sets.cells` |
| `humaneval+`, `mbpp+`, `mbpp`, `kodcode`, `ult` | public sets, through the library `datasets` |
| `bigcodebench`, `bigcodebench-hard`, `livecodebench` | likewise |
| `org/name` | any data set of the Hugging Face hub in one of the known layouts |
| a file | .jsonl, .jsonl.gz or .parquet in one of the known layouts |
| `FILE.py:NAME` | a function of yours that gives `Problem` objects; or a name that you gave it with `register_source` |

The layouts are described in docs/problems.md. Nothing that is read here is run; tests in rows are parsed in the analysis
process.
"""

from __future__ import annotations

import functools
import inspect
import pickle
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from codea1_env.problem_sets.cells import is_cells, load_cells
from codea1_env.problem_sets.golden import apart, here
from codea1_env.problem_sets.problem import Problem, ProblemsError
from codea1_env.problem_sets.schemas import to_problem
from codea1_env.problem_sets.sources import HUB_SOURCES, STARTER, rows
from codea1_env.support.plugins import find

__all__ = [
    "SOURCES", "Located", "Problem", "ProblemsError", "check_playable", "load_problems",
    "read_problems", "register_source",
]  # fmt: skip

SOURCES = (*STARTER, "cells", *HUB_SOURCES)
"""The names that `load_problems` knows, besides files and hub ids."""

_registered: dict[str, Callable[[], Iterable[Problem]]] = {}


class Located(NamedTuple):
    """A problem and the file and line it comes from."""

    problem: Problem
    where: str


def load_problems(
    source: str, split: str | None = None, difficulty: str | None = None
) -> list[Problem]:
    """Load a set of problems.

    Args:
        source: One of `SOURCES`, a data set id of the hub, the path of a file, `FILE.py:NAME`, or a name that
            was given to `register_source`.
        split: Only the problems of this split ("train", "eval", ...); None for all.
        difficulty: Only the problems that the source calls so hard ("easy", "medium", "hard"); None for all.

    Returns:
        The problems, in the order of the source. Their task ids differ.

    Raises:
        ProblemsError: The source, the split or the difficulty is unknown, or a row is broken; it names file and line.
        OSError: The file cannot be read.
        ImportError: The source needs a library that is not installed.

    Example:
        >>> problems = load_problems("starter", split="train")
        >>> problems[0].task_id.startswith("starter/")
        True
    """
    problems = pickle.loads(_bundled(source)) if source in STARTER else _read(source, split)
    chosen = _chosen(source, problems, "difficulty", difficulty)
    return _chosen(source, chosen, "split", split)


@functools.cache
def _bundled(source: str) -> bytes:
    """Read a bundled set once in a process. What is loaded from it shares nothing that somebody may change."""
    return pickle.dumps(_read(source, None))


def _read(source: str, split: str | None) -> list[Problem]:
    problems: dict[str, Problem] = {}
    places: dict[str, str] = {}
    for item in read_problems(source, split):
        if isinstance(item, ProblemsError):
            raise item
        task_id = item.problem.task_id
        if task_id in places:
            raise ProblemsError(
                item.where,
                f"Expect every task_id once, actually {task_id!r} is also at {places[task_id]}. "
                "Rename or remove one of them.",
            )
        problems[task_id], places[task_id] = item.problem, item.where
    if not problems:
        raise ProblemsError(str(source), "Expect at least one problem, actually there is none.")
    return list(problems.values())


def _chosen(source: str, problems: list[Problem], key: str, wanted: str | None) -> list[Problem]:
    if wanted is None:
        return problems
    chosen = [problem for problem in problems if problem.metadata.get(key) == wanted]
    if not chosen:
        known = sorted({problem.metadata.get(key, "") for problem in problems} - {""})
        raise ProblemsError(
            str(source),
            f"Expect the {key} to be one of {', '.join(known) or 'none (this set does not say)'}, "
            f"actually: {wanted!r}. None (--{key} None) loads all problems.",
        )
    return chosen


def read_problems(
    source: str | Path, split: str | None = None
) -> Iterator[Located | ProblemsError]:
    """Yield the problems of a source, and an error for each broken row.

    Unlike `load_problems` it goes on after an error, and it does not look for duplicates.
    """
    own = _own_source(source)
    if own is not None:
        yield from own
        return
    ask = here if source in STARTER else apart
    for row in rows(str(source) if isinstance(source, Path) else source, split):
        if isinstance(row, ProblemsError):
            yield row
            continue
        try:
            yield Located(to_problem(row, ask), row.where)
        except ProblemsError as error:
            yield error


def register_source(name: str, load: Callable[[], Iterable[Problem]]) -> None:
    r"""Name a problem set of yours for `load_problems` and everything that takes problems.

    Args:
        name: What to call it.
        load: Gives the problems, each time that they are loaded. `metadata["split"]` says what belongs to which split.

    Raises:
        ValueError: Something else has this name, or it would mean a file or a hub id.
        TypeError: It cannot be called without arguments.

    Example:
        >>> register_source("ones", lambda: [Problem("ones/one", "def one():", "one", "def one():\n    return 1")])
        >>> load_problems("ones")[0].task_id
        'ones/one'
    """
    if name in _registered or name in SOURCES:
        raise ValueError(
            f"Expect a name for the source that is free, actually {name!r} is taken. Choose another."
        )
    if not name or set(name) & set(":/\\") or "." in name:
        raise ValueError(
            f"A source name cannot contain '.', ':' or '/' (they mark files and hub ids), actually: {name!r}"
        )
    _check_source(name, load)
    _registered[name] = load


def _check_source(name: str, load: object) -> None:
    try:
        inspect.signature(load).bind()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise TypeError(
            f"Expect the source {name!r} to be a function without parameters that gives problems, actually: {load!r:.200}"
        ) from None


def _own_source(source: str | Path) -> Iterator[Located | ProblemsError] | None:
    """Return the problems of a registered name, or of FILE.py:NAME; None for other sources."""
    name = str(source)
    load = _registered.get(name)
    if is_cells(name):
        return (Located(problem, name) for problem in load_cells(name))
    if load is None and ".py:" in name:
        try:
            load = find(name, "function")
            _check_source(name, load)
        except (TypeError, ValueError) as error:
            raise ProblemsError("", str(error)) from error
    return None if load is None else _located(name, load)


def _located(name: str, load: Callable[[], Iterable[Problem]]) -> Iterator[Located | ProblemsError]:
    number = 0
    try:
        for number, problem in enumerate(load(), 1):
            where = f"{name}, problem {number}"
            if not isinstance(problem, Problem):
                yield ProblemsError(where, f"Expect a Problem, actually: {type(problem)}")
                continue
            try:
                problem.encoded  # noqa: B018  its cases are plain data
            except TypeError as error:
                yield ProblemsError(where, f"{problem.task_id}: {error}")
            else:
                yield Located(problem, where)
    except (TypeError, ValueError) as error:  # of `Problem`, or of the function itself
        yield ProblemsError(f"{name}, problem {number + 1}", f"{type(error).__name__}: {error}")


def check_playable(problems: Iterable[Problem]) -> None:
    """Refuse problems that can only be evaluated on."""
    refused = [problem for problem in problems if not problem.playable]
    if refused:
        first = refused[0]
        raise ProblemsError(
            "",
            f"Expect problems to play that have a reference, actually {first.task_id} has none"
            f"{f', and {len(refused) - 1} more' if refused[1:] else ''}. The referee asks the reference which "
            "tests are right. Choose other problems, or train with --oracle coder; `codea1 eval code` can use these.",
        )
