"""Writes tests for one function or class of a user's file."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from codea1_env.mutation import Mutant, generate_mutants
from codea1_env.mutation.kills import Kills, find_kills
from codea1_env.rendering.display import clean
from codea1_env.sandbox import Sandbox
from codea1_env.testgen.choosing import reduce_suite, search
from codea1_env.testgen.earlier import Earlier
from codea1_env.testgen.findings import DOUBTFUL, Finding
from codea1_env.testgen.invent import can_be_called
from codea1_env.testgen.looking import Deadline, spread
from codea1_env.testgen.stated import Predictions, calls_in, entry_point, judge, that_pass
from codea1_env.testgen.target import Target
from codea1_env.testgen.texts import GeneratedTest

_MOST_MUTANTS = 400
"""Where there is a bound of time: a class of a thousand lines has thousands."""
_STATED = 0.3
"""Share of the time for tests that somebody else wrote."""
_DOUBTS = 3
"""Wrong predictions of an agent that become questions: most are its own mistakes."""


@dataclass(frozen=True)
class FunctionSuite:
    """Tests for a function, and what was found on the way."""

    target: Target
    tests: tuple[GeneratedTest, ...]
    """Few tests that pass and kill as many mutants as all that were found."""
    findings: tuple[Finding, ...]
    """Where the function does something else than somebody expected."""
    questions: tuple[Finding, ...]
    """What is surprising, but mostly meant: nobody but the author knows."""
    candidates: int
    """Tests that pass: those that were written, and made-up calls."""
    dropped: tuple[tuple[str, str], ...]
    """Tests that say nothing about the function, with the reason."""
    unstable: tuple[str, ...]
    """Calls that gave different results in two runs."""
    outside: tuple[str, ...]
    """Calls that asked for files, the network or standard input, and what they raised."""
    cut: bool
    """The time was over before everything was tried."""
    kills: Kills
    """What the tests do to the mutants of the function. Of a test of a made-up call only those mutants are known that
    no other test kills."""
    predictions: Predictions | None = None
    """What became of an agent's tests."""


def write_function_suite(
    target: Target,
    answers: Sequence[str] | None,
    sandbox: Sandbox,
    seed: int = 0,
    timeout: float | None = None,
    *,
    earlier: Earlier | None = None,
    all_findings: bool = False,
    only_findings: bool = False,
) -> FunctionSuite:
    r"""Find tests for a function or class.

    The examples of the docstring come first, and with them the right tests of an agent. For what these leave over, calls
    are made up; those that the agent proposed are tried before.

    Args:
        target: What is tested.
        answers: What an agent wrote, if one was asked.
        sandbox: Where everything runs.
        seed: Of the choice among the calls that can be made up.
        timeout: Seconds after which it ends with what is known; a little more, since what has begun is finished. None
            for as long as it takes.
        earlier: A version of the function to compare with.
        all_findings: Whether kinds of findings of which most are no mistakes are findings, too, and no questions.
        only_findings: Whether tests are left out, which take most of the time.

    Raises:
        InfraError: The sandbox failed.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from codea1_env.sandbox import default_sandbox
        >>> from codea1_env.testgen.target import read_target
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder) / "mean.py"
        ...     _ = file.write_text("def mean(xs: list[int]):\n    return sum(xs) / len(xs)\n")
        ...     target = read_target(file, "mean", default_sandbox())
        >>> suite = write_function_suite(target, None, default_sandbox())
        >>> print(suite.findings[0].source, suite.findings[0].did)
        mean([]) raises ZeroDivisionError: division by zero
    """
    clock = Deadline(timeout)
    most = None if timeout is None else _MOST_MUTANTS
    mutants = [] if only_findings else mutants_of(target, sandbox, most)
    # Judged as users import it: objects that were made at import are not of a class that is defined anew.
    plain = replace(target, program=target.imported)
    judged = judge(plain, answers, sandbox, None if all_findings else _DOUBTS)
    kept = judged.kept
    if target.module is not None:  # others would tell any mutant apart
        kept = tuple(itertools.compress(kept, that_pass(kept, target, target.program, sandbox)))
    kills = _kills_of(kept, target, mutants, sandbox, clock)
    chosen = [] if only_findings else reduce_suite(kills, [test.text for test in kept])
    killed = frozenset[int]().union(*kills)
    left = [number for number in range(len(mutants)) if number not in killed]
    rng = np.random.default_rng(seed)
    invented = search(
        target, [mutants[number] for number in left], sandbox, rng, clock, earlier, judged.calls
    )
    added: list[tuple[GeneratedTest, frozenset[int]]] = []
    if (left or not kept) and not only_findings:
        # In their written form, and where nothing is defined anew: as whoever runs the file imports it.
        holds = that_pass(invented.tests, target, target.imported, sandbox)
        added = [*itertools.compress(zip(invented.tests, invented.kills, strict=True), holds)]
    known = {each.source for each in judged.findings}
    found = [*judged.findings, *(each for each in invented.findings if each.source not in known)]
    doubtful = [] if all_findings else [each for each in found if each.kind in DOUBTFUL]
    # Where tests expect what the function gives, nobody is asked about an agent's prediction.
    pinned = calls_in([test.text for test, _ in added], target.name, sandbox)
    for each in [each for each in doubtful if each.kind == "tester" and not target.is_class]:
        texts = [each.test.text] if each.test is not None else []
        if any(call in pinned for call in calls_in(texts, target.name, sandbox)):
            doubtful.remove(each)
            found.remove(each)
    return FunctionSuite(
        target=target,
        tests=(*(kept[number] for number in chosen), *(test for test, _ in added)),
        findings=tuple(each for each in found if each not in doubtful),
        questions=tuple(doubtful),
        candidates=len(kept) + invented.passing,
        dropped=judged.dropped,
        unstable=tuple(invented.unstable),
        outside=tuple(invented.outside),
        cut=invented.cut,
        kills=Kills(
            tuple(mutants),
            (
                *(kills[number] for number in chosen),
                *(frozenset(left[number] for number in kills) for _, kills in added),
            ),
        ),
        predictions=judged.predictions,
    )


def _kills_of(
    tests: Sequence[GeneratedTest],
    target: Target,
    mutants: Sequence[Mutant],
    sandbox: Sandbox,
    clock: Deadline,
) -> list[frozenset[int]]:
    """Which mutants each test kills; of as many as there is time for."""
    texts, entry = [test.text for test in tests], entry_point(target, tests)
    kills: list[set[int]] = [set() for _ in texts]
    parts = clock.parts(spread(range(len(mutants))), _STATED, first=16, most=64)
    for part in parts if texts else ():
        found = find_kills(target.program, entry, texts, [mutants[n] for n in part], sandbox)
        for test, killed in enumerate(found.by_test):
            kills[test] |= {part[place] for place in killed}
    return [*map(frozenset, kills)]


def mutants_of(target: Target, sandbox: Sandbox, most: int | None = None) -> list[Mutant]:
    """Return the mutants of the file whose fault is in the function or class itself.

    Args:
        target: The function or class.
        sandbox: Where its text is parsed.
        most: So many at most, spread evenly.
    """
    first, last = target.lines
    text = target.program if target.module is None else target.redefined
    # To make all of those of a long class takes longer than there is time.
    limit = most if target.module is not None else None
    found = [each for each in generate_mutants(text, sandbox, limit) if first <= each.line <= last]
    if most is not None and len(found) > most:
        found = [found[number * len(found) // most] for number in range(most)]
    if target.module is None:
        return found
    return [replace(each, code=target.with_definition(each.code)) for each in found]


def why_nothing(suite: FunctionSuite) -> str:
    """Say why a suite has no tests, and what to do."""
    target = suite.target
    start = "Expect a function that can be tested, actually: "
    if suite.unstable:
        return (
            f"{start}all {len(suite.unstable)} calls of {target.name} gave different results in two runs, such as "
            f"{clean(suite.unstable[0])}. Pass in what it draws or reads (a random.Random, a time), and keep "
            "nothing between calls"
        )
    if suite.outside:
        return (
            f"{start}{target.name} asks for what the sandbox has not, files, the network or standard input: "
            f"{clean(suite.outside[0])}. Move the part that computes into a function of its own"
        )
    if why := can_be_called(target.parameters):
        return (
            f"{start}{why}. Write an example into the docstring (>>> {target.name}(...) and below it the result), "
            "or name an agent with --agent"
        )
    if "SystemExit" in target.raises and not suite.dropped:
        return (
            f"{start}no call of {target.name} can be tested, and its code ends the process. Move the part that "
            "computes into a function of its own"
        )
    first = "".join(f"; the first: {clean(reason)}" for _, reason in suite.dropped[:1])
    return f"{start}no test of {target.name} passes{first}"
