"""How much faster are programs judged that read standard input than by a fresh `python -c` for each input?

    python benchmarks/programs_speed.py
    python benchmarks/programs_speed.py --pairs 3 --programs 16

Both sides run the same programs of `starter-programs` (references and mutants) on the same inputs, on all cores, and compare
their outputs. Our side is a referee that has judged nothing before: it reads the tests, asks the reference and runs programs. A pair is one batch on each side, one behind the other, in alternating order; the table shows
the ratio of each pair and the median. The last line says how much the resident memory of this process grew over the batches
of the game, and over one of programs that print until their limit.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from codea1_env.agents.input_variants import near_inputs
from codea1_env.mutation import generate_mutants
from codea1_env.problems import Problem, load_problems
from codea1_env.referee import Referee, RefereeConfig, Round
from codea1_env.rewards import RewardConfig
from codea1_env.sandbox import PROGRAM, Case, Outcome, Sandbox
from codea1_env.sandbox.lines import difference

_SECONDS = 10.0
_FLOOD = "print('2' * 10**7)"


class Pair(NamedTuple):
    """Seconds for the same work."""

    ours: float
    fresh: float
    agree: bool
    """Whether both found the same inputs on which programs are wrong."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--programs", type=int, default=64)
    parser.add_argument("--inputs", type=int, default=16)
    given = parser.parse_args()
    workers = len(os.sched_getaffinity(0))
    with Sandbox(workers) as sandbox:
        work = batch(sandbox, given.programs, given.inputs)
        runs = sum(len(problem.cases) for problem, _ in work)
        in_game(work[:4], sandbox)  # workers start
        before, pairs = memory(), []
        for number in range(given.pairs):
            sides = [lambda: in_game(work, sandbox), lambda: fresh(work, workers)]
            timed = [measured(side) for side in (sides if number % 2 == 0 else sides[::-1])]
            (ours, found), (theirs, expected) = timed if number % 2 == 0 else timed[::-1]
            pairs.append(Pair(ours, theirs, found == expected))
            print(
                f"pair {number + 1}: {theirs / ours:.2f} times as fast, alike: {found == expected}",
                flush=True,
            )
        grown = memory() - before
        in_game([(problem, _FLOOD) for problem, _ in work], sandbox)
        flooded = memory() - before
    ratios = [each.fresh / each.ours for each in pairs]
    print(
        f"{given.programs} programs, {runs} runs, {workers} workers, level {sandbox.level}: median ratio "
        f"{statistics.median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f} (n = {len(ratios)} pairs); "
        f"{statistics.median(1000 * each.ours / runs for each in pairs):.2f} ms a run"
    )
    print(f"memory of this process grew by {grown:.0f} MiB, and by {flooded:.0f} MiB with floods")


def batch(sandbox: Sandbox, programs: int, inputs: int) -> list[tuple[Problem, str]]:
    """Programs, right and wrong, with so many inputs each."""
    rng, work = np.random.default_rng(0), list[tuple[Problem, str]]()
    problems = [
        with_inputs(problem, inputs, sandbox)
        for problem in load_problems("starter-programs")
        if not problem.checker
    ]
    while len(work) < programs:
        for problem in problems:
            mutants = [each.code for each in generate_mutants(problem.reference, sandbox)]
            code = str(rng.choice([problem.reference, *mutants]))
            if "while" not in code:  # some would end only at their limit
                work.append((problem, code))
    return work[:programs]


def with_inputs(problem: Problem, number: int, sandbox: Sandbox) -> Problem:
    """Return the problem with so many inputs that its reference answers: golden ones, and others near them."""
    golden = [case.args[0] for case in problem.cases]
    texts = list(dict.fromkeys([*golden, *itertools.chain(*near_inputs(golden))]))
    texts = texts[: 4 * number]
    answers = sandbox.call(problem.reference, PROGRAM, [((text,), {}) for text in texts])
    cases = [
        Case((text,), {}, each.value)
        for text, each in zip(texts, answers, strict=True)
        if each.outcome is Outcome.PASS and each.value.strip()
    ]
    return Problem(
        problem.task_id,
        problem.prompt,
        "",
        problem.reference,
        cases=tuple(cases[:number]),
        atol=problem.atol,
    )


def in_game(work: list[tuple[Problem, str]], sandbox: Sandbox) -> list[list[bool]]:
    """Judge all programs by one suite each, as the game does; the reference is asked as well."""
    config = RefereeConfig(RewardConfig(num_tests=64), domain="any")
    rounds = [Round(problem, code, [list(problem.tests)]) for problem, code in work]
    verdicts = Referee(sandbox, config).judge(rounds)
    return [[test.passed for test in verdict.suites[0].tests] for verdict in verdicts]


def fresh(work: list[tuple[Problem, str]], workers: int) -> list[list[bool]]:
    """Run each program on each input by `python -c`."""

    def run(code: str, stdin: str, stdout: str, atol: float) -> bool:
        done = subprocess.run(
            [sys.executable, "-c", code],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
        return done.returncode == 0 and not difference(done.stdout, stdout, atol)

    with ThreadPoolExecutor(workers) as threads:
        started = [
            [
                threads.submit(run, code, case.args[0], case.expected, problem.atol)
                for case in problem.cases
            ]
            for problem, code in work
        ]
        return [[run.result() for run in each] for each in started]


def measured(side) -> tuple[float, list[list[bool]]]:  # type: ignore[no-untyped-def]
    """Seconds, and what was found."""
    started = time.perf_counter()
    found = side()
    return time.perf_counter() - started, found


def memory() -> float:
    """MiB of this process that are resident."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


if __name__ == "__main__":
    main()
