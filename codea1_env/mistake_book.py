"""The Mistake Book: tests that broke programs, remembered per problem and replayed (arXiv 2603.15611, section 3).

Each problem has a page: test -> frequency. A new test that breaks a program counts +1 per occurrence, a
replayed test that a program passes counts -1, and at 0 it leaves the book. What the programs have
learned is thus forgotten, and what still breaks them comes first.

Tests are text, and come out as they went in, byte for byte. `MistakeBook` lives in memory: at most
``max_tests_per_problem`` tests for each problem that ever failed. For more problems than fit, use
`codea1_env.mistake_book.SqliteBook`, which has the same methods and keeps its pages on disk.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, get_args

from codea1_env.support import book_file

Decay = Literal["per-program", "per-step"]
Page = dict[str, int]
"""The tests of one problem with their frequencies, in the order in which they entered."""


@dataclass(frozen=True)
class BookChange:
    """What one update did to the book."""

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

    def __init__(self, max_tests_per_problem: int = 64, decay: Decay = "per-program") -> None:
        size = max_tests_per_problem
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(
                f"Expect max_tests_per_problem to be a positive integer, actually: {size!r}"
            )
        if decay not in get_args(Decay):
            raise ValueError(
                f"Expect decay to be one of {', '.join(get_args(Decay))}, actually: {decay!r}"
            )
        self.max_tests_per_problem = size
        self.decay: Decay = decay
        self._pages: dict[str, Page] = {}
        self._size = 0
        # The file that holds this book up to the problems in _unsaved; None before the first save.
        self._saved: book_file.Stamp | None = None
        self._unsaved: set[str] = set()

    def update(
        self, task_id: str, failed: Iterable[str] = (), passed: Iterable[str] = ()
    ) -> BookChange:
        """Enter what one step found out about one problem. Costs O(1) per test.

        Args:
            task_id: The problem.
            failed: New tests that broke a program, once for every program that each of them broke.
            passed: Replayed tests that a program passed, once for every program that passed each of
                them. Tests that are not in the book are ignored.

        Returns:
            How many tests came and went.
        """
        failures, passes = _counted("failed", failed), _counted("passed", passed)
        page = self._read(task_id)
        before = len(page)
        # Passes first, as released: a test that a program passes and another fails in one step stays.
        removed = 0
        for test, count in passes.items():
            if test in page:
                page[test] -= count if self.decay == "per-program" else 1
                if page[test] <= 0:
                    del page[test]
                    removed += 1
        new = [test for test in failures if test not in page]
        for test in failures.keys() - new:
            page[test] += failures[test]
        evicted = 0
        for test in new:  # after the others, so that none of them is evicted just before it counts
            if len(page) >= self.max_tests_per_problem:
                del page[_least_frequent(page)]
                evicted += 1
            page[test] = failures[test]
        if failures or removed or any(test in page for test in passes):
            self._write(task_id, page)
            self._size += len(page) - before
        return BookChange(len(new), removed, evicted)

    def tests(self, task_id: str, limit: int | None = None) -> list[str]:
        """The tests of a problem, most frequent first; of equally frequent ones, the older first.

        Args:
            task_id: The problem. One that is not in the book has no tests.
            limit: How many at most; None for all of them.
        """
        if limit is not None and limit < 0:
            raise ValueError(f"Expect limit to be None, 0 or more, actually: {limit!r}")
        page = self._read(task_id)
        # sorted() keeps the order of equals also in reverse, and a page is in order of entry.
        return sorted(page, key=page.__getitem__, reverse=True)[:limit]

    def frequency(self, task_id: str, test: str) -> int:
        """How often the test broke programs, less what it lost since; 0 if it is not in the book."""
        return self._read(task_id).get(test, 0)

    def problems(self) -> list[str]:
        """Return the problems that have tests, sorted."""
        return sorted(self._pages)

    def __len__(self) -> int:
        """Return the number of tests of all problems together."""
        return self._size

    def __bool__(self) -> bool:
        """Return True, also for an empty book: so that `book or MistakeBook()` never swaps a book."""
        return True

    def clear(self) -> None:
        """Forget everything."""
        self._pages = {}
        self._size = 0
        self._saved = None
        self._unsaved = set()

    def state_dict(self) -> dict[str, Any]:
        """Return the contents as plain data that `json.dumps` takes: ``{"problems": {task: [[test, frequency]]}}``."""
        return {
            "problems": {task: [list(row) for row in page.items()] for task, page in self._items()}
        }

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
        pages = {task: self._trimmed(_checked_page(task, rows)) for task, rows in problems.items()}
        self.clear()
        for task, page in pages.items():
            if page:
                self._write(task, page)
                self._size += len(page)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the book as an SQLite file, in one transaction.

        Saving again to the same file writes only the problems that changed since. Whenever the process
        dies, the file holds the book of the last `save` that ended.
        """
        target = Path(path)
        if self._saved is not None and self._saved == book_file.stamp(target):
            book_file.rewrite(target, {task: self._read(task) for task in sorted(self._unsaved)})
        else:
            book_file.create(target, self._items())
        self._saved = book_file.stamp(target)
        self._unsaved = set()

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        max_tests_per_problem: int = 64,
        decay: Decay = "per-program",
    ) -> Self:
        """Read a book from the file that `save` wrote.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is not a Mistake Book.
        """
        book = cls(max_tests_per_problem, decay)
        for task, page in book_file.read(Path(path)):
            book._pages[task] = book._trimmed(page)
            book._size += len(book._pages[task])
        return book

    def __getstate__(self) -> dict[str, Any]:
        # A copy must not believe that it knows what is in the file of the original.
        return {**self.__dict__, "_saved": None, "_unsaved": set()}

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(tests={len(self)}, "
            f"max_tests_per_problem={self.max_tests_per_problem}, decay={self.decay!r})"
        )

    def _trimmed(self, page: Page) -> Page:
        while len(page) > self.max_tests_per_problem:
            del page[_least_frequent(page)]
        return page

    # How pages are kept; a book on disk replaces these.

    def _read(self, task_id: str) -> Page:
        return self._pages.get(task_id, {})

    def _write(self, task_id: str, page: Page) -> None:
        if page:
            self._pages[task_id] = page
        else:
            self._pages.pop(task_id, None)
        if self._saved is not None:
            self._unsaved.add(task_id)

    def _items(self) -> Iterator[tuple[str, Page]]:
        for task in self.problems():
            yield task, self._read(task)


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
    return min(page, key=page.__getitem__)


def _checked_page(task: object, rows: Iterable[Sequence[Any]]) -> Page:
    page: Page = {}
    valid = isinstance(task, str)
    try:
        for test, frequency in rows:
            valid &= isinstance(test, str) and type(frequency) is int and frequency > 0
            valid &= test not in page
            page[test] = frequency
    except (TypeError, ValueError):
        valid = False
    if not valid:
        raise ValueError(
            f"Expect problem {task!r:.100} to have a list of different [test, positive frequency], "
            f"actually: {rows!r:.100}"
        )
    return page


class SqliteBook(MistakeBook):
    """A `MistakeBook` whose pages are read from an SQLite file when needed, and written back at once.

    All changes since the last `commit` are one open transaction: call `commit` once per step. Whenever
    the process dies, the file holds the book as of the last commit. As a context manager it commits at
    the end, unless an exception ends it. One process may write a file at a time.

    A copy (deepcopy, pickle) is an ordinary `MistakeBook` in memory: two books cannot own one file.

    Args:
        path: The file; made if it is not there.
        max_tests_per_problem: As in `MistakeBook`. It holds for pages as they are updated.
        decay: As in `MistakeBook`.

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
        self,
        path: str | os.PathLike[str],
        max_tests_per_problem: int = 64,
        decay: Decay = "per-program",
    ) -> None:
        super().__init__(max_tests_per_problem, decay)
        self.path = Path(path)
        if not self.path.exists():
            book_file.create(self.path, [])
        self._connection = book_file.connect(self.path)
        self._size = self._connection.execute("SELECT COUNT(*) FROM tests").fetchone()[0]

    def commit(self) -> None:
        """Make everything since the last commit permanent, in one transaction."""
        if self._connection.in_transaction:
            self._connection.execute("COMMIT")

    def close(self) -> None:
        """Close the file. What was not committed is lost."""
        self._connection.close()

    def problems(self) -> list[str]:
        """Return the problems that have tests, sorted."""
        rows = self._connection.execute("SELECT DISTINCT problem FROM tests ORDER BY problem")
        return [book_file.decode(problem) for (problem,) in rows]

    def clear(self) -> None:
        """Forget everything, at the next commit also on disk."""
        self._begin().execute("DELETE FROM tests")
        self._size = 0

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a copy to another file, with what is not yet committed."""
        if Path(path).resolve() == self.path.resolve():
            raise ValueError(
                f"Expect save() to get another file than the book's own, actually: {path}. "
                f"Use commit() to make the changes permanent."
            )
        book_file.create(Path(path), self._items())

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        max_tests_per_problem: int = 64,
        decay: Decay = "per-program",
    ) -> Self:
        """Open a file that must exist.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is not a Mistake Book.
        """
        book_file.connect(Path(path)).close()
        return cls(path, max_tests_per_problem, decay)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.commit()
        self.close()

    def __reduce__(self) -> tuple[Callable[..., MistakeBook], tuple[Any, ...]]:
        return _in_memory, (self.max_tests_per_problem, self.decay, self.state_dict())

    def _begin(self) -> sqlite3.Connection:
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN IMMEDIATE")
        return self._connection

    def _read(self, task_id: str) -> Page:
        return book_file.read_page(self._connection, task_id)

    def _write(self, task_id: str, page: Page) -> None:
        book_file.write_page(self._begin(), task_id, page)

    def _items(self) -> Iterator[tuple[str, Page]]:
        return book_file.read_pages(self._connection)


def _in_memory(max_tests_per_problem: int, decay: Decay, state: dict[str, Any]) -> MistakeBook:
    book = MistakeBook(max_tests_per_problem, decay)
    book.load_state_dict(state)
    return book
