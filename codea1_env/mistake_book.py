"""The Mistake Book: tests that broke programs, remembered per problem and replayed (arXiv 2603.15611, section 3).

Each problem has a page: test -> frequency. A new test that breaks a program counts +1 per occurrence, a
replayed test that a program passes counts -1, and at 0 it leaves the book. What the programs have
learned is thus forgotten, and what still breaks them comes first. A test that breaks every program of many steps in
a row lets the others go first: it may be about a quirk that no program will ever have.

Tests are text, and come out as they went in, byte for byte. `MistakeBook` lives in memory: at most
``max_tests_per_problem`` tests for each problem that ever failed. For more problems than fit, use
`codea1_env.mistake_book.SqliteBook`, which has the same methods and keeps its pages on disk.
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
        max_tests_per_problem: int = 64,
        decay: Decay = "per-program",
        stale_after: int | None = STALE_AFTER,
        replay: Replay = "frequency",
    ) -> None:
        _check_positive("max_tests_per_problem", max_tests_per_problem)
        if stale_after is not None:
            _check_positive("stale_after", stale_after)
        for name, value, known in (("decay", decay, Decay), ("replay", replay, Replay)):
            if value not in get_args(known):
                raise ValueError(
                    f"Expect {name} to be one of {', '.join(get_args(known))}, actually: {value!r}"
                )
        self.max_tests_per_problem = max_tests_per_problem
        self.stale_after = stale_after
        self.decay: Decay = decay
        self.replay: Replay = replay
        self._pages: dict[str, Page] = {}
        self._size = 0

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
            self._write(task_id, page)
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
        return sorted(self._pages)

    def __len__(self) -> int:
        """Return the number of tests of all problems together."""
        return self._size

    def __bool__(self) -> bool:
        """Return True also for an empty book, so that `book or MistakeBook()` keeps it."""
        return True

    def clear(self) -> None:
        """Forget everything."""
        self._pages = {}
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
        pages = {
            task: self._trimmed(book_file.checked_page(task, rows))
            for task, rows in problems.items()
        }
        self.clear()
        for task, page in pages.items():
            if page:
                self._write(task, page)
                self._size += len(page)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the book as an SQLite file, put in place in one move: whenever the process dies, the file holds a whole book."""
        book_file.create(Path(path), self._items())

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], max_tests_per_problem: int = 64, **settings: Any
    ) -> Self:
        """Read a book from the file that `save` wrote, with these arguments of the class.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is not a Mistake Book.
        """
        book = cls(max_tests_per_problem, **settings)
        for task, page in book_file.read(Path(path)):
            book._pages[task] = book._trimmed(page)
            book._size += len(book._pages[task])
        return book

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(tests={len(self)}, "
            f"max_tests_per_problem={self.max_tests_per_problem}, decay={self.decay!r}, "
            f"stale_after={self.stale_after})"
        )

    def _trimmed(self, page: Page) -> Page:
        while len(page) > self.max_tests_per_problem:
            del page[_least_frequent(page)]
        return page

    # How pages are kept; a book on disk replaces these.

    def _begin(self) -> None:
        """Get ready for an update."""

    def _read(self, task_id: str) -> Page:
        return self._pages.get(task_id, {})

    def _write(self, task_id: str, page: Page) -> None:
        if page:
            self._pages[task_id] = page
        else:
            self._pages.pop(task_id, None)

    def _items(self) -> Iterator[tuple[str, Page]]:
        for task in self.problems():
            yield task, self._read(task)


def _check_positive(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"Expect {name} to be a positive integer, actually: {value!r}")


def _counted(name: str, tests: Iterable[str]) -> Counter[str]:
    if isinstance(tests, str):
        raise TypeError(
            f"Expect {name} to be a sequence of tests, actually one str: {tests!r:.100}. "
            f"Write {name}=[test]."
        )
    counts = Counter(tests)
    for test in counts:
        if not isinstance(test, str):
            raise TypeError(f"Expect {name} to hold tests as str, actually: {test!r:.100}")
    return counts


def _least_frequent(page: Page) -> str:
    # min() returns the first of equals, which is the oldest.
    return min(page, key=lambda test: page[test].frequency)


class SqliteBook(MistakeBook):
    """A `MistakeBook` whose pages are read from an SQLite file when needed, and written back by `commit`.

    All changes since the last `commit` are one transaction: call `commit` once per step. Whenever
    the process dies, the file holds the book as of the last commit. As a context manager it commits at
    the end, unless an exception ends it. One process may write a file at a time: from the first change to the commit.

    Pages that changed are held in memory until they are committed. A commit that fails, as on a full disk, raises
    `BookFileError` and changes neither the file nor the book: it may be called again when there is room.

    A copy (deepcopy, pickle) is an ordinary `MistakeBook` in memory: two books cannot own one file.

    Args:
        path: The file; made if it is not there.
        max_tests_per_problem: As in `MistakeBook`. It holds for pages as they are updated.
        **settings: The other arguments of `MistakeBook`.

    Raises:
        ValueError: The file is not a Mistake Book.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> with SqliteBook(f"{folder.name}/book.sqlite") as book:
        ...     change = book.update("add", failed=["assert add(1, 2) == 3"])
        >>> MistakeBook.load(f"{folder.name}/book.sqlite").tests("add")
        ['assert add(1, 2) == 3']
        >>> folder.cleanup()
    """

    def __init__(
        self, path: str | os.PathLike[str], max_tests_per_problem: int = 64, **settings: Any
    ) -> None:
        super().__init__(max_tests_per_problem, **settings)
        self.path = Path(path)
        if not self.path.exists():
            book_file.create(self.path, [])
        self._connection = book_file.connect(self.path)
        self._size = self._connection.execute("SELECT COUNT(*) FROM tests").fetchone()[0]
        self._changed: dict[str, Page] = {}
        self._cleared = False  # of what the file holds, nothing counts any more

    def commit(self) -> None:
        """Make everything since the last commit permanent, in one transaction.

        Raises:
            BookFileError: It cannot be written. Book and file are as before.
        """
        with book_file.explained(self.path):
            self._begin()
            try:
                if self._cleared:
                    self._connection.execute("DELETE FROM tests")
                for task, page in self._changed.items():
                    book_file.write_page(self._connection, task, page)
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        self._changed, self._cleared = {}, False

    def close(self) -> None:
        """Close the file. Changes that were not committed are lost."""
        self._connection.close()

    def problems(self) -> list[str]:
        """Return the problems that have tests, sorted."""
        rows = self._connection.execute("SELECT DISTINCT problem FROM tests")
        on_disk = set() if self._cleared else {book_file.decode(problem) for (problem,) in rows}
        changed = {task for task, page in self._changed.items() if page}
        return sorted(on_disk - self._changed.keys() | changed)

    def clear(self) -> None:
        """Forget everything, at the next commit also on disk."""
        self._begin()
        self._changed, self._cleared = {}, True
        self._size = 0

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a copy to another file, with changes that are not yet committed."""
        if Path(path).resolve() == self.path.resolve():
            raise ValueError(
                f"Expect save() to get another file than the book's own, actually: {path}. "
                f"Use commit() to make the changes permanent."
            )
        book_file.create(Path(path), self._items())

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], max_tests_per_problem: int = 64, **settings: Any
    ) -> Self:
        """Open a file that must exist; see `MistakeBook.load`.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is not a Mistake Book.
        """
        book_file.connect(Path(path)).close()
        return cls(path, max_tests_per_problem, **settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.commit()
        self.close()

    def __reduce__(self) -> tuple[Callable[..., MistakeBook], tuple[Any, ...]]:
        settings = (self.max_tests_per_problem, self.decay, self.stale_after, self.replay)
        return _in_memory, (self.state_dict(), *settings)

    def _begin(self) -> None:
        """Keep other processes from writing the file.

        Raises:
            BookFileError: Another process writes it.
        """
        if not self._connection.in_transaction:
            with book_file.explained(self.path):
                self._connection.execute("BEGIN IMMEDIATE")

    def _read(self, task_id: str) -> Page:
        if task_id in self._changed:
            return self._changed[task_id]
        return {} if self._cleared else book_file.read_page(self._connection, task_id)

    def _write(self, task_id: str, page: Page) -> None:
        self._changed[task_id] = page

    def _items(self) -> Iterator[tuple[str, Page]]:
        if self._changed or self._cleared:
            return super()._items()
        return book_file.read_pages(self._connection)


def _in_memory(state: dict[str, Any], *settings: Any) -> MistakeBook:
    book = MistakeBook(*settings)
    book.load_state_dict(state)
    return book
