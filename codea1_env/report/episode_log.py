"""The log of a run's episodes, which may be larger than memory: one pass notes where each stands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from codea1_env.judging.verdicts import Status
from codea1_env.rendering.display import clean
from codea1_env.report.runs import LoggedRun
from codea1_env.sandbox import Outcome
from codea1_env.support.logs import every_line
from codea1_env.training.metrics import Row
from codea1_env.training.run_folder import EPISODES

TEXT = 20_000
"""Characters of a program or an answer that are shown."""
TEST = 2_000
"""Characters of a test or of a reason that are shown."""
PAID = ("reward", "validity", "adversarial")
"""What a suite may have been paid, and for what."""
_OUTCOMES = (None, *(outcome.value for outcome in Outcome))


@dataclass(frozen=True)
class EpisodeLog:
    """What one pass over the episodes of a run found."""

    run: LoggedRun
    places: list[tuple[int, int, int]]
    """Step and offset of each whole episode, and the number of the one before for the same problem, or -1."""
    damaged: int

    def episode(self, number: int) -> Row:
        """Read an episode by its number."""
        with (self.run.path / EPISODES).open("rb") as file:
            file.seek(self.places[number][1])
            row: Row = json.loads(file.readline())
        return row


def scan(run: LoggedRun) -> EpisodeLog:
    """Read all episodes of a run once."""
    places: list[tuple[int, int, int]] = []
    last: dict[str, int] = {}
    damaged = begin = 0
    for row, end in every_line(run.path / EPISODES):
        if row is None or not is_episode(row):
            damaged += 1
        else:
            places.append((row["step"], begin, last.get(row["task_id"], -1)))
            last[row["task_id"]] = len(places) - 1
        begin = end
    return EpisodeLog(run, places, damaged)


def shortened(text: str, longest: int = TEXT) -> str:
    """Return a text safe to show, and cut if it is long, which it says."""
    more = f" ... ({len(text) - longest} more characters)" if len(text) > longest else ""
    return clean(text[:longest]) + more


def drawing_order(places: Sequence[tuple[int, int, int]]) -> list[int]:
    """Return the episodes in the order in which they are drawn: one of each step, then another one of each."""
    rng = np.random.default_rng(0)
    taken: dict[int, int] = {}
    ranked: list[tuple[int, int, int]] = []
    for index in rng.permutation(len(places)).tolist():
        step = places[index][0]
        taken[step] = taken.get(step, 0) + 1
        ranked.append((taken[step], len(ranked), index))
    return [index for *_, index in sorted(ranked)]


def outcome_of(row: Row) -> tuple[str, str]:
    """Tell what became of a program, and who won."""
    if not row.get("executes"):
        return "does not run", "tester"
    new = [test.get("outcome") for suite in row["suites"] for test in suite["tests"]]
    old = [test.get("outcome") for test in row["history"]]
    if any(outcome not in (None, "pass") for outcome in new):
        return "broken by new tests", "tester"
    if any(outcome not in (None, "pass") for outcome in old):
        return "broken by replayed tests only", "tester"
    if any((*new, *old)):
        return "passes all tests", "coder"
    return "met no valid test", "nobody"


def is_episode(row: Row) -> bool:
    """Whether a row has what is read of it, in the types that are expected."""
    suites = row.get("suites")
    if not isinstance(suites, list) or not all(isinstance(suite, dict) for suite in suites):
        return False
    tests = [row.get("history"), *(suite.get("tests") for suite in suites)]
    texts = [row.get(name) for name in ("task_id", "problem", "code")]
    texts += [suite.get("answer", "") for suite in suites] + [row.get("answer", "")]
    return (
        type(row.get("step")) is int
        and all(isinstance(text, str) for text in texts)
        and all(isinstance(each, list) for each in tests)
        and all(_is_test(test) for each in tests for test in each or ())
    )


def _is_test(test: Any) -> bool:
    return (
        isinstance(test, dict)
        and isinstance(test.get("test"), str)
        and test.get("status") in get_args(Status)
        and test.get("outcome") in _OUTCOMES
        and isinstance(test.get("reason", ""), str)
    )
