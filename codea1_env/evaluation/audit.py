"""How far the tests of a problem can be trusted: which wrong programs pass them, and which right programs fail.

Wrong programs are a stub, constants, the examples of the prompt hard-coded, mutants of the reference, and programs of
others. One that passes counts where it is shown to be wrong: on variations of the tests' calls it does not do what the
reference does. They are inside types and contract; without a contract, also inside what the tests span: their least and
largest numbers, lengths and letters. Right programs are the reference in other processes and garments,
and programs of others.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from codea1_env.evaluation.audit_programs import right_programs, wrong_programs
from codea1_env.evaluation.program_verdicts import (
    ReferenceRun,
    judge_program,
    missing_packages,
    run_reference,
)
from codea1_env.evaluation.statistics import proportion
from codea1_env.problem_sets.contracts import contracted
from codea1_env.problem_sets.fuzz import Call, in_order, vary_calls
from codea1_env.problem_sets.judging import submit_to_tests, too_large
from codea1_env.problem_sets.problem import call_of
from codea1_env.problems import Problem, ProblemsError
from codea1_env.reading.signatures import read_signatures, signature_of
from codea1_env.sandbox import AnalysisError, Case, Limits, Outcome, Sandbox

WRONG = ("stub", "constant", "examples", "mutant", "answer")
"""Kinds of wrong programs; answers are those of a coder."""
RIGHT = ("reference", "other hash seed", "run twice", "rounded otherwise", "given")
"""Kinds of right programs."""
_LIMITS = Limits(
    call_cpu_time=0.5, call_wall_time=5, run_cpu_time=10, run_wall_time=60, calls_per_test=1
)
"""On other calls than the tests': a program that needs longer where the reference is quick does something else."""


@dataclass(frozen=True)
class AuditConfig:
    """How thoroughly a problem is looked at."""

    mutants: int = 12
    """Of each reference, spread over it."""
    calls: int = 200
    """Variations of the tests' calls, on which a program that passes is compared with the reference."""
    seed: int = 0
    """Of these variations."""
    all_calls: bool = False
    """Also calls beyond what the tests span, where a problem has no contract: its text is said to decide all of them."""


@dataclass(frozen=True)
class Accepted:
    """A program that passes all tests."""

    kind: str
    """One of `WRONG`."""
    program: str
    witness: str
    """A call that shows it to be wrong; empty where none was found, or none could be looked for."""


@dataclass(frozen=True)
class ProblemAudit:
    """What is known of the tests of one problem."""

    task_id: str
    note: str
    """Why it was left out, or what could not be looked at; empty for neither."""
    used: bool
    """Whether its tests judged anything."""
    compared: bool
    """Whether programs could be compared with a reference on other calls."""
    tried: Mapping[str, int]
    """How many programs of each kind, wrong and right, met the tests."""
    accepted: tuple[Accepted, ...]
    rejected: Mapping[str, str]
    """Kinds of right programs that fail, and how the first of them does."""

    @property
    def wrong(self) -> frozenset[str]:
        """The kinds of wrong programs that pass. What nothing could be compared with counts if it only pretends."""
        pretends = () if self.compared else WRONG[:3]
        return frozenset(
            each.kind for each in self.accepted if each.witness or each.kind in pretends
        )

    @property
    def untold(self) -> frozenset[str]:
        """The kinds of programs that pass while nothing can tell whether they are wrong."""
        passing = () if self.compared else self.accepted
        return frozenset(each.kind for each in passing) - self.wrong

    def row(self) -> dict[str, Any]:
        """As JSON has it."""
        return dataclasses.asdict(self) | {"wrong": sorted(self.wrong)}


def audit_of(row: Mapping[str, Any]) -> ProblemAudit:
    """Return what `ProblemAudit.row` made."""
    fields = {name: value for name, value in row.items() if name != "wrong"}
    return ProblemAudit(**fields | {"accepted": tuple(Accepted(**x) for x in row["accepted"])})


def audit_problem(
    problem: Problem,
    sandbox: Sandbox,
    config: AuditConfig = AuditConfig(),
    answers: Sequence[str] = (),
    right: Sequence[str] = (),
) -> ProblemAudit:
    """Audit the tests of one problem, also with programs of a coder, and with such as are known to be right.

    Example:
        >>> from codea1_env.sandbox import default_sandbox
        >>> weak = ["assert f(1) == False", "assert f(9) == True"]
        >>> problem = Problem("a", "def f(n: int):", "f", "def f(n): return n > 2", weak)
        >>> sorted(audit_problem(problem, default_sandbox()).wrong)
        ['mutant']
    """
    left_out = missing_packages(problem, sandbox) or too_large(problem.stdin_tests)
    left_out = left_out or ("" if problem.number_of_tests else "it has no tests")
    if left_out:
        return ProblemAudit(problem.task_id, left_out, False, False, {}, (), {})
    reference = run_reference(problem, sandbox)
    has_one = bool(problem.reference.strip())
    if why := reference.fault:  # only a reference can have one
        return ProblemAudit(
            problem.task_id, why, True, False, {"reference": 1}, (), {"reference": why}
        )
    harder = _harder(problem, sandbox, config) if has_one else None
    quick = dataclasses.replace(reference, time_limit=reference.time_limit / 2)
    tried: Counter[str] = Counter()
    accepted = []
    for kind, code in wrong_programs(problem, sandbox, config.mutants, answers):
        tried[kind] += 1
        if judge_program(problem, code, quick, sandbox).passed and code != problem.reference:
            witness = _witness(harder, code, sandbox)
            if problem.checker and kind == "stub":  # the checker is no witness against itself
                witness = witness or "its checker accepts a program that does nothing"
            accepted.append(Accepted(kind, code, witness))
    rejected = _rejected(problem, reference, sandbox, right, tried) if has_one else {}
    why = "its tests are no calls, or the reference takes no others"
    why = why if has_one else "it has no reference, so no mutants and no right programs either"
    note = "" if harder else f"nothing to compare programs with: {why}"
    return ProblemAudit(
        problem.task_id, note, True, bool(harder), dict(tried), tuple(accepted), rejected
    )


# Other calls than those of the tests


def _harder(problem: Problem, sandbox: Sandbox, config: AuditConfig) -> Problem | None:
    """Return the problem with other calls, inside types and contract; None if there are none that the reference takes."""
    golden: list[Call] = [(case.args, dict(case.kwargs)) for case in problem.cases]
    rng = np.random.default_rng([config.seed, *problem.task_id.encode()])
    asked = problem.prompt, problem.entry_point, problem.reference, list(problem.golden_calls)
    code = f"{problem.preamble}\n\n{problem.reference}"
    code, name = contracted(code, problem.entry_point, problem.contract)
    spans = None if config.all_calls or problem.contract.strip() else _spans(golden)
    try:
        outside = signature_of(sandbox.analyse(read_signatures, [asked])[0]).outside
        calls = [
            each
            for each in vary_calls(golden, config.calls, rng)
            if not outside(list(each[0]), each[1]) and (spans is None or _within(each, spans))
        ]
        results = sandbox.call(code, name, calls, limits=_LIMITS)
    except (AnalysisError, TypeError):  # a text that cannot be read, arguments that cannot be sent
        return None
    cases = tuple(
        Case(*call, expected=result.value)
        for call, result in zip(calls, results, strict=True)
        if result.outcome is Outcome.PASS
    )
    return dataclasses.replace(problem, cases=cases, test_module="", base=0) if cases else None


_Spans = dict[tuple[object, str], tuple[float, float]]


def _within(call: Call, spans: _Spans) -> bool:
    known = ((spans.get(what), span) for what, span in _spans([call]).items())
    return all(seen and seen[0] <= low and high <= seen[1] for seen, (low, high) in known)


def _spans(calls: Sequence[Call]) -> _Spans:
    """Return least and largest of the numbers, lengths and letters in each argument: what a text without contract speaks of."""
    spans: _Spans = {}
    for arguments, keywords in calls:
        for place, value in [*enumerate(arguments), *keywords.items()]:
            for what, size in _sizes(value):
                low, high = spans.get((place, what), (size, size))
                spans[place, what] = min(low, size), max(high, size)
    return spans


def _sizes(value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, (int, float)):
        yield "number", value
    elif isinstance(value, (str, list, tuple, set, frozenset, dict)):
        yield "length", len(value)
        if isinstance(value, str):
            yield from (("letter", ord(letter)) for letter in value)
        else:
            for each in value.items() if isinstance(value, dict) else value:
                yield from _sizes(each)


def _witness(harder: Problem | None, code: str, sandbox: Sandbox) -> str:
    """Return the call on which a program first differs from the reference; "" if there is none."""
    if harder is None:
        return ""
    result = submit_to_tests(harder, code, _LIMITS, sandbox, stop=True).result()
    ends = [number for number, test in enumerate(result.tests) if not test.passed]
    if not ends:
        return ""
    case = harder.cases[ends[0]]
    call = call_of(harder.entry_point, case) or f"{harder.entry_point}(...)"
    return f"{call:.200} is {in_order(case.expected):.100}; {result.tests[ends[0]].message:.200}"


# Right programs


def _rejected(
    problem: Problem,
    reference: ReferenceRun,
    sandbox: Sandbox,
    right: Sequence[str],
    tried: Counter[str],
) -> dict[str, str]:
    """Return which right programs fail, and count all that are tried."""
    tried["reference"] += 1
    rejected: dict[str, str] = {}
    if problem.cases and not problem.stdin_tests:
        tried["other hash seed"] += 1
        limits = _LIMITS.times(reference.time_limit).with_room_for(len(problem.cases))
        again = submit_to_tests(problem, problem.reference, limits, sandbox, hash_seed=1)
        for test in again.result().tests:
            if not test.passed:
                rejected.setdefault("other hash seed", f"{test.outcome.value}: {test.message}")
    for kind, code in [*right_programs(problem), *(("given", each) for each in right)]:
        tried[kind] += 1
        verdict = judge_program(problem, code, reference, sandbox)
        if not verdict.passed:
            rejected.setdefault(kind, f"{verdict.outcome}: {verdict.message}")
    return rejected


# All problems together


def summary(audits: Sequence[ProblemAudit]) -> dict[str, Any]:
    """Return the figures of a set: for each kind the problems that it met, and those whose tests let it pass, or fail.

    Problems where a program passes, and nothing can tell whether it is wrong, are in no share of wrong programs.
    """
    used = [each for each in audits if each.used]
    met = [
        each for each in used if each.tried.keys() & {*WRONG} and (each.wrong or not each.untold)
    ]
    if not used:
        why = Counter(each.note for each in audits).most_common(1)
        raise ProblemsError(
            "",
            f"Expect a problem whose tests can judge programs, actually none of {len(audits)} has such tests: "
            f"{why[0][0] if why else 'there is none'}. Add tests to the problems.",
        )
    wrong = {
        kind: [
            kind in each.wrong for each in used if each.tried.get(kind) and kind not in each.untold
        ]
        for kind in WRONG
    }
    right = {
        kind: [kind in each.rejected for each in used if each.tried.get(kind)] for kind in RIGHT
    }
    return {
        "problems": len(audits),
        "used": len(used),
        "compared": sum(each.compared for each in used),
        "untold": sum(bool(each.untold and not each.wrong) for each in used),
        "without_tests": sum(each.note == "it has no tests" for each in audits),
        "wrong": _share([bool(each.wrong) for each in met]),
        "wrong_by_kind": {kind: _share(found) for kind, found in wrong.items() if found},
        "right": _share([bool(each.rejected) for each in used if each.tried.get("reference")]),
        "right_by_kind": {kind: _share(found) for kind, found in right.items() if found},
    }


def _share(found: Sequence[bool]) -> dict[str, float]:
    if not found:
        return {"problems": 0, "found": 0}
    share = dataclasses.asdict(proportion(sum(found), len(found)))
    return {"problems": len(found), "found": sum(found), **share}
