"""What holds for nearly all calls of a function, and fails for some; and calls that depend on those before them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from codea1_env.sandbox import Outcome
from codea1_env.testgen.findings import Evidence, Finding, Sort, question, what_it_did
from codea1_env.testgen.observing import Observer, Seen, differ, is_stable
from codea1_env.testgen.target import Target
from codea1_env.testgen.texts import Trial, trial_text

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
    """Calls that break what holds for nearly all others.

    Looked at are: the kind of what is returned, whether an argument is changed, and whether a function gives the
    same when it is applied to its own result.

    Args:
        tried: Calls that raised nothing unexpected.
        target: What was called.
        observer: For calls with results.
    """
    if target.is_class:
        return []
    good = {
        name: (trial, seen)
        for name, (trial, seen) in tried.items()
        if seen.outcome is Outcome.PASS and not seen.errors
    }
    kinds = {name: _kind(seen) for name, (_, seen) in good.items()}
    changes = {name: bool(seen.found["after"]) for name, (_, seen) in good.items()}
    found: list[tuple[Finding, Sort]] = []
    if target.returns == ("unknown",):
        for name, why in _odd(kinds, lambda usual, number: f"{number} other calls give {usual}"):
            found.append(_finding(*good[name], why, target))
    for name, why in _odd(
        changes, lambda usual, number: f"{number} other calls change no argument"
    ):
        if changes[name]:
            found.append(_finding(*good[name], f"it changes its argument, and {why}", target))
    return [*found, *_not_idempotent(good, target, observer)]


def _kind(seen: Seen) -> str:
    form, content = seen.last
    return type(content).__name__ if form == "value" else form


def _odd(values: Mapping[str, Any], says: Any) -> Iterable[tuple[str, str]]:
    """Calls with a value that hardly any other has."""
    if not values:
        return
    [(usual, number)] = Counter(values.values()).most_common(1)
    others = [name for name, value in values.items() if value != usual]
    if number >= _ENOUGH and len(others) <= _FEW * len(values):
        for name in others:
            yield name, says(usual, number)


def _not_idempotent(
    good: Mapping[str, tuple[Trial, Seen]], target: Target, observer: Observer
) -> list[tuple[Finding, Sort]]:
    chosen = [
        (trial, seen)
        for trial, seen in good.values()
        if trial.arguments
        and seen.last[0] == "value"
        and type(seen.last[1]) in (str, list)
        and type(seen.last[1]) is type(trial.arguments[0])
    ][:_AGAIN]
    if len(chosen) < _ENOUGH:
        return []
    again = [Trial((seen.last[1], *trial.arguments[1:]), trial.keywords) for trial, seen in chosen]
    held, changed, broken = 0, 0, []
    for (trial, seen), (one, _) in zip(chosen, observer.twice(target.program, again), strict=False):
        if one.outcome is Outcome.PASS and one.last == seen.last:
            held += 1
            changed += seen.last[1] != trial.arguments[0]
        else:
            broken.append((trial, seen, one))
    if changed < _ENOUGH // 4 or held < _ENOUGH or len(broken) > _FEW * len(chosen):
        return []
    return [
        _finding(
            trial,
            seen,
            f"applied to that it {what_it_did(one)}, where {held} other results stay as they are",
            target,
        )
        for trial, seen, one in broken
    ]


def remembering(
    trials: Sequence[Trial], target: Target, observer: Observer
) -> list[tuple[Finding, Sort]]:
    """Calls that give the same whenever they are the first, but something else after other calls.

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
        [twice] = observer.after(target.program, trial)
        if _is_drawn(trial, one, target, observer):
            continue
        if twice.outcome is Outcome.PASS and differ(one, twice) and not _by_address(one, twice):
            source = trial_text(trial, target.shape)
            did = f"{what_it_did(twice)} when it is called again"
            why = f"the first time it {what_it_did(one)}"
            test = question(trial, one, target.shape)
            kind: Evidence = "state" if _is_shared(one, target) else "property"
            found.append((Finding(source, did, why, kind, test=test), ("state",)))
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


def _finding(trial: Trial, seen: Seen, why: str, target: Target) -> tuple[Finding, Sort]:
    source, test = trial_text(trial, target.shape), question(trial, seen, target.shape)
    sort = ("property", _kind(seen), why[:12])
    return Finding(source, what_it_did(seen), why, "property", test=test), sort
