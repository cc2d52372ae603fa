"""Ids of the suite: what v1.toml says of each, and the hash that every record has of that file.

The version "diagnose" has the same experiments at more settings, and two that v1 lacks (diagnose.toml). It is not frozen, and
nothing is submitted to it. `id@VARIANT` is such an id by other rules.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from codea1_env.rewards import REWARDS

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
    book: Literal["mistakes", "golden", "passing", "none"]
    hidden: int
    kinds: int
    distractors: int
    # Of the version "diagnose" alone.
    by_program: bool = False
    """Whether wrong verdicts that are always the same are those of a program: on all its faulty cells, or all others."""
    met: int = 0
    """Kinds of a scored program that training has, where `hidden` ones are scored."""
    judged: float = 1.0
    """Share of the groups that the reference judges. In the others the first program that is played does."""
    shared: float = 0.0
    """Share of what our coder learns on a problem that goes to all problems."""
    rewards: str = "code-a1"
    """What is paid: a name of `codea1_env.rewards.REWARDS`."""

    def measure_in(self, track: Track) -> str:
        """Return what a track is scored by: where only the tester learns, right programs are not its work."""
        return "killed" if track == "tester" and self.measure == "right" else self.measure


VERSIONS = {"v1": ("v1.toml",), "diagnose": ("v1.toml", "diagnose.toml")}
"""Version -> its files. What a later one says of an experiment takes the place of what an earlier one says."""
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "no-book": {"book": "none"},
    "passing-book": {"book": "passing"},
    "same-errors": {"fate": True},
    "same-errors-of-a-program": {"fate": True, "by_program": True},
    "alpha=0": {"alpha": 0.0},
    "alpha=1": {"alpha": 1.0},
    **{name: {"rewards": name} for name in REWARDS},
}
"""Other rules, by name."""


def texts(version: str) -> list[str]:
    """Return the files of a version; a SuiteError if there is none."""
    if version not in VERSIONS:
        raise SuiteError(f"Expect one of {', '.join(VERSIONS)}, actually: {version!r:.60}")
    folder = Path(__file__).parent
    return [(folder / name).read_text(encoding="utf-8") for name in VERSIONS[version]]


@functools.cache
def digest(version: str) -> str:
    """Return the SHA-256 of what a version is defined by."""
    return hashlib.sha256("".join(texts(version)).encode()).hexdigest()


@functools.cache
def tasks(version: str = "v1") -> Mapping[str, SuiteTask]:
    """Return all ids of a version, those of the held-out part last.

    Raises a SuiteError if there is no such version.

    Example:
        >>> tasks()["reading/2"].setting, tasks()["reading/held-out"].C
        ('1 faulty cell', 128)
    """
    first, *others = map(tomllib.loads, texts(version))
    defaults, found = first.pop("defaults"), {}
    for other in others:
        first = {name: {**first.get(name, {}), **each} for name, each in other.items()}
    for experiment, shared in first.items():
        shared.pop("compared", None)
        for number, own in enumerate(shared.pop("ids")):
            values = {**defaults, **shared, **own}
            name = f"{experiment}/{'held-out' if values['part'] == 'held-out' else number}"
            values["tracks"] = tuple(values["tracks"])
            found[name] = SuiteTask(id=name, version=version, experiment=experiment, **values)
    return dict(sorted(found.items(), key=lambda item: item[1].part == "held-out"))


IDS: Mapping[str, tuple[str, ...]] = {version: tuple(tasks(version)) for version in VERSIONS}
"""Version -> its ids."""
EXPERIMENTS = tuple(dict.fromkeys(task.experiment for task in tasks().values()))
"""Experiments of v1."""


def find_task(id: str, version: str = "v1") -> SuiteTask:
    """Return an id's task; a SuiteError if there is none.

    Example:
        >>> find_task("reading/7")
        Traceback (most recent call last):
        codea1_env.suite.tasks.SuiteError: Expect an id of codea1-suite v1, actually: 'reading/7'. Did you mean reading/2?
    """
    known = tasks(version)
    if isinstance(id, str) and version == "diagnose":
        base, _, variant = id.partition("@")
        if base in known and variant in VARIANTS:
            return dataclasses.replace(known[base], id=id, **VARIANTS[variant])
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


RECORDS = "records"
"""Folder of the records of a submission."""


class RecordKey(NamedTuple):
    """What a record is of."""

    track: Track
    task: SuiteTask
    seed: int

    def __str__(self) -> str:
        return f"{self.task.id}, seed {self.seed}, track {self.track}"

    @property
    def name(self) -> str:
        """What submission.json calls it."""
        return f"{self.track} {self.task.id} {self.seed}"

    def folder(self, base: Path) -> Path:
        """Return the folder of the record in that of a submission."""
        return base / RECORDS / self.track / self.task.id.replace("/", "-") / str(self.seed)

    def settings(self) -> dict[str, Any]:
        """Return what decides the record, as its first file has it."""
        return {
            "suite": self.task.version,
            "suite_sha256": digest(self.task.version),
            "id": self.task.id,
            "seed": self.seed,
            "track": self.track,
            "episodes": self.task.episodes,
        }
