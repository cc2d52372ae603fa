"""Runs trials on a program and its mutants: which can be tests, what they kill, and which look like accidents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from codea1_env.mutation import Mutant
from codea1_env.sandbox import Outcome, Sandbox
from codea1_env.testgen.blame import weighed
from codea1_env.testgen.deadline import Deadline, spread
from codea1_env.testgen.earlier import Earlier, difference, differs
from codea1_env.testgen.findings import (
    Accident,
    Finding,
    Sort,
    accident,
    is_about_surroundings,
    is_wrong_kind,
    question,
    sort_of,
    what_it_did,
)
from codea1_env.testgen.observing import Observer, Seen, differ, is_stable
from codea1_env.testgen.target import Target
from codea1_env.testgen.texts import GeneratedTest, Trial, names_around, observed_test, trial_text

LOOKING, SEARCHING = 0.5, 0.6
"""Shares of the time, after which nothing new is tried, and mutants are no longer run."""
_MAX_CHARS = 600
"""Longer tests are not kept: nobody could read them."""


class Looker:
    """Runs trials, and remembers what came of them.

    Args:
        target: The program.
        mutants: Its mutants.
        sandbox: Where all run.
        clock: How long it may take.
        earlier: A version to compare with.
    """

    def __init__(
        self,
        target: Target,
        mutants: Sequence[Mutant],
        sandbox: Sandbox,
        clock: Deadline,
        earlier: Earlier | None,
    ) -> None:
        self._target = target
        self._clock = clock
        self._earlier = earlier
        self._shape = target.shape
        self.codes = [mutant.code for mutant in mutants]
        self.observer = Observer(target.name, target.attributes, sandbox)
        self.certain = target.known and all(
            each.annotated
            for parameters in (target.parameters, *target.methods.values())
            for each in parameters
        )
        """Arguments are of the annotated kinds, so that no error can be blamed on them."""
        self.ordinary = True
        """Arguments are such as people would use: what happens with others is no finding."""
        self.seen: dict[str, Seen] = {}
        self.usable: dict[str, Trial] = {}
        """Trials that can be tests, by their text."""
        self.accidents: list[tuple[Finding, Sort]] = []
        self.moody: dict[str, Trial] = {}
        """Trials that gave two different results."""
        self.outside: list[str] = []
        """Those that asked for files, the network or standard input, and what they raised."""
        self._endless: bool | None = None
        self.cut = False
        """The time was over before everything was run."""

    def look(self, trials: Sequence[Trial]) -> list[str]:
        """Run new trials on the program; returns the names of those that can be tests."""
        new = {trial_text(trial, self._shape): trial for trial in trials}
        new = {name: trial for name, trial in new.items() if name not in self.seen}
        usable = []
        runs = self.twice(list(new.values()))
        before = self._before(list(new.values())[: len(runs)])
        for (name, trial), (one, other), was in zip(new.items(), runs, before, strict=False):
            self.seen[name] = one
            if not is_stable(one, other):
                self.moody[name] = trial
                continue
            found = accident(one, self._target.raises, self._target.returns, certain=self.certain)
            if is_about_surroundings(one):
                self.outside.append(f"{name} {what_it_did(one)}")
            elif was is not None and self._earlier is not None and differs(was, one):
                self.accidents.append(difference(trial, was, one, self._shape, self._earlier))
            elif found is not None:
                if self.ordinary:
                    self._report(trial, one, found)
            elif self.is_usable(one):
                self.usable[name] = trial
                test = self.test(name)
                if len(test.text) <= _MAX_CHARS and self._target.name not in names_around(test):
                    usable.append(name)
                else:
                    del self.usable[name]
        return usable

    def is_usable(self, seen: Seen) -> bool:
        """Whether a test may say that it stays so."""
        target = self._target
        return (
            seen.outcome is Outcome.PASS
            and not is_about_surroundings(seen)
            and accident(seen, target.raises, target.returns, certain=self.certain) is None
            and (self.certain or not is_wrong_kind(seen))
        )

    def test(self, name: str) -> GeneratedTest:
        """The test that a usable trial makes."""
        return observed_test(self.usable[name], self.seen[name].found, self._shape)

    def _report(self, trial: Trial, seen: Seen, found: Accident) -> None:
        """Add a finding: the trial up to where it went wrong."""
        steps = trial.steps[: found.number + 1] if seen.found.get("made", True) else ()
        upto = replace(trial, steps=steps)
        results = seen.found.get("results", ())[: found.number + 1]
        seen = replace(seen, found={**seen.found, "results": results} if results else {})
        source, test = trial_text(upto, self._shape), question(upto, seen, self._shape)
        found = weighed(found, upto, seen, self._target)
        if found.kind == "endless" and not self._never_ends(upto):
            return
        finding = Finding(source, what_it_did(seen), found.why, found.kind, test=test)
        self.accidents.append((finding, sort_of(seen, steps[-1][0] if steps else "")))

    def _never_ends(self, trial: Trial) -> bool:
        """Whether a trial that did not end in time does not with much more of it, either; asked once."""
        if self._endless is None:
            seen = self.observer.patiently(self._target.program, trial)
            self._endless = seen.outcome is not Outcome.PASS
        return self._endless

    def _before(self, trials: Sequence[Trial]) -> list[Seen | None]:
        """What the earlier version did; None where nobody knows."""
        if self._earlier is None:
            return [None] * len(trials)
        runs = self.observer.twice(self._earlier.program, trials)
        known = [one if self._earlier.says(one, other) else None for one, other in runs]
        return [*known, *[None] * (len(trials) - len(known))]

    def twice(self, trials: Sequence[Trial]) -> list[tuple[Seen, Seen]]:
        """Run trials on the program as long as there is time; results of the first ones, mostly of all."""
        found: list[tuple[Seen, Seen]] = []
        for part in self._clock.parts(trials, LOOKING, first=4, most=64):
            seen = self.observer.twice(self._target.program, part)
            found += seen
            if len(seen) < len(part):
                break
        self.cut = self.cut or self._clock.is_over(LOOKING)
        return found

    def kills_of(
        self, names: Sequence[str], mutants: Sequence[int], share: float = SEARCHING
    ) -> dict[str, frozenset[int]]:
        """Which of these mutants each usable trial tells from the program, as far as there is time."""
        trials = [self.usable[name] for name in names]
        found: dict[str, set[int]] = {name: set() for name in names}
        for part in self._clock.parts(spread(mutants), share, first=8, most=64) if names else ():
            rows = self.observer.on_many([self.codes[number] for number in part], trials)
            for place, name in enumerate(names):
                found[name] |= {
                    number
                    for number, row in zip(part, rows, strict=True)
                    if (result := row[place]) is not None and differ(self.seen[name], result)
                }
        self.cut = self.cut or self._clock.is_over(share)
        return {name: frozenset(numbers) for name, numbers in found.items()}
