"""Tests of which somebody has said what is right: a docstring, or a tester. The program may disagree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from codea1_env.evaluation.test_programs.facts import facts
from codea1_env.evaluation.test_programs.ruling import Reference, RuledProblem
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.sandbox import Job, Outcome, Sandbox
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
_WANTED = ("value", "shown", "printed", "error")
_PRINTS = (
    "an example of the docstring that fails, but may show what is printed, which is not compared"
)
_UNSAFE = "uses more than the function and plain values, and would run outside the sandbox"


@dataclass(frozen=True)
class Stated:
    """A test, and who says what is right."""

    test: GeneratedTest
    source: str = ""
    """The expression that is tested, where it is known."""
    expected: str = ""
    """Who expects what, in words, where it is known."""


@dataclass(frozen=True)
class Judged:
    """What came of stated tests."""

    kept: tuple[GeneratedTest, ...]
    findings: tuple[Finding, ...]
    dropped: tuple[tuple[str, str], ...]
    """Text and reason of those that are no use, through no fault of the program."""


def examples(target: Target) -> list[Stated]:
    """The examples of the docstring."""
    found = []
    for each in target.examples:
        wanted = {key: each[key] for key in _WANTED if key in each}
        [(form, text)] = wanted.items()
        says = f"says {text} is raised" if form == "error" else f"says {text}"
        if form == "printed":
            says = f"prints {text!r}"
        test = stated_test(each["before"], each["source"], wanted, each["uses"])
        found.append(Stated(test, each["source"], f"the docstring {says}"))
    return found


def of_tester(text: str) -> Stated:
    """A test that a tester wrote."""
    return Stated(GeneratedTest(text, text, "tester"))


def judge(stated: Sequence[Stated], target: Target, sandbox: Sandbox) -> Judged:
    """Run stated tests on the program; of those that say the same, the first counts.

    Raises:
        InfraError: The sandbox failed.
    """
    own = [each for each in stated if each.test.origin == "docstring"]
    kept, failed = _judge_examples(own, target, sandbox)
    findings: list[Finding] = []
    dropped: list[tuple[str, str]] = []
    for each in failed:
        if target.prints and not each.test.errors:
            dropped.append((each.test.text, _PRINTS))
        elif (finding := _finding(each, target, sandbox)) is not None:
            findings.append(finding)
    texts = [each.test.text for each in stated if each.test.origin == "tester"]
    rulings = Reference(sandbox, share=1.0).rule(RuledProblem.of(target.problem), texts)
    seen: set[str] = set()
    for text in texts:
        ruling = rulings[text]
        if ruling.key in seen:
            continue
        seen.add(ruling.key)
        finding, reason = None, ruling.reason.replace("the reference", "the program")
        if ruling.status == "kept":
            if ruling.stable:
                kept.append(GeneratedTest(text, text, "tester"))
                continue
            reason = _UNSAFE
        elif ruling.fault in _DISAGREES:
            finding = _finding(of_tester(text), target, sandbox)
        if finding is not None:
            findings.append(finding)
        else:
            dropped.append((text, reason))
    distinct = {each.source: each for each in reversed(findings)}
    return Judged(tuple(kept), tuple(reversed(distinct.values())), tuple(dropped))


def _judge_examples(
    stated: Sequence[Stated], target: Target, sandbox: Sandbox
) -> tuple[list[GeneratedTest], list[Stated]]:
    """Those that pass, and those that fail. What the author says is a test: nobody asks whether it is one."""
    jobs = [
        Job(target.program, (each.test.text,), entry_point(target, [each.test]), hash_seed=seed)
        for each in stated
        for seed in (0, 1)
    ]
    passed = [result.passed for [result] in sandbox.run_many(jobs)]
    holds = [one and other for one, other in zip(passed[::2], passed[1::2], strict=True)]
    kept = [each.test for each, held in zip(stated, holds, strict=True) if held]
    failed = [each for each, held in zip(stated, holds, strict=True) if not held]
    return kept, failed


def entry_point(target: Target, tests: Sequence[GeneratedTest]) -> str | None:
    """The only name of the program that tests use; None if they use others, too."""
    return None if any(test.uses for test in tests) else target.name


def _finding(stated: Stated, target: Target, sandbox: Sandbox) -> Finding | None:
    """What the program does where a test expects something else; None if the test itself is at fault."""
    text = f"assert {stated.source} == 0" if stated.source else stated.test.text
    call: Any = sandbox.analyse(facts, [(text, target.name)])[0]["call"]
    if call is not None and not target.is_class:
        trial = Trial(tuple(call["args"]), dict(call["kwargs"]))
        observer = Observer(target.name, (), sandbox)
        [(seen, _)] = observer.twice(target.program, [trial])
        expected = stated.expected or f"the tester expected {call['predicted']}"
        return Finding(call["source"], what_it_did(seen), expected)
    entry = entry_point(target, [stated.test])
    # A tester's test has the time of one call, as where it was ruled on: what never ends would cost 15 times that.
    limits = sandbox.limits
    if stated.test.origin == "tester":
        limits = replace(limits, calls_per_test=1)
    [result] = sandbox.run_tests(
        target.program, [stated.test.text], entry_point=entry, limits=limits
    )
    if result.outcome is Outcome.FAIL:
        did = f"does not hold ({result.message})" if result.message else "does not hold"
    elif result.outcome is Outcome.ERROR and result.error not in _OWN_MISTAKES:
        did = f"raises {result.message}"
    else:
        return None
    source = stated.source or "; ".join(stated.test.text.splitlines())
    return Finding(source, did, stated.expected or "the tester expected it to pass")
