"""Views of the game for players that choose from a pool of answers: actions are numbers, observations vectors.

A pool lists the answers of one problem: programs, or the tests that a suite is drawn from. `PoolView` says what a
small network sees and what its action means. `PoolVectorEnv` and `PoolParallelEnv` put it around the environments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from pettingzoo.utils.wrappers import BaseParallelWrapper  # type: ignore[import-untyped]

from codea1_env.agents.scripted import TEST_SEPARATOR
from codea1_env.agents.state import KnownProblems
from codea1_env.agents.tabular import Pool
from codea1_env.code_a1_v1 import known_agent, parallel_env
from codea1_env.integrations.one_side import OneSideVectorEnv
from codea1_env.problems import Problem
from codea1_env.spaces import AGENTS, Observation

Vector = npt.NDArray[np.float32]


class PoolView:
    r"""Observations as vectors, and numbers as answers, for one player.

    Args:
        pools: The player's answers to each problem. An action counts around in a pool that is smaller than the
            largest one.
        programs: Programs that may be shown, by problem: the coder's pool. A program that is not in it is shown as
            none.
        draws: Numbers in an action: 1 for a coder; for a tester the tests of a suite.

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
        """Return the text of an action.

        Raises:
            ValueError: The action is not in the space.
        """
        drawn = np.ravel(action)  # of one draw a policy may give a number or a row of one
        fits = drawn.dtype.kind in "iu" and drawn.size == self._draws
        if not fits or drawn.min() < 0 or drawn.max() >= self._largest:
            raise ValueError(f"Expect an action in {self.action_space}, actually: {action!r:.100}")
        items = self.pools[self._problems[observation].task_id]
        return TEST_SEPARATOR.join(items[int(i) % len(items)] for i in drawn)


class PoolVectorEnv(VectorEnv[Vector, npt.NDArray[Any], npt.NDArray[Any]]):
    """`OneSideVectorEnv` with numbers as actions and vectors as observations, for ordinary PPO code.

    Args:
        env: The games.
        view: What is seen and what an action means. Its pools must cover the problems of the games.

    Raises:
        ValueError: A problem has no pool.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012  gymnasium's name

    def __init__(self, env: OneSideVectorEnv, view: PoolView) -> None:
        check_view(view, env.games[0].problems)
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
        """Play one answer in every game.

        Raises:
            ValueError: There is not one action for each game, or one is not in the space. Then no game has changed.
        """
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
    """`codea1_env.parallel_env` with numbers as actions and vectors as observations, for both players.

    Args:
        env: The environment.
        views: What each agent sees and what its action means.

    Raises:
        ValueError: A problem has no pool.
    """

    def __init__(self, env: parallel_env, views: Mapping[str, PoolView]) -> None:
        super().__init__(env)
        self.views = {agent: views[agent] for agent in AGENTS}
        for view in self.views.values():
            check_view(view, env.game.problems)

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
        """Play the turn of the active agent.

        Raises:
            ValueError: An agent is unknown, the active one is missing, or an action is not in its space.
        """
        seen = self.env.state()
        texts = {
            agent: self.views[known_agent(agent)].answer(seen, action)
            for agent, action in actions.items()
        }
        observations, *rest = self.env.step(texts)
        return self._vectors(observations), *rest

    def _vectors(self, observations: Mapping[str, Observation]) -> dict[str, Vector]:
        return {agent: self.views[agent].vector(seen) for agent, seen in observations.items()}


def check_view(view: PoolView, problems: Mapping[str, Problem]) -> None:
    """Raise a ValueError for a problem without a pool."""
    for task_id in problems.keys() - view.pools.keys():
        raise ValueError(
            f"Expect a pool for every problem of the games, actually none for {task_id!r}. Play only the problems of "
            "the pools: problems=[pool.problem for pool in pools]."
        )
