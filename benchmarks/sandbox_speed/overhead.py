"""What one job costs beside a bare fork that does the same work without isolation."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from statistics import mean, median

from codea1_env.problems import Problem
from codea1_env.sandbox import Outcome, Sandbox, examine
from sandbox_speed import processes
from sandbox_speed.baselines import Bare, BareFork
from sandbox_speed.config import Progress, SpeedConfig, SpeedFigure, paired
from sandbox_speed.jobs import SpeedSubject, subjects

LEVELS = {"kernel": 1.4, "namespaces": 1.6}
"""Level -> how much longer than a bare fork its median job may take."""
PROGRAM = 2.5

Found = list[tuple[str, str]]


@dataclass
class Way:
    """One way to run a subject: it returns the seconds and what was found, in the baseline's form."""

    run: Callable[[SpeedSubject], tuple[float, Found]]
    seconds: dict[str, list[float]] = field(default_factory=dict)
    """For each subject: the first time, and then of each repeat."""
    found: dict[str, Found] = field(default_factory=dict)

    def once(self, subject: SpeedSubject) -> None:
        """Run a subject and note what happened."""
        seconds, self.found[subject.task_id] = self.run(subject)
        self.seconds.setdefault(subject.task_id, []).append(seconds)

    def median_of(self, subject: SpeedSubject) -> float:
        """Milliseconds of a subject's median repeat, the first time left out."""
        return 1e3 * median(self.seconds[subject.task_id][1:])

    def first_of(self, subject: SpeedSubject) -> float:
        """Milliseconds of a subject's first time."""
        return 1e3 * self.seconds[subject.task_id][0]


def measure(
    problems: Sequence[Problem], config: SpeedConfig, level: str | None, progress: Progress
) -> Iterator[SpeedFigure]:
    """Compare calls and test programs at both levels with bare forks, job by job in turn."""
    with ExitStack() as stack:
        levels = {}
        for name in LEVELS:
            if examine(name).works:
                levels[name] = stack.enter_context(Sandbox(level=name))
            else:
                why = examine(name).error
                yield SpeedFigure("overhead", f"level {name}", None, note=f"not available: {why}")
        if not levels:
            return
        jobs = subjects(problems)
        if not jobs:
            note = f"none of {len(problems)} problems has 5 calls with literal arguments"
            yield SpeedFigure("overhead", "5 calls", None, note=note)
            return
        slim = stack.enter_context(BareFork(job.code for job in jobs))
        yield from _calls(jobs, levels, slim, config, progress)
        texts = [text for job in jobs for text in (job.code, job.check)]
        yield from _checks(jobs, levels, stack.enter_context(BareFork(texts)), config, progress)


def _calls(
    jobs: Sequence[SpeedSubject],
    levels: dict[str, Sandbox],
    slim: BareFork,
    config: SpeedConfig,
    progress: Progress,
) -> Iterator[SpeedFigure]:
    bare = Way(lambda job: _bare(slim.call(job.code, job.entry_point, job.calls)))
    ways = {name: Way(partial(_sandbox_calls, sandbox)) for name, sandbox in levels.items()}
    _in_turn([bare, *ways.values()], jobs, config.repeats, progress, "calls")
    for name, way in ways.items():
        differ = sum(way.found[job.task_id] != bare.found[job.task_id] for job in jobs)
        yield _median_job(f"5 calls, {name}", way, bare, jobs, LEVELS[name], "programs", differ)
    progress("overhead: jobs back to back")
    for name, way in ways.items():
        blocks = [
            (*_block(bare, jobs, slim.pid), *_block(way, jobs, None)) for _ in range(config.repeats)
        ]
        theirs, their_cpu, ours, our_cpu = zip(*blocks, strict=True)
        yield SpeedFigure(
            "overhead", f"5 calls, {name}, back to back", median(ours), "ms", median(theirs),
            note=f"means of {len(jobs)} jobs in a row, nothing in between",
        )  # fmt: skip
        yield SpeedFigure(
            "overhead", f"5 calls, {name}, CPU time", mean(our_cpu), "ms", mean(their_cpu),
            note="of all processes, this one included for the sandbox",
        )  # fmt: skip


def _checks(
    jobs: Sequence[SpeedSubject],
    levels: dict[str, Sandbox],
    slim: BareFork,
    config: SpeedConfig,
    progress: Progress,
) -> Iterator[SpeedFigure]:
    bare = Way(lambda job: _bare(slim.check(job.code, job.check, seconds=config.time_limit)))
    ways = {name: Way(partial(_sandbox_check, sandbox, config)) for name, sandbox in levels.items()}
    repeats = max(1, config.repeats // 3)
    _in_turn([bare, *ways.values()], jobs, repeats, progress, "test programs")
    for name, way in ways.items():
        what = f"check program, {name}"
        passed = [job for job in jobs if _passed(way, job) and _passed(bare, job)]
        differ = sum(_passed(way, job) != _passed(bare, job) for job in jobs)
        if not passed:
            yield SpeedFigure("overhead", what, None, note="no reference passes")
            continue
        yield _median_job(what, way, bare, passed, PROGRAM, "that pass", differ)
        first, theirs = ([each.first_of(job) for job in passed] for each in (way, bare))
        yield SpeedFigure(
            "overhead", f"{what}, first time", median(first), "ms", median(theirs),
            note="the test program is new and is parsed",
        )  # fmt: skip


def _median_job(
    what: str,
    way: Way,
    bare: Way,
    jobs: Sequence[SpeedSubject],
    at_most: float,
    which: str,
    differ: int,
) -> SpeedFigure:
    ours, theirs = ([each.median_of(job) for job in jobs] for each in (way, bare))
    same = f"results of {differ} DIFFER" if differ else "same results"
    return SpeedFigure(
        "overhead", f"{what}, median job", median(ours), "ms", median(theirs), at_most,
        note=f"{len(jobs)} {which}; {paired(ours, theirs)}; {same}",
    )  # fmt: skip


def _in_turn(
    ways: Sequence[Way], jobs: Sequence[SpeedSubject], repeats: int, progress: Progress, what: str
) -> None:
    """Run every job in every way, one after the other, beginning with another way each time.

    Once more than `repeats`: the first time also starts processes and plans tests.
    """
    for way in ways:
        way.run(jobs[0])  # the first worker starts
    for repeat in range(1 + repeats):
        for number, job in enumerate(jobs):
            if number % 10 == 0:
                progress(f"overhead: {what}, {repeat}/{repeats}, {number}/{len(jobs)}")
            first = (number + repeat) % len(ways)
            for way in (*ways[first:], *ways[:first]):
                way.once(job)


def _block(way: Way, jobs: Sequence[SpeedSubject], pid: int | None) -> tuple[float, float]:
    """Milliseconds and CPU milliseconds per job, of jobs in a row.

    Args:
        way: How to run them.
        jobs: The jobs.
        pid: The process whose CPU time counts, with its children; None for this one and all that it has
            started.
    """
    before = _cpu_time(pid)
    start = time.perf_counter()
    inside = sum(way.run(job)[0] for job in jobs)
    # The baseline is timed in its own process: what this one needs to reach it does not count.
    seconds = inside if pid is not None else time.perf_counter() - start
    return 1e3 * seconds / len(jobs), 1e3 * (_cpu_time(pid) - before) / len(jobs)


def _cpu_time(pid: int | None) -> float:
    if pid is not None:
        found = processes.process(pid)
        return found.cpu_time if found is not None else 0.0
    ours = processes.descendants(os.getpid())
    return time.process_time() + sum(each.cpu_time for each in ours)


def _bare(answer: Bare) -> tuple[float, Found]:
    return answer.seconds, answer.found or []


def _sandbox_calls(sandbox: Sandbox, job: SpeedSubject) -> tuple[float, Found]:
    start = time.perf_counter()
    results = sandbox.call(job.code, job.entry_point, job.calls)
    seconds = time.perf_counter() - start
    return seconds, [
        ("ok", repr(result.value))
        if result.outcome is Outcome.PASS
        else ("raised", result.error or result.message)
        for result in results
    ]


def _sandbox_check(sandbox: Sandbox, config: SpeedConfig, job: SpeedSubject) -> tuple[float, Found]:
    start = time.perf_counter()
    (result,) = sandbox.run_tests(
        job.code, [job.check], entry_point=job.entry_point, limits=config.generous
    )
    return time.perf_counter() - start, [("ok" if result.passed else "raised", "")]


def _passed(way: Way, job: SpeedSubject) -> bool:
    found = way.found[job.task_id]
    return bool(found) and found[0][0] == "ok"
