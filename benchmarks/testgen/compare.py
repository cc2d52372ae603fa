"""Which mutants do tests of codea1 testgen kill, beside those of other tools and of the packages themselves?

    python -m venv TOOLS && TOOLS/bin/pip install pynguin 'hypothesis[cli,ghostwriter]' pytest
    TOOLS/bin/pip install ephemeral-port-reserve pretend freezegun pytest-mock delegator.py    # own tests of some import these
    pip install --target SITE --requirement benchmarks/testgen_packages.txt
    pip download --no-deps --no-binary :all: --dest SDISTS NAME==VERSION     # for each, where there is one
    python benchmarks/testgen/compare.py --site SITE --tools TOOLS --sdists SDISTS --results runs/compare

Functions and classes are those of package_functions.txt, in an order drawn by the seed: those that are done
when it is stopped are a sample of all. Each gets a file of each tool, and its mutants are those of cosmic-ray's
operators in its own lines: at most 20 are drawn, none twice, and none that is no program, or
the same program but for annotations.
A mutant is killed by a file if a test fails on it that passes without it; tests that fail without it are left out,
and the file counts as one that does not pass. A tool that has no file kills nothing.

A package's own tests are those of its source distribution, or in the package as installed, in files that name the
function, and that call it; where those take more than three seconds of processor time, as many as take three are drawn.
A package whose tests cannot be started, such as urllib3, which brings servers of its own, counts as one without.
The control runs the examples of the docstring without looking at what they give.

The same command goes on where it was stopped, and several can work on parts with the same results. The tests run as you, in no sandbox.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import random
import re
import shlex
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from other_tools import FILES, TOOLS, Environment, Place
from packages import Log, parser_for
from rich.console import Console
from rich.progress import track
from rich.table import Table

from codea1_env.evaluation.statistics import bootstrap
from codea1_env.evaluation.suites.cosmic_ray import cosmic_ray_mutants
from codea1_env.support.machine import this_machine

LIST = Path(__file__).with_name("package_functions.txt")
MUTANTS = 20
"""At most so many of a function."""
OWN, PYNGUIN = "own", "Pynguin"


def mutants_of(place: Place, seed: int) -> tuple[int, list[str], list[str]]:
    """How many mutants the lines have, and of those drawn the texts of the file, and what is changed."""
    lines = Path(place.file).read_text(encoding="utf-8").splitlines(keepends=True)
    before, after = "".join(lines[: place.first - 1]), "".join(lines[place.last :])
    inside = "".join(lines[place.first - 1 : place.last])
    if not inside.endswith("\n"):
        inside += "\n"
    every = cosmic_ray_mutants(inside)
    order = random.Random(f"{seed} {place.target}").sample(range(len(every)), len(every))
    known, drawn, shown = {without_annotations(inside)}, [], []
    for mutant in (every[index] for index in order):
        with contextlib.suppress(SyntaxError):
            tree = without_annotations(mutant.code)
            if tree not in known:
                known.add(tree)
                drawn.append(before + mutant.code + after)
                shown.append(f"{place.first + mutant.line - 1}: {mutant.description}")
        if len(drawn) == MUTANTS:
            break
    return len(every), drawn, shown


def without_annotations(text: str) -> str:
    """Return the program but for its annotations: changing these changes nothing, or stops the module from being imported."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
    return ast.dump(tree)


def own_tests(place: Place, site: Path, sdists: Path) -> tuple[Path, list[str]]:
    """Return the folder, and the test files in it that name the function."""
    top = place.module.partition(".")[0]
    names = {
        distribution.name
        for distribution in metadata.distributions(path=[str(site)])
        for file in distribution.files or ()
        if file.parts[0].removesuffix(".py") == top
    }
    word = re.compile(rf"\b{re.escape(place.name)}\b")
    for folder in [*unpacked(names, sdists), site / top]:
        files = [
            path for path in sorted(folder.rglob("*.py"))
            if re.fullmatch(r"test_.*|.*_tests?|tests?", path.stem)
            and word.search(path.read_text(encoding="utf-8", errors="replace"))
        ]  # fmt: skip
        if files:
            root = site if folder.parent == site else folder
            return root, [str(path.relative_to(root)) for path in files]
    return site, []


def unpacked(names: set[str], sdists: Path) -> Iterator[Path]:
    """Yield the test folders of source distributions, without the package itself, which would be imported."""
    for name in names:
        pattern = re.sub(r"[-_.]", "?", name.lower())
        for archive in sdists.glob("*.tar.gz"):
            if not re.fullmatch(pattern.replace("?", "[-_.]") + r"-\d[^-]*", archive.name.lower()):
                continue
            folder = sdists / archive.name.removesuffix(".tar.gz")
            if not folder.exists():
                with tarfile.open(archive) as tar:
                    members = [each for each in tar.getmembers() if of_tests(each.name)]
                    tar.extractall(sdists, members, filter="data")
            if folder.exists():
                yield folder


def of_tests(name: str) -> bool:
    """Whether a file of a source distribution is one of its tests."""
    parts = Path(name).parts[1:]
    return bool(parts) and (
        parts[0] in ("test", "tests", "testing")
        or (len(parts) == 1 and bool(re.fullmatch(r"test_.*\.py|tests\.py|conftest\.py", parts[0])))
    )


def compare(
    target: str, environment: Environment, options: argparse.Namespace, slow: bool
) -> dict[str, Any]:
    """Ask every tool about one function, and run what it has written on the mutants."""
    try:
        place = environment.locate(target)
    except LookupError as error:
        return {"target": target, "error": str(error)}
    folder = (options.results / "files" / re.sub(r"\W+", "_", target)).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    total, mutants, shown = mutants_of(place, options.seed)
    tools = {
        tool: environment.ask(tool, place, folder, options.timeout, options.seed)
        for tool in TOOLS
        if tool != PYNGUIN or slow
    }
    root, own = own_tests(place, environment.site, options.sdists.resolve())
    (folder / "empty.ini").touch()
    job = {
        "module": place.module, "file": place.file, "first": place.first, "last": place.last,
        "mutants": mutants, "folder": str(folder), "ini": str(folder / "empty.ini"),
        "files": {tool: FILES[tool] for tool in TOOLS if tools.get(tool, {}).get("written")},
        "own": {"folder": str(root), "files": own},
    }  # fmt: skip
    (folder / "job.json").write_text(json.dumps(job))
    (folder / "mutants.txt").write_text("\n".join(shown) + "\n")
    done = subprocess.run(
        [str(environment.python), str(Path(__file__).with_name("run_mutants.py")), str(folder / "job.json")],
        capture_output=True, text=True, env=environment.variables(),
    )  # fmt: skip
    if done.returncode:
        return {"target": target, "error": done.stderr[-300:]}
    found = json.loads(done.stdout)
    for name, row in found.items():
        tools[name] = tools.get(name, {}) | row
    return {"target": target, "mutants": total, "drawn": len(mutants), "tools": tools}


def main() -> None:
    """Compare on what is left, and print what is known."""
    parser = parser_for(__doc__)
    parser.add_argument(
        "--tools", type=Path, required=True, help="the environment of the other tools"
    )
    parser.add_argument(
        "--sdists", type=Path, required=True, help="source distributions, as downloaded"
    )
    parser.add_argument("--results", type=Path, default=Path("compare"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--timeout",
        type=float,
        default=20.0,
        help="of codea1 testgen, in seconds by the clock; Pynguin's search has three times that",
    )
    parser.add_argument(
        "--pynguin", type=int, default=24, metavar="N", help="ask Pynguin for the first N only"
    )
    parser.add_argument(
        "--part", default="0/1", metavar="K/N", help="every Nth function from the Kth on"
    )
    options = parser.parse_args()
    environment = Environment((options.tools / "bin" / "python").absolute(), options.site.resolve())
    options.results.mkdir(parents=True, exist_ok=True)
    log = options.results / "compared.jsonl"
    rows = Log(log)
    order = LIST.read_text(encoding="utf-8").split()
    random.Random(options.seed).shuffle(order)
    known = {row["target"] for row in rows}  # also of other parts that run at the same time
    part, parts = map(int, options.part.split("/"))
    left = [each for each in order[part::parts] if each not in known]
    try:
        for target in track(left, "functions"):
            slow = order.index(target) < options.pynguin
            row = compare(target, environment, options, slow)
            rows.add(row)
    except KeyboardInterrupt:
        print("Stopped; the same command goes on.")
    show(Log(log), environment)


def show(rows: list[dict[str, Any]], environment: Environment) -> None:
    """Print a table of the tools, over all functions that are done."""
    console = Console(width=150)
    good = [row for row in rows if row.get("drawn")]
    console.print(
        f"{len(good)} functions and classes, {sum(row['drawn'] for row in good)} mutants of "
        f"{sum(row['mutants'] for row in good)}; {len(rows) - len(good)} could not be judged",
        highlight=False,
    )
    table = Table(
        "tool", "files", "pass", "mutants killed", "mean share [95%]", "CPU s: median", "sum", "by the clock: median"
    )  # fmt: skip
    quick = tuple(tool for tool in TOOLS if tool != PYNGUIN)
    asked = [row for row in good if PYNGUIN in row["tools"]]
    with_own = [row for row in good if row["tools"].get(OWN, {}).get("tests")]
    for title, some, names in (
        ("all", good, quick), ("Pynguin was asked", asked, TOOLS), ("with tests of their own", with_own, (*quick, OWN)),
    ):  # fmt: skip
        table.add_section()
        table.add_row(f"{title}: {len(some)}")
        for name in names if some else ():
            table.add_row(name, *figures(name, some))
    console.print(table)
    console.print(f"{environment.versions()}; {this_machine()}", soft_wrap=True, highlight=False)
    console.print(f"python {shlex.join(sys.argv)}", soft_wrap=True, highlight=False)


def figures(name: str, rows: list[dict[str, Any]]) -> list[str]:
    """Return what a tool did with these functions."""
    found = [row["tools"].get(name, {}) for row in rows]
    killed = [each.get("killed", "").count("1") for each in found]
    shares = [[[count / row["drawn"]] for count, row in zip(killed, rows, strict=True)]]
    share = bootstrap(
        np.array(shares[0]), lambda tables: tables.mean(axis=(1, 2)), np.random.default_rng(0)
    )
    words = [
        str(sum(each.get("written", bool(each)) for each in found)),
        str(sum(each.get("passes", False) for each in found)) if name != OWN else "",
        f"{sum(killed)} of {sum(row['drawn'] for row in rows)}",
        str(share),
    ]
    if name == OWN:
        return words
    spent, clock = (sorted(each[key] for each in found) for key in ("cpu", "seconds"))
    middle = len(found) // 2
    return [*words, f"{spent[middle]:.1f}", f"{sum(spent):.0f}", f"{clock[middle]:.0f}"]


if __name__ == "__main__":
    main()
