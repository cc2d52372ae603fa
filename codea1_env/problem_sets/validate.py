"""The check of a problem set: everything that is wrong with it, with file and line.

    >>> from codea1_env.sandbox import default_sandbox
    >>> report = validate_problems("starter", default_sandbox(), limit=2)
    >>> report.ok, report.problems
    (True, 2)

Every reference is run on its tests twice, in different processes with different hash seeds; the values
that it returns for the literal calls in its tests are compared as well.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from codea1_env.compare import CheckerFault, same
from codea1_env.mutation import generate_mutants
from codea1_env.mutation.kills import limits_beside
from codea1_env.problem_sets.contracts import contract_fault
from codea1_env.problem_sets.expected import NoValueError
from codea1_env.problem_sets.findings import FindingKind, ProblemFinding, ValidationReport
from codea1_env.problem_sets.judging import comparison_of, passes, seconds_of, submit_to_tests
from codea1_env.problem_sets.problem import call_of
from codea1_env.problems import Located, Problem, ProblemsError, load_problems, read_problems
from codea1_env.reading.calls import module_calls
from codea1_env.sandbox import (
    AnalysisError,
    CallResult,
    Job,
    JobResult,
    Limits,
    Outcome,
    Sandbox,
    TestResult,
)

LIMITS = Limits(
    call_cpu_time=20, call_wall_time=60, run_cpu_time=60, run_wall_time=180, calls_per_test=3
)
"""Generous: a slow reference is a finding of its own, not a failure."""
SLOW = Limits().call_cpu_time
"""Seconds after which a test would be stopped with the limits that are used elsewhere."""
SLOW_PROGRAM = Limits().test_cpu_time
"""The same for all cases of a problem together."""
_BATCH = 16
_MUTANTS = 8
"""Spread over the reference: enough to find tests that say next to nothing, and no more than a check of a set may cost."""
_SECONDS = 2.0
"""CPU time of the reference above which its mutants would take too long."""
_RUN = re.compile(r"^    run\((.*)\)$", re.MULTILINE)
"""A statement in a test module that was made of statements."""
Call = tuple[tuple[Any, ...], dict[str, Any]]
_Found = tuple[FindingKind, str]


def validate_problems(
    source: str | Path,
    sandbox: Sandbox,
    *,
    split: str | None = None,
    limit: int | None = None,
    limits: Limits = LIMITS,
    progress: Callable[[int, int], None] | None = None,
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
    items = dict(enumerate(itertools.islice(read_problems(source, split), limit)))
    if not items:
        raise ProblemsError(str(source), "Expect at least one problem, actually there is none.")
    found: dict[int, list[ProblemFinding]] = defaultdict(list)
    kept: dict[int, Located] = {}
    for number, item in items.items():
        if isinstance(item, ProblemsError):
            broken = ProblemFinding(FindingKind.BROKEN_ROW, item.where, "", item.expectation)
            found[number].append(broken)
        elif split in (None, item.problem.metadata.get("split")):
            kept[number] = item
    if not kept and not found:
        load_problems(str(source), split)  # raises the error that names the splits there are
    for number, finding in _duplicates(kept):
        found[number].append(finding)
    tell = progress or (lambda done, of: None)
    tell(0, len(kept))
    numbers = list(kept)
    for start in range(0, len(numbers), _BATCH):
        batch = {number: kept[number] for number in numbers[start : start + _BATCH]}
        for done, (number, findings) in enumerate(_check(batch, limits, sandbox), start + 1):
            found[number] += findings
            tell(done, len(kept))
    ordered = [finding for number in sorted(found) for finding in found[number]]
    if split is None:
        ordered += _no_training_split(str(source), kept.values())
    tests = sum(item.problem.number_of_tests for item in kept.values())
    return ValidationReport(str(source), len(kept), tests, tuple(ordered))


def _check(
    batch: Mapping[int, Located], limits: Limits, sandbox: Sandbox
) -> Iterator[tuple[int, list[ProblemFinding]]]:
    """Yield what is wrong with each problem; their references and mutants run side by side."""
    runs: dict[int, list[Future[JobResult]]] = {}
    for number, item in batch.items():
        code, room = item.problem.reference, limits.with_room_for(len(item.problem.cases))
        if code.strip():
            runs[number] = [
                submit_to_tests(item.problem, code, room, sandbox, hash_seed=seed)
                for seed in (0, 1)
            ]
    found: dict[int, list[_Found]] = {}
    on_mutants: dict[int, Callable[[], str]] = {}
    for number, item in batch.items():
        if number not in runs:
            said = "Expect a reference, actually there is none. Only `codea1 eval code` can use it."
            found[number] = [(FindingKind.NO_REFERENCE, said)]
            continue
        try:
            first, second = (run.result() for run in runs[number])
        except (NoValueError, TypeError) as error:
            load = error.load if isinstance(error, NoValueError) else None
            said = f"{error}. Correct the case or the reference."
            found[number] = [
                _load_failure(item.problem, load, sandbox, limits)
                if load is not None
                else (FindingKind.REFERENCE_FAILS, said)
            ]
        else:
            found[number] = list(_judge(item.problem, first, second, sandbox, limits))
            if not found[number]:
                on_mutants[number] = _submit_to_mutants(item.problem, first, sandbox)
        found[number] += [*_refused_by_training(item.problem), *_read_otherwise(item)]
    for number, item in batch.items():
        said = on_mutants[number]() if number in on_mutants else ""
        if said:
            found[number].append((FindingKind.WEAK_TESTS, said))
        yield number, [_finding(kind, item, message) for kind, message in found[number]]


def _finding(kind: FindingKind, item: Located, message: str) -> ProblemFinding:
    return ProblemFinding(kind, item.where, item.problem.task_id, message)


# What needs no run


def _duplicates(items: Mapping[int, Located]) -> Iterator[tuple[int, ProblemFinding]]:
    first: dict[tuple[FindingKind, str], str] = {}
    for index, item in items.items():
        for kind, text, what, remedy in (
            (FindingKind.DUPLICATE_ID, item.problem.task_id, "task_id", "Rename"),
            (FindingKind.DUPLICATE_PROMPT, item.problem.prompt, "prompt", "Reword"),
        ):
            where = first.setdefault((kind, text), item.where)
            if where is not item.where:
                said = f"Expect every {what} once, actually it is also at {where}. {remedy} one of them."
                yield index, _finding(kind, item, said)


def _read_otherwise(item: Located) -> Iterator[_Found]:
    if item.note:
        said = f"Expect cases, tests or test_module, actually {item.note}."
        yield FindingKind.OLD_LAYOUT, said
    if item.problem.test_module:
        said = (
            "Expect tests that are data, calls and what they return, actually some are not and run in the program's "
            f"process, which can forge their verdict ({_of_module(item.problem.test_module)})."
        )
        yield FindingKind.JUDGED_INSIDE, said


def _refused_by_training(problem: Problem) -> Iterator[_Found]:
    """Yield what `codea1 train` says of a problem that has a reference."""
    said = ""
    if problem.stdin_tests:
        said = "Expect a function that can be called, actually its programs read standard input. Only `codea1 eval code` can use it."
    elif problem.test_module and not problem.cases:
        said = "Expect tests that are data, for tabular and golden testers, actually there is none. Language models can be trained on it."
    if said:
        yield FindingKind.NOT_PLAYABLE, said


def _no_training_split(source: str, items: Collection[Located]) -> Iterator[ProblemFinding]:
    """Yield what `codea1 train` says of the set, if nothing is said to it of splits."""
    splits = sorted({item.problem.metadata.get("split", "") for item in items} - {""})
    if items and "train" not in splits:
        actually = f"the splits are {', '.join(splits)}" if splits else "there are no splits"
        said = (
            f"Expect problems of the split 'train', which `codea1 train` takes, actually {actually}. "
            f"Train with --split {splits[0] if splits else None}, or set metadata.split."
        )
        yield ProblemFinding(FindingKind.NOT_PLAYABLE, source, "", said)


# What two runs of the reference show


def _judge(
    problem: Problem, first: JobResult, second: JobResult, sandbox: Sandbox, limits: Limits
) -> Iterator[_Found]:
    shown = _shown(problem)
    if not shown:
        yield FindingKind.NO_TESTS, "Expect cases, tests or a test_module, actually none. Add some."
    if first.load.outcome is not second.load.outcome:
        said = f"Expect the reference to load alike, actually: {_both(first.load, second.load)}."
        yield FindingKind.NON_DETERMINISTIC, said
    elif not first.load.passed:
        yield _load_failure(problem, first.load, sandbox, limits)
    else:
        goes_on = yield from _of_tests(first, second, shown)
        if not goes_on:
            return
        yield from _slow(first, second, shown)
        if all(a.outcome is b.outcome for a, b in zip(first.tests, second.tests, strict=False)):
            yield from _different_values(problem, sandbox, limits)


def _of_tests(
    first: JobResult, second: JobResult, shown: Sequence[str]
) -> Generator[_Found, None, bool]:
    """Yield what is wrong with single tests; returns whether more can be asked: not where it may take as long again."""
    # Some tests are not run after one that has failed.
    for number, (one, two) in enumerate(zip(first.tests, second.tests, strict=False), 1):
        test = _short(shown[min(number, len(shown)) - 1])
        if one.outcome is not two.outcome:
            said = f"Expect two runs of test {number} to agree, actually: {_both(one, two)} ({test}). {_INDEPENDENT}"
            yield FindingKind.NON_DETERMINISTIC, said
        elif isinstance(one, CheckerFault):
            said = f"Expect the checker to answer True or False on test {number}, actually: {one.message:.200} ({test})."
            yield FindingKind.CHECKER_FAILS, said
            return False  # the others would say the same
        elif one.outcome is not Outcome.PASS:
            said = f"Expect the reference to pass test {number}, actually: {one.outcome.value}, {one.message:.200} ({test})."
            yield FindingKind.REFERENCE_FAILS, said
            if one.outcome is Outcome.TIMEOUT:
                return False
    return True


_INDEPENDENT = "Make the reference independent of random numbers, time and the order of sets."


def _shown(problem: Problem) -> list[str]:
    """Return the tests as text: a test module comes last, as one."""
    texts = [
        call_of(problem.entry_point, case) or f"case {n}" for n, case in enumerate(problem.cases, 1)
    ]
    inside = [_of_module(problem.test_module)] if problem.test_module else []
    return [*texts, *(repr(test.stdin) for test in problem.stdin_tests), *inside]


def _slow(first: JobResult, second: JobResult, shown: Sequence[str]) -> Iterator[_Found]:
    """Yield which tests take long; of cases, only what all of them take is measured."""
    if not passes(first):
        return
    times = []
    for number, (one, two) in enumerate(zip(first.tests, second.tests, strict=False), 1):
        what = f"test {number} ({_short(shown[min(number, len(shown)) - 1])})"
        times.append((what, max(one.cpu_time, two.cpu_time), SLOW))
    times.append(("all cases together", max(first.cpu_time, second.cpu_time), SLOW_PROGRAM))
    for what, seconds, most in times:
        if seconds > most:
            said = f"Expect {what} to take less than {most:g} s, actually: {seconds:.1f} s. Use smaller arguments."
            yield FindingKind.SLOW_REFERENCE, said


def _load_failure(problem: Problem, load: TestResult, sandbox: Sandbox, limits: Limits) -> _Found:
    if load.outcome is Outcome.SYNTAX_ERROR:
        said = f"Expect a Python program, actually: {load.message:.200}."
        return FindingKind.UNPARSABLE_REFERENCE, said
    alone = sandbox.submit(Job(_program(problem), limits=limits)).result()
    if alone.load.outcome is Outcome.PASS:
        said = f"Expect the reference to define {problem.entry_point!r}, actually it does not."
        return FindingKind.MISSING_ENTRY_POINT, said
    said = f"Expect the reference to run, actually: {load.outcome.value}, {load.message:.200}."
    return FindingKind.REFERENCE_FAILS, said


def _different_values(problem: Problem, sandbox: Sandbox, limits: Limits) -> Iterator[_Found]:
    """Compare what the calls in the tests return, and whether the contract takes them: a test may hold without."""
    calls: list[Call] = [(case.args, dict(case.kwargs)) for case in problem.cases]
    if problem.test_module:
        # Its tests passed; that they cannot be taken apart is no finding.
        with contextlib.suppress(AnalysisError):
            calls += sandbox.analyse(module_calls, problem.test_module, problem.entry_point)
    if message := contract_fault(problem, calls, sandbox, Limits().with_room_for(len(calls))):
        yield FindingKind.BROKEN_CONTRACT, message
    if not calls:
        return
    room, name = limits.with_room_for(len(calls)), problem.entry_point
    one, two = (
        sandbox.call(_program(problem), name, calls, limits=room, hash_seed=seed) for seed in (0, 1)
    )
    for (arguments, keywords), a, b in zip(calls, one, two, strict=True):
        if not _agree(a, b, problem):
            shown = ", ".join([*map(repr, arguments), *(f"{k}={v!r}" for k, v in keywords.items())])
            said = (
                f"Expect two runs of {name}({shown:.100}) to return the same value, actually: {a.value!r:.100} and "
                f"{b.value!r:.100}. {_INDEPENDENT}"
            )
            yield FindingKind.NON_DETERMINISTIC, said
            return


def _program(problem: Problem) -> str:
    return f"{problem.preamble}\n\n{problem.reference}"


def _agree(one: CallResult, two: CallResult, problem: Problem) -> bool:
    if one.outcome is not two.outcome:
        return False
    return same(one.value, two.value, comparison_of(problem)) or repr(one.value) == repr(two.value)


def _both(one: TestResult, two: TestResult) -> str:
    return f"{one.outcome.value} and {two.outcome.value}"


def _of_module(module: str) -> str:
    """Return what a test module is about: of one that was made of statements, the first."""
    found = _RUN.search(module)
    return f"{found[1]:.100}" if found else _short(module)


def _short(test: str) -> str:
    first, _, rest = test.strip().partition("\n")
    return f"{first:.100}{' ...' if rest or len(first) > 100 else ''}"


def _submit_to_mutants(
    problem: Problem, reference: JobResult, sandbox: Sandbox
) -> Callable[[], str]:
    """Run the tests on mutants of a reference that passes them; what waits for it says what is wrong with the tests."""
    if problem.stdin_tests or problem.test_module or seconds_of(reference) > _SECONDS:
        return str
    try:
        mutants = generate_mutants(problem.reference, sandbox, limit=_MUTANTS)
    except AnalysisError:
        return str  # it runs; that it cannot be taken apart is no finding
    limits = limits_beside(reference)
    runs = [
        (each, submit_to_tests(problem, each.code, limits, sandbox, stop=True)) for each in mutants
    ]

    def said() -> str:
        alive = [mutant for mutant, run in runs if passes(run.result())]
        if not alive or 2 * len(alive) < len(runs):
            return ""
        shown = f"{' '.join(alive[0].description.split()):.80} in line {alive[0].line}"
        return (
            "Expect the tests to fail most programs with one small fault, actually "
            f"{len(alive)} of {len(runs)} pass them, such as with {shown}. Add tests, or assert more."
        )

    return said
