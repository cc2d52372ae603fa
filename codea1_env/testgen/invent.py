"""Makes up arguments: values of a kind, simple ones first, and calls with them.

A kind is what `codea1_env.testgen.parameters` finds out about a parameter.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from codea1_env.problem_sets.fuzz import Call, in_order, vary_calls
from codea1_env.sandbox import Outcome
from codea1_env.testgen.findings import is_wrong_kind
from codea1_env.testgen.observing import Seen
from codea1_env.testgen.parameters import Kind, kind_of_all
from codea1_env.testgen.target import Hints, Parameter, Target
from codea1_env.testgen.texts import Trial

T = TypeVar("T")

ANYTHING: tuple[Kind, ...] = (
    ("int",),
    ("str",),
    ("list", ("int",)),
    ("float",),
    ("list", ("str",)),
    ("dict", ("str",), ("int",)),
)
"""What is tried where nothing is known of a parameter."""
_LONG = 5
_LENGTH = 100
"""A number in the program up to this may be the length of a text."""
_PLANS = 64
_KINDS = 6
_DATE, _TIME = datetime.date, datetime.datetime


def values(kind: Kind, hints: Hints) -> list[Any]:
    """Values of a kind: empty and small ones first, then those from the program, then larger ones.

    Example:
        >>> values(("list", ("int",)), Hints(numbers=(60,)))[:4]
        [[], [0], [0, 1], [1, 0, 2]]
        >>> values(("literal", "up", "down"), Hints())
        ['up', 'down']
        >>> values(("other", "Socket"), Hints())
        []
    """
    return _distinct(_values(kind, hints))


def with_examples(
    parameters: Sequence[Parameter], examples: Sequence[Call]
) -> tuple[Parameter, ...]:
    """Parameters without annotations get the kinds that they have in examples of the docstring."""
    found = []
    for place, each in enumerate(parameters):
        given = [args[place] for args, _ in examples if each.way == "place" and place < len(args)]
        given += [words[each.name] for _, words in examples if each.name in words]
        if given and not each.annotated:
            each = replace(each, kinds=(kind_of_all(given),))
        found.append(each)
    return tuple(found)


def plans(parameters: Sequence[Parameter]) -> list[tuple[Kind, ...]]:
    """Which kinds the parameters may have together, likely ones first. There is one plan if all is annotated."""
    options = [(parameter.kinds or ANYTHING)[:_KINDS] for parameter in parameters]
    ranked = itertools.islice(itertools.product(*map(enumerate, options)), 4096)
    ordered = sorted(ranked, key=lambda choice: sum(rank for rank, _ in choice))
    return [tuple(kind for _, kind in choice) for choice in ordered[:_PLANS]]


def calls(
    parameters: Sequence[Parameter],
    plan: Sequence[Kind],
    hints: Hints,
    rng: np.random.Generator,
    number: int,
) -> list[Call]:
    """Call of a function with made-up arguments.

    Args:
        parameters: What it takes.
        plan: The kind of each parameter.
        hints: See `Hints`.
        rng: Source of chance where there are more combinations than wanted.
        number: How many at most.

    Returns:
        Distinct calls; none if nothing can stand for a parameter that must be given.
    """
    pools: list[list[Any]] = []
    for parameter, kind in zip(parameters, plan, strict=True):
        pool: list[Any] = values(kind, hints)
        if parameter.way == "star":
            pool = [tuple(some) for some in _values(("list", kind), hints)]
        elif parameter.optional:
            pool = [_LEFT_OUT, *parameter.default, *pool]
        if not pool:
            return []
        pools.append(pool)
    found: dict[str, Call] = {}
    for chosen in _combinations(pools, rng, number):
        call = _call(parameters, chosen)
        found.setdefault(in_order(call), call)
    return list(found.values())[:number]


def can_be_called(parameters: Sequence[Parameter]) -> str:
    """Why nothing can be made up for these parameters; "" if it can."""
    for each in parameters:
        kinds = each.kinds or ANYTHING
        if not each.optional and not any(values(kind, Hints()) for kind in kinds):
            return f"no value can be made up for {each.name} ({kinds[0][-1]})"
    return ""


class _LeftOut:
    """Stands for a parameter that keeps its default."""

    def __repr__(self) -> str:
        return "-"


_LEFT_OUT = _LeftOut()


def _combinations(
    pools: Sequence[Sequence[Any]], rng: np.random.Generator, number: int
) -> Iterable[tuple[Any, ...]]:
    """All combinations if they are few; else each value with ordinary others, and random ones."""
    if not pools:
        return [()]
    if np.prod([float(len(pool)) for pool in pools]) <= number:
        return itertools.product(*pools)
    ordinary = [pool[0 if pool[0] is _LEFT_OUT else min(2, len(pool) - 1)] for pool in pools]
    alone = [
        (*ordinary[:place], pool[index], *ordinary[place + 1 :])
        for index in range(max(map(len, pools)))
        for place, pool in enumerate(pools)
        if index < len(pool) and (index == place == 0 or pool[index] is not ordinary[place])
    ]
    if len(alone) > number:  # of every parameter something, and not of all the first
        alone = [alone[place * len(alone) // number] for place in range(number)]
    room = max(number // 2, number - len(alone))  # alone they do not show how they go together
    together = [tuple(pick(pool, rng) for pool in pools) for _ in range(room)]
    return [*alone[: number - room], *together]


def pick(items: Sequence[T], rng: np.random.Generator) -> T:
    """One of the items; the first, which are the simpler ones, more often."""
    return items[int(len(items) * rng.random() ** 2)]


def _call(parameters: Sequence[Parameter], chosen: Sequence[Any]) -> Call:
    arguments: list[Any] = []
    keywords: dict[str, Any] = {}
    in_order = True
    for parameter, value in zip(parameters, chosen, strict=True):
        if value is _LEFT_OUT:
            in_order = False
        elif parameter.way == "star":
            arguments += value if in_order else ()
        elif parameter.way == "place" and in_order:
            arguments.append(value)
        else:
            keywords[parameter.name] = value
    return tuple(arguments), keywords


def _values(kind: Kind, hints: Hints) -> list[Any]:
    name, inside = kind[0], kind[1:]
    if name in _SIMPLE:
        return _SIMPLE[name](hints)
    if name == "literal":
        return list(inside)
    if name == "union":
        rows = itertools.zip_longest(
            *(_values(each, hints) for each in inside), fillvalue=_LEFT_OUT
        )
        return [value for row in rows for value in row if value is not _LEFT_OUT]
    if name == "list":
        return _sequences(values(inside[0], hints))
    if name == "tuple":
        if len(inside) == 2 and inside[1] == ("...",):
            return [tuple(items) for items in _sequences(values(inside[0], hints))]
        pools = [values(inner, hints) for inner in inside]
        longest = max(map(len, pools), default=0) if all(pools) else 0
        return [
            tuple(pool[(shift + place) % len(pool)] for place, pool in enumerate(pools))
            for shift in range(longest)
        ]
    if name in ("set", "frozenset"):
        made = set if name == "set" else frozenset
        return [made(items) for items in _sequences(_hashable(values(inside[0], hints)))]
    if name == "dict":
        contents = values(inside[1], hints)
        keys = _sequences(_hashable(values(inside[0], hints)))
        named = [word for word in hints.words if word.isidentifier()] * (inside[0] == ("str",))
        keys = [*keys[:1], named, *keys[1:]] if named else keys
        return [
            dict(zip(some, itertools.cycle(contents), strict=False)) for some in keys if contents
        ]
    return []


def _sequences(items: list[Any]) -> list[list[Any]]:
    """Return lists of items: none, one, some, in several orders, repeated."""
    some = items[:_LONG]
    return [
        [], some[:1], some[:2], [*some[1:2], *some[:1], *some[2:3]], [*some[:1], *some[:1]], some[:3],
        some, some[::-1], items[_LONG : 2 * _LONG], [*some[2:4], *some[:1], *some[2:4]], [*items[-2:], *some[1:3]],
        *([item] for item in items[1:]),
    ]  # fmt: skip


def _near(numbers: Iterable[int | float]) -> list[int]:
    whole = [each for each in numbers if type(each) is int]
    return [near for each in whole for near in (each, each + 1, each - 1)]


def _texts(hints: Hints) -> list[str]:
    words = [word for word in hints.words if word]
    short = [word for word in words if len(word) <= 2]
    counted = [f"1{word}" for word in short]
    around = [f"{one}a{other}b{one}" for one in short[:4] for other in short[:4]]
    lengths = [near for near in _near(hints.numbers) if _LONG < near <= _LENGTH]
    long = [text for length in lengths for text in ("a" * length, ("ab " * length)[:length])]
    return [
        "", "a", "abc", *words, "Hello World", "12", *counted, "a b", "aba", "-3", " a ", "AB", "a,b", *around, *long
    ]  # fmt: skip


_SIMPLE: Mapping[str, Callable[[Hints], list[Any]]] = {
    "int": lambda hints: [0, 1, 2, -1, 3, *_near(hints.numbers), 5, 10, 7, -4],
    "float": lambda hints: [
        0.0, 1.0, 2.5, -1.5, *(float(near) for near in _near(hints.numbers)),
        *(each for each in hints.numbers if type(each) is float), 0.1, 10.0, 3.0,
    ],
    "bool": lambda hints: [True, False],
    "str": _texts,
    "bytes": lambda hints: [b"", b"a", b"abc", *(word.encode() for word in hints.words)],
    "complex": lambda hints: [0j, 1 + 2j, -1.5j],
    "none": lambda hints: [None],
    "unknown": lambda hints: [0, "a", 1.5, True, [1, 2], {"a": 1}, "", *hints.words],
    "date": lambda hints: [_DATE(2024, 1, 1), _DATE(2024, 2, 29), _DATE(2023, 12, 31), _DATE(1999, 7, 4)],
    "datetime": lambda hints: [_TIME(2024, 1, 1), _TIME(2024, 2, 29, 23, 59, 59), _TIME(2023, 12, 31, 12, 30)],
    "timedelta": lambda hints: [
        datetime.timedelta(), datetime.timedelta(days=1), datetime.timedelta(hours=-1, minutes=30),
        datetime.timedelta(seconds=90061),
    ],
    "Decimal": lambda hints: [Decimal("0"), Decimal("1"), Decimal("2.50"), Decimal("-0.1")],
    "Fraction": lambda hints: [Fraction(0), Fraction(1, 2), Fraction(-3, 4), Fraction(5)],
}  # fmt: skip


def _hashable(items: list[Any]) -> list[Any]:
    return [item for item in items if not isinstance(item, (list, dict, set))]


def _distinct(items: Iterable[Any]) -> list[Any]:
    found: dict[str, Any] = {}
    for item in items:
        found.setdefault(in_order(item), item)
    return list(found.values())


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


@dataclass(frozen=True)
class TrialMaker:
    """Makes up trials.

    Args:
        target: What they call.
        look: Shows what the target does with them.
        rng: Source of chance.
    """

    target: Target
    look: Look
    rng: np.random.Generator

    def calls(self, parameters: Sequence[Parameter], plan: Sequence[Kind]) -> list[Trial]:
        """Return calls with arguments of these kinds."""
        return as_trials(calls(parameters, plan, self.target.hints, self.rng, _CALLS))

    def working(
        self, parameters: Sequence[Parameter], options: Sequence[tuple[Kind, ...]]
    ) -> list[tuple[Kind, ...]]:
        """Return the kinds of arguments that a function takes: those that it does not choke on, likely ones first."""
        if len(options) == 1:
            return list(options)
        probes = [
            calls(parameters, plan, self.target.hints, self.rng, 4 * _PROBES)[-_PROBES:]
            for plan in options
        ]
        results = iter(self.look(as_trials(itertools.chain(*probes))))
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
        target, rng = self.target, self.rng
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
        runs = zip(made, self.look(trials), strict=False)
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
        """Return calls with arguments of the likely kinds in turn: those of one kind may all be refused."""
        options = plans(parameters)[:_KINDS_OF_METHODS]
        number = _CALLS // 3 // len(options)
        found = [calls(parameters, plan, self.target.hints, self.rng, number) for plan in options]
        return [call for row in itertools.zip_longest(*found) for call in row if call is not None]

    def varied(self, known: Iterable[Trial]) -> list[Trial]:
        """Return calls like these."""
        found = [(trial.arguments, dict(trial.keywords)) for trial in known]
        return as_trials(vary_calls(found, _VARIED, self.rng))


def as_trials(found: Iterable[Call]) -> list[Trial]:
    """Trials of calls."""
    return [Trial(*call) for call in found]


def _is_fine(seen: Seen) -> bool:
    return seen.outcome is Outcome.PASS and not is_wrong_kind(seen)
