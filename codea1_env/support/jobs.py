"""Folders of jobs, which go on after a kill: a manifest, and tables of JSON lines.

Rows are only ever appended, and a job is done when its row is there. After a kill, a row that was cut off is dropped,
and its job is done again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from codea1_env.support.logs import LogFolder, every_line, read_rows, truncate, write_whole

_MOST_JSON = 256 << 20  # bytes of one file

Row = dict[str, Any]
_K = TypeVar("_K", bound=Hashable)
_T = TypeVar("_T")


class FolderError(ValueError):
    """A folder that cannot be used. The message says what to do."""


@dataclass(frozen=True)
class FolderKind:
    """What a folder holds the results of."""

    name: str
    """With its article, for messages."""
    manifest: str
    """The file of its version and settings."""
    version: int
    """Rises when results of before cannot be compared with results of now."""
    extensible: tuple[str, ...] = ()
    """Settings that may be others when it goes on."""


EVALUATION = FolderKind("an evaluation", "eval.json", version=1)
BENCHMARK = FolderKind(
    "a benchmark", "bench.json", 3, ("algorithms", "seeds", "sweep", "sweep_seeds")
)
DIAGNOSTICS = FolderKind(
    "diagnostics", "diagnose.json", 1, ("experiments", "rows", "seeds", "quick")
)


def results_in(path: Path) -> str:
    """Return what a folder holds the results of, with its article; "" for none of ours."""
    kinds = (EVALUATION, BENCHMARK, DIAGNOSTICS)
    return next((kind.name for kind in kinds if (path / kind.manifest).is_file()), "")


class Jobs(LogFolder):
    """An open folder of jobs. Only one process at a time can have it open; a context manager.

    Args:
        path: The folder. It is made if need be.
        settings: All that the results depend on, as JSON has it.
        kind: What it holds.
        resume: Go on with what the folder holds; None to do so if it holds something.
        command: What was typed; results do not depend on it.

    Raises:
        FolderError: It holds something else, or nothing to go on with, or somebody works on it.
    """

    def __init__(
        self,
        path: Path,
        settings: Mapping[str, Any],
        kind: FolderKind = EVALUATION,
        *,
        resume: bool | None,
        command: str = "",
    ) -> None:
        self._kind = kind
        begun = (path / kind.manifest).exists()
        resume = begun if resume is None else resume
        fault = _fault(path, kind, resume=resume, begun=begun)
        if fault:
            raise FolderError(f"Expect {path} to be {fault}")
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FolderError(
                f"Expect {path} to be a place for a new folder, actually: {error.strerror}. Name another folder."
            ) from error
        super().__init__(path, FolderError)
        if resume:
            try:
                self._check(settings)
            except FolderError:
                self.close()
                raise
        if not resume or kind.extensible:  # what was asked for last is what it goes on with next
            content = {"version": kind.version, "settings": dict(settings)}
            self.write(kind.manifest, content | ({"command": command} if command else {}))

    def done(self, name: str, of: Callable[[Row], tuple[_K, _T]]) -> dict[_K, _T]:
        """Return what `read_table` does; a row that was cut off is dropped from the file."""
        lines = list(every_line(self.path / name))
        if lines and lines[-1][0] is None:
            os.truncate(self.path / name, lines[-2][1] if lines[1:] else 0)
        return read_table(self.path / name, of)

    def rows(self, name: str) -> list[Row]:
        """Return the rows of a table whose order counts; what is behind a row that was cut off is dropped from the file."""
        return self.truncate(name, None)

    def truncate(self, name: str, length: int | None) -> list[Row]:
        """Keep the first rows of a table, all whole ones for None; returns them."""
        truncate(self.path / name, length=length)
        return list(read_rows(self.path / name))

    def leave(self, *names: str) -> None:
        """Give up a folder in which nothing was done but these tables; nothing of ours is left there."""
        for name in (self._kind.manifest, *names, ".lock"):
            (self.path / name).unlink(missing_ok=True)
        with suppress(OSError):  # others may have put something there
            self.path.rmdir()

    def write(self, name: str, content: Mapping[str, Any]) -> None:
        """Write a JSON file, all or nothing."""
        write_whole(self.path / name, json.dumps(content, indent=1) + "\n")

    def write_lines(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write a file of JSON lines, all or nothing."""
        write_whole(self.path / name, "".join(json.dumps(row) + "\n" for row in rows))

    def __enter__(self) -> Jobs:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check(self, settings: Mapping[str, Any]) -> None:
        kind, now = self._kind, json.loads(json.dumps(dict(settings)))
        before = read_manifest(self.path, kind)["settings"]
        other = [
            f"{key.removesuffix('_sha256')} changed"
            if key.endswith("_sha256")
            else f"{key} was {before.get(key)!r:.200}, now {now.get(key)!r:.200}"
            for key in sorted(before.keys() | now.keys())
            if key not in kind.extensible and before.get(key) != now.get(key)
        ]
        if other:
            files = " and files" if any(each.endswith(" changed") for each in other) else ""
            raise FolderError(
                f"Expect the settings that {self.path} was begun with, actually: {'; '.join(other)}. Give the "
                f"same options{files}, or name another folder."
            )


def read_table(path: Path, of: Callable[[Row], tuple[_K, _T]]) -> dict[_K, _T]:
    """Return the jobs of a table that are done, by their keys; of rows with one key the last one counts.

    A row that was cut off at the end is left out.

    Args:
        path: The table.
        of: Row -> its key, and what it holds.

    Raises:
        FolderError: Another line is no row of this table.
    """
    found: dict[_K, _T] = {}
    rows = [row for row, _ in every_line(path)]
    if rows and rows[-1] is None:
        rows.pop()
    for number, row in enumerate(rows, 1):
        try:
            key, value = of(row or {})
        except (TypeError, KeyError, ValueError) as error:
            raise FolderError(
                f"{path}: Expect the row of a job in each line, actually not in line {number}. Take that line out: its "
                "job is done again."
            ) from error
        found[key] = value
    return found


def read_manifest(folder: Path, kind: FolderKind) -> dict[str, Any]:
    """Return version, settings and command of a folder; a FolderError if it is of another version, or damaged."""
    content = read_json(folder / kind.manifest)
    if content.get("version") != kind.version:
        raise FolderError(
            f"Expect {kind.name} of version {kind.version}, actually {folder} has version "
            f"{content.get('version')!r:.40}: its results cannot be compared with new ones. Name another folder, or use "
            "the version of codea1_env that wrote it."
        )
    if not isinstance(content.get("settings"), dict):
        raise FolderError(
            f"Expect {folder / kind.manifest} to hold the settings of {kind.name}, actually: "
            f"{content.get('settings')!r:.80}. The file was changed: put it back, or name another folder."
        )
    return content


def read_json(path: Path) -> dict[str, Any]:
    """Read a file that `Jobs.write` wrote; a FolderError if it holds something else."""
    try:
        if path.exists() and not path.is_file():
            raise OSError("no ordinary file")  # reading a pipe would wait for ever
        if (size := path.stat().st_size) > _MOST_JSON:
            raise OSError(f"{size >> 20} MiB, and at most {_MOST_JSON >> 20} are read")
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FolderError(f"Expect {path} to be a JSON file, actually: {error}") from error
    if not isinstance(content, dict):
        raise FolderError(f"Expect {path} to hold a JSON object, actually: {content!r:.80}")
    return content


def _fault(path: Path, kind: FolderKind, *, resume: bool, begun: bool) -> str:
    """Why a folder cannot be taken; "" if it can."""
    if resume and not begun:
        return (
            f"a folder that holds {kind.name} to resume, actually: it has no {kind.manifest}. Check the folder, or leave "
            "--resume out."
        )
    if begun and not resume:
        return (
            f"a new folder, actually it holds {kind.name}. Add --resume to go on with it, or name "
            "another folder."
        )
    if begun or not path.exists():
        return ""
    found = {child.name for child in path.iterdir()} if path.is_dir() else {kind.manifest}
    # What a process leaves that was killed before it wrote anything is no obstacle.
    taken = found - {".lock", f".{kind.manifest}.part"}
    return "a new or an empty folder, actually it is not. Name another folder." if taken else ""
