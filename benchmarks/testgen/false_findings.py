"""How many findings on unmodified code are mistakes of the code? Runs over functions of published packages.

    pip install --no-deps --target SITE NAME==VERSION ...    # those at the top of benchmarks/testgen/functions.txt
    python benchmarks/testgen/false_findings.py --site SITE

Every finding of every kind is looked at by hand; what was judged stands in `judged.jsonl`:

- true: the docstring, the annotation or the code is wrong; a maintainer would change one of them;
- harmless: as it is said, but nobody would change anything (nonsense in, exception out);
- false: nothing is as the finding says.

The table counts for each kind the findings of each class, and the functions that have a finding which is not true.
Each module is imported as a part of its package, as `codea1 testgen --check --all-findings PACKAGE.module::name` does.
The folder of results keeps every function that is done: the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import itertools
import shlex
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from packages import LISTED, Log, allow, listed, module_at, parser_for
from rich.console import Console
from rich.progress import track
from rich.table import Table

from codea1_env.sandbox import Sandbox
from codea1_env.testgen.findings import DOUBTFUL, as_data
from codea1_env.testgen.folders import SuiteOptions, WrittenSuite, write_suites
from codea1_env.testgen.modules import PublicNames

CLASSES = ("true", "harmless", "false")


def main(arguments: list[str] | None = None) -> int:
    parser = parser_for(__doc__)
    parser.add_argument("--list", type=Path, default=LISTED, help="of functions")
    parser.add_argument("--judged", type=Path, help="what was judged; else beside the list")
    parser.add_argument("--results", type=Path, default=Path("false-findings"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    allow(options.site)
    rows = run(options)
    judged = options.judged or options.list.with_name(
        options.list.stem.replace("functions", "judged") + ".jsonl"
    )
    show(rows, judged, f"python {shlex.join(sys.argv)}")
    return 0


def run(options: argparse.Namespace) -> Log:
    rows = Log(options.results / "functions.jsonl")
    done = {(row["file"], row["name"]) for row in rows}
    left = [each for each in listed(options.list) if each not in done]
    files = [
        (file, tuple(name for _, name in some))
        for file, some in itertools.groupby(left, lambda each: each[0])
    ]
    how = SuiteOptions(
        workers=options.workers, seed=options.seed, all_findings=True, only_findings=True
    )
    with Sandbox(packages=()) as analyst:
        for file, names in track(files, "Modules"):
            module = module_at(options.site, file)
            for written in write_suites(PublicNames(module.path, module, names), how, analyst):
                rows.add(row_of(file, written))
    return rows


def row_of(file: str, written: WrittenSuite) -> dict[str, Any]:
    """Return what is found in a function."""
    row: dict[str, Any] = {"file": file, "name": written.label.partition("::")[2], "findings": []}
    if written.suite is None:
        row["refused"] = str(written.error)
    else:
        row["findings"] = [
            {"text": str(each), **as_data(each, written.suite.target)}
            for each in written.suite.findings
        ]
    return row | {"seconds": written.seconds}


def show(rows: list[dict[str, Any]], path: Path, command: str) -> None:
    judged = {(each["name"], each["text"]): each["class"] for each in Log(path)}
    handled = [row for row in rows if "refused" not in row]
    table = Table(
        "kind", "shown by default", *CLASSES, "not judged", title=f"{len(handled)} functions"
    )
    found: dict[str, Counter[str]] = {}
    wrong = Counter[bool]()
    for row in handled:
        bad = set()
        for each in row["findings"]:
            verdict = judged.get((row["name"], each["text"]), "")
            found.setdefault(each["kind"], Counter())[verdict] += 1
            bad |= {each["kind"] in DOUBTFUL} if verdict != "true" else set()
        wrong.update(bad)
    for kind, counts in sorted(found.items()):
        default = "no" if kind in DOUBTFUL else "yes"
        table.add_row(kind, default, *(str(counts[each]) for each in (*CLASSES, "")))
    console = Console()
    console.print(table)
    console.print(
        f"Functions with a finding by default that is not true: {wrong[False]} of {len(handled)}; "
        f"of kinds that are off: {wrong[True]}. Refused: {len(rows) - len(handled)}."
    )
    console.print(command, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
