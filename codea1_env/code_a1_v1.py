r"""The game as PettingZoo environments: ``raw_env``, ``env`` and ``parallel_env``.

All three are thin views of `codea1_env.game.Game`; docs/environment.md describes spaces, rewards, infos
and options. ``raw_env`` is turn-based (AEC): the coder acts, then the tester acts and sees that program.
``parallel_env`` keeps these turns: one of them is played in each step, and only its agent's action
counts. PettingZoo's own conversion would ask the tester for tests before there is a program.

    >>> env = parallel_env(problems="starter")
    >>> observations, infos = env.reset(seed=1, options={"problem_id": "starter/add_numbers"})
    >>> infos["coder_0"]["active_agent"]
    'coder_0'
    >>> observations, *_ = env.step({"coder_0": "def add_numbers(a, b):\n    return a - b"})
    >>> observations["tester_0"]["code"]
    'def add_numbers(a, b):\n    return a - b'
    >>> _, rewards, terminations, _, _ = env.step({"tester_0": "assert add_numbers(2, 2) == 4"})
    >>> rewards["coder_0"], terminations["coder_0"]
    (0.0, True)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gymnasium import logger, spaces
from gymnasium.error import ResetNeeded
from pettingzoo import AECEnv, ParallelEnv  # type: ignore[import-untyped]
from pettingzoo.utils.wrappers import OrderEnforcingWrapper  # type: ignore[import-untyped]

from codea1_env.game import Game
from codea1_env.mistake_book import MistakeBook
from codea1_env.problems import Problem
from codea1_env.referee import Referee, RefereeConfig
from codea1_env.rendering import terminal as rendering
from codea1_env.rewards import RewardFunction
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import (
    AGENTS,
    CODER,
    TESTER,
    Observation,
    Text,
    action_space,
    observation_space,
)

RENDER_MODES = ("human", "ansi")

Step = tuple[
    dict[str, Observation],
    dict[str, float],
    dict[str, bool],
    dict[str, bool],
    dict[str, dict[str, Any]],
]
"""Observations, rewards, terminations, truncations and infos of one step, for each agent."""


class GameView:
    """Shared part of both interfaces: arguments, spaces, state and rendering.

    Args:
        problems: A source for `load_problems` ("starter", a file, a data set), or a sequence of `Problem`.
        split: "train" or "eval" to play only these problems; None for all.
        max_rounds: Rounds of an episode. From the second on the coder sees what broke its program.
        render_mode: "human", "ansi" or None.
        referee: How programs and tests are judged and paid: number of tests, alpha, oracle, limits; or a
            `Referee`, which several environments can share.
        rewards: What both players are paid: a name in `codea1_env.rewards.REWARDS`, ``module:NAME``, ``FILE.py:NAME``, or
            a function of outcome and config. None for what `referee` says, the paper's.
        mistake_book: The book to use, updated in place; None starts an empty one.
        sandbox: Where programs and tests run; None for the one that the whole process shares.

    Raises:
        TypeError: An argument has a wrong type.
        ValueError: An argument is outside its range, or there is no problem to play.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  PettingZoo's name and type
        "name": "code_a1_v1",
        "render_modes": list(RENDER_MODES),
        "render_fps": 1,
        "is_parallelizable": False,
    }

    def __init__(
        self,
        *,
        problems: str | Sequence[Problem] = "starter",
        split: str | None = None,
        max_rounds: int = 1,
        render_mode: str | None = None,
        referee: RefereeConfig | Referee | None = None,
        rewards: str | RewardFunction | None = None,
        mistake_book: MistakeBook | None = None,
        sandbox: Sandbox | None = None,
    ) -> None:
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise ValueError(
                f"Expect render_mode to be None or one of {RENDER_MODES}, actually: {render_mode!r}"
            )
        self.game = Game(
            problems=problems,
            split=split,
            max_rounds=max_rounds,
            referee=referee,
            rewards=rewards,
            mistake_book=mistake_book,
            sandbox=sandbox,
        )
        self.render_mode = render_mode
        self.possible_agents = list(AGENTS)
        self.agents: list[str] = []
        # One object for each agent, so that seeding a space reaches no other agent or environment.
        self.observation_spaces = {agent: observation_space(max_rounds) for agent in AGENTS}
        self.action_spaces = {agent: action_space() for agent in AGENTS}
        self.state_space = observation_space(max_rounds)

    @property
    def mistake_book(self) -> MistakeBook:
        """The Mistake Book in use."""
        return self.game.book

    def observation_space(self, agent: str) -> spaces.Dict:
        """Return the space of what this agent sees; the same object at every call."""
        return self.observation_spaces[known_agent(agent)]

    def action_space(self, agent: str) -> Text:
        """Return the space of what this agent says; the same object at every call."""
        return self.action_spaces[known_agent(agent)]

    def state(self) -> Observation:
        """Return the whole situation, which both agents see."""
        return self.game.observation()

    def render(self) -> str | None:
        """Show the episode so far.

        Returns:
            A text for "ansi"; None for "human", which prints.
        """
        episode = self.game.running()
        if self.render_mode == "ansi":
            return rendering.ansi(episode)
        if self.render_mode == "human":
            rendering.show(episode)
        else:
            logger.warn(
                "render() was called without a render mode: nothing is shown. Choose one when the "
                f"environment is made, for example render_mode={RENDER_MODES[1]!r}."
            )
        return None

    def close(self) -> None:
        """Nothing to release: the sandbox belongs to its owner, the shared one to the process."""

    def _infos(self) -> dict[str, dict[str, Any]]:
        return {agent: self.game.info() for agent in AGENTS}

    def _show_judged_round(self) -> None:
        episode = self.game.running()
        if self.render_mode == "human" and episode.program is None:
            rendering.show(episode, first_round=len(episode.rounds))


class raw_env(GameView, AECEnv):  # type: ignore[misc]  # noqa: N801  PettingZoo's name
    """The game as a turn-based (AEC) environment. `env` adds PettingZoo's order checks."""

    agent_selection: str

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Start an episode; see `codea1_env.game.Game.reset` for seed and options."""
        self.game.reset(seed, options)
        self.agents = list(AGENTS)
        self.agent_selection = CODER
        self.rewards = dict.fromkeys(AGENTS, 0.0)
        self._cumulative_rewards = dict.fromkeys(AGENTS, 0.0)
        self.terminations = dict.fromkeys(AGENTS, False)
        self.truncations = dict.fromkeys(AGENTS, False)
        self.infos = self._infos()
        self._skip_agent_selection = None

    def step(self, action: str | None) -> None:
        """Play the turn of ``agent_selection``: a text, or None once the episode has terminated.

        Raises:
            TypeError: The action is not a string.
            ValueError: A terminated agent acts.
            ResetNeeded: There is no episode, or every agent has left it.
        """
        if not self.agents:
            self.game.running()
            raise ResetNeeded(
                "Expect step() only while agents are left, actually: the episode is over and both "
                "have left. Call reset() to start the next one."
            )
        agent = self.agent_selection
        if self.terminations[agent]:
            if action is not None:
                raise ValueError(
                    f"Expect None as the action of {agent}, whose episode has terminated, actually: "
                    f"{action!r:.100}. Step None for both agents, or call reset()."
                )
            self._was_dead_step(action)
            return
        self.game.act(action)  # type: ignore[arg-type]  # None is refused there, with an explanation
        self._cumulative_rewards[agent] = 0.0
        self.rewards = self.game.rewards
        self._accumulate_rewards()
        self.terminations = dict.fromkeys(AGENTS, self.game.actor is None)
        self.infos = self._infos()
        self.agent_selection = self.game.actor or CODER
        self._show_judged_round()

    def observe(self, agent: str) -> Observation:
        """Return the observation of this agent."""
        known_agent(agent)
        return self.game.observation()


def env(**settings: Any) -> OrderEnforcingWrapper:
    """Return the game as a turn-based (AEC) environment that checks the order of calls. Arguments are those of `raw_env`."""
    return OrderEnforcingWrapper(raw_env(**settings))


class parallel_env(GameView, ParallelEnv):  # type: ignore[misc]  # noqa: N801  PettingZoo's name
    """The game with PettingZoo's parallel interface: one turn in each step.

    Both agents stay in ``agents`` until the episode ends and get everything at every step.
    ``infos[agent]["active_agent"]`` names the one whose turn it is. Its action must be in the dictionary;
    the other agent's may be, and is ignored.
    """

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Start an episode; see `codea1_env.game.Game.reset` for seed and options.

        Returns:
            Observations and infos of both agents.
        """
        self.game.reset(seed, options)
        self.agents = list(AGENTS)
        return self._observations(), self._infos()

    def step(self, actions: Mapping[str, str]) -> Step:
        """Play one turn.

        Args:
            actions: The text of the active agent, by its name.

        Returns:
            Observations, rewards, terminations, truncations and infos of both agents.

        Raises:
            TypeError: ``actions`` is not a dictionary, or the active agent's action is not a string.
            ValueError: It names an unknown agent, or lacks the active agent.
            ResetNeeded: There is no episode, or it is over.
        """
        actor = self.game.actor
        if not isinstance(actions, Mapping):
            raise TypeError(
                f"Expect actions to be a dict of agent and text, actually: {type(actions)}"
            )
        for agent in actions:
            known_agent(agent)
        if actor is not None and actor not in actions:
            raise ValueError(
                f"Expect the action of {actor!r}, whose turn it is, actually: actions of "
                f'{sorted(actions)}. infos[agent]["active_agent"] says who is to act.'
            )
        self.game.act(actions.get(actor or CODER, ""))
        over = self.game.actor is None
        if over:
            self.agents = []
        self._show_judged_round()
        return (
            self._observations(),
            self.game.rewards,
            dict.fromkeys(AGENTS, over),
            dict.fromkeys(AGENTS, False),
            self._infos(),
        )

    def _observations(self) -> dict[str, Observation]:
        return {agent: self.game.observation() for agent in AGENTS}


def known_agent(agent: str) -> str:
    """Return the name itself."""
    if agent not in AGENTS:
        raise ValueError(f"Expect agent to be {CODER!r} or {TESTER!r}, actually: {agent!r}")
    return agent
