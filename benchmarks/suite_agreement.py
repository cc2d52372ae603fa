"""Whether GRPO scores the same in `codea1 suite run` and through `suite.make`.

    python benchmarks/suite_agreement.py rare-faults/1 cycling/0

The first is the suite's own loop, which plays and learns in arrays. The second is made of the tables and the GRPO of the training loop
(`SoftmaxPolicy`, `GRPO.update`), which see an environment's rewards alone: one episode after the other, with other random numbers. Both
have the shipped rates. Prints the scores and the difference, paired by seed, with 95% intervals (Student's t).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from codea1_env import suite
from codea1_env.agents.algorithms import GRPO
from codea1_env.agents.policy import Sample, SoftmaxPolicy, updated
from codea1_env.evaluation.statistics import mean_over_runs
from codea1_env.suite.opponents import SUITES
from codea1_env.suite.players import find_entry
from codea1_env.suite.records import measure
from codea1_env.suite.running import play, with_rates
from codea1_env.suite.scores import normalised, shipped, signed
from codea1_env.suite.tasks import GROUP, SEEDS, RecordKey, SuiteTask, find_task

GROUPS = 8
"""Groups of episodes between two steps of learning."""
CARRIED = 0.1


def driven(task: SuiteTask, seed: int, rates: Sequence[float]) -> float:
    """Play an id through an environment, and return its measure."""
    env, rng = suite.make(task.id, seed), np.random.default_rng([seed, 99])
    coder = SoftmaxPolicy({str(i): task.programs for i in range(task.problems)})
    tester = SoftmaxPolicy({str(i): task.C for i in range(task.problems)}, task.K, CARRIED)
    learners = [(GRPO(rates[0]), coder), (GRPO(rates[1]), tester)]
    played: list[tuple[int, ...]] = []
    for step in range(task.episodes // GROUP // GROUPS):
        samples: list[list[Sample]] = [[], []]
        for number in range(GROUPS * GROUP // SUITES):
            group = step * GROUPS + number * SUITES // GROUP
            problem = str(group % task.problems)
            program, earned = coder.draw(problem, rng), []
            shown = tester.table(problem, f"program {program[0]}")
            for _ in range(SUITES):
                env.reset()
                env.step({"coder_0": program[0]})
                tests = tester.draw(shown, rng)
                _, rewards, *_ = env.step({"tester_0": list(tests)})
                earned.append(rewards["coder_0"])
                samples[1].append(Sample(shown, tests, rewards["tester_0"], f"{step} {number}"))
                played.append((program[0], *tests))
            samples[0].append(Sample(problem, program, float(np.mean(earned)), f"{group}"))
        for (algorithm, policy), found in zip(learners, samples, strict=True):
            updated(algorithm, policy, found)
    actions = np.array(played)
    key = RecordKey("both", task, seed)
    return measure(key, np.arange(len(actions)), actions[:, 0], actions[:, 1:])


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ids", nargs="+", help="ids whose programs are of a pool")
    parser.add_argument("--seeds", type=int, default=len(SEEDS))
    asked = parser.parse_args()
    entry, rates = find_entry("grpo"), shipped()["grpo"]["settings"]["rates"]
    print("| id | suite run | suite.make | difference |\n|---|---|---|---|")
    for task in map(find_task, asked.ids):
        ours = with_rates(entry, rates, "both", task.experiment)
        own_rates = rates["both"][task.experiment]
        seeds = range(asked.seeds)
        one = {str(seed): play(ours, RecordKey("both", task, seed)).value for seed in seeds}
        two = {str(seed): driven(task, seed, own_rates) for seed in seeds}
        values = [np.array([*normalised(task, "both", each).values()]) for each in (one, two)]
        cells = [signed(mean_over_runs(each)) for each in (*values, values[0] - values[1])]
        print(f"| {task.id} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
