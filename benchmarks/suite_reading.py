"""The id `reading` of codea1-suite with rates that are tuned apart, and a reader that only counts.

    python benchmarks/suite_reading.py --output-dir runs/suite_reading

The suite's protocol tunes six pairs of rates, on the ids that tell algorithms apart. That may be unfair to a row: here each
row has the best of all pairs of a coder's and a tester's rate, found for each id on the world of seed 1000. `counts` does not
learn by gradients: for each cell it counts the bits of the programs on which suites with this test earned more than others
of their group, and tries cells in the order of a naive Bayes classifier. It sees what a player of another library sees.

Somebody who knew the docs alone found with other scripts: `blind` 0.30 and `counts` 0.60 at 1 faulty cell, GRPO and random
tests equal at 4 (docs/results.md).
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from codea1_env.evaluation.statistics import mean_over_runs
from codea1_env.suite.opponents import SUITES
from codea1_env.suite.players import MemoryTester, SuiteEntry, SuiteRun, find_entry
from codea1_env.suite.records import measure
from codea1_env.suite.rounds import Payoffs
from codea1_env.suite.tasks import RecordKey, find_task
from codea1_env.suite.worlds import Ints, SuiteWorld

IDS = {"reading/1": "4 faulty cells", "reading/2": "1 faulty cell"}
ROWS = ("random-tests", "grpo", "blind", "memory", "counts")
CODER_RATES = (1.0, 3.0, 5.0, 9.0)
TESTER_RATES = (0.08, 0.8, 8.0, 24.0, 72.0)
TUNING_SEED = 1000
SEEDS = range(10)
Key = tuple[str, float, float, str, int]
"""Row, rates, id, seed."""


class CountsTester(MemoryTester):
    """Tries the cells whose hits had bits like those of the program."""

    def __init__(self, world: SuiteWorld, rng: np.random.Generator) -> None:
        super().__init__(world, rng)
        self._tags = world.tags.reshape(-1, world.bits)
        self._bits = np.zeros((world.task.C, world.bits))
        self._hits = np.zeros((world.task.C, 1))

    def choose(self, keys: Ints, size: int) -> Ints:
        """Return suites: those against one program have different cells."""
        suites, orders, used = [], {}, dict.fromkeys(keys.tolist(), 0)
        for key in used:
            agree = (1 + (self._hits + self._tags[key] * self._bits) / 2) / (2 + self._hits)
            noise = 1e-6 * self._rng.random(len(agree))
            orders[key] = np.argsort(-(np.log(agree).sum(axis=1) + noise))
        for key in keys.tolist():
            places = np.arange(used[key], used[key] + size)
            suites.append(np.take(orders[key], places, mode="wrap"))
            used[key] += size
        return np.array(suites)

    def remember(self, keys: Ints, tests: Ints, paid: Payoffs) -> None:
        """Count the suites that earned more than others against the same program."""
        earned = paid.tester.reshape(-1, SUITES)
        better = (earned > earned.min(axis=1, keepdims=True) + 1e-6).ravel()
        for key, suite in zip(keys[better].tolist(), tests[better].tolist(), strict=True):
            self._bits[suite] += self._tags[key]
            self._hits[suite] += 1


def play(row: str, rates: tuple[float, float], id: str, seed: int) -> float:
    """Play an id; returns the share of right programs."""
    named = find_entry("memory" if row == "counts" else row)
    entry = SuiteEntry(tester=named.tester, coder_rate=rates[0], tester_rate=rates[1])
    run = SuiteRun(entry, find_task(id), seed)
    if row == "counts":
        run.tester = CountsTester(run.rounds.world, run.rng)
    parts = []
    while not run.over:
        parts.append(run.step()[:3])
    key = RecordKey("both", run.task, seed)
    return measure(key, *map(np.concatenate, zip(*parts, strict=True)))


def play_key(key: Key) -> tuple[Key, float]:
    """Play what a key says."""
    row, coder, tester, id, seed = key
    return key, play(row, (coder, tester), id, seed)


def rates_of(row: str) -> list[tuple[float, float]]:
    """Return the rates that tuning tries."""
    testers = TESTER_RATES if row in ("grpo", "blind") else (1.0,)
    return list(itertools.product(CODER_RATES, testers))


def main() -> None:
    """Tune, play, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output-dir", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    given.output_dir.mkdir(parents=True, exist_ok=True)
    known = given.output_dir / "plays.jsonl"
    found: dict[Key, float] = {}
    for line in known.read_text().splitlines() if known.exists() else ():
        *key, value = json.loads(line)
        row, coder, tester, id, seed = key
        found[row, coder, tester, id, seed] = value

    def finish(keys: Sequence[Key]) -> None:
        left = [key for key in keys if key not in found]
        with multiprocessing.Pool(given.processes) as pool, known.open("a") as file:
            for key, value in pool.imap_unordered(play_key, left):
                found[key] = value
                print(json.dumps([*key, value]), file=file, flush=True)

    finish([(row, *pair, id, TUNING_SEED) for id in IDS for row in ROWS for pair in rates_of(row)])
    best = {
        (row, id): max(rates_of(row), key=lambda pair: found[row, *pair, id, TUNING_SEED])
        for id in IDS
        for row in ROWS
    }
    finish([(row, *pair, id, seed) for (row, id), pair in best.items() for seed in SEEDS])
    for id, title in IDS.items():
        print(f"{id}, {title}: mean over {len(SEEDS)} seeds, and differences paired by seed")
        values = {
            row: np.array([found[row, *best[row, id], id, seed] for seed in SEEDS]) for row in ROWS
        }
        for row in ROWS:
            less = [
                str(mean_over_runs(values[row] - values[other]))
                for other in ("random-tests", "grpo")
            ]
            print(
                f"{row:14} {best[row, id]} {mean_over_runs(values[row])} less random {less[0]} less grpo {less[1]}"
            )


if __name__ == "__main__":
    main()
