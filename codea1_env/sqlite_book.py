"""A Mistake Book that lives on disk: any number of problems in constant memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

from codea1_env.mistake_book import Decay, MistakeBook, Page
from codea1_env.support import book_file


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
        """The problems that have tests, sorted."""
        rows = self._connection.execute("SELECT DISTINCT problem FROM tests ORDER BY problem")
        return [book_file.decode(problem) for (problem,) in rows]

    def clear(self) -> None:
        """Forget everything, at the next commit also on disk."""
        self._begin()
        self._connection.execute("DELETE FROM tests")
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
        if not Path(path).is_file():
            raise FileNotFoundError(
                f"Expect the file of a Mistake Book, actually there is none: {path}"
            )
        return cls(path, max_tests_per_problem, decay)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.commit()
        self.close()

    def __reduce__(self) -> tuple[Callable[..., MistakeBook], tuple[Any, ...]]:
        return _in_memory, (self.max_tests_per_problem, self.decay, self.state_dict())

    def _begin(self) -> None:
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN IMMEDIATE")

    def _read(self, task_id: str) -> Page:
        return book_file.read_page(self._connection, task_id)

    def _write(self, task_id: str, page: Page) -> None:
        self._begin()
        book_file.write_page(self._connection, task_id, page)

    def _items(self) -> Iterator[tuple[str, Page]]:
        return book_file.read_pages(self._connection)


def _in_memory(max_tests_per_problem: int, decay: Decay, state: dict[str, Any]) -> MistakeBook:
    book = MistakeBook(max_tests_per_problem, decay)
    book.load_state_dict(state)
    return book
