"""Runs trials on a program and its mutants: which can be tests, what they kill, and which look like accidents."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from codea1_env.mutation import Mutant
from codea1_env.sandbox import Outcome, Sandbox
from codea1_env.testgen.earlier import Earlier, difference, differs
from codea1_env.testgen.findings import (
    Accident,
    Evidence,
    Finding,
    Sort,
    accident,
    is_about_surroundings,
    is_wrong_kind,
    question,
    sort_of,
    weighed,
    what_it_did,
)
from codea1_env.testgen.observing import Observer, Seen, differ, is_stable
from codea1_env.testgen.target import Target
from codea1_env.testgen.texts import GeneratedTest, Trial, names_around, observed_test, trial_text

T = TypeVar("T")


_SPREAD = 16


def spread(items: Sequence[T]) -> list[T]:
    """Return the items in another order: where only the first are reached, they come from everywhere.

    Example:
        >>> spread(range(20))[:5]
        [0, 16, 1, 17, 2]
    """
    return [item for start in range(_SPREAD) for item in items[start::_SPREAD]]


class Deadline:
    """Runs from when it was made.

    Args:
        seconds: What there is in all; None for no bound.

    Example:
        >>> Deadline(None).is_over(), Deadline(0).is_over()
        (False, True)
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._started = time.monotonic()

    def is_over(self, share: float = 1.0) -> bool:
        """Whether so much of the time has passed."""
        return self._seconds is not None and self.elapsed >= share * self._seconds

    @property
    def bounded(self) -> bool:
        """Whether it ever ends."""
        return self._seconds is not None

    @property
    def elapsed(self) -> float:
        """Seconds that have passed."""
        return time.monotonic() - self._started

    def parts(
        self, items: Sequence[T], share: float = 1.0, first: int = 1, most: int = 16
    ) -> Iterator[Sequence[T]]:
        """Yield the items in parts that grow, as long as there is time, and the first in any case; all at once without a bound.

        Example:
            >>> list(Deadline(60).parts("abcdefghi", most=4))
            ['a', 'bc', 'defg', 'hi']
        """
        start, size = 0, first if self.bounded else max(len(items), 1)
        while start < len(items) and (start == 0 or not self.is_over(share)):
            yield items[start : start + size]
            start, size = start + size, min(2 * size, most)


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
            found = self._accident(one)
            if is_about_surroundings(one):
                self.outside.append(f"{name} {what_it_did(one)}")
            elif was is not None and self._earlier is not None and differs(was, one):
                self.accidents.append(difference(trial, was, one, self._shape, self._earlier))
            elif found is not None and self.ordinary:
                self._report(trial, one, found)
            elif found is None and self.is_usable(one):
                self.usable[name] = trial
                test = self.test(name)
                if len(test.text) <= _MAX_CHARS and self._target.name not in names_around(test):
                    usable.append(name)
                else:
                    del self.usable[name]
        return usable

    def _accident(self, seen: Seen) -> Accident | None:
        return accident(seen, self._target.raises, self._target.returns, certain=self.certain)

    def is_usable(self, seen: Seen) -> bool:
        """Whether a test may say that it stays so."""
        return (
            seen.outcome is Outcome.PASS
            and not is_about_surroundings(seen)
            and self._accident(seen) is None
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
        found = weighed(found, upto, seen, self._target)
        if found.kind == "endless" and not self._never_ends(upto):
            return
        finding = question(upto, seen, found.why, found.kind, self._shape)
        self.accidents.append((finding, sort_of(seen, steps[-1][0] if steps else "")))

    def _never_ends(self, trial: Trial) -> bool:
        """Whether a trial that did not end in time does not with much more of it, either; asked once."""
        if self._endless is None:
            seen = self.observer.patiently(self._target.program, trial)
            self._endless = seen.outcome is not Outcome.PASS
        return self._endless

    def _before(self, trials: Sequence[Trial]) -> list[Seen | None]:
        """Return what the earlier version did; None where nobody knows."""
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


_ENOUGH = 20
"""Calls for which it holds, at least."""
_FEW = 0.05
"""Share of the calls for which it fails, at most."""
_ALONE = 4
"""Calls that are tried alone."""
_DRAWS = 8
"""Processes in which a first call must give the same."""
_AGAIN = 60
"""Results that are given to the function again."""
_MUTABLE = (list, dict, set)
_LONG = re.compile(r"0x[0-9a-f]+|\d{9,}")


def exceptional(
    tried: Mapping[str, tuple[Trial, Seen]], target: Target, observer: Observer
) -> list[tuple[Finding, Sort]]:
    """Find calls that break what holds for nearly all others.

    Looked at are: the kind of what is returned, whether an argument is changed, and whether a function gives the
    same when it is applied to its own result.

    Args:
        tried: Calls that raised nothing unexpected.
        target: What was called.
        observer: For calls with results.
    """
    good = [
        pair for pair in tried.values() if pair[1].outcome is Outcome.PASS and not pair[1].errors
    ]
    if target.is_class or not good:
        return []
    found: list[tuple[Finding, Sort]] = []
    kinds = [_kind(seen) for _, seen in good]
    [(usual, number)] = Counter(kinds).most_common(1)
    others = [pair for pair, kind in zip(good, kinds, strict=True) if kind != usual]
    if target.returns == ("unknown",) and _is_rule(number, others, good):
        found += [_odd(*pair, f"{number} other calls give {usual}", target) for pair in others]
    changing = [pair for pair in good if pair[1].found["after"]]
    number = len(good) - len(changing)
    if _is_rule(number, changing, good):
        why = f"it changes its argument, and {number} other calls change no argument"
        found += [_odd(*pair, why, target) for pair in changing]
    return [*found, *_not_idempotent(good, target, observer)]


def _is_rule(number: int, others: Sequence[Any], of: Sequence[Any]) -> bool:
    return number >= _ENOUGH and len(others) <= _FEW * len(of)


def _kind(seen: Seen) -> str:
    form, content = seen.last
    return type(content).__name__ if form == "value" else form


def _not_idempotent(
    good: Sequence[tuple[Trial, Seen]], target: Target, observer: Observer
) -> list[tuple[Finding, Sort]]:
    chosen = [
        (trial, seen)
        for trial, seen in good
        if trial.arguments
        and seen.last[0] == "value"
        and type(seen.last[1]) in (str, list)
        and type(seen.last[1]) is type(trial.arguments[0])
    ][:_AGAIN]
    again = [Trial((seen.last[1], *trial.arguments[1:]), trial.keywords) for trial, seen in chosen]
    runs = observer.twice(target.program, again) if len(chosen) >= _ENOUGH else []
    held, changed, broken = 0, 0, []
    for (trial, seen), (one, _) in zip(chosen, runs, strict=False):
        if one.outcome is Outcome.PASS and one.last == seen.last:
            held += 1
            changed += seen.last[1] != trial.arguments[0]
        else:
            broken.append((trial, seen, what_it_did(one)))
    if changed < _ENOUGH // 4 or not _is_rule(held, broken, chosen):
        return []
    why = f"where {held} other results stay as they are"
    return [
        _odd(trial, seen, f"applied to that it {did}, {why}", target) for trial, seen, did in broken
    ]


def remembering(
    trials: Sequence[Trial], target: Target, observer: Observer
) -> list[tuple[Finding, Sort]]:
    """Find calls that give the same whenever they are the first, but something else after other calls.

    Args:
        trials: Calls that gave different results in two orders.
        target: What was called.
        observer: For further calls.
    """
    some = sorted(trials, key=lambda trial: len(trial_text(trial, target.shape)))[:_ALONE]
    if not some:
        return []
    first, second = (observer.alone(target.program, some) for _ in range(2))
    found = []
    for trial, one, other in zip(some, first, second, strict=True):
        if one.outcome is not Outcome.PASS or not is_stable(one, other):
            continue
        twice = observer.again(target.program, trial)
        if _is_drawn(trial, one, target, observer):
            continue
        if twice.outcome is Outcome.PASS and differ(one, twice) and not _by_address(one, twice):
            kind: Evidence = "state" if _is_shared(one, target) else "property"
            finding = question(
                trial, one, f"the first time it {what_it_did(one)}", kind, target.shape
            )
            did = f"{what_it_did(twice)} when it is called again"
            found.append((replace(finding, did=did), ("state",)))
    return found


def _is_shared(seen: Seen, target: Target) -> bool:
    """Whether calls seem to share an object: a default, or what is returned. A setter may well give the value before."""
    defaults = (each.default for each in target.parameters)
    shared = any(isinstance(value, _MUTABLE) for default in defaults for value in default)
    return shared or isinstance(seen.last[1], _MUTABLE)


def _is_drawn(trial: Trial, seen: Seen, target: Target, observer: Observer) -> bool:
    """Whether the first call does not always give the same: twice the same may be chance."""
    again = observer.alone(target.program, [trial] * _DRAWS)
    return not all(is_stable(seen, each) for each in again)


def _by_address(one: Seen, other: Seen) -> bool:
    """Whether two results differ only in numbers as long as addresses."""
    texts = [_LONG.sub("", repr(each.found["results"])) for each in (one, other)]
    return texts[0] == texts[1]


def _odd(trial: Trial, seen: Seen, why: str, target: Target) -> tuple[Finding, Sort]:
    finding = question(trial, seen, why, "property", target.shape)
    return finding, ("property", _kind(seen), why[:12])
