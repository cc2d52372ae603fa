"""What the game did when the files in data/golden were made: a change of behaviour shows as a difference from them.

    python tests/golden.py --check                  compares; each difference names its row; exit code 1 if there is one
    python tests/golden.py --check --only answers   one part
    python tests/golden.py --make --only answers    makes a part anew, after a change that is meant

What is digested is the state itself, not the files that hold it. Times are left out, and floats are rounded: processors
differ in the last bits.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from codea1_env.mistake_book import MistakeBook
from codea1_env.mutation import generate_mutants
from codea1_env.problem_sets.judging import submit_to_tests
from codea1_env.problems import Problem, load_problems
from codea1_env.responses import parse_suites, read_programs
from codea1_env.sandbox import Limits, Outcome, Sandbox

HERE = Path(__file__).resolve().parent
GOLDEN = HERE / "data" / "golden"
SHARED_DATA = HERE.parents[1] / "shared" / "data"
"""Public data sets, which lie beside the project where there are any."""
DIGITS = 9
SEEDS = (0, 1, 2)
STEPS = 12
EXPERIMENTS = ("rare-faults", "collusion")
TIMED = ("seconds/", "memory/")

Rows = dict[str, Any]
"""Name of a row -> what is compared, as plain data."""


class MissingError(Exception):
    """Something that a part needs is not on this machine."""


# Training of tables


def quick() -> Rows:
    """Three steps of the quickest run."""
    return trained("quick", 3, 0, "--max-problems", 2, "--problems-per-step", 2)


def tabular() -> Rows:
    """The tabular preset, for all seeds."""
    return {name: row for seed in SEEDS for name, row in trained("tabular", STEPS, seed).items()}


def trained(preset: str, steps: int, seed: int, *more: object) -> Rows:
    """Train tables, and return the metrics of each step and the state at the end."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--max-steps", steps, "--seed", seed, "--output-dir", f"{folder}/run"]
        command("train", "--preset", preset, *options, *more)
        run = Path(folder) / "run"
        rows: Rows = {}
        for line in (run / "metrics.jsonl").read_text().splitlines():
            metrics = json.loads(line)
            kept = {key: value for key, value in metrics.items() if not key.startswith(TIMED)}
            rows[f"seed {seed}, step {metrics['step']}"] = kept
        state = state_of(run / "checkpoints" / f"step_{steps}")
        return rows | {f"seed {seed}, {name}": row for name, row in state.items()}


def state_of(checkpoint: Path) -> Rows:
    """What a checkpoint knows of each problem: a digest of the logits of either player, and of the tests in a book."""
    rows: Rows = {}
    for role in ("coder", "tester"):
        (path,) = (checkpoint / role).iterdir()
        tables: dict[str, list[Any]] = {}
        for name, logits in logits_in(json.loads(path.read_text())["tables"]):
            tables.setdefault(name.partition(",")[0], []).append([name, rounded(logits)])
        rows |= {f"{role}, {name}": digest(sorted(each)) for name, each in tables.items()}
    for book in ("book", "past"):
        (path,) = checkpoint.glob(f"{book}.*")
        if path.suffix == ".json" and book == "past":  # what is known of earlier opponents
            continue
        for name, tests in MistakeBook.load(path).state_dict()["problems"].items():
            rows[f"{book}, {name}"] = [len(tests), digest(sorted(map(list, tests)))]
    return rows


def logits_in(tables: dict[str, Any]) -> Iterator[tuple[str, list[float]]]:
    """Yield each table's name and numbers, however deep they stand."""
    for name, value in tables.items():
        if isinstance(value, dict):
            yield from logits_in(value)
        else:  # the table of a program stands beside its problem's name
            yield name, value[-1] if isinstance(value[-1], list) else value


# Verdicts on the public sets


def verdicts() -> Rows:
    """Outcomes of the reference and two mutants on all tests of HumanEval+ and MBPP+."""
    files = [SHARED_DATA / f"{name}.jsonl.gz" for name in ("humanevalplus", "mbppplus")]
    if absent := [str(path) for path in files if not path.exists()]:
        raise MissingError(f"needs {', '.join(absent)}")
    rows: Rows = {}
    with Sandbox(workers=os.cpu_count() or 1) as sandbox:
        waiting: deque[tuple[str, Any]] = deque()
        for problem in chain.from_iterable(load_problems(str(path)) for path in files):
            mutants = generate_mutants(problem.reference, sandbox, 2)
            programs = [problem.reference, *(each.code for each in mutants)]
            for number, code in enumerate(programs):
                # A program that loops reaches the limit in its first call.
                seconds = 8.0 if number else 60.0
                limits = Limits(
                    call_cpu_time=seconds, call_wall_time=5 * seconds,
                    run_cpu_time=seconds, run_wall_time=5 * seconds,
                )  # fmt: skip
                name = f"{problem.task_id}, {f'mutant {number}' if number else 'reference'}"
                waiting.append((name, submit_to_tests(problem, code, limits, sandbox)))
            while len(waiting) > 60:
                name, future = waiting.popleft()
                rows[name] = verdict(future.result())
        rows |= {name: verdict(future.result()) for name, future in waiting}
    return rows


def verdict(result: Any) -> Rows:
    """How many tests came to each outcome, and a digest of which. Behind a timeout it depends on what time was left."""
    tests = [f"{test.judged} {test.outcome.value}" for test in result.tests]
    late = next((i for i, test in enumerate(result.tests) if test.outcome is Outcome.TIMEOUT), None)
    tests = tests if late is None else tests[: late + 1]
    return {
        "load": result.load.outcome.value,
        "tests": dict(sorted(Counter(tests).items())),
        "digest": digest(tests),
    }


# What is read from answers


def answers() -> Rows:
    """Programs and tests in data/answers.jsonl, and why others are none."""
    lines = (HERE / "data" / "answers.jsonl").read_text().splitlines()
    stored = [json.loads(line) for line in lines]
    coders = [row for row in stored if row["role"] == "coder"]
    testers = [row for row in stored if row["role"] == "tester"]
    rows: Rows = {}
    with Sandbox(workers=2) as sandbox:
        texts = [row["text"] for row in coders]
        programs = read_programs([problem_of(row) for row in coders], texts, sandbox)
        for row, program in zip(coders, programs, strict=True):
            lines = program.code.splitlines()
            about = {"lines": len(lines), "digest": digest(lines), "problem": program.problem}
            rows[row["id"]] = about
        suites = parse_suites([(row["text"], problem_of(row)) for row in testers], sandbox)
        for row, suite in zip(testers, suites, strict=True):
            rows[row["id"]] = {
                "tests": list(map(read_test, suite.tests)),
                "dropped": [
                    [each.text, each.invalid, each.fault and each.fault.value]
                    for each in suite.dropped
                ],
            }
    return rows


def read_test(test: Any) -> list[Any]:
    """A test as data."""
    fault = test.fault and test.fault.value
    return [test.text, test.call.hex(), test.predicted.hex(), test.absolute, test.relative, fault]


def problem_of(row: Any) -> Problem:
    """The problem that a stored answer is about."""
    prompt, name = row["problem"]["prompt"], row["problem"]["entry_point"]
    return Problem(row["id"], prompt, name, f"{prompt}    raise NotImplementedError\n")


# Diagnostics


def diagnose() -> Rows:
    """Results and tables of two experiments."""
    rows: Rows = {}
    for experiment in EXPERIMENTS:
        with tempfile.TemporaryDirectory() as folder:
            command("bench", "diagnose", experiment, "--quick", "--output-dir", folder)
            scores = json.loads((Path(folder) / "scores.json").read_text())
            rows[f"{experiment}, table"] = scores["experiments"]
    return rows


# Files and comparison

PARTS: dict[str, Callable[[], Rows]] = {
    part.__name__: part for part in (quick, answers, diagnose, tabular, verdicts)
}


def command(*arguments: object) -> None:
    """Run the command line of this environment."""
    line = [sys.executable, "-m", "codea1_env.cli", *map(str, arguments)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=HERE.parent)
    if done.returncode:
        said = (
            done.stdout[-4000:] + done.stderr[-2000:]
        )  # a run that failed is named in what it prints
        raise RuntimeError(f"{' '.join(line)} ended with {done.returncode}:\n{said}")


def digest(value: Any) -> str:
    """Eight hexadecimal digits of the SHA-256 of plain data."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:8]


def rounded(value: Any) -> Any:
    """Plain data with its floats rounded; -0.0 is 0.0."""
    if isinstance(value, float):
        return round(value, DIGITS) + 0.0
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, (list, tuple)) else value


def made(part: str) -> Rows:
    """Make the rows of a part."""
    rows: Rows = json.loads(json.dumps(rounded(PARTS[part]())))
    return rows


def write(part: str, rows: Rows) -> Path:
    """Write the file of a part. Equal rows give equal bytes."""
    lines = [json.dumps([name, row], sort_keys=True) for name, row in sorted(rows.items())]
    path = GOLDEN / f"{part}.json.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "[\n" + ",\n".join(lines) + "\n]\n"
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    return path


def read(part: str) -> Rows:
    """Read the file of a part."""
    return dict(json.loads(gzip.decompress((GOLDEN / f"{part}.json.gz").read_bytes())))


def differences(golden: Rows, rows: Rows) -> list[str]:
    """Return a line for each row that differs, with what differs in it."""
    found = []
    for name in sorted(golden.keys() | rows.keys()):
        one, other = golden.get(name, "no such row"), rows.get(name, "no such row")
        if one == other:
            continue
        if isinstance(one, dict) and isinstance(other, dict):
            keys = [key for key in {**one, **other} if one.get(key) != other.get(key)]
            one, other = ({key: each.get(key) for key in keys} for each in (one, other))
        found.append(f"{name}: {one} -> {other}")
    return found


def main() -> int:
    """Make or compare parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--make", action="store_true", help="write the files of data/golden anew")
    what.add_argument("--check", action="store_true", help="compare; exit code 1 on a difference")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="NAME",
                        help=f"parts: {', '.join(PARTS)}")  # fmt: skip
    chosen = parser.parse_args()
    differ = False
    for part in chosen.only:
        began = time.monotonic()
        try:
            rows = made(part)
        except MissingError as error:
            print(f"{part}: left out, {error}")
            continue
        seconds = f"{len(rows)} rows, {time.monotonic() - began:.0f} s"
        if chosen.make:
            print(f"{part}: {seconds}, {write(part, rows).stat().st_size} bytes")
            continue
        found = differences(read(part), rows)
        differ |= bool(found)
        print(f"{part}: {seconds}, {f'{len(found)} rows differ' if found else 'equal'}")
        for line in found:
            print(f"  {line[:1000]}")
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
