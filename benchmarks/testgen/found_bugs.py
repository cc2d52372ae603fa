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
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from make_bugs import KINDS
from packages import allow, single_file
from rich.console import Console
from rich.progress import track
from rich.table import Table

from codea1_env.evaluation.statistics import bootstrap
from codea1_env.sandbox import Sandbox
from codea1_env.testgen.earlier import read_earlier
from codea1_env.testgen.function import write_function_suite
from codea1_env.testgen.target import TargetError, read_target
from codea1_env.testgen.written_file import default_output, pytest_file

BUGS = Path(__file__).with_name("bugs.jsonl")
WAYS = ("findings", "against", "file")
SECONDS = 120
"""A file that takes longer has found a bug that does not end."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--site", type=Path, required=True, help="where the packages are installed")
    parser.add_argument("--results", type=Path, default=Path("found-bugs"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    allow(options.site)
    copies = options.results / "copies"
    bugs = [json.loads(line) for line in BUGS.read_text(encoding="utf-8").splitlines()]
    files = {bug["file"]: single_file(options.site, bug["file"], copies) for bug in bugs}
    commit(copies)
    path = options.results / "bugs.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = [(row["file"], row["name"], row["line"], row["column"]) for row in rows]
    roots = sorted({file.partition("/")[0].removesuffix(".py") for file in files})
    with Sandbox(options.workers, packages=roots) as sandbox, path.open("a") as out:
        for bug in track(bugs, "Bugs"):
            if (bug["file"], bug["name"], bug["line"], bug["column"]) in done:
                continue
            start = time.monotonic()
            copy = files[bug["file"]]
            right = copy.read_text(encoding="utf-8")
            try:
                found = look(copy, right, bug, sandbox, options.seed)
            finally:
                copy.write_text(right, encoding="utf-8")
            rows.append(bug | found | {"seconds": round(time.monotonic() - start, 1)})
            out.write(json.dumps(rows[-1]) + "\n")
            out.flush()
    show(rows, f"python {shlex.join(sys.argv)}")
    return 0


def commit(folder: Path) -> None:
    """Put the right versions into a repository of their own."""
    if (folder / ".git").is_dir():
        return
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
    return text[:at] + bug["new"] + text[at + len(bug["old"]) :]


def look(
    copy: Path, right: str, bug: dict[str, Any], sandbox: Sandbox, seed: int
) -> dict[str, Any]:
    target = read_target(copy, bug["name"], sandbox)
    suite = write_function_suite(target, None, sandbox, seed)
    output = default_output(copy, bug["name"])
    output.write_text(pytest_file(suite, output, sandbox), encoding="utf-8")
    passes = pytest(output)
    known = {(each.kind, each.source) for each in suite.findings}
    copy.write_text(with_bug(right, bug), encoding="utf-8")
    found: dict[str, Any] = {
        "passes": passes == 0,
        "file": bool(suite.tests) and passes == 0 and pytest(output) != 0,
        "killed": len(suite.kills.killed),
        "mutants": len(suite.kills.mutants),
    }
    try:
        target = read_target(copy, bug["name"], sandbox)
        earlier = read_earlier(target, "HEAD", sandbox)
        alone = write_function_suite(target, None, sandbox, seed, only_findings=True)
        both = write_function_suite(
            target, None, sandbox, seed, earlier=earlier, only_findings=True
        )
    except TargetError as error:  # the module no longer runs: nobody overlooks that
        return found | {"findings": True, "against": True, "shown": [str(error)]}
    new = [each for each in alone.findings if (each.kind, each.source) not in known]
    differences = [each for each in both.findings if each.kind == "difference"]
    return found | {
        "findings": bool(new),
        "against": bool(differences),
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
