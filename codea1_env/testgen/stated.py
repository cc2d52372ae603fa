"""Tests of which somebody has said what is right: a docstring, or a tester. The program may disagree."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codea1_env.evaluation.test_programs.answers import read_test_programs
from codea1_env.evaluation.test_programs.facts import facts
from codea1_env.evaluation.test_programs.ruling import Reference, RuledProblem, TestValidity
from codea1_env.oracle import gather
from codea1_env.problem_sets.calls import literal_calls
from codea1_env.problem_sets.fuzz import Call
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.sandbox import AnalysisError, Job, Limits, Outcome, Sandbox
from codea1_env.testgen import doctests
from codea1_env.testgen.docstrings import wrong_defaults
from codea1_env.testgen.findings import Finding, what_it_did
from codea1_env.testgen.observing import Observer
from codea1_env.testgen.target import Target
from codea1_env.testgen.texts import GeneratedTest, Trial, stated_test


@dataclass(frozen=True)
class Proposals:
    """What was read in the answers of an agent."""

    answers: int
    tests: tuple[str, ...]
    """As often as they were proposed."""
    unread: tuple[tuple[str, str], ...]
    """What no test was made of, with the reason."""

    def calls(self, name: str, sandbox: Sandbox, but: Sequence[str] = ()) -> list[Call]:
        """The calls in the tests.

        Args:
            name: The function that is called.
            sandbox: Where texts are parsed.
            but: Tests that ask what is right: their calls are left out.
        """
        doubtful = calls_in(but, name, sandbox)
        return [call for call in calls_in(self.tests, name, sandbox) if call not in doubtful]


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


def read_proposals(answers: Sequence[str], name: str, sandbox: Sandbox) -> Proposals:
    """Read the answers of an agent for a function or class of this name."""
    suites = read_test_programs([(answer, name) for answer in answers], sandbox)
    tests = tuple(test for suite in suites for test in suite.tests)
    unread = tuple((rest.text, rest.reason) for suite in suites for rest in suite.rest)
    return Proposals(len(answers), tests, unread)


def calls_in(texts: Sequence[str], name: str, sandbox: Sandbox) -> list[Call]:
    """The calls with literal arguments in texts."""
    try:
        found: list[Call] = sandbox.analyse(literal_calls, list(texts), name)
    except AnalysisError:  # they were only a hint
        return []
    return found


_LIMITS = Limits(call_cpu_time=2, call_wall_time=10)
"""For all examples of a docstring."""
_RUN = "_codea1_examples"
_APPENDED = """

_codea1_doctests = {{"__name__": "codea1_doctests"}}
__import__("builtins").exec({text!r}, _codea1_doctests)


def {run}(text):
    return _codea1_doctests["run_examples"](text, globals(), {sets})
"""
_FILE = Path(doctests.__file__)
_SETS = re.compile(r"\b(?:frozen)?set[(\[]|\{[^:{}]+\bfor\b")
"""A program that makes sets, whose order may be another in every process; two of them may have the same by chance."""
_FORMS = ("value", "holds", "shown", "printed", "error")
_MAX = 200


def contradictions(target: Target, sandbox: Sandbox) -> list[Finding]:
    """Run the examples of the docstrings; what differs between two processes is none.

    Raises:
        InfraError: The sandbox failed.
    """
    texts = [inspect.cleandoc(text) for text in target.docs if ">>>" in text]
    if not texts:
        return _defaults(target, sandbox)
    text = _FILE.read_text(encoding="utf-8")
    sets = bool(_SETS.search(target.core))
    program = target.program + _APPENDED.format(text=text, run=_RUN, sets=sets)
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
    for one, other in zip(*gather(jobs), strict=True):
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
        test = stated_test("import inspect", source, {"value": row["says"]})
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
    says = f"says {_short(row['want'])}"
    if row["form"] == "raises" and row["got"].partition(":")[0] == row["want"].partition(":")[0]:
        says = "says otherwise"
    source, before, test = row["source"], "", None
    for each in target.examples:
        if each["source"] in (source, f"({source})", _printed(source)):
            [(form, text)] = [(key, each[key]) for key in _FORMS if key in each]
            if form == "error":
                says = f"says {text} is raised"
            before = each["before"]
            test = stated_test(before, each["source"], {form: text}, each["uses"])
            break
    if row["form"] == "prints":
        did, says = f"prints {_short(row['got'])!r}", f"prints {_short(row['want'])!r}"
    else:
        did = f"{row['form']} {_short(row['got'])}"
    return Finding(source, did, f"the docstring {says}", "example", before, test)


def _printed(source: str) -> str:
    return source.removeprefix("print(").removesuffix(")")


def _short(text: str) -> str:
    return text if len(text) <= _MAX else f"{text[: _MAX - 3]}..."


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
