"""Trials that are made up: calls of a function, and objects of a class with calls of their methods."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from codea1_env.problem_sets.fuzz import Call, vary_calls
from codea1_env.sandbox import Outcome
from codea1_env.testgen.findings import is_wrong_kind
from codea1_env.testgen.invent import Kind, Parameter, calls, pick, plans
from codea1_env.testgen.observing import Seen
from codea1_env.testgen.target import Target
from codea1_env.testgen.texts import Trial

_CALLS = 100
"""Made-up calls, of which some are tried on all mutants."""
_VARIED = 200
_PROBES = 4
"""Calls that show whether a function takes arguments of some kinds."""
_CHOSEN_PLANS = 5
_ENOUGH = 0.75
"""Share of the probes that must work."""
_KINDS_OF_METHODS = 3
_STEPS = 4
"""Methods that are called on one object at most."""

Look = Callable[[Sequence[Trial]], Sequence[tuple[Seen, Seen]]]
"""Runs trials on the program, twice; gives the results of the first ones."""


class TrialMaker:
    """Makes up trials.

    Args:
        target: What they call.
        look: Shows what the target does with them.
        rng: Source of chance.
    """

    def __init__(self, target: Target, look: Look, rng: np.random.Generator) -> None:
        self._target = target
        self._look = look
        self._rng = rng

    def calls(self, parameters: Sequence[Parameter], plan: Sequence[Kind]) -> list[Trial]:
        """Calls with arguments of these kinds."""
        return as_trials(calls(parameters, plan, self._target.hints, self._rng, _CALLS))

    def working(
        self, parameters: Sequence[Parameter], options: Sequence[tuple[Kind, ...]]
    ) -> list[tuple[Kind, ...]]:
        """The kinds of arguments that a function takes: those that it does not choke on, likely ones first."""
        if len(options) == 1:
            return list(options)
        probes = [
            calls(parameters, plan, self._target.hints, self._rng, 4 * _PROBES)[-_PROBES:]
            for plan in options
        ]
        results = iter(self._look(as_trials(itertools.chain(*probes))))
        shares = []
        for some in probes:
            good = [_is_fine(seen) for _, (seen, _) in zip(some, results, strict=False)]
            shares.append(sum(good) / len(good) if good else 0.0)
        enough = min(_ENOUGH, max(shares))
        return [plan for plan, share in zip(options, shares, strict=True) if share >= enough][
            :_CHOSEN_PLANS
        ]

    def objects(self, varied: bool = False) -> list[Trial]:
        """Objects of a class, with calls of their methods in some order."""
        target, rng = self._target, self._rng
        number = _VARIED if varied else _CALLS
        made = self._pool(target.parameters)
        pools = {
            name: pool
            for name, parameters in target.methods.items()
            if (pool := self._pool(parameters))
        }
        if not made:
            return []
        trials = as_trials(made)
        # What cannot be made is looked at once; methods are called on what can.
        runs = zip(made, self._look(trials), strict=False)
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

    def varied(self, known: Iterable[Trial]) -> list[Trial]:
        """Calls like these."""
        found = [(trial.arguments, dict(trial.keywords)) for trial in known]
        return as_trials(vary_calls(found, _VARIED, self._rng))


def as_trials(found: Iterable[Call]) -> list[Trial]:
    """Trials of calls."""
    return [Trial(*call) for call in found]


def _is_fine(seen: Seen) -> bool:
    return seen.outcome is Outcome.PASS and not is_wrong_kind(seen)
