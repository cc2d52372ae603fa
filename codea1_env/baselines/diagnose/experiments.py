"""The experiments: a question, a knob, rows, and the control that could refute the answer.

What is expected is in expectations.toml, which was written before the runs; the report shows both side by side.
"""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from codea1_env.agents import ALGORITHMS, find_class, make_algorithm
from codea1_env.baselines.bench.suite import find_entry
from codea1_env.baselines.diagnose.play_config import PlayConfig
from codea1_env.rewards import REWARDS
from codea1_env.support.plugins import required_parameters
from codea1_env.training import TrainConfig

Changes = Mapping[str, Any]
"""Field of `PlayConfig` -> value; those of the world as `world.faults`."""

ROWS: Mapping[str, Changes] = {
    "code-a1": {},
    "no-book": {"use_book": False},
    "black-box": {"black_box": True},
    "carries-none": {"carried": 0.0},
    "carries-half": {"carried": 0.5},
    "all-programs": {"suite_selection": "all"},
    "frozen-tester": {"learns": False},
    "random-tests": {"tester": "random"},
    "fixed-tests": {"tester": "fixed"},
    "golden-tests": {"tester": "golden", "use_book": False},
    "golden-fresh": {"tester": "golden-fresh", "use_book": False},
    "iid-tests": {"tester": "iid"},
    "oracle-tester": {"tester": "oracle"},
    "other-programs": {"tester": "other-programs"},
    "slower-tester": {"tester_rate": 2.0},
    "shuffled-rewards": {"shuffled": True},
    "negated-rewards": {"lesson": "negated"},
    "random-rewards": {"lesson": "random"},
    "rloo": {"algorithm": "rloo", "coder_rate": 8.0, "tester_rate": 64.0},
    "past-testers": {"past": "tester"},
    "past-opponents": {"past": "both"},
    "sketch": {"rewards": "execution-first", "book": "quality"},
    "separating-book": {"book": "separating"},
    "no-reference": {"judged": 0.0},
    "random-half": {"kinds": "random-half"},
    **{f"alpha={alpha:g}": {"alpha": alpha} for alpha in (0.0, 0.5, 1.0)},
    **{f"noise-{kind}": {"noise": kind} for kind in ("independent", "pair", "program")},
    "half-book": {"book": "half"},
    "uniform-replay": {"book": "uniform"},
    "passing-book": {"book": "passing"},
    "random-no-book": {"tester": "random", "use_book": False},
    "random-passing-book": {"tester": "random", "book": "passing"},
    "noise-false-passes": {"noise": "program", "wrong_are": "passes"},
    "noise-false-failures": {"noise": "program", "wrong_are": "failures"},
}
"""Rows by name. Algorithms and rewards are rows, too: see `row_changes`. Learning rates were tuned on seeds from 1000 on, for
each algorithm by factors of 4 and less: only RLOO, which does not divide by the deviation, is better with others than GRPO's."""


@dataclass(frozen=True)
class Experiment:
    """One question."""

    name: str
    tag: str
    """One word for what it is about: a spoke of the radar."""
    question: str
    knob: str
    """What the settings differ in."""
    measure: str
    """What is compared, from 0 to 1; more is better."""
    settings: Mapping[str, Changes]
    """Value of the knob as it is shown -> what it changes, in the order of the curve."""
    rows: Sequence[str]
    """The signs in expectations.toml are about the first row."""
    control: str
    base: Changes
    quick: Sequence[str]
    """Settings of a quick run."""
    slow_rows: Sequence[str] = ()
    """Rows that a quick run leaves out if they are not asked for."""

    def config(self, setting: str, row: str, seed: int) -> PlayConfig:
        """Return the settings of a run."""
        changes = {**self.base, **self.settings[setting], **row_changes(row)}
        # The world at once: half of its changes may contradict its defaults.
        world = {
            name.removeprefix("world."): changes.pop(name)
            for name in list(changes)
            if name.startswith("world.")
        }
        default = PlayConfig()
        made = dataclasses.replace(default.world, **world, seed=seed)
        return dataclasses.replace(default, **changes, world=made, seed=seed)


_DENSE = {"world.disjoint": False, "world.families": 15, "world.problems": 4}
_EPS = (2, 8, 16, 32, 64, 256)

EXPERIMENTS: Mapping[str, Experiment] = {
    each.name: each
    for each in (
        Experiment(
            "rare-faults",
            "rarity",
            "Where faults are rare, does a tester that learns help the coder?",
            "share of cells on which a wrong program is wrong",
            "solved/area",
            {f"1/{n}": {"world.faults": Fraction(1, n)} for n in _EPS},
            ("code-a1", "carries-none", "carries-half", "black-box", "frozen-tester", "random-tests", "fixed-tests", "other-programs", "oracle-tester"),
            "random-tests",
            {**_DENSE, "steps": 100},
            ("1/2", "1/32", "1/256"),
            ("carries-none", "carries-half", "frozen-tester", "fixed-tests", "other-programs"),
        ),
        Experiment(
            "weak-golden",
            "hacking",
            "What do golden tests cost that never see some kinds of faults?",
            "share of the fault sets for which there is no golden test",
            "unhacked",
            {f"{n}/8": {"hidden": n} for n in (0, 2, 4, 6)},
            ("golden-tests", "golden-fresh", "code-a1"),
            "golden-fresh",
            {"world.families": 8, "world.faults": Fraction(1, 32), "num_tests": 8, "world.problems": 4},
            ("0/8", "4/8", "6/8"),
        ),
        Experiment(
            "noise",
            "noise",
            "Do wrong verdicts slow learning down, or decide where it ends?",
            "Youden's J of the verdicts",
            "solved",
            {f"{j:g}": {"wrong": 1 - j} for j in (0.9, 0.7, 0.5, 0.3, 0.1, -0.1)},
            ("noise-program", "noise-pair", "noise-independent", "noise-false-passes", "noise-false-failures"),
            "noise-independent",
            # Rows of others meet the noise of the control.
            {**_DENSE, "world.faults": Fraction(1, 8), "noise": "independent"},
            ("0.9", "0.5", "0.1"),
            ("noise-false-passes", "noise-false-failures"),
        ),
        Experiment(
            "collusion",
            "collusion",
            "Who gains when the coder's own program says what is right?",
            "share of the steps that the reference judges",
            "honest",
            {f"{share:g}": {"judged": share} for share in (1.0, 0.75, 0.5, 0.25, 0.0)},
            ("code-a1", "frozen-tester"),
            "frozen-tester",
            {"world.C": 32, "world.faults": Fraction(1, 4), "world.families": 7, "world.disjoint": False, "world.problems": 2},
            ("1", "0.5", "0"),
        ),
        Experiment(
            "cycling",
            "cycling",
            "Do the players chase each other in circles, and what ends it?",
            "how much smaller the logit of the right program is at the start",
            "solved/area",
            {f"{handicap:g}": {"handicap": handicap} for handicap in (0.0, 1.0, 2.0, 3.0, 4.0)},
            ("code-a1", "black-box", "no-book", "past-testers", "past-opponents", "slower-tester", "iid-tests"),
            "iid-tests",
            {"world.C": 16, "world.faults": Fraction(1, 16), "world.families": 5, "world.problems": 4, "num_tests": 1},
            ("0", "2", "4"),
            ("past-opponents", "slower-tester"),
        ),
        Experiment(
            "validity",
            "sparsity",
            "When does a tester stop predicting right values?",
            "share of its tests that predict the right value",
            "validity",
            {f"{v:g}": {"world.valid": Fraction(str(v))} for v in (0.5, 0.25, 0.1, 0.05, 0.02)},
            ("alpha=0.5", "alpha=0", "alpha=1", "shuffled-rewards"),
            "shuffled-rewards",
            {**_DENSE, "world.faults": Fraction(1, 16)},
            ("0.5", "0.1", "0.02"),
        ),
        Experiment(
            "forgetting",
            "memory",
            "Does the book keep what learning elsewhere would undo?",
            "share of the features that problems share",
            "solved/phases",
            {f"{shared:g}": {"shared": shared} for shared in (0.0, 0.25, 0.5, 0.75, 1.0)},
            ("code-a1", "half-book", "uniform-replay", "passing-book", "no-book", "random-tests", "random-passing-book", "random-no-book"),
            "no-book",
            {"world.C": 32, "world.faults": Fraction(1, 8), "world.problems": 6, "num_suites": 2, "steps": 60, "phase": 10, "changes": True},
            ("0", "0.5", "1"),
            slow_rows=("half-book", "uniform-replay", "random-tests", "random-passing-book", "random-no-book"),
        ),
        Experiment(
            "kinds",
            "transfer",
            "Does what a tester learned about some kinds of faults find others?",
            "share of the fault sets of new programs that training had",
            "killed/out",
            {f"{n}/4": {"overlap": Fraction(n, 4)} for n in (4, 3, 2, 1, 0)},
            ("code-a1", "black-box", "carries-none", "random-tests", "iid-tests", "random-half"),
            "random-half",
            # Programs have kinds of faults in common, so more is carried from one to all others than elsewhere.
            {"world.C": 128, "world.faults": Fraction(1, 64), "world.holes": 4, "world.problems": 4, "carried": 0.5},
            ("4/4", "2/4", "0/4"),
        ),
    )
}  # fmt: skip
"""Experiments by name."""


def find_experiments(names: Sequence[str]) -> list[Experiment]:
    """Return experiments by name; all of them if none is named."""
    for name in names:
        if name not in EXPERIMENTS:
            raise ValueError(f"There is no experiment {name!r}. {_near(name, EXPERIMENTS)}")
    return [EXPERIMENTS[name] for name in dict.fromkeys(names)] or list(EXPERIMENTS.values())


def row_changes(name: str) -> Changes:
    """Return the settings that a row changes. Raises a ValueError if there is no such row.

    It is one of `ROWS`, a reward by name, or an algorithm or a player of one's own as `codea1 bench algorithms` takes it.

    Example:
        >>> row_changes("ppo(entropy=0.02)")
        {'algorithm': 'ppo', 'algorithm_args': {'entropy': 0.02}}
    """
    if name in ROWS:
        return ROWS[name]
    if name in REWARDS:
        return {"rewards": name}
    short = name.partition("(")[0]
    if short not in ALGORITHMS and ":" not in short:
        raise ValueError(
            f"There is no row {name!r}. {_near(name, {**ROWS, **REWARDS, **ALGORITHMS})}"
        )
    if "(" in name and not name.endswith(")"):
        raise ValueError(f"Expect a row as NAME(KEY=VALUE, ...), actually: {name!r}")
    entry = find_entry(name)
    if entry.kind == "player":
        needed = required_parameters(find_class(entry.name))
        if len(needed) > 1:
            raise ValueError(
                f"Expect a player that is made from a Setting or from nothing, actually {name} needs: {', '.join(needed)}"
            )
        return {"player": entry.name}
    if entry.kind != "algorithm":
        raise ValueError(f"Expect an algorithm or a player, actually a {entry.kind}: {name}")
    config = entry.apply(TrainConfig())
    make_algorithm(config.algorithm, {"learning_rate": 1.0}, own=config.algorithm_args)
    return {"algorithm": config.algorithm, "algorithm_args": config.algorithm_args}


def _near(name: str, known: Mapping[str, Any] | Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    return f"Did you mean {' or '.join(near)}?" if near else f"Known: {', '.join(known)}."


@dataclass(frozen=True)
class Expectation:
    """Expectation that was written before the runs."""

    expected: str
    refuted_by: str
    signs: tuple[str, ...] = ()
    """Sign of the first row's difference from the control at each setting: "+", "-", or "0" for none to be seen."""


def expectations() -> dict[str, Expectation]:
    """Read the expectations of the experiments."""
    text = Path(__file__).with_name("expectations.toml").read_text(encoding="utf-8")
    return {
        name: Expectation(table["expected"], table["refuted_by"], tuple(table["signs"]))
        for name, table in tomllib.loads(text).items()
    }


def with_rows(
    experiment: Experiment, rows: Sequence[str] = (), *, quick: bool = False
) -> Experiment:
    """Return an experiment with more rows. A quick one leaves out slow rows, unless they are among these."""
    own = [row for row in experiment.rows if not quick or row not in experiment.slow_rows]
    return dataclasses.replace(experiment, rows=tuple(dict.fromkeys((*own, *rows))))
