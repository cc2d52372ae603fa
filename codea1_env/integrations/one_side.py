"""One side of the game as a single-agent environment: the opponent plays inside.

`OneSideEnv` is a `gymnasium.Env` with texts as observations and actions, `OneSideVectorEnv` its vector form, which
sends the turns of all games to the opponent and to the sandbox together.

For players that choose from a pool of answers (programs, or the tests that a suite is drawn from) actions are numbers and
observations vectors: `PoolView` says what a small network sees and what its action means. `PoolEnv`, `PoolVectorEnv` and
`PoolParallelEnv` put it around the environments.

    gymnasium.make("codea1_env/OneSide-v1", side="coder", opponent="boundary")      # texts
    gymnasium.make_vec("codea1_env/OneSidePool-v1", num_envs=8, side="tester")      # numbers, from the pools of tables
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array
from pettingzoo.utils.wrappers import BaseParallelWrapper  # type: ignore[import-untyped]

from codea1_env.agents.opponents import Opponent
from codea1_env.agents.scripted import TEST_SEPARATOR
from codea1_env.agents.state import KnownProblems
from codea1_env.agents.tabular import Pool, pool_of_programs, pool_of_tests
from codea1_env.code_a1_v1 import known_agent, parallel_env
from codea1_env.evaluation.held_out import hold_out
from codea1_env.game import Game
from codea1_env.integrations.side import OneSide, Side
from codea1_env.mistake_book import MistakeBook
from codea1_env.problems import Problem
from codea1_env.spaces import AGENTS, CODER, Observation, action_space, observation_space

Step = tuple[Observation, float, bool, bool, dict[str, Any]]
"""Observation, reward, terminated, truncated and info."""


class OneSideEnv(gymnasium.Env[Observation, str]):
    r"""The game from the view of one player.

    An episode has `max_rounds` steps. A coder's step is judged against the tests that the opponent writes for its
    program; a tester begins with a program of the opponent. Observations, infos and rewards are those of
    `codea1_env.parallel_env`.

    Args:
        side: "coder" or "tester".
        opponent: Who plays the other side: the name of a scripted player ("reference" or "mutant"; "golden", "boundary"
            or "copier"), an agent, ``FILE.py:NAME``, a server or a run: see
            `codea1_env.integrations.opponents.find_opponent`. None is "golden" against a coder, "mutant" against a tester.
        **settings: The other arguments of `codea1_env.game.Game`: problems, split, max_rounds, referee, rewards,
            mistake_book and sandbox.

    Example:
        >>> env = OneSideEnv("tester", opponent="reference", problems="starter")
        >>> observation, info = env.reset(seed=1, options={"problem_id": "starter/add_numbers"})
        >>> "return a + b" in observation["code"]
        True
        >>> _, reward, terminated, _, _ = env.step("assert add_numbers(2, 2) == 4")
        >>> reward, terminated
        (0.0625, True)
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  gymnasium's name and type

    def __init__(
        self,
        side: Side = "coder",
        opponent: Opponent | None = None,
        **settings: Any,
    ) -> None:
        self.side = OneSide(side, opponent, **settings)
        self.game = self.side.game()
        self.observation_space: spaces.Space[Any] = observation_space(self.game.max_rounds)
        self.action_space = action_space()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode; see `codea1_env.game.Game.reset` for seed and options.

        A seed decides what the opponent does, too; one of your own by its method `reset` or `seed`, or its `rng`.
        """
        super().reset(seed=seed)
        self.side.begin([self.game], [seed], options)
        return self.game.observation(), self.game.info()

    def step(self, action: str) -> Step:
        """Play a turn, and let the opponent answer."""
        [reward] = self.side.step([self.game], [action])
        over = self.game.actor is None
        return self.game.observation(), reward, over, False, self.game.info()


class OneSideVectorEnv(VectorEnv[dict[str, Any], Sequence[str], npt.NDArray[Any]]):
    """Many `OneSideEnv` at once; their programs and tests are judged together.

    All games share one Mistake Book. A game that ends begins anew in the same step (`AutoresetMode.SAME_STEP`): its
    last observation and info are `infos["final_obs"]` and `infos["final_info"]`.

    Args:
        num_envs: How many games.
        side: "coder" or "tester".
        opponent: Who plays the other side; it gets the observations of all games together.
        **settings: The other arguments of `OneSideEnv`.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012  gymnasium's name

    def __init__(
        self,
        num_envs: int,
        side: Side = "coder",
        opponent: Opponent | None = None,
        **settings: Any,
    ) -> None:
        if num_envs < 1:
            raise ValueError(f"Expect num_envs to be at least 1, actually: {num_envs}")
        self.num_envs = num_envs
        self.side = OneSide(side, opponent, **settings)
        self.games, self.agent = [self.side.game() for _ in range(num_envs)], self.side.agent
        self.single_observation_space = observation_space(self.games[0].max_rounds)
        self.single_action_space = action_space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    @property
    def mistake_book(self) -> MistakeBook:
        """The Mistake Book of all games."""
        return self.games[0].book

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start an episode of every game.

        Raises:
            TypeError: The seed is something else.
            ValueError: There is not one seed for each game.
        """
        if not isinstance(seed, (list, int, np.integer, NoneType)):
            raise TypeError(
                f"Expect seed to be None, an integer or a list of {self.num_envs} seeds, actually: {seed!r:.100}"
            )
        if isinstance(seed, list):
            seeds = seed
        else:
            seeds = [None if seed is None else int(seed) + i for i in range(self.num_envs)]
        if len(seeds) != self.num_envs:
            raise ValueError(
                f"Expect {self.num_envs} seeds, one for each game, actually: {len(seeds)}"
            )
        self.side.begin(self.games, seeds, options)
        return self._observations(), self._infos([game.info() for game in self.games])

    def step(
        self, actions: Sequence[str]
    ) -> tuple[
        dict[str, Any],
        npt.NDArray[Any],
        npt.NDArray[Any],
        npt.NDArray[Any],
        dict[str, Any],
    ]:
        """Play a turn of every game, and let the opponent answer all of them together."""
        if isinstance(actions, str) or len(actions) != self.num_envs:
            raise ValueError(
                f"Expect {self.num_envs} actions, one for each game, actually: {actions!r:.100}"
            )
        rewards = self.side.step(self.games, actions)
        over = [game.actor is None for game in self.games]
        infos = [game.info() for game in self.games]
        last = {i: self.games[i].observation() for i, ended in enumerate(over) if ended}
        self.side.begin([self.games[i] for i in last], [None] * len(last), None)
        shown = self._infos([game.info() for game in self.games])
        for i, observation in last.items():
            final = {"final_obs": observation, "final_info": infos[i]}
            shown = self._add_info(shown, final, i)
        ended = np.array(over)
        return self._observations(), np.array(rewards), ended, np.zeros_like(ended), shown

    def _observations(self) -> dict[str, Any]:
        space: Any = self.single_observation_space
        seen = [game.observation() for game in self.games]
        empty: Any = create_empty_array(space, self.num_envs)
        batch: Any = concatenate(space, seen, empty)
        return dict(batch)

    def _infos(self, infos: Sequence[dict[str, Any]]) -> dict[str, Any]:
        shown: dict[str, Any] = {}
        for i, info in enumerate(infos):
            shown = self._add_info(shown, info, i)
        return shown


Vector = npt.NDArray[np.float32]


class PoolView:
    r"""Observations as vectors, and numbers as answers, for one player.

    Args:
        pools: The player's answers to each problem. An action counts around in a pool that is smaller than the
            largest one.
        programs: Programs that may be shown, by problem: the coder's pool. A program that is not in it is shown as
            none.
        draws: Numbers in an action: 1 for a coder; for a tester the tests of a suite.

    Raises:
        ValueError: There is no pool, or one is empty.

    Example:
        >>> from codea1_env.problems import Problem
        >>> from codea1_env.spaces import observe
        >>> problem = Problem("one", "def one():", "one", "def one():\n    return 1\n")
        >>> tests = Pool(problem, ("assert one() == 1", "assert one() == 2"))
        >>> view = PoolView([tests], [Pool(problem, ("right", "wrong"))], draws=2)
        >>> view.vector(observe(problem, code="wrong", turn=1)).tolist()
        [1.0, 0.0, 1.0, 0.0]
        >>> view.answer(observe(problem), [1, 0]).split("\n\n")
        ['assert one() == 2', 'assert one() == 1']
    """

    def __init__(self, pools: Sequence[Pool], programs: Sequence[Pool], draws: int = 1) -> None:
        if not pools or not all(pool.items for pool in pools):
            raise ValueError(
                f"Expect pools with answers, actually the numbers of answers: {[len(pool.items) for pool in pools]}"
            )
        self.pools = {pool.problem.task_id: pool.items for pool in pools}
        self._problems = KnownProblems(pool.problem for pool in pools)
        self._places = {task_id: place for place, task_id in enumerate(self.pools)}
        self.programs: Mapping[str, Mapping[str, int]] = {
            pool.problem.task_id: {text.strip(): i for i, text in enumerate(pool.items)}
            for pool in programs
        }
        self._most_programs = max(map(len, self.programs.values()), default=0)
        self._draws, self._largest = draws, max(map(len, self.pools.values()))
        self.size = len(self.pools) + self._most_programs + 1
        self.observation_space = spaces.Box(0.0, np.inf, (self.size,), np.float32)
        self.action_space: spaces.Space[Any] = (
            spaces.Discrete(self._largest)
            if draws == 1
            else spaces.MultiDiscrete([self._largest] * draws)
        )

    def vector(self, observation: Observation) -> Vector:
        """Return the problem and the shown program, each as one of many, and the number of rounds played.

        Shape (problems + programs + 1,).
        """
        seen = np.zeros(self.size, np.float32)
        task_id = self._problems[observation].task_id
        seen[self._places[task_id]] = 1
        shown = self.programs.get(task_id, {}).get(observation["code"].strip())
        if shown is not None:
            seen[len(self.pools) + shown] = 1
        seen[-1] = observation["round"]
        return seen

    def answer(self, observation: Observation, action: Any) -> str:
        """Return the text of an action."""
        drawn = np.ravel(action)  # of one draw a policy may give a number or a row of one
        fits = drawn.dtype.kind in "iu" and drawn.size == self._draws
        if not fits or drawn.min() < 0 or drawn.max() >= self._largest:
            raise ValueError(f"Expect an action in {self.action_space}, actually: {action!r:.100}")
        items = self.pools[self._problems[observation].task_id]
        return TEST_SEPARATOR.join(items[int(i) % len(items)] for i in drawn)


def _viewed(side: OneSide, game: Game, view: PoolView | None) -> PoolView:
    """Check a view, or make one from the pools that tabular players have."""
    if view is None:
        splits = hold_out(list(game.problems.values()), game.sandbox)
        programs = pools = [pool_of_programs(split) for split in splits]
        if side.side == "tester":
            pools = [pool_of_tests(split, game.sandbox) for split in splits]
        draws = 1 if side.side == "coder" else game.config.rewards.num_tests
        view = PoolView(pools, programs, draws)
    check_view(view, side.agent, game.problems)
    return view


class PoolEnv(gymnasium.Env[Vector, Any]):
    """`OneSideEnv` with numbers as actions and vectors as observations.

    Args:
        env: The environment; None makes one from the settings.
        view: What numbers mean; None takes the pools that tabular players have.
        **settings: The arguments of `OneSideEnv`.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  gymnasium's name and type

    def __init__(
        self, env: OneSideEnv | None = None, view: PoolView | None = None, **settings: Any
    ) -> None:
        self.env = OneSideEnv(**settings) if env is None else env
        self.view = _viewed(self.env.side, self.env.game, view)
        self.observation_space: spaces.Space[Any] = self.view.observation_space
        self.action_space = self.view.action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Vector, dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed)
        seen, info = self.env.reset(seed=seed, options=options)
        return self.view.vector(seen), info

    def step(self, action: Any) -> tuple[Vector, float, bool, bool, dict[str, Any]]:
        """Play one answer."""
        answer = self.view.answer(self.env.game.observation(), action)
        seen, reward, terminated, truncated, info = self.env.step(answer)
        return self.view.vector(seen), reward, terminated, truncated, info


class PoolVectorEnv(VectorEnv[Vector, npt.NDArray[Any], npt.NDArray[Any]]):
    """`OneSideVectorEnv` with numbers as actions and vectors as observations, for ordinary PPO code.

    The arguments are as those of `PoolEnv`; the settings are those of `OneSideVectorEnv`.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012  gymnasium's name

    def __init__(
        self, env: OneSideVectorEnv | None = None, view: PoolView | None = None, **settings: Any
    ) -> None:
        env = OneSideVectorEnv(**settings) if env is None else env
        view = _viewed(env.side, env.games[0], view)
        self.env, self.view, self.num_envs = env, view, env.num_envs
        self.single_observation_space = view.observation_space
        self.single_action_space = view.action_space
        self.observation_space = batch_space(view.observation_space, self.num_envs)
        self.action_space = batch_space(view.action_space, self.num_envs)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Vector, dict[str, Any]]:
        """Start an episode of every game."""
        _, infos = self.env.reset(seed=seed, options=options)
        return self._vectors(), infos

    def step(
        self, actions: npt.NDArray[Any]
    ) -> tuple[Vector, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
        """Play one answer in every game."""
        seen = [game.observation() for game in self.env.games]
        texts = [self.view.answer(each, row) for each, row in zip(seen, actions, strict=True)]
        _, rewards, terminated, truncated, infos = self.env.step(texts)
        if "final_obs" in infos:
            final = [
                None if each is None else self.view.vector(each) for each in infos["final_obs"]
            ]
            infos["final_obs"] = np.array([*final, None], dtype=object)[:-1]
        return self._vectors(), rewards, terminated, truncated, infos

    def _vectors(self) -> Vector:
        return np.stack([self.view.vector(game.observation()) for game in self.env.games])


class PoolParallelEnv(BaseParallelWrapper):  # type: ignore[misc]
    """`codea1_env.parallel_env` with numbers as actions and vectors as observations, for both players."""

    def __init__(self, env: parallel_env, views: Mapping[str, PoolView]) -> None:
        super().__init__(env)
        self.views = {agent: views[agent] for agent in AGENTS}
        for agent, view in self.views.items():
            check_view(view, agent, env.game.problems)

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of the vectors that this agent sees."""
        return self.views[known_agent(agent)].observation_space

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of this agent's numbers."""
        return self.views[known_agent(agent)].action_space

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Vector], dict[str, dict[str, Any]]]:
        """Start an episode."""
        observations, infos = self.env.reset(seed=seed, options=options)
        return self._vectors(observations), infos

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[
        dict[str, Vector],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Play the turn of the active agent."""
        seen = self.env.state()
        texts = {
            agent: self.views[known_agent(agent)].answer(seen, action)
            for agent, action in actions.items()
        }
        observations, *rest = self.env.step(texts)
        return self._vectors(observations), *rest

    def _vectors(self, observations: Mapping[str, Observation]) -> dict[str, Vector]:
        return {agent: self.views[agent].vector(seen) for agent, seen in observations.items()}


def check_view(view: PoolView, agent: str, problems: Mapping[str, Problem]) -> None:
    """Check that a view has a pool of this player for each problem.

    A pool of a tester with the reference or with nothing but programs of the coder is one of the coder; so is one
    without any of them a tester's.

    Raises:
        ValueError: It lacks one, or has pools of the other player.
    """
    for task_id, problem in problems.items():
        if task_id not in view.pools:
            raise ValueError(
                f"Expect a pool for every problem of the games, actually none for {task_id!r}. Play only the problems of "
                "the pools: problems=[pool.problem for pool in pools]."
            )
        own = {text.strip() for text in view.pools[task_id]}
        programs = view.programs.get(task_id, {}).keys()
        swapped = (
            bool(programs) and own.isdisjoint(programs)
            if agent == CODER
            else own <= programs or problem.reference.strip() in own
        )
        if swapped:
            kind, other = ("programs", "tests") if agent == CODER else ("tests", "programs")
            raise ValueError(
                f"Expect the pools of {agent} to hold {kind}, actually those for {task_id!r} hold {other}. Make its view "
                f"with PoolView(pools of {kind}, pools of programs)."
            )
