"""Candidate inputs: calls with made-up arguments, simple ones first."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np

from codea1_env.problem_sets.fuzz import Call, in_order, vary_calls
from codea1_env.testgen.target import Parameter, Target
from codea1_env.testgen.texts import Step, Trial

Kind = tuple[Any, ...]
ANYTHING: tuple[Kind, ...] = (
    ("dict", ("str",), ("int",)),
    ("list", ("tuple", ("str",), ("int",))),
    ("list", ("dict", ("str",), ("int",))),
    ("str",),
    ("int",),
    ("list", ("int",)),
    ("list", ("str",)),
    ("float",),
)
"""Kinds that are tried for a parameter without a type hint."""
_TYPES: Mapping[str, type] = {"dict": dict, "str": str, "int": int, "list": list, "float": float}
_COMMON = {"count", "index", "copy", "pop"}
"""Methods that say little about the kind of their object."""
_LONG = 4
_LENGTH = 100
_PLANS = 48
_CALLS = 100
_VARIED = 160
_STEPS = 3


class Inputs:
    """Candidate inputs for a function or class; the seed decides the choice among combinations."""

    def __init__(self, target: Target, seed: int) -> None:
        self._target = target
        self._rng = np.random.default_rng(seed)

    def plans(self, parameters: Sequence[Parameter]) -> list[tuple[Kind, ...]]:
        """Return which kinds the parameters may have together, likely ones first: one plan if all have type hints."""
        options = [each.kinds or self._guesses(each) for each in parameters]
        ranks = range(max(map(len, options), default=0))
        alike = [tuple(some[min(rank, len(some) - 1)] for some in options) for rank in ranks]
        ranked = itertools.islice(itertools.product(*map(enumerate, options)), 4096)
        ordered = sorted(ranked, key=lambda choice: sum(rank for rank, _ in choice))
        mixed = [tuple(kind for _, kind in choice) for choice in ordered]
        return list(dict.fromkeys([*alike, *mixed]))[:_PLANS]

    def _guesses(self, parameter: Parameter) -> Sequence[Kind]:
        """Return kinds for a parameter without a type hint, by its examples, default, and what the code uses."""
        places = [each.name for each in self._target.parameters if each.way == "place"]
        given = []
        for trial in self._target.examples:
            called = {**dict(zip(places, trial.arguments, strict=False)), **trial.keywords}
            given += [called[parameter.name]] if parameter.name in called else []
        used = self._target.uses - _COMMON
        known = [_kind_of(each) for each in [*given, *parameter.default] if each is not None]
        guessed = sorted(ANYTHING, key=lambda kind: -len(used.intersection(dir(_TYPES[kind[0]]))))
        return list(dict.fromkeys([*known, *guessed]))

    def calls(self, parameters: Sequence[Parameter], plan: Sequence[Kind], number: int = _CALLS) -> list[Call]:  # fmt: skip
        """Return distinct calls with arguments of these kinds; none if nothing can stand for a parameter."""
        pools: list[list[Any]] = []
        for parameter, kind in zip(parameters, plan, strict=True):
            pool = self.values(kind)
            if parameter.way == "star":
                pool = [tuple(some) for some in _sequences(pool)]
            elif parameter.optional:
                pool = [_LEFT_OUT, *pool, *parameter.default]
            if not pool:
                return []
            pools.append(pool)
        found: dict[str, Call] = {}
        for chosen in _combinations(pools, self._rng, number):
            call = _call(parameters, chosen)
            found.setdefault(in_order(call), call)
        return list(found.values())[:number]

    def objects(self, made: Sequence[Call]) -> list[Trial]:
        """Return objects of a class with calls of methods: those that change it before those that read it."""
        methods = self._target.methods
        pools = {name: self.pool(each.parameters) for name, each in methods.items()}
        setting = [name for name, each in methods.items() if each.sets and pools[name]]
        reading = [name for name, each in methods.items() if not each.sets and pools[name]]
        trials = [Trial(*call) for call in made]
        for index in range(_CALLS if setting or reading else 0):
            names = self._some(setting, index, 1 + (index // 2) % _STEPS) if setting else []
            names += self._some(reading, index, 1 + index % 2) if reading else []
            if names and index < len(reading):  # every reader once on a fresh object
                names = [reading[index]]
            steps: list[Step] = [(name, *self._pick(pools[name])) for name in names]
            arguments, keywords = self._pick(made)
            trials.append(Trial(arguments, keywords, tuple(steps)))
        return trials

    def _some(self, names: Sequence[str], index: int, number: int) -> list[str]:
        drawn = [names[int(self._rng.integers(len(names)))] for _ in range(number - 1)]
        return [names[index % len(names)], *drawn]

    def pool(self, parameters: Sequence[Parameter]) -> list[Call]:
        """Return calls with arguments of the likely kinds in turn."""
        options = self.plans(parameters)[:8]
        found = [self.calls(parameters, plan, _CALLS // 2 // len(options)) for plan in options]
        return _in_turn(found)

    def varied(self, known: Iterable[Trial]) -> list[Trial]:
        """Return trials like these."""
        known = list(known)
        if not self._target.is_class:
            found = [(trial.arguments, dict(trial.keywords)) for trial in known]
            return [Trial(*call) for call in vary_calls(found, _VARIED, self._rng)]
        trials = []
        for _ in range(_VARIED if known else 0):
            trial, other = self._pick(known), self._pick(known)
            steps = [*trial.steps, *other.steps][: 2 * _STEPS]
            for place, (name, args, words) in enumerate(steps):
                for varied, _ in vary_calls([(args, dict(words))], 1, self._rng):
                    steps[place] = (name, varied, words)
            trials.append(replace(trial, steps=tuple(steps)))
        return trials

    def _pick(self, items: Sequence[Any]) -> Any:
        return items[int(len(items) * self._rng.random() ** 2)]

    def values(self, kind: Kind) -> list[Any]:
        """Return values of a kind, simple ones first, with those from the program among them."""
        found: dict[str, Any] = {}
        for value in self._values(kind):
            found.setdefault(in_order(value), value)
        return list(found.values())

    def _values(self, kind: Kind) -> list[Any]:
        name, inside = kind[0], kind[1:]
        match name:
            case "unknown":
                likely = (("int",), ("str",), ("float",), ("list", ("int",)))
                return _in_turn(self._values(each)[:6] for each in likely)
            case "literal":
                return list(inside)
            case "union":
                return _in_turn(map(self._values, inside))
            case "list":
                return _sequences(self.values(inside[0]))
            case "tuple" if inside[1:] == (("...",),):
                return [tuple(items) for items in _sequences(self.values(inside[0]))]
            case "tuple":
                pools = [self.values(each) for each in inside]
                shifts = range(max(map(len, pools), default=0) if all(pools) else 0)
                rows = [[pool[(n + k) % len(pool)] for k, pool in enumerate(pools)] for n in shifts]
                return list(map(tuple, rows))
            case "set" | "frozenset":
                made = set if name == "set" else frozenset
                return [made(items) for items in _sequences(_hashable(self.values(inside[0])))]
            case "dict":
                keys = _sequences(_hashable(self.values(inside[0])))
                words = [
                    each for each in self._target.words if each.isidentifier() and each[0] != "_"
                ][:4]
                keys[2:2] = [words] if words and inside[0] == ("str",) else []
                contents = self.values(inside[1])
                rows = keys if contents else []
                return [dict(zip(some, itertools.cycle(contents), strict=False)) for some in rows]
        return _SIMPLE[name](self._target) if name in _SIMPLE else []


def _kind_of(value: Any) -> Kind:
    """Return the kind of an example."""
    name = type(value).__name__
    if name in ("list", "set", "frozenset"):
        return (name, _kind_of_all(value))
    if name == "tuple":
        few = 0 < len(value) < 4
        return (name, *map(_kind_of, value)) if few else (name, _kind_of_all(value), ("...",))
    if name == "dict":
        return (name, _kind_of_all(value), _kind_of_all(value.values()))
    return ("none",) if value is None else (name,)


def _kind_of_all(values: Iterable[Any]) -> Kind:
    kinds = list(dict.fromkeys(map(_kind_of, values)))
    return kinds[0] if len(kinds) == 1 else ("union", *kinds) if kinds else ("int",)


_LEFT_OUT: Any = object()  # Stands for a parameter that keeps its default


def _in_turn(pools: Iterable[Sequence[Any]]) -> list[Any]:
    rows = itertools.zip_longest(*pools, fillvalue=_LEFT_OUT)
    return [value for row in rows for value in row if value is not _LEFT_OUT]


def _combinations(pools: Sequence[Sequence[Any]], rng: np.random.Generator, number: int) -> Iterable[tuple[Any, ...]]:  # fmt: skip
    """Return all combinations if they are few; else each value with ordinary others, and random ones."""
    if not pools:
        return [()]
    if np.prod([float(len(pool)) for pool in pools]) <= number:
        return itertools.product(*pools)
    ordinary = [pool[0] if pool[0] is _LEFT_OUT else pool[min(1, len(pool) - 1)] for pool in pools]
    alone = [
        (*ordinary[:place], pool[index], *ordinary[place + 1 :])
        for index in range(max(map(len, pools)))
        for place, pool in enumerate(pools)
        if index < len(pool) and (index == place == 0 or pool[index] is not ordinary[place])
    ]
    if len(alone) > number:
        alone = [alone[place * len(alone) // number] for place in range(number)]
    room = max(number // 2, number - len(alone)) if len(pools) > 1 else number - len(alone)
    drawn = [[pool[int(len(pool) * rng.random() ** 2)] for pool in pools] for _ in range(room)]
    return [*alone[: number - room], *map(tuple, drawn)]


def _call(parameters: Sequence[Parameter], chosen: Sequence[Any]) -> Call:
    arguments: list[Any] = []
    keywords: dict[str, Any] = {}
    by_place = True
    for parameter, value in zip(parameters, chosen, strict=True):
        if value is _LEFT_OUT:
            by_place = False
        elif parameter.way == "star":
            arguments += value if by_place else ()
        elif parameter.way == "place" and by_place:
            arguments.append(value)
        else:
            keywords[parameter.name] = value
    return tuple(arguments), keywords


def _sequences(items: list[Any]) -> list[list[Any]]:
    """Return lists of items: some, one, none, in several orders, repeated."""
    some = items[:_LONG]
    return [
        some[:2], some[:1], [], [*some[1:2], *some[:1], *some[2:3]], [*some[:1], *some[:1]], some[:3], some, some[::-1],
        items[_LONG : 2 * _LONG], [*some[2:4], *some[:1], *some[2:4]], [*items[-2:], *some[1:3]],
        *([item] for item in items[1:]),
    ]  # fmt: skip


def _near(numbers: Iterable[int | float]) -> list[int]:
    return [near for each in numbers if type(each) is int for near in (each, each + 1, each - 1)]


def _texts(target: Target) -> list[str]:
    words = [word for word in target.words if word]
    short = [word for word in words if len(word) <= 2]
    counted = [f"{number}{word}" for word in words if len(word) <= 3 for number in ("1", "12")]
    around = [f"{one}a{other}b{one}" for one in short[:4] for other in short[:4]]
    pairs = [f"{one} {other}" for one, other in itertools.pairwise(words) if one.isalpha()][:8]
    lengths = [near for near in _near(target.numbers) if _LONG < near <= _LENGTH]
    long = [text for length in lengths for text in ("a" * length, ("ab " * length)[:length])]
    return [
        "a", "abc", "", *words, "Hello World", "12", *counted, "a b", "aba", "-3", " a ", "AB", "a,b", "CamelCase",
        *around, *pairs, *long,
    ]  # fmt: skip


_DATE, _TIME = datetime.date, datetime.datetime
_SIMPLE: Mapping[str, Callable[[Target], list[Any]]] = {
    "int": lambda target: [1, 2, 3, 0, -1, *_near(target.numbers), 5, 10, 7, -4],
    "float": lambda target: [
        1.0, 2.5, 0.0, -1.5, *(float(near) for near in _near(target.numbers)),
        *(each for each in target.numbers if type(each) is float), 0.1, 10.0, 3.0,
    ],
    "bool": lambda _: [True, False],
    "str": _texts,
    "bytes": lambda target: [b"a", b"abc", b"", *(word.encode() for word in target.words)],
    "none": lambda _: [None],
    "date": lambda _: [_DATE(2024, 1, 1), _DATE(2024, 2, 29), _DATE(2023, 12, 31), _DATE(1999, 7, 4)],
    "datetime": lambda _: [_TIME(2024, 1, 1), _TIME(2024, 2, 29, 23, 59, 59), _TIME(2023, 12, 31, 12, 30)],
    "Decimal": lambda _: [Decimal("1"), Decimal("0"), Decimal("2.50"), Decimal("-0.1")],
}  # fmt: skip


def _hashable(items: list[Any]) -> list[Any]:
    return [item for item in items if not isinstance(item, (list, dict, set))]
