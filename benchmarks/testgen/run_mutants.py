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
import importlib.abc
import importlib.machinery
import json
import math
import os
import random
import resource
import select
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

BASELINES = 3
"""A test that fails in one of so many runs without a mutant is left out."""
OWN_SECONDS = 3.0
"""Processor time of a package's own tests; of those that take more in all, so many are drawn."""
WALL_SECONDS = 300
"""By the clock, for tests that wait for something; the machine may be busy."""
MEMORY = 6 << 30


class Mutated(importlib.machinery.SourceFileLoader):
    """Loads a module with another text, and keeps nothing compiled of it."""

    text = b""

    def get_data(self, path: str) -> bytes:
        return self.text if path == self.path else super().get_data(path)

    def path_stats(self, path: str) -> Any:
        raise OSError


class Finder(importlib.abc.MetaPathFinder):
    def __init__(self, module: str, text: str) -> None:
        self.module, self.text = module, text.encode()

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if name != self.module or spec is None or spec.origin is None:
            return None
        loader = Mutated(name, spec.origin)
        loader.text = self.text
        spec.loader = loader
        return spec


def file_of(test: str) -> str:
    return test.partition("::")[0]


class Recorder:
    """Says on a pipe what becomes of each test, and which of them call the function."""

    def __init__(
        self, pipe: int, only: set[str] | None, without: set[str], stop: dict[str, str], place: Any
    ) -> None:
        self.pipe, self.only, self.without, self.stop, self.place = pipe, only, without, stop, place
        self.failed: set[str | None] = set()

    def say(self, *event: object) -> None:
        os.write(self.pipe, json.dumps(event).encode() + b"\n")

    def fail(self, test: str) -> None:
        self.failed.add(self.stop.get(file_of(test)))
        self.say("failed", test)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.fail(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [
            each for each in items
            if each.nodeid not in self.without and (self.only is None or each.nodeid in self.only)
        ]  # fmt: skip

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: Any) -> bool | None:
        if self.stop and self.stop.get(file_of(item.nodeid)) in self.failed:
            return True
        self.touched, self.started = False, time.process_time()
        if self.place:
            sys.setprofile(self.profile)
        return None

    def profile(self, frame: Any, event: str, _: Any) -> None:
        file, first, last = self.place
        code = frame.f_code
        if event == "call" and first <= code.co_firstlineno <= last and code.co_filename == file:
            self.touched = True

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.fail(report.nodeid)
        elif report.when == "call" and report.passed:
            self.say("passed", report.nodeid)
        if report.when == "teardown":
            sys.setprofile(None)
            if self.touched:
                self.say("touched", report.nodeid, time.process_time() - self.started)

    def pytest_sessionfinish(self) -> None:
        loaded = [
            name for name in sys.modules
            if name.partition(".")[0] in sys.stdlib_module_names and name != "__main__"
        ]  # fmt: skip
        self.say("end", resource.getrusage(resource.RUSAGE_SELF).ru_utime, loaded)


def run(
    job: dict[str, Any],
    folder: str,
    files: list[str],
    text: str | None = None,
    only: set[str] | None = None,
    without: frozenset[str] = frozenset(),
    stop: dict[str, str] | None = None,
    place: Any = None,
    seconds: float = 120,
) -> list[Any]:
    """What is said of the tests of some files; the last word is "end", unless they were ended.

    `stop` has the suite of each file: after its first failure the others of a suite are not run.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            os.setsid()
            os.close(reading)
            prepare(folder, seconds)
            if text is not None:
                sys.meta_path.insert(0, Finder(job["module"], text))
            recorder = Recorder(writing, only, set(without), stop or {}, place)
            options = ["-q", "-p", "no:cacheprovider", "-p", "no:faulthandler", "-c", job["ini"]]
            pytest.main([*options, "--rootdir", folder, *files], plugins=[recorder])
        os._exit(0)
    os.close(writing)
    said = b"".join(read(reading, WALL_SECONDS))
    os.close(reading)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return [json.loads(line) for line in said.splitlines() if line.endswith(b"]")]


def prepare(folder: str, seconds: float) -> None:
    os.chdir(folder)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds) + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def read(pipe: int, seconds: float) -> Iterator[bytes]:
    end = time.monotonic() + seconds
    while select.select([pipe], [], [], max(0.0, end - time.monotonic()))[0]:
        some = os.read(pipe, 1 << 16)
        if not some:
            return
        yield some


def ids(events: list[Any], kind: str) -> set[str]:
    return {event[1] for event in events if event[0] == kind}


def whole(events: list[Any]) -> bool:
    return bool(events) and events[-1][0] == "end"


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
        # Five times what it takes, and five seconds.
        self.seconds = 5 + 5 * max((each[-1][1] for each in ended), default=0)

    def counts(self) -> dict[str, dict[str, Any]]:
        """Tests that pass and fail without mutants, for each name."""
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
    """The tests of the package that call the function."""
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
    os.nice(5)  # tools that are asked elsewhere at the same time have budgets by the clock
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
