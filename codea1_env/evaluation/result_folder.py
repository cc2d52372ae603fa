"""Folders of results, of evaluations and benchmarks, which can go on after a kill (docs/evaluation.md lists the files).

Rows are only ever appended, in the order of the samples. After a kill, a row that was cut off is dropped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env.support.logs import LogFolder, read_rows, truncate, write_whole

SETTINGS, REPORT = "eval.json", "report.json"
REFERENCES, SAMPLES, VERDICTS = "references.jsonl", "samples.jsonl", "verdicts.jsonl"
USAGE, SELECTION = "usage.jsonl", "selection.jsonl"
VERSION = 1
"""Rises when verdicts of before cannot be compared with verdicts of now."""


class FolderError(ValueError):
    """A result folder that cannot be used. The message says what to do."""


@dataclass(frozen=True)
class FolderKind:
    """What a folder holds the results of."""

    name: str
    """With its article, for messages."""
    settings: str
    """The file of its version and settings."""
    version: int
    """Rises when results of before cannot be compared with results of now."""
    extensible: tuple[str, ...] = ()
    """Settings that may be others when it goes on."""


EVALUATION = FolderKind("an evaluation", SETTINGS, VERSION)
BENCHMARK = FolderKind(
    "a benchmark",
    "bench.json",
    version=2,
    extensible=("algorithms", "seeds", "sweep", "sweep_seeds"),
)


def results_in(path: Path) -> str:
    """Return what a folder holds the results of, with its article; "" for none of ours."""
    kinds = (EVALUATION, BENCHMARK)
    return next((kind.name for kind in kinds if (path / kind.settings).is_file()), "")


class ResultFolder(LogFolder):
    """An open folder of results. Only one process at a time can have it open; a context manager.

    Args:
        path: The folder. It is made if need be.
        settings: All that the results depend on, as JSON has it.
        resume: Go on with what the folder holds.
        kind: What it holds.
        command: What was typed; results do not depend on it.

    Raises:
        FolderError: It holds something else, or nothing to go on with, or somebody works on it.
    """

    def __init__(
        self,
        path: Path,
        settings: Mapping[str, Any],
        *,
        resume: bool,
        kind: FolderKind = EVALUATION,
        command: str = "",
    ) -> None:
        self._kind = kind
        begun = (path / kind.settings).exists()
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
            self.write(kind.settings, content | ({"command": command} if command else {}))

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of a log; a row that was cut off is dropped from the file."""
        return self.truncate(name, None)

    def truncate(self, name: str, length: int | None) -> list[dict[str, Any]]:
        """Keep the first rows of a log, all whole ones for None; returns them."""
        truncate(self.path / name, length=length)
        return list(read_rows(self.path / name))

    def leave(self) -> None:
        """Give up a folder that nothing was sampled for; nothing of ours is left there."""
        if not (self.path / SAMPLES).exists():
            for name in (self._kind.settings, REFERENCES, ".lock"):
                (self.path / name).unlink(missing_ok=True)
            with suppress(OSError):  # others may have put something there
                self.path.rmdir()

    def write(self, name: str, content: Mapping[str, Any]) -> None:
        """Write a JSON file, all or nothing."""
        write_whole(self.path / name, json.dumps(content, indent=1) + "\n")

    def write_lines(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write a file of JSON lines, all or nothing."""
        write_whole(self.path / name, "".join(json.dumps(row) + "\n" for row in rows))

    def __enter__(self) -> ResultFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check(self, settings: Mapping[str, Any]) -> None:
        path, kind = self.path / self._kind.settings, self._kind
        saved = read_json(path)
        if saved.get("version") != kind.version:
            raise FolderError(
                f"Expect {kind.name} of version {kind.version}, actually {self.path} has version "
                f"{saved.get('version')!r}: its results cannot be compared with new ones. Name another folder."
            )
        before, now = saved.get("settings"), json.loads(json.dumps(dict(settings)))
        if not isinstance(before, dict):
            raise FolderError(
                f"Expect {path} to hold the settings of {kind.name}, actually: {before!r:.80}. The file was "
                "changed: put it back, or name another folder."
            )
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


def _fault(path: Path, kind: FolderKind, *, resume: bool, begun: bool) -> str:
    """Why a folder cannot be taken; "" if it can."""
    if resume and not begun:
        return (
            f"a folder that holds {kind.name} to resume, actually: it has no {kind.settings}. Check the folder, or leave "
            "--resume out."
        )
    if begun and not resume:
        return (
            f"a new folder, actually it holds {kind.name}. Add --resume to go on with it, or name "
            "another folder."
        )
    if begun or not path.exists():
        return ""
    found = {child.name for child in path.iterdir()} if path.is_dir() else {SETTINGS}
    # What a process leaves that was killed before it wrote anything is no obstacle.
    taken = found - {".lock"}
    return "a new or an empty folder, actually it is not. Name another folder." if taken else ""


def read_json(path: Path) -> dict[str, Any]:
    """Read a file that `ResultFolder.write` wrote; a FolderError if it holds something else."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FolderError(f"Expect {path} to be a JSON file, actually: {error}") from error
    if not isinstance(content, dict):
        raise FolderError(f"Expect {path} to hold a JSON object, actually: {content!r:.80}")
    return content


def check_finished(folder: Path) -> None:
    """Raise a FolderError if a folder does not hold the report of an evaluation."""
    if (folder / REPORT).is_file():
        return
    if not folder.exists():
        found, remedy = "there is no such folder", "Name another"
    elif (folder / SETTINGS).is_file():
        found, remedy = f"it has no {REPORT}", "Finish it with --resume, or name another folder"
    else:
        found, remedy = f"it has no {REPORT} and no {SETTINGS}", "Name another folder"
    raise FolderError(
        f"Expect {folder} to be the folder of a finished evaluation, actually: {found}. {remedy}."
    )
