"""One run in a world of cells: the rollouts, rewards, book and players of the game, and exact measures after each step."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from codea1_env.agents import Pool, Setting, TabularAgent, as_learner, make_algorithm, own_player
from codea1_env.baselines.diagnose.kinds import KindsConfig, measure_kinds
from codea1_env.baselines.diagnose.past import WithPast
from codea1_env.baselines.diagnose.remembering import Noise, RememberingReferee
from codea1_env.baselines.diagnose.testers import (
    FixedCells,
    GoldenCells,
    OracleTester,
    OtherProgramsTester,
    RandomTester,
    Worlds,
)
from codea1_env.baselines.payoffs import Floats, cross_play, decomposition, gains
from codea1_env.mistake_book import MistakeBook
from codea1_env.problem_sets.cells import CellsConfig, cells, pools_of
from codea1_env.problems import Problem
from codea1_env.referee import RefereeConfig
from codea1_env.rewards import RewardConfig
from codea1_env.rollout import Experience, RolloutConfig, Rollouts, rollout
from codea1_env.sandbox import Sandbox
from codea1_env.training import TrainConfig
from codea1_env.training.reward_model import JudgedProgram, NgramRidge

TesterName = Literal["tabular", "random", "fixed", "golden", "golden-fresh", "iid", "oracle", "other-programs"]  # fmt: skip
SOLVED = 0.9
_JUDGED_STEPS = TrainConfig().reward_model_after


@dataclass(frozen=True)
class PlayConfig:
    """What a run of an experiment is made of."""

    world: CellsConfig = field(default_factory=CellsConfig)
    steps: int = 60
    num_generations: int = 8
    num_suites: int = 4
    num_tests: int = 2
    tester: TesterName = "tabular"
    learns: bool = True
    """Whether a tabular tester learns."""
    carried: float = 0.1
    """Share of what a tabular tester learns against a program that goes to all programs of the problem. The fault sets here
    have nothing in common; on real problems mutants do, and there the default of `TabularAgent` is larger."""
    black_box: bool = False
    use_book: bool = True
    suite_selection: Literal["max-variance", "all"] = "max-variance"
    algorithm: str = "grpo"
    """Of both players."""
    player: str = ""
    """Class of one's own, which plays both roles instead of tables; "" for none."""
    algorithm_args: Mapping[str, Any] = field(default_factory=dict)
    rewards: str = "code-a1"
    alpha: float = 0.5
    coder_rate: float = 2.0
    tester_rate: float = 16.0
    hidden: int = 0
    """Fault sets that the golden tester never sees."""
    judged: float = 1.0
    """Share of steps that the reference judges; in the others the coder's first program does."""
    handicap: float = 0.0
    """How much smaller the logits of right programs are at the start."""
    noise: Literal["none", "independent", "pair", "program"] = "none"
    """What the errors of verdicts depend on: nothing, program and call, or the program alone. See `Noise`."""
    wrong: float = 0.0
    """Rate of wrong verdicts of both kinds together: 1 less Youden's J."""
    wrong_are: Literal["both", "passes", "failures"] = "both"
    """Verdicts that are wrong: half of them passes that should be failures, all, or none."""
    past: Literal["none", "coder", "tester", "both"] = "none"
    """Who answers half of the questions as it was earlier, see `WithPast`."""
    shuffled: bool = False
    """The rewards of the suites against a program are shuffled among them: a control."""
    lesson: Literal["paid", "negated", "random", "scored"] = "paid"
    """What both players learn from: what they were paid, less than nothing of it, or numbers drawn at random. Controls.
    "scored": after the first steps the coder learns from what a reward model predicts."""
    overlap: Fraction | None = None
    """Share of kinds of faults that training and the programs of `measure_kinds` have in common; None: none are measured."""
    kinds: Literal["overlap", "random-half"] = "overlap"
    """Which kinds these programs have, see `KindsConfig`."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.overlap is not None:
            dataclasses.replace(self.world, families=2 * self.world.families)  # there are as many
        if self.num_tests > self.world.C:
            raise ValueError(
                f"Expect suites of at most the {self.world.C} tests of a pool, actually: {self.num_tests}"
            )


def play(config: PlayConfig, sandbox: Sandbox, memory: RememberingReferee | None = None) -> Row:
    """Play a run.

    Args:
        config: What it is made of.
        sandbox: Where programs run, once for each call.
        memory: A referee that remembers the same world; what it knows is taken over.

    Returns:
        Measures by name, all of them finite numbers or None.
    """
    return _Run(config, sandbox, memory).play()


def curve(
    config: PlayConfig, sandbox: Sandbox, memory: RememberingReferee | None = None
) -> list[Row]:
    """Play a run as `play` does, and return its measures at the start and after each step."""
    run = _Run(config, sandbox, memory)
    run.play()
    return run.curve


Row = dict[str, float | None]


class _Run:
    def __init__(
        self, config: PlayConfig, sandbox: Sandbox, memory: RememberingReferee | None
    ) -> None:
        self.config, self.sandbox = config, sandbox
        self.problems = cells(config.world)
        self.worlds: Worlds = {each.task_id: pools_of(each) for each in self.problems}
        rewards = RewardConfig(config.alpha, config.num_tests, function=config.rewards)
        self.referee = RememberingReferee(sandbox, RefereeConfig(rewards), _noise(config))
        if memory is not None:
            self.referee._worlds = memory._worlds
        self.coder: Any = self._own("coder") or self._coder(self.problems, 0)
        self.tester = self._tester()
        if config.past in ("coder", "both"):
            self.coder = WithPast(self.coder, self._rng(4))
        if config.past in ("tester", "both") and isinstance(self.tester, TabularAgent):
            self.tester = WithPast(self.tester, self._rng(5))
        self.book = MistakeBook()
        self.rng = np.random.default_rng([config.seed, 9])
        self.breaks = {each.task_id: self._breaks(each) for each in self.problems}
        self.right = {
            name: np.array([not faults for faults in pools.faults])
            for name, pools in self.worlds.items()
        }
        self.curve: list[Row] = []
        self.judged: list[JudgedProgram] = []
        self.kept: dict[str, list[tuple[Floats, Floats | None]]] = {n: [] for n in self.worlds}

    def play(self) -> Row:
        config = self.config
        self._measure(None)
        for step in range(config.steps):
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
            self.coder.learn(self._scored(step, self._lesson(played.coder_experience())))
            if config.learns:
                self.tester.learn(self._lesson(self._for_tester(played)))
            self._measure(played)
            if step % max(1, config.steps // 12) == 0:
                self._keep()
        self._keep()
        return self._summary()

    # Players

    def _rng(self, stream: int) -> np.random.Generator:
        return np.random.default_rng([self.config.seed, stream])

    def _algorithm(self, rate: float) -> Any:
        own = dict(self.config.algorithm_args)
        return make_algorithm(self.config.algorithm, {"learning_rate": rate}, "tabular", own)

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

    def _chances(self, name: str, played: Rollouts | None) -> Floats:
        """Return the probability of each program; of a player without tables how often it was submitted in this step."""
        if hasattr(self.coder, "policy"):
            chances: Floats = self.coder.policy.probabilities(name)
            return chances
        programs = self.worlds[name].programs
        if played is None:
            return np.full(len(programs), 1 / len(programs))
        submitted = [e.program.code for e in played.episodes if e.problem.task_id == name]
        counts = [submitted.count(code) for code in programs]
        return np.array(counts, dtype=np.float64) / max(1, len(submitted))

    def _coder(self, problems: Sequence[Problem], stream: int) -> TabularAgent:
        pools = [Pool(each, pools_of(each).programs) for each in problems]
        coder = TabularAgent(pools, self._algorithm(self.config.coder_rate), self._rng(stream))
        for each in problems:
            coder.policy.logits[each.task_id][: self.config.world.right] -= self.config.handicap
        return coder

    def _table(self, problems: Sequence[Problem], stream: int) -> TabularAgent:
        pools = [Pool(each, pools_of(each).tests) for each in problems]
        algorithm = self._algorithm(self.config.tester_rate)
        config = self.config
        rng = self._rng(stream)
        return TabularAgent(pools, algorithm, rng, config.num_tests, carried=config.carried)

    def _tester(self) -> Any:
        config, rng = self.config, self._rng(1)
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
        """Return a tester that learns in a world of the same kind from another seed, against a coder that learns there."""
        config = self.config
        world = dataclasses.replace(config.world, seed=config.world.seed + 100_003)
        problems = cells(world)
        coder, tester = self._coder(problems, 2), self._table(problems, 3)
        referee = RememberingReferee(self.sandbox, self.referee.config)
        book = MistakeBook()
        numbers = RolloutConfig(config.num_generations, config.num_suites, config.use_book)

        def train() -> None:
            played = rollout(problems, coder, tester, referee, book, numbers)
            coder.learn(played.coder_experience())
            tester.learn(played.tester_experience(config.suite_selection))

        other = {each.task_id: pools_of(each) for each in problems}
        return OtherProgramsTester(self.worlds, other, problems, tester, train)

    def _for_tester(self, played: Rollouts) -> list[Any]:
        experience = played.tester_experience(self.config.suite_selection)
        if not self.config.shuffled:
            return experience
        groups: dict[str, list[int]] = {}
        for number, item in enumerate(experience):
            groups.setdefault(item.group, []).append(number)
        mixed = list(experience)
        for members in groups.values():
            for number, other in zip(members, self.rng.permutation(members), strict=True):
                mixed[number] = dataclasses.replace(
                    experience[number], reward=experience[int(other)].reward
                )
        return mixed

    def _lesson(self, experience: list[Any]) -> list[Any]:
        if self.config.lesson in ("paid", "scored"):
            return experience
        draws = self.rng.random(len(experience)).tolist()
        return [
            item
            if item.reward is None
            else dataclasses.replace(
                item, reward=-item.reward if self.config.lesson == "negated" else draw
            )
            for item, draw in zip(experience, draws, strict=True)
        ]

    def _scored(self, step: int, experience: list[Experience]) -> list[Experience]:
        """Return what a reward model predicts that programs earn, once it has seen the verdicts of the first steps."""
        if self.config.lesson != "scored":
            return experience
        if step < _JUDGED_STEPS:
            self.judged += [
                JudgedProgram(item.observation["problem"], item.action, item.reward)
                for item in experience
                if item.reward is not None
            ]
            return experience
        if step == _JUDGED_STEPS:
            self.scorer = NgramRidge(self.judged)
        return [
            dataclasses.replace(
                item, reward=self.scorer.score(item.observation["problem"], item.action)
            )
            for item in experience
        ]

    # Measures

    def _breaks(self, problem: Problem) -> Floats:
        """Return for each program and cell whether the call breaks the program, as the sandbox said."""
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
        self.curve.append(row)

    def _hacked(self, name: str, chances: Floats) -> float:
        """Probability of a program that is wrong on hidden fault sets alone: all golden tests pass it."""
        pools = self.worlds[name]
        seen = frozenset().union(*pools.families[: len(pools.families) - self.config.hidden])
        hacks = [bool(faults) and not faults & seen for faults in pools.faults]
        return float(chances @ np.array(hacks))

    def _keep(self) -> None:
        """Keep the strategies of this moment."""
        for name in self.worlds:
            coder = self._chances(name, None)
            self.kept[name].append((coder, self._answers(name)))

    def _answers(self, name: str) -> Floats | None:
        """Return for each program the tester's probability of each test of its first draw; None where no table says it."""
        if (
            not isinstance(self.coder, TabularAgent | WithPast)
            or not isinstance(self.tester, TabularAgent | WithPast)
            or self.config.world.C > 64
        ):
            return None
        policy, rows = self.tester.policy, []
        for code in self.worlds[name].programs:
            key = policy.table(name, "" if self.config.black_box else code)
            rows.append(policy.probabilities(key))
        return np.array(rows)

    def _summary(self) -> Row:
        last = max(1, len(self.curve) // 10)
        row: Row = {}
        for measure in self.curve[-1]:
            values = [each[measure] for each in self.curve if measure in each]
            known = [value for value in values if value is not None]
            row[measure] = _mean(known[-last:])
            row[f"{measure}/area"] = _mean(known)
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
            rng=self._rng(6),
        )
        return {**found}

    def _game(self) -> Row:
        """Exact figures of the game that the checkpoints played."""
        found: dict[str, list[float]] = {}
        for name, kept in self.kept.items():
            coders = np.array([coder for coder, _ in kept])
            answers = [tester for _, tester in kept if tester is not None]
            if len(answers) < len(kept):
                return {}
            breaks, testers = self.breaks[name], np.array(answers)
            last = gains(breaks, coders[-1], testers[-1])
            average = gains(breaks, coders.mean(axis=0), testers.mean(axis=0))
            cyclic = decomposition(cross_play(breaks, coders, testers)).cyclic_share
            for measure, value in (
                ("exploitability", last.nash_conv),
                ("exploitability/average", average.nash_conv),
                ("cyclic_share", cyclic),
            ):
                found.setdefault(measure, []).append(value)
        return {measure: _mean(values) for measure, values in found.items()}


def _noise(config: PlayConfig) -> Noise | None:
    if config.noise == "none":
        return None
    passes = {"both": 0.5, "passes": 1.0, "failures": 0.0}[config.wrong_are]
    rates = (config.wrong * passes, config.wrong * (1 - passes))
    return Noise(config.noise, *rates, seed=config.seed)


def _mean(values: Sequence[Any]) -> float | None:
    return float(np.mean(values)) if len(values) else None
