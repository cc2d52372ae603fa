"""Language models that are watched while they write: how far they are, and what Ctrl-C waits for."""

from __future__ import annotations

from collections.abc import Sequence

from codea1_env.agents.llm.agent import LanguagePlayer, Usage
from codea1_env.cli.eval_agents import is_server
from codea1_env.cli.eval_display import EvaluationProgress
from codea1_env.evaluation.running import AgentOf
from codea1_env.rollout import Agent
from codea1_env.spaces import Observation
from codea1_env.training.interrupt import StopRequest


def watched(agent: AgentOf, name: str, shown: EvaluationProgress, stop: StopRequest) -> AgentOf:
    """Show how far answers are while a language model writes them; other players are as they were.

    Args:
        agent: The player of a seed.
        name: What the user calls it.
        shown: Where it is shown.
        stop: Says what a request to stop waits for.
    """

    def of(seed: int) -> Agent:
        player = agent(seed)
        return _Watched(player, name, shown, stop) if isinstance(player, LanguagePlayer) else player

    return of


class _Watched:
    """A language model that says when it is asked."""

    def __init__(
        self, agent: LanguagePlayer, name: str, shown: EvaluationProgress, stop: StopRequest
    ) -> None:
        self.agent = agent
        self._name = name
        self._shown = shown
        self._stop = stop

    def act(self, observations: Sequence[Observation]) -> Sequence[str]:
        """Answer each observation."""
        number = len(observations)
        before, self._stop.step = self._stop.step, f"these {number} answers of {self._name}"
        try:
            with self._shown.answering(number, self._name, one_by_one=is_server(self._name)):
                return self.agent.act(observations)
        finally:
            self._stop.step = before

    def take_usage(self) -> Usage:
        """What the answers since the last call of this method took."""
        return self.agent.take_usage()
