"""Tests that come as texts, one by one: those of the Mistake Book, and of whoever has only texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from codea1_env.problems import Problem
from codea1_env.responses import Suite, parse_suites
from codea1_env.sandbox import Sandbox
from codea1_env.support.texts import LRUCache

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
