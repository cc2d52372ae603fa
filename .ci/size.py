"""Raw lines of each room of codea1_env beside its budget, files over 500 lines, and functions over 60.

`make size` prints it. `--strict` exits with 1 where something is over; a room may be 5% over.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "codea1_env"
# Raw lines that a room may have. A folder of its own comes before the folder around it.
BUDGETS = {
    "agents/llm": 2_800,
    "training/ray": 900,
    "agents": 2_150,
    "baselines": 3_000,
    "cli": 1_900,
    "evaluation": 2_600,
    "integrations": 1_400,
    "mutation": 580,
    "problem_sets": 2_500,
    "reading": 2_700,
    "report": 1_350,
    "sandbox": 7_100,
    "suite": 1_200,
    "support and rendering": 900,
    "training": 3_100,
    "top": 3_900,
}
IN_ROOM = {
    "rendering": "support and rendering",
    "support": "support and rendering",
    "judging": "top",
}
PACKAGE_LINES, PACKAGE_FILES = 37_000, 195
TEST_LINES, DOC_WORDS, CHANGELOG_LINES = 23_000, 16_000, 100
FILE_LINES, FUNCTION_LINES, SLACK = 500, 60, 1.05


def lines_of(path: Path) -> int:
    """Count the raw lines of a file."""
    return path.read_text(encoding="utf-8").count("\n")


def room_of(path: Path) -> str:
    """Find the room whose budget a file of the package counts for."""
    parts = path.relative_to(PACKAGE).parts[:-1]
    if not parts:
        return "top"
    nested = "/".join(parts[:2])
    return nested if nested in BUDGETS else IN_ROOM.get(parts[0], parts[0])


def long_functions(path: Path) -> list[str]:
    """Name the functions of a file that have more than 60 lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: {length} lines"
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES
    ]


def main() -> int:
    """Print the table. Return 1 with `--strict` where something is over, else 0."""
    files = sorted(path for path in PACKAGE.rglob("*.py") if not path.is_symlink())
    rooms: Counter[str] = Counter()
    for path in files:
        rooms[room_of(path)] += lines_of(path)
    docs = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    tests = sum(lines_of(path) for path in (ROOT / "tests").rglob("*.py"))
    rows = [(room, rooms[room], BUDGETS.get(room, 0)) for room in sorted(set(rooms) | set(BUDGETS))]
    rows += [
        ("package", sum(rooms.values()), PACKAGE_LINES),
        ("files of the package", len(files), PACKAGE_FILES),
        ("tests", tests, TEST_LINES),
        (
            "words of docs and README",
            sum(len(path.read_text(encoding="utf-8").split()) for path in docs),
            DOC_WORDS,
        ),
        ("CHANGELOG", lines_of(ROOT / "CHANGELOG.md"), CHANGELOG_LINES),
    ]
    over = []
    for name, have, may in rows:
        mark = "  over" if have > may * SLACK else ""
        over += [name] if mark else []
        print(f"{name:26}{have:8,} of {may:7,}{mark}")
    large = [
        f"{path.relative_to(ROOT)}: {count} lines"
        for path in files
        if (count := lines_of(path)) > FILE_LINES
    ]
    large += [text for path in files for text in long_functions(path)]
    print("\n".join(["", *large]) if large else "\nNo file over 500 lines, no function over 60.")
    return 1 if "--strict" in sys.argv[1:] and (over or large) else 0


if __name__ == "__main__":
    sys.exit(main())
