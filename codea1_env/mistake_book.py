"""The Mistake Book: tests that broke programs, remembered per problem and replayed (arXiv 2603.15611, section 3).

Each problem has a page: test -> frequency. A new test that breaks a program counts +1 per occurrence, a
replayed test that a program passes counts -1, and at 0 it leaves the book. What the programs have
learned is thus forgotten, and what still breaks them comes first. A test that breaks every program of many steps in
a row lets the others go first: it may be about a quirk that no program will ever have.

Tests are text, and come out as they went in, byte for byte. A book holds at most ``max_tests_per_problem`` tests for each
problem that ever failed.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal, NamedTuple, Self, get_args

from codea1_env.support.logs import write_whole

Decay = Literal["per-program", "per-step"]
Replay = Literal["frequency", "quality", "uniform"]
MAX_TESTS = 64
"""Tests of a problem, at most."""
STALE_AFTER = 5
"""Steps in a row in which a replayed test fails every program, before others that wait go first."""
_SURROGATES = "surrogatepass"
"""Language models sometimes write half of a character."""


class PageEntry(NamedTuple):
    """What a book knows of a test."""

    frequency: int
    """How often it broke programs, less what it lost since."""
    stuck: int = 0
    """Steps in a row in which it failed every program while others waited."""


Page = dict[str, PageEntry]
"""The tests of one problem, in the order in which they entered."""


@dataclass(frozen=True)
class BookChange:
    """Changes that one update made."""

    added: int
    """Tests that entered."""
    removed: int
    """Tests that left because programs pass them now."""
    evicted: int
    """Tests that left because the page was full."""


class MistakeBook:
    """Tests that broke programs, with how often they did.

    Args:
        max_tests_per_problem: Size of a page; None for no bound, as released. A new test enters a full page in place of the least
            frequent one (of several, the one that has been there longest), so that the book keeps
            learning; a test that is new itself is then the first to go, so that proven ones stay.
        decay: ``"per-program"``: every program that passes a replayed test counts -1, as released.
            ``"per-step"``: all programs of one update together count -1.
        stale_after: Updates in a row in which a replayed test fails every program while other tests wait, before
            it is moved behind them. None: never, as released.
        replay: Which tests come first. ``"frequency"``: the most frequent ones, as released. ``"quality"``: drawn
            without replacement, the likelier the more programs a test breaks: its frequency is its weight.
            ``"uniform"``: drawn with equal weights. The draw depends on the problem and its page alone.

    Raises:
        ValueError: An argument is outside its range.

    Example:
        >>> book = MistakeBook()
        >>> book.update("add", failed=["assert add(1, 2) == 3", "assert add(0, 0) == 0"])
        BookChange(added=2, removed=0, evicted=0)
        >>> book.update("add", failed=["assert add(0, 0) == 0"], passed=["assert add(1, 2) == 3"])
        BookChange(added=0, removed=1, evicted=0)
        >>> book.tests("add", limit=8), book.frequency("add", "assert add(0, 0) == 0"), len(book)
        (['assert add(0, 0) == 0'], 2, 1)
    """

    def __init__(
        self,
        max_tests_per_problem: int | None = MAX_TESTS,
        decay: Decay = "per-program",
        stale_after: int | None = STALE_AFTER,
        replay: Replay = "frequency",
    ) -> None:
        if any(each is not None and each < 1 for each in (max_tests_per_problem, stale_after)):
            raise ValueError(
                "Expect max_tests_per_problem and stale_after to be positive integers or None, actually: "
                f"{max_tests_per_problem!r}, {stale_after!r}"
            )
        for name, value, known in (("decay", decay, Decay), ("replay", replay, Replay)):
            if value not in get_args(known):
                raise ValueError(
                    f"Expect {name} to be one of {', '.join(get_args(known))}, actually: {value!r}"
                )
        self.max_tests_per_problem = max_tests_per_problem
        self.stale_after = stale_after
        self.decay: Decay = decay
        self.replay: Replay = replay
        self._pages: dict[str, Page] = {}  # of problems that have tests

    def update(
        self,
        task_id: str,
        failed: Iterable[str] = (),
        passed: Iterable[str] = (),
        unpassed: Iterable[str] = (),
    ) -> BookChange:
        """Enter the verdicts of one step on one problem. Costs O(1) per test.

        Args:
            task_id: The problem.
            failed: New tests that broke a program, once for every program that each of them broke.
            passed: Replayed tests that a program passed, once for every program that passed each of
                them. Tests that are not in the book are ignored.
            unpassed: Replayed tests that every program of the step failed. Tests that are not in the book are ignored.

        Returns:
            How many tests came and went.
        """
        failures, passes = _counted("failed", failed), _counted("passed", passed)
        failed_by_all = _counted("unpassed", unpassed).keys() - passes
        page = self._pages.setdefault(task_id, {})
        # Passes first, as released: a test that a program passes and another fails in one step stays.
        removed = 0
        for test, count in passes.items():
            if test in page:
                left = page[test].frequency - (count if self.decay == "per-program" else 1)
                page[test] = PageEntry(left)
                if left <= 0:
                    del page[test]
                    removed += 1
        self._note_stuck(page, failed_by_all)
        new = [test for test in failures if test not in page]
        for test in failures.keys() - new:
            entry = page[test]
            page[test] = PageEntry(entry.frequency + failures[test], entry.stuck)
        evicted = 0
        for test in new:  # after the others, so that none of them is evicted just before it counts
            if self._is_over(len(page) + 1):
                del page[_least_frequent(page)]
                evicted += 1
            page[test] = PageEntry(failures[test])
        if not page:
            del self._pages[task_id]
        return BookChange(len(new), removed, evicted)

    def _is_over(self, tests: int) -> bool:
        return self.max_tests_per_problem is not None and tests > self.max_tests_per_problem

    def _note_stuck(self, page: Page, unpassed: Collection[str]) -> None:
        """Count a step in which tests failed every program, if other tests wait for their places."""
        known = [test for test in unpassed if test in page]
        if self.stale_after is None or len(known) == len(page):
            return
        for test in known:
            page[test] = PageEntry(page[test].frequency, page[test].stuck + 1)

    def _rank(self, entry: PageEntry) -> tuple[int, int]:
        """Rank of a test on its page. Tests of lower rank are replayed first."""
        return (entry.stuck // self.stale_after if self.stale_after else 0), -entry.frequency

    def tests(self, task_id: str, limit: int | None = None) -> list[str]:
        """The tests of a problem, most frequent first; of equally frequent ones, the older first. See `replay`.

        One that failed every program of `stale_after` steps in a row stands behind the others, until a program
        passes it.

        One that is not in the book has no tests. `limit`: how many at most; None for all of them.
        """
        if limit is not None and limit < 0:
            raise ValueError(f"Expect limit to be None, 0 or more, actually: {limit!r}")
        page = self._pages.get(task_id, {})
        # sorted() keeps the order of equals, and a page is in order of entry.
        ranked = sorted(page, key=lambda test: self._rank(page[test]))
        if self.replay != "frequency":
            ranked = self._drawn(task_id, page)
        return ranked[:limit]

    def _drawn(self, task_id: str, page: Page) -> list[str]:
        """Draw all tests of a page without replacement (Efraimidis and Spirakis 2006: the largest u ** (1 / weight))."""
        rng = Random(f"{task_id}\0{len(page)}\0{sum(entry.frequency for entry in page.values())}")
        weigh = self.replay == "quality"
        keys = {
            test: rng.random() ** (1 / entry.frequency if weigh else 1)
            for test, entry in page.items()
        }
        return sorted(page, key=lambda test: -keys[test])

    def frequency(self, task_id: str, test: str) -> int:
        """Programs that the test broke, less its losses since; 0 if it is not in the book."""
        return self._pages.get(task_id, {}).get(test, PageEntry(0)).frequency

    def problems(self) -> list[str]:
        """Return the problems that have tests, sorted."""
        return sorted(self._pages)

    def __len__(self) -> int:
        """Return the number of tests of all problems together."""
        return sum(map(len, self._pages.values()))

    def __bool__(self) -> bool:
        """Return True also for an empty book, so that `book or MistakeBook()` keeps it."""
        return True

    def clear(self) -> None:
        """Forget everything."""
        self._pages = {}

    def state_dict(self) -> dict[str, Any]:
        """Return the contents as plain data that `json.dumps` takes: ``{"problems": {task: [[test, frequency, stuck]]}}``.

        The third number is left out where it is 0: steps in a row in which the test failed every program.
        """
        return {"problems": self._rows()}

    def _rows(self) -> dict[str, list[list[Any]]]:
        return {task: _rows_of(self._pages[task]) for task in self.problems()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replace the contents by those of `state_dict`, and keep this book's settings.

        A page with more tests than ``max_tests_per_problem`` keeps the most frequent ones.

        Raises:
            ValueError: It is not the state of a book; the book is unchanged then.
        """
        problems = state.get("problems") if isinstance(state, Mapping) else None
        if not isinstance(problems, Mapping):
            raise ValueError(
                f"Expect the state of a Mistake Book, a mapping with the key 'problems' as "
                f"state_dict() returns it, actually: {state!r:.100}"
            )
        pages = {task: _checked_page(task, rows) for task, rows in problems.items()}
        for page in pages.values():
            while self._is_over(len(page)):
                del page[_least_frequent(page)]
        self._pages = {task: page for task, page in pages.items() if page}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the book to one file, put in place in one move: a line of JSON for each problem, as in `state_dict`.

        Equal books give equal files, byte for byte.
        """
        # Without escapes, which would join two lone surrogates to one character.
        rows = (json.dumps(each, ensure_ascii=False) for each in self._rows().items())
        write_whole(Path(path), "".join(f"{row}\n" for row in rows), errors=_SURROGATES)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        max_tests_per_problem: int | None = MAX_TESTS,
        **settings: Any,
    ) -> Self:
        """Read a book from the file that `save` wrote, with these arguments of the class.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is not a Mistake Book.
        """
        book = cls(max_tests_per_problem, **settings)
        try:
            # A text may have line ends of other kinds than ours.
            lines = Path(path).read_bytes().decode(errors=_SURROGATES).split("\n")
            book.load_state_dict({"problems": dict(map(json.loads, filter(None, lines)))})
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"Expect the file of a Mistake Book as save() writes it, actually: {path} ({error})"
            ) from error
        return book

    def __reduce__(self) -> tuple[Callable[..., MistakeBook], tuple[Any, ...]]:
        settings = (self.max_tests_per_problem, self.decay, self.stale_after, self.replay)
        return _copied, (type(self), self.state_dict(), settings)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(tests={len(self)}, "
            f"max_tests_per_problem={self.max_tests_per_problem}, decay={self.decay!r}, "
            f"stale_after={self.stale_after})"
        )


def _counted(name: str, tests: Iterable[str]) -> Counter[str]:
    if isinstance(tests, str):
        raise TypeError(
            f"Expect {name} to be a sequence of tests, actually one str: {tests!r:.100}. "
            f"Write {name}=[test]."
        )
    return Counter(tests)


def _least_frequent(page: Page) -> str:
    # min() returns the first of equals, which is the oldest.
    return min(page, key=lambda test: page[test].frequency)


def _rows_of(page: Page) -> list[list[Any]]:
    """Return a page as plain data: test, frequency and, where it is not 0, the third number."""
    return [
        [test, *entry] if entry.stuck else [test, entry.frequency] for test, entry in page.items()
    ]


def _checked_page(task: object, rows: Iterable[Sequence[Any]]) -> Page:
    """Return the page that `_rows_of` made plain data of.

    Raises:
        ValueError: It is something else.
    """
    page: Page = {}
    valid = isinstance(task, str)
    try:
        for test, *numbers in rows:
            valid &= isinstance(test, str) and all(type(number) is int for number in numbers)
            valid &= test not in page
            page[test] = PageEntry(*numbers)
            valid &= page[test].frequency > 0 and page[test].stuck >= 0
    except (TypeError, ValueError):
        valid = False
    if not valid:
        raise ValueError(
            f"Expect problem {task!r:.100} to have a list of different [test, positive frequency] or "
            f"[test, frequency, stuck], actually: {rows!r:.100}"
        )
    return page


def _copied(kind: type[MistakeBook], state: dict[str, Any], settings: Any) -> MistakeBook:
    book = kind(*settings)
    book.load_state_dict(state)
    return book
