"""One language model in both roles: self-play."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from codea1_env.agents.llm.agent import LLMAgent, Usage
from codea1_env.agents.llm.completions import Completion, Message
from codea1_env.agents.llm.language_player import total
from codea1_env.spaces import Observation


class BothRoles(LLMAgent):
    """An agent that answers as coder or as tester, whichever an observation asks for.

    Args:
        coder: Answers where a program is wanted.
        tester: Answers where tests are wanted, with the same model and adapter.
    """

    def __init__(self, coder: LLMAgent, tester: LLMAgent) -> None:
        self._turns = {"coder": coder, "tester": tester}
        self.sampling = coder.sampling
        self.completions: list[Completion] = []
        self.usage = Usage()

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Return one answer for each observation, in order.

        Raises:
            BackendError: The engine cannot answer.
        """
        answers: dict[int, Completion] = {}
        usages = []
        for turn, agent in enumerate(self._turns.values()):
            places = [i for i, each in enumerate(observations) if each["turn"] == turn]
            # Without observations, too: of several processes all must count their calls alike.
            agent.act([observations[i] for i in places])
            answers.update(zip(places, agent.completions, strict=True))
            usages.append(agent.usage)
        self.completions = [answers[i] for i in range(len(observations))]
        self.usage = total(usages)
        return [answer.text for answer in self.completions]

    def chat(self, observation: Observation) -> list[Message]:
        """Return the chat that the model is shown for an observation."""
        return list(self._turns.values())[observation["turn"]].chat(observation)

    def save(self, path: Path) -> None:
        """Write how far the random numbers of both roles are used up."""
        for name, agent in self._turns.items():
            (path / name).mkdir()
            agent.save(path / name)

    def load(self, path: Path) -> None:
        """Restore what `save` wrote."""
        for name, agent in self._turns.items():
            agent.load(path / name)
