"""Folders of results that survive a kill: logs of JSON lines, and files that are there whole or not at all."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import IO, Any


class LogFolder:
    """An open folder. Only one process at a time can have it open; for another one `error` is raised."""

    def __init__(self, path: Path, error: type[Exception], *, allow_nan: bool = True) -> None:
        self.path = path
        self._allow_nan = allow_nan
        self._logs: dict[str, IO[str]] = {}
        self._lock = (path / ".lock").open("ab")  # taken until it is closed, or the process ends
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as cause:
            self._lock.close()
            raise error(
                f"Expect nobody else to work on {path}, actually: another process does. Wait for it, "
                "or stop it first."
            ) from cause

    def append(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append rows to a log; they outlive this process from now on."""
        if name not in self._logs:
            self._logs[name] = (self.path / name).open("a", encoding="utf-8", newline="\n")
        lines = [json.dumps(row, allow_nan=self._allow_nan) + "\n" for row in rows]
        try:
            self._logs[name].write("".join(lines))
            self._logs[name].flush()
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path / name)) from error

    def sync(self) -> None:
        """Wait until the logs are on the disk."""
        for log in self._logs.values():
            os.fsync(log.fileno())

    def close(self) -> None:
        """Close the logs, and let others open the folder."""
        for log in self._logs.values():
            with suppress(OSError):  # what a full disk did not take; `append` has said so
                log.close()
        self._lock.close()


def read_rows(
    path: Path, wanted: Callable[[dict[str, Any]], bool] = lambda row: True
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a log; none if it has not been begun.

    They end before a row that is not wanted, and where one was cut off when its process was killed.
    """
    return (row for row, _ in _whole(path, wanted))


def every_line(path: Path) -> Iterator[tuple[dict[str, Any] | None, int]]:
    """Yield the lines of a log and the offset behind each, None for one that is damaged or cut off.

    A log that has not been begun has no lines.
    """
    end = 0
    if path.exists():
        with path.open("rb") as log:
            for line in log:
                end += len(line)
                yield _row(line), end


def truncate(
    path: Path,
    wanted: Callable[[dict[str, Any]], bool] = lambda row: True,
    length: int | None = None,
) -> None:
    """Drop from a log what `read_rows` does not yield, and what is behind so many rows."""
    if path.exists():
        ends = (end for _, end in islice(_whole(path, wanted), length))
        os.truncate(path, max(ends, default=0))


def write_whole(path: Path, text: str, errors: str = "strict") -> None:
    """Write a file, all or nothing."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8", errors=errors)
    os.replace(part, path)


def _whole(
    path: Path, wanted: Callable[[dict[str, Any]], bool]
) -> Iterator[tuple[dict[str, Any], int]]:
    for row, end in every_line(path):
        if row is None or not wanted(row):
            return
        yield row, end


def _row(line: bytes) -> dict[str, Any] | None:
    if not line.endswith(b"\n"):
        return None
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None
