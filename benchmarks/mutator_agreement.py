"""Do mutation scores of our own mutator agree with those of cosmic-ray, and how long does each take?

    python benchmarks/mutator_agreement.py --problems ult_lite.jsonl.gz

For functions of UnLeakedTestBench, chosen by a seed, right tests are made: the function's value for calls that are
taken from the tests of the data set and varied. Suites of several sizes, drawn from them, are scored by

- tool: cosmic-ray itself (init, baseline, exec), set up as UnLeakedTestBench does it: `python -m pytest test.py` for each
  mutant, within a second. One suite for each function, of the sizes in turn. pytest's plugins are turned off, for they
  take longer than it does;
- own: the mutants of `codea1_env.mutation` in the sandbox, with one worker;
- cosmic: the mutants of cosmic-ray in the same sandbox.

Times are of the same suites, one after the other. The folder of results keeps every function that is done: the same
command goes on where it was stopped. On a busy machine the second is too short for pytest: mutants die of it, and
functions are left out.

The tool runs functions of the data set, and mutants of them, as you, in no sandbox. Name only a set that you trust.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import shlex
import shutil
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import WorkerOutcome, WorkResult
from rich.console import Console
from rich.progress import track

from codea1_env.evaluation.result_folder import FolderError, FolderKind, ResultFolder, read_json
from codea1_env.evaluation.suites.cosmic_ray import cosmic_ray_mutants
from codea1_env.mutation import Mutant, generate_mutants
from codea1_env.mutation.kills import Part, until_settled
from codea1_env.problem_sets.fuzz import Call, vary_calls
from codea1_env.problems import Problem, load_problems
from codea1_env.reading.calls import literal_calls
from codea1_env.sandbox import (
    AnalysisError,
    InfraError,
    Job,
    Limits,
    Outcome,
    Sandbox,
    TestResult,
)
from codea1_env.sandbox.inside.analysis.literals import write
from codea1_env.support.machine import this_machine

LIMITS = Limits(call_cpu_time=0.3, run_cpu_time=3.0)
VARIED = 60
"""Calls that are tried for each function, besides those of the data set."""
TRIES = 3
"""Of the baseline, which has a limit of wall-clock time, too."""
_PATIENCE = 0.1  # CPU time of a test on a mutant, if the program needs far less: some never end
_MUTANT_FACTOR = 20.0  # a mutant may take so many times as long as the program on one test
CONFIG = """[cosmic-ray]
module-path = "mod.py"
timeout = {timeout}
excluded-modules = []
test-command = "python -m pytest test.py"

[cosmic-ray.distributor]
name = "local"
"""


class Case(NamedTuple):
    """A function, its suites by size, and the size of the one that the tool scores."""

    problem: Problem
    suites: dict[int, list[str]]
    tool_size: int


KIND = FolderKind("a comparison of mutators", "settings.json", 1)
RESULTS, SUITES = "results.jsonl", "suites.json"


def main() -> int:
    options = parse()
    console = Console(stderr=True)
    path: Path = options.output_dir
    settings = {name: value for name, value in vars(options).items() if name != "output_dir"}
    begun = (path / KIND.settings).exists()
    try:
        with (
            ResultFolder(path, settings, resume=begun, kind=KIND) as folder,
            Sandbox(workers=1) as sandbox,
        ):
            # Those that went wrong get another chance.
            rows = [row for row in folder.rows(RESULTS) if "fault" not in row]
            done = {row["task_id"] for row in rows}
            sandbox.run_tests("def f(x): return x", ["assert f(1) == 1"])  # starts its worker
            cosmic_ray_mutants("x = 1")
            with console.status("choosing functions"):
                cases = chosen(options, folder, sandbox)
            for case in track(cases, "scoring suites", console=console):
                if case.problem.task_id not in done:
                    rows.append(score(case, options, sandbox))
                    folder.append(RESULTS, rows[-1:])
    except FolderError as error:
        console.print(str(error))
        return 2
    except KeyboardInterrupt:
        console.print("stopped; the same command goes on")
        return 130
    report(rows, options)
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--problems", required=True, help="UnLeakedTestBench, .jsonl.gz")
    parser.add_argument("--functions", type=int, default=50)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 2, 5, 10], help="of suites")
    parser.add_argument("--max-mutants", type=int, default=200, help="of a function, else left out")
    parser.add_argument("--tool-mutants", type=int, help="score only so many with the tool")
    parser.add_argument("--timeout", type=float, default=1.0, help="seconds for the tool's tests")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output-dir", type=Path, default=Path("runs/mutator-agreement"))
    return parser.parse_args()


def chosen(options: argparse.Namespace, folder: ResultFolder, sandbox: Sandbox) -> list[Case]:
    """Return the functions and suites of these results, those of the first time."""
    if not (folder.path / SUITES).exists():
        rows = [
            (case.problem.task_id, list(case.suites.items()), case.tool_size)
            for case in choose(options, sandbox)
        ]
        folder.write(SUITES, {"cases": rows})
    problems = {problem.task_id: problem for problem in load_problems(options.problems)}
    return [
        Case(problems[name], dict(suites), size)
        for name, suites, size in read_json(folder.path / SUITES)["cases"]
    ]


def choose(options: argparse.Namespace, sandbox: Sandbox) -> Iterator[Case]:
    """Yield the functions for which there are enough right tests, in a random order."""
    with gzip.open(options.problems, "rt", encoding="utf-8") as lines:
        given = [json.loads(line)["test_list"] for line in lines]
    problems = load_problems(options.problems)
    found = 0
    for number in np.random.default_rng(options.seed).permutation(len(problems)):
        if found == options.functions:
            return
        problem = problems[int(number)]
        rng = np.random.default_rng([options.seed, int(number)])
        try:
            count = len(cosmic_ray_mutants(problem.reference))
            if not 0 < count <= options.max_mutants:
                continue
            if not generate_mutants(problem.reference, sandbox, limit=1):
                continue
            tests = right_tests(problem, given[int(number)], sandbox, rng)
        except AnalysisError:
            continue
        if len(tests) < max(options.sizes):
            continue
        suites = {
            size: [tests[int(i)] for i in rng.permutation(len(tests))[:size]]
            for size in options.sizes
        }
        yield Case(problem, suites, options.sizes[found % len(options.sizes)])
        found += 1


def right_tests(
    problem: Problem, given: Sequence[str], sandbox: Sandbox, rng: np.random.Generator
) -> list[str]:
    """Return tests that say what the reference returns, the same in two processes."""
    known: list[Call] = sandbox.analyse(literal_calls, list(given), problem.entry_point)
    calls = known + vary_calls(known, VARIED, rng)
    first, second = (
        sandbox.call(problem.reference, problem.entry_point, calls, limits=LIMITS, hash_seed=seed)
        for seed in (0, 1)
    )
    tests = {}
    for (arguments, keywords), one, other in zip(calls, first, second, strict=True):
        texts = [write(value) for value in (*arguments, *keywords.values(), one.value)]
        sure = one.outcome is other.outcome is Outcome.PASS and repr(one.value) == repr(other.value)
        if sure and None not in texts:
            names = [""] * len(arguments) + [f"{name}=" for name in keywords]
            given_text = ", ".join(f"{a}{b}" for a, b in zip(names, texts[:-1], strict=True))
            call = f"{problem.entry_point}({given_text})"
            tests[call] = f"assert {call} == {texts[-1]}"
    return list(tests.values())


def score(case: Case, options: argparse.Namespace, sandbox: Sandbox) -> dict[str, Any]:
    """All scores of one function's suites."""
    problem, suite = case.problem, case.suites[case.tool_size]
    row: dict[str, Any] = {"task_id": problem.task_id, "size": case.tool_size, "seconds": {}}
    outcomes = run_tool(problem, suite, options, row)  # of those that it was asked about
    if "fault" in row:
        return row
    started = time.perf_counter()
    own = generate_mutants(problem.reference, sandbox)
    killed_own = kills(problem, suite, own, sandbox)
    row["seconds"]["own"] = time.perf_counter() - started
    started = time.perf_counter()
    cosmic = cosmic_ray_mutants(problem.reference)
    killed_cosmic = kills(problem, suite, cosmic, sandbox)
    row["seconds"]["cosmic"] = time.perf_counter() - started
    row["mutants"] = {"tool": len(outcomes), "own": len(own), "cosmic": len(cosmic)}
    row["scores"] = {
        str(case.tool_size): [len(killed_own) / len(own), len(killed_cosmic) / len(cosmic)]
    }
    for size in case.suites.keys() - {case.tool_size}:
        tests = case.suites[size]
        shares = [len(kills(problem, tests, each, sandbox)) / len(each) for each in (own, cosmic)]
        row["scores"][str(size)] = shares
    judged = [i for i, place in enumerate(places(cosmic)) if place in outcomes]
    killed = sum(each["test_outcome"] != "survived" for each in outcomes.values())
    row["tool"] = killed / len(outcomes)
    row["same_mutants"] = len(killed_cosmic.intersection(judged)) / len(judged)
    row["tool_timeouts"] = sum(each["output"] == "timeout" for each in outcomes.values())
    row["differ"] = list(differences(problem, suite, cosmic, killed_cosmic, outcomes, sandbox))
    return row


def kills(
    problem: Problem, suite: Sequence[str], mutants: Sequence[Mutant], sandbox: Sandbox
) -> frozenset[int]:
    return find_kills(problem.reference, problem.entry_point, suite, mutants, sandbox)


def find_kills(
    program: str,
    entry_point: str | None,
    tests: Sequence[str],
    mutants: Sequence[Mutant],
    sandbox: Sandbox,
) -> frozenset[int]:
    """Return the numbers of the mutants of a program that tests kill.

    Of a mutant that does not end only the first tests are tried; it counts as killed by those that failed.

    Args:
        program: What the mutants were made from. It passes all tests.
        entry_point: The function or class that the tests use; None if they use other names of the program, too.
        tests: Each stands on its own.
        mutants: The programs with one fault each.
        sandbox: Where everything runs.

    Raises:
        InfraError: The sandbox failed, so that nothing is known.
    """
    limits = _limits(program, entry_point, tests, sandbox)

    def run(parts: Sequence[Part]) -> list[list[TestResult]]:
        jobs = [
            Job(mutants[mutant].code, tuple(tests[n] for n in numbers), entry_point, limits)
            for mutant, numbers in parts
        ]
        return [[_checked(result) for result in results] for results in sandbox.run_many(jobs)]

    rows = until_settled(len(mutants), len(tests), run, late=_hangs, settles=_hangs)
    return frozenset(number for number, row in enumerate(rows) if any(map(_failed, row)))


def _failed(result: TestResult | None) -> bool:
    return result is not None and not result.passed and result.outcome is not Outcome.UNJUDGED


def _checked(result: TestResult) -> TestResult:
    if result.outcome is Outcome.INFRA_ERROR:
        raise InfraError(result.message)
    return result


def _limits(program: str, entry_point: str | None, tests: Sequence[str], sandbox: Sandbox) -> Limits:  # fmt: skip
    """Return what mutants may use: little, unless the program itself needs more."""
    limits = sandbox.limits.with_room_for(tests=len(tests))
    [results] = sandbox.run_many([Job(program, tuple(tests), entry_point, limits)])
    times = [result.cpu_time for result in results if _checked(result).passed]
    slowest = math.ceil(_MUTANT_FACTOR * max(times, default=0.0) / _PATIENCE) * _PATIENCE
    patience = min(max(slowest, _PATIENCE), limits.test_cpu_time)
    return replace(
        limits,
        call_cpu_time=patience,
        run_cpu_time=max(2 * patience, _MUTANT_FACTOR * sum(times)),
        calls_per_test=1,
    )


def _hangs(result: TestResult) -> bool:
    return result.outcome is Outcome.TIMEOUT


def run_tool(
    problem: Problem, suite: Sequence[str], options: argparse.Namespace, row: dict[str, Any]
) -> dict[tuple[str, int], dict[str, Any]]:
    """Return what cosmic-ray says of each of its mutants: (operator, occurrence) -> result."""
    place = options.output_dir / "tool"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    tests = [f"def test_{i}():\n    {test}\n" for i, test in enumerate(suite, 1)]
    (place / "mod.py").write_text(problem.reference, encoding="utf-8")
    text = f"from mod import {problem.entry_point}\n\n" + "\n".join(tests)
    (place / "test.py").write_text(text, encoding="utf-8")
    (place / "cosmic-ray.toml").write_text(CONFIG.format(timeout=options.timeout))
    (place / "pytest.ini").write_text("[pytest]\n")  # or it would take this project's settings
    for command in ("init cosmic-ray.toml it.sqlite", "baseline cosmic-ray.toml", "exec cosmic-ray.toml it.sqlite"):  # fmt: skip
        name = command.split()[0]
        if name == "exec" and options.tool_mutants is not None:
            skip_all_but(options.tool_mutants, place / "it.sqlite", options.seed)
        for _ in range(TRIES):
            started = time.perf_counter()
            result = cosmic_ray(place, command)
            row["seconds"][name] = time.perf_counter() - started
            if name != "baseline" or not result.returncode:
                break
        if result.returncode:
            row["fault"] = f"{name}: {' '.join((result.stdout + result.stderr).split())[-300:]}"
            return {}
    found = {}
    for line in cosmic_ray(place, "dump it.sqlite").stdout.splitlines():
        item, result = json.loads(line)
        if result["worker_outcome"] == "skipped":
            continue
        (mutation,) = item["mutations"]
        operator = mutation["operator_name"].removeprefix("core/")
        found[operator, mutation["occurrence"]] = result
    shutil.rmtree(place)
    return found


def skip_all_but(number: int, session: Path, seed: int) -> None:
    """Leave so many mutants to the tool, as its own filters do."""
    with use_db(str(session), WorkDB.Mode.open) as database:
        names = {
            f"{seed} {item.mutations[0].operator_name} {item.mutations[0].occurrence}": item.job_id
            for item in database.pending_work_items
        }
        for name in sorted(names, key=lambda name: zlib.crc32(name.encode()))[number:]:
            database.set_result(names[name], WorkResult(worker_outcome=WorkerOutcome.SKIPPED))


def places(mutants: Sequence[Mutant]) -> Iterator[tuple[str, int]]:
    """Yield the tool's names for mutants: operator, and occurrence among those of the operator."""
    seen: Counter[str] = Counter()
    for mutant in mutants:
        yield mutant.operator, seen[mutant.operator]
        seen[mutant.operator] += 1


def cosmic_ray(place: Path, arguments: str) -> subprocess.CompletedProcess[str]:
    paths = [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    environment = os.environ | {
        "PATH": os.pathsep.join(paths),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    command = [sys.executable, "-m", "cosmic_ray.cli", *arguments.split()]
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)


def differences(
    problem: Problem,
    suite: Sequence[str],
    mutants: Sequence[Mutant],
    killed: frozenset[int],
    outcomes: dict[tuple[str, int], dict[str, Any]],
    sandbox: Sandbox,
) -> Iterator[str]:
    """Each mutant on which the tool and the sandbox disagree, and why."""
    for number, (mutant, place) in enumerate(zip(mutants, places(mutants), strict=True)):
        theirs = outcomes.get(place)
        if theirs is None or (theirs["test_outcome"] != "survived") == (number in killed):
            continue
        if number in killed:
            results = sandbox.run_tests(mutant.code, suite, entry_point=problem.entry_point)
            bad = next((result for result in results if not result.passed), None)
            said = "survives; killed in the sandbox: "
            said += f"{bad.outcome.value}, {bad.message}" if bad else "not when it is run again"
        elif theirs["output"] == "timeout":
            said = "killed by the tool's limit of wall-clock time"
        else:
            errors = [line for line in theirs["output"].splitlines() if line.startswith("E ")]
            said = f"killed by the tool: {(errors or [theirs['output'][-200:]])[0]}"
        yield f"line {mutant.line}, {mutant.operator}, {mutant.description}: {said}"


def report(rows: list[dict[str, Any]], options: argparse.Namespace) -> None:
    scored = [row for row in rows if "fault" not in row]
    for row in rows:
        if "fault" in row:
            print(f"left out: {row['task_id']}, {row['fault']}")
    if not scored:
        return
    tool = [row["tool"] for row in scored]
    own = [row["scores"][str(row["size"])][0] for row in scored]
    same = [row["same_mutants"] for row in scored]
    everywhere = [each for row in scored for each in row["scores"].values()]
    print(
        f"{len(scored)} functions of {options.problems}, at most {options.max_mutants} mutants; suites of "
        f"{', '.join(map(str, options.sizes))} tests; limit of the tool's tests {options.timeout:g} s"
    )
    print(
        "\n| mutation scores | suites | Pearson | Spearman | mean difference |\n|---|---|---|---|---|"
    )
    print_row("own, tool", own, tool)
    print_row("cosmic, tool (the same mutants)", same, tool)
    print_row("own, cosmic", *map(list, zip(*everywhere, strict=True)))
    total = sum(row["mutants"]["tool"] for row in scored)
    different = [(row["task_id"], each) for row in scored for each in row["differ"]]
    late = sum(row["tool_timeouts"] for row in scored)
    print(f"\n{total} mutants of cosmic-ray, tool and sandbox disagree on {len(different)}")
    print(f"(the tool's limit of time killed {late}):")
    for task_id, what in different:
        print(f"  {task_id} {what}")
    print_times(scored)
    print(f"\n{this_machine()}\nCommand: python {shlex.join(sys.argv)}")


def print_row(name: str, ours: list[float], theirs: list[float]) -> None:
    pearson, spearman = correlation(ours, theirs), correlation(ranks(ours), ranks(theirs))
    difference = float(np.mean(np.subtract(ours, theirs)))
    print(f"| {name} | {len(ours)} | {pearson} | {spearman} | {difference:+.3f} |")


def correlation(first: Sequence[float], second: Sequence[float]) -> str:
    if len(first) < 3 or np.std(first) == 0 or np.std(second) == 0:
        return "-"
    return f"{np.corrcoef(first, second)[0, 1]:.3f}"


def ranks(values: Sequence[float]) -> list[float]:
    """Rank; equal values share the mean of theirs."""
    array = np.asarray(values)
    return [float(np.mean(np.flatnonzero(np.sort(array) == value))) for value in array]


def print_times(rows: list[dict[str, Any]]) -> None:
    """Compare times: the tool's is that of `exec` alone, which favours it."""
    print(
        "\n| the same suites | mutants | seconds | ms per mutant | tool's over this |\n|---|---|---|---|---|"
    )
    base = 0.0
    for name, part in (("tool", "exec"), ("own", "own"), ("cosmic", "cosmic")):
        seconds = sum(row["seconds"][part] for row in rows)
        number = sum(row["mutants"][name] for row in rows)
        each = 1e3 * seconds / number
        base = base or each
        print(f"| {name} | {number} | {seconds:.1f} | {each:.1f} | {base / each:.1f}x |")
    rest = sum(row["seconds"]["init"] + row["seconds"]["baseline"] for row in rows)
    print(f"\nNot counted: {rest:.1f} s of the tool's init and baseline.")


if __name__ == "__main__":
    raise SystemExit(main())
