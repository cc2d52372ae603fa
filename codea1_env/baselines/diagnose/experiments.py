"""The experiments: a question, a knob, rows, and the control that could refute the answer.

They are the version "diagnose" of codea1-suite. What is played and what was expected is in `codea1_env/suite/diagnose.toml`.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import tomllib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codea1_env.agents import ALGORITHMS
from codea1_env.baselines.bench.suite import find_entry as find_algorithm
from codea1_env.baselines.bench.suite import with_own
from codea1_env.suite.players import BAD, ROWS, find_entry
from codea1_env.suite.running import Rates
from codea1_env.suite.scores import shipped
from codea1_env.suite.tasks import VARIANTS, RecordKey, SuiteTask, find_task, tasks, texts

VERSION = "diagnose"
_RATES_OF = "rare-faults"
"""Learning rates of an experiment that v1 lacks are those that were tuned for this one."""


@dataclass(frozen=True)
class DiagnoseRow:
    """What plays, and by which rules."""

    name: str
    algorithm: str
    """As `codea1_env.suite.running.find_entry` takes it."""
    args: Mapping[str, Any]
    variant: str
    """Name in `VARIANTS`; "" for the rules of the experiment."""

    @property
    def folder(self) -> str:
        """Folder of its records: rows that differ in the rules alone share one."""
        name = self.name.partition("@")[0]
        safe = re.sub(r"[^\w.+-]", "_", name.rpartition("/")[2])
        return safe if safe == name else f"{safe}-{zlib.crc32(name.encode()):08x}"

    @property
    def rates(self) -> Rates:
        """Learning rates in each experiment: what tuning found for the shipped row of that name, else for GRPO."""
        known = shipped().get(self.algorithm, {}).get("settings", {}).get("rates", {})
        tuned = known.get("both") or shipped()["grpo"]["settings"]["rates"]["both"]
        return {"both": {name: tuned.get(name, tuned[_RATES_OF]) for name in EXPERIMENTS}}

    def task(self, task: SuiteTask) -> SuiteTask:
        """Return a task by the rules of this row."""
        return find_task(f"{task.id}@{self.variant}", VERSION) if self.variant else task


def find_row(name: str) -> DiagnoseRow:
    """Find a row: WHAT PLAYS or WHAT PLAYS@OTHER RULES. Raises a ValueError if there is none.

    Example:
        >>> find_row("ppo(entropy=0.02)@no-book")
        DiagnoseRow(name='ppo(entropy=0.02)@no-book', algorithm='ppo', args={'entropy': 0.02}, variant='no-book')
    """
    player, at, variant = name.partition("@")
    if at and variant not in VARIANTS:
        raise ValueError(f"There are no rules {variant!r}. {_near(variant, VARIANTS)}")
    if "(" in player and not player.endswith(")"):
        raise ValueError(f"Expect a row as NAME(KEY=VALUE, ...), actually: {name!r}")
    short = player.partition("(")[0]
    if short not in {**ROWS, **ALGORITHMS} and ":" not in short:
        raise ValueError(f"There is no row {name!r}. {_near(short, {**ROWS, **ALGORITHMS})}")
    if short in ROWS:
        return DiagnoseRow(name, short, {}, variant)
    entry = find_algorithm(player)
    if entry.kind != "algorithm":
        raise ValueError(f"Expect an algorithm, actually a {entry.kind}: {name}")
    algorithm, args = with_own(entry.name)
    find_entry(algorithm, args)
    return DiagnoseRow(name, algorithm, args, variant)


@dataclass(frozen=True)
class Experiment:
    """One question."""

    name: str
    tag: str
    """One word for what it is about: a spoke of the radar."""
    question: str
    knob: str
    """What the settings differ in."""
    settings: Mapping[str, SuiteTask]
    """Value of the knob as it is shown -> what is played, in the order of the curve."""
    rows: tuple[str, ...]
    """The signs are about the first row."""
    control: str
    quick: Sequence[str]
    """Settings of a quick run."""
    expected: str
    refuted_by: str
    signs: Sequence[str]
    """Sign of the first row's difference from the control at each setting: "+", "-", or "0" for none to be seen."""

    @property
    def two_signs(self) -> bool:
        """Whether the first row is expected on both sides of the control: what is won and lost is not summed to nothing."""
        return {"+", "-"} <= set(self.signs)

    @property
    def measure(self) -> str:
        """What is scored."""
        return next(iter(self.settings.values())).measure

    def keys(self, row: DiagnoseRow, seeds: Sequence[int], quick: bool) -> dict[RecordKey, str]:
        """Return the records of a row, and the setting of each."""
        settings = self.quick if quick else self.settings
        return {
            RecordKey("both", row.task(self.settings[each]), seed): each
            for each in settings
            for seed in seeds
        }


def _experiment(name: str, compared: Mapping[str, Any]) -> Experiment:
    own = [task for task in tasks(VERSION).values() if task.experiment == name]
    rows = tuple(dict.fromkeys((*compared["rows"], "grpo", *BAD, "oracle")))
    settings = {task.setting: task for task in own}
    said = {**compared, "rows": rows, "signs": tuple(compared["signs"])}
    return Experiment(name=name, question=own[0].question, settings=settings, **said)


EXPERIMENTS: Mapping[str, Experiment] = {
    name: _experiment(name, said["compared"])
    for name, said in tomllib.loads(texts(VERSION)[-1]).items()
}
"""Experiments by name."""


def find_experiments(names: Sequence[str], rows: Sequence[str] = ()) -> list[Experiment]:
    """Return experiments by name, all of them if none is named, with more rows."""
    for name in names:
        if name not in EXPERIMENTS:
            raise ValueError(f"There is no experiment {name!r}. {_near(name, EXPERIMENTS)}")
    found = [EXPERIMENTS[name] for name in dict.fromkeys(names)] or list(EXPERIMENTS.values())
    return [
        dataclasses.replace(each, rows=tuple(dict.fromkeys((*each.rows, *rows)))) for each in found
    ]


def _near(name: str, known: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    return f"Did you mean {' or '.join(near)}?" if near else f"Known: {', '.join(known)}."
