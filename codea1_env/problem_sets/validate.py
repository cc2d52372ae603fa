"""The check of a problem set: everything that is wrong with it, with file and line.

    >>> from codea1_env.sandbox import default_sandbox
    >>> report = validate_problems("starter", default_sandbox(), limit=2)
    >>> report.ok, report.problems, report.tried["stub"]
    (True, 2, Tried(programs=2, passed=0))

Every reference runs on its tests twice, in different processes with different hash seeds; what it returns for cases is
compared as well. Then wrong programs that cost nothing meet the tests.
"""

from __future__ import annotations

import enum
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from codea1_env.compare import CheckerFault, is_late, same
from codea1_env.problem_sets.contracts import contract_fault
from codea1_env.problem_sets.expected import NoValueError, encoded
from codea1_env.problem_sets.judging import checker_fault, comparison_of, passes, submit_to_tests
from codea1_env.problem_sets.problem import call_of
from codea1_env.problem_sets.wrong_programs import KINDS, Met, meet_tests
from codea1_env.problems import Located, Problem, ProblemsError, load_problems, read_problems
from codea1_env.reading.definitions import put_before
from codea1_env.reading.examples import called
from codea1_env.sandbox import Job, JobResult, Limit, Limits, Outcome, Sandbox, TestResult

LIMITS = Limits(
    call_cpu_time=10, call_wall_time=30, run_cpu_time=60, run_wall_time=180, calls_per_test=3
)
"""Generous: a slow reference is a finding of its own, not a failure."""
SLOW, SLOW_PROGRAM = Limits().call_cpu_time, Limits().test_cpu_time
"""Seconds after which a test, and all cases together, would be stopped with the limits that are used elsewhere."""
_AT_ONCE = 8
"""Problems whose programs run side by side."""
_RUN = re.compile(r"^    run\((.*)\)$", re.MULTILINE)
"""A statement in a test module that was made of statements."""


class FindingKind(enum.Enum):
    """What can be wrong with a problem."""

    BROKEN_ROW = "broken-row"  # it cannot be read, or its fields have wrong types
    DUPLICATE_ID = "duplicate-id"
    UNPARSABLE_REFERENCE = "unparsable-reference"
    MISSING_ENTRY_POINT = "missing-entry-point"
    REFERENCE_FAILS = "reference-fails"  # it does not run, or fails one of its own tests
    BROKEN_CONTRACT = "broken-contract"  # it does not run, or refuses a golden test
    NON_DETERMINISTIC = "non-deterministic"
    CHECKER_FAILS = "checker-fails"  # it raises, ends late or answers neither True nor False
    STUB_PASSES = "stub-passes"  # the tests pass a program that does nothing
    NO_REFERENCE = "no-reference"
    NO_TESTS = "no-tests"
    DUPLICATE_PROMPT = "duplicate-prompt"  # in play the two problems cannot be told apart
    JUDGED_INSIDE = "judged-inside"  # tests that share a process with the program, which can forge their verdict
    SLOW_REFERENCE = "slow-reference"
    WEAK_TESTS = "weak-tests"  # they pass a constant, the examples, or half of the mutants
    NOT_PLAYABLE = "not-playable"  # `codea1 train` refuses the problem, or the whole set

    @property
    def is_warning(self) -> bool:
        """Whether a set with this finding can still be used."""
        kinds = list(FindingKind)
        return kinds.index(self) > kinds.index(FindingKind.STUB_PASSES)


@dataclass(frozen=True)
class ProblemFinding:
    """One thing that is wrong, and where."""

    kind: FindingKind
    where: str
    """File and line."""
    task_id: str
    """Empty if the row could not be read."""
    message: str
    """What was expected, what came, what to do."""

    def __str__(self) -> str:
        level = "warning" if self.kind.is_warning else "error"
        name = f" {self.task_id}:" if self.task_id else ""
        return f"{self.where}: {level} [{self.kind.value}]{name} {self.message}"


class Tried(NamedTuple):
    """Wrong programs of one kind. A mutant that passes may be right: not every change is a fault."""

    programs: int
    passed: int


@dataclass(frozen=True)
class ValidationReport:
    """What the check of a problem set found."""

    source: str
    problems: int
    """Rows that could be read."""
    tests: int
    findings: tuple[ProblemFinding, ...]
    tried: Mapping[str, Tried]
    """Wrong programs that met the tests, by kind."""

    @property
    def errors(self) -> int:
        """The number of findings that make a problem useless; the others are warnings."""
        return sum(not finding.kind.is_warning for finding in self.findings)

    @property
    def ok(self) -> bool:
        """Whether there are no errors."""
        return not self.errors


_Found = tuple[FindingKind, str]


def validate_problems(
    source: str | Path,
    sandbox: Sandbox,
    *,
    split: str | None = None,
    limit: int | None = None,
    limits: Limits = LIMITS,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> ValidationReport:
    """Check a problem set and report everything that is wrong with it.

    Args:
        source: What `load_problems` takes.
        sandbox: Where the references run.
        split: Check only the problems of this split; None for all.
        limit: Check only the first so many rows; None for all.
        limits: What a reference may use.
        progress: Called with (rows done, rows in all), first with 0 rows done.

    Raises:
        ProblemsError: The source as a whole cannot be used (unknown name, no rows).
        OSError: The file cannot be read.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"Expect limit to be a positive int or None, actually: {limit!r}")
    items = [
        item
        for item in itertools.islice(read_problems(source, split), limit)
        if isinstance(item, ProblemsError) or split in (None, item.problem.metadata.get("split"))
    ]
    if not items:
        load_problems(str(source), split)  # raises the error that names the splits there are
    problems = [item.problem for item in items if isinstance(item, Located)]
    progress(0, len(problems))
    seen: dict[tuple[FindingKind, str], str] = {}
    found: list[ProblemFinding] = []
    tried, passed = Counter[str](), Counter[str]()
    done = itertools.count(1)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        results = pool.map(partial(_check, limits=limits, sandbox=sandbox), problems)
        for item in items:
            if isinstance(item, ProblemsError):
                kind = FindingKind.BROKEN_ROW
                found.append(ProblemFinding(kind, item.where, "", item.expectation))
                continue
            faults, met = next(results)
            found += [
                ProblemFinding(kind, item.where, item.problem.task_id, message)
                for kind, message in (*_duplicates(item, seen), *faults)
            ]
            tried.update(each.kind for each in met)
            passed.update(each.kind for each in met if each.passed)
            progress(next(done), len(problems))
    if split is None:
        found += _no_training_split(str(source), problems)
    tests = sum(problem.number_of_tests for problem in problems)
    programs = {kind: Tried(tried[kind], passed[kind]) for kind in KINDS}
    return ValidationReport(str(source), len(problems), tests, tuple(found), programs)


def _check(
    problem: Problem, limits: Limits, sandbox: Sandbox
) -> tuple[list[_Found], Sequence[Met]]:
    known = list(_without_run(problem))
    if not problem.reference.strip():
        return known, ()
    if said := checker_fault(problem, sandbox):
        said = f"Expect the checker to answer within some seconds, actually: {said}. Correct it."
        return [(FindingKind.CHECKER_FAILS, said), *known], ()
    try:
        first, second = _two_runs(problem, limits, sandbox)
    except (NoValueError, TypeError) as error:
        if isinstance(error, NoValueError) and error.load is not None:
            return [_load_failure(problem, error.load, sandbox, limits), *known], ()
        said = f"{error}. Correct the case or the reference."
        return [(FindingKind.REFERENCE_FAILS, said), *known], ()
    if found := list(_of_runs(problem, first, second, sandbox, limits)):
        return [*found, *known], ()
    met = meet_tests(problem, first, sandbox)
    return [*_of_wrong_programs(met), *known], met


def _two_runs(problem: Problem, limits: Limits, sandbox: Sandbox) -> list[JobResult]:
    """Run the reference twice: up to a test that hangs, or else on all of them."""
    encoded(problem, sandbox)  # asked once, not by each run

    def both(limits: Limits, stop: bool) -> list[JobResult]:
        runs = [
            submit_to_tests(problem, problem.reference, limits, sandbox, hash_seed=seed, stop=stop)
            for seed in (0, 1)
        ]
        return [run.result() for run in runs]

    found = both(limits.with_room_for(len(problem.cases)), True)
    tests = [test for run in found for test in run.tests]
    hangs = any(test.outcome is Outcome.TIMEOUT or is_late(test) for test in tests)
    return found if hangs or all(map(passes, found)) else both(limits, False)


# What needs no run


def _duplicates(item: Located, seen: dict[tuple[FindingKind, str], str]) -> Iterator[_Found]:
    for kind, text, what, remedy in (
        (FindingKind.DUPLICATE_ID, item.problem.task_id, "task_id", "Rename"),
        (FindingKind.DUPLICATE_PROMPT, item.problem.prompt, "prompt", "Reword"),
    ):
        where = seen.setdefault((kind, text), item.where)
        if where is not item.where:
            said = (
                f"Expect every {what} once, actually it is also at {where}. {remedy} one of them."
            )
            yield kind, said


def _without_run(problem: Problem) -> Iterator[_Found]:
    """Yield what its fields show; what is not playable says what `codea1 train` says of it."""
    if not problem.reference.strip():
        said = (
            "Expect a reference, actually there is none. `codea1 eval code` can use it, and `codea1 train` with the tests of "
            'the coder: oracle = "coder".'
        )
        yield FindingKind.NO_REFERENCE, said
    if problem.test_module:
        said = (
            "Expect tests that are data, calls and what they return, actually some are not and run in the program's "
            f"process, which can forge their verdict ({_of_module(problem.test_module)})."
        )
        yield FindingKind.JUDGED_INSIDE, said
        if not problem.cases:
            said = "Expect tests that are data, for tabular and golden testers, actually there is none. Language models can be trained on it."
            yield FindingKind.NOT_PLAYABLE, said


def _no_training_split(source: str, problems: Sequence[Problem]) -> Iterator[ProblemFinding]:
    """Yield what `codea1 train` says of the set, if nothing is said to it of splits."""
    splits = sorted({problem.metadata.get("split", "") for problem in problems} - {""})
    if problems and "train" not in splits:
        actually = f"the splits are {', '.join(splits)}" if splits else "there are no splits"
        said = (
            f"Expect problems of the split 'train', which `codea1 train` takes, actually {actually}. "
            f"Train with --split {splits[0] if splits else None}, or set metadata.split."
        )
        yield ProblemFinding(FindingKind.NOT_PLAYABLE, source, "", said)


# What two runs of the reference show

_INDEPENDENT = "Make the reference independent of random numbers, time and the order of sets."


def _of_runs(
    problem: Problem, first: JobResult, second: JobResult, sandbox: Sandbox, limits: Limits
) -> Iterator[_Found]:
    if not problem.number_of_tests:
        yield FindingKind.NO_TESTS, "Expect cases, tests or a test_module, actually none. Add some."
    if first.load.outcome is not second.load.outcome:
        said = f"Expect the reference to load alike, actually: {_both(first.load, second.load)}."
        yield FindingKind.NON_DETERMINISTIC, said
        return
    if not first.load.passed:
        yield _load_failure(problem, first.load, sandbox, limits)
        return
    shown = _shown(problem)
    for number, (one, two) in enumerate(zip(first.tests, second.tests, strict=False), 1):
        test = shown[min(number, len(shown)) - 1]
        said_none = [each for each in (one, two) if isinstance(each, CheckerFault)]
        if said_none:
            said = f"Expect the checker to answer True or False on test {number}, actually: {said_none[0].message:.200} ({test})."
            yield FindingKind.CHECKER_FAILS, said
            return  # the others would say the same
        if Limit.RUN in (one.limit, two.limit):
            return  # others before it took the time
        if one.outcome is not two.outcome:
            said = f"Expect two runs of test {number} to agree, actually: {_both(one, two)} ({test}). {_INDEPENDENT}"
            yield FindingKind.NON_DETERMINISTIC, said
        elif not one.passed:
            said = f"Expect the reference to pass test {number}, actually: {one.outcome.value}, {one.message:.200} ({test})."
            yield FindingKind.REFERENCE_FAILS, said
            if one.outcome is Outcome.TIMEOUT:
                return
    if passes(first):
        yield from _slow(shown, first, second)
        yield from _of_values(problem, sandbox, limits)


def _shown(problem: Problem) -> list[str]:
    cases = enumerate(problem.cases, 1)
    texts = [call_of(problem.entry_point, case) or f"case {n}" for n, case in cases]
    inside = [_of_module(problem.test_module)] if problem.test_module else []
    return [*map(_short, texts), *inside]


def _slow(shown: Sequence[str], first: JobResult, second: JobResult) -> Iterator[_Found]:
    """Yield which tests take long; of cases, only what all of them take is measured."""
    times = [("all cases together", max(first.cpu_time, second.cpu_time), SLOW_PROGRAM)]
    for number, (one, two) in enumerate(zip(first.tests, second.tests, strict=False), 1):
        what = f"test {number} ({shown[min(number, len(shown)) - 1]})"
        times.append((what, max(one.cpu_time, two.cpu_time), SLOW))
    for what, seconds, most in times:
        if seconds > most:
            said = f"Expect {what} to take less than {most:g} s, actually: {seconds:.1f} s. Use smaller arguments."
            yield FindingKind.SLOW_REFERENCE, said


def _load_failure(problem: Problem, load: TestResult, sandbox: Sandbox, limits: Limits) -> _Found:
    if load.outcome is Outcome.SYNTAX_ERROR:
        said = f"Expect a Python program, actually: {load.message:.200}."
        return FindingKind.UNPARSABLE_REFERENCE, said
    alone = sandbox.judge(Job(_program(problem), limits=limits))
    if alone.load.passed:
        said = f"Expect the reference to define {problem.entry_point!r}, actually it does not."
        return FindingKind.MISSING_ENTRY_POINT, said
    said = f"Expect the reference to run, actually: {load.outcome.value}, {load.message:.200}."
    return FindingKind.REFERENCE_FAILS, said


def _of_values(problem: Problem, sandbox: Sandbox, limits: Limits) -> Iterator[_Found]:
    """Yield whether the contract refuses golden calls, and whether they return the same again: a test may hold without."""
    calls = [(case.args, dict(case.kwargs)) for case in problem.cases]
    if message := contract_fault(problem, calls, sandbox, Limits().with_room_for(len(calls))):
        yield FindingKind.BROKEN_CONTRACT, message
    if not calls:
        return
    room, name, rule = limits.with_room_for(len(calls)), problem.entry_point, comparison_of(problem)
    one, two = (
        sandbox.call(_program(problem), name, calls, limits=room, hash_seed=seed) for seed in (0, 1)
    )
    for (arguments, keywords), a, b in zip(calls, one, two, strict=True):
        alike = same(a.value, b.value, rule) or repr(a.value) == repr(b.value)
        if a.outcome is not b.outcome or not alike:
            shown = ", ".join([*map(repr, arguments), *(f"{k}={v!r}" for k, v in keywords.items())])
            said = (
                f"Expect two runs of {called(name)}({shown:.100}) to return the same value, actually: {a.value!r:.100} and "
                f"{b.value!r:.100}. {_INDEPENDENT}"
            )
            yield FindingKind.NON_DETERMINISTIC, said
            return


def _program(problem: Problem) -> str:
    return put_before(problem.preamble, problem.reference)


def _both(one: TestResult, two: TestResult) -> str:
    return f"{one.outcome.value} and {two.outcome.value}"


def _of_module(module: str) -> str:
    found = _RUN.search(module)
    return f"{found[1]:.100}" if found else _short(module)


def _short(test: str) -> str:
    first, _, rest = test.strip().partition("\n")
    return f"{first:.100}{' ...' if rest or len(first) > 100 else ''}"


# What wrong programs show


def _of_wrong_programs(met: Sequence[Met]) -> Iterator[_Found]:
    """Yield the plainest of what programs show that pass the tests."""
    mutants = [each for each in met if each.kind == "mutant"]
    alive = sum(each.passed for each in mutants)
    few = 2 * alive < len(mutants)
    first = next((x for x in met if x.passed and not (few and x.kind == "mutant")), None)
    if first is None:
        return
    many = f", as {alive} of {len(mutants)} mutants do" if first.kind == "mutant" else ""
    said = (
        f"Expect the tests to fail a program that {first.about}, actually it passes them{many}. "
        "Add tests, or assert more."
    )
    yield FindingKind.STUB_PASSES if first.kind == "stub" else FindingKind.WEAK_TESTS, said
