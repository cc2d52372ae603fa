"""Does the Mistake Book prevent forgetting? Two runs per seed, measured on the same tests.

    python benchmarks/forgetting.py                    # five seeds, with the book and without it

The tests are all that broke programs in either run of a seed, the 16 most frequent per problem and run. The
probability that the coder passes such a test is computed at every checkpoint from its table, without sampling.

Forgetting is that of Chaudhry et al. 2018 (arXiv 1801.10112, equation 3) with tests in the place of tasks: the
greatest probability at an earlier checkpoint, less the one at the end. Here a negative one counts as 0. Shown
are means over all tests of a seed, and over seeds with the interval of a bootstrap.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import shlex
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from codea1_env.agents import TabularAgent, pool_of_programs
from codea1_env.baselines.bench.suite import BenchConfig
from codea1_env.evaluation import hold_out
from codea1_env.evaluation.statistics import bootstrap
from codea1_env.problems import load_problems
from codea1_env.sandbox import Job, Sandbox
from codea1_env.training import TrainConfig, train
from codea1_env.training.checkpoints import checkpoints, load_checkpoint, step_of
from codea1_env.training.saved_run import load_run

Curve = NDArray[np.float64]
"""Shape (checkpoints, tests): how likely the coder passes each test."""
WITH, WITHOUT = "with the book", "without"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5, metavar="N")
    options = parser.parse_args()
    console = Console(width=max(110, Console().width))
    curves: list[dict[str, Curve]] = []
    for seed in range(options.seeds):
        config = BenchConfig().base(seed)
        steps, found = one_seed(dataclasses.replace(config, save_total_limit=config.max_steps))
        curves.append(found)
        console.print(f"seed {seed}: {found[WITH].shape[1]} tests", highlight=False)
    console.print(table(steps, curves))
    console.print("Command: python " + shlex.join(sys.argv), highlight=False)
    return 0


def one_seed(config: TrainConfig) -> tuple[list[int], dict[str, Curve]]:
    """Train with the book and without; returns the steps of the checkpoints and both curves."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Sandbox(workers=config.workers) as sandbox,
        ExitStack() as stack,
    ):
        past: dict[str, dict[str, None]] = {}
        runs = {}
        for name in (WITH, WITHOUT):
            path = Path(folder, name)
            run = dataclasses.replace(config, use_book=name == WITH, output_dir=path)
            train(run, sandbox=sandbox, console=Console(file=io.StringIO()))
            saved = load_run(path, sandbox, stack)
            runs[name] = (path, saved)
            last = checkpoints(path)[-1]
            books = load_checkpoint(last, saved.players.coder, saved.players.tester, saved.config)
            for problem in saved.problems:
                past.setdefault(problem.task_id, {}).update(
                    dict.fromkeys(books.past.tests(problem.task_id))
                )
        passes = which_pass(config, past, sandbox)
        curves = {}
        for name, (path, saved) in runs.items():
            coder = saved.players.coder
            assert isinstance(coder, TabularAgent)
            steps, rows = [], []
            for checkpoint in checkpoints(path):
                load_checkpoint(checkpoint, coder, saved.players.tester, saved.config)
                steps.append(step_of(checkpoint))
                rows.append(
                    np.concatenate(
                        [coder.policy.probabilities(key) @ matrix for key, matrix in passes.items()]
                    )
                )
            curves[name] = np.array(rows)
    return steps, curves


def which_pass(
    config: TrainConfig, tests: Mapping[str, Mapping[str, None]], sandbox: Sandbox
) -> dict[str, Curve]:
    """Name of a problem -> 1 where a program of its pool (row) passes a test (column), else 0."""
    problems = load_problems(config.problems, config.split, config.difficulty)[
        : config.max_problems
    ]
    found = {}
    for split in hold_out(problems, sandbox, config.seed):
        name, texts = split.problem.task_id, tuple(tests[split.problem.task_id])
        pool = pool_of_programs(split, config.pool_size)
        jobs = [Job(item, texts, split.problem.entry_point) for item in pool.items]
        found[name] = np.array(
            [[result.passed for result in results] for results in sandbox.run_many(jobs)],
            dtype=np.float64,
        ).reshape(len(jobs), len(texts))
    return found


def table(steps: list[int], curves: list[dict[str, Curve]]) -> Table:
    """Means over tests and seeds, with intervals over seeds."""
    shown = Table("", title="probability to pass a test that once broke a program")
    for step in steps:
        shown.add_column(f"step {step}", justify="right")
    shown.add_column("forgetting", justify="right")
    rows = {name: np.array([means(seed[name]) for seed in curves]) for name in (WITH, WITHOUT)}
    rows["difference"] = rows[WITH] - rows[WITHOUT]
    for name, values in rows.items():
        cells = [
            str(bootstrap(column[:, None], lambda t: t.mean(axis=(1, 2)), np.random.default_rng(0)))
            if len(column) > 1
            else f"{column[0]:.3f}"
            for column in values.T
        ]
        shown.add_row(name, *cells)
    return shown


def means(curve: Curve) -> Curve:
    """One number per checkpoint, and the forgetting."""
    forgotten = np.maximum(curve[:-1].max(axis=0) - curve[-1], 0.0)
    return np.array([*curve.mean(axis=1), forgotten.mean()])


if __name__ == "__main__":
    sys.exit(main())
