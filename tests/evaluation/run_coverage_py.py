"""What coverage.py says. Runs by itself: programs and tests on standard input as JSON are executed here."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path


def measure(folder: Path, number: int, code: str, entry_point: str, tests: list[str]) -> list[int]:
    import coverage  # only where it is needed: an extra

    path = folder / f"program_{number}.py"
    path.write_text(code, encoding="utf-8")
    tracer = coverage.Coverage(data_file=None, branch=True, config_file=False, include=[str(path)])
    namespace: dict[str, object] = {"__name__": "program"}
    tracer.start()
    exec(compile(code, str(path), "exec"), namespace)
    for test in tests:
        try:
            exec(compile(test, "<test>", "exec"), {entry_point: namespace[entry_point]})
        except Exception:
            continue
    tracer.stop()
    report = folder / "report.json"
    tracer.json_report(outfile=str(report))
    totals = json.loads(report.read_text(encoding="utf-8"))["totals"]
    names = ("num_statements", "covered_lines", "num_branches", "covered_branches")
    return [totals[name] for name in names]


def main() -> None:
    cases = json.load(sys.stdin)
    sys.stdout = sys.stderr  # of the programs
    with tempfile.TemporaryDirectory() as folder:
        found = [measure(Path(folder), number, *case) for number, case in enumerate(cases)]
    json.dump(found, sys.__stdout__)


if __name__ == "__main__":
    main()
