"""pytest in a forked process, with a module that has another text: what becomes of each test."""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import json
import math
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

WALL_SECONDS = 300
"""By the clock, for tests that wait for something; the machine may be busy."""
MEMORY = 6 << 30


class Mutated(importlib.machinery.SourceFileLoader):
    """Loads a module with another text, and keeps nothing compiled of it."""

    text = b""

    def get_data(self, path: str) -> bytes:  # noqa: D102
        return self.text if path == self.path else super().get_data(path)

    def path_stats(self, path: str) -> Any:  # noqa: D102
        raise OSError


class Finder(importlib.abc.MetaPathFinder):
    """Finds one module as it is found without this, with another text."""

    def __init__(self, module: str, text: str) -> None:
        self.module, self.text = module, text.encode()

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:  # noqa: D102
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
        self.touched = False

    def _say(self, *event: object) -> None:
        os.write(self.pipe, json.dumps(event).encode() + b"\n")

    def _fail(self, test: str) -> None:
        self.failed.add(self.stop.get(file_of(test)))
        self._say("failed", test)

    def pytest_collectreport(self, report: Any) -> None:  # noqa: D102
        if report.failed:
            self._fail(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:  # noqa: D102
        items[:] = [
            each for each in items
            if each.nodeid not in self.without and (self.only is None or each.nodeid in self.only)
        ]  # fmt: skip

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: Any) -> None:  # noqa: D102
        if self.stop and self.stop.get(file_of(item.nodeid)) in self.failed:
            pytest.skip("another test of the suite has failed")
        self.touched, self.started = False, time.process_time()
        if self.place:
            sys.setprofile(self._profile)

    def _profile(self, frame: Any, event: str, _: Any) -> None:
        file, first, last = self.place
        code = frame.f_code
        if event == "call" and first <= code.co_firstlineno <= last and code.co_filename == file:
            self.touched = True

    def pytest_runtest_logreport(self, report: Any) -> None:  # noqa: D102
        if report.failed:
            self._fail(report.nodeid)
        elif report.when == "call" and (report.passed or hasattr(report, "wasxfail")):
            self._say("passed", report.nodeid)
        if report.when == "teardown":
            sys.setprofile(None)
            if self.touched:
                self._say("touched", report.nodeid, time.process_time() - self.started)
            self.touched = False

    def pytest_sessionfinish(self) -> None:  # noqa: D102
        loaded = [
            name for name in sys.modules
            if name.partition(".")[0] in sys.stdlib_module_names and name != "__main__"
        ]  # fmt: skip
        self._say("end", resource.getrusage(resource.RUSAGE_SELF).ru_utime, loaded)


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
    """Return what is said of the tests of some files; the last word is "end", unless they were ended.

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
            options.append("--continue-on-collection-errors")  # of one file: the others are run
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
