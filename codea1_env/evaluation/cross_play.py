"""Every coder against every tester: who beats whom."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from codea1_env.evaluation.result_folder import FolderError, read_json
from codea1_env.evaluation.statistics import Estimate, check_bootstrap, estimate_of
from codea1_env.judging.programs import read_programs
from codea1_env.problems import Problem, check_playable
from codea1_env.referee import Referee, Round, Verdict
from codea1_env.responses import parse_suites
from codea1_env.rollout import Agent, ask
from codea1_env.spaces import observe

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CrossPlay:
    """What came of all pairs. Arrays have the shape (problems, coders, testers)."""

    coders: tuple[str, ...]
    testers: tuple[str, ...]
    problems: tuple[str, ...]
    passed: Floats
    """Tests that programs passed, of those that are right as written."""
    tests: Floats
    """Tests that are right as written."""
    wins: Floats
    """Programs that run and that no test of the suite broke."""
    games: Floats
    """Programs that were attacked."""

    @property
    def pass_rates(self) -> Floats:
        """Share of right tests that each coder's programs pass, by tester; NaN where there are none."""
        tests = self.tests.sum(axis=0)
        with np.errstate(invalid="ignore"):
            rates: Floats = self.passed.sum(axis=0) / np.where(tests > 0, tests, np.nan)
        return rates

    @property
    def win_rates(self) -> Floats:
        """Share of its programs that each coder gets past a suite of each tester."""
        rates: Floats = self.wins.sum(axis=0) / self.games.sum(axis=0)
        return rates

    def ratings(self, rng: np.random.Generator) -> tuple[dict[str, Estimate], dict[str, Estimate]]:
        """Ratings of coders and of testers, on the scale of Elo."""
        coders, testers = rating_intervals(self.wins, self.games, rng)
        return (
            dict(zip(self.coders, coders, strict=True)),
            dict(zip(self.testers, testers, strict=True)),
        )


def cross_play(
    coders: Mapping[str, Agent],
    testers: Mapping[str, Agent],
    problems: Sequence[Problem],
    referee: Referee,
    samples: int = 4,
) -> CrossPlay:
    """Let every coder's programs be attacked by every tester.

    A coder writes its programs once; each tester writes one suite against each of them. The tester wins if
    the program does not run, or if a test that is right as written breaks it; otherwise the coder wins.

    Args:
        coders: Name -> coder.
        testers: Name -> tester.
        problems: What they play.
        referee: Judges.
        samples: Programs per problem and coder.

    Raises:
        ValueError: There is nobody, or nothing to play, or a problem cannot be played.
    """
    for name, given in (("coder", coders), ("tester", testers), ("problem", problems)):
        if not given:
            raise ValueError(f"Expect at least one {name} for cross-play, actually: none")
    check_playable(problems)
    shape = (len(problems), len(coders), len(testers))
    passed, tests, wins = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    asked = [problem for problem in problems for _ in range(samples)]
    for row, coder in enumerate(coders.values()):
        answers = ask(coder, "coder", [observe(problem) for problem in asked])
        programs = read_programs(asked, answers, referee.sandbox)
        seen = [
            observe(problem, code=program.code, turn=1)
            for problem, program in zip(asked, programs, strict=True)
        ]
        for column, tester in enumerate(testers.values()):
            attacks = ask(tester, "tester", seen)
            suites = parse_suites(list(zip(attacks, asked, strict=True)), referee.sandbox)
            rounds = [
                Round(problem, program, [suite])
                for problem, program, suite in zip(asked, programs, suites, strict=True)
            ]
            for number, verdict in enumerate(referee.judge(rounds)):
                right, broken = _right_tests(verdict)
                place = (number // samples, row, column)
                tests[place] += right
                passed[place] += right - broken
                wins[place] += verdict.code_executes and not broken
    names = tuple(problem.task_id for problem in problems)
    games = np.full(shape, float(samples))
    return CrossPlay(tuple(coders), tuple(testers), names, passed, tests, wins, games)


def _right_tests(verdict: Verdict) -> tuple[int, int]:
    """Tests that are right as written, and how many of them broke the program."""
    kept = [test for suite in verdict.suites for test in suite.tests if test.status == "kept"]
    return len(kept), sum(test.broke for test in kept)


def write_cross_play(folder: Path, result: CrossPlay) -> list[Path]:
    """Write CROSSPLAY.md and crossplay.json, and crossplay.png where there is matplotlib."""
    coders, testers = result.ratings(np.random.default_rng(0))
    content = {
        "coders": result.coders,
        "testers": result.testers,
        "problems": result.problems,
        "passed": result.passed.tolist(),
        "tests": result.tests.tolist(),
        "wins": result.wins.tolist(),
        "games": result.games.tolist(),
    }
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / "CROSSPLAY.md", folder / "crossplay.json"]
    lines = [
        "# Cross-play",
        "",
        "Share of the testers' right tests that the coders' programs pass.",
        "",
    ]
    lines += _table(result, result.pass_rates)
    lines += ["", "Share of programs that run and that no right test of a suite breaks.", ""]
    lines += _table(result, result.win_rates)
    lines += [
        "",
        "Ratings (Bradley-Terry, on the scale of Elo) with 95% intervals over problems.",
        "",
    ]
    lines += ["| player | role | rating |", "|---|---|---|"]
    for role, ratings in (("coder", coders), ("tester", testers)):
        for name, each in sorted(ratings.items(), key=lambda item: -item[1].value):
            lines.append(
                f"| {name} | {role} | {each.value:.0f} [{each.low:.0f}, {each.high:.0f}] |"
            )
    if _draw(folder / "crossplay.png", result):
        written.append(folder / "crossplay.png")
        lines += ["", "![pass rates](crossplay.png)"]
    written[0].write_text("\n".join(lines) + "\n", encoding="utf-8")
    written[1].write_text(json.dumps(content) + "\n", encoding="utf-8")
    return written


def read_cross_play(path: Path) -> CrossPlay:
    """Read the crossplay.json that `write_cross_play` wrote.

    Raises:
        FolderError: It holds something else.
    """
    content = read_json(path)
    try:
        coders, testers, problems = (
            tuple(map(str, content[key])) for key in ("coders", "testers", "problems")
        )
        arrays = [np.array(content[key], float) for key in ("passed", "tests", "wins", "games")]
        shape = (len(problems), len(coders), len(testers))
        if 0 in shape or any(each.shape != shape or not np.isfinite(each).all() for each in arrays):
            raise ValueError(f"not all of its arrays have the shape {shape} and finite numbers")
    except (KeyError, TypeError, ValueError) as error:
        raise FolderError(
            f"Expect {path} to hold what `codea1 bench cross-play` writes, actually: {error!r:.200}"
        ) from error
    return CrossPlay(coders, testers, problems, *arrays)


def _table(result: CrossPlay, rates: Floats) -> list[str]:
    lines = [
        f"| coder \\ tester | {' | '.join(result.testers)} |",
        "|---" * (len(result.testers) + 1) + "|",
    ]
    for name, row in zip(result.coders, rates, strict=True):
        cells = ["-" if np.isnan(rate) else f"{rate:.3f}" for rate in row]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _draw(path: Path, result: CrossPlay) -> bool:
    """Draw the matrix as a heat map; False if there is no matplotlib (the extra `report`)."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    rates = result.pass_rates
    figure: Any = Figure(figsize=(2 + 0.9 * len(result.testers), 1.5 + 0.5 * len(result.coders)))
    panel = figure.subplots()
    image = panel.imshow(rates, vmin=0, vmax=1, cmap="viridis", aspect="auto")
    panel.set_xticks(range(len(result.testers)), result.testers, rotation=30, ha="right")
    panel.set_yticks(range(len(result.coders)), result.coders)
    panel.set_xlabel("tester")
    panel.set_ylabel("coder")
    for (row, column), rate in np.ndenumerate(rates):
        text = "-" if np.isnan(rate) else f"{rate:.2f}"
        color = "black" if rate > 0.6 else "white"
        panel.text(column, row, text, ha="center", va="center", color=color)
    figure.colorbar(image, label="share of right tests passed")
    figure.savefig(path, dpi=120, bbox_inches="tight")
    return True


Floats = NDArray[np.float64]

_PRIOR = 0.5
"""Wins that every player is given against every opponent: who never lost would have no finite rating."""
_ITERATIONS = 500
_SCALE = 400 / math.log(10)


def bradley_terry(coder_wins: ArrayLike, games: ArrayLike) -> tuple[Floats, Floats]:
    """Ratings of coders and testers from all their games.

    Args:
        coder_wins: Games that each coder won against each tester, of shape (..., coders, testers).
        games: Games that they played, of the same shape.

    Returns:
        Ratings of the coders and of the testers; their common mean is 0.

    Example:
        >>> coders, testers = bradley_terry([[9.5], [0.5]], [[10.0], [10.0]])
        >>> coders.round().tolist(), testers.round().tolist()
        ([400.0, -400.0], [0.0])
    """
    played = np.asarray(games, dtype=np.float64)
    wins = np.asarray(coder_wins, dtype=np.float64) + _PRIOR
    losses = played - np.asarray(coder_wins, dtype=np.float64) + _PRIOR
    played = wins + losses
    coders = np.ones(played.shape[:-1])
    testers = np.ones((*played.shape[:-2], played.shape[-1]))
    for _ in range(_ITERATIONS):
        shared = played / (coders[..., :, None] + testers[..., None, :])
        coders = wins.sum(axis=-1) / shared.sum(axis=-1)
        shared = played / (coders[..., :, None] + testers[..., None, :])
        testers = losses.sum(axis=-2) / shared.sum(axis=-2)
        scale = np.exp(np.log(np.concatenate([coders, testers], axis=-1)).mean(axis=-1))[..., None]
        coders, testers = coders / scale, testers / scale
    return _SCALE * np.log(coders), _SCALE * np.log(testers)


def rating_intervals(
    coder_wins: ArrayLike,
    games: ArrayLike,
    rng: np.random.Generator,
    *,
    confidence: float = 0.95,
    repetitions: int = 300,
) -> tuple[list[Estimate], list[Estimate]]:
    """Ratings with intervals from problems drawn with replacement.

    Args:
        coder_wins: Games won, of shape (problems, coders, testers).
        games: Games played, of the same shape.
        rng: Draws the problems.
        confidence: Coverage of the intervals, between 0 and 1.
        repetitions: Bootstrap samples.

    Returns:
        Estimates for the coders and for the testers.

    Raises:
        ValueError: A number is out of its range.
    """
    check_bootstrap(confidence, repetitions)
    wins, played = np.asarray(coder_wins, dtype=float), np.asarray(games, dtype=float)
    drawn = rng.integers(len(wins), size=(repetitions, len(wins)))
    values = bradley_terry(wins.sum(axis=0), played.sum(axis=0))
    samples = bradley_terry(wins[drawn].sum(axis=1), played[drawn].sum(axis=1))
    coders, testers = (
        [estimate_of(one, each, confidence) for one, each in zip(value, sample.T, strict=True)]
        for value, sample in zip(values, samples, strict=True)
    )
    return coders, testers
