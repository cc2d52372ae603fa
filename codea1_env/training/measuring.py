"""Measures both players on what training holds back, on what once broke programs, and on problems that are not trained on."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from codea1_env.agents import CopierTester, Learner
from codea1_env.agents.llm.agent import LanguagePlayer
from codea1_env.agents.llm.completions import BackendError
from codea1_env.agents.protocols import FixedPlayer
from codea1_env.evaluation import (
    HeldOut,
    PassRates,
    hold_out,
    kills,
    kills_beside,
    pass_rates,
    youden_j,
)
from codea1_env.evaluation.held_out import Flag, JudgedRound
from codea1_env.evaluation.statistics import pass_at_k
from codea1_env.mistake_book import MistakeBook
from codea1_env.problems import Problem, load_problems
from codea1_env.referee import Referee
from codea1_env.training.config import TrainConfig
from codea1_env.training.metrics import Row, mean
from codea1_env.training.players import Players

PAST_TESTS = 16
"""Tests of a problem at most by which forgetting is measured."""
_SEED = 0
_STREAM = 5
"""Of random numbers, beside those of players and of what a step needs."""


@contextmanager
def apart(players: Players, seed: int, step: int) -> Iterator[None]:
    """Let both players draw from generators of their own: however much is measured, training draws the same.

    A player of the user's whose draws come neither from an attribute `rng` nor back with `load` goes on with its own.
    """
    with ExitStack() as stack:
        for player in _different(players):
            stack.enter_context(_apart(player, seed, step))
        yield


def _different(players: Players) -> Iterable[Learner]:
    """Both players, or the one that plays both roles."""
    return {id(each): each for each in (players.coder, players.tester)}.values()


def _with_rng(player: Learner) -> Any:
    """What has the generator that a player draws from as its attribute `rng`; None if nothing does."""
    drawing: Any = player.agent if isinstance(player, FixedPlayer) else player
    return drawing if isinstance(getattr(drawing, "rng", None), np.random.Generator) else None


@contextmanager
def _apart(player: Learner, seed: int, step: int) -> Iterator[None]:
    if isinstance(player, LanguagePlayer):
        calls = player.agent.calls
        player.agent.draw_from((step + 1) << 32)
        yield
        player.agent.draw_from(calls)
        return
    if (drawing := _with_rng(player)) is not None:
        before, drawing.rng = drawing.rng, np.random.default_rng([seed, step, _STREAM])
        yield
        drawing.rng = before
        return
    with tempfile.TemporaryDirectory(prefix="codea1-player-") as folder:
        player.save(Path(folder))
        yield
        player.load(Path(folder))


@contextmanager
def drawn_again(players: Players) -> Iterator[None]:
    """Where an engine fails inside, let both players go back to what they drew from: the step will be played anew."""
    back: list[Callable[[], object]] = []
    for player in _different(players):
        if isinstance(player, LanguagePlayer):
            back.append(partial(player.agent.draw_from, player.agent.calls))
        elif (drawing := _with_rng(player)) is not None:
            back.append(partial(setattr, drawing, "rng", deepcopy(drawing.rng)))
    try:
        yield
    except BackendError:
        for go_back in back:
            go_back()
        raise


def drawn(problems: Sequence[Problem], number: int, seed: int) -> list[Problem]:
    """Draw at most so many problems, always the same ones; they stay in their order."""
    rng = np.random.default_rng([seed, len(problems)])
    return [problems[i] for i in sorted(rng.permutation(len(problems))[:number])]


def with_control(
    held_out: Sequence[HeldOut], referee: Referee, samples: int
) -> tuple[list[HeldOut], dict[str, list[Flag]]]:
    """Let the measured mutants be first of all those that nobody kills by copying the examples of the problem's text.

    Also returns which of the first ones these examples kill.
    """
    most = max((len(split.mutants) for split in held_out), default=0)
    killed = kills(CopierTester(None), held_out, referee, most)
    ordered = []
    copied = {}
    for split in held_out:
        flags = killed.get(split.problem.task_id, [])
        order = sorted(range(len(flags)), key=[flag is not False for flag in flags].__getitem__)
        ordered.append(replace(split, mutants=tuple(split.mutants[i] for i in order)))
        copied[split.problem.task_id] = [flags[i] for i in order][:samples]
    return ordered, copied


def _row(name: str, passed: float | None, killed: Sequence[Flag], copied: Sequence[Flag]) -> Row:
    return {
        "task_id": name,
        "pass_rate": passed,
        "kill_rate": mean(killed),
        "copier_kill_rate": mean(copied),
        "new_kill_rate": mean(beyond(killed, copied)),
    }


def beyond(flags: Sequence[Flag], copied: Sequence[Flag]) -> list[bool]:
    """Return the known flags of those mutants that copies do not kill; none if nobody measured them."""
    if not flags:
        return []
    pairs = zip(flags, copied, strict=True)
    return [flag for flag, old in pairs if flag is not None and old is False]


class HeldBack:
    """Measures both players on what training holds back. Nothing of it is a reward."""

    def __init__(self, held_out: Sequence[HeldOut], referee: Referee, config: TrainConfig) -> None:
        self._referee, self._samples, self._booked = referee, config.eval_samples, config.use_book
        self._held_out, self._copied = with_control(held_out, referee, self._samples)

    def measure(
        self, players: Players, book: MistakeBook, past: MistakeBook
    ) -> tuple[Row, list[Row]]:
        """Measure both players: a row for metrics.jsonl, and one for each problem for held_out.jsonl (docs/training.md)."""
        held_out, referee, samples = self._held_out, self._referee, self._samples
        tests = {split.problem.task_id: past.tests(split.problem.task_id) for split in held_out}
        passed = pass_rates(players.coder, held_out, referee.sandbox, samples, also=tests)
        by_book: dict[str, list[Flag]] = {}
        seen: list[JudgedRound] = []
        if self._booked:
            old = [(each, book.tests(each.problem.task_id, 2 * PAST_TESTS)) for each in held_out]
            killed, by_book = kills_beside(players.tester, old, referee, samples, seen)
        else:
            killed = kills(players.tester, held_out, referee, samples, seen)
        rows: list[Row] = []
        for name, copied in self._copied.items():
            flags = killed.get(name, [])
            both = zip(by_book.get(name, []), flags, strict=bool(by_book))
            only = [None if None in pair else pair[0] and not pair[1] for pair in both]
            rows.append(
                _row(name, passed[name].held_out, flags, copied)
                | {
                    "only_book": mean(only),
                    "past_pass_rate": passed[name].also,
                    "mutants": len(flags) - flags.count(None),
                    "new_mutants": len(beyond(flags, copied)),
                    "past_tests": len(tests[name]),
                }
            )
        return {
            "held_out/pass_rate": mean(row["pass_rate"] for row in rows),
            **_solved(passed.values(), samples),
            "held_out/kill_rate": mean(chain.from_iterable(killed.values())),
            "held_out/copier_kill_rate": mean(chain.from_iterable(self._copied.values())),
            "held_out/new_kill_rate": _weighted(rows, "new_kill_rate", "new_mutants"),
            "held_out/youden_j": youden_j(seen, referee),
            "held_out/only_book": _weighted(rows, "only_book", "mutants"),
            "past/pass_rate": _weighted(rows, "past_pass_rate", "past_tests"),
            "past/size": len(past),
        }, rows


def _solved(rates: Iterable[PassRates], samples: int) -> Row:
    """Estimate pass@1 and pass@`samples`: means over the problems with held-out tests."""
    found = [each.solved for each in rates if each.solved]
    return {
        f"held_out/pass@{k}": mean(pass_at_k(len(it), sum(it), k) for it in found if len(it) >= k)
        for k in sorted({1, samples})
    }


def _weighted(rows: Sequence[Row], name: str, weight: str) -> float | None:
    known = [row for row in rows if row[name] is not None]
    total = sum(row[weight] for row in known)
    return sum(row[name] * row[weight] for row in known) / total if total else None


def unseen_problems(config: TrainConfig, trained: Sequence[Problem]) -> list[Problem]:
    """Draw the problems for measuring: of the same source, as hard as those that are trained on, but none of them.

    Where a split is trained on, they are of the others; without one, of what `max_problems` leaves. They are the same with
    every seed, so that runs with different seeds can be compared problem by problem.
    """
    if config.eval_problems == 0 or not config.has_language_model:
        return []
    known = {problem.task_id for problem in trained}
    levels = {problem.metadata.get("difficulty") for problem in trained}
    others = [
        problem
        for problem in load_problems(config.problems, None, config.difficulty)
        if problem.task_id not in known
        and problem.metadata.get("difficulty") in levels
        and (config.split is None or problem.metadata.get("split") != config.split)
    ]
    return drawn(others, config.eval_problems, _SEED)


class Unseen:
    """Measures language models on other problems than those of the run. Nothing of it is a reward."""

    def __init__(self, problems: Sequence[Problem], referee: Referee, config: TrainConfig) -> None:
        self._referee = referee
        self._samples = config.eval_samples
        # Nothing of these is shown in training: all golden tests measure.
        split = [
            replace(each, cases=each.problem.cases)
            for each in hold_out(problems, referee.sandbox, config.seed)
        ]
        self._held_out, self._copied = with_control(split, referee, self._samples)

    def measure(self, players: Players) -> tuple[Row, list[Row]]:
        """Measure both players; one that is no language model gets None."""
        if not self._held_out:
            return {}, []
        passed: dict[str, PassRates] = {}
        killed: dict[str, list[Flag]] = {}
        if isinstance(players.coder, LanguagePlayer):
            passed = pass_rates(players.coder, self._held_out, self._referee.sandbox, self._samples)
        if isinstance(players.tester, LanguagePlayer):
            killed = kills(players.tester, self._held_out, self._referee, self._samples)
        rows = [
            _row(name, passed[name].held_out if passed else None, killed.get(name, []), copied)
            for name, copied in self._copied.items()
        ]
        new = (beyond(killed.get(name, []), copied) for name, copied in self._copied.items())
        return {
            "unseen/pass_rate": mean(row["pass_rate"] for row in rows),
            "unseen/kill_rate": mean(chain.from_iterable(killed.values())),
            "unseen/copier_kill_rate": mean(chain.from_iterable(self._copied.values())),
            "unseen/new_kill_rate": mean(chain.from_iterable(new)),
        }, rows
