"""One run in a world of cells: the rollouts, rewards, book and players of the game, and exact measures after each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from codea1_env.agents import TabularAgent
from codea1_env.baselines.diagnose.cast import Cast, Lessons
from codea1_env.baselines.diagnose.kinds import KindsConfig, measure_kinds
from codea1_env.baselines.diagnose.play_config import (
    PassingBook,
    PlayConfig,
    make_book,
    stale_share,
)
from codea1_env.baselines.diagnose.remembering import Noise, RememberingReferee
from codea1_env.baselines.diagnose.testers import WithPast
from codea1_env.baselines.payoffs import Floats, game_figures
from codea1_env.problem_sets.cells import cells, changed, pools_of
from codea1_env.problems import Problem
from codea1_env.referee import RefereeConfig
from codea1_env.rewards import RewardConfig
from codea1_env.rollout import RolloutConfig, Rollouts, rollout
from codea1_env.sandbox import Sandbox

SOLVED = 0.9
Row = dict[str, float | None]


def play(config: PlayConfig, sandbox: Sandbox, memory: RememberingReferee | None = None) -> Row:
    """Play a run; returns its measures by name, all of them finite numbers or None.

    Programs run in the sandbox once for each call; what a referee of the same world remembers (`memory`) is taken over.
    """
    return _Run(config, sandbox, memory).play()


def curve(
    config: PlayConfig, sandbox: Sandbox, memory: RememberingReferee | None = None
) -> list[Row]:
    """Play a run as `play` does, and return its measures at the start and after each step."""
    run = _Run(config, sandbox, memory)
    run.play()
    return run.curve


class _Run:
    def __init__(
        self, config: PlayConfig, sandbox: Sandbox, memory: RememberingReferee | None
    ) -> None:
        self.config, self.sandbox = config, sandbox
        self.problems = cells(config.world)
        self.worlds = {each.task_id: pools_of(each) for each in self.problems}
        rewards = RewardConfig(config.alpha, config.num_tests, function=config.rewards)
        self.referee = RememberingReferee(sandbox, RefereeConfig(rewards), _noise(config))
        if memory is not None:
            self.referee._worlds = memory._worlds
        cast = Cast(config, self.problems, self.worlds, self.referee)
        self.coder = cast.coder()
        self.testers = cast.testers()
        self.tester = self.testers[0]
        self.book = make_book(config.book)
        self.rng = np.random.default_rng([config.seed, 9])
        self.lessons = Lessons(config, self.rng)
        self.breaks: dict[str, Floats] = {}
        self.right: dict[str, Floats] = {}
        self._look(self.problems)
        self.curve: list[Row] = []
        self.kept: dict[str, list[tuple[Floats, Floats | None]]] = {n: [] for n in self.worlds}

    def play(self) -> Row:
        config = self.config
        self._measure(None)
        for step in range(config.steps):
            if config.phase:
                self.tester = self.testers[step // config.phase % len(self.testers)]
            if config.changes and step == config.steps // 2:
                self._change()
            own = self.rng.random() >= config.judged
            numbers = RolloutConfig(
                config.num_generations,
                config.num_suites,
                config.use_book,
                config.black_box,
                oracle="coder" if own else "reference",
            )
            played = rollout(
                self.problems, self.coder, self.tester, self.referee, self.book, numbers
            )
            if isinstance(self.book, PassingBook):
                self.book.fill(episode.verdict for episode in played.episodes)
            self.coder.learn(self.lessons.for_coder(played))
            if config.learns:
                self.tester.learn(self.lessons.for_tester(played))
            self._measure(played)
            if step % max(1, config.steps // 12) == 0:
                self._keep()
        self._keep()
        return self._summary()

    def _chances(self, name: str, played: Rollouts | None) -> Floats:
        """Return the probability of each program. Without tables it is its share of the programs of this step."""
        if hasattr(self.coder, "policy"):
            chances: Floats = self.coder.policy.probabilities(name)
            return chances
        programs = self.worlds[name].programs
        if played is None:
            return np.full(len(programs), 1 / len(programs))
        submitted = [e.program.code for e in played.episodes if e.problem.task_id == name]
        counts = [submitted.count(code) for code in programs]
        return np.array(counts, dtype=np.float64) / max(1, len(submitted))

    # What is true

    def _look(self, problems: Sequence[Problem]) -> None:
        for each in problems:
            pools = self.worlds[each.task_id] = pools_of(each)
            self.breaks[each.task_id] = self._breaks(each)
            self.right[each.task_id] = np.array([not faults for faults in pools.faults])

    def _change(self) -> None:
        """Make a wrong program of every third problem the right one."""
        rng = np.random.default_rng([self.config.seed, 8])
        for number in range(0, len(self.problems), 3):
            program = self.config.world.right + int(rng.integers(self.config.world.families))
            self.problems[number] = changed(self.problems[number], program)
        self._look(self.problems)
        self.curve[-1]["stale"] = stale_share(self.book, self.problems)

    # Measures

    def _breaks(self, problem: Problem) -> Floats:
        memory = self.referee.memory(problem)
        pools, tests = memory.pools, memory.pools.tests
        calls = [memory.rulings[text].call for text in tests]
        return np.array(
            [[not memory.results[code].calls[call].passed for call in calls] for code in pools.programs],
            dtype=np.float64,
        )  # fmt: skip

    def _measure(self, played: Rollouts | None) -> None:
        row: Row = {}
        chances = {name: self._chances(name, played) for name in self.worlds}
        row["solved"] = _mean([chances[name] @ self.right[name] for name in self.worlds])
        row["correctness"] = _mean(
            [chances[name] @ np.array(pools.correctness) for name, pools in self.worlds.items()]
        )
        row["hacked"] = _mean([self._hacked(name, chances[name]) for name in self.worlds])
        if played is not None:
            earned = [e.verdict.code_reward for e in played.episodes]
            row["reward"] = _mean([each for each in earned if each is not None])
            suites = [suite for e in played.episodes for suite in e.verdict.suites]
            row["validity"] = _mean([suite.rewards.validity for suite in suites])
            row["broken"] = _mean([float(any(suite.outcome.failed)) for suite in suites])
            if self.config.changes:
                row["stale"] = stale_share(self.book, self.problems)
        self.curve.append(row)

    def _hacked(self, name: str, chances: Floats) -> float:
        """Probability of programs that are wrong on hidden fault sets alone, and pass all golden tests."""
        pools = self.worlds[name]
        seen = frozenset().union(*pools.families[: len(pools.families) - self.config.hidden])
        hacks = [bool(faults) and not faults & seen for faults in pools.faults]
        return float(chances @ np.array(hacks))

    def _keep(self) -> None:
        for name in self.worlds:
            coder = self._chances(name, None)
            self.kept[name].append((coder, self._answers(name)))

    def _answers(self, name: str) -> Floats | None:
        """Return for each program the probability of each test in the tester's first draw; None without a table."""
        if (
            not isinstance(self.coder, TabularAgent | WithPast)
            or not isinstance(self.tester, TabularAgent | WithPast)
            or self.config.world.C > 64
            or self.config.phase
        ):
            return None
        programs = self.worlds[name].programs
        shown = [""] * len(programs) if self.config.black_box else programs
        return self.tester.policy.answers(name, shown)

    def _summary(self) -> Row:
        last = max(1, len(self.curve) // 10)
        row: Row = {}
        for measure in self.curve[-1]:
            values = [each[measure] for each in self.curve if measure in each]
            known = [value for value in values if value is not None]
            row[measure] = _mean(known[-last:])
            row[f"{measure}/area"] = _mean(known)
        if phase := self.config.phase:
            row["solved/phases"] = _mean([each["solved"] for each in self.curve[phase::phase]])
        if self.config.changes:
            row |= {
                "stale/most": max(each.get("stale") or 0.0 for each in self.curve),
                "stale/end": self.curve[-1]["stale"],
            }
        solved = [step for step, each in enumerate(self.curve) if (each["solved"] or 0) >= SOLVED]
        row["steps_to_solved"] = float(solved[0]) if solved else None
        row["inflation"] = (row["reward"] or 0.0) - (row["correctness"] or 0.0)
        row["unhacked"] = 1 - (row["hacked"] or 0.0)
        row["honest"] = 1 - max(0.0, row["inflation"] or 0.0)
        return row | self._game() | self._kinds()

    def _kinds(self) -> Row:
        config = self.config
        if config.overlap is None:
            return {}
        found = measure_kinds(
            self.tester,
            self.problems,
            config.world,
            KindsConfig(config.overlap, config.kinds),
            num_suites=config.num_suites,
            black_box=config.black_box,
            rng=np.random.default_rng([config.seed, 6]),
        )
        return {**found}

    def _game(self) -> Row:
        found: dict[str, list[float]] = {}
        for name, kept in self.kept.items():
            coders = np.array([coder for coder, _ in kept])
            answers = [tester for _, tester in kept if tester is not None]
            if len(answers) < len(kept):
                return {}
            for figure, value in game_figures(self.breaks[name], coders, np.array(answers)).items():
                found.setdefault(figure, []).append(value)
        return {figure: _mean(values) for figure, values in found.items()}


def _noise(config: PlayConfig) -> Noise | None:
    if config.noise == "none":
        return None
    passes = {"both": 0.5, "passes": 1.0, "failures": 0.0}[config.wrong_are]
    rates = (config.wrong * passes, config.wrong * (1 - passes))
    return Noise(config.noise, *rates, seed=config.seed)


def _mean(values: Sequence[Any]) -> float | None:
    return float(np.mean(values)) if len(values) else None
