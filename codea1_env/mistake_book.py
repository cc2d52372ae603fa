"""The Mistake Book: tests that broke programs, remembered per problem and replayed (arXiv 2603.15611, section 3).

Each problem has a page: test -> frequency. A new test that breaks a program counts +1 per occurrence, a
replayed test that a program passes counts -1, and at 0 it leaves the book. What the programs have
learned is thus forgotten, and what still breaks them comes first. A test that breaks every program of many steps in
a row lets the others go first: it may be about a quirk that no program will ever have.

Tests are text, and come out as they went in, byte for byte. A book lives in memory: at most ``max_tests_per_problem``
tests for each problem that ever failed. For more problems than fit, give it a file.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal, Self, get_args

from codea1_env.support import book_file
from codea1_env.support.book_file import Page, PageEntry

Decay = Literal["per-program", "per-step"]
Replay = Literal["frequency", "quality", "uniform"]
STALE_AFTER = 5
"""Steps in a row in which a replayed test fails every program, before others that wait go first."""


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

    With a file, pages are read from it when they are needed, and `commit` writes back those that changed, in one
    transaction: call it once per step. Whenever the process dies, the file holds the book as of the last commit. One
    process may write a file at a time, from the first change to the commit. As a context manager the book commits at
    the end, unless an exception ends it. A copy (deepcopy, pickle) is in memory: two books cannot own one file.

    Args:
        max_tests_per_problem: Size of a page. A new test enters a full page in place of the least
            frequent one (of several, the one that has been there longest), so that the book keeps
            learning; a test that is new itself is then the first to go, so that proven ones stay.
        decay: ``"per-program"``: every program that passes a replayed test counts -1, as released.
            ``"per-step"``: all programs of one update together count -1.
        stale_after: Updates in a row in which a replayed test fails every program while other tests wait, before
            it is moved behind them. None: never, as released.
        replay: Which tests come first. ``"frequency"``: the most frequent ones, as released. ``"quality"``: drawn
            without replacement, the likelier the more programs a test breaks: its frequency is its weight.
            ``"uniform"``: drawn with equal weights. The draw depends on the problem and its page alone.
        path: The SQLite file of the book, made if it is not there; None for a book in memory.

    Raises:
        ValueError: An argument is outside its range, or the file is not a Mistake Book.

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
        max_tests_per_problem: int = 64,
        decay: Decay = "per-program",
        stale_after: int | None = STALE_AFTER,
        replay: Replay = "frequency",
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        if max_tests_per_problem < 1 or (stale_after is not None and stale_after < 1):
            raise ValueError(
                "Expect max_tests_per_problem and stale_after to be positive integers, actually: "
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
        self._pages: dict[
            str, Page
        ] = {}  # all of them; with a file, those that changed since the last commit
        self._size = 0
        self._file = None if path is None else book_file.BookFile(Path(path))
        self._cleared = self._file is None  # of what the file holds, nothing counts any more
        if self._file is not None:
            self._size = self._file.size()

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
        self._begin()
        page = self._read(task_id)
        before = len(page)
        # Passes first, as released: a test that a program passes and another fails in one step stays.
        removed = 0
        for test, count in passes.items():
            if test in page:
                left = page[test].frequency - (count if self.decay == "per-program" else 1)
                page[test] = PageEntry(left)
                if left <= 0:
                    del page[test]
                    removed += 1
        stuck = self._note_stuck(page, _counted("unpassed", unpassed).keys() - passes)
        new = [test for test in failures if test not in page]
        for test in failures.keys() - new:
            entry = page[test]
            page[test] = PageEntry(entry.frequency + failures[test], entry.stuck)
        evicted = 0
        for test in new:  # after the others, so that none of them is evicted just before it counts
            if len(page) >= self.max_tests_per_problem:
                del page[_least_frequent(page)]
                evicted += 1
            page[test] = PageEntry(failures[test])
        if failures or removed or stuck or any(test in page for test in passes):
            self._pages[task_id] = page
            if not page and self._file is None:
                del self._pages[task_id]
            self._size += len(page) - before
        return BookChange(len(new), removed, evicted)

    def _note_stuck(self, page: Page, unpassed: Collection[str]) -> bool:
        """Count a step in which tests failed every program, if other tests wait for their places."""
        known = [test for test in unpassed if test in page]
        if self.stale_after is None or len(known) == len(page):
            return False
        for test in known:
            page[test] = PageEntry(page[test].frequency, page[test].stuck + 1)
        return bool(known)

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
        page = self._read(task_id)
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
        return self._read(task_id).get(test, PageEntry(0)).frequency

    def problems(self) -> list[str]:
        """Return the problems that have tests, sorted."""
        held = {task for task, page in self._pages.items() if page}
        if self._file is None or self._cleared:
            return sorted(held)
        return sorted(self._file.problems() - self._pages.keys() | held)

    def __len__(self) -> int:
        """Return the number of tests of all problems together."""
        return self._size

    def __bool__(self) -> bool:
        """Return True also for an empty book, so that `book or MistakeBook()` keeps it."""
        return True

    def clear(self) -> None:
        """Forget everything, at the next commit also on disk."""
        self._begin()
        self._pages, self._cleared = {}, True
        self._size = 0

    def state_dict(self) -> dict[str, Any]:
        """Return the contents as plain data that `json.dumps` takes: ``{"problems": {task: [[test, frequency, stuck]]}}``.

        The third number is left out where it is 0: steps in a row in which the test failed every program.
        """
        return {"problems": {task: book_file.rows_of(page) for task, page in self._items()}}

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
        pages = [(task, book_file.checked_page(task, rows)) for task, rows in problems.items()]
        self.clear()
        self._fill(pages)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the book as an SQLite file, put in place in one move: whenever the process dies, the file holds a whole book.

        Raises:
            ValueError: It is this book's own file, which `commit` writes.
        """
        if self._file is not None and Path(path).resolve() == self._file.path.resolve():
            raise ValueError(
                f"Expect save() to get another file than the book's own, actually: {path}. "
                f"Use commit() to make the changes permanent."
            )
        book_file.create(Path(path), self._items())

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], max_tests_per_problem: int = 64, **settings: Any
    ) -> Self:
        """Read a book from the file that `save` wrote into memory, with these arguments of the class.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is not a Mistake Book.
        """
        book = cls(max_tests_per_problem, **settings)
        book._fill(book_file.read(Path(path)))
        return book

    def commit(self) -> None:
        """Make everything since the last commit permanent in the book's file, if it has one.

        Raises:
            BookFileError: It cannot be written, as on a full disk. Book and file are as before: try again when there is room.
        """
        if self._file is not None:
            self._file.commit(self._pages, anew=self._cleared)
            self._pages, self._cleared = {}, False

    def close(self) -> None:
        """Close the file, if there is one. Changes that were not committed are lost."""
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.commit()
        self.close()

    def __reduce__(self) -> tuple[Callable[..., MistakeBook], tuple[Any, ...]]:
        settings = (self.max_tests_per_problem, self.decay, self.stale_after, self.replay)
        return _in_memory, (type(self), self.state_dict(), settings)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(tests={len(self)}, "
            f"max_tests_per_problem={self.max_tests_per_problem}, decay={self.decay!r}, "
            f"stale_after={self.stale_after})"
        )

    def _begin(self) -> None:
        if self._file is not None:
            self._file.begin()

    def _read(self, task_id: str) -> Page:
        if self._file is None or self._cleared or task_id in self._pages:
            return self._pages.get(task_id, {})
        return self._file.read_page(task_id)

    def _items(self) -> Iterator[tuple[str, Page]]:
        for task in self.problems():
            yield task, self._read(task)

    def _fill(self, pages: Iterable[tuple[str, Page]]) -> None:
        for task, page in pages:
            while len(page) > self.max_tests_per_problem:
                del page[_least_frequent(page)]
            self._pages[task] = page
            self._size += len(page)


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


def _in_memory(kind: type[MistakeBook], state: dict[str, Any], settings: Any) -> MistakeBook:
    book = kind(*settings)
    book.load_state_dict(state)
    return book


def SqliteBook(  # noqa: N802 - it was a class of its own, and is known by this name
    path: str | os.PathLike[str], max_tests_per_problem: int = 64, **settings: Any
) -> MistakeBook:
    """Return a `MistakeBook` with a file."""
    return MistakeBook(max_tests_per_problem, path=path, **settings)
