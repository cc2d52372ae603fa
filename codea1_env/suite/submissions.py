"""Submissions: what tuning.json and submission.json have, and `codea1 suite verify`, which plays a share of one again."""

from __future__ import annotations

import hashlib
import itertools
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError, model_validator

from codea1_env.suite.players import FAULTY, find_entry
from codea1_env.suite.records import RECORD, Record, read_record, records_in
from codea1_env.suite.running import SUBMISSION, keys_of, play, with_rates
from codea1_env.suite.tasks import (
    EXPERIMENTS,
    RECORDS,
    SEEDS,
    TRACKS,
    TUNING_SEED,
    RecordKey,
    SuiteError,
    digest,
    tasks,
)
from codea1_env.suite.tuning import RATES, Trial
from codea1_env.support.jobs import read_json, read_manifest
from codea1_env.support.logs import write_whole

TUNING = "tuning.json"
_EQUAL = 1e-12
_Pair = Annotated[list[float], Field(min_length=2, max_length=2)]
_Rates = dict[str, dict[str, _Pair]]
_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class TriedSetting(BaseModel, strict=True, extra="allow"):
    """A setting that was tried in tuning; what else it has is up to whoever tried it."""

    track: str = ""
    """"" for all tracks."""
    experiment: str = ""
    """"" for all experiments."""
    rates: Any = None
    mean: float = 0.0


class Tuning(BaseModel, strict=True):
    """What tuning.json has."""

    seeds: Annotated[list[Annotated[int, Field(ge=TUNING_SEED)]], Field(min_length=1)]
    tried: Annotated[list[TriedSetting], Field(min_length=1)]
    rates: _Rates = {}
    suite_sha256: str | None = None

    @model_validator(mode="after")
    def _follows_the_protocol(self) -> Tuning:
        if not all(each.model_fields_set for each in self.tried):
            raise ValueError("Expect settings that say what was tried")
        if self.suite_sha256 not in (None, digest("v1")):
            raise ValueError("Expect tuning on codea1-suite v1, by its SHA-256")
        for track, name in itertools.product(TRACKS, EXPERIMENTS):
            own = [
                each
                for each in self.tried
                if each.track in ("", track) and each.experiment in ("", name)
            ]
            if len(own) > len(RATES):
                raise ValueError(f"Expect at most {len(RATES)} settings for {name}, track {track}")
            top = max((each.mean for each in own), default=0.0)
            chosen = self.rates.get(track, {}).get(name)
            if chosen and chosen not in [each.rates for each in own if each.mean == top]:
                raise ValueError(f"Expect the rates of the best setting for {name}, track {track}")
        return self


class PlayedBy(BaseModel, strict=True):
    """How `codea1 suite run` played the records of a submission."""

    algorithm: str
    args: dict[str, Any]
    rates: _Rates
    suite_sha256: str
    algorithm_sha256: str | None
    """Of the file of the algorithm; None for one that has none."""


class Submission(BaseModel, strict=True):
    """What submission.json has."""

    suite: Literal["v1"]
    kind: Literal["played by codea1", "recorded"]
    settings: PlayedBy | None = None
    """None for records of another library."""
    code: str
    """The file of the algorithm."""
    tuning: Tuning | None = None
    values: dict[str, dict[str, dict[str, _Share]]]
    """Track -> id -> seed -> measure."""
    played: dict[str, str]
    """Name of a record -> the SHA-256 of what was played."""

    @model_validator(mode="after")
    def _is_tuned_and_whole(self) -> Submission:
        tuned = not self.settings or self.settings.algorithm not in ("random", "oracle")
        if tuned and not self.tuning:
            raise ValueError("Expect a tuned submission")
        if self.settings:
            self._is_what_played(self.settings)
        if (self.settings is None) != (self.kind == "recorded"):
            raise ValueError("Expect settings of what codea1 played, and none of what was recorded")
        if self.settings and self.tuning and self.settings.rates != self.tuning.rates:
            raise ValueError("Expect records that were played with the rates that tuning chose")
        claimed = {
            f"{track} {id} {seed}"
            for track, ids in self.values.items()
            for id, seeds in ids.items()
            for seed in seeds
        }
        if not claimed or claimed != self.played.keys() or not claimed <= _names().keys():
            raise ValueError(
                "Expect a value, and what was played, for each record, and at least one"
            )
        return self

    def _is_what_played(self, settings: PlayedBy) -> None:
        file = settings.algorithm.rpartition(":")[0]
        is_file = file.endswith(".py") and "\0" not in file
        if is_file != bool(self.code):
            raise ValueError(
                f"Expect the code of FILE.py:NAME, and none of other names: {settings.algorithm!r:.80}"
            )
        sha256 = hashlib.sha256(self.code.encode()).hexdigest()
        if is_file and settings.algorithm_sha256 != sha256:
            raise ValueError("Expect the code that played, by its SHA-256")
        if settings.suite_sha256 != digest("v1"):
            raise ValueError("Expect records of codea1-suite v1, by its SHA-256")
        if self.tuning and self.tuning.seeds != [TUNING_SEED]:
            raise ValueError(f"Expect tuning on seed {TUNING_SEED}, as `codea1 suite tune` does it")


def _names() -> dict[str, RecordKey]:
    """Return all records that are scored, by their names in submission.json."""
    return {key.name: key for key in keys_of(tasks().values(), TRACKS, SEEDS)}


_Model = TypeVar("_Model", bound=BaseModel)


def _checked(kind: type[_Model], content: Any, path: Path) -> _Model:
    """Return the content of a file; a SuiteError that names file and place if it is something else."""
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place, said = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
        raise SuiteError(
            f"Expect {path} by the rules of docs/suite.md, actually {place or 'all of it'}: {said}: {first['input']!r:.40}"
        ) from error


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
        content = read_json(path)
    except ValueError as error:
        raise SuiteError(
            f"Expect a tuned submission, whose {path} says on which seeds and what was tried, actually: "
            f"{error.__cause__ or error}. `codea1 suite tune` writes it."
        ) from error
    _checked(Tuning, content, path)
    return {"rates": {}, **content}


def read_records(base: Path) -> list[Record]:
    """Read all records of a folder; a ValueError if there is none, or one cannot be scored."""
    records = [read_record(path) for path in records_in(base)]
    if not records:
        raise SuiteError(f"Expect records of codea1-suite in {base}, actually: none")
    return records


def values_of(records: Sequence[Record]) -> dict[str, dict[str, dict[str, float]]]:
    """Return the measures of records by track, id and seed."""
    values: dict[str, dict[str, dict[str, float]]] = {}
    for (track, task, seed), value, _ in records:
        values.setdefault(track, {}).setdefault(task.id, {})[str(seed)] = value
    return values


def submission(base: Path, records: Sequence[Record]) -> dict[str, Any]:
    """Return the content of submission.json; a ValueError if seeds are not scored, nothing was tuned, or other rates were played."""
    settings: dict[str, Any] = {}
    if (base / RECORDS / SUBMISSION.manifest).exists():
        settings = read_manifest(base / RECORDS, SUBMISSION)["settings"]
    if other := sorted({each.key.seed for each in records} - set(SEEDS)):
        raise SuiteError(
            f"Expect records of seeds {SEEDS[0]} to {SEEDS[-1]}, which are scored, actually {base} has seeds {other!r:.80}. "
            "Move those folders elsewhere."
        )
    manifests = [read_manifest(path, RECORD)["settings"] for path in records_in(base)]
    sources = sorted({str(each.get("source")) for each in manifests})
    if sources != ["suite run" if settings else "make"]:
        raise SuiteError(
            f"Expect records of one source, 'suite run' where {base / RECORDS} has a {SUBMISSION.manifest}, else 'make', "
            f"actually: {sources}. Do not mix folders."
        )
    name = str(settings.get("algorithm", ""))
    tuned = not settings or find_entry(name, settings.get("args")).learns
    file = Path(name.rpartition(":")[0])
    own = file.suffix == ".py" and file.is_file()
    content = {
        "suite": "v1",
        "suite_sha256": digest("v1"),
        "kind": "played by codea1" if settings else "recorded",
        "settings": settings,
        "code": file.read_bytes().decode("utf-8") if own else "",
        "tuning": read_tuning(base) if tuned else {},
        "values": values_of(records),
        "played": {each.key.name: each.sha256 for each in records},
    }
    _submission(content, base / "submission.json")
    return content


def _submission(content: Mapping[str, Any], path: Path) -> Submission:
    """Check the content of submission.json, in which {} stands for what is not there."""
    return _checked(Submission, {key: value for key, value in content.items() if value != {}}, path)


def read_submission(path: Path) -> Submission:
    """Read a submission.json; a ValueError if it is of another version, or not tuned."""
    content = read_json(path)
    if content.get("suite_sha256") != digest("v1"):
        raise SuiteError(
            f"Expect a submission to codea1-suite v1, actually {path} is of {content.get('suite')!r:.20}"
        )
    return _submission(content, path)


def verify(
    content: Submission,
    share: float,
    salt: str,
    tell: Callable[[str], None] = lambda line: None,
) -> tuple[int, list[str]]:
    """Play a share of a submission again, and of its tuning; returns how many that were, and what differs.

    Of each at least one is played. `salt` chooses: whoever submits cannot know which. A SuiteError if the submission does not
    hold what played it, or that raises something.
    """
    if content.settings is None:
        raise SuiteError(
            "Expect a submission of `codea1 suite run`, which holds its algorithm, actually: records of another library"
        )
    number, wrong = 0, list[str]()
    try:
        with tempfile.TemporaryDirectory(prefix="codea1-suite-") as folder:
            algorithm = _own_code(content, content.settings.algorithm, Path(folder))
            for name, claimed, came in _again(content, content.settings, algorithm, share, salt):
                number += 1
                equal = abs(claimed[0] - came[0]) <= _EQUAL and claimed[1] == came[1]
                tell(f"{name}: {'equal' if equal else 'differs'}")
                if not equal:
                    other = " in another game" if claimed[1] != came[1] else ""
                    wrong.append(f"{name}: {claimed[0]!r} was submitted, {came[0]!r} came{other}")
    except SuiteError:
        raise
    except (Exception, SystemExit) as error:
        raise SuiteError(
            f"Expect a submission that can be played, actually: {type(error).__name__}: {error}"
        ) from error
    return number, wrong


def _again(
    content: Submission, settings: PlayedBy, algorithm: str, share: float, salt: str
) -> Iterator[tuple[str, tuple[float, str], tuple[float, str]]]:
    """Yield names of records and settings, what was submitted of each, and what comes now: a measure, and what was played."""
    entry, known = find_entry(algorithm, settings.args), _names()
    for name in _chosen(content.played, share, salt):
        track, task, seed = key = known[name]
        claimed = content.values[track][task.id][str(seed)], content.played[name]
        came = play(with_rates(entry, settings.rates, track, task.experiment), key)
        yield name, claimed, (came.value, came.sha256)
    if content.tuning and entry.learns:
        trials = {str(trial): (trial, mean) for trial, mean in _trials(content.tuning)}
        tuned = find_entry("grpo") if settings.algorithm in FAULTY else entry  # it has GRPO's own
        for name in _chosen(trials, share, salt):
            trial, mean = trials[name]
            yield f"tuning, {name}", (mean, ""), (trial.play(tuned), "")


def _trials(tuning: Tuning) -> Iterator[tuple[Trial, float]]:
    """Yield the settings that `tune` tried, and the mean measure of each; a SuiteError if it did not write them."""
    known = [Trial(*each) for each in itertools.product(TRACKS, EXPERIMENTS, RATES)]
    for each in tuning.tried:
        trial = Trial(each.track, each.experiment, tuple(each.rates or ()))  # type: ignore[arg-type]
        if trial not in known:
            raise SuiteError(
                f"Expect settings as `codea1 suite tune` tries them, actually: {each!r:.120}"
            )
        yield trial, each.mean


def _chosen(names: Iterable[str], share: float, salt: str) -> list[str]:
    order = sorted(names, key=lambda name: hashlib.sha256(f"{salt} {name}".encode()).hexdigest())
    return order[: max(1, round(share * len(order)))]


def _own_code(content: Submission, name: str, folder: Path) -> str:
    """Return the name of what played; a file of its own is written into `folder`, where it can be loaded."""
    if not content.code:
        return name
    file, _, kind = name.rpartition(":")
    path = folder / Path(file).name
    write_whole(path, content.code)
    return f"{path}:{kind}"
