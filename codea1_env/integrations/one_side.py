"""One side of the game as a single-agent environment: the opponent plays inside.

`OneSideEnv` is a `gymnasium.Env` with texts as observations and actions, `OneSideVectorEnv` its vector form, which
sends the turns of all games to the opponent and to the sandbox together. For actions that are numbers see
`codea1_env.integrations.pools`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array

from codea1_env.agents.opponents import Opponent
from codea1_env.integrations.side import OneSide, Side
from codea1_env.mistake_book import MistakeBook
from codea1_env.spaces import Observation, action_space, observation_space

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
            `codea1_env.integrations.opponents.find_opponent`.
        **settings: The other arguments of `codea1_env.game.Game`: problems, split, max_rounds, referee, rewards,
            mistake_book and sandbox.

    Raises:
        TypeError: An argument has a wrong type.
        ValueError: An argument is outside its range, there is no such opponent, or no problem to play.

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
        opponent: Opponent = "golden",
        **settings: Any,
    ) -> None:
        self._side = OneSide(side, opponent, **settings)
        self.game = self._side.game()
        self.observation_space: spaces.Space[Any] = observation_space(self.game.max_rounds)
        self.action_space = action_space()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode; see `codea1_env.game.Game.reset` for seed and options.

        A seed starts the choices of a scripted opponent anew, too; one of your own keeps its state.
        """
        super().reset(seed=seed)
        self._side.begin([self.game], [seed], options)
        return self.game.observation(), self.game.info()

    def step(self, action: str) -> Step:
        """Play a turn, and let the opponent answer.

        Raises:
            TypeError: The action is not a string.
            ResetNeeded: There is no episode, or it is over.
        """
        [reward] = self._side.step([self.game], [action])
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
        opponent: Opponent = "golden",
        **settings: Any,
    ) -> None:
        if num_envs < 1:
            raise ValueError(f"Expect num_envs to be at least 1, actually: {num_envs}")
        self.num_envs = num_envs
        self._side = OneSide(side, opponent, **settings)
        self.games, self.agent = [self._side.game() for _ in range(num_envs)], self._side.agent
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

        Args:
            seed: Of the first game; the others get the numbers behind it. None goes on with book and random choices.
            options: Of every game: see `codea1_env.game.Game.reset`.
        """
        if isinstance(seed, list):
            seeds = seed
        else:
            seeds = [None if seed is None else seed + i for i in range(self.num_envs)]
        self._side.begin(self.games, seeds, options)
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
        """Play a turn of every game, and let the opponent answer all of them together.

        Raises:
            TypeError: An action is not a string.
            ValueError: There is not one action for each game.
        """
        if isinstance(actions, str) or len(actions) != self.num_envs:
            raise ValueError(
                f"Expect {self.num_envs} actions, one for each game, actually: {actions!r:.100}"
            )
        rewards = self._side.step(self.games, actions)
        over = [game.actor is None for game in self.games]
        infos = [game.info() for game in self.games]
        last = {i: self.games[i].observation() for i, ended in enumerate(over) if ended}
        self._side.begin([self.games[i] for i in last], [None] * len(last), None)
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
