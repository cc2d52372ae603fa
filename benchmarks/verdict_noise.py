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
- types: arguments of the types that the signature says, drawn at random: numbers of up to 19 digits,
  texts of any characters, containers that are empty or not.

They write `assert f(...) == 0`, or another guess; the referee puts the reference's value there. The
table says for each setting of the referee which share of right programs lose a test, and which share of the tests
that attack fail a right program: means over problems, with 95% bootstrap intervals over problems.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import json
import shlex
import sys
import time
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from varied_calls import Call, in_order, vary_calls

from codea1_env.agents.scripted import BoundaryTester
from codea1_env.evaluation.statistics import Estimate, mean_over_problems
from codea1_env.problem_sets.judging import submit_to_tests
from codea1_env.problem_sets.validate import LIMITS
from codea1_env.problems import Problem, load_problems
from codea1_env.reading.signatures import read_signatures
from codea1_env.referee import Referee, RefereeConfig, Round, SuiteVerdict
from codea1_env.responses import parse_suites
from codea1_env.sandbox import Sandbox
from codea1_env.sandbox.inside.analysis.literals import NotLiteralError, read
from codea1_env.spaces import observe
from codea1_env.support.machine import this_machine

PROGRAMS = Path(__file__).with_name("right_programs.jsonl")
NO_CONTRACTS = "no contracts"
SETTINGS = {
    "default": RefereeConfig(),
    NO_CONTRACTS: RefereeConfig(),
    "any domain": RefereeConfig(domain="any"),
    "exact floats": RefereeConfig(float_tolerance=0.0),
    "any domain, exact floats": RefereeConfig(domain="any", float_tolerance=0.0),
    "wrong guesses dropped": RefereeConfig(wrong_oracle="drop"),
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
    runs = [
        submit_to_tests(case.problem, code, CHECK_LIMITS, sandbox)
        for case in cases
        for code in case.programs
    ]
    labels = [f"{case.problem.task_id}, {n}" for case in cases for n in range(len(case.programs))]
    return [
        f"{label}: {result.outcome.value}: {result.message}"
        for label, run in zip(labels, runs, strict=True)
        for result in run.result().tests
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

    def figures(self) -> dict[str, Any]:
        """Return the figures of one row of the table."""
        return {
            "tests": sum(self.attacking),
            "losing": over_problems(self.losing),
            "lost": over_problems(self.lost),
            "outcomes": dict(self.outcomes),
        }


def over_problems(shares: Sequence[float]) -> Estimate | None:
    """Their mean, and how much it would differ with other problems."""
    return mean_over_problems(shares) if shares else None


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
    referees = {name: Referee(sandbox, config) for name, config in SETTINGS.items()}
    for case in track(cases, "attacking right programs", console=progress):
        texts = answers(case.problem, case.programs, options.tests, options.seed, sandbox)
        rounds = rounds_of(case, texts, sandbox)
        bare = dataclasses.replace(case.problem, contract="")
        for setting, referee in referees.items():
            asked = [dataclasses.replace(each, problem=bare) for each in rounds]
            verdicts = referee.judge(asked if setting == NO_CONTRACTS else rounds)
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
        "--problems", nargs="+", default=["starter"], help="what load_problems takes"
    )
    # As many as a program meets in one step of training.
    parser.add_argument("--tests", type=int, default=64, help="of a suite; default: 64")
    parser.add_argument("--max-problems", type=int, help="spread over all; default: all")
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
    rows = {key: tally.figures() for key, tally in tallies.items()}
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
        figures = [{"setting": s, "tester": t, **row} for (s, t), row in rows.items()]
        found = {
            "command": f"python {shlex.join(sys.argv)}",
            "machine": str(machine),
            "problems": len(cases),
            "figures": figures,
            "losses": [loss._asdict() for loss in losses],
        }
        print(json.dumps(found, default=dataclasses.asdict))
    return 0


# ---- The testers: each writes one suite against a program, and knows the golden tests. ------------------------------

TESTERS = ("boundary", "fuzz", "hostile", "types")
GIVEN = 40
"""Golden calls that testers start from, at most; with texts of up to so many characters:"""
GIVEN_CHARS = 300
ODD = (
    "None", "True", "False", "0", "-1", "7", "10000000000000000000000", "2.5", "-0.0", "1e999", "-1e999",
    "1e-320", "float('nan')", "1j", "''", "'a'", "' '", "'A b'", "'\\n'", "'\\u0130\\u00df'", "'\\u0663'", "'0'",
    "b'a'", "[]", "[None]", "[True]", "[2.5]", "['a']", "['a', 1]", "[[1]]", "[[[[[]]]]]", "[0.1, 0.2, 0.3]",
    "[1, True, 1.0]", "()", "(1,)", "('a', None)", "{}", "{1: 2}", "{'a': None}", "{1}", "{'b', 'a'}",
    repr("ab" * 100), repr(list(range(200))),
)  # fmt: skip
LETTERS = "abcdefghijklmnopqrstuvwxyz"
CHARACTERS = (
    LETTERS, LETTERS + LETTERS.upper() + "  ", "0123456789", LETTERS[:3] + " ,.-_()[]{}<>", "01",
    "".join(map(chr, range(32, 127))), "aZ \t\n", "aA\u00e9\u00df\u0130\u03a3\u03c2\u0663\u00b2\u01c5\u212a",
)  # fmt: skip
LARGEST = (3, 20, 100, 1000, 10**6, 10**9, 10**18)


def answers(
    problem: Problem, programs: Sequence[str], count: int, seed: int, sandbox: Sandbox
) -> list[list[str]]:
    """Return what each of `TESTERS` answers to each program, with `count` tests.

    Args:
        problem: Its golden tests say what arguments are usual.
        programs: The programs under attack. No tester looks at them.
        count: Tests of a suite; fewer where so many cannot be made.
        seed: Seed of the choices; they depend on the problem, too.
        sandbox: Where golden tests are read.
    """
    name = problem.entry_point
    rng = np.random.default_rng([seed, zlib.crc32(problem.task_id.encode())])
    calls = golden_calls(problem)
    shown = dataclasses.replace(problem, tests=tuple(_guess(name, call) for call in calls))
    boundary = BoundaryTester([shown], sandbox, count, seed).act([observe(shown)])[0]
    fuzz = "\n".join(_guess(name, call) for call in vary_calls(calls, count, rng))
    odd = hostile_arguments(calls, count, rng)
    hostile = "\n".join(f"assert {name}({', '.join(texts)}) == 0" for texts in odd)
    [signature] = sandbox.analyse(read_signatures, [_asked(problem)])
    drawn = {", ".join(texts): None for texts in typed_arguments(json.loads(signature), count, rng)}
    types = "\n".join(f"assert {name}({texts}) == 0" for texts in drawn)
    return [[boundary, fuzz, hostile, types] for _ in programs]


def _asked(problem: Problem) -> tuple[str, str, str, list[str]]:
    return problem.prompt, problem.entry_point, problem.reference, list(problem.golden_calls)


def typed_arguments(
    signature: dict[str, Any], count: int, rng: np.random.Generator
) -> list[list[str]]:
    """Up to `count` lists of arguments of the types that a signature takes, and nothing else known of them."""
    rows = [row for row in signature["parameters"] or [] if row[1] in ("", "/")]
    return [[in_order(drawn(row[3], rng)) for row in rows] for _ in range(count)]


def drawn(domain: Any, rng: np.random.Generator, depth: int = 0) -> Any:
    """Return a random value of a domain, see `codea1_env.reading.domains`."""
    if isinstance(domain, str):
        if domain in ("any", "never"):
            domain = ("int", "float", "str", "bool")[int(rng.integers(4))]
        largest = LARGEST[int(rng.integers(len(LARGEST)))]
        characters = CHARACTERS[int(rng.integers(len(CHARACTERS)))]
        text = "".join(rng.choice(list(characters), int(rng.integers(13))))
        number = int(rng.integers(-largest, largest + 1))
        fraction = float(number if rng.integers(2) else round(number / 7, 3))
        return {
            "int": number,
            "float": fraction if rng.integers(8) else (0.0, -0.0, 1e300, 1e-300)[number % 4],
            "nonfinite": number / 4,
            "complex": complex(number, 1),
            "bool": bool(number % 2),
            "None": None,
            "bytes": text.encode(),
        }.get(domain, text)
    kind, inner = domain[0], domain[1]
    if kind == "literal":
        return ast.literal_eval(inner[int(rng.integers(len(inner)))])
    if kind == "union":
        return drawn(inner[int(rng.integers(len(inner)))], rng, depth)
    if kind == "tuple":
        return tuple(drawn(each, rng, depth + 1) for each in inner)
    size = int(rng.integers((20, 6, 3)[min(depth, 2)]))
    if kind == "dict":
        return {drawn(inner, rng, 9): drawn(domain[2], rng, depth + 1) for _ in range(size)}
    items = [drawn(inner, rng, depth + 1) for _ in range(size)]
    return {"tuple*": tuple, "set": set, "frozenset": frozenset}.get(kind, list)(items)


def _guess(name: str, call: Call) -> str:
    arguments, keywords = call
    named = [f"{keyword}={in_order(value)}" for keyword, value in keywords.items()]
    return f"assert {name}({', '.join([*map(in_order, arguments), *named])}) == 0"


def golden_calls(problem: Problem) -> list[Call]:
    """Return the calls of the first golden tests."""
    calls = [(case.args, dict(case.kwargs)) for case in problem.cases]
    return [
        call for call in calls if len(in_order(call)) < GIVEN_CHARS and _readable(in_order(call))
    ][:GIVEN]


def _readable(source: str) -> bool:
    try:
        read(ast.parse(source, mode="eval").body)
    except NotLiteralError:  # inf and nan are names
        return False
    return True


def hostile_arguments(
    calls: Sequence[Call], count: int, rng: np.random.Generator
) -> list[list[str]]:
    """Up to `count` distinct lists of arguments, each made from a golden call by something odd."""
    found: dict[tuple[str, ...], None] = {}
    for _ in range(20 * count if calls else 0):
        given, _ = calls[int(rng.integers(len(calls)))]
        texts = [in_order(argument) for argument in given]
        place = int(rng.integers(len(texts))) if texts else 0
        action = int(rng.integers(8))
        if action == 0:  # one argument more, or less
            texts = texts[:place] if rng.integers(2) else [*texts, ODD[int(rng.integers(len(ODD)))]]
        elif action <= 2 and texts:
            texts[place] = _disguised(given[place], rng)
        elif action <= 5 and texts:
            texts[place] = ODD[int(rng.integers(len(ODD)))]
        else:
            texts = [ODD[int(rng.integers(len(ODD)))] for _ in texts]
        found[tuple(texts)] = None
        if len(found) == count:
            break
    return [list(texts) for texts in found]


def _disguised(value: Any, rng: np.random.Generator) -> str:
    """Return the text of nearly the same value, of another type."""
    if isinstance(value, (int, float)) and abs(value) < 1e15:
        forms = [float(value), bool(value), str(value), [value], int(value) + 0.5]
    elif isinstance(value, str):
        forms = [list(value), value.encode(), [value], tuple(value)]
    elif isinstance(value, (list, tuple)):
        forms = [list(value), tuple(value), [value], dict(enumerate(value)), [*value, None]]
    elif isinstance(value, dict):
        forms = [list(value.items()), list(value), {**value, None: 0}, {**value, "": 0.5}]
    else:
        forms = [[value], None]
    others = [in_order(form) for form in forms if in_order(form) != in_order(value)]
    return others[int(rng.integers(len(others)))]


if __name__ == "__main__":
    sys.exit(main())
