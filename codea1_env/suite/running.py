"""Plays ids with an algorithm of this project, each in a process, and makes the records of a submission. Goes on after a kill."""

from __future__ import annotations

import dataclasses
import itertools
import json
import shutil
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from codea1_env.sandbox import SandboxError
from codea1_env.suite.players import SuiteEntry, SuiteRun, find_entry
from codea1_env.suite.records import Record, Recorder, read_record, record_of
from codea1_env.suite.tasks import (
    RECORDS,
    RecordKey,
    SuiteError,
    SuiteTask,
    Track,
    digest,
)
from codea1_env.support.jobs import FolderKind, Jobs
from codea1_env.support.plugins import digest_of as digest_of_file
from codea1_env.support.pool import DiedError, run_jobs

SUBMISSION = FolderKind("a submission to codea1-suite", "suite.json", 1, ("rates",))
_IN_TURN = 10
"""Records of one process, at most."""
_K = TypeVar("_K", bound=Hashable)

Rates = Mapping[str, Mapping[str, Sequence[float]]]
"""Track -> experiment -> learning rates of coder and tester."""


class PlayError(SuiteError):
    """What an algorithm raised when it played."""


def with_rates(entry: SuiteEntry, rates: Rates, track: Track, experiment: str) -> SuiteEntry:
    """Return what plays with the rates of an experiment; without any if it has none."""
    if not entry.learns:
        return entry
    try:
        coder, tester = rates[track][experiment]
    except KeyError:
        raise SuiteError(
            f"Expect a submission that was tuned in track {track}, {experiment}, actually: it was not. `codea1 suite tune` does it."
        ) from None
    return dataclasses.replace(entry, coder_rate=float(coder), tester_rate=float(tester))


def play(entry: SuiteEntry, key: RecordKey, base: Path | None = None, check: bool = True) -> Record:
    """Play an id from its first episode to its last.

    With `base`, the folder of a submission, it is recorded; `check` says whether the referee judges a sample then.
    """
    run = SuiteRun(entry, key.task, key.seed, key.track)
    if base is not None:
        run.rounds.recorder = Recorder(base, key, "suite run", check=check)
    parts = []
    while not run.over:
        parts.append(run.step()[:3])
    return record_of(key, [np.concatenate(each) for each in zip(*parts, strict=True)])


def keys_of(
    asked: Iterable[SuiteTask], tracks: Sequence[Track], seeds: Sequence[int]
) -> list[RecordKey]:
    """Return the records of a submission."""
    return [
        RecordKey(track, task, seed)
        for track, task in itertools.product(tracks, asked)
        if track in task.tracks
        for seed in seeds
    ]


def run_all(
    base: Path,
    name: str,
    args: Mapping[str, Any],
    keys: Sequence[RecordKey],
    *,
    rates: Rates,
    processes: int,
    checked: Container[int] = (),
    tell: Callable[[RecordKey, float, int], None] = lambda key, value, left: None,
) -> dict[RecordKey, float]:
    """Play all records that a folder lacks, and return the measures of all.

    Args:
        base: Folder of the submission. It is made, or of the same algorithm; else a FolderError.
        name: What plays, as `find_entry` takes it.
        args: Its hyperparameters.
        keys: The records, all of one version.
        rates: What tuning found.
        processes: Records at the same time. Has no influence on them.
        checked: Seeds of which the referee judges a sample of each record.
        tell: Is told of each record, its measure, and how many are left.

    Raises:
        SuiteError: The referee judged otherwise, or the algorithm was not tuned; a `PlayError` if it raised something.
    """
    entry = find_entry(name, args)
    own = {key: with_rates(entry, rates, key.track, key.task.experiment) for key in keys}
    settings = {
        "suite_sha256": digest(keys[0].task.version),
        "algorithm": name,
        "args": dict(args),
        "algorithm_sha256": digest_of_file(name),
        "rates": json.loads(json.dumps(rates)),
    }
    with Jobs(base / RECORDS, settings, SUBMISSION, resume=None):
        found = {key: value for key in keys if (value := value_in(base, key)) is not None}

        def hear(key: RecordKey, value: float) -> None:
            found[key] = value
            tell(key, value, len(keys) - len(found))

        left = [key for key in keys if key not in found]
        works = {key: partial(_record, own[key], key, base, key.seed in checked) for key in left}
        run_works(works, hear, processes)
    return found


def value_in(base: Path, key: RecordKey) -> float | None:
    """Return the measure of a record that a folder has; one that is of another version, or was edited, is none."""
    path = key.folder(base)
    try:
        return read_record(path, key.task.version).value if path.exists() else None
    except ValueError:
        return None


def _record(entry: SuiteEntry, key: RecordKey, base: Path, check: bool) -> float:
    # What a killed process left: an algorithm in the middle of an id cannot go on.
    shutil.rmtree(key.folder(base), ignore_errors=True)
    return play(entry, key, base, check).value


def run_works(
    works: Mapping[_K, Callable[[], float]], hear: Callable[[_K, float], None], processes: int
) -> None:
    """Run what has a name, some of it in turn in one process: to start one takes longer than most of it."""
    names, done = list(works), set[_K]()
    size = max(1, min(_IN_TURN, len(names) // (2 * processes)))

    def heard(chunk: object, found: tuple[_K, float]) -> None:
        done.add(found[0])
        hear(*found)

    def begin(chunk: Sequence[_K]) -> Any:  # less for a second attempt
        return partial(_in_turn, [(name, works[name]) for name in chunk if name not in done])

    chunks = [tuple(names[start : start + size]) for start in range(0, len(names), size)]
    run_jobs(chunks, begin, heard, _lost, processes=processes, imports=(__name__,))


def _in_turn(works: Sequence[tuple[Any, Callable[[], float]]], tell: Callable[[Any], None]) -> None:
    for name, work in works:
        try:
            tell((name, work()))
        except (SuiteError, SandboxError):
            raise
        except Exception as error:
            told = " ".join(f"{type(error).__name__}: {error}".split())
            raise PlayError(f"Expect an algorithm that plays {name}, actually: {told}") from error


def _lost(chunk: Sequence[object], error: Exception) -> None:
    if isinstance(error, DiedError):
        raise PlayError(
            f"Expect an algorithm that plays {chunk[0]} to {chunk[-1]}, actually its process ended {error}"
        ) from error
    raise error
