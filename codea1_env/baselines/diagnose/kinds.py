"""Kinds of faults: a trained tester meets new programs, with faults of kinds that it knows and of others.

A kind is a fault set of a problem. Training has the first n of 2n; a program that is measured has some of its fault sets among
them, and the rest among the others. Its text is in no pool, so a tester that knows programs by their text knows only what it
carries from those of training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from codea1_env.agents import Agent
from codea1_env.agents.scripted import TEST_SEPARATOR
from codea1_env.problem_sets.cells import CellsConfig, pools_of, program_with
from codea1_env.problems import Problem
from codea1_env.spaces import observe


@dataclass(frozen=True)
class KindsConfig:
    """Programs that are measured."""

    overlap: Fraction
    """Share of the fault sets of a program out of kind that training had."""
    chosen: Literal["overlap", "random-half"] = "overlap"
    """A random half: each program has fault sets that are drawn from all 2n, so half of them from training on average. A control."""
    rounds: int = 24
    """Rounds against each program."""


def fault_sets(
    world: CellsConfig, config: KindsConfig, rng: np.random.Generator
) -> list[tuple[int, ...]]:
    """Return the fault sets of each program out of kind, as many as a program of the world has.

    Program i has those of wrong program i of training, but for a share that has its counterparts among the others.

    Example:
        >>> world = CellsConfig(families=3, holes=2)
        >>> fault_sets(world, KindsConfig(Fraction(1, 2)), np.random.default_rng(0))
        [(0, 4), (1, 5), (2, 3)]
    """
    n, holes = world.families, world.holes
    if config.chosen == "random-half":
        return [tuple(sorted(rng.permutation(2 * n)[:holes].tolist())) for _ in range(n)]
    known = round(holes * config.overlap)
    return [tuple((j + i) % n + (0 if i < known else n) for i in range(holes)) for j in range(n)]


def measure_kinds(
    tester: Agent,
    problems: Sequence[Problem],
    world: CellsConfig,
    config: KindsConfig,
    *,
    num_suites: int,
    black_box: bool,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Measure a tester that does not learn any more.

    Args:
        tester: The tester. It is asked, and does not learn.
        problems: Those that it was trained on.
        world: Their world.
        config: Programs that are measured.
        num_suites: Suites that are asked for at a time.
        black_box: The tester is not shown the programs.
        rng: Draws a random half.

    Returns:
        `killed/seen`, `killed/in` and `killed/out`: share of suites that break a wrong program of training, one in kind and
        one out of kind. `right/in` and `right/out`: chance that a program is right, if it is drawn at random from the right
        ones and those measured, and drawn anew until a suite passes it: what these suites do for a coder that only filters.
    """
    in_kind = KindsConfig(Fraction(1))
    found: dict[str, list[float]] = {}
    for problem in problems:
        pools = pools_of(problem)
        seen = dict(zip(pools.programs, pools.faults, strict=True))
        groups = {"seen": {code: faults for code, faults in seen.items() if faults}}
        for name, of_kind in (("in", in_kind), ("out", config)):
            chosen = fault_sets(world, of_kind, rng)
            groups[name] = dict(program_with(problem, numbers) for numbers in chosen)
        # Each program once, so that what is the same program is the same figure.
        programs = groups["seen"] | groups["in"] | groups["out"]
        rates = _kill_rates(tester, problem, programs, config.rounds, num_suites, black_box)
        for name, group in groups.items():
            mine = [rates[code] for code in group]
            found.setdefault(f"killed/{name}", []).append(float(np.mean(mine)))
            if name != "seen":
                wrong = sum(1 - rate for rate in mine)
                chance = world.right / (world.right + wrong) if world.right else 0.0
                found.setdefault(f"right/{name}", []).append(chance)
    return {name: float(np.mean(values)) for name, values in found.items()}


def _kill_rates(
    tester: Agent,
    problem: Problem,
    programs: Mapping[str, frozenset[int]],
    rounds: int,
    num_suites: int,
    black_box: bool,
) -> dict[str, float]:
    """Return the share of suites that break each program. The reference gives the expected values."""
    cell_of = {test: cell for cell, test in enumerate(pools_of(problem).tests)}
    asked = [code for code in programs for _ in range(num_suites)]
    shown = [observe(problem, code="" if black_box else code, turn=1) for code in asked]
    kills = dict.fromkeys(programs, 0)
    for _ in range(rounds):
        for code, answer in zip(asked, tester.act(shown), strict=True):
            calls = {cell_of[test] for test in answer.split(TEST_SEPARATOR)}
            kills[code] += bool(calls & programs[code])
    return {code: killed / (rounds * num_suites) for code, killed in kills.items()}
