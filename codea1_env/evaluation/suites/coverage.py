"""Line and branch coverage of a reference solution by suites of tests.

The reference runs in the sandbox under a trace function and says at the end, when the tests' own processes
are gone, which lines it has gone through (`Job.final_call`). What that amounts to is computed here, from what the
parser of coverage.py (extra `evaluation`) says of the reference, in a sandbox of its own. A test can add to it only by
what it makes the reference do. Comments that tell coverage.py to leave a line out have no effect.
"""

from __future__ import annotations

import dis
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from codea1_env.evaluation.suites.packaged import Arc, coverable
from codea1_env.oracle import BrokenReferenceError, gather
from codea1_env.problems import Problem
from codea1_env.sandbox import Job, JobResult, Limits, Outcome, Sandbox

_FINAL_CALL = "codea1_env_executed_arcs"
_SLOWER = 20.0
"""A traced program may take so many times as long as the sandbox allows others."""
_ENDED = (
    Outcome.TIMEOUT,
    Outcome.MEMORY,
    Outcome.OUTPUT_LIMIT,
    Outcome.EXITED,
    Outcome.SIGNALLED,
    Outcome.FORBIDDEN,
)
"""Outcomes of tests after which the program's process may not be there any more."""

# As tracers of lines in C do it: an arc goes from the line before, or from -n on entering a function that
# begins in line n, and to -n on leaving it. A generator that is resumed goes on at the line where it yielded.
# To be traced costs 0.3 microseconds a line, so a function is let go when there is nothing left to see in it.
_TRACED = """def {final_call}():
    import sys
    import threading

    wanted, first, detours = {wanted!r}, {first!r}, {detours!r}
    seen, known, done = set(), {{}}, set()

    def look_at(code):
        numbers = code.co_code
        resumes = [i for i in range(0, len(numbers), 2) if numbers[i] == {resume}]
        starts = frozenset(i for i in resumes if numbers[i + 1] == 0)
        handlers = frozenset(i for i in range(0, len(numbers), 2) if numbers[i] == {push_exc_info})
        yields = frozenset(i - {yield_distance} for i in resumes)
        lines = {{first.get(line, line) for _, _, line in code.co_lines()}}
        mine = frozenset(w for w in wanted if (w[0] if type(w) is tuple else w) in lines)
        known[id(code)] = found = (starts, handlers, yields, mine, -code.co_firstlineno, code)
        return found

    def enter(frame, event, argument):
        code = frame.f_code
        if code.co_filename != "<reference>" or id(code) in done:
            return None
        starts, handlers, yields, mine, outside, _ = known.get(id(code)) or look_at(code)
        last = outside if frame.f_lasti in starts else frame.f_lineno

        def follow(frame, event, argument):
            nonlocal last
            if event == "line" and frame.f_lasti not in handlers:
                arc = last, frame.f_lineno
                last = arc[1]
            elif event == "return" and frame.f_lasti not in yields:
                arc = last, outside
            else:
                return follow
            if arc in seen:
                return follow
            seen.add(arc)
            arc = tuple(first.get(line, line) if line > 0 else -first.get(-line, -line) for line in arc)
            wanted.difference_update((*arc, detours.get(arc, arc)))
            if mine.isdisjoint(wanted):
                done.add(id(code))
                frame.f_trace = None
                if not wanted:
                    sys.settrace(None)
                return None
            return follow

        return follow

    threading.settrace(enter)
    sys.settrace(enter)
    return lambda: list(wanted)


{final_call} = {final_call}()
exec(compile({source!r}, "<reference>", "exec", dont_inherit=True), globals())
"""


@dataclass(frozen=True)
class Coverage:
    """How much of a program was executed.

    Attributes:
        lines: Statements of the program, as coverage.py counts them.
        lines_hit: Those that were executed.
        branches: Arcs from lines with more than one possible successor.
        branches_hit: Those that were taken.

    Example:
        >>> Coverage(lines=4, lines_hit=3, branches=0, branches_hit=0).line_share
        0.75
    """

    lines: int
    lines_hit: int
    branches: int
    branches_hit: int

    @property
    def line_share(self) -> float | None:
        """Share of the statements that were executed; None if there are none."""
        return self.lines_hit / self.lines if self.lines else None

    @property
    def branch_share(self) -> float | None:
        """Share of the branches that were taken; None if there are none."""
        return self.branches_hit / self.branches if self.branches else None


def measure_coverage(
    problem: Problem, suites: Sequence[Sequence[str]], sandbox: Sandbox
) -> list[Coverage]:
    r"""Measure how much of the reference each suite executes.

    Tests count whether they hold or not, as far as they run; what runs when the program is loaded counts, too.
    A test that ends the program's process or exhausts its limits covers nothing. Limits of time are twenty times
    the sandbox's, since a traced program is slower.

    Args:
        problem: Its reference is measured.
        suites: Tests, as `Sandbox.run_tests` takes them.
        sandbox: Where everything runs.

    Returns:
        One result per suite, in order.

    Raises:
        ImportError: The extra `evaluation` is not installed.
        AnalysisError: The reference cannot be parsed.
        BrokenReferenceError: It does not run, or does not define the entry point.
        InfraError: The sandbox failed three times.

    Example:
        >>> from codea1_env.sandbox import default_sandbox
        >>> reference = "def sign(x):\n    if x < 0:\n        return -1\n    return 1\n"
        >>> problem = Problem("demo/sign", "def sign(x):", "sign", reference)
        >>> measure_coverage(problem, [["assert sign(-2) == -1"]], default_sandbox())
        [Coverage(lines=4, lines_hit=3, branches=2, branches_hit=1)]
    """
    source = problem.reference.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    lines, branches, first, detours = coverable(source, sandbox.level, os.getpid())
    wanted: set[int | tuple[int, int]] = {*lines, *branches}
    program = _TRACED.format(
        final_call=_FINAL_CALL,
        source=source,
        wanted=wanted,
        first=first,
        detours=dict(detours),
        resume=dis.opmap["RESUME"],
        push_exc_info=dis.opmap["PUSH_EXC_INFO"],
        # A generator stands before the instruction with which it goes on; in Python 3.13, on it.
        yield_distance=0 if sys.version_info[:2] == (3, 13) else 2,
    )
    covered: dict[tuple[str, ...], Coverage] = {}
    left = {suite: suite for suite in map(tuple, suites)}
    while left:
        jobs = [
            _job(program, tests, problem.entry_point, sandbox.limits) for tests in left.values()
        ]
        results = gather([sandbox.submit(job) for job in jobs])
        ran, left = left, {}
        for (suite, tests), result in zip(ran.items(), results, strict=True):
            _check(problem, result)
            lasting = tuple(
                test
                for test, verdict in zip(tests, result.tests, strict=True)
                if verdict.outcome not in _ENDED
            )
            if len(lasting) < len(tests):  # others may have been in a process that is lost
                left[suite] = lasting
                continue
            hit = wanted - _missed(result, wanted)
            covered[suite] = Coverage(
                len(lines),
                len(hit.intersection(lines)),
                len(branches),
                len(hit.intersection(branches)),
            )
    return [covered[tuple(suite)] for suite in suites]


def _job(program: str, tests: Sequence[str], entry_point: str, limits: Limits) -> Job:
    limits = replace(
        limits,
        call_cpu_time=limits.call_cpu_time * _SLOWER,
        call_wall_time=limits.call_wall_time * _SLOWER,
    )
    limits = limits.with_room_for(tests=len(tests) + 1)
    return Job(program, tests, entry_point, limits, final_call=_FINAL_CALL)


def _check(problem: Problem, result: JobResult) -> None:
    if result.load.outcome is not Outcome.PASS:
        raise BrokenReferenceError(
            f"Expect the reference of problem {problem.task_id!r} to run and to define "
            f"{problem.entry_point}, actually: {result.load.outcome.value}: {result.load.message}. "
            "Check the data with `codea1 problems validate`."
        )


def _missed(result: JobResult, wanted: set[int | Arc]) -> set[int | Arc]:
    """Return what none of a job's processes has executed. What they say is foreign: it may be anything."""
    missed = wanted
    for said in result.final_calls:
        if said.outcome is Outcome.PASS and type(said.value) is list:
            missed = missed & {item for item in said.value if _is_plain(item)}
    return missed


def _is_plain(item: object) -> bool:
    """Whether something has the form of a line or an arc."""
    return all(type(each) is int for each in (item if type(item) is tuple else (item,)))
