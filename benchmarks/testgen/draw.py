"""Draw functions and classes of installed packages by a seed, before anybody has looked at what testgen says of them.

    pip install --no-deps --target SITE NAME ...
    python benchmarks/testgen/draw.py --site SITE --names names.txt --each 4 --seed 18 > list.txt

Drawn are public functions and classes (as `codea1 testgen FOLDER` chooses them) that have a docstring, or whose
arguments are all annotated. Nothing is imported.
"""

from __future__ import annotations

import ast
import random
import sys
from importlib import metadata
from pathlib import Path
from typing import TypeGuard

from packages import parser_for

from codea1_env.testgen.source import public

_NO_CODE = {"test", "tests", "testing", "conftest.py", "__main__.py", "setup.py", "_version.py"}


def main() -> int:
    parser = parser_for(__doc__)
    parser.add_argument("--names", type=Path, required=True, help="a package of the index per line")
    parser.add_argument("--each", type=int, default=4, help="functions of each package, at most")
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--without", type=Path, nargs="*", default=[], help="lists drawn before")
    options = parser.parse_args()
    known = {line for file in options.without for line in file.read_text().splitlines()}
    rng = random.Random(options.seed)
    versions, lines = [], []
    for name in sorted(options.names.read_text().split(), key=str.lower):
        found = metadata.Distribution.discover(name=name, path=[str(options.site)])
        one = next(iter(found), None)
        if one is None:
            continue
        files = sorted(str(file) for file in one.files or () if _is_code(str(file)))
        places = [each for file in files for each in _places(options.site, file)]
        places = [each for each in places if each not in known]
        if places:
            versions.append(f"# {name}=={one.version}")
            lines += sorted(rng.sample(places, min(options.each, len(places))))
    print("\n".join([*versions, "", *lines]))
    return 0


def _is_code(file: str) -> bool:
    parts = set(Path(file).parts)
    return file.endswith(".py") and ".." not in parts and not parts & _NO_CODE


def _places(site: Path, file: str) -> list[str]:
    """Return the functions and classes of a file that can be drawn."""
    try:
        source = (site / file).read_text(encoding="utf-8")
        tree = ast.parse(source)
    except (OSError, SyntaxError, ValueError):
        return []
    names = set(public(source)[0])
    return [f"{file}::{node.name}" for node in tree.body if _is_drawn(node, names)]


def _is_drawn(
    node: ast.stmt, names: set[str]
) -> TypeGuard[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    if isinstance(node, ast.ClassDef):
        return node.name in names and ast.get_docstring(node) is not None
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or node.name not in names:
        return False
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    annotated = bool(given) and all(each.annotation for each in given)
    return ast.get_docstring(node) is not None or annotated


if __name__ == "__main__":
    sys.exit(main())
