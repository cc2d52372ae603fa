"""Players of a run of an experiment, and what they learn from: their rewards, or a control in their place."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from codea1_env.agents import Pool, Setting, TabularAgent, as_learner, make_algorithm, own_player
from codea1_env.agents.tabular import LinearAgent
from codea1_env.baselines.diagnose.play_config import PlayConfig
from codea1_env.baselines.diagnose.remembering import RememberingReferee
from codea1_env.baselines.diagnose.testers import (
    FixedCells,
    GoldenCells,
    OracleTester,
    OtherProgramsTester,
    RandomTester,
    WithPast,
    Worlds,
    cells_of_half,
)
from codea1_env.mistake_book import MistakeBook
from codea1_env.problem_sets.cells import cells, pools_of
from codea1_env.problems import Problem
from codea1_env.rollout import Experience, RolloutConfig, Rollouts, rollout


class Lessons:
    """Makes experience of the rollouts of a step."""

    def __init__(self, config: PlayConfig, rng: np.random.Generator) -> None:
        self._config, self._rng = config, rng

    def for_coder(self, played: Rollouts) -> list[Experience]:
        """Return the coder's experience."""
        return self._paid(played.coder_experience())

    def for_tester(self, played: Rollouts) -> list[Experience]:
        """Return the tester's experience."""
        experience = played.tester_experience(self._config.suite_selection)
        if not self._config.shuffled:
            return self._paid(experience)
        groups: dict[str, list[int]] = {}
        for number, item in enumerate(experience):
            groups.setdefault(item.group, []).append(number)
        mixed = list(experience)
        for members in groups.values():
            for number, other in zip(members, self._rng.permutation(members), strict=True):
                mixed[number] = dataclasses.replace(
                    experience[number], reward=experience[int(other)].reward
                )
        return self._paid(mixed)

    def _paid(self, experience: list[Experience]) -> list[Experience]:
        if self._config.lesson == "paid":
            return experience
        draws = self._rng.random(len(experience)).tolist()
        return [
            item
            if item.reward is None
            else dataclasses.replace(
                item, reward=-item.reward if self._config.lesson == "negated" else draw
            )
            for item, draw in zip(experience, draws, strict=True)
        ]


class Cast:
    """Makes the players of a run. Each draws from a generator of its own."""

    def __init__(
        self,
        config: PlayConfig,
        problems: Sequence[Problem],
        worlds: Worlds,
        referee: RememberingReferee,
    ) -> None:
        self.config, self.problems, self.worlds = config, problems, worlds
        self.referee, self.sandbox = referee, referee.sandbox

    def coder(self) -> Any:
        """Return the coder."""
        made = self._own("coder") or self.coder_of(self.problems, 0)
        return WithPast(made, self.rng(4)) if self.config.past in ("coder", "both") else made

    def rng(self, stream: int) -> np.random.Generator:
        """Return a new random generator."""
        return np.random.default_rng([self.config.seed, stream])

    def _own(self, role: Literal["coder", "tester"]) -> Any:
        config = self.config
        if not config.player:
            return None
        coder = role == "coder"
        pools = {name: own.programs if coder else own.tests for name, own in self.worlds.items()}
        setting = Setting(
            role,
            config.num_tests,
            config.coder_rate if coder else config.tester_rate,
            2 * config.seed + (not coder),
            self.sandbox,
            lambda: [Pool(each, pools[each.task_id]) for each in self.problems],
        )
        player: Any = as_learner(own_player(config.player, setting))
        if not isinstance(player, TabularAgent) and coder and config.handicap:
            raise ValueError(
                f"Expect a TabularAgent where right programs begin as less likely, actually: {config.player}"
            )
        if coder and isinstance(player, TabularAgent):
            for name in self.worlds:
                player.policy.logits[name][: config.world.right] -= config.handicap
        return player

    def coder_of(self, problems: Sequence[Problem], stream: int) -> TabularAgent:
        """Return a tabular or a linear coder."""
        pools = [Pool(each, pools_of(each).programs) for each in problems]
        coder = self._player(pools, self.config.coder_rate, stream, 1)
        for each in problems:
            coder.policy.logits[each.task_id][: self.config.world.right] -= self.config.handicap
        return coder

    def _player(self, pools: Sequence[Pool], rate: float, stream: int, draws: int) -> TabularAgent:
        own, rng = dict(self.config.algorithm_args), self.rng(stream)
        of_run = {"learning_rate": rate}
        algorithm = make_algorithm(self.config.algorithm, of_run, "tabular", own)
        if self.config.shared is not None:
            return LinearAgent(pools, algorithm, rng, draws, self.config.shared)
        return TabularAgent(pools, algorithm, rng, draws, self.config.carried)

    def _table(
        self, problems: Sequence[Problem], stream: int, half: int | None = None
    ) -> TabularAgent:
        pools = []
        for each in problems:
            found = pools_of(each)
            pools.append(
                Pool(each, tuple(found.tests[cell] for cell in cells_of_half(found, half)))
            )
        return self._player(pools, self.config.tester_rate, stream, self.config.num_tests)

    def testers(self) -> list[Any]:
        """Return the testers, one for each phase."""
        config = self.config
        if config.phase and config.tester == "tabular" and not config.player:
            made: list[Any] = [self._table(self.problems, 6 + half, half) for half in (0, 1)]
        elif config.phase and config.tester == "random":
            made = [
                RandomTester(self.worlds, config.num_tests, config.num_suites, self.rng(6), half)
                for half in (0, 1)
            ]
        else:
            made = [self._tester()]
        if config.past not in ("tester", "both"):
            return made
        return [
            WithPast(each, self.rng(5)) if isinstance(each, TabularAgent) else each for each in made
        ]

    def _tester(self) -> Any:
        config, rng = self.config, self.rng(1)
        few = config.world.families - config.num_tests
        made: dict[str, Any] = {
            "tabular": lambda: self._own("tester") or self._table(self.problems, 1),
            "random": lambda: RandomTester(self.worlds, config.num_tests, config.num_suites, rng),
            "fixed": lambda: FixedCells(self.worlds, config.num_tests, rng),
            "iid": lambda: GoldenCells(self.worlds, few, rng, fresh=True),
            "golden": lambda: GoldenCells(self.worlds, config.hidden, rng),
            "golden-fresh": lambda: GoldenCells(self.worlds, config.hidden, rng, fresh=True),
            "oracle": lambda: OracleTester(self.worlds, config.num_tests, rng),
            "other-programs": self._other_programs,
        }
        return made[config.tester]()

    def _other_programs(self) -> OtherProgramsTester:
        config = self.config
        world = dataclasses.replace(config.world, seed=config.world.seed + 100_003)
        problems = cells(world)
        coder, tester = self.coder_of(problems, 2), self._table(problems, 3)
        referee = RememberingReferee(self.sandbox, self.referee.config)
        book = MistakeBook()
        numbers = RolloutConfig(config.num_generations, config.num_suites, config.use_book)

        def train() -> None:
            played = rollout(problems, coder, tester, referee, book, numbers)
            coder.learn(played.coder_experience())
            tester.learn(played.tester_experience(config.suite_selection))

        other = {each.task_id: pools_of(each) for each in problems}
        return OtherProgramsTester(self.worlds, other, problems, tester, train)
