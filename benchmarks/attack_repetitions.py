"""Repeats the attack suite of the sandbox, on a quiet machine and on a busy one, and counts what went wrong.

Every test of the suite says what the verdict must be: one that fails is a forged pass, a right program that
was failed, or something that an attack has left behind; each is printed. Exit code 1 if there is any.

    python benchmarks/attack_repetitions.py --repetitions 20
    python benchmarks/attack_repetitions.py --repetitions 20 --busy 2   # two spinning processes for each core

Needs the extra test. Run as root and as an ordinary user: the layers differ.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
SUITE = ROOT / "tests" / "sandbox" / "attacks"


def _spin() -> None:
    # Where the kernel shares the processors out among sessions, processes of one session are no load for another.
    os.setsid()
    parent = os.getppid()
    while os.getppid() == parent:  # not longer than whoever started it
        sum(range(10_000))


@contextmanager
def busy(processes: int) -> Iterator[None]:
    spinning = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(processes)]
    for process in spinning:
        process.start()
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.join()


def repeat(levels: str) -> tuple[int, dict[str, str]]:
    """How many attacks were made, and what went wrong in which."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        chosen = ["-k", levels] if levels else []
        done = subprocess.run(
            [*command, str(SUITE), f"--junitxml={report}", *chosen],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        if not report.exists():
            sys.exit(done.stdout + done.stderr)
        cases = list(ElementTree.parse(report).iter("testcase"))
    wrong = {}
    for case in cases:
        for failure in (*case.findall("failure"), *case.findall("error")):
            name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
            wrong[name] = (failure.get("message") or "").partition("\n")[0][:200]
    skipped = sum(case.find("skipped") is not None for case in cases)
    return len(cases) - skipped, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--busy", type=int, default=0, help="spinning processes for each core")
    parser.add_argument("--levels", default="", help="only these, such as 'kernel or namespaces'")
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    attacks, seconds = 0, time.monotonic()
    wrong: Counter[str] = Counter()
    with busy(arguments.busy * cores):
        for number in range(1, arguments.repetitions + 1):
            made, found = repeat(arguments.levels)
            attacks += made
            wrong.update(found.keys())
            print(f"{number}: {made} tests, {len(found)} wrong", flush=True)
            for name, message in found.items():
                print(f"    {name}: {message}", flush=True)
    seconds = time.monotonic() - seconds
    print(
        f"{arguments.repetitions} repetitions, {attacks} tests, {sum(wrong.values())} wrong, {seconds:.0f} s; "
        f"{arguments.busy} spinning processes for each of {cores} cores; user {os.geteuid()}, "
        f"Python {platform.python_version()}, Linux {platform.release()}"
    )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
