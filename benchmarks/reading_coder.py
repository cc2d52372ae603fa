"""Does a tester that learned to copy from programs help a coder that learns? A table of programs against six testers.

    python benchmarks/reading_lm.py --output-dir runs/reading                # the testers; seed 0 is enough
    python benchmarks/reading_coder.py --testers runs/reading --output-dir runs/reading_coder

The coder is a softmax over eight programs for each of 24 one-line problems that no tester was trained on: the reference, and
seven with planted faults, of kinds that no tester was trained on. It learns by the rewards of the game, with the Mistake
Book. It begins with 0.125 of right programs, and meets each problem in each epoch once.

Expected, written before the runs of language models (the scripts had run: `numbers` ends at 0.52, `copier` at 0.08;
docs/results.md says what came of it): in the last epoch the trained tester is within 0.2 of `numbers`, and the lower end of
its interval is above `copier`, the untrained tester and the one trained blind, which stay below 0.25. One that learns from
the beginning, in the same match, ends between them.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from reading_lm import BASE, folder_of, tester_of
from rich.console import Console
from rich.table import Table

from codea1_env.agents import GRPO, Setting, TabularAgent
from codea1_env.agents.tabular import Pool
from codea1_env.evaluation.planting import Planter
from codea1_env.evaluation.statistics import mean_over_problems
from codea1_env.problems import Problem, load_problems
from codea1_env.rollout import Agent
from codea1_env.sandbox import Sandbox
from codea1_env.training import PlayerConfig, TesterConfig, train

KINDS = ("either", "text")
"""Kinds of faults that nobody was trained on."""
PROGRAMS = 8
TESTERS = ("trained", "learning", "untrained", "blind", "numbers", "copier")
PER_STEP = 4
LEARNING_RATE = 8.0
"""As the coders of the baselines, whose sweep chose it."""


class Coder(TabularAgent):
    """A table of right programs and planted ones."""

    def __init__(self, setting: Setting) -> None:
        problems = load_problems("planted", "eval")
        algorithm = GRPO(learning_rate=LEARNING_RATE)
        rng = np.random.default_rng(setting.seed)
        super().__init__(pools_of(problems, setting.sandbox, setting.seed), algorithm, rng)


def pools_of(problems: Sequence[Problem], sandbox: Sandbox, seed: int) -> list[Pool]:
    """Put the reference of each problem beside planted faults."""
    planter, rng = Planter(problems, sandbox), random.Random(seed)
    asked = [(each, KINDS[i % len(KINDS)]) for each in problems for i in range(2 * PROGRAMS)]
    made: dict[str, list[str]] = {each.task_id: [each.reference] for each in problems}
    for (problem, _), found in zip(asked, planter.plant(asked, rng), strict=True):
        items = made[problem.task_id]
        if found is not None and found.code not in items and len(items) < PROGRAMS:
            items.append(found.code)
    return [Pool(each, tuple(made[each.task_id])) for each in problems]


def main() -> None:
    """Play what is not done, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--testers", type=Path, required=True)
    parser.add_argument("--output-dir", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=4)
    given = parser.parse_args()
    console = Console(width=200)
    for name in TESTERS:
        play(name, given, console)
    console.print(table(given.output_dir, given.seed))


def play(name: str, given: argparse.Namespace, console: Console) -> None:
    """Let the coder learn against a tester; a run that began goes on."""
    problems = len(load_problems("planted", "eval"))
    folder = given.output_dir / f"{name}_{given.seed}"
    config = replace(
        BASE,
        split="eval",
        output_dir=folder,
        seed=given.seed,
        coder=PlayerConfig("tabular"),
        tester=tester_config(name),
        problems_per_step=PER_STEP,
        num_generations=4,
        num_suites=2,
        use_book=True,
        black_box=name == "blind",
        max_steps=given.epochs * problems // PER_STEP,
        logged_programs=4,
        sparring=0.0,
    )
    begun = (folder / "config.toml").exists()
    done = len((folder / "metrics.jsonl").read_text().splitlines()) - 1 if begun else 0
    if done < config.max_steps:
        console.print(f"the coder against {name}")
        train(config, resume=begun, coder=Coder, tester=opponent(name, given), console=console)


def tester_config(name: str) -> TesterConfig:
    """Return the run's own tester: a script, or a language model that learns or does not."""
    if name in ("learning", "untrained"):
        return replace(BASE.tester, freeze=name == "untrained")
    return TesterConfig("numbers" if name == "numbers" else "copier")


def opponent(name: str, given: argparse.Namespace) -> Agent | None:
    """Return the tester of another run; None for the run's own."""
    if name not in (ways := {"trained": "in view", "blind": "blind"}):
        return None
    folder = folder_of(given.testers, ways[name], given.seed)
    return tester_of(replace(BASE, output_dir=folder, seed=given.seed), trained=True)


def table(root: Path, seed: int) -> Table:
    """Show the share of right programs in each epoch, with 95% intervals over problems."""
    right = {each.task_id: each.reference for each in load_problems("planted", "eval")}
    epoch = len(right) // PER_STEP
    made = Table("tester", title="share of right programs: mean over 24 problems, 4 programs each")
    columns: set[int] = set()
    rows = []
    for name in TESTERS:
        shares: dict[int, dict[str, list[bool]]] = {}
        for line in (root / f"{name}_{seed}" / "episodes.jsonl").open():
            row = json.loads(line)
            of_problem = shares.setdefault((row["step"] - 1) // epoch, {})
            of_problem.setdefault(row["task_id"], []).append(
                row["code"].strip() == right[row["task_id"]].strip()
            )
        columns |= set(shares)
        means = [
            mean_over_problems([float(np.mean(v)) for v in each.values()])
            for each in shares.values()
        ]
        rows.append(
            [name, *(f"{each.value:.2f} {each.interval('{:.2f}'.format)}" for each in means)]
        )
    for number in sorted(columns):
        made.add_column(f"epoch {number + 1}", justify="right")
    for row in rows:
        made.add_row(*row)
    return made


if __name__ == "__main__":
    main()
