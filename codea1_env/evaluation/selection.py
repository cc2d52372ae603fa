"""Chooses among the programs of a problem by tests that nobody has checked: what `codea1 eval code --select AGENT` does.

Dual execution agreement (Chen et al. 2022, "CodeT", arXiv 2207.10397): programs that pass the same tests are a set, and
the set with the highest |programs| x |tests that they pass| is chosen from. The tester sees the problem alone, and writes
as many answers as there are programs. Neither the reference nor the verdicts choose.
"""

from __future__ import annotations

import hashlib
import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from codea1_env.evaluation.program_verdicts import run_as_written
from codea1_env.evaluation.programs import CodeEvaluation
from codea1_env.evaluation.runner import SELECTION, AgentOf, Asking, Stopped
from codea1_env.evaluation.statistics import figure_of, written
from codea1_env.problems import Problem
from codea1_env.reading.definitions import put_before
from codea1_env.rendering.display import counted
from codea1_env.responses import Test, parse_suites
from codea1_env.rollout import ask
from codea1_env.sandbox import Limits, Outcome, Sandbox
from codea1_env.spaces import observe
from codea1_env.support.jobs import Jobs

RANDOM = "random"
CHOICES = {"first": "first sample", RANDOM: "random sample", "agreement": "chosen by agreement"}
"""How a program is chosen -> how it is shown. The first two are controls."""
NUM_TESTS = 8
"""Tests that an answer is asked for; those after them do not count."""
_UNKNOWN = "?"
_SIGNS = {Outcome.PASS: "1", Outcome.UNJUDGED: _UNKNOWN}
"""Signs of what a test said of a program; "0" for all others."""
_LIMITS = Limits(
    call_cpu_time=1.0, call_wall_time=5.0, run_cpu_time=5.0, run_wall_time=30.0, calls_per_test=1
)
"""What a program may use for a test, and for all tests of its problem together. Some programs never end."""


def select(
    own: CodeEvaluation,
    agent: AgentOf,
    seed_of: Callable[[int], int],
    folder: Jobs,
    stopped: Callable[[], bool],
    advance: Callable[[], None],
    asking: Asking = lambda number: nullcontext(),
) -> list[Mapping[str, Any]]:
    """Choose for each problem whose programs were judged; what the folder has of these programs is taken from there."""
    known = folder.rows(SELECTION)
    found: list[Mapping[str, Any]] = []
    for number, task in enumerate(own.numbers()):
        programs = own.programs_of(task)
        key = hashlib.sha256(repr((task, programs)).encode()).hexdigest()[:16]
        if number < len(known) and known[number]["programs_sha256"] == key:
            row = known[number]
        else:
            known = folder.truncate(SELECTION, number)
            if stopped():
                raise Stopped
            problem = own.problems[task]
            seen = [observe(problem, turn=1)] * len(programs)
            with asking(len(seen)):
                answers = ask(agent(seed_of(number)), "tester", seen)
            chosen = _choice(problem, programs, answers, own.sandbox)
            row = {"task_id": task, "programs_sha256": key, **chosen}
            folder.append(SELECTION, [row])
        found.append(row)
        advance()
    return found


def _choice(
    problem: Problem,
    programs: Sequence[tuple[str, bool]],
    answers: Sequence[str],
    sandbox: Sandbox,
) -> dict[str, Any]:
    """How likely each way to choose takes a right program of a problem, and the tests that it was chosen by."""
    usable: dict[str, Test] = {}
    times: Counter[str] = Counter()
    unusable = 0
    for suite in parse_suites([(answer, problem) for answer in answers], sandbox):
        for test in suite.tests[:NUM_TESTS]:
            usable.setdefault(test.text, test)
            times[test.text] += 1
        unusable += sum(each.invalid for each in suite.dropped)
    distinct = list(dict.fromkeys(code for code, _ in programs))
    rows = run_as_written(
        [put_before(problem.preamble, code) for code in distinct],
        list(usable.values()),
        problem,
        _LIMITS,
        sandbox,
    )
    signs = ["".join(_SIGNS.get(each.outcome, "0") for each in row) for row in rows]
    passed = dict(zip(distinct, signs, strict=True))
    kept = [(right, passed[code]) for code, right in programs if _UNKNOWN not in passed[code]]
    figures: dict[str, float] = {}
    if kept:
        chances = agreement([row for _, row in kept], list(times.values()))
        right = [float(is_right) for is_right, _ in kept]
        figures = {
            "first": right[0],
            RANDOM: sum(right) / len(right),
            "agreement": sum(map(operator.mul, chances, right)),
        }
    return {
        "programs": len(programs),
        "unjudged": len(programs) - len(kept),
        "tests": list(usable),
        "times": list(times.values()),
        "unusable": unusable,
        "passed": [row for _, row in kept],
        **figures,
    }


def agreement(passed: Sequence[str], times: Sequence[int]) -> list[float]:
    """Chance of each program to be chosen; programs and tests that were written twice count twice.

    Of each program `passed` has a "1" for each test that it passes, and a "0" for each other; of tests, how often each was written.

    Example:
        >>> agreement(["110", "110", "111"], [1, 1, 1])
        [0.5, 0.5, 0.0]
    """
    size = Counter(passed)
    scores = [
        size[row] * sum(n for sign, n in zip(row, times, strict=True) if sign == "1")
        for row in passed
    ]
    chosen = [score == max(scores) for score in scores]
    return [each / sum(chosen) for each in chosen]


def selection_report(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What report.json says of all choices: figures, and what they have over a random choice, problem by problem."""
    scored = [row for row in rows if RANDOM in row]
    figures = {name: [row[name] for row in scored] for name in CHOICES if scored}
    gains = {
        name: [a - b for a, b in zip(values, figures[RANDOM], strict=True)]
        for name, values in figures.items()
        if name != RANDOM
    }
    return {
        "problems": len(scored),
        "unjudged": sum(row["unjudged"] for row in rows),
        "tests": sum(sum(row["times"]) for row in scored),
        "unusable": sum(row["unusable"] for row in scored),
        "figures": {name: figure_of(values) for name, values in figures.items()},
        "gains": {name: figure_of(values) for name, values in gains.items()},
    }


def selection_table(report: Mapping[str, Any]) -> tuple[list[list[str]], list[str]]:
    """Rows for the ways to choose, the headings first; and what programs were chosen by, in words."""
    gains, unjudged = report["gains"], report["unjudged"]
    rows = [
        [CHOICES[name], written(each), written(gains[name]) if name in gains else ""]
        for name, each in report["figures"].items()
    ]
    lines = [
        f"Chosen in {counted(report['problems'], 'problems')} by {counted(report['tests'], 'tests')}; "
        f"{report['unusable']} more could not be read"
    ]
    if unjudged:
        lines.append(f"Not chosen from, not judged: {counted(unjudged, 'programs')}")
    return [["program", "right [95%]", "over random [95%, paired]"], *rows], lines
