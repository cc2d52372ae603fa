"""What testers answered: read, and judged, problem by problem."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from codea1_env.judging.verdicts import Round, Verdict
from codea1_env.oracle import gather
from codea1_env.problems import Problem
from codea1_env.responses import Program, Suite, parse_suites
from codea1_env.sandbox import Sandbox
from codea1_env.support.lru_cache import LRUCache

_AT_ONCE = 3

Judged = tuple[list[Suite], Verdict]
"""The suites that attacked a program, and the verdict on it."""


class AttackAnswers(NamedTuple):
    """What testers answered to the programs of one problem."""

    problem: Problem
    programs: Sequence[Program]
    attacks: Sequence[str]
    """An equal share for each program."""
    history: Sequence[str]
    """Tests to replay."""


def by_problem(
    problems: Sequence[Problem],
    programs: Sequence[Program],
    attacks: Sequence[str],
    history: Mapping[str, Sequence[str]],
) -> list[AttackAnswers]:
    """Divide answers by their problem. Those to one problem stand together."""
    share = len(attacks) // max(1, len(programs))
    starts = [i for i, problem in enumerate(problems) if not i or problem != problems[i - 1]]
    return [
        AttackAnswers(
            problems[start],
            programs[start:end],
            attacks[start * share : end * share],
            history.get(problems[start].task_id, ()),
        )
        for start, end in itertools.pairwise([*starts, len(problems)])
    ]


def judge_answers(
    parts: Sequence[AttackAnswers],
    sandbox: Sandbox,
    judge: Callable[[Sequence[Round]], Sequence[Verdict]],
) -> list[Judged]:
    """Read and judge answers, some parts at once: while one program runs, another answer is read.

    Args:
        parts: The answers.
        sandbox: Where they are read.
        judge: See `Referee.judge`.
    """

    def judged(part: AttackAnswers) -> list[Judged]:
        parsed = parse_suites([(text, part.problem) for text in part.attacks], sandbox)
        share = len(parsed) // max(1, len(part.programs))
        suites = [parsed[i * share : (i + 1) * share] for i in range(len(part.programs))]
        rounds = [
            Round(part.problem, program, against, part.history)
            for program, against in zip(part.programs, suites, strict=True)
        ]
        return list(zip(suites, judge(rounds), strict=True))

    if len(parts) == 1:
        return judged(parts[0])
    with ThreadPoolExecutor(_AT_ONCE, "judge-part") as threads:
        found = gather([threads.submit(judged, part) for part in parts])
        return [item for items in found for item in items]


Key = tuple[str, str, str, tuple[str, ...], str]
_TOGETHER = 32
_ALONE = re.compile(r"assert (?:(?!:=)[^`<\n\r]){1,500}")
"""A line that neither binds a name nor could be taken for anything but code."""


def key_of(problem: Problem, text: str) -> Key:
    """What the reading of a text depends on."""
    return (problem.prompt, problem.entry_point, problem.reference, problem.all_tests, text)


def joined(parts: Sequence[Suite]) -> Suite:
    """Several texts as one suite."""
    tests = tuple(test for part in parts for test in part.tests)
    dropped = tuple(item for part in parts for item in part.dropped)
    return Suite(tests, dropped)


class WrittenTests:
    """Reads texts as `parse_suites` does, and remembers what was in them.

    Args:
        sandbox: Where they are read.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._known = LRUCache[Key, Suite]()

    def read(self, wanted: Iterable[tuple[Problem, str]]) -> dict[Key, Suite]:
        """What is in each text.

        Raises:
            InfraError: The texts could not be read, for no reason of theirs.
        """
        found: dict[Key, Suite] = {}
        new: dict[Key, tuple[str, Problem]] = {}
        for problem, text in wanted:
            key = key_of(problem, text)
            suite = self._known.get(key)
            if suite is None:
                new[key] = (text, problem)
            else:
                found[key] = suite
        read = self._together(new)
        rest = [key for key in new if key not in read]
        read |= zip(rest, parse_suites([new[key] for key in rest], self._sandbox), strict=True)
        for key, suite in read.items():
            self._known.put(key, suite, 4 * len(key[-1]))
        return found | read

    def _together(self, new: dict[Key, tuple[str, Problem]]) -> dict[Key, Suite]:
        """Read single assertions many at a time, which is faster, where each of them turns out to be a test."""
        groups: list[list[Key]] = []
        for key, (text, _) in new.items():
            if not _ALONE.fullmatch(text):
                continue
            if not groups or len(groups[-1]) == _TOGETHER or groups[-1][0][:-1] != key[:-1]:
                groups.append([])
            groups[-1].append(key)
        texts = [("\n".join(key[-1] for key in group), new[group[0]][1]) for group in groups]
        read: dict[Key, Suite] = {}
        for group, suite in zip(groups, parse_suites(texts, self._sandbox), strict=True):
            if len(suite.tests) == len(group) and not suite.dropped:
                read |= {key: Suite((test,)) for key, test in zip(group, suite.tests, strict=True)}
        return read
