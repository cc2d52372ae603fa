"""How often do tests fail programs that are right? The noise of the game's verdicts.

    python benchmarks/verdict_noise.py --problems starter humanevalplus.jsonl.gz mbppplus.jsonl.gz
    python benchmarks/verdict_noise.py --problems starter humanevalplus.jsonl.gz mbppplus.jsonl.gz --check

A problem says what a function does with some arguments; what it does with all others is each program's own
business. A test about those fails programs that solve the problem. right_programs.jsonl, beside this file, holds
three right programs for each of some problems of these three sources, written differently from the reference and
from each other. They pass all golden tests (--check). Four testers attack each with one suite:

- boundary: the scripted boundary tester, from calls of the golden tests;
- fuzz: random variations of calls of the golden tests, of the same types;
- hostile: arguments that a problem seldom speaks of (other types, None, nested, huge, infinite, empty);
- killer: eight tests that embed the program, and fail whatever is like it on such arguments.

The first three write `assert f(...) == 0`, or another guess; the referee puts the reference's value there. The
table says for each setting of the referee which share of right programs lose a test, and which share of the tests
that attack fail a right program: means over problems, with 95% bootstrap intervals over problems.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from noise_testers import TESTERS, answers
from rich.console import Console
from rich.progress import track
from rich.table import Table

from codea1_env.evaluation.result_folder import this_machine
from codea1_env.evaluation.statistics import Estimate, Floats, bootstrap
from codea1_env.problem_sets.validate import LIMITS
from codea1_env.problems import Problem, load_problems
from codea1_env.referee import Referee, RefereeConfig, Round, SuiteVerdict
from codea1_env.responses import parse_suites
from codea1_env.sandbox import Job, Sandbox

PROGRAMS = Path(__file__).with_name("right_programs.jsonl")
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "any domain": {"domain": "any"},
    "exact floats": {"float_tolerance": 0.0},
    "any domain, exact floats": {"domain": "any", "float_tolerance": 0.0},
    "wrong guesses dropped": {"wrong_oracle": "drop"},
}
CHECK_LIMITS = dataclasses.replace(LIMITS, call_wall_time=600, run_wall_time=1200)
"""Some golden tests take a reference many seconds; a busy machine must not make a right program wrong."""
HEADINGS = ("setting", "tester", "tests that attack", "programs that lose one", "tests lost", "how")


class RightPrograms(NamedTuple):
    """Right programs for a problem, in other words than the reference's."""

    problem: Problem
    programs: list[str]


class Loss(NamedTuple):
    """A test that fails a right program."""

    setting: str
    tester: str
    task_id: str
    program: int
    test: str
    outcome: str
    message: str


def right_programs(sources: Sequence[str]) -> list[RightPrograms]:
    """All programs that there are for the problems of some sources."""
    problems = {problem.task_id: problem for source in sources for problem in load_problems(source)}
    rows = [json.loads(line) for line in PROGRAMS.read_text(encoding="utf-8").splitlines()]
    return [
        RightPrograms(problems[row["task_id"]], row["programs"])
        for row in rows
        if row["task_id"] in problems
    ]


def check(cases: Sequence[RightPrograms], sandbox: Sandbox) -> list[str]:
    """Run programs on all golden tests; returns what is wrong with them."""
    jobs = [
        Job(code, case.problem.all_tests, case.problem.entry_point, CHECK_LIMITS)
        for case in cases
        for code in case.programs
    ]
    labels = [f"{case.problem.task_id}, {n}" for case in cases for n in range(len(case.programs))]
    return [
        f"{label}: {result.outcome.value}: {result.message}"
        for label, results in zip(labels, sandbox.run_many(jobs), strict=True)
        for result in results
        if not result.passed
    ]


def rounds_of(case: RightPrograms, texts: list[list[str]], sandbox: Sandbox) -> list[Round]:
    pairs = [(text, case.problem) for row in texts for text in row]
    suites = parse_suites(pairs, sandbox)
    size = len(TESTERS)
    return [
        Round(case.problem, code, suites[size * n : size * (n + 1)])
        for n, code in enumerate(case.programs)
    ]


def settings() -> dict[str, RefereeConfig]:
    """The referees that are compared; rules that it does not have (yet) are left out."""
    known = {field.name for field in dataclasses.fields(RefereeConfig)}
    return {
        name: RefereeConfig(**rules) for name, rules in SETTINGS.items() if rules.keys() <= known
    }


class Tally:
    """What one tester did to the programs of each problem, under one setting."""

    def __init__(self) -> None:
        self.attacking: list[int] = []
        self.losing: list[float] = []
        self.lost: list[float] = []
        self.outcomes: Counter[str] = Counter()

    def add(self, suites: Sequence[SuiteVerdict]) -> None:
        """Add the verdicts on the programs of one problem."""
        attacking = [test for suite in suites for test in suite.tests if test.attacks]
        broke = [test for test in attacking if test.broke]
        self.attacking.append(len(attacking))
        self.losing.append(sum(bool(suite.failed) for suite in suites) / len(suites))
        if attacking:
            self.lost.append(len(broke) / len(attacking))
        self.outcomes.update(test.outcome.value for test in broke if test.outcome)

    def figures(self, seed: int) -> dict[str, Any]:
        """The figures of one row of the table."""
        return {
            "tests": sum(self.attacking),
            "losing": over_problems(self.losing, seed),
            "lost": over_problems(self.lost, seed),
            "outcomes": dict(self.outcomes),
        }


def over_problems(shares: Sequence[float], seed: int) -> Estimate | None:
    """Their mean, and how much it would differ with other problems: a problem takes the place of a run."""
    if not shares:
        return None

    def mean(tables: Floats) -> Floats:
        means: Floats = tables.mean(axis=(1, 2))
        return means

    return bootstrap([[share] for share in shares], mean, np.random.default_rng(seed))


def percent(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    return f"{estimate.value:.1%} [{estimate.low:.1%}, {estimate.high:.1%}]"


def measure(
    cases: Sequence[RightPrograms], options: argparse.Namespace, sandbox: Sandbox
) -> tuple[dict[tuple[str, str], Tally], list[Loss]]:
    """Attack all programs under all settings."""
    progress = Console(stderr=True)
    tallies: dict[tuple[str, str], Tally] = {}
    losses: list[Loss] = []
    referees = {name: Referee(sandbox, config) for name, config in settings().items()}
    for case in track(cases, "attacking right programs", console=progress):
        texts = answers(case.problem, case.programs, options.tests, options.seed, sandbox)
        rounds = rounds_of(case, texts, sandbox)
        for setting, referee in referees.items():
            verdicts = referee.judge(rounds)
            for place, tester in enumerate(TESTERS):
                suites = [verdict.suites[place] for verdict in verdicts]
                tallies.setdefault((setting, tester), Tally()).add(suites)
                losses += [
                    Loss(setting, tester, case.problem.task_id, n, test.text, test.outcome.value, test.message)
                    for n, suite in enumerate(suites)
                    for test in suite.tests
                    if test.broke and test.outcome
                ]  # fmt: skip
    return tallies, losses


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--problems",
        nargs="+",
        default=["starter"],
        help="what load_problems takes; default: starter",
    )
    parser.add_argument(
        "--tests",
        type=int,
        default=64,
        metavar="N",
        help="of a suite; default: 64, as many as a program meets in one step of training",
    )
    parser.add_argument(
        "--max-problems", type=int, default=None, metavar="N", help="spread over all; default: all"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--check", action="store_true", help="only run the golden tests")
    parser.add_argument("--json", action="store_true", help="print everything, and each loss")
    options = parser.parse_args()
    console = Console(stderr=options.json, width=130)
    started, machine = time.perf_counter(), this_machine()
    cases = right_programs(options.problems)
    if options.max_problems is not None:
        cases = cases[:: -(-len(cases) // options.max_problems)]
    with Sandbox(workers=2) as sandbox:
        if options.check:
            wrong = check(cases, sandbox)
            print(
                *wrong, f"{len(cases)} problems, {len(wrong)} tests fail right programs", sep="\n"
            )
            return int(bool(wrong))
        tallies, losses = measure(cases, options, sandbox)
    seconds = time.perf_counter() - started
    rows = {key: tally.figures(options.seed) for key, tally in tallies.items()}
    table = Table(title=f"Right programs that tests fail: {len(cases)} problems, 3 programs each")
    for heading in HEADINGS:
        table.add_column(heading)
    for (setting, tester), row in rows.items():
        how = ", ".join(f"{times} {outcome}" for outcome, times in sorted(row["outcomes"].items()))
        table.add_row(
            setting, tester, f"{row['tests']}", percent(row["losing"]), percent(row["lost"]), how
        )
    console.print(table)
    console.print(f"{machine}; {seconds:.0f} s", highlight=False)
    console.print(f"Command: python {shlex.join(sys.argv)}", highlight=False)
    if options.json:
        print(report(cases, rows, losses, str(machine)))
    return 0


def report(
    cases: Sequence[RightPrograms],
    rows: dict[tuple[str, str], dict[str, Any]],
    losses: Sequence[Loss],
    machine: str,
) -> str:
    figures = [
        {"setting": setting, "tester": tester, **row} for (setting, tester), row in rows.items()
    ]
    return json.dumps(
        {
            "command": f"python {shlex.join(sys.argv)}",
            "machine": machine,
            "problems": len(cases),
            "figures": figures,
            "losses": [loss._asdict() for loss in losses],
        },
        default=dataclasses.asdict,
    )


if __name__ == "__main__":
    sys.exit(main())
