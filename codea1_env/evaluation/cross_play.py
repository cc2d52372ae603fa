"""Every coder against every tester: who beats whom.

Ratings follow the model of Bradley and Terry (1952): each player has a strength, and a coder beats a tester with the
probability s_coder / (s_coder + s_tester). Strengths are found by the iteration of Hunter 2004, "MM algorithms for
generalized Bradley-Terry models", and given on the scale of Elo: 400 points more are odds of ten to one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from codea1_env.evaluation.result_folder import FolderError, read_json
from codea1_env.evaluation.statistics import Estimate, estimate_of
from codea1_env.evaluation.suites.samples import SuiteSample
from codea1_env.evaluation.task import Evaluation, Question, Stored
from codea1_env.problems import Problem
from codea1_env.referee import Referee, Round
from codea1_env.responses import parse_suites, read_programs
from codea1_env.rollout import Agent, ask
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import observe

Floats = NDArray[np.float64]
_PRIOR = 0.5
"""Wins that every player is given against every opponent: who never lost would have no finite rating."""
_ITERATIONS = 500
_REPETITIONS = 300
_SCALE = 400 / math.log(10)
UNBROKEN = "Share of programs that run and that no right test of a suite breaks; a suite without a right test breaks none."
"""The measure of the table, of the picture in a report, and of the ratings."""


def bradley_terry(coder_wins: ArrayLike, games: ArrayLike) -> tuple[Floats, Floats]:
    """Ratings of coders and testers from all their games.

    Example:
        >>> coders, testers = bradley_terry([[9.5], [0.5]], [[10.0], [10.0]])
        >>> coders.round().tolist(), testers.round().tolist()
        ([400.0, -400.0], [0.0])
    """
    won = np.asarray(coder_wins, dtype=np.float64)
    wins, losses = won + _PRIOR, np.asarray(games, dtype=np.float64) - won + _PRIOR
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
    coder_wins: ArrayLike, games: ArrayLike, rng: np.random.Generator
) -> tuple[list[Estimate], list[Estimate]]:
    """Ratings with 95% intervals from problems drawn with replacement."""
    wins, played = np.asarray(coder_wins, dtype=float), np.asarray(games, dtype=float)
    drawn = rng.integers(len(wins), size=(_REPETITIONS, len(wins)))
    values = bradley_terry(wins.sum(axis=0), played.sum(axis=0))
    samples = bradley_terry(wins[drawn].sum(axis=1), played[drawn].sum(axis=1))
    coders, testers = (
        [estimate_of(one, each) for one, each in zip(value, sample.T, strict=True)]
        for value, sample in zip(values, samples, strict=True)
    )
    return coders, testers


@dataclass(frozen=True)
class CrossPlay:
    """What came of all pairs. Arrays have the shape (problems, coders, testers)."""

    coders: tuple[str, ...]
    testers: tuple[str, ...]
    problems: tuple[str, ...]
    passed: Floats
    tests: Floats
    """Tests that are right as written."""
    wins: Floats
    """Programs that run and that no test of the suite broke."""
    games: Floats

    @property
    def right_tests(self) -> Floats:
        """Right tests in a suite, on average."""
        number: Floats = self.tests.sum(axis=0) / self.games.sum(axis=0)
        return number

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


@dataclass(frozen=True)
class AttackedProgram(Stored):
    """What the suite of each tester did to one program: right tests, those that it passed, and whether it won."""

    tests: tuple[int, ...]
    passed: tuple[int, ...]
    won: tuple[bool, ...]


class Opponents(NamedTuple):
    """All who play, by name."""

    coders: Mapping[str, Agent]
    testers: Mapping[str, Agent]


@dataclass(kw_only=True, eq=False)
class CrossPlayEvaluation(Evaluation[SuiteSample, AttackedProgram]):
    """Let every coder play against every tester.

    A coder writes its programs once; each tester writes one suite against each of them. The tester wins if
    the program does not run, or if a test that is right as written breaks it; otherwise the coder wins.
    """

    role = "coder"
    unit = "programs"
    kind = "cross-play"
    figure = "programs that win"
    verdict_type = AttackedProgram

    coders: tuple[str, ...]
    """Coders, by name."""
    testers: tuple[str, ...]
    """Testers, by name."""
    referee: Referee = field(init=False, repr=False)

    def begin(self, sandbox: Sandbox) -> None:
        """Make the referee."""
        super().begin(sandbox)
        self.referee = Referee(sandbox)

    def questions(self, num_samples: int) -> list[Question]:
        """All problems for one coder after the other."""
        return [
            Question(problem, place * num_samples + i, coder)
            for place, coder in enumerate(self.coders)
            for problem in self.problems.values()
            for i in range(num_samples)
        ]

    def write(self, agent: Any, batch: Sequence[Question]) -> list[Mapping[str, Any]]:
        """Let the coder of the batch write programs, and all testers attack them; `agent` are `Opponents`."""
        (coder,) = {each.code for each in batch}
        problems = [each.problem for each in batch]
        answers = ask(agent.coders[coder], "coder", list(map(observe, problems)))
        programs = read_programs(problems, answers, self.sandbox)
        seen = [
            observe(problem, code=program.code, turn=1)
            for problem, program in zip(problems, programs, strict=True)
        ]
        attacks = [ask(agent.testers[name], "tester", seen) for name in self.testers]
        return [
            {"task_id": problem.task_id, "coder": coder, "answer": answer, "suites": suites}
            for problem, answer, *suites in zip(problems, answers, *attacks, strict=True)
        ]

    def read(self, question: Question, row: Mapping[str, Any]) -> SuiteSample:
        """Return a program with the suites against it."""
        return SuiteSample(question.problem.task_id, question.index, row)

    def judge(self, problem: Problem, sample: SuiteSample) -> AttackedProgram:
        """Run the suites on the program."""
        programs = read_programs([problem], [sample.row["answer"]], self.sandbox)
        texts = [(text, problem) for text in sample.row["suites"]]
        attack = Round(problem, programs[0], parse_suites(texts, self.sandbox))
        (verdict,) = self.referee.judge([attack])
        kept = [[test for test in suite.tests if test.status == "kept"] for suite in verdict.suites]
        broken = [sum(test.broke for test in tests) for tests in kept]
        return AttackedProgram(
            tuple(map(len, kept)),
            tuple(len(tests) - number for tests, number in zip(kept, broken, strict=True)),
            tuple(verdict.code_executes and not number for number in broken),
        )

    def values(self, verdicts: Sequence[AttackedProgram]) -> Mapping[str, float | None]:
        """For each pair, the share of programs that no right test of the suite breaks."""
        shares = np.array([verdict.won for verdict in verdicts], float)
        shares = shares.reshape(len(self.coders), -1, len(self.testers)).mean(axis=1)
        return {
            f"{self.coders[row]} against {self.testers[column]}": float(share)
            for (row, column), share in np.ndenumerate(shares)
        }

    def so_far(self) -> list[float]:
        """Return the share of programs that win, against all testers together."""
        return [float(np.mean([each.won for each in one])) for one in self.verdicts.values()]

    def played(self) -> CrossPlay:
        """Return what came of all pairs."""
        found = [self.verdicts[task] for task in self.problems]
        passed, tests, wins = (
            np.array([[getattr(each, name) for each in one] for one in found], float)
            .reshape(len(found), len(self.coders), -1, len(self.testers))
            .sum(axis=2)
            for name in ("passed", "tests", "won")
        )
        games = np.full_like(wins, len(found[0]) // len(self.coders))
        return CrossPlay(
            self.coders, self.testers, tuple(self.problems), passed, tests, wins, games
        )


def write_cross_play(folder: Path, result: CrossPlay) -> list[Path]:
    """Write CROSSPLAY.md and crossplay.json."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / "CROSSPLAY.md", folder / "crossplay.json"]
    lines = [
        *("# Cross-play", ""),
        *(f"{UNBROKEN} In brackets: right tests in a suite.", ""),
        *_table(result),
        *("", "Ratings (Bradley-Terry, on the scale of Elo) with 95% intervals over problems.", ""),
        *("| player | role | rating |", "|---|---|---|"),
    ]
    coders, testers = result.ratings(np.random.default_rng(0))
    for role, ratings in (("coder", coders), ("tester", testers)):
        for name, each in sorted(ratings.items(), key=lambda item: -item[1].value):
            rating = f"{each.value:.0f} {each.interval('{:.0f}'.format)}"
            lines.append(f"| {name} | {role} | {rating} |")
    written[0].write_text("\n".join(lines) + "\n", encoding="utf-8")
    content = {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in vars(result).items()
    }
    written[1].write_text(json.dumps(content) + "\n", encoding="utf-8")
    return written


def read_cross_play(path: Path) -> CrossPlay:
    """Read the crossplay.json that `write_cross_play` wrote."""
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
            f"Expect {path} to hold what `codea1 eval cross-play` writes, actually: {error!r:.200}"
        ) from error
    return CrossPlay(coders, testers, problems, *arrays)


def _table(result: CrossPlay) -> list[str]:
    lines = [
        f"| coder \\ tester | {' | '.join(result.testers)} |",
        "|---" * (len(result.testers) + 1) + "|",
    ]
    for name, rates, tests in zip(result.coders, result.win_rates, result.right_tests, strict=True):
        cells = [f"{rate:.3f} ({n:.1f})" for rate, n in zip(rates, tests, strict=True)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines
