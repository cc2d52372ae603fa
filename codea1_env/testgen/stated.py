"""Tests of which somebody has said what is right: a docstring, or a tester. The program may disagree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from codea1_env.evaluation.test_programs.facts import facts
from codea1_env.evaluation.test_programs.ruling import Reference, RuledProblem, TestValidity
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.sandbox import Job, Outcome, Sandbox
from codea1_env.testgen.contradictions import contradictions
from codea1_env.testgen.findings import Finding, what_it_did
from codea1_env.testgen.observing import Observer
from codea1_env.testgen.target import Target
from codea1_env.testgen.texts import GeneratedTest, Trial, stated_test

_DISAGREES = (
    InvalidReason.WRONG_VALUE,
    InvalidReason.RAISES,
    InvalidReason.TIMEOUT,
    InvalidReason.LIMIT,
)
_OWN_MISTAKES = (
    "NameError",
    "ImportError",
    "ModuleNotFoundError",
    "SyntaxError",
    "UnboundLocalError",
)
_WANTED = ("value", "holds", "shown", "printed", "error")
_NOT_ALONE = "an example of the docstring that does not hold on its own"
_UNSAFE = "uses more than the function and plain values, and would run outside the sandbox"


@dataclass(frozen=True)
class Judged:
    """What came of stated tests."""

    kept: tuple[GeneratedTest, ...]
    findings: tuple[Finding, ...]
    dropped: tuple[tuple[str, str], ...]
    """Text and reason of those that are no use, through no fault of the program."""
    contradicted: tuple[tuple[str, str], ...]
    """The same of a tester's tests that the program contradicts, beside those that became findings."""
    doubted: tuple[str, ...]
    """Texts of a tester's tests that became findings."""
    right: int
    """Tests of a tester that pass, each as often as it was written."""
    wrong: int
    """Those that the program contradicts, likewise."""


def examples(target: Target) -> list[GeneratedTest]:
    """The examples of the docstring."""
    found = []
    for each in target.examples:
        wanted = {key: each[key] for key in _WANTED if key in each}
        found.append(stated_test(each["before"], each["source"], wanted, each["uses"]))
    return found


def of_tester(text: str) -> GeneratedTest:
    """A test that a tester wrote."""
    return GeneratedTest(text, text, "tester")


def judge(
    stated: Sequence[GeneratedTest], target: Target, sandbox: Sandbox, doubts: int | None = None
) -> Judged:
    """Run stated tests on the program; of those that say the same, the first counts.

    Args:
        stated: The tests.
        target: The program.
        sandbox: Where everything runs.
        doubts: So many tests of a tester that fail become findings at most, those that most answers agree on; None
            for all.

    Raises:
        InfraError: The sandbox failed.
    """
    own = [each for each in stated if each.origin == "docstring"]
    # What the author says is a test: nobody asks whether it is one.
    holds = that_pass(own, target, target.program, sandbox)
    kept = [each for each, held in zip(own, holds, strict=True) if held]
    failed = [each for each, held in zip(own, holds, strict=True) if not held]
    findings = contradictions(target, sandbox)
    known = {each.test for each in findings}
    dropped = [(each.text, _NOT_ALONE) for each in failed if each not in known]
    texts = [each.text for each in stated if each.origin == "tester"]
    rulings = Reference(sandbox, share=1.0).rule(RuledProblem.of(target.problem), texts)
    alike: dict[str, list[str]] = {}
    for text in texts:
        alike.setdefault(rulings[text].key, []).append(text)
    wrong = []
    for some in alike.values():
        # Who predicts something else elsewhere is not sure of it: one that is right is enough.
        text = next((each for each in some if rulings[each].status == "kept"), some[0])
        ruling = rulings[text]
        if ruling.status == "kept" and ruling.stable:
            kept.append(of_tester(text))
        elif ruling.status != "kept" and ruling.fault in _DISAGREES and ruling.stable:
            wrong.append(max(some, key=some.count))
        else:
            dropped.append((text, _UNSAFE if not ruling.stable else _said(ruling)))
    wrong.sort(key=lambda text: -texts.count(text))
    doubted: list[str] = []
    contradicted: list[tuple[str, str]] = []
    for text in wrong:
        finding = None
        if doubts is None or len(doubted) < doubts:
            finding = _finding(of_tester(text), target, sandbox)
        if finding is not None:
            findings.append(finding)
            doubted.append(text)
        else:
            contradicted.append((text, _said(rulings[text])))
    distinct = {each.source: each for each in reversed(findings)}
    statuses = [rulings[text] for text in texts]
    return Judged(
        tuple(kept),
        tuple(reversed(distinct.values())),
        tuple(dropped),
        tuple(contradicted),
        tuple(doubted),
        sum(each.status == "kept" for each in statuses),
        sum(each.status != "kept" and each.fault in _DISAGREES for each in statuses),
    )


def _said(ruling: TestValidity) -> str:
    return ruling.reason.replace("the reference", "the program")


def that_pass(
    tests: Sequence[GeneratedTest],
    target: Target,
    program: str,
    sandbox: Sandbox,
    hash_seeds: Sequence[int] = (0, 1),
) -> list[bool]:
    """Which tests pass on a program, each alone, and in each of several processes with other hash seeds."""
    jobs = [
        Job(program, (each.text,), entry_point(target, [each]), hash_seed=seed)
        for each in tests
        for seed in hash_seeds
    ]
    passed = [result.passed for [result] in sandbox.run_many(jobs)]
    number = len(hash_seeds)
    return [all(passed[place : place + number]) for place in range(0, len(passed), number)]


def entry_point(target: Target, tests: Sequence[GeneratedTest]) -> str | None:
    """The only name of the program that tests use; None if they use others, too."""
    return None if any(test.uses for test in tests) else target.name


def _finding(test: GeneratedTest, target: Target, sandbox: Sandbox) -> Finding | None:
    """What the program does where a tester expects something else; None if the test itself is at fault."""
    text = test.text
    call: Any = sandbox.analyse(facts, [(text, target.name)])[0]["call"]
    if call is not None and not target.is_class:
        trial = Trial(tuple(call["args"]), dict(call["kwargs"]))
        observer = Observer(target.name, (), sandbox)
        [(seen, _)] = observer.twice(target.program, [trial])
        expected = f"the tester expected {call['predicted']}"
        return Finding(call["source"], what_it_did(seen), expected, test=test)
    # A test has the time of one call, as where it was ruled on: what never ends would cost 15 times that.
    limits = replace(sandbox.limits, calls_per_test=1)
    [result] = sandbox.run_tests(target.program, [text], entry_point=target.name, limits=limits)
    if result.outcome is Outcome.FAIL:
        did = f"does not hold ({result.message})" if result.message else "does not hold"
    elif result.outcome is Outcome.ERROR and result.error not in _OWN_MISTAKES:
        did = f"raises {result.message}"
    else:
        return None
    source = "; ".join(text.splitlines())
    return Finding(source, did, "the tester expected it to pass", test=test)
