"""Checks of what a programmer hands to the game: each error says what was expected, what came, what to do."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from codea1_env.mistake_book import MistakeBook
from codea1_env.problems import Problem, check_playable, load_problems
from codea1_env.spaces import MAX_TEXT_CHARS

OPTIONS = ("problem_id", "mistake_book")


def collect_problems(
    problems: str | Sequence[Problem], split: str | None = None
) -> dict[str, Problem]:
    """The problems by their task_id, in their order.

    Raises:
        TypeError: It is neither a source nor a sequence of problems.
        ValueError: There are none, or two have the same task_id, or a prompt is far too long, or one of them
            cannot be played (see `check_playable`).
    """
    if isinstance(problems, str):
        found = load_problems(problems, split)
    else:
        found = []
        for problem in problems if isinstance(problems, Sequence) else [problems]:
            if not isinstance(problem, Problem):
                raise TypeError(
                    "Expect problems to be a source for load_problems or a sequence of Problem, "
                    f"actually: {problem!r:.100}"
                )
            if split is None or problem.metadata.get("split") == split:
                found.append(problem)
    if not found:
        raise ValueError(
            f"Expect at least one problem to play, actually: none with split={split!r}. Use "
            "split=None for all."
        )
    for task_id, count in Counter(problem.task_id for problem in found).items():
        if count > 1:
            raise ValueError(
                f"Expect the task_id of problems to be unique, actually {count} times: {task_id!r}"
            )
    for problem in found:
        if len(problem.prompt) > MAX_TEXT_CHARS:
            raise ValueError(
                f"Expect a prompt of at most {MAX_TEXT_CHARS} characters, actually: "
                f"{len(problem.prompt)} in {problem.task_id!r}. Leave this problem out."
            )
    check_playable(found)
    return {problem.task_id: problem for problem in found}


def new_generator(seed: int) -> np.random.Generator:
    """A random generator of its own for one environment.

    Raises:
        TypeError: The seed is not an integer.
        ValueError: The seed is negative.
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise TypeError(f"Expect seed to be an integer or None, actually: {type(seed)}")
    if seed < 0:
        raise ValueError(f"Expect seed to be 0 or greater, actually: {seed}")
    return np.random.default_rng(int(seed))


def did_you_mean(actual: object, known: Sequence[str] | Mapping[str, Any]) -> str:
    """The remedy at the end of an error about a wrong name.

    Example:
        >>> print(did_you_mean("starter/ad", ["starter/add", "starter/is_even"]))
        . Did you mean 'starter/add'?
    """
    near = difflib.get_close_matches(str(actual), list(known), n=3, cutoff=0.7)
    if near:
        return ". Did you mean " + " or ".join(repr(name) for name in near) + "?"
    return f". Known are for example {', '.join(repr(name) for name in list(known)[:3])}."


def check_options(
    options: Mapping[str, Any] | None, problems: Mapping[str, Problem]
) -> Mapping[str, Any]:
    """The options of a reset; none as an empty mapping.

    Raises:
        TypeError: They are not a mapping.
        ValueError: An option does not exist or has a value that it cannot have.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise TypeError(f"Expect options to be a dict or None, actually: {type(options)}")
    for key in options:
        # PettingZoo's own tests reset every environment with {"options": 1}.
        if key not in (*OPTIONS, "options"):
            raise ValueError(
                f"Expect the keys of options to be among {OPTIONS}, actually: {key!r}"
                + did_you_mean(key, OPTIONS)
            )
    if "problem_id" in options and options["problem_id"] not in problems:
        problem_id = options["problem_id"]
        raise ValueError(
            f"Expect problem_id to be the task_id of one of the {len(problems)} problems of "
            f"this environment, actually: {problem_id!r}" + did_you_mean(problem_id, problems)
        )
    book = options.get("mistake_book", "keep")
    if not isinstance(book, MistakeBook) and book not in ("keep", "clear"):
        raise ValueError(
            f'Expect options["mistake_book"] to be a MistakeBook, "keep" or "clear", '
            f"actually: {book!r:.100}"
        )
    return options
