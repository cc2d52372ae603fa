"""`codea1 suite`: the frozen benchmark. Each command plays, tunes, scores or repeats a submission."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console

from codea1_env.cli.errors import INTERRUPTED, InputError, check_least, library_errors, user_input
from codea1_env.cli.parsing import parse
from codea1_env.cli.tables import print_sheet
from codea1_env.evaluation.statistics import Estimate
from codea1_env.rendering.progress import say
from codea1_env.report.sheet import Cell, Sheet
from codea1_env.suite.running import (
    TUNING,
    RecordKey,
    find_entry,
    keys_of,
    read_tuning,
    run_all,
    tune,
    write_tuning,
)
from codea1_env.suite.scores import (
    TrackScore,
    are_trials,
    paired,
    read_records,
    read_submission,
    score_tracks,
    shipped,
    signed,
    submission,
    values_of,
    verify,
)
from codea1_env.suite.tasks import SEEDS, TRACKS, TUNING_SEED, Track, check_track, find_task, tasks
from codea1_env.support.jobs import FolderError
from codea1_env.support.logs import write_whole
from codea1_env.support.plugins import find_in_working_folder
from codea1_env.support.stopping import terminable

_QUICK_SEEDS = 2
Tracks = Annotated[
    tuple[Track, ...],
    tyro.conf.arg(help="Who learns: both players, or one against a shipped population."),
]


@dataclass(frozen=True, kw_only=True)
class _Playing:
    algorithm: str
    """A name (grpo, ppo, ...), FILE.py:CLASS, or a row such as memory or random."""
    algorithm_args: dict[str, Any] = field(default_factory=dict)
    """Its hyperparameters."""
    output_dir: Path
    """Folder of the submission. What it has is not played again."""
    tracks: Tracks = TRACKS
    processes: int = len(os.sched_getaffinity(0))
    """Records at the same time. Has no influence on the results."""


@dataclass(frozen=True, kw_only=True)
class TuneCommand(_Playing):
    """Search learning rates on worlds that are for tuning: 6 settings for each experiment. Writes tuning.json."""

    def __post_init__(self) -> None:
        check_least(self, processes=1)


@dataclass(frozen=True, kw_only=True)
class SuiteCommand(_Playing):
    """Play the ids with an algorithm of this project, with the rates of tuning.json, and record them."""

    ids: Annotated[tuple[str, ...], tyro.conf.arg(metavar="ID ...")] = ()
    """All if none is named."""
    seeds: int = len(SEEDS)
    """Worlds of each id."""
    quick: bool = False
    """The last id of each experiment that separates, with 2 seeds."""
    check: Literal["all", "first"] = "all"
    """Records of which the referee judges a sample: all, or those of seed 0."""

    def __post_init__(self) -> None:
        check_least(self, processes=1, seeds=1)
        if self.seeds > len(SEEDS):
            raise ValueError(f"Expect --seeds to be at most {len(SEEDS)}, actually: {self.seeds}")


@dataclass(frozen=True)
class ScoreCommand:
    """Score the records of a folder, beside the shipped rows. Writes submission.json, unless they are trials (seeds from 1000 on)."""

    folder: Annotated[Path, tyro.conf.Positional]
    json: bool = False
    """Print the scores to stdout as one JSON object."""


@dataclass(frozen=True)
class VerifyCommand:
    """Play a share of a submission again. Exit code 1 if something differs.

    A submission may hold a Python file. It is run with your rights, outside the sandbox: read it first. Equal records can be
    repeated, which does not mean that they are fair: the file can read the world that it plays in.
    """

    file: Annotated[Path, tyro.conf.Positional]
    share: float = 0.05
    """Share of its records; at least one is played."""
    salt: str = "0"
    """Chooses them: say another one than whoever submits could know."""

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ValueError(f"Expect --share above 0 and at most 1, actually: {self.share}")


def run_tune(arguments: Sequence[str]) -> int:
    """Run `codea1 suite tune`; returns the exit code."""
    find_in_working_folder()
    command = parse(TuneCommand, arguments, name="suite tune")
    console = Console(stderr=True)
    with user_input():
        entry = find_entry(command.algorithm, command.algorithm_args)
    if not entry.learns:
        raise InputError(f"Expect an algorithm with learning rates, actually: {command.algorithm}")
    with terminable(), library_errors(), user_input():
        content = tune(
            entry, command.tracks, processes=command.processes, tell=lambda line: say(console, line)
        )
    write_tuning(command.output_dir, content)
    say(console, f"Written: {command.output_dir / TUNING}")
    return 0


def run_suite(arguments: Sequence[str]) -> int:
    """Run `codea1 suite run`; returns the exit code."""
    find_in_working_folder()
    command = parse(SuiteCommand, arguments, name="suite run")
    console = Console(stderr=True)
    with user_input():
        named = [find_task(id).id for id in command.ids]
        for id in named:
            if not set(tasks()[id].tracks) & set(command.tracks):
                check_track(tasks()[id], command.tracks[0])
        entry = find_entry(command.algorithm, command.algorithm_args)
        rates = read_tuning(command.output_dir)["rates"] if entry.learns else {}
        ids = named or _quick_ids() if command.quick else named or list(tasks())
        seeds = range(min(command.seeds, _QUICK_SEEDS) if command.quick else command.seeds)
        keys = keys_of(ids, command.tracks, seeds)

    def tell(key: RecordKey, value: float, left: int) -> None:
        say(console, f"{key.track} {key.task.id} seed {key.seed}: {value:.3f} ({left} left)")

    def check(key: RecordKey) -> bool:
        return command.check == "all" or key.seed == 0

    try:
        with terminable(), library_errors(), user_input():
            run_all(command.output_dir, command.algorithm, command.algorithm_args, keys, rates=rates, processes=command.processes, check=check, tell=tell)  # fmt: skip
    except FolderError as error:
        raise InputError(str(error)) from error
    except KeyboardInterrupt:
        say(console, "To go on, say the same again.")
        return INTERRUPTED
    say(console, f"Scores: codea1 suite score {command.output_dir}")
    return 0


def _quick_ids() -> list[str]:
    last = {
        task.experiment: id
        for id, task in tasks().items()
        if task.separates and task.part == "score"
    }
    return list(last.values())


def score(arguments: Sequence[str]) -> int:
    """Run `codea1 suite score`; returns the exit code."""
    command = parse(ScoreCommand, arguments, name="suite score")
    with user_input():
        records = read_records(command.folder)
        trials = are_trials(records)
        content = {} if trials else submission(command.folder, records)
    values = values_of(records)
    if not trials:
        write_whole(command.folder / "submission.json", json.dumps(content, indent=1) + "\n")
    scores = score_tracks(values)
    if command.json:
        print(json.dumps([_as_json(each) for each in scores]))
        return 0
    console = Console()
    for each in scores:
        print_sheet(_sheet(each, values, trials), console)
    if trials:
        say(console, f"Seeds from {TUNING_SEED} on are for tuning: no submission.")
        return 0
    kind = (
        "played by codea1: `codea1 suite verify` can repeat it"
        if content["settings"]
        else "recorded: its algorithm is not in it"
    )
    say(console, f"Written: {command.folder / 'submission.json'} ({kind})")
    return 0


def run_verify(arguments: Sequence[str]) -> int:
    """Run `codea1 suite verify`; returns the exit code."""
    command = parse(VerifyCommand, arguments, name="suite verify")
    console = Console()
    with user_input(), library_errors():
        content = read_submission(command.file)
        number, wrong = verify(
            content, command.share, command.salt, lambda line: say(console, line)
        )
    for line in wrong:
        say(console, f"Differs: {line}")
    say(
        console,
        f"{number - len(wrong)} of {number} are equal: records, and settings of the tuning.",
    )
    return 1 if wrong else 0


def _sheet(scored: TrackScore, values: Mapping[str, Any], trials: bool) -> Sheet:
    """Return the table of a track: the own row, the difference from shipped GRPO, and shipped rows."""
    beside = {
        name: {each.task.id: each.score for each in one.ids if each.score}
        for name, row in shipped().items()
        if name not in ("random", "oracle") and scored.track in row["values"]
        for one in score_tracks({scored.track: row["values"][scored.track]})
    }
    rows = []
    for each in scored.ids:
        task = each.task
        grpo = shipped().get("grpo", {}).get("values", {}).get(scored.track, {}).get(task.id)
        difference = (
            paired(task, scored.track, values[scored.track][task.id], grpo) if grpo else None
        )
        cells = [
            task.id if task.separates else f"({task.id})",
            task.setting,
            signed(each.score) if each.score else f"{each.values[0]:+.2f} (one seed)",
            signed(difference),
        ]
        cells += [
            f"{found[task.id].value:+.2f}" if task.id in found else "-" for found in beside.values()
        ]
        rows.append([Cell(text) for text in cells])
    note = f"Track {scored.track}. 0 is random play, 1 the oracle; 95% intervals over seeds. "
    if trials:
        note += "Other rows are of other seeds."
    else:
        note += f"Number (mean of the ids that separate): {signed(scored.number)}; held-out: {signed(scored.held_out)}. Ids in brackets do not count."
    if scored.missing and not trials:
        note += f" {scored.missing} records are missing: there is no number without them."
    return Sheet("", note, ["id", "setting", "score", "more than GRPO", *beside], rows)


def _as_json(scored: TrackScore) -> dict[str, Any]:
    def plain(estimate: Estimate | None) -> Any:
        return None if estimate is None else vars(estimate)

    return {
        "track": scored.track,
        "number": plain(scored.number),
        "held_out": plain(scored.held_out),
        "missing": scored.missing,
        "ids": {
            each.task.id: {
                "separates": each.task.separates,
                "score": plain(each.score),
                "values": each.values,
            }
            for each in scored.ids
        },
    }
