"""Records: what was played in an id, written by the environment itself, and read again for the score.

A record is a folder of `codea1_env.support.jobs`: record.json says what it is of, rounds.jsonl has the actions of all
episodes in the order in which they ended, then a line that says it is whole. What was true of them follows from the world,
so no score can be written into a record. Each line has the checksum of all before it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from codea1_env.suite.checking import SampleChecker
from codea1_env.suite.rounds import Rounds, again_in
from codea1_env.suite.tasks import (
    SuiteError,
    SuiteTask,
    Track,
    check_track,
    digest,
    find_task,
    settings_of,
)
from codea1_env.suite.worlds import Bools, Floats, Ints
from codea1_env.support.jobs import FolderError, FolderKind, Jobs, read_manifest
from codea1_env.support.logs import every_line

RECORD = FolderKind("a record of codea1-suite", "record.json", version=1)
ROUNDS = "rounds.jsonl"
RECORDS = "records"
"""Folder of the records of a submission."""
_ROW = 1024
"""Episodes of a line, at most."""
_ABANDONED = 0.05
"""Share of episodes that may be begun and left: more would be a choice among them."""


def folder_of(base: Path, task: SuiteTask, seed: int, track: Track) -> Path:
    """Return the folder of a record in that of a submission."""
    return base / RECORDS / track / task.id.replace("/", "-") / str(seed)


class Recorder:
    """Writes one record, from its first episode to its last; what is played behind that is not recorded.

    Args:
        base: Folder of the submission.
        rounds: What is played.
        track: The track.
        source: What plays, for the file: "suite run", or "make" for an environment.
        check: Whether the referee judges a sample.

    Raises:
        SuiteError: The record was begun before, or somebody else writes it.
    """

    def __init__(
        self, base: Path, rounds: Rounds, track: Track, source: str, *, check: bool = True
    ) -> None:
        self.rounds = rounds
        task, seed = rounds.task, rounds.world.seed
        path = folder_of(base, task, seed, track)
        settings = settings_of(task, seed, track) | {"source": source}
        try:
            self._jobs = Jobs(path, settings, RECORD, resume=False)
        except FolderError as error:
            if (path / RECORD.manifest).exists():
                raise SuiteError(
                    f"Expect one record for each id, seed and track, actually {path} was begun before. A record cannot go on: "
                    "delete that folder, or name another one as `record`."
                ) from error
            raise SuiteError(str(error)) from error
        self._checker = SampleChecker(rounds) if check else None
        self._parts: list[tuple[Ints, Ints, Ints]] = []
        self._waiting, self._written, self._resets = 0, 0, 0
        self._chain = hashlib.sha256(json.dumps(settings).encode())
        self.whole, self._closed = False, False

    def begin(self, number: int) -> None:
        """Count episodes that were begun; a SuiteError if the record was closed before it was whole."""
        if not self.whole:
            if self._closed:
                raise SuiteError("Expect an open record, actually: it was closed. It cannot go on.")
            self._resets += number

    def add(self, episodes: Ints, programs: Ints, tests: Ints, known: Ints, cells: Ints) -> None:
        """Take episodes that have ended, with what was replayed in each.

        Raises:
            SuiteError: The referee judges one otherwise than the tables say.
        """
        left = self.rounds.task.episodes - self._written - self._waiting
        if left <= 0:
            return
        part = (episodes[:left], programs[:left], tests[:left])
        if self._checker is not None:
            self._checker.add(*part, known[:left], cells[:left])
        self._parts.append(part)
        self._waiting += len(part[0])
        last = len(part[0]) == left
        if self._waiting >= _ROW or last:
            self._write()
        if last:
            checked = 0
            if self._checker is not None:
                self._checker.finish()
                checked = self._checker.checked
            self._append({"whole": True, "resets": self._resets, "checked": checked})
            self._jobs.close()
            self.whole = True

    def close(self) -> None:
        """Leave the record as it is: what is not whole cannot be scored."""
        if self._checker is not None:
            self._checker.close()
        if not self.whole:
            self._jobs.close()
            self._closed = True

    def _write(self) -> None:
        episodes, programs, tests = (
            np.concatenate(each) for each in zip(*self._parts, strict=True)
        )
        first = int(episodes[0])
        played = np.column_stack([programs, tests]).astype(np.uint8)
        row: dict[str, Any] = {
            "first": first,
            "rounds": base64.b64encode(played.tobytes()).decode(),
        }
        if not (episodes == np.arange(first, first + len(episodes))).all():
            row["episodes"] = episodes.tolist()  # of several environments at once
        self._append(row)
        self._written += len(episodes)
        self._parts, self._waiting = [], 0

    def _append(self, row: Mapping[str, Any]) -> None:
        self._chain.update(json.dumps(row).encode())
        self._jobs.append(ROUNDS, [{**row, "chain": self._chain.hexdigest()[:16]}])


@dataclass(frozen=True)
class Record:
    """What a whole record says, and what follows from it."""

    task: SuiteTask
    seed: int
    track: Track
    value: float
    """The measure of its id, from 0 to 1."""
    source: str
    sha256: str
    """Of what was played."""


def read_record(path: Path, version: str = "v1") -> Record:
    """Read a record, and find its measure.

    Raises:
        SuiteError: It is not whole, of another version, or was edited.
    """
    try:
        content: dict[str, Any] = dict(read_manifest(path, RECORD)["settings"])
    except FolderError as error:
        raise SuiteError(str(error)) from error
    if content.get("suite_sha256") != digest(version):
        raise SuiteError(
            f"Expect records of codea1-suite {version} ({digest(version)[:12]}), actually {path} is of {content.get('suite')!r:.20} "
            f"({str(content.get('suite_sha256'))[:12]!r}). Play it again with this version."
        )
    task = find_task(str(content.get("id")), version)
    track = check_track(task, str(content.get("track")))
    seed = content.get("seed")
    source = content.pop("source", "")
    if not isinstance(seed, int) or content != settings_of(task, seed, track):
        raise SuiteError(
            f"Expect {path} to say what it is of, actually it was edited: {content!r:.200}"
        )
    episodes, programs, tests = _actions(path, task, content | {"source": source})
    value = measure(task, seed, track, episodes, programs, tests)
    if (task.id.replace("/", "-"), str(seed)) != (
        path.parent.name,
        path.name,
    ) or path.parent.parent.name != track:
        raise SuiteError(
            f"Expect records where they were written, no tracks mixed, actually {path} is of {task.id}, seed {seed}, track "
            f"{track}. Tracks are scored apart: put it back."
        )
    return Record(task, seed, track, value, str(source), digest_of(episodes, programs, tests))


def _actions(path: Path, task: SuiteTask, settings: Mapping[str, Any]) -> tuple[Ints, Ints, Ints]:
    chain = hashlib.sha256(json.dumps(settings).encode())
    parts: list[tuple[Ints, Ints, Ints]] = []
    end: Mapping[str, Any] = {}
    for number, (row, _) in enumerate(every_line(path / ROUNDS), 1):
        said = None if row is None else row.pop("chain", None)
        chain.update(json.dumps(row).encode())
        if end or row is None or said != chain.hexdigest()[:16]:
            raise SuiteError(
                f"Expect {path / ROUNDS} as it was written, actually line {number} was edited."
            )
        if row.get("whole"):
            end = row
        else:
            try:
                parts.append(_part(row, task))
            except (KeyError, TypeError, ValueError, OverflowError) as error:
                raise SuiteError(
                    f"Expect {path / ROUNDS} as it was written, actually line {number} is no row of {task.id}: {error}"
                ) from error
    count = sum(len(each[0]) for each in parts)
    if not end or count != task.episodes:
        raise SuiteError(
            f"Expect a whole record of {task.episodes} episodes, which a last line closes, actually {path} has {count} and "
            f"{'its' if end else 'no'} last line. Play the id to its end, or delete the folder and play it again."
        )
    resets = end.get("resets")
    if not isinstance(resets, int) or resets < count:
        raise SuiteError(
            f"Expect {path / ROUNDS} to say how many episodes were begun, {count} or more, actually: {resets!r:.40}"
        )
    if resets > count * (1 + _ABANDONED) + 64:
        raise SuiteError(
            f"Expect each episode to be played when it was begun, actually {path} has {resets} resets for "
            f"{count} episodes: whoever leaves episodes chooses among them."
        )
    episodes, programs, tests = (np.concatenate(each) for each in zip(*parts, strict=True))
    if episodes.min() < 0 or episodes.max() >= resets or len(np.unique(episodes)) < count:
        raise SuiteError(
            f"Expect {count} different episodes from 0 to {resets - 1} in {path}, actually: {len(np.unique(episodes))} from "
            f"{episodes.min()} to {episodes.max()}. Each episode ends once."
        )
    return episodes, programs, tests


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


def digest_of(episodes: Ints, programs: Ints, tests: Ints) -> str:
    """Return the SHA-256 of what was played."""
    played = np.column_stack([episodes, programs, tests]).astype(np.int64)
    return hashlib.sha256(played.tobytes()).hexdigest()


def measure(
    task: SuiteTask, seed: int, track: Track, episodes: Ints, programs: Ints, tests: Ints
) -> float:
    """Return the measure of an id, given what was played.

    The last ones of its first `task.episodes` episodes are scored. One that was begun and left counts as played with nothing.
    """
    rounds = Rounds(task, seed)
    first = task.episodes * (1 - task.last)
    scored = np.flatnonzero((episodes >= first) & (episodes < task.episodes))
    left = int(task.episodes - np.ceil(first)) - len(scored)
    if not len(scored):
        return 0.0
    episodes, programs, tests = episodes[scored], programs[scored], tests[scored]
    group = rounds.group_of(episodes)
    problem = group % task.problems
    right = rounds.world.right[problem, programs]
    kind = task.measure_in(track)
    if kind == "right":
        return _with_nothing(right, left)
    if kind == "valid":
        ones = np.zeros((len(tests), 1), np.int64)
        none: Bools = np.zeros(tests.shape, np.bool_)
        again = again_in(tests)
        right_values = rounds.world.valid[problem[:, None], tests]
        return _with_nothing(rounds.pay(right_values, again, none, ones[:, 0], none)[2], left)
    faulty = rounds.world.faulty[rounds.world.of(group, problem)[:, None], programs[:, None], tests]
    killed = np.asarray(faulty.any(axis=1))[~right]
    return _with_nothing(killed, left) if len(killed) else 0.0


def _with_nothing(found: Bools | Floats, left: int) -> float:
    """Return the mean of what was found and of as many zeros as episodes were left."""
    return float(found.mean()) * (len(found) / (len(found) + left))


def records_in(base: Path) -> Iterator[Path]:
    """Return the folders of the records of a submission; `read_record` refuses those that are none."""
    folders = {each for each in base.glob(f"{RECORDS}/*/*/*") if each.is_dir()}
    return iter(sorted(folders | {each.parent for each in base.glob(f"{RECORDS}/**/{RECORD.manifest}")}))  # fmt: skip
