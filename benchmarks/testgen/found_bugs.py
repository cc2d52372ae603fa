"""Which bugs does testgen find? 40 of them, put into copies of functions of published packages one at a time.

    pip install --no-deps --target SITE NAME==VERSION ...    # those at the top of benchmarks/testgen/functions.txt
    python benchmarks/testgen/found_bugs.py --site SITE

A bug is found

- by findings, if the function with the bug has a finding of a kind that is on which the right one has not;
- by `--against`, if there is a difference to the right version, which is committed in a git repository;
- by the file, if the pytest file that was written for the right version passes there, and fails on the bug.

Intervals are bootstrap intervals over the bugs. Pytest runs the functions as you, in no sandbox. The folder of results
keeps every bug that is done: the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from make_bugs import KINDS
from packages import Log, parser_for
from rich.console import Console
from rich.progress import track
from rich.table import Table

from codea1_env.evaluation.statistics import bootstrap
from codea1_env.sandbox import Sandbox
from codea1_env.testgen.folders import SuiteOptions, write_suites
from codea1_env.testgen.function import FunctionSuite
from codea1_env.testgen.modules import PublicNames, TargetError, module_of_file
from codea1_env.testgen.written_file import default_output, pytest_file

BUGS = Path(__file__).with_name("bugs.jsonl")
WAYS = ("by findings", "by --against", "by the file")
SECONDS = 120
"""A file that takes longer has found a bug that does not end."""


def main(arguments: list[str] | None = None) -> int:
    parser = parser_for(__doc__)
    parser.add_argument("--results", type=Path, default=Path("found-bugs"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--timeout", type=float, default=20.0, help="seconds for the tests of a function"
    )
    options = parser.parse_args(arguments)
    bugs = [json.loads(line) for line in BUGS.read_text(encoding="utf-8").splitlines()]
    copies = options.results / "site"
    copy_packages(options.site, copies, {bug["file"].partition("/")[0] for bug in bugs})
    rows = Log(options.results / "bugs.jsonl")
    done = [(row["file"], row["name"], row["line"], row["column"]) for row in rows]
    with Sandbox(packages=()) as analyst:
        for bug in track(bugs, "Bugs"):
            if (bug["file"], bug["name"], bug["line"], bug["column"]) in done:
                continue
            started = time.monotonic()
            copy = copies / bug["file"]
            right = copy.read_text(encoding="utf-8")
            try:
                found = look(copy, right, bug, analyst, options)
            finally:
                copy.write_text(right, encoding="utf-8")
            rows.add(bug | found | {"seconds": round(time.monotonic() - started, 1)})
    show(rows, f"python {shlex.join(sys.argv)}")
    return 0


def copy_packages(site: Path, folder: Path, names: set[str]) -> None:
    """Copy packages into a repository of their own, where they are committed as they are."""
    if (folder / ".git").is_dir():
        return
    folder.mkdir(parents=True)
    for name in names:
        if (site / name).is_dir():
            shutil.copytree(site / name, folder / name)
        else:
            shutil.copy(site / name, folder / name)
    who = ["-c", "user.name=benchmark", "-c", "user.email=benchmark@localhost"]
    for arguments in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "right versions"]):
        subprocess.run(["git", "-C", str(folder), *arguments], check=True)


def with_bug(text: str, bug: dict[str, Any]) -> str:
    lines = text.splitlines(keepends=True)
    at = sum(map(len, lines[: bug["line"] - 1])) + bug["column"]
    if not text.startswith(bug["old"], at):
        raise SystemExit(
            f"expect {bug['file']} of the version in functions.txt, actually: line {bug['line']} differs"
        )
    new: str = bug["new"]
    return text[:at] + new + text[at + len(bug["old"]) :]


def look(
    copy: Path, right: str, bug: dict[str, Any], analyst: Sandbox, options: argparse.Namespace
) -> dict[str, Any]:
    tests = options.results / "tests" / default_output(copy, bug["name"]).name
    tests.parent.mkdir(exist_ok=True)
    place = PublicNames(copy, module_of_file(copy), (bug["name"],))
    quick = SuiteOptions(workers=options.workers, seed=options.seed, only_findings=True)

    def write(how: SuiteOptions) -> FunctionSuite:
        [written] = write_suites(place, how, analyst)
        if written.suite is None:
            raise written.error or AssertionError(f"nothing has changed in {written.label}")
        return written.suite

    suite = write(replace(quick, timeout=options.timeout, only_findings=False))
    tests.write_text(pytest_file(suite, tests, analyst), encoding="utf-8")
    passes = pytest(tests)
    known = {(each.kind, each.source) for each in suite.findings}
    copy.write_text(with_bug(right, bug), encoding="utf-8")
    found: dict[str, Any] = {
        "passes": passes == 0,
        "by the file": bool(suite.tests) and passes == 0 and pytest(tests) != 0,
        "killed": len(suite.kills.killed),
        "mutants": len(suite.kills.mutants),
    }
    try:
        suite = write(replace(quick, against="HEAD"))
    except TargetError as error:  # the module no longer runs: nobody overlooks that
        return found | {"by findings": True, "by --against": True, "shown": [str(error)]}
    differences = [each for each in suite.findings if each.kind == "difference"]
    # A call that is no longer what it was is not looked at otherwise.
    new = [each for each in write(quick).findings if (each.kind, each.source) not in known]
    return found | {
        "by findings": bool(new),
        "by --against": bool(differences),
        "shown": [f"{each.kind}: {each}" for each in [*new[:2], *differences[:2]]],
    }


def pytest(file: Path) -> int:
    try:
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", file.name],
            cwd=file.parent,
            capture_output=True,
            timeout=SECONDS,
            env=os.environ
            | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        ).returncode
    except subprocess.TimeoutExpired:
        return -1


def show(rows: list[dict[str, Any]], command: str) -> None:
    table = Table("bugs", "number", *WAYS, "any of them")
    for kind in KINDS:
        some = [row for row in rows if row["kind"] == kind]
        counts = [sum(row[way] for row in some) for way in WAYS]
        either = sum(any(row[way] for way in WAYS) for row in some)
        table.add_row(kind, str(len(some)), *map(str, counts), str(either))
    columns = [[[float(row[way])] for row in rows] for way in WAYS]
    columns.append([[float(any(row[way] for way in WAYS))] for row in rows])
    shares = [
        str(bootstrap(each, lambda tables: tables.mean(axis=(1, 2)), np.random.default_rng(0)))
        for each in columns
    ]
    table.add_row("share [95%]", str(len(rows)), *shares)
    console = Console(width=140)
    console.print(table)
    console.print(
        f"Files that pass on the right version: {sum(row['passes'] for row in rows)} of {len(rows)}"
    )
    console.print(command, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
