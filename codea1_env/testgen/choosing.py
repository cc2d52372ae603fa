"""The fewest tests that kill the same mutants."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from codea1_env.mutation import Mutant
from codea1_env.mutation.kills import Kills, find_kills
from codea1_env.problem_sets.fuzz import Call
from codea1_env.sandbox import Sandbox
from codea1_env.testgen.earlier import Earlier
from codea1_env.testgen.findings import Finding, distinct
from codea1_env.testgen.invent import TrialMaker, as_trials, plans, with_examples
from codea1_env.testgen.looking import SEARCHING, Deadline, Looker, exceptional, remembering
from codea1_env.testgen.observing import Seen, differ, is_stable
from codea1_env.testgen.stated import calls_in
from codea1_env.testgen.target import Target
from codea1_env.testgen.texts import GeneratedTest, Trial


@dataclass(frozen=True)
class Reduction:
    """A suite, and the part of it that is kept."""

    chosen: tuple[int, ...]
    """Numbers of the tests that are kept."""
    before: Kills
    """What all tests kill."""
    after: Kills
    """What the kept ones kill when they are run on their own: the same mutants."""


def reduce_and_check(
    program: str,
    entry_point: str | None,
    tests: Sequence[str],
    mutants: Sequence[Mutant],
    sandbox: Sandbox,
) -> Reduction:
    """Reduce a suite, and run what is left once more.

    Should it kill other mutants than the whole suite (a program that remembers earlier calls can do that), all
    tests are kept.

    Args:
        program: See `find_kills`.
        entry_point: See `find_kills`.
        tests: See `find_kills`.
        mutants: See `find_kills`.
        sandbox: Where everything runs.
    """
    before = find_kills(program, entry_point, tests, mutants, sandbox)
    chosen = reduce_suite(before.by_test, tests)
    if len(chosen) == len(tests):
        return Reduction(tuple(chosen), before, before)
    kept = [tests[number] for number in chosen]
    after = find_kills(program, entry_point, kept, mutants, sandbox)
    if after.killed != before.killed:
        return Reduction(tuple(range(len(tests))), before, before)
    return Reduction(tuple(chosen), before, after)


def reduce_suite(kills: Sequence[frozenset[int]], tests: Sequence[str]) -> list[int]:
    """Choose few tests that kill every mutant which the whole suite kills.

    Greedy set cover: again and again the test that kills most of what is left; of equals the shorter, simpler
    one. Afterwards tests go whose mutants the later ones kill as well. A suite that kills nothing keeps its
    simplest test.

    Args:
        kills: For each test the mutants that it kills.
        tests: The tests.

    Returns:
        The numbers of the chosen tests, in their order in the suite.

    Example:
        >>> suite = ["assert f(10) == 1", "assert f(1) == 2", "assert f(2) == 2"]
        >>> reduce_suite([frozenset({0}), frozenset({0, 1}), frozenset({1, 2})], suite)
        [1, 2]
    """
    if not tests:
        return []
    simple = sorted(range(len(tests)), key=lambda number: simplicity(tests[number]))
    chosen: list[int] = []
    left = set().union(*kills)
    while left:
        best = max(simple, key=lambda number: len(kills[number] & left))
        chosen.append(best)
        left -= kills[best]
    for number in sorted(chosen, key=simple.index, reverse=True):
        others = [kills[other] for other in chosen if other != number]
        if kills[number] <= set().union(*others):
            chosen.remove(number)
    return sorted(chosen or simple[:1])


def simplicity(test: str) -> tuple[int, int, str]:
    """Sort tests: those of fewer lines first, then shorter ones."""
    return test.count("\n"), len(test), test


_ROUNDS = 2
_CHECKING = 0.85
"""Share of the time, after which what was chosen is written."""


@dataclass(frozen=True)
class Invented:
    """What came of a search."""

    tests: list[GeneratedTest]
    """Few tests that kill as many mutants as all that were tried."""
    kills: list[frozenset[int]]
    """For each test the numbers of mutants that it kills, and no other test does."""
    findings: list[Finding]
    passing: int
    """Calls that could be tests."""
    unstable: list[str]
    """Calls that gave two different results."""
    outside: list[str]
    """Calls that asked for files, the network or standard input, and what they raised."""
    cut: bool
    """The time was over before everything was tried."""


def search(
    target: Target,
    mutants: Sequence[Mutant],
    sandbox: Sandbox,
    rng: np.random.Generator,
    clock: Deadline,
    earlier: Earlier | None,
    proposed: Sequence[Call],
) -> Invented:
    """Make up tests for a function or class.

    Args:
        target: What is tested.
        mutants: Of its program.
        sandbox: Where everything runs.
        rng: Source of chance.
        clock: How long it may take; with what is known then it ends.
        earlier: A version to compare with: what both do differently is a finding, and no test.
        proposed: Calls that somebody thinks worth a trial.
    """
    looker = Looker(target, mutants, sandbox, clock, earlier)
    maker = TrialMaker(target, looker.twice, rng)
    documented = calls_in([each["source"] for each in target.examples], target.name, sandbox)
    return _Search(target, looker, maker, clock, documented, proposed, earlier is not None).run()


@dataclass
class _Search:
    target: Target
    looker: Looker
    maker: TrialMaker
    clock: Deadline
    documented: Sequence[Call]
    proposed: Sequence[Call]
    compares: bool
    kills: dict[str, frozenset[int]] = field(default_factory=dict)
    unlike: list[str] = field(default_factory=list)
    """Trials that give something else where nothing ran before them."""

    def run(self) -> Invented:
        looker, target = self.looker, self.target
        for trials in self._stages():
            if self.clock.is_over(SEARCHING):
                break
            left = self._left()
            self.kills |= looker.kills_of(looker.look(trials()), left)
        tried = {name: (trial, looker.seen[name]) for name, trial in looker.usable.items()}
        findings = distinct(
            [
                *looker.accidents,
                *exceptional(tried, target, looker.observer),
                *remembering(list(looker.moody.values()), target, looker.observer),
            ]
        )
        chosen = self._chosen()
        # Until now only those mutants were tried that were left at the time.
        known = {name: self.kills[name] for name in chosen}
        self.kills = looker.kills_of(chosen, range(len(looker.codes)), _CHECKING)
        if self.clock.is_over(_CHECKING):
            looker.cut = True
            self.kills = {name: self.kills[name] | known[name] for name in chosen}
        chosen = self._chosen()
        for name in chosen:
            others = (self.kills[other] for other in chosen if other != name)
            self.kills[name] = self.kills[name].difference(*others)
            if target.is_class and not self.clock.is_over():
                self._shrink(name, sorted(self.kills[name]))
        return Invented(
            [looker.test(name) for name in chosen],
            [self.kills[name] for name in chosen],
            findings,
            len(looker.usable),
            [*looker.moody, *self.unlike],
            looker.outside,
            looker.cut,
        )

    def _chosen(self) -> list[str]:
        """Few trials that kill as many mutants as all, and give the same where nothing ran before them."""
        looker = self.looker
        while True:
            names = list(self.kills)
            texts = [looker.test(name).text for name in names]
            kills = [self.kills[name] for name in names]
            chosen = [names[number] for number in reduce_suite(kills, texts)]
            trials = [looker.usable[name] for name in chosen]
            alone = looker.observer.alone(self.target.program, trials)
            pairs = zip(chosen, alone, strict=True)
            lucky = [name for name, seen in pairs if not is_stable(looker.seen[name], seen)]
            if not lucky:
                return chosen
            self.unlike += lucky
            for name in lucky:
                del self.kills[name]

    def _shrink(self, name: str, mutants: Sequence[int]) -> None:
        """Leave out steps, and looks at attributes, without which a trial still kills these mutants."""
        looker = self.looker
        codes = [looker.codes[number] for number in mutants]
        rows = [row[0] for row in looker.observer.on_many(codes, [looker.usable[name]])]
        trial = looker.usable[name]
        shorter = True
        while shorter and not self.clock.is_over():
            shorter = False
            less = [
                replace(trial, steps=(*trial.steps[:step], *trial.steps[step + 1 :]))
                for step in range(len(trial.steps))
            ]
            results = looker.observer.twice(self.target.program, less)
            found = looker.observer.on_many(codes, less)
            for place, (one, other) in enumerate(results):
                column = [row[place] for row in found]
                if is_stable(one, other) and looker.is_usable(one) and _all_differ(one, column):
                    trial, rows, shorter = less[place], column, True
                    looker.usable[name], looker.seen[name] = trial, one
                    break
        for attribute in list(looker.seen[name].found["attributes"]):
            seen = looker.seen[name]
            kept = {key: each for key, each in seen.found["attributes"].items() if key != attribute}
            less_seen = replace(seen, found={**seen.found, "attributes": kept})
            if _all_differ(less_seen, rows):
                looker.seen[name] = less_seen

    def _left(self) -> list[int]:
        """Return the mutants that no trial has killed."""
        killed = frozenset[int]().union(*self.kills.values())
        return [number for number in range(len(self.looker.codes)) if number not in killed]

    def _open(self) -> bool:
        """Whether more calls may show more."""
        different = any(finding.kind == "difference" for finding, _ in self.looker.accidents)
        return bool(self._left()) or (self.compares and not different)

    def _stages(self) -> Iterator[Callable[[], list[Trial]]]:
        """Yield what is tried one after the other, as long as there are mutants left."""
        looker, maker = self.looker, self.maker
        if self.target.is_class:
            yield maker.objects
            looker.ordinary = False
            for _ in range(_ROUNDS):
                if self._open():
                    yield lambda: maker.objects(varied=True)
            return
        parameters = with_examples(self.target.parameters, self.documented)
        if self.proposed:  # by somebody who may not know what the function takes
            certain, looker.certain, looker.ordinary = looker.certain, False, False
            yield lambda: as_trials(self.proposed)
            looker.certain, looker.ordinary = certain, True
        first, *others = maker.working(parameters, plans(parameters))
        yield lambda: [*as_trials(self.documented), *maker.calls(parameters, first)]
        looker.ordinary = False
        for _ in range(_ROUNDS):
            if self._open():
                yield lambda: maker.varied(looker.usable.values())
        looker.certain = False
        for plan in others:
            if self._open():
                yield lambda plan=plan: maker.calls(parameters, plan)  # type: ignore[misc]


def _all_differ(seen: Seen, others: Sequence[Seen | None]) -> bool:
    return all(other is not None and differ(seen, other) for other in others)
