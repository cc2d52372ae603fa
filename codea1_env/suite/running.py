"""Plays ids with an algorithm of this project: tuning, and the records of a submission. Goes on after a kill."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from codea1_env.sandbox import SandboxError
from codea1_env.suite.players import RATES, SuiteEntry, SuiteRun
from codea1_env.suite.records import RECORDS, Recorder, digest_of, folder_of, measure, read_record
from codea1_env.suite.tasks import (
    TRACKS,
    TUNING_SEED,
    SuiteError,
    SuiteTask,
    Track,
    digest,
    find_task,
    tasks,
)
from codea1_env.support.jobs import FolderKind, Jobs
from codea1_env.support.logs import write_whole
from codea1_env.support.plugins import digest_of as digest_of_file
from codea1_env.support.pool import DiedError, run_jobs

SUBMISSION = FolderKind("a submission to codea1-suite", "suite.json", 1, ("rates",))
TUNING = "tuning.json"
TUNING_SEEDS = (TUNING_SEED,)
_IN_TURN = 10
"""Records of one process, at most."""
_K = TypeVar("_K", bound=Hashable)

ROWS: Mapping[str, Mapping[str, Any]] = {
    "negated-rewards": {"lesson": "negated"},
    "shuffled-rewards": {"lesson": "shuffled"},
    "ignored-rewards": {"lesson": "ignored"},
    "hundredfold-rate": {"factor": 100.0},
    "blind": {"tester": "blind"},
    "memory": {"tester": "memory"},
    "random-tests": {"tester": "random"},
    "fixed-tests": {"tester": "fixed"},
    "oracle-tests": {"tester": "oracle"},
    "pool-tests": {"tester": "pool"},
    "random": {"coder": "random", "tester": "random"},
    "oracle": {"coder": "oracle", "tester": "oracle"},
}
"""Rows that are no algorithm: GRPO with a fault, or with another tester, and players that learn nothing."""
FAULTY = ("negated-rewards", "ignored-rewards", "hundredfold-rate")
"""Rows with GRPO's own tuning."""
BAD = (*FAULTY, "random")
"""Rows that are worse than GRPO, or the game tells nothing of an algorithm."""

Rates = Mapping[str, Mapping[str, Sequence[float]]]
"""Track -> experiment -> learning rates of coder and tester."""


class RecordKey(NamedTuple):
    """Name of a record."""

    track: Track
    task: SuiteTask
    seed: int

    def __str__(self) -> str:
        return f"{self.task.id}, seed {self.seed}, track {self.track}"


def find_entry(name: str, args: Mapping[str, Any] | None = None) -> SuiteEntry:
    """Return what plays: an algorithm by name or FILE.py:CLASS, or a row of `ROWS`. Wrong names raise a ValueError."""
    if name in ROWS:
        if args:
            raise SuiteError(f"Expect no hyperparameters for the row {name}, actually: {dict(args)!r:.80}")  # fmt: skip
        return SuiteEntry(**ROWS[name])
    entry = SuiteEntry(algorithm=name, args=dict(args or {}))
    try:
        json.dumps(entry.args, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise SuiteError(f"Expect hyperparameters that JSON can hold, actually: {entry.args!r:.80}") from error  # fmt: skip
    if "learning_rate" in entry.args:
        raise SuiteError("Expect the learning rates that `codea1 suite tune` finds, actually a hyperparameter learning_rate")  # fmt: skip
    from codea1_env.agents import make_algorithm

    make_algorithm(name, {"learning_rate": 1.0}, "tabular", dict(entry.args))
    return entry


def play(
    entry: SuiteEntry,
    task: SuiteTask,
    seed: int,
    track: Track,
    base: Path | None = None,
    check: bool = True,
) -> tuple[float, str]:
    """Play an id from its first episode to its last; returns the measure and the SHA-256 of what was played.

    Args:
        entry: What plays.
        task: The id.
        seed: The world's.
        track: Who learns.
        base: Folder of a submission, for a record; None for none.
        check: Whether the referee judges a sample of a record.
    """
    run = SuiteRun(entry, task, seed, track)
    recorder = None if base is None else Recorder(base, run.rounds, track, "suite run", check=check)
    parts = []
    while not run.over:
        episodes, programs, tests, paid = run.step()
        parts.append((episodes, programs, tests))
        if recorder is not None:
            recorder.begin(len(episodes))
            recorder.add(episodes, programs, tests, paid.known, paid.replayed)
    played = [np.concatenate(each) for each in zip(*parts, strict=True)]
    return measure(task, seed, track, *played), digest_of(*played)


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


class PlayError(SuiteError):
    """What an algorithm raised when it played."""


class Trial(NamedTuple):
    """A setting that tuning tries."""

    track: Track
    experiment: str
    setting: int


def tune(
    entry: SuiteEntry,
    tracks: Sequence[Track],
    *,
    processes: int,
    tell: Callable[[str], None] = lambda line: None,
    experiments: Sequence[str] = (),
) -> dict[str, Any]:
    """Search learning rates: 6 settings on the same tuning worlds for everybody. Returns the content of tuning.json.

    The score of a setting is the mean measure over those ids of the experiment that separate.
    """
    known = dict.fromkeys(task.experiment for task in tasks().values())
    trials = [
        Trial(track, name, setting)
        for track in tracks
        for name in experiments or known
        if _tuned_on(name, track)
        for setting in range(len(RATES))
    ]
    found: dict[Trial, float] = {}

    def hear(trial: Trial, value: float) -> None:
        found[trial] = value
        tell(f"{trial.track} {trial.experiment} {RATES[trial.setting]}: {value:.3f}")

    _run({trial: partial(play_trial, entry, trial) for trial in trials}, hear, processes)
    rates: dict[str, dict[str, list[float]]] = {}
    for track, name, _ in trials:
        best = max(range(len(RATES)), key=lambda i: found[Trial(track, name, i)])
        rates.setdefault(track, {})[name] = list(RATES[best])
    tried = [{"track": t.track, "experiment": t.experiment, "rates": list(RATES[t.setting]), "mean": v} for t, v in found.items()]  # fmt: skip
    return {"suite_sha256": digest("v1"), "seeds": list(TUNING_SEEDS), "rates": rates, "tried": sorted(tried, key=str)}  # fmt: skip


def _tuned_on(experiment: str, track: Track) -> list[SuiteTask]:
    own = [
        task
        for task in tasks().values()
        if task.experiment == experiment and track in task.tracks and task.part == "score"
    ]
    return [task for task in own if task.separates] or own


def play_trial(entry: SuiteEntry, trial: Trial) -> float:
    """Return the mean measure of a setting."""
    coder, tester = RATES[trial.setting]
    tried = dataclasses.replace(entry, coder_rate=coder, tester_rate=tester)
    own = [(task, seed) for task in _tuned_on(trial.experiment, trial.track) for seed in TUNING_SEEDS]  # fmt: skip
    return float(np.mean([play(tried, task, seed, trial.track)[0] for task, seed in own]))


def _run(works: Mapping[_K, Callable[[], float]], hear: Callable[[_K, float], None], processes: int) -> None:  # fmt: skip
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
        raise PlayError(f"Expect an algorithm that plays {chunk[0]} to {chunk[-1]}, actually its process ended {error}") from error  # fmt: skip
    raise error


def keys_of(ids: Sequence[str], tracks: Sequence[Track], seeds: Sequence[int]) -> list[RecordKey]:
    """Return the records of a submission."""
    return [
        RecordKey(track, find_task(id), seed)
        for track in tracks
        for id in ids
        if track in find_task(id).tracks
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
    check: Callable[[RecordKey], bool] = lambda key: True,
    tell: Callable[[RecordKey, float, int], None] = lambda key, value, left: None,
) -> None:
    """Play all records that the folder lacks; they are all of one version.

    Args:
        base: Folder of the submission. It is made if need be, and gone on with if it is of the same algorithm.
        name: What plays, as `find_entry` takes it.
        args: Hyperparameters of the algorithm.
        keys: The records.
        rates: What tuning found.
        processes: Records at the same time. Has no influence on them.
        check: Whether the referee judges a sample of a record.
        tell: Is told of each record, its measure, and how many are left.

    Raises:
        SuiteError: The referee judged otherwise, or the algorithm was not tuned; a `PlayError` if it raised something.
        FolderError: The folder is of something else.
    """
    entry = find_entry(name, args)
    own = [with_rates(entry, rates, key.track, key.task.experiment) for key in keys]
    settings: dict[str, Any] = {"suite_sha256": digest(keys[0].task.version), "algorithm": name}
    settings["args"] = dict(args)
    settings |= {"algorithm_sha256": digest_of_file(name), "rates": json.loads(json.dumps(rates))}
    with Jobs(base / RECORDS, settings, SUBMISSION, resume=None):
        wanted = {key: each for key, each in zip(keys, own, strict=True) if not is_whole(base, key)}
        left = len(wanted)

        def hear(key: RecordKey, value: float) -> None:
            nonlocal left
            left -= 1
            tell(key, value, left)

        works = {key: partial(_record, each, key, base, check(key)) for key, each in wanted.items()}
        _run(works, hear, processes)


def is_whole(base: Path, key: RecordKey) -> bool:
    """Whether a folder has a record; one that is of another version, or was edited, is none."""
    path = folder_of(base, key.task, key.seed, key.track)
    try:
        return path.exists() and read_record(path, key.task.version).seed == key.seed
    except SuiteError:
        return False


def _record(entry: SuiteEntry, key: RecordKey, base: Path, check: bool) -> float:
    # What a killed process left: an algorithm in the middle of an id cannot go on.
    shutil.rmtree(folder_of(base, key.task, key.seed, key.track), ignore_errors=True)
    return play(entry, key.task, key.seed, key.track, base, check)[0]


def write_tuning(base: Path, content: Mapping[str, Any]) -> None:
    """Write tuning.json into the folder of a submission."""
    base.mkdir(parents=True, exist_ok=True)
    write_whole(base / TUNING, json.dumps(content, indent=1) + "\n")


def read_tuning(base: Path) -> dict[str, Any]:
    """Read tuning.json of a submission.

    A player of another library writes its own: `seeds`, all from 1000 on, and `tried`, at most 6 settings for each track and experiment.

    Raises:
        SuiteError: There is none, it was tuned on seeds of the score, or with more settings.
    """
    path = base / TUNING
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SuiteError(
            f"Expect a tuned submission, whose {path} says on which seeds and what was tried, actually: "
            f"{type(error).__name__}: {error}. `codea1 suite tune` writes it."
        ) from error
    check_tuning(content, path)
    return {"rates": {}, **content}


def check_tuning(content: Any, path: Path) -> None:
    """Refuse what is no content of tuning.json, with a SuiteError that names the file."""
    content = content if isinstance(content, dict) else {}
    seeds, tried, rates = content.get("seeds"), content.get("tried"), content.get("rates", {})
    if not isinstance(seeds, list) or not isinstance(tried, list) or not isinstance(rates, dict):
        raise SuiteError(
            f"Expect {path} to say what was tried in tuning: lists `seeds` and `tried`, actually: {seeds!r:.40}, {tried!r:.40}"
        )
    if not tried or not all(each and isinstance(each, dict) for each in tried):
        raise SuiteError(
            f'Expect the settings that were tried in tuning in {path}, such as {{"learning_rate": 0.1}}, actually: {tried!r:.80}'
        )
    if not seeds or not all(isinstance(each, int) and each >= TUNING_SEED for each in seeds):
        raise SuiteError(
            f"Expect seeds of tuning from {TUNING_SEED} on in {path}, actually: {seeds!r:.80}"
        )
    for track in TRACKS:
        for name in dict.fromkeys(task.experiment for task in tasks().values()):
            own = _tried(tried, track, name)
            if len(own) > len(RATES):
                raise SuiteError(f"Expect at most {len(RATES)} settings tried for {name}, track {track}, actually: {len(own)}")  # fmt: skip
            chosen = _dict(rates.get(track)).get(name)
            best = max((_mean_of(each) for each in own), default=0.0)
            if chosen is not None and not any(each.get("rates") == chosen and _mean_of(each) == best for each in own):  # fmt: skip
                raise SuiteError(
                    f"Expect the rates of the best setting that was tried for {name}, track {track}, in {path}, actually: {chosen!r:.40}"
                )


def trials_of(tuning: Mapping[str, Any]) -> dict[Trial, float]:
    """Return the settings that `tune` tried, and the mean measure of each; a SuiteError if it did not write them."""
    found = {}
    for each in tuning["tried"]:
        track, name, rates, mean = (
            each.get(key) for key in ("track", "experiment", "rates", "mean")
        )
        setting = next((i for i, own in enumerate(RATES) if list(own) == rates), None)
        if setting is None or not any(task.experiment == name and track in task.tracks for task in tasks().values()) or not isinstance(mean, float):  # fmt: skip
            raise SuiteError(f"Expect settings as `codea1 suite tune` tries them, actually: {each!r:.120}")  # fmt: skip
        found[Trial(track, name, setting)] = mean
    return found


def _tried(tried: Sequence[Mapping[str, Any]], track: str, name: str) -> list[Mapping[str, Any]]:
    return [each for each in tried if each.get("track", track) == track and each.get("experiment", name) == name]  # fmt: skip


def _mean_of(tried: Mapping[str, Any]) -> float:
    mean = tried.get("mean")
    return float(mean) if isinstance(mean, int | float) else 0.0


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
