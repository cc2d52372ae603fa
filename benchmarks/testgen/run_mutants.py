"""Run test files on mutants of a module, with pytest, in an environment that has pytest and Hypothesis.

    PYTHONPATH=SITE python run_mutants.py JOB.json

compare.py writes the job and reads the JSON object that is printed. Every run is pytest in a process of its own that
is forked from this one, which has imported pytest but nothing of the package; the module is imported there with the
mutant's text in the place of its own. Hypothesis is made to draw the same values each time, without deadlines: what
differs then is the mutant. A mutant is killed by a file if one of its tests fails that does not fail without it,
or takes too much processor time.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import random
import sys
import warnings
from pathlib import Path
from typing import Any

import hypothesis
from forked_pytest import file_of, ids, run, whole

BASELINES = 3
"""A test that fails in one of so many runs without a mutant is left out."""
OWN_SECONDS = 3.0
"""Processor time of a package's own tests; of those that take more in all, so many are drawn."""


class Suites:
    """Files of a folder by name, and which of their tests can be used."""

    def __init__(
        self,
        job: dict[str, Any],
        folder: str,
        files: dict[str, list[str]],
        only: set[str] | None = None,
    ) -> None:
        if len(files) > 1:  # one that ends the interpreter would take the others with it
            usable = {name for name, some in files.items() if whole(run(job, folder, some))}
            files = {name: some if name in usable else [] for name, some in files.items()}
        self.job, self.folder, self.files, self.only = job, folder, files, only
        every = [each for some in files.values() for each in some]
        runs = [run(job, folder, every, only=only) for _ in range(BASELINES)]
        ended = [each for each in runs if whole(each)]
        # Modules of the standard library are the same for all mutants.
        for name in ended[0][-1][2] if ended else ():
            with contextlib.suppress(BaseException), warnings.catch_warnings(action="ignore"):
                importlib.import_module(name)
        self.without = frozenset().union(*(ids(each, "failed") for each in runs))
        passed = ids(runs[0], "passed") if len(ended) == BASELINES else set()
        self.passed = passed - self.without
        self.seconds = 2 + 5 * max((each[-1][1] for each in ended), default=0)

    def counts(self) -> dict[str, dict[str, Any]]:
        """Return tests that pass and fail without mutants, for each name."""
        return {
            name: {
                "tests": sum(file_of(each) in some for each in self.passed),
                "failing": sum(file_of(each) in some for each in self.without),
            }
            for name, some in self.files.items()
        }

    def kills(self, text: str) -> set[str]:
        """Which of the names kill a mutant."""
        names = [name for name, count in self.counts().items() if count["tests"]]
        if not names:
            return set()
        killed, ended = self.look(text, names)
        if ended:
            return killed
        for name in names:  # one of them was ended; the others are not to blame
            if name not in killed:
                found, ended = self.look(text, [name]) if len(names) > 1 else (killed, ended)
                if found or not ended:
                    killed.add(name)
        return killed

    def look(self, text: str, names: list[str]) -> tuple[set[str], bool]:
        """Which of them fail, and whether they came to their end."""
        of = {file: name for name in names for file in self.files[name]}
        events = run(
            self.job, self.folder, list(of), text, self.only, self.without, of, seconds=self.seconds
        )
        killed = {of[file_of(each)] for each in ids(events, "failed") if file_of(each) in of}
        return killed, whole(events)


def own_tests(job: dict[str, Any]) -> Suites | None:
    """Return the tests of the package that call the function."""
    own = job["own"]
    if not own["files"]:
        return None
    place = [job["file"], job["first"], job["last"]]
    events = run(job, own["folder"], own["files"], place=place, seconds=300)
    touched = [(each[1], each[2]) for each in events if each[0] == "touched"]
    random.Random(0).shuffle(touched)
    drawn, spent = set(), 0.0
    for test, seconds in touched:
        if spent + seconds <= OWN_SECONDS:
            drawn.add(test)
            spent += seconds
    files = sorted({file_of(each) for each in drawn})
    return Suites(job, own["folder"], {"own": files}, drawn) if files else None


def main() -> None:
    os.nice(2)  # tools that are asked elsewhere at the same time have budgets by the clock
    job = json.loads(Path(sys.argv[1]).read_text())
    hypothesis.settings.register_profile(
        "compare", derandomize=True, deadline=None, database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )  # fmt: skip
    hypothesis.settings.load_profile("compare")
    suites = Suites(job, job["folder"], {name: [file] for name, file in job["files"].items()})
    own = own_tests(job)
    counts = suites.counts() | (own.counts() if own else {})
    killed = dict.fromkeys(counts, "")
    for text in job["mutants"]:
        found = suites.kills(text) | (own.kills(text) if own else set())
        for name in counts:
            killed[name] += "01"[name in found]
    print(json.dumps({name: counts[name] | {"killed": killed[name]} for name in counts}))


if __name__ == "__main__":
    main()
