"""Records: what was played in an id, written by the environment itself, and read again for the score.

A record is a folder of `codea1_env.support.jobs`: record.json says what it is of, rounds.jsonl has the actions of all
episodes in the order in which they ended, then a line that says it is whole. What was true of them follows from the world,
so no score can be written into a record. Each line has the checksum of all before it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from codea1_env.suite.checking import SampleChecker
from codea1_env.suite.rounds import Rounds, again_in
from codea1_env.suite.tasks import (
    RECORDS,
    RecordKey,
    SuiteError,
    SuiteTask,
    check_track,
    digest,
    find_task,
)
from codea1_env.suite.worlds import Ints, world_of
from codea1_env.support.jobs import FolderError, FolderKind, Jobs, read_manifest
from codea1_env.support.logs import every_line

RECORD = FolderKind("a record of codea1-suite", "record.json", version=1)
ROUNDS = "rounds.jsonl"
_ROW = 1024
"""Episodes of a line, at most."""
_ABANDONED = 0.05
"""Share of episodes that may be begun and left: more would be a choice among them."""


class Recorder:
    """Writes what is played in rounds, from the first episode to the last; what is played behind that is not recorded.

    `source` says what plays: "suite run", or "make" for an environment; `check`, whether the referee judges a sample. Raises a
    SuiteError if the record was begun before, or somebody else writes it.
    """

    def __init__(self, base: Path, key: RecordKey, source: str, *, check: bool = True) -> None:
        path = key.folder(base)
        settings = key.settings() | {"source": source}
        try:
            self._jobs = Jobs(path, settings, RECORD, resume=False)
        except FolderError as error:
            if (path / RECORD.manifest).exists():
                raise SuiteError(
                    f"Expect one record for each id, seed and track, actually {path} was begun before. A record cannot go on: "
                    "delete that folder, or name another one as `record`."
                ) from error
            raise SuiteError(str(error)) from error
        self._checker = SampleChecker(key.task, key.seed) if check else None
        self._parts: list[list[Ints]] = []
        self._waiting = 0
        self._chain = hashlib.sha256(json.dumps(settings).encode())
        self._whole, self._closed = False, False

    def check_open(self) -> None:
        """Raise a SuiteError if the record was closed before it was whole."""
        if self._closed and not self._whole:
            raise SuiteError("Expect an open record, actually: it was closed. It cannot go on.")

    def add(self, rounds: Rounds, played: Sequence[Ints]) -> None:
        """Take rounds that have just ended: episodes, programs, tests, and those of the book.

        Raises a SuiteError if the referee judges one otherwise than the tables say.
        """
        if self._whole:
            return
        left = len(played[0]) - max(0, rounds.ended - rounds.task.episodes)
        if self._checker is not None:
            self._checker.add(rounds, [each[:left] for each in played])
        self._parts.append([each[:left] for each in played[:3]])
        self._waiting += left
        self._whole = rounds.ended >= rounds.task.episodes
        if self._whole or self._waiting >= _ROW:
            self._write()
        if self._whole:
            checked = 0 if self._checker is None else self._checker.finish(rounds)
            self._append({"whole": True, "resets": rounds.begun, "checked": checked})
            self._jobs.close()

    def close(self) -> None:
        """Leave the record as it is: what is not whole cannot be scored."""
        self._jobs.close()
        self._closed = True

    def _write(self) -> None:
        episodes, programs, tests = map(np.concatenate, zip(*self._parts, strict=True))
        self._parts, self._waiting = [], 0
        first, played = int(episodes[0]), np.column_stack([programs, tests]).astype(np.uint8)
        row: dict[str, Any] = {"first": first}
        row["rounds"] = base64.b64encode(played.tobytes()).decode()
        if not (episodes == np.arange(first, first + len(episodes))).all():
            row["episodes"] = episodes.tolist()  # of several environments at once
        self._append(row)

    def _append(self, row: Mapping[str, Any]) -> None:
        self._chain.update(json.dumps(row).encode())
        self._jobs.append(ROUNDS, [{**row, "chain": self._chain.hexdigest()[:16]}])


class Record(NamedTuple):
    """What follows from what was played."""

    key: RecordKey
    value: float
    """The measure of its id, from 0 to 1."""
    sha256: str
    """Of what was played."""


def read_record(path: Path, version: str = "v1") -> Record:
    """Read a record; a ValueError if it is not whole, of another version, or was edited."""
    settings: dict[str, Any] = read_manifest(path, RECORD)["settings"]
    if settings.get("suite_sha256") != digest(version):
        raise SuiteError(
            f"Expect records of codea1-suite {version} ({digest(version)[:12]}), actually {path} is of {settings.get('suite')!r:.20} "
            f"({str(settings.get('suite_sha256'))[:12]!r}). Play it again with this version."
        )
    task = find_task(str(settings.get("id")), version)
    track, seed = check_track(task, str(settings.get("track"))), settings.get("seed")
    key = RecordKey(track, task, seed if isinstance(seed, int) else -1)
    if settings != key.settings() | {"source": str(settings.get("source"))}:
        raise _edited(path / RECORD.manifest, repr(settings)[:200])
    if path.parts[-4:] != key.folder(Path()).parts:
        raise _edited(path, f"it is of {key}, no tracks mixed: put it back")
    if not (path / ROUNDS).is_file():
        raise _edited(path / ROUNDS, "it is no ordinary file")
    return record_of(key, _played(path / ROUNDS, key, settings))


def _edited(path: Path, actually: str) -> SuiteError:
    return SuiteError(f"Expect {path} as it was written, actually it was edited: {actually}")


def _played(path: Path, key: RecordKey, settings: Mapping[str, Any]) -> list[Ints]:
    """Return episodes, programs and tests of a whole record, whose checksums are right."""
    task, chain = key.task, hashlib.sha256(json.dumps(settings).encode())
    parts: list[tuple[Ints, Ints, Ints]] = []
    begun, whole = None, False
    for number, (row, _) in enumerate(every_line(path), 1):
        said = None if row is None else row.pop("chain", None)
        chain.update(json.dumps(row).encode())
        if row is None or whole or said != chain.hexdigest()[:16]:
            raise _edited(path, f"line {number}")
        if whole := bool(row.get("whole")):
            begun = row.get("resets")
            continue
        try:
            parts.append(_part(row, task))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise _edited(path, f"line {number} is no row of {task.id}: {error}") from error
    count = sum(len(each[0]) for each in parts)
    if not whole or count != task.episodes:
        raise SuiteError(
            f"Expect a whole record of {task.episodes} episodes, which a last line closes, actually {path} has {count} and "
            f"{'its' if whole else 'no'} last line. Play the id to its end, or delete the folder and play it again."
        )
    if not isinstance(begun, int) or not count <= begun <= count * (1 + _ABANDONED) + 64:
        raise SuiteError(
            f"Expect each episode to be played when it was begun, actually {path} has {begun!r:.40} resets for "
            f"{count} episodes: whoever leaves episodes chooses among them."
        )
    played = [np.concatenate(each) for each in zip(*parts, strict=True)]
    if played[0].min() < 0 or played[0].max() >= begun or len(np.unique(played[0])) < count:
        raise _edited(path, f"not {count} different episodes from 0 to {begun - 1}")
    return played


def _part(row: Mapping[str, Any], task: SuiteTask) -> tuple[Ints, Ints, Ints]:
    """Return episodes, programs and tests of a line; raises whatever is wrong with it."""
    played = np.frombuffer(base64.b64decode(row["rounds"], validate=True), np.uint8)
    actions: Ints = played.reshape(-1, 1 + task.K).astype(np.int64)
    first = row["first"]
    known = np.array(row.get("episodes") or range(first, first + len(actions)))
    if known.shape != (len(actions),) or known.dtype.kind not in "iu":
        raise ValueError(f"{known.dtype} of shape {known.shape} for {len(actions)} episodes")
    if (actions >= [task.programs] + [task.C] * task.K).any():
        raise ValueError("a program or test that it does not have")
    return known.astype(np.int64), actions[:, 0], actions[:, 1:]


def record_of(key: RecordKey, played: Sequence[Ints]) -> Record:
    """Return the record of what was played: episodes, programs and tests."""
    actions = np.column_stack(played).astype(np.int64)
    return Record(key, measure(key, *played), hashlib.sha256(actions.tobytes()).hexdigest())


def measure(key: RecordKey, episodes: Ints, programs: Ints, tests: Ints) -> float:
    """Return the measure of an id, given what was played.

    The last ones of its first `task.episodes` episodes are scored. One that was begun and left counts as played with nothing.
    """
    task, world = key.task, world_of(key.task, key.seed)
    first = task.episodes * (1 - task.last)
    scored = np.flatnonzero((episodes >= first) & (episodes < task.episodes))
    left = int(task.episodes - np.ceil(first)) - len(scored)
    programs, tests = programs[scored], tests[scored]
    problem, index = world.at(episodes[scored])
    kind, right = task.measure_in(key.track), world.right[problem, programs]
    found: NDArray[Any] = right
    if kind == "killed":
        broken = world.faulty[index[:, None], programs[:, None], tests]
        found = np.asarray(broken.any(axis=1))[~right]
    elif kind == "valid":
        made = (~again_in(tests)).sum(axis=1) / task.K
        found = np.minimum(made, world.valid[problem[:, None], tests].mean(axis=1))
    found = np.append(found, np.zeros(left))
    return float(found.mean()) if len(found) else 0.0


def records_in(base: Path) -> list[Path]:
    """Return the folders of the records of a submission; `read_record` refuses those that are none."""
    folders = {each for each in base.glob(f"{RECORDS}/*/*/*") if each.is_dir()}
    folders |= {each.parent for each in base.glob(f"{RECORDS}/**/{RECORD.manifest}")}
    return sorted(folders)
