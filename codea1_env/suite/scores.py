"""Scores of a submission: each id between random players and the oracle, the number of a track, and submission.json.

score = (x - random) / (oracle - random)        of each seed, not cut off: who learns the wrong way is negative

The interval beside a score is of that score: Student's t over seeds. The number of a track is the mean over those ids that
separate good algorithms from bad ones; the held-out part has a number of its own.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from codea1_env.evaluation.statistics import Estimate, mean_over_runs
from codea1_env.suite.players import RATES
from codea1_env.suite.records import RECORDS, Record, read_record, records_in
from codea1_env.suite.running import (
    FAULTY,
    SUBMISSION,
    check_tuning,
    find_entry,
    play,
    play_trial,
    read_tuning,
    trials_of,
    with_rates,
)
from codea1_env.suite.tasks import (
    SEEDS,
    TRACKS,
    TUNING_SEED,
    SuiteError,
    SuiteTask,
    Track,
    check_track,
    digest,
    find_task,
    tasks,
)
from codea1_env.support.jobs import FolderError, read_json, read_manifest
from codea1_env.support.logs import write_whole

_SHIPPED = Path(__file__).parent / "scores" / "v1"
Values = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Track -> id -> seed -> measure."""
_EQUAL = 1e-12
_K = TypeVar("_K")


@functools.cache
def shipped() -> Mapping[str, Mapping[str, Any]]:
    """Return the shipped rows by name, as their files have them."""
    return {path.stem: read_json(path) for path in sorted(_SHIPPED.glob("*.json"))}


@dataclass(frozen=True)
class IdScore:
    """Score of an id."""

    task: SuiteTask
    values: tuple[float, ...]
    """Normalised, by seed."""
    score: Estimate | None
    """None for fewer than two seeds."""


@dataclass(frozen=True)
class TrackScore:
    """Scores of a track."""

    track: Track
    ids: tuple[IdScore, ...]
    number: Estimate | None
    """Mean over the ids that separate; None if one of them or a seed is missing."""
    held_out: Estimate | None
    missing: int
    """Records that the track lacks."""


def normalised(task: SuiteTask, track: Track, values: Mapping[str, float]) -> dict[str, float]:
    """Return the measures of an id between random players (0) and the oracle (1), by seed."""
    random, oracle = (shipped()[name]["values"][track][task.id].values() for name in ("random", "oracle"))  # fmt: skip
    return between(values, [*random], [*oracle])


def between(
    values: Mapping[_K, float], random: Sequence[float], oracle: Sequence[float]
) -> dict[_K, float]:
    """Return values between the means of random players (0) and the oracle (1), not cut off.

    Example:
        >>> between({"a": 0.5, "b": 0.0}, [0.0, 0.5], [0.75])
        {'a': 0.5, 'b': -0.5}
    """
    low, high = float(np.mean(random)), float(np.mean(oracle))
    return {name: (value - low) / (high - low) for name, value in values.items()}


def score_tracks(values: Values) -> list[TrackScore]:
    """Score all tracks of which there is a record."""
    return [_score_track(track, values[track]) for track in TRACKS if values.get(track)]


def _score_track(track: Track, values: Mapping[str, Mapping[str, float]]) -> TrackScore:
    wanted = [task for task in tasks().values() if track in task.tracks]
    found = {task.id: normalised(task, track, values.get(task.id, {})) for task in wanted}
    seeds = [str(seed) for seed in SEEDS]
    ids = tuple(
        IdScore(task, tuple(found[task.id].values()), _estimate([*found[task.id].values()]))
        for task in wanted
        if found[task.id]
    )

    def number(part: str) -> Estimate | None:
        own = [found[t.id] for t in wanted if t.part == part and t.separates]
        if not all(set(seeds) <= set(each) for each in own):
            return None
        return mean_over_runs([np.mean([each[seed] for each in own]) for seed in seeds])

    missing = sum(seed not in found[task.id] for task in wanted for seed in seeds)
    return TrackScore(track, ids, number("score"), number("held-out"), missing)


def _estimate(values: Sequence[float]) -> Estimate | None:
    return mean_over_runs(values) if len(values) > 1 else None


def signed(estimate: Estimate | None) -> str:
    """Return a score or a difference with its interval, as a cell; "-" for none.

    Example:
        >>> signed(Estimate(0.5, 0.25, 0.75)), signed(None)
        ('+0.50 [+0.25, +0.75]', '-')
    """
    if estimate is None:
        return "-"
    return f"{estimate.value:+.2f} [{estimate.low:+.2f}, {estimate.high:+.2f}]"


def paired(
    task: SuiteTask, track: Track, mine: Mapping[str, float], other: Mapping[str, float]
) -> Estimate | None:
    """Return how much more one row scores than another, paired by seed; None for fewer than two common seeds."""
    one, two = normalised(task, track, mine), normalised(task, track, other)
    return _estimate([one[seed] - two[seed] for seed in one if seed in two])


def read_records(base: Path) -> list[Record]:
    """Read all records of a folder; a SuiteError if there is none, or one cannot be scored."""
    records = [read_record(path) for path in records_in(base)]
    if not records:
        raise SuiteError(f"Expect records of codea1-suite in {base}, actually: none")
    return records


def are_trials(records: Sequence[Record]) -> bool:
    """Return whether all records are of seeds for tuning: they have scores, and are no submission."""
    return all(each.seed >= TUNING_SEED for each in records)


def values_of(records: Sequence[Record]) -> dict[str, dict[str, dict[str, float]]]:
    """Return the measures of records by track, id and seed."""
    values: dict[str, dict[str, dict[str, float]]] = {}
    for each in records:
        values.setdefault(each.track, {}).setdefault(each.task.id, {})[str(each.seed)] = each.value
    return values


def submission(base: Path, records: Sequence[Record] | None = None) -> dict[str, Any]:
    """Return the content of submission.json.

    Args:
        base: Folder of the submission.
        records: Its records; None to read them.

    Raises:
        SuiteError: A record is not whole, was edited, or is of another version or track; nothing was tuned; or there is no record.
    """
    tuning: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    if (base / RECORDS / SUBMISSION.manifest).exists():
        try:
            settings = read_manifest(base / RECORDS, SUBMISSION)["settings"]
        except FolderError as error:
            raise SuiteError(str(error)) from error
    _check_settings(settings, base / RECORDS / SUBMISSION.manifest)
    records = read_records(base) if records is None else records
    if other := sorted({each.seed for each in records} - set(SEEDS)):
        raise SuiteError(
            f"Expect records of seeds {SEEDS[0]} to {SEEDS[-1]}, which are scored, actually {base} has seeds {other!r:.80}. "
            "Move those folders elsewhere."
        )
    name = str(settings.get("algorithm", ""))
    if not settings or find_entry(name, settings["args"]).learns:
        tuning = read_tuning(base)
    _check_rates(settings, tuning, base)
    played = {f"{each.track} {each.task.id} {each.seed}": each.sha256 for each in records}
    file = Path(name.rpartition(":")[0])
    code = file.read_text(encoding="utf-8") if file.suffix == ".py" and file.is_file() else ""
    return {
        "suite": "v1",
        "suite_sha256": digest("v1"),
        "kind": "played by codea1" if settings else "recorded",
        "settings": settings,
        "code": code,
        "tuning": tuning,
        "values": values_of(records),
        "played": played,
    }


def read_submission(path: Path) -> dict[str, Any]:
    """Read a submission.json; a SuiteError if it is of another version, or not tuned."""
    try:
        content = read_json(path)
    except FolderError as error:
        raise SuiteError(str(error)) from error
    if content.get("suite_sha256") != digest("v1"):
        raise SuiteError(
            f"Expect a submission to codea1-suite v1, actually {path} is of {content.get('suite')!r:.20}"
        )
    fields = {
        "kind": str,
        "settings": dict,
        "code": str,
        "tuning": dict,
        "values": dict,
        "played": dict,
    }
    for name, kind in fields.items():
        if not isinstance(content.get(name), kind):
            raise SuiteError(
                f"Expect {path} to be written by `codea1 suite score`, actually: no {name}"
            )
    if not content["tuning"].get("tried") and content["settings"].get("algorithm") not in (
        "random",
        "oracle",
    ):
        raise SuiteError(f"Expect a tuned submission, actually: {path} does not say what was tried")
    if content["tuning"]:
        check_tuning(content["tuning"], path)
    _check_settings(content["settings"], path)
    _check_rates(content["settings"], content["tuning"], path)
    _check_records(content, path)
    return content


def _check_rates(settings: Mapping[str, Any], tuning: Mapping[str, Any], path: Path) -> None:
    if settings and tuning and tuning.get("rates") != settings["rates"]:
        raise SuiteError(
            f"Expect records that were played with the rates that tuning chose, actually {path}: with others"
        )


def _check_settings(settings: Mapping[str, Any], path: Path) -> None:
    for name, kind in {"algorithm": str, "args": dict, "rates": dict}.items():
        if settings and not isinstance(settings.get(name), kind):
            raise SuiteError(f"Expect {path} as it was written, actually: no {name} in settings")


def _check_records(content: Mapping[str, Any], path: Path) -> None:
    """Refuse values without a record, records without a value, and what no record can be of: `verify` repeats records."""
    claimed: dict[str, Any] = {}
    for track, ids in content["values"].items():
        for id, seeds in _dict(ids).items():
            claimed |= {f"{track} {id} {seed}": value for seed, value in _dict(seeds).items()}
    known = {
        f"{track} {task.id} {seed}"
        for task in tasks().values()
        for track in task.tracks
        for seed in SEEDS
    }
    strange = (claimed.keys() ^ content["played"].keys()) | (claimed.keys() - known)
    strange |= {key for key, value in claimed.items() if not _is_measure(value)}
    if strange or not claimed:
        raise SuiteError(
            f"Expect {path} to have a value from 0 to 1 and what was played for each of its records, and at least one record, "
            f"actually otherwise: {', '.join(sorted(strange)[:3]) or 'no record'}. `codea1 suite score` writes it."
        )


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"?": value}


def _is_measure(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def verify(
    content: Mapping[str, Any],
    share: float,
    salt: str,
    tell: Callable[[str], None] = lambda line: None,
) -> tuple[int, list[str]]:
    """Play a share of a submission again, and of its tuning; returns how many that were, and what differs.

    Args:
        content: A submission.
        share: Share of its records, and of the settings that tuning tried; at least one of each is played.
        salt: Chooses them: whoever submits cannot know which.
        tell: Is told of each.

    Raises:
        SuiteError: The submission does not hold what played it, or it raises something.
    """
    settings = content["settings"]
    if not settings:
        raise SuiteError(
            "Expect a submission of `codea1 suite run`, which holds its algorithm, actually: records of another library"
        )
    name, args, rates = _own_code(content), settings["args"], settings["rates"]
    entry, wrong = find_entry(name, args), list[str]()

    def compare(key: str, claimed: float, value: float, same: bool = True) -> None:
        if abs(claimed - value) > _EQUAL:
            wrong.append(f"{key}: {claimed!r} was submitted, {value!r} came")
        elif not same:
            wrong.append(f"{key}: another game was played")
        tell(f"{key}: {'differs' if wrong and wrong[-1].startswith(key) else 'equal'}")

    trials = {f"{t.track} {t.experiment} {RATES[t.setting]}": (t, mean) for t, mean in trials_of(content["tuning"]).items()} if entry.learns else {}  # fmt: skip
    records = _chosen(content["played"], share, salt)
    tried = _chosen(trials, share, salt)
    try:
        for key in records:
            named, id, seed = key.split(" ")
            task = find_task(id)
            track = check_track(task, named)
            value, sha256 = play(with_rates(entry, rates, track, task.experiment), task, int(seed), track)  # fmt: skip
            compare(key, content["values"][track][id][seed], value, sha256 == content["played"][key])  # fmt: skip
        for key in tried:  # a row with a fault has GRPO's own tuning
            trial, mean = trials[key]
            compare(f"tuning, {key}", mean, play_trial(find_entry("grpo") if name in FAULTY else entry, trial))  # fmt: skip
    except SuiteError:
        raise
    except (Exception, SystemExit) as error:
        raise SuiteError(f"Expect a submission that can be played, actually: {type(error).__name__}: {error}") from error  # fmt: skip
    return len(records) + len(tried), wrong


def _chosen(names: Iterable[str], share: float, salt: str) -> list[str]:
    """Return a share of names, at least one: whoever submits cannot know which."""
    order = sorted(names, key=lambda name: hashlib.sha256(f"{salt} {name}".encode()).hexdigest())
    return order[: max(1, round(share * len(order)))]


def _own_code(content: Mapping[str, Any]) -> str:
    """Return the name of what played; a file of its own is written where it can be loaded."""
    name = str(content["settings"]["algorithm"])
    if not content["code"]:
        return name
    import tempfile

    path = Path(tempfile.mkdtemp(prefix="codea1-suite-")) / Path(name.rpartition(":")[0]).name
    write_whole(path, content["code"])
    return f"{path}:{name.rpartition(':')[2]}"
