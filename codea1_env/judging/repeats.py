"""Under how many hash seeds a reference is run, so that what changes shows.

A value that depends on the order of a set, on time or on chance is no value: a program as good as the reference returns
another. One run is enough for a reference of whose text that is known (`codea1_env.reading.steadiness`), once its
golden tests have given the same under all seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from codea1_env.problems import Problem
from codea1_env.reading.steadiness import look_at
from codea1_env.responses import Test, parse_suites
from codea1_env.sandbox import Sandbox
from codea1_env.support.texts import LRUCache, in_batches

SEEDS = (0, 1, 2, 3)
_GOLDEN = 16
_GOLDEN_CHARS = 20_000

Asked = tuple[str, str]
"""Text of a reference, and its entry point."""


class _SeenReference(NamedTuple):
    """What is known of a reference."""

    is_steady: bool
    is_confirmed: bool = False


# For all referees of this process: it is known of the text alone.
_known = LRUCache[Asked, _SeenReference]()


def is_confirmed(asked: Asked) -> bool:
    """Whether one run of a reference says what all would."""
    known = _known.get(asked)
    return known is not None and known.is_steady and known.is_confirmed


def look(references: Sequence[Asked], sandbox: Sandbox) -> None:
    """Find out of references whether their text allows one run."""
    new = [each for each in dict.fromkeys(references) if _known.get(each) is None]
    for each, (free, orderless) in zip(new, _looks(new, sandbox), strict=True):
        _remember(each, _SeenReference(free and orderless))


def are_free(programs: Sequence[Asked], sandbox: Sandbox) -> list[bool]:
    """Return of programs whether a call depends on nothing but its arguments, under one hash seed."""
    return [free for free, _ in _looks(programs, sandbox)]


def _looks(programs: Sequence[Asked], sandbox: Sandbox) -> Sequence[tuple[bool, bool]]:
    """Look at texts, see `look_at`; nothing is known of one that cannot be read."""
    return in_batches(
        programs,
        lambda asked: len(asked[0]),
        lambda batch: sandbox.analyse(look_at, batch),
        lambda asked, error: (False, False),
    )


def may_be_steady(asked: Asked) -> bool:
    """Whether a reference has a text that allows one run, and nothing was seen that speaks against it."""
    known = _known.get(asked)
    return known is not None and known.is_steady


def settle(asked: Asked, steady: bool) -> None:
    """Remember what its golden tests have shown of a reference."""
    known = _known.get(asked) or _SeenReference(False)
    _remember(asked, known._replace(is_steady=known.is_steady and steady, is_confirmed=True))


def _remember(asked: Asked, known: _SeenReference) -> None:
    _known.put(asked, known, len(asked[0]))


def golden_tests(problem: Problem, sandbox: Sandbox) -> Sequence[Test]:
    """Return some golden tests of a problem, as calls."""
    texts: list[str] = []
    left = _GOLDEN_CHARS
    for text in problem.tests[:_GOLDEN]:
        left -= len(text)
        if left < 0:
            break
        texts.append(text)
    [suite] = parse_suites([("\n".join(texts), problem)], sandbox)
    return suite.tests[:_GOLDEN]
