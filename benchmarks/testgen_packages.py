"""What does `codea1 testgen` do with functions and classes of well-known packages, as they are installed?

    python benchmarks/testgen_packages.py --packages packages --output-dir runs/testgen-packages

The packages of testgen_packages.txt are installed into the folder, if it does not exist. For each function or class of
testgen/package_functions.txt the command is run as a user would run it, then the file that it has written, with pytest. It is handled if a
file with tests was written. What is done stays done: the same command goes on where it was stopped.

CPU time is that of the command with all its processes: of the interpreter's start, too, some two seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

import codea1_env
from codea1_env.support.machine import this_machine

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE / "testgen_packages.txt"
TARGETS = (HERE / "testgen" / "package_functions.txt").read_text(encoding="utf-8").split()
PATIENCE = 600
"""Seconds, after which a command counts as one that does not end."""


def install(folder: Path) -> None:
    """Install the packages into a folder of their own."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder)]
    subprocess.run([*command, "--requirement", str(REQUIREMENTS)], check=True)


def cpu_seconds() -> float:
    """CPU time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(
    target: str, number: int, packages: Path, folder: Path, timeout: float
) -> dict[str, Any]:
    """Run the command for one function or class, and pytest on what it has written."""
    output = folder / f"test_{number:02}_{target.replace('::', '_').replace('.', '_').lower()}.py"
    output.unlink(missing_ok=True)
    path = os.pathsep.join([str(Path(codea1_env.__file__).parent.parent), str(packages)])
    environment = {**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    module, _, name = target.partition("::")
    place = packages / module.replace(".", "/")
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    command = [sys.executable, "-m", "codea1_env.cli", "testgen", f"{file}::{name}", "--json"]
    started, cpu = time.monotonic(), cpu_seconds()
    try:
        done = subprocess.run(
            [*command, "--output", str(output), "--timeout", str(timeout)],
            capture_output=True, text=True, env=environment, timeout=PATIENCE, cwd=folder,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"target": target, "handled": False, "error": "does not end"}
    row: dict[str, Any] = {
        "target": target,
        "seconds": round(time.monotonic() - started, 1),
        "cpu_seconds": round(cpu_seconds() - cpu, 1),
        "handled": output.exists(),
        "error": "" if output.exists() else done.stderr.strip()[-600:],
    }
    if done.stdout.startswith("{"):
        [report] = json.loads(done.stdout)["results"]
        row |= {name: report[name] for name in ("mutants", "killed", "findings", "cut", "tests")}
    if output.exists():
        tests = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(output)],
            capture_output=True, text=True, env={**environment, "PYTHONPATH": str(packages)}, cwd=folder,
        )  # fmt: skip
        row |= {"passes": tests.returncode == 0, "pytest": tests.stdout[-300:]}
    return row


def main() -> None:
    """Measure what is left, and print what is known."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--packages", type=Path, required=True, metavar="DIR")
    parser.add_argument("--output-dir", type=Path, required=True, metavar="DIR")
    parser.add_argument("--timeout", type=float, default=20.0, help="of each function, in seconds")
    parser.add_argument("--first", type=int, default=len(TARGETS), help="so many of the list")
    options = parser.parse_args()
    packages, folder = options.packages.resolve(), options.output_dir.resolve()
    if not packages.exists():
        install(packages)
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "results.jsonl"
    rows = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    known = {row["target"] for row in rows}
    left = [each for each in enumerate(TARGETS[: options.first], 1) if each[1] not in known]
    for number, target in track(left, "functions"):
        row = measure(target, number, packages, folder, options.timeout)
        rows.append(row)
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
    show(rows)


def show(rows: list[dict[str, Any]]) -> None:
    """Print what came of each, and figures of all."""
    console = Console(width=120)
    table = Table(
        "function or class", "tests", "mutants", "killed", "findings", "seconds", "CPU s", "pytest"
    )
    for row in rows:
        words = [row.get(name, "-") for name in ("tests", "mutants", "killed")]
        found = len(row.get("findings", ()))
        passes = {True: "passes", False: "FAILS"}.get(row.get("passes", ""), row["error"][:40])
        table.add_row(
            row["target"],
            *map(str, [*words, found, row.get("seconds"), row.get("cpu_seconds")]),
            passes,
        )
    console.print(table)
    handled = [row for row in rows if row["handled"]]
    figures = {
        "handled": f"{len(handled)} of {len(rows)}",
        "pass under pytest": f"{sum(row['passes'] for row in handled)} of {len(handled)}",
        "mutants killed": f"{sum(row['killed'] for row in handled)} of {sum(row['mutants'] for row in handled)}",
        "findings": sum(len(row.get("findings", ())) for row in rows),
        "median seconds": statistics.median(row["seconds"] for row in handled) if handled else "-",
        "median CPU seconds": statistics.median(row["cpu_seconds"] for row in handled)
        if handled
        else "-",
        "machine": this_machine(),
    }
    for name, figure in figures.items():
        console.print(f"{name}: {figure}", highlight=False)


if __name__ == "__main__":
    main()
