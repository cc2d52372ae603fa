"""Does `codea1 eval code` judge as evalplus does, and how long does each take?

    python -m venv /tmp/evalplus && /tmp/evalplus/bin/pip install evalplus==0.3.1
    python benchmarks/evalplus_agreement.py --problems humanevalplus.jsonl.gz --python /tmp/evalplus/bin/python

Both judge the same file: the reference of every problem, mutants of it, and more samples where given. Every sample
on which they disagree is listed with what each says. evalplus gets the problems in its own layout, made from the
same file, since it would download them; which inputs it counts as base tests decides nothing here. The problem set
is run as it is, in this process: give only one that you trust.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import shlex
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from codea1_env.evaluation.samples import evalplus_id
from codea1_env.mutation import generate_mutants
from codea1_env.problems import Problem, load_problems
from codea1_env.sandbox import Sandbox
from codea1_env.support.machine import this_machine

BASE = 5
"""Inputs of a problem that evalplus is told are base tests; it judges base and plus in a process each."""


def main() -> int:
    arguments = parse()
    folder: Path = arguments.output_dir
    folder.mkdir(parents=True)
    problems = {problem.task_id: problem for problem in load_problems(arguments.problems)}
    with gzip.open(arguments.problems, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    kept = {row["task_id"] for row in rows[:: arguments.every]}
    problems = {name: problem for name, problem in problems.items() if name in kept}
    rows = [row for row in rows if row["task_id"] in kept]
    write(folder / "problems.jsonl", rows)
    data = [evalplus_row(row, problems[row["task_id"]]) for row in rows]
    write(folder / "evalplus_problems.jsonl", data)
    samples = make_samples(list(problems.values()), arguments.mutants, arguments.seed)
    for path in arguments.samples:
        samples += [json.loads(line) for line in path.open(encoding="utf-8")]
    write(folder / "samples.jsonl", samples)

    ours_time = run_ours(folder, arguments.workers)
    theirs_time = run_evalplus(folder, arguments.python, arguments.workers)
    ours, theirs = read_ours(folder, problems), read_evalplus(folder)
    differ = [key for key in ours if (ours[key]["outcome"] == "pass") != passed(theirs[key])]
    right = sum(row["outcome"] == "pass" for row in ours.values())
    print(f"{len(samples)} samples, {right} right here; disagreements: {len(differ)}")
    if differ:
        alone = alone_and_patient(folder, arguments.python, differ, data, theirs)
        for key in differ:
            print(f"  {key[0]}, sample {key[1]}: {difference(ours[key], theirs[key], alone[key])}")
    print_times(len(samples), ours_time, theirs_time)
    print(f"{this_machine()}\nCommand: python {shlex.join(sys.argv)}")
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--problems", required=True, help="HumanEval+ or MBPP+, .jsonl.gz")
    parser.add_argument("--python", required=True, help="of an environment with evalplus")
    parser.add_argument("--samples", type=Path, nargs="*", default=[], help="more samples")
    parser.add_argument("--mutants", type=int, default=2, help="per problem")
    parser.add_argument("--every", type=int, default=1, help="take every so manieth problem")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output-dir", type=Path, default=Path("runs/evalplus-agreement"))
    return parser.parse_args()


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def make_samples(problems: list[Problem], mutants: int, seed: int) -> list[dict[str, Any]]:
    """Return references and mutants."""
    rng = np.random.default_rng(seed)
    samples = []
    with Sandbox() as sandbox:
        for problem in problems:
            found = [mutant.code for mutant in generate_mutants(problem.reference, sandbox)]
            drawn = rng.permutation(len(found))[:mutants]
            for code in (problem.reference, *(found[i] for i in drawn)):
                samples.append({"task_id": evalplus_id(problem), "solution": code})
    return samples


def evalplus_row(row: dict[str, Any], problem: Problem) -> dict[str, Any]:
    """Return the problem as a row of evalplus' own data."""
    inputs = [list(case.args) for case in problem.cases]
    number = int(row["task_id"].split("/")[1])
    whole = problem.metadata["source"] == "mbpp+"
    if whole:
        inputs = without_sets(number, inputs)
    return {
        "task_id": evalplus_id(problem),
        "prompt": "" if whole else row["prompt"],
        "entry_point": problem.entry_point,
        "canonical_solution": problem.reference if whole else row["canonical_solution"],
        "base_input": inputs[:BASE],
        "plus_input": inputs[BASE:],
        "atol": 1e-4 if problem.checker else problem.atol,
        "contract": "",
    }


def without_sets(number: int, inputs: list[Any]) -> list[Any]:
    """Return inputs as JSON has them; evalplus makes sets and complex numbers of these again."""
    if number == 115:
        return [[[list(item) for item in given[0]]] for given in inputs]
    if number in (124, 252):
        return [[str(item) for item in given] for given in inputs]
    return inputs


def timed(command: list[str], environment: dict[str, str] | None = None) -> tuple[float, float]:
    """Run a command; returns wall-clock and CPU seconds, of all its processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    seconds = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(
            f"{shlex.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, cpu


def run_ours(folder: Path, workers: int) -> tuple[float, float]:
    command = [sys.executable, "-m", "codea1_env.cli", "eval", "code", "--workers", str(workers)]
    command += ["--problems", str(folder / "problems.jsonl"), "--json"]
    command += ["--samples", str(folder / "samples.jsonl"), "--output-dir", str(folder / "ours")]
    # Exit code 1 says that a reference failed: such problems show as disagreements.
    return timed(["sh", "-c", f"{shlex.join(command)} || test $? = 1"])


def run_evalplus(folder: Path, python: str, workers: int, *options: str) -> tuple[float, float]:
    data = (folder / "evalplus_problems.jsonl").resolve()
    dataset = "mbpp" if "Mbpp/" in data.read_text(encoding="utf-8")[:100] else "humaneval"
    environment = os.environ | {
        "HUMANEVAL_OVERRIDE_PATH": str(data),
        "MBPP_OVERRIDE_PATH": str(data),
        "XDG_CACHE_HOME": str((folder / "cache").resolve()),
    }
    command = [python, "-m", "evalplus.evaluate", "--dataset", dataset]
    command += ["--samples", str(folder / "samples.jsonl"), "--parallel", str(workers)]
    return timed([*command, *options], environment)


def read_ours(folder: Path, problems: dict[str, Problem]) -> dict[tuple[str, int], dict[str, Any]]:
    rows = map(json.loads, (folder / "ours" / "verdicts.jsonl").open(encoding="utf-8"))
    return {(evalplus_id(problems[row["task_id"]]), row["sample"]): row for row in rows}


def read_evalplus(folder: Path) -> dict[tuple[str, int], dict[str, Any]]:
    content = json.loads((folder / "samples_eval_results.json").read_text(encoding="utf-8"))
    return {
        (task_id, index): row
        for task_id, found in content["eval"].items()
        for index, row in enumerate(found)
    }


def passed(row: dict[str, Any]) -> bool:
    return bool(row["base_status"] == row["plus_status"] == "pass")


def alone_and_patient(
    folder: Path,
    python: str,
    differ: list[tuple[str, int]],
    data: list[dict[str, Any]],
    theirs: dict[tuple[str, int], dict[str, Any]],
) -> dict[tuple[str, int], bool]:
    """Return what evalplus says of these samples with a minute for each input: its limits are of wall-clock time."""
    again = folder / "again"
    again.mkdir()
    names = {task_id for task_id, _ in differ}
    write(again / "evalplus_problems.jsonl", [row for row in data if row["task_id"] in names])
    rows = [{"task_id": key[0], "solution": theirs[key]["solution"]} for key in differ]
    write(again / "samples.jsonl", rows)
    run_evalplus(again, python, 1, "--min_time_limit", "60")
    found = read_evalplus(again)
    numbers: Counter[str] = Counter()
    said = {}
    for task_id, number in differ:
        said[task_id, number] = passed(found[task_id, numbers[task_id]])
        numbers[task_id] += 1
    return said


def difference(ours: dict[str, Any], theirs: dict[str, Any], alone: bool) -> str:
    failed = str((theirs["base_fail_tests"] or theirs["plus_fail_tests"] or [""])[0])
    return (
        f"here {ours['outcome']} ({ours['message'][:120]}); evalplus: base {theirs['base_status']}, plus "
        f"{theirs['plus_status']} {failed[:80]}; alone, with time: {'pass' if alone else 'fail'}"
    )


def print_times(number: int, ours: tuple[float, float], theirs: tuple[float, float]) -> None:
    print("| milliseconds per sample | wall-clock | CPU |\n|---|---|---|")
    for name, (seconds, cpu) in (("codea1", ours), ("evalplus", theirs)):
        print(f"| {name} | {1e3 * seconds / number:.0f} | {1e3 * cpu / number:.0f} |")
    print(f"| ratio | {ours[0] / theirs[0]:.2f} | {ours[1] / theirs[1]:.2f} |")


if __name__ == "__main__":
    raise SystemExit(main())
