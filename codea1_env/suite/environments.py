"""The suite for libraries: PettingZoo's parallel and AEC interfaces, one side for Gymnasium, and many games at once.

An episode has two turns: `coder_0` chooses a program, then `tester_0`, who sees it, chooses tests. Both are paid at its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from pettingzoo import AECEnv, ParallelEnv  # type: ignore[import-untyped]

from codea1_env.spaces import AGENTS, CODER, TESTER
from codea1_env.suite.playing import Games, Observations
from codea1_env.suite.tasks import RecordKey, SuiteError, check_track, find_task

Api = Literal["parallel", "aec", "gym", "vector"]
_SIDE = {CODER: "coder", TESTER: "tester"}


def make(
    id: str,
    seed: int = 0,
    record: str | Path | None = None,
    api: Api = "parallel",
    side: Literal["coder", "tester"] | None = None,
    num_envs: int | None = None,
    version: str = "v1",
) -> Any:
    """Make the environment of an id.

    Args:
        id: One of `IDS[version]`.
        seed: Decides the world. 0 to 9 are for the score, those from 1000 on for tuning.
        record: Folder of a submission, in which the environment records what is played; None for no record.
        api: "parallel" or "aec" for PettingZoo, "gym" for one side in Gymnasium, "vector" for both sides of many games.
        side: Who learns, with "gym": against a shipped population of the other.
        num_envs: Games at once: with "gym" a `gymnasium.vector.VectorEnv`, with "vector" the arrays of `Games`.
        version: Version of the suite.

    Raises:
        SuiteError: There is no such id, version, track or api, or the record was begun before.

    Example:
        >>> env = make("reading/2", seed=1000)
        >>> observations, infos = env.reset(seed=0)
        >>> {name: space.shape for name, space in env.observation_spaces.items()}
        {'coder_0': (49,), 'tester_0': (65,)}
        >>> _ = env.step({"coder_0": 3})
        >>> _, rewards, terminations, _, _ = env.step({"tester_0": [1, 2, 3, 4]})
        >>> terminations
        {'coder_0': True, 'tester_0': True}
    """
    task = find_task(id, version)
    if (side is not None) != (api == "gym") or side not in (None, "coder", "tester"):
        raise SuiteError(
            f"Expect a side, coder or tester, with api='gym' alone, actually: api={api!r}, side={side!r}"
        )
    whole = isinstance(num_envs, int) and not isinstance(num_envs, bool) and num_envs > 0
    if num_envs is not None and not (api in ("gym", "vector") and whole):
        raise SuiteError(
            f"Expect num_envs of at least 1 with api 'gym' or 'vector', actually: {num_envs!r}, {api!r}"
        )
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise SuiteError(f"Expect a seed of 0 or more, actually: {seed!r:.40}")
    if api not in get_args(Api):
        raise SuiteError(f"Expect api to be parallel, aec, gym or vector, actually: {api!r:.40}")
    key = RecordKey(check_track(task, side or "both"), task, seed)
    games = Games(key, None if record is None else Path(record), num_envs or 1)
    if api == "gym":
        return SuiteSideEnv(games) if num_envs is None else SuiteSideVectorEnv(games)
    if api == "vector":
        return games
    return SuiteAECEnv(games) if api == "aec" else SuiteParallelEnv(games)


def one_side(task: str, side: Literal["coder", "tester"], **arguments: Any) -> Any:
    """Make what `gymnasium.make` and `make_vec("codea1_env/Suite-v1", task="reading/2", side="tester")` return."""
    return make(task, api="gym", side=side, **arguments)


class _BothSides:
    """What both interfaces of PettingZoo ask an environment."""

    render_mode = None

    def __init__(self, games: Games) -> None:
        self.games = games
        self.possible_agents = list(AGENTS)
        self.agents: list[str] = []
        self.observation_spaces = {name: games.spaces[_SIDE[name]][0] for name in AGENTS}
        self.action_spaces = {name: games.spaces[_SIDE[name]][1] for name in AGENTS}

    def observation_space(self, agent: str) -> gymnasium.Space[Any]:
        """Return an agent's observation space."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.Space[Any]:
        """Return an agent's action space."""
        return self.action_spaces[agent]

    def close(self) -> None:
        """Close the record."""
        self.games.close()


class SuiteParallelEnv(_BothSides, ParallelEnv):  # type: ignore[misc]
    """Both players, for PettingZoo's parallel interface: of each step's actions the one whose turn it is counts."""

    metadata: dict[str, Any] = {"name": "codea1_suite_v1", "render_modes": []}  # noqa: RUF012  PettingZoo's name and type

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observations], dict[str, dict[str, Any]]]:
        """Begin the next episode; without a record a seed begins with the first one again."""
        self.games.restart(seed)
        self.games.begin()
        self.agents = list(AGENTS)
        return self._seen(), _infos(CODER)

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[
        dict[str, Observations], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]
    ]:
        """Take the action of the agent whose turn it is."""
        if not self.agents:
            raise SuiteError("Expect reset() before step(), actually: the episode is over")
        over = self.games.programs is not None
        actor = TESTER if over else CODER
        if actor not in actions:
            raise SuiteError(
                f"Expect an action of {actor}, whose turn it is, actually: {list(actions)}"
            )
        rewards = dict.fromkeys(AGENTS, 0.0)
        if over:
            [coder], [tester] = self.games.end([actions[TESTER]])
            rewards = {CODER: float(coder), TESTER: float(tester)}
            self.agents = []
        else:
            self.games.show([actions[CODER]])
        ended, cut = dict.fromkeys(AGENTS, over), dict.fromkeys(AGENTS, False)
        return self._seen(), rewards, ended, cut, _infos(TESTER)

    def _seen(self) -> dict[str, Observations]:
        return {name: seen[0].copy() for name, seen in zip(AGENTS, self.games.seen, strict=True)}


def _infos(active: str) -> dict[str, dict[str, Any]]:
    return {name: {"active_agent": active} for name in AGENTS}


class SuiteAECEnv(_BothSides, AECEnv):  # type: ignore[misc]
    """Both players in turn, for PettingZoo's AEC interface."""

    metadata: dict[str, Any] = {**SuiteParallelEnv.metadata, "is_parallelizable": False}  # noqa: RUF012

    def __init__(self, games: Games) -> None:
        super().__init__(games)
        self._parallel = SuiteParallelEnv(games)

    def observe(self, agent: str) -> Observations:
        """Return what an agent sees."""
        return self._seen[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin the next episode."""
        self._seen, self.infos = self._parallel.reset(seed, options)
        self.agents = list(AGENTS)
        self.rewards = dict.fromkeys(AGENTS, 0.0)
        self._cumulative_rewards = dict.fromkeys(AGENTS, 0.0)
        self.terminations = dict.fromkeys(AGENTS, False)
        self.truncations = dict.fromkeys(AGENTS, False)
        self.agent_selection = CODER

    def step(self, action: Any) -> None:
        """Take the action of the agent whose turn it is."""
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        came = self._parallel.step({agent: action})
        self._seen, self.rewards, self.terminations, self.truncations, self.infos = came
        self._cumulative_rewards[agent] = 0.0
        self.agent_selection = TESTER if agent == CODER else CODER
        self._accumulate_rewards()


class SuiteSideEnv(gymnasium.Env[Observations, Any]):
    """One player against a shipped population of the other; an episode is one step."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  Gymnasium's name and type

    def __init__(self, games: Games) -> None:
        self.games = games
        self.observation_space: gymnasium.Space[Any]
        self.observation_space, self.action_space = games.spaces[games.track]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Begin the next episode; a seed decides what the opponent does."""
        super().reset(seed=seed)
        self._seen = self.games.reset(seed)[0]
        return self._seen, {}

    def step(self, action: Any) -> tuple[Observations, float, bool, bool, dict[str, Any]]:
        """Play the episode; a SuiteError without a reset() before it."""
        [reward] = self.games.step([action])
        return self._seen.copy(), float(reward), True, False, {}

    def close(self) -> None:
        """Close the record."""
        self.games.close()


class SuiteSideVectorEnv(VectorEnv[Observations, Any, np.ndarray[Any, Any]]):
    """Many episodes of one side at once; each ends and begins anew in one step (`AutoresetMode.SAME_STEP`)."""

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012  Gymnasium's name and type

    def __init__(self, games: Games) -> None:
        self.games, self.num_envs = games, games.num_envs
        self.single_observation_space, self.single_action_space = games.spaces[games.track]
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Begin episodes; of several seeds the first one counts."""
        self._seen = self.games.reset(seed[0] if isinstance(seed, list) else seed)
        return self._seen, {}

    def step(self, actions: Any) -> tuple[Observations, Any, Any, Any, dict[str, Any]]:
        """Play the episodes, and begin new ones."""
        rewards = self.games.step(actions)
        ended = np.ones(self.num_envs, np.bool_)
        infos = {"final_obs": self._seen, "_final_obs": ended}
        self._seen = self.games.reset(None)
        return self._seen, rewards, ended, ~ended, infos

    def close_extras(self, **_: Any) -> None:
        """Close the record."""
        self.games.close()
