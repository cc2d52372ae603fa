"""How many findings on unmodified code are mistakes of the code? Runs over functions of published packages.

    pip install --no-deps --target SITE NAME==VERSION ...    # those at the top of benchmarks/testgen/functions.txt
    python benchmarks/testgen/false_findings.py --site SITE

Every finding of every kind is looked at by hand; what was judged stands in `judged.jsonl`:

- true: the docstring, the annotation or the code is wrong; a maintainer would change one of them;
- harmless: as it is said, but nobody would change anything (nonsense in, exception out);
- false: nothing is as the finding says.

The table counts for each kind the findings of each class, and the functions that have a finding which is not true.
Each file runs in a copy on its own, so that one sandbox serves for all. The folder of results keeps every function that is done: the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from packages import allow, listed, single_file
from rich.console import Console
from rich.progress import track
from rich.table import Table

from codea1_env.sandbox import Sandbox
from codea1_env.testgen.findings import DOUBTFUL
from codea1_env.testgen.function import write_function_suite
from codea1_env.testgen.target import TargetError, read_target

JUDGED = Path(__file__).with_name("judged.jsonl")
CLASSES = ("true", "harmless", "false")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--site", type=Path, required=True, help="where the packages are installed")
    parser.add_argument("--results", type=Path, default=Path("false-findings"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    options.results.mkdir(parents=True, exist_ok=True)
    allow(options.site)
    rows = run(options)
    show(rows, f"python {shlex.join(sys.argv)}")
    return 0


def run(options: argparse.Namespace) -> list[dict[str, Any]]:
    path = options.results / "functions.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {(row["file"], row["name"]) for row in rows}
    roots = sorted({file.partition("/")[0].removesuffix(".py") for file, _ in listed()})
    left = [each for each in listed() if each not in done]
    with Sandbox(options.workers, packages=roots) as sandbox, path.open("a") as out:
        for file, name in track(left, "Functions"):
            copy = single_file(options.site, file, options.results / "copies")
            started = time.monotonic()
            row: dict[str, Any] = {"file": file, "name": name, "findings": []}
            try:
                target = read_target(copy, name, sandbox)
                suite = write_function_suite(
                    target, None, sandbox, options.seed, all_findings=True, only_findings=True
                )
                row["findings"] = [
                    {"kind": each.kind, "text": str(each)} for each in suite.findings
                ]
            except TargetError as error:
                row["refused"] = str(error)
            row["seconds"] = round(time.monotonic() - started, 2)
            rows.append(row)
            out.write(json.dumps(row) + "\n")
            out.flush()
    return rows


def show(rows: list[dict[str, Any]], command: str) -> None:
    lines = JUDGED.read_text(encoding="utf-8").splitlines() if JUDGED.exists() else []
    judged = {(each["name"], each["text"]): each["class"] for each in map(json.loads, lines)}
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
