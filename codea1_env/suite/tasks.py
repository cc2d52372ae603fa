"""Ids of the suite: what v1.toml says of each, and the hash that every record has of that file."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

Track = Literal["both", "coder", "tester"]
"""Who learns: both players, or one against a shipped population of the other."""
TRACKS: tuple[Track, ...] = get_args(Track)
GROUP = 32
"""Episodes in a row on one problem. The Mistake Book changes after each group."""
TUNING_SEED = 1_000
"""Worlds with seeds from here on are for tuning."""
SEEDS = range(10)
"""Seeds of the score."""


class SuiteError(ValueError):
    """Bad input of the suite: an unknown id, a record that is not whole. The message says what to do."""


@dataclass(frozen=True)
class SuiteTask:
    """An id: what is played, and what is measured. The comments in v1.toml say what the fields mean."""

    id: str
    version: str
    experiment: str
    setting: str
    question: str
    about: Track
    part: Literal["score", "held-out"]
    separates: bool
    tracks: tuple[Track, ...]
    measure: Literal["right", "killed", "valid"]
    last: float
    kind: Literal["fixed", "fresh", "kinds"]
    episodes: int
    problems: int
    C: int
    programs: int
    right: int
    faulty: int
    families: int
    K: int
    alpha: float
    valid: float
    wrong: float
    fate: bool
    book: Literal["mistakes", "golden"]
    hidden: int
    kinds: int
    distractors: int

    def measure_in(self, track: Track) -> str:
        """Return what a track is scored by: where only the tester learns, right programs are not its work."""
        return "killed" if track == "tester" and self.measure == "right" else self.measure


def _file(version: str) -> Path:
    return Path(__file__).with_name(f"{version}.toml")


@functools.cache
def digest(version: str) -> str:
    """Return the SHA-256 of the file of a version."""
    return hashlib.sha256(_file(version).read_bytes()).hexdigest()


@functools.cache
def tasks(version: str = "v1") -> Mapping[str, SuiteTask]:
    """Return all ids of a version, those of the held-out part last.

    Raises a SuiteError if there is no such version.

    Example:
        >>> tasks()["reading/2"].setting, tasks()["reading/held-out"].C
        ('1 faulty cell', 128)
    """
    if version not in VERSIONS:
        raise SuiteError(f"Expect one of {', '.join(VERSIONS)}, actually: {version!r:.60}")
    content: dict[str, Any] = tomllib.loads(_file(version).read_text(encoding="utf-8"))
    defaults, found = content.pop("defaults"), {}
    for experiment, shared in content.items():
        for number, own in enumerate(shared.pop("ids")):
            values = {**defaults, **shared, **own}
            name = f"{experiment}/{'held-out' if values['part'] == 'held-out' else number}"
            values["tracks"] = tuple(values["tracks"])
            found[name] = SuiteTask(id=name, version=version, experiment=experiment, **values)
    return dict(sorted(found.items(), key=lambda item: item[1].part == "held-out"))


VERSIONS = ("v1",)
IDS: Mapping[str, tuple[str, ...]] = {version: tuple(tasks(version)) for version in VERSIONS}
"""Version -> its ids."""


def find_task(id: str, version: str = "v1") -> SuiteTask:
    """Return an id's task; a SuiteError if there is none.

    Example:
        >>> find_task("reading/7")
        Traceback (most recent call last):
        codea1_env.suite.tasks.SuiteError: Expect an id of codea1-suite v1, actually: 'reading/7'. Did you mean reading/2?
    """
    known = tasks(version)
    if not isinstance(id, str) or id not in known:
        near = difflib.get_close_matches(str(id), known, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(known)}"
        raise SuiteError(f"Expect an id of codea1-suite {version}, actually: {id!r:.60}. {hint}")
    return known[id]


def check_track(task: SuiteTask, track: str) -> Track:
    """Return a track that an id has; a SuiteError for another one."""
    for each in task.tracks:
        if each == track:
            return each
    raise SuiteError(
        f"Expect a track of {task.id}: {', '.join(task.tracks)}; actually: {track!r:.40}"
    )


def settings_of(task: SuiteTask, seed: int, track: Track) -> dict[str, Any]:
    """Return what decides a record, as its first line has it."""
    return {
        "suite": task.version,
        "suite_sha256": digest(task.version),
        "id": task.id,
        "seed": seed,
        "track": track,
        "episodes": task.episodes,
    }


def shortened(task: SuiteTask, episodes: int) -> SuiteTask:
    """Return a task with fewer episodes, for trials: its records are not whole."""
    return dataclasses.replace(task, episodes=min(task.episodes, -(-episodes // GROUP) * GROUP))
