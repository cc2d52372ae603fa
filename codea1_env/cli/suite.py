"""`codea1 suite`: the frozen benchmark. Each command plays, tunes, scores or repeats a submission."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console

from codea1_env.cli.errors import INTERRUPTED, InputError, check_least, user_input
from codea1_env.cli.parsing import parse
from codea1_env.cli.tables import print_sheet
from codea1_env.rendering.progress import say
from codea1_env.report.sheet import Sheet
from codea1_env.suite import running, scores, submissions
from codea1_env.suite.players import find_entry
from codea1_env.suite.scores import signed
from codea1_env.suite.tasks import (
    SEEDS,
    TRACKS,
    TUNING_SEED,
    RecordKey,
    Track,
    check_track,
    find_task,
    tasks,
)
from codea1_env.suite.tuning import tune
from codea1_env.support.logs import write_whole
from codea1_env.support.plugins import find_in_working_folder
from codea1_env.support.stopping import terminable

_QUICK_SEEDS = 2


@dataclass(frozen=True, kw_only=True)
class _Playing:
    algorithm: str
    """A name (grpo, ppo, ...), FILE.py:CLASS, or a row such as memory or random."""
    algorithm_args: dict[str, Any] = field(default_factory=dict)
    """Its hyperparameters."""
    output_dir: Path
    """Folder of the submission. What it has is not played again."""
    tracks: tuple[Track, ...] = TRACKS
    """Who learns: both players, or one against a shipped population."""
    processes: int = len(os.sched_getaffinity(0))
    """Records at the same time. Has no influence on the results."""

    def __post_init__(self) -> None:
        check_least(self, processes=1)


class TuneCommand(_Playing):
    """Search learning rates on worlds that are for tuning: 6 settings for each experiment. Writes tuning.json."""


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
        super().__post_init__()
        if not 0 < self.seeds <= len(SEEDS):
            raise ValueError(f"Expect --seeds from 1 to {len(SEEDS)}, actually: {self.seeds}")


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
    with terminable(), user_input():
        entry = find_entry(command.algorithm, command.algorithm_args)
        if not entry.learns:
            raise InputError(f"Expect an algorithm with learning rates, actually: {command.algorithm}")  # fmt: skip
        content = tune(
            entry, command.tracks, processes=command.processes, tell=lambda line: say(console, line)
        )
    submissions.write_tuning(command.output_dir, content)
    say(console, f"Written: {command.output_dir / submissions.TUNING}")
    return 0


def run_suite(arguments: Sequence[str]) -> int:
    """Run `codea1 suite run`; returns the exit code."""
    find_in_working_folder()
    command = parse(SuiteCommand, arguments, name="suite run")
    console = Console(stderr=True)

    def tell(key: RecordKey, value: float, left: int) -> None:
        say(console, f"{key.track} {key.task.id} seed {key.seed}: {value:.3f} ({left} left)")

    try:
        with terminable(), user_input():
            entry = find_entry(command.algorithm, command.algorithm_args)
            rates = submissions.read_tuning(command.output_dir)["rates"] if entry.learns else {}
            running.run_all(
                command.output_dir,
                command.algorithm,
                command.algorithm_args,
                _keys(command),
                rates=rates,
                processes=command.processes,
                checked=SEEDS if command.check == "all" else (0,),
                tell=tell,
            )
    except KeyboardInterrupt:
        say(console, "To go on, say the same again.")
        return INTERRUPTED
    say(console, f"Scores: codea1 suite score {command.output_dir}")
    return 0


def _keys(command: SuiteCommand) -> list[RecordKey]:
    """Return the records that are asked for."""
    named = [find_task(id) for id in command.ids]
    for task in named:
        if not set(task.tracks) & set(command.tracks):
            check_track(task, command.tracks[0])
    last = {
        task.experiment: task
        for task in tasks().values()
        if task.separates and task.part == "score"
    }
    asked = named or list((last if command.quick else tasks()).values())
    seeds = range(min(command.seeds, _QUICK_SEEDS) if command.quick else command.seeds)
    return running.keys_of(asked, command.tracks, seeds)


def score(arguments: Sequence[str]) -> int:
    """Run `codea1 suite score`; returns the exit code."""
    command = parse(ScoreCommand, arguments, name="suite score")
    file, console = command.folder / "submission.json", Console()
    with user_input():
        records = submissions.read_records(command.folder)
        trials = all(each.key.seed >= TUNING_SEED for each in records)
        content = {} if trials else submissions.submission(command.folder, records)
    if content:
        write_whole(file, json.dumps(content, indent=1) + "\n")
    values = submissions.values_of(records)
    scored = scores.score_tracks(values)
    recorded = not trials and not content["settings"]
    if command.json:
        print(json.dumps([asdict(each) for each in scored]))
        return 0
    for each in scored:
        print_sheet(_sheet(each, values, trials=trials, recorded=recorded), console)
    if trials:
        say(console, f"Seeds from {TUNING_SEED} on are for tuning: no submission.")
    elif recorded:
        say(console, f"Written: {file} (recorded: its algorithm is not in it)")
    else:
        say(console, f"Written: {file} (played by codea1: `codea1 suite verify` can repeat it)")
    return 0


def run_verify(arguments: Sequence[str]) -> int:
    """Run `codea1 suite verify`; returns the exit code."""
    command = parse(VerifyCommand, arguments, name="suite verify")
    console = Console()
    with terminable(), user_input():
        content = submissions.read_submission(command.file)
        number, wrong = submissions.verify(
            content, command.share, command.salt, lambda line: say(console, line)
        )
    for line in wrong:
        say(console, f"Differs: {line}")
    held = len(content.played) + len(content.tuning.tried if content.tuning else ())
    say(
        console,
        f"{number - len(wrong)} of {number} are equal, drawn from {held} records and settings of the tuning with the salt "
        f"{command.salt!r}. The others were not played.",
    )
    return 1 if wrong else 0


def _sheet(
    scored: scores.TrackScore, values: scores.Values, *, trials: bool, recorded: bool
) -> Sheet:
    """Return the table of a track: the own row, the difference from shipped GRPO, and shipped rows."""
    track = scored.track
    rows = {
        name: row["values"][track]
        for name, row in scores.shipped().items()
        if track in row["values"]
    }
    grpo = rows.get("grpo", {})
    beside = {
        name: scores.score_tracks({track: own})[0].ids
        for name, own in rows.items()
        if name not in ("random", "oracle")
    }
    table = [["id", "setting", "score", "more than GRPO", *beside]]
    for id, own in scored.ids.items():
        others = [ids[id].score for ids in beside.values()]
        row = [
            id if own.separates else f"({id})",
            find_task(id).setting,
            signed(own.score) if own.score else f"{own.values[0]:+.2f} (one seed)",
            signed(scores.paired(find_task(id), track, values[track][id], grpo.get(id, {}))),
        ]
        table.append([*row, *(f"{each.value:+.2f}" if each else "-" for each in others)])
    note = f"Track {track}. 0 is random play, 1 the oracle; 95% intervals over seeds. "
    if trials:
        return Sheet.of(table, note=f"{note}Other rows are of other seeds.")
    note += f"Number (mean of the ids that separate): {signed(scored.number)}; held-out: {signed(scored.held_out)}. Ids in brackets do not count."
    if recorded:
        note += " Recorded, and repeated by nobody: who looks ahead in copies has +1."
    if scored.missing:
        note += f" {scored.missing} records are missing: there is no number without them."
    return Sheet.of(table, note=note)
