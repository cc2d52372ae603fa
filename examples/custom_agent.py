"""A tester of your own: play it against a scripted coder, then let a coder train against it.

python examples/custom_agent.py
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path

import codea1_env
from codea1_env.agents import FixedAgent, MutantCoder
from codea1_env.rollout import RolloutConfig, rollout
from codea1_env.spaces import Observation
from codea1_env.training import TrainConfig, train


class DocstringTester(FixedAgent):
    """Turns the examples of the docstring into tests: `>>> f(1)` and its value into an assert.

    Any class with an `act` like this one can play. A player that learns also has `learn`, `save` and `load`.
    """

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Return one suite for each observation."""
        return [self.suite(observation["problem"]) for observation in observations]

    def suite(self, prompt: str) -> str:
        """Return the tests that a prompt shows."""
        lines = [line.strip() for line in prompt.splitlines()]
        return "\n".join(
            f"assert ({call[4:]}) == {value}"
            for call, value in itertools.pairwise(lines)
            if call.startswith(">>> ")
        )


def main() -> None:
    """Play one step, then train for a few."""
    problems = codea1_env.load_problems("starter", "train")[:8]
    with codea1_env.Sandbox(workers=2) as sandbox:
        referee = codea1_env.Referee(sandbox)
        coder, book = MutantCoder(problems, sandbox), codea1_env.MistakeBook()
        config = RolloutConfig(num_generations=4, num_suites=1)
        played = rollout(problems, coder, DocstringTester(), referee, book, config)
        broken = sum(bool(episode.verdict.failed) for episode in played.episodes)
        print(f"Docstring examples break {broken} of {len(played.episodes)} mutants.")

        with tempfile.TemporaryDirectory() as folder:
            settings = TrainConfig(max_problems=8, max_steps=10, output_dir=Path(folder) / "run")
            train(settings, tester=DocstringTester(), sandbox=sandbox)


if __name__ == "__main__":
    main()
