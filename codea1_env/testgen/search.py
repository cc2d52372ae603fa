"""Finds tests for a program of which nobody has written tests: makes up calls, and keeps those that matter.

Calls are made up from annotations, defaults, literals and regular expressions in the code, and examples in the
docstring. What they give is what the program gives; so such a test says that nothing has changed, not that it
is right. A call is worth a test if it tells the program from one of its mutants. Where mutants are left, the
calls are varied, and those that kill are kept.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from codea1_env.mutation import Mutant
from codea1_env.problem_sets.calls import literal_calls
from codea1_env.problem_sets.fuzz import Call, vary_calls
from codea1_env.sandbox import Outcome, Sandbox
from codea1_env.testgen.blame import weighed
from codea1_env.testgen.deadline import Deadline, spread
from codea1_env.testgen.earlier import Earlier, difference, differs
from codea1_env.testgen.findings import (
    Accident,
    Finding,
    Sort,
    accident,
    distinct,
    is_about_surroundings,
    is_wrong_kind,
    question,
    sort_of,
    what_it_did,
)
from codea1_env.testgen.invent import Kind, Parameter, calls, pick, plans, with_examples
from codea1_env.testgen.observing import Observer, Seen, differ, is_stable
from codea1_env.testgen.properties import exceptional, remembering
from codea1_env.testgen.reduction import reduce_suite
from codea1_env.testgen.target import Target
from codea1_env.testgen.texts import GeneratedTest, Trial, names_around, observed_test, trial_text

_CALLS = 100
"""Made-up calls, of which some are tried on all mutants."""
_VARIED = 200
_ROUNDS = 2
_PROBES = 4
"""Calls that show whether a function takes arguments of some kinds."""
_CHOSEN_PLANS = 5
_ENOUGH = 0.75
"""Share of the probes that must work."""
_KINDS_OF_METHODS = 3
_STEPS = 4
"""Methods that are called on one object at most."""
_LOOKING, _SEARCHING, _CHECKING = 0.5, 0.6, 0.85
"""Shares of the time, after which nothing new is tried, mutants are no longer run, and what was chosen is written."""
_MAX_CHARS = 600
"""Longer tests are not kept: nobody could read them."""


@dataclass
class Invented:
    """What came of a search."""

    tests: list[GeneratedTest] = field(default_factory=list)
    """Few tests that kill as many mutants as all that were tried."""
    kills: list[frozenset[int]] = field(default_factory=list)
    """For each test the numbers of mutants that it kills, and no other test does."""
    passing: int = 0
    """Calls that could be tests."""
    findings: list[Finding] = field(default_factory=list)
    unstable: list[str] = field(default_factory=list)
    """Calls that gave two different results."""
    outside: list[str] = field(default_factory=list)
    """Calls that asked for files, the network or standard input, and what they raised."""
    cut: bool = False
    """The time was over before everything was tried."""


def search(
    target: Target,
    mutants: Sequence[Mutant],
    sandbox: Sandbox,
    rng: np.random.Generator,
    clock: Deadline | None = None,
    earlier: Earlier | None = None,
) -> Invented:
    """Make up tests for a function or class.

    Args:
        target: What is tested.
        mutants: Of its program.
        sandbox: Where everything runs.
        rng: Source of chance.
        clock: How long it may take; with what is known then it ends. None for as long as it takes.
        earlier: A version to compare with: what both do differently is a finding, and no test.
    """
    return _Search(target, mutants, sandbox, rng, clock or Deadline(None), earlier).run()


class _Search:
    def __init__(
        self,
        target: Target,
        mutants: Sequence[Mutant],
        sandbox: Sandbox,
        rng: np.random.Generator,
        clock: Deadline,
        earlier: Earlier | None,
    ) -> None:
        self._target = target
        self._clock = clock
        self._earlier = earlier
        self._codes = [mutant.code for mutant in mutants]
        self._sandbox = sandbox
        self._rng = rng
        self._observer = Observer(target.name, target.attributes, sandbox)
        self._shape = target.shape
        self._certain = target.known and all(
            each.annotated
            for parameters in (target.parameters, *target.methods.values())
            for each in parameters
        )
        self._ordinary = True
        """Arguments are such as people would use: what happens with others is no finding."""
        self._seen: dict[str, Seen] = {}
        self._usable: dict[str, Trial] = {}
        self._kills: dict[str, frozenset[int]] = {}
        self._accidents: list[tuple[Finding, Sort]] = []
        self._moody: list[Trial] = []
        self._found = Invented()

    def run(self) -> Invented:
        for trials in self._stages():
            if self._clock.is_over(_SEARCHING):
                break
            left = self._left()
            self._kills |= self._kills_of(self._look(trials()), left)
            self._ordinary = False
        self._found.findings = distinct(
            [
                *self._accidents,
                *exceptional(self._tried(), self._target, self._observer),
                *remembering(self._moody, self._target, self._observer),
            ]
        )
        chosen = self._chosen()
        # Until now only those mutants were tried that were left at the time.
        known = {name: self._kills[name] for name in chosen}
        self._kills = self._kills_of(chosen, range(len(self._codes)), _CHECKING)
        if self._clock.is_over(_CHECKING):
            self._found.cut = True
            self._kills = {name: self._kills[name] | known[name] for name in chosen}
        chosen = self._chosen()
        self._found.passing = len(self._usable)
        for name in chosen:
            others = (self._kills[other] for other in chosen if other != name)
            self._kills[name] = self._kills[name].difference(*others)
            if self._target.is_class and not self._clock.is_over():
                self._shrink(name, sorted(self._kills[name]))
        self._found.tests = [self._test(name) for name in chosen]
        self._found.kills = [self._kills[name] for name in chosen]
        return self._found

    def _chosen(self) -> list[str]:
        """Few trials that kill as many mutants as all, and give the same where nothing ran before them."""
        while True:
            names = list(self._kills)
            texts = [self._test(name).text for name in names]
            kills = [self._kills[name] for name in names]
            chosen = [names[number] for number in reduce_suite(kills, texts)]
            trials = [self._usable[name] for name in chosen]
            alone = self._observer.alone(self._target.program, trials)
            lucky = [
                name
                for name, seen in zip(chosen, alone, strict=True)
                if not is_stable(self._seen[name], seen)
            ]
            if not lucky:
                return chosen
            self._found.unstable += lucky
            for name in lucky:
                del self._kills[name]

    def _shrink(self, name: str, mutants: Sequence[int]) -> None:
        """Leave out steps, and looks at attributes, without which a trial still kills these mutants."""
        codes = [self._codes[number] for number in mutants]
        rows = [row[0] for row in self._observer.on_many(codes, [self._usable[name]])]
        trial = self._usable[name]
        shorter = True
        while shorter and not self._clock.is_over():
            shorter = False
            less = [
                replace(trial, steps=(*trial.steps[:step], *trial.steps[step + 1 :]))
                for step in range(len(trial.steps))
            ]
            results = self._observer.twice(self._target.program, less)
            found = self._observer.on_many(codes, less)
            for place, (one, other) in enumerate(results):
                column = [row[place] for row in found]
                if is_stable(one, other) and self._is_usable(one) and _all_differ(one, column):
                    trial, rows, shorter = less[place], column, True
                    self._usable[name], self._seen[name] = trial, one
                    break
        for attribute in list(self._seen[name].found["attributes"]):
            less_seen = _without(self._seen[name], attribute)
            if _all_differ(less_seen, rows):
                self._seen[name] = less_seen

    def _left(self) -> list[int]:
        """The mutants that no trial has killed."""
        killed = frozenset[int]().union(*self._kills.values())
        return [number for number in range(len(self._codes)) if number not in killed]

    def _tried(self) -> dict[str, tuple[Trial, Seen]]:
        return {name: (trial, self._seen[name]) for name, trial in self._usable.items()}

    def _open(self) -> bool:
        """Whether more calls may show more."""
        different = any(finding.kind == "difference" for finding, _ in self._accidents)
        return bool(self._left()) or (self._earlier is not None and not different)

    def _test(self, name: str) -> GeneratedTest:
        return observed_test(self._usable[name], self._seen[name].found, self._shape)

    # Trials

    def _stages(self) -> Iterator[Callable[[], list[Trial]]]:
        """What is tried one after the other, as long as there are mutants left."""
        if self._target.is_class:
            yield lambda: self._objects(_CALLS)
            for _ in range(_ROUNDS):
                if self._open():
                    yield lambda: self._objects(_VARIED)
            return
        texts = [each["source"] for each in self._target.examples]
        given: list[Call] = self._sandbox.analyse(literal_calls, texts, self._target.name)
        parameters = with_examples(self._target.parameters, given)
        first, *others = self._working(parameters, plans(parameters))
        yield lambda: [*map(_trial, given), *self._calls(parameters, first)]
        for _ in range(_ROUNDS):
            if self._open():
                yield self._varied
        self._certain = False
        for plan in others:
            if self._open():
                yield lambda plan=plan: self._calls(parameters, plan)  # type: ignore[misc]

    def _calls(self, parameters: Sequence[Parameter], plan: Sequence[Kind]) -> list[Trial]:
        return list(map(_trial, calls(parameters, plan, self._target.hints, self._rng, _CALLS)))

    def _working(
        self, parameters: Sequence[Parameter], options: Sequence[tuple[Kind, ...]]
    ) -> list[tuple[Kind, ...]]:
        """The kinds of arguments that a function takes: those that it does not choke on, likely ones first."""
        if len(options) == 1:
            return list(options)
        probes = [
            calls(parameters, plan, self._target.hints, self._rng, 4 * _PROBES)[-_PROBES:]
            for plan in options
        ]
        trials = [_trial(call) for some in probes for call in some]
        results = iter(self._twice(trials))
        shares = []
        for some in probes:
            good = [_is_fine(seen) for _, (seen, _) in zip(some, results, strict=False)]
            shares.append(sum(good) / len(good) if good else 0.0)
        enough = min(_ENOUGH, max(shares))
        return [plan for plan, share in zip(options, shares, strict=True) if share >= enough][
            :_CHOSEN_PLANS
        ]

    def _objects(self, number: int) -> list[Trial]:
        """Objects of a class, with calls of their methods in some order."""
        target, rng = self._target, self._rng
        made = self._pool(target.parameters)
        pools = {
            name: pool
            for name, parameters in target.methods.items()
            if (pool := self._pool(parameters))
        }
        if not made:
            return []
        trials = [_trial(call) for call in made]
        # What cannot be made is looked at once; methods are called on what can.
        runs = zip(made, self._twice(trials), strict=False)
        made = [call for call, (seen, _) in runs if seen.found.get("made")] or made
        names = list(pools)
        for index in range(number if names else 0):
            steps = []
            for step in range(1 + int(rng.integers(_STEPS)) if index >= len(names) else 1):
                name = names[(index if step == 0 else int(rng.integers(len(names)))) % len(names)]
                steps.append((name, *pick(pools[name], rng)))
            trials.append(Trial(*pick(made, rng), tuple(steps)))
        return trials

    def _pool(self, parameters: Sequence[Parameter]) -> list[Call]:
        """Calls with arguments of the likely kinds in turn: those of one kind may all be refused."""
        options = plans(parameters)[:_KINDS_OF_METHODS]
        number = _CALLS // 3 // len(options)
        found = [calls(parameters, plan, self._target.hints, self._rng, number) for plan in options]
        return [call for row in itertools.zip_longest(*found) for call in row if call is not None]

    def _varied(self) -> list[Trial]:
        known = [(trial.arguments, dict(trial.keywords)) for trial in self._usable.values()]
        return list(map(_trial, vary_calls(known, _VARIED, self._rng)))

    # Results

    def _look(self, trials: Sequence[Trial]) -> list[str]:
        """Run new trials on the program; returns the names of those that can be tests."""
        new = {trial_text(trial, self._shape): trial for trial in trials}
        new = {name: trial for name, trial in new.items() if name not in self._seen}
        usable = []
        runs = self._twice(list(new.values()))
        before = self._before(list(new.values())[: len(runs)])
        for (name, trial), (one, other), was in zip(new.items(), runs, before, strict=False):
            self._seen[name] = one
            if not is_stable(one, other):
                self._found.unstable.append(name)
                self._moody.append(trial)
                continue
            found = accident(one, self._target.raises, self._target.returns, certain=self._certain)
            if is_about_surroundings(one):
                self._found.outside.append(f"{name} {what_it_did(one)}")
            elif was is not None and self._earlier is not None and differs(was, one):
                self._accidents.append(difference(trial, was, one, self._shape, self._earlier))
            elif found is not None:
                if self._ordinary:
                    self._report(trial, one, found)
            elif self._is_usable(one):
                self._usable[name] = trial
                test = self._test(name)
                if len(test.text) <= _MAX_CHARS and self._target.name not in names_around(test):
                    usable.append(name)
                else:
                    del self._usable[name]
        return usable

    def _is_usable(self, seen: Seen) -> bool:
        """Whether a test may say that it stays so."""
        target = self._target
        return (
            seen.outcome is Outcome.PASS
            and not is_about_surroundings(seen)
            and accident(seen, target.raises, target.returns, certain=self._certain) is None
            and (self._certain or not is_wrong_kind(seen))
        )

    def _report(self, trial: Trial, seen: Seen, found: Accident) -> None:
        """Add a finding: the trial up to where it went wrong."""
        steps = trial.steps[: found.number + 1] if seen.found.get("made", True) else ()
        upto = replace(trial, steps=steps)
        results = seen.found.get("results", ())[: found.number + 1]
        seen = replace(seen, found={**seen.found, "results": results} if results else {})
        source, test = trial_text(upto, self._shape), question(upto, seen, self._shape)
        found = weighed(found, upto, seen, self._target)
        finding = Finding(source, what_it_did(seen), found.why, found.kind, test=test)
        self._accidents.append((finding, sort_of(seen, steps[-1][0] if steps else "")))

    def _before(self, trials: Sequence[Trial]) -> list[Seen | None]:
        """What the earlier version did; None where nobody knows."""
        if self._earlier is None:
            return [None] * len(trials)
        runs = self._observer.twice(self._earlier.program, trials)
        known = [one if self._earlier.says(one, other) else None for one, other in runs]
        return [*known, *[None] * (len(trials) - len(known))]

    def _twice(self, trials: Sequence[Trial]) -> list[tuple[Seen, Seen]]:
        """Run trials on the program as long as there is time; results of the first ones, mostly of all."""
        found: list[tuple[Seen, Seen]] = []
        for part in self._clock.parts(trials, _LOOKING, first=4, most=64):
            seen = self._observer.twice(self._target.program, part)
            found += seen
            if len(seen) < len(part):
                break
        self._found.cut = self._found.cut or self._clock.is_over(_LOOKING)
        return found

    def _kills_of(
        self, names: Sequence[str], mutants: Sequence[int], share: float = _SEARCHING
    ) -> dict[str, frozenset[int]]:
        """Which of these mutants each usable trial tells from the program, as far as there is time."""
        trials = [self._usable[name] for name in names]
        found: dict[str, set[int]] = {name: set() for name in names}
        for part in self._clock.parts(spread(mutants), share, first=8, most=64) if names else ():
            rows = self._observer.on_many([self._codes[number] for number in part], trials)
            for place, name in enumerate(names):
                found[name] |= {
                    number
                    for number, row in zip(part, rows, strict=True)
                    if (result := row[place]) is not None and differ(self._seen[name], result)
                }
        self._found.cut = self._found.cut or self._clock.is_over(share)
        return {name: frozenset(numbers) for name, numbers in found.items()}


def _trial(call: Call) -> Trial:
    return Trial(*call)


def _is_fine(seen: Seen) -> bool:
    return seen.outcome is Outcome.PASS and not is_wrong_kind(seen)


def _all_differ(seen: Seen, others: Sequence[Seen | None]) -> bool:
    return all(other is not None and differ(seen, other) for other in others)


def _without(seen: Seen, attribute: str) -> Seen:
    kept = {name: value for name, value in seen.found["attributes"].items() if name != attribute}
    return replace(seen, found={**seen.found, "attributes": kept})
