"""Tests of which somebody has said what is right: a docstring, or a tester. The program may disagree."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codea1_env.compare import Returned, read_reply
from codea1_env.oracle import Oracle, Subject, Truth, gather
from codea1_env.problem_sets.fuzz import Call
from codea1_env.reading.calls import literal_calls
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.responses import Test, parse_suites
from codea1_env.sandbox import RETURNED, AnalysisError, Job, Limits, Outcome, Sandbox, equal
from codea1_env.sandbox.compare import FLOAT_ATOL, FLOAT_RTOL
from codea1_env.testgen import doctests
from codea1_env.testgen.docstrings import wrong_defaults
from codea1_env.testgen.findings import Finding, short, what_it_did
from codea1_env.testgen.importing import beside
from codea1_env.testgen.observing import Observer
from codea1_env.testgen.target import Target
from codea1_env.testgen.texts import GeneratedTest, Trial, stated_test


@dataclass(frozen=True)
class Predictions:
    """What became of the tests that an agent wrote, each as often as it was written."""

    answers: int
    tests: int
    right: int
    """Those that the program passes."""
    wrong: int
    """Those that fail: another value, an exception, no end."""
    useless: int
    """What says nothing about the program."""
    reason: str = ""
    """Why the first of these does not."""

    @property
    def in_words(self) -> str:
        """For the screen."""
        first = f" (the first: {self.reason})" if self.reason else ""
        return (
            f"{self.tests} tests in {self.answers} answers: {self.right} right, {self.wrong} wrong, "
            f"{self.useless} of no use{first}"
        )


def calls_in(texts: Sequence[str], name: str, sandbox: Sandbox) -> list[Call]:
    """Return the calls with literal arguments in texts."""
    try:
        found: list[Call] = sandbox.analyse(literal_calls, list(texts), name)
    except AnalysisError:  # they were only a hint
        return []
    return found


_LIMITS = Limits(call_cpu_time=2, call_wall_time=10)
"""For all examples of a docstring."""
_RUN = "_codea1_examples"
_APPENDED = """
def _codea1_examples(text):
    return _codea1_doctests["run_examples"](text, globals(), {sets})
"""
_SETS = re.compile(r"\b(?:frozen)?set[(\[]|\{[^:{}]+\bfor\b")
"""A program that makes sets, whose order may be another in every process; two of them may have the same by chance."""


def contradictions(target: Target, sandbox: Sandbox) -> list[Finding]:
    """Run the examples of the docstrings; what differs between two processes is none.

    Raises:
        InfraError: The sandbox failed.
    """
    texts = [inspect.cleandoc(text) for text in target.docs if ">>>" in text]
    sets = bool(_SETS.search(target.core))
    program = target.program + beside(doctests) + _APPENDED.format(sets=sets)
    jobs = [
        sandbox.submit_calls(
            program,
            _RUN,
            [([each], {}) for each in texts],
            limits=_LIMITS.with_room_for(len(texts)),
            hash_seed=seed,
        )
        for seed in (0, 1)
    ]
    findings = _defaults(target, sandbox)
    for one, other in zip(*gather(jobs), strict=True) if texts else ():
        if one.outcome is Outcome.PASS and other.outcome is Outcome.PASS and _is_answer(one.value):
            findings += [_contradiction(row, target) for row in one.value if row in other.value]
    return findings


def _defaults(target: Target, sandbox: Sandbox) -> list[Finding]:
    """Default values that are documented as others."""
    if not any("default" in text.lower() for text in target.docs):
        return []
    try:
        rows = sandbox.analyse(wrong_defaults, target.source, target.name)
    except AnalysisError:  # a docstring may say anything
        return []
    found = []
    for row in rows:
        owner, name = row["owner"], row["name"]
        source = f"inspect.signature({owner}).parameters[{name!r}].default"
        test = stated_test("import inspect", source, "value", row["says"])
        did, says = f"is {row['value']}", f"the docstring says that it is {row['says']}"
        found.append(Finding(source, did, says, "default", "import inspect", test))
    return found


def _is_answer(value: Any) -> bool:
    """Whether it is what `doctests.run_examples` gives: it has run in the process of the program."""
    return isinstance(value, list) and all(
        isinstance(row, dict)
        and row.keys() == {"line", "source", "want", "form", "got"}
        and all(isinstance(text, str) for key, text in row.items() if key != "line")
        for row in value
    )


def _contradiction(row: Mapping[str, str], target: Target) -> Finding:
    says = f"says {short(row['want'])}"
    if row["form"] == "raises" and row["got"].partition(":")[0] == row["want"].partition(":")[0]:
        says = "says otherwise"
    source, before, test = row["source"], "", None
    printed = source.removeprefix("print(").removesuffix(")")
    for each in target.examples:
        if each["source"] in (source, f"({source})", printed):
            if each["form"] == "error":
                says = f"says {each['text']} is raised"
            before, test = each["before"], _test_of(each)
            break
    if row["form"] == "prints":
        did, says = f"prints {short(row['got'])!r}", f"prints {short(row['want'])!r}"
    else:
        did = f"{row['form']} {short(row['got'])}"
    return Finding(source, did, f"the docstring {says}", "example", before, test)


def _test_of(example: Mapping[str, Any]) -> GeneratedTest:
    """Return the test that an example of a docstring is."""
    parts = (example[name] for name in ("before", "source", "form", "text", "uses"))
    return stated_test(*parts)


_DISAGREES = (None, InvalidReason.RAISES, InvalidReason.TIMEOUT, InvalidReason.LIMIT)
"""Where a test and the program differ: in the value, or since the program gives none."""
_NOT_ALONE = "an example of the docstring that does not hold on its own"
_WRONG = "the program does something else"


@dataclass(frozen=True)
class Judged:
    """What came of stated tests."""

    kept: tuple[GeneratedTest, ...]
    findings: tuple[Finding, ...]
    dropped: tuple[tuple[str, str], ...]
    """Text and reason of those that are no use, or that are an agent's and wrong without being a finding."""
    calls: tuple[Call, ...] = ()
    """What an agent's tests call, worth a trial whatever it gives."""
    predictions: Predictions | None = None
    """What became of an agent's tests."""


def judge(
    target: Target, answers: Sequence[str] | None, sandbox: Sandbox, doubts: int | None = None
) -> Judged:
    """Run the examples of the docstring, and the tests of an agent; of those that say the same, the first counts.

    Args:
        target: The program.
        answers: What an agent wrote, if one was asked.
        sandbox: Where everything runs.
        doubts: So many tests of an agent that fail become findings at most, those that most answers agree on; None for
            all. Then findings are for the author to decide, and what they call is no use.

    Raises:
        InfraError: The sandbox failed.
    """
    own = [_test_of(each) for each in target.examples]
    # What the author says is a test: nobody asks whether it is one.
    holds = that_pass(own, target, target.program, sandbox)
    findings = contradictions(target, sandbox)
    asked = [*itertools.compress(own, holds), *(each.test for each in findings)]
    judged = Judged(
        tuple(itertools.compress(own, holds)),
        tuple({each.source: each for each in findings[::-1]}.values())[::-1],
        tuple((each.text, _NOT_ALONE) for each in own if each not in asked),
    )
    return judged if answers is None else _with_answers(judged, target, answers, sandbox, doubts)


def _with_answers(
    judged: Judged, target: Target, answers: Sequence[str], sandbox: Sandbox, doubts: int | None
) -> Judged:
    suites = parse_suites([(answer, target.problem) for answer in answers], sandbox)
    tests = [test for suite in suites for test in suite.tests]
    useless = [(rest.text, rest.reason) for suite in suites for rest in suite.dropped]
    useless += [(test.text, test.reason) for test in tests if test.fault is not None]
    subject = Subject.of(target.problem)._replace(code=target.program)
    tests = [test for test in tests if test.fault is None]
    # A suite each: what one costs is not taken from another.
    oracle = Oracle(sandbox, sandbox.limits)
    truths = oracle.ask({subject: [[test] for test in tests]})[subject] if tests else {}
    right = [is_right(test, truths[test.call_text]) for test in tests]
    disagree = [
        truths[test.call_text].fault in _DISAGREES and not yes
        for test, yes in zip(tests, right, strict=True)
    ]
    alike: dict[str, list[tuple[Test, bool, bool]]] = {}
    for each in zip(tests, right, disagree, strict=True):
        alike.setdefault(each[0].same_as, []).append(each)
    kept, wrong = [], []
    for some in alike.values():
        test = some[0][0]
        truth = truths[test.call_text]
        # Who predicts something else elsewhere is not sure of it: one that is right is enough.
        if any(yes for _, yes, _ in some):
            text = f"assert {test.call_text} == {truth.source}"
            kept.append(GeneratedTest(text, text, "tester"))
        elif any(no for *_, no in some):
            predicted = [each.text for each, *_ in some]
            wrong.append(
                max((each for each, *_ in some), key=lambda each: predicted.count(each.text))
            )
        else:
            useless.append((test.text, _said(truth.reason)))
    texts = [test.text for test in tests]
    wrong.sort(key=lambda test: -texts.count(test.text))
    found: dict[str, Finding] = {}
    for test in wrong if doubts is None else wrong[:doubts]:
        found[test.text] = _finding(test, target, sandbox)
    doubtful = calls_in([*found], target.name, sandbox) if doubts is None else []
    calls = calls_in(texts, target.name, sandbox)
    findings = [*judged.findings, *found.values()]
    return Judged(
        (*judged.kept, *kept),
        tuple({each.source: each for each in findings[::-1]}.values())[::-1],
        (
            *judged.dropped,
            *((test.text, _WRONG) for test in wrong if test.text not in found),
            *useless,
        ),
        tuple(call for call in calls if call not in doubtful),
        Predictions(
            len(answers),
            len(texts),
            sum(right),
            sum(disagree),
            len(useless),
            next((reason for _, reason in useless), ""),
        ),
    )


def is_right(test: Test, truth: Truth) -> bool:
    """Whether a prediction is the value, and the value can be written down."""
    found, said = truth.read if not truth.reason else None, read_reply(RETURNED + test.predicted)
    if not isinstance(found, Returned) or not isinstance(said, Returned) or truth.source is None:
        return False
    atol, rtol = test.absolute or FLOAT_ATOL, test.relative or FLOAT_RTOL
    return equal(found.value, said.value, atol, rtol)


def _said(reason: str) -> str:
    return reason.replace("the reference", "the program")


def that_pass(
    tests: Sequence[GeneratedTest], target: Target, program: str, sandbox: Sandbox
) -> list[bool]:
    """Which tests pass on a program, each alone, and in two processes with different hash seeds."""
    jobs = [
        Job(program, (each.text,), entry_point(target, [each]), hash_seed=seed)
        for each in tests
        for seed in (0, 1)
    ]
    passed = [result.passed for [result] in sandbox.run_many(jobs)]
    return [one and other for one, other in zip(passed[::2], passed[1::2], strict=True)]


def entry_point(target: Target, tests: Sequence[GeneratedTest]) -> str | None:
    """Return the only name of the program that tests use; None if they use others, too."""
    return None if any(test.uses for test in tests) else target.name


def _finding(test: Test, target: Target, sandbox: Sandbox) -> Finding:
    """Return what the program does where a tester expects something else."""
    [(args, kwargs)] = calls_in([test.text], target.name, sandbox)
    observer = Observer(target.name, (), sandbox)
    [(seen, _)] = observer.twice(target.program, [Trial(tuple(args), dict(kwargs))])
    expected = f"the tester expected {test.value}"
    shown = GeneratedTest(test.text, test.text, "tester")
    return Finding(test.call_text, what_it_did(seen), expected, test=shown)
