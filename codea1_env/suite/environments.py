"""The suite for libraries: PettingZoo's parallel and AEC interfaces, one side for Gymnasium, and many games at once.

An episode has two turns: `coder_0` chooses a program, then `tester_0`, who sees it, chooses tests. Both are paid at its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from pettingzoo import AECEnv, ParallelEnv  # type: ignore[import-untyped]

from codea1_env.spaces import AGENTS, CODER, TESTER
from codea1_env.suite.playing import Observations, Play, open_play
from codea1_env.suite.tasks import SuiteError, Track, check_track, find_task
from codea1_env.suite.worlds import Ints

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
        num_envs: Games at once: with "gym" a `gymnasium.vector.VectorEnv`, with "vector" the arrays of `VectorGames`.
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
        raise SuiteError(f"Expect num_envs of at least 1 with api 'gym' or 'vector', actually: {num_envs!r}, {api!r}")  # fmt: skip
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise SuiteError(f"Expect a seed of 0 or more, actually: {seed!r:.40}")
    kinds = {"parallel": SuiteParallelEnv, "aec": SuiteAECEnv}
    if api not in (*kinds, "gym", "vector"):
        raise SuiteError(f"Expect api to be parallel, aec, gym or vector, actually: {api!r:.40}")
    track: Track = check_track(task, side or "both")
    play = open_play(task, seed, track, None if record is None else Path(record))
    if api == "gym":
        return SuiteSideEnv(play) if num_envs is None else SuiteSideVectorEnv(play, num_envs)
    if api == "vector":
        return VectorGames(play, num_envs or 1)
    return kinds[api](play)


def one_side(task: str, side: Literal["coder", "tester"], **arguments: Any) -> SuiteSideEnv:
    """Make what `gymnasium.make("codea1_env/Suite-v1", task="reading/2", side="tester")` returns."""
    made: SuiteSideEnv = make(task, api="gym", side=side, **arguments)
    return made


def one_side_games(
    num_envs: int, task: str, side: Literal["coder", "tester"], **arguments: Any
) -> SuiteSideVectorEnv:
    """Make what `gymnasium.make_vec("codea1_env/Suite-v1", num_envs=64, task="reading/2", side="tester")` returns."""
    made: SuiteSideVectorEnv = make(task, api="gym", side=side, num_envs=num_envs, **arguments)
    return made


class SuiteParallelEnv(ParallelEnv):  # type: ignore[misc]
    """Both players, for PettingZoo's parallel interface: of each step's actions the one whose turn it is counts."""

    metadata: dict[str, Any] = {"name": "codea1_suite_v1", "render_modes": []}  # noqa: RUF012  PettingZoo's name and type
    render_mode = None

    def __init__(self, play: Play) -> None:
        self.play = play
        self.possible_agents = list(AGENTS)
        self.agents: list[str] = []
        self.observation_spaces = {name: play.spaces[_SIDE[name]][0] for name in AGENTS}
        self.action_spaces = {name: play.spaces[_SIDE[name]][1] for name in AGENTS}

    def observation_space(self, agent: str) -> gymnasium.Space[Any]:
        """Return an agent's observation space."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.Space[Any]:
        """Return an agent's action space."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observations], dict[str, dict[str, Any]]]:
        """Begin the next episode; without a record a seed begins with the first one again."""
        self.play.restart(seed)
        self.agents = list(AGENTS)
        self._episode = int(self.play.begin(1)[0])
        self._program: int | None = None
        return self._observations(), self._infos()

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[
        dict[str, Observations], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]
    ]:
        """Take the action of the agent whose turn it is."""
        if not self.agents:
            raise SuiteError("Expect reset() before step(), actually: the episode is over")
        actor = CODER if self._program is None else TESTER
        if actor not in actions:
            raise SuiteError(
                f"Expect an action of {actor}, whose turn it is, actually: {list(actions)}"
            )
        rewards = dict.fromkeys(AGENTS, 0.0)
        over = self._program is not None
        if self._program is None:
            self._program = self.play.program(actions[CODER])
        else:
            suite = self.play.suite(actions[TESTER])
            paid = self.play.end_one(self._episode, self._program, suite)
            rewards = {CODER: paid.coder, TESTER: paid.tester}
        seen, infos = self._observations(), self._infos()
        if over:
            self.agents = []
        return seen, rewards, dict.fromkeys(AGENTS, over), dict.fromkeys(AGENTS, False), infos

    def _observations(self) -> dict[str, Observations]:
        return dict(zip(AGENTS, self.play.one_sees(self._episode, self._program), strict=True))

    def _infos(self) -> dict[str, dict[str, Any]]:
        active = CODER if self._program is None else TESTER
        return {name: {"active_agent": active} for name in AGENTS}

    def close(self) -> None:
        """Close the record."""
        self.play.close()


class SuiteAECEnv(AECEnv):  # type: ignore[misc]
    """Both players in turn, for PettingZoo's AEC interface."""

    metadata: dict[str, Any] = {**SuiteParallelEnv.metadata, "is_parallelizable": False}  # noqa: RUF012
    render_mode = None

    def __init__(self, play: Play) -> None:
        super().__init__()
        self._both = SuiteParallelEnv(play)
        self.possible_agents = list(AGENTS)
        self.observation_spaces = self._both.observation_spaces
        self.action_spaces = self._both.action_spaces
        self.agents: list[str] = []

    def observation_space(self, agent: str) -> gymnasium.Space[Any]:
        """Return an agent's observation space."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.Space[Any]:
        """Return an agent's action space."""
        return self.action_spaces[agent]

    def observe(self, agent: str) -> Observations:
        """Return what an agent sees."""
        return self._seen[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin the next episode."""
        self._seen, self.infos = self._both.reset(seed, options)
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
        self._seen, self.rewards, self.terminations, self.truncations, self.infos = self._both.step(
            {agent: action}
        )
        self._cumulative_rewards[agent] = 0.0
        self.agent_selection = TESTER if agent == CODER else CODER
        self._accumulate_rewards()

    def close(self) -> None:
        """Close the record."""
        self._both.close()


class SuiteSideEnv(gymnasium.Env[Observations, Any]):
    """One player against a shipped population of the other; an episode is one step."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  Gymnasium's name and type

    def __init__(self, play: Play) -> None:
        self.play = play
        self.observation_space: gymnasium.Space[Any]
        self.observation_space, self.action_space = play.spaces[play.track]
        self._episode: Ints | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Begin the next episode; a seed decides what the opponent does."""
        super().reset(seed=seed)
        self.play.restart(seed)
        self._episode, self._seen, self._programs = _begin(self.play, 1)
        return self._seen[0], {}

    def step(self, action: Any) -> tuple[Observations, float, bool, bool, dict[str, Any]]:
        """Play the episode; a SuiteError without a reset() before it."""
        if self._episode is None:
            raise SuiteError("Expect reset() before each step(), actually: no episode was begun")
        reward = _end(self.play, self._episode, self._programs, [action])
        self._episode = None
        return self._seen[0].copy(), float(reward[0]), True, False, {}

    def close(self) -> None:
        """Close the record."""
        self.play.close()


class SuiteSideVectorEnv(VectorEnv[Observations, Any, np.ndarray[Any, Any]]):
    """Many episodes of one side at once; each ends and begins anew in one step (`AutoresetMode.SAME_STEP`)."""

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012  Gymnasium's name and type

    def __init__(self, play: Play, num_envs: int) -> None:
        self.play, self.num_envs = play, num_envs
        self.single_observation_space, self.single_action_space = play.spaces[play.track]
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._episodes: Ints | None = None

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Begin episodes; of several seeds the first one counts."""
        self.play.restart(seed[0] if isinstance(seed, list) else seed)
        self._episodes, self._seen, self._programs = _begin(self.play, self.num_envs)
        return self._seen, {}

    def step(self, actions: Any) -> tuple[Observations, Any, Any, Any, dict[str, Any]]:
        """Play the episodes, and begin new ones."""
        if self._episodes is None:
            raise SuiteError("Expect reset() before step(), actually: no episode was begun")
        rewards = _end(self.play, self._episodes, self._programs, actions)
        last = self._seen
        self._episodes, self._seen, self._programs = _begin(self.play, self.num_envs)
        ended = np.ones(self.num_envs, np.bool_)
        infos = {"final_obs": last, "_final_obs": ended}
        return self._seen, rewards, ended, ~ended, infos

    def close_extras(self, **_: Any) -> None:
        """Close the record."""
        self.play.close()


class VectorGames:
    """Both sides of many episodes at once, in arrays.

    Example:
        >>> games = make("rare-faults/0", 1000, api="vector", num_envs=64)
        >>> games.begin().shape, games.show(np.zeros(64, int)).shape
        ((64, 9), (64, 25))
        >>> coder, tester = games.end(np.tile([1, 2], (64, 1)))
    """

    def __init__(self, play: Play, num_envs: int) -> None:
        self.play, self.num_envs = play, num_envs
        self._episodes: Ints | None = None
        self._programs: Ints | None = None

    def begin(self) -> Observations:
        """Begin episodes, and return what the coders see, shape (num_envs, ...)."""
        self._episodes, self._programs = self.play.begin(self.num_envs), None
        return self.play.coder_sees(self._episodes)

    def show(self, programs: Any) -> Observations:
        """Take the coders' choices, once after each `begin`, and return what the testers see."""
        if self._episodes is None or self._programs is not None:
            raise SuiteError("Expect begin() before show(), actually: no episode waits for a program")  # fmt: skip
        self._programs = self.play.programs(programs, self.num_envs)
        return self.play.tester_sees(self._episodes, self._programs)

    def end(self, tests: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Take the testers' suites, once after each `show`, and return the rewards of coders and testers."""
        if self._episodes is None or self._programs is None:
            raise SuiteError("Expect show() before end(), actually: no program was shown")
        paid = self.play.end(self._episodes, self._programs, self.play.tests(tests, self.num_envs))
        self._episodes = self._programs = None
        return paid.coder, paid.tester

    @property
    def over(self) -> bool:
        """Whether all episodes of the id were played."""
        return self.play.rounds.ended >= self.play.task.episodes

    def close(self) -> None:
        """Close the record."""
        self.play.close()


def _begin(play: Play, number: int) -> tuple[Ints, Observations, Ints | None]:
    episodes = play.begin(number)
    if play.coder is None:
        return episodes, play.coder_sees(episodes), None
    programs = play.coder.choose(episodes)
    return episodes, play.tester_sees(episodes, programs), programs


def _end(play: Play, episodes: Ints, programs: Ints | None, actions: Any) -> Any:
    if programs is not None:
        return play.end(episodes, programs, play.tests(actions, len(episodes))).tester
    assert play.tester is not None
    chosen = play.programs(actions, len(episodes))
    tests = play.tester.choose(episodes, play.rounds, chosen)
    return play.end(episodes, chosen, tests).coder
