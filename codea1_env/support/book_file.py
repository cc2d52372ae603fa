"""The file of a Mistake Book: SQLite, one row for each test.

Texts are stored as BLOBs of UTF-8 with surrogates allowed, because SQLite's TEXT ends at a null
character in many tools and cannot hold the lone surrogates that language models sometimes produce.
``SELECT CAST(test AS TEXT), frequency FROM tests`` reads them in the sqlite3 shell.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

APPLICATION_ID = 0x43414231  # "CAB1": tells a Mistake Book from any other SQLite file
_SCHEMA = """
CREATE TABLE tests (
    problem BLOB NOT NULL,
    position INTEGER NOT NULL, -- order of entry within the problem
    test BLOB NOT NULL,
    frequency INTEGER NOT NULL,
    stuck INTEGER NOT NULL DEFAULT 0, -- steps in a row in which the test failed every program
    PRIMARY KEY (problem, position)
) WITHOUT ROWID
"""

_STUCK = "ALTER TABLE tests ADD COLUMN stuck INTEGER NOT NULL DEFAULT 0"


class BookFileError(OSError):
    """The file of a Mistake Book cannot be written, as on a full disk."""


class PageEntry(NamedTuple):
    """What a book knows of a test."""

    frequency: int
    """How often it broke programs, less what it lost since."""
    stuck: int = 0
    """Steps in a row in which it failed every program while others waited."""


Page = dict[str, PageEntry]
"""The tests of one problem, in the order in which they entered."""


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Raise `BookFileError` where SQLite cannot read or write a book's file."""
    try:
        yield
    except sqlite3.Error as error:
        raise BookFileError(
            f"Expect to write the Mistake Book {path}, actually: {error}. Check the free space of its disk, and whether "
            "another process writes the file."
        ) from error


def encode(text: str) -> bytes:
    r"""Text as the bytes that are stored.

    Example:
        >>> decode(encode("\x00 \ud800")) == "\x00 \ud800"
        True
    """
    return text.encode("utf-8", "surrogatepass")


def decode(data: bytes) -> str:
    """Bytes as they are stored, back to text."""
    return data.decode("utf-8", "surrogatepass")


class BookFile:
    """An open file, made if it is not there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            create(path, [])
        self._connection = _connect(path)

    def size(self) -> int:
        """Return the number of tests of all problems."""
        count: int = self._connection.execute("SELECT COUNT(*) FROM tests").fetchone()[0]
        return count

    def problems(self) -> set[str]:
        """Return the problems that have tests."""
        rows = self._connection.execute("SELECT DISTINCT problem FROM tests")
        return {decode(problem) for (problem,) in rows}

    def read_page(self, problem: str) -> Page:
        """Return the tests of one problem, in order of entry."""
        rows = self._connection.execute(
            "SELECT test, frequency, stuck FROM tests WHERE problem = ? ORDER BY position",
            (encode(problem),),
        )
        return {decode(test): PageEntry(*numbers) for test, *numbers in rows}

    def begin(self) -> None:
        """Keep other processes from writing the file."""
        if not self._connection.in_transaction:
            with _explained(self.path):
                self._connection.execute("BEGIN IMMEDIATE")

    def commit(self, pages: Mapping[str, Page], *, anew: bool) -> None:
        """Write pages in one transaction; `anew`: in place of all that the file holds."""
        with _explained(self.path):
            self.begin()
            try:
                if anew:
                    self._connection.execute("DELETE FROM tests")
                for problem, page in pages.items():
                    _write_page(self._connection, problem, page)
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _connect(path: Path, *, new: bool = False) -> sqlite3.Connection:
    """Open a book's file with explicit transactions; `new`: make an empty book in a new file."""
    if not new and not path.is_file():
        raise FileNotFoundError(
            f"Expect the file of a Mistake Book, actually there is none: {path}"
        )
    # isolation_level=None: transactions begin and end where we say so.
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        if new:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(_SCHEMA)
        elif connection.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
            raise sqlite3.DatabaseError("another application's database")
        elif "stuck" not in [row[1] for row in connection.execute("PRAGMA table_info(tests)")]:
            connection.execute(_STUCK)  # a book of an earlier version
    except sqlite3.DatabaseError as error:
        connection.close()
        raise ValueError(
            f"Expect the file of a Mistake Book as save() writes it, actually: {path} ({error})"
        ) from error
    return connection


def _write_page(connection: sqlite3.Connection, problem: str, page: Page) -> None:
    """Replace the tests of one problem, within the transaction of the caller."""
    key = encode(problem)
    connection.execute("DELETE FROM tests WHERE problem = ?", (key,))
    connection.executemany(
        "INSERT INTO tests VALUES (?, ?, ?, ?, ?)",
        [(key, position, encode(test), *page[test]) for position, test in enumerate(page)],
    )


def create(path: Path, pages: Iterable[tuple[str, Page]]) -> None:
    """Write a whole book to a new file and put it in place in one move.

    Equal books give equal files, byte for byte.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    draft.unlink(missing_ok=True)
    try:
        with _explained(path), closing(_connect(draft, new=True)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            for problem, page in pages:
                _write_page(connection, problem, page)
            connection.execute("COMMIT")
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def read(path: Path) -> Iterator[tuple[str, Page]]:
    """All problems of a file, sorted, with their tests."""
    with closing(_connect(path)) as connection:
        rows = connection.execute(
            "SELECT problem, test, frequency, stuck FROM tests ORDER BY problem, position"
        )
        for problem, group in groupby(rows, key=lambda row: row[0]):
            yield (
                decode(problem),
                {decode(test): PageEntry(*numbers) for _, test, *numbers in group},
            )


def rows_of(page: Page) -> list[list[Any]]:
    """Return a page as plain data: test, frequency and, where it is not 0, the third number."""
    return [
        [test, *entry] if entry.stuck else [test, entry.frequency] for test, entry in page.items()
    ]


def checked_page(task: object, rows: Iterable[Sequence[Any]]) -> Page:
    """Return the page that `rows_of` made plain data of.

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
