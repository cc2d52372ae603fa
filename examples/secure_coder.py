"""Pay a coder for secure code, too: what a static analyser finds in a program is taken off its reward.

    pip install bandit
    python examples/secure_coder.py

The pool has two right programs, one of which evaluates a stranger's text. Tests cannot tell them apart, bandit can.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from codea1_env import MistakeBook, Problem, Referee, Sandbox
from codea1_env.agents import GRPO, GoldenTester, Pool, TabularAgent
from codea1_env.agents.protocols import Learner
from codea1_env.rollout import Experience, RolloutConfig, rollout
from codea1_env.spaces import Observation

PROGRAMS = (
    "def total(text):\n    return sum(eval(text))",
    "import json\ndef total(text):\n    return sum(json.loads(text))",
    "def total(text):\n    return 0",
)
PROBLEM = Problem(
    "demo/total",
    'def total(text: str) -> int:\n    """Return the sum of a JSON list of integers, such as [1, 2]."""\n',
    "total",
    PROGRAMS[1],
    tests=tuple(f"assert total('{row}') == {sum(row)}" for row in ([1, 2], [5], [3, 4, 5], [0])),
)


@cache
def findings(code: str) -> int:
    """Return how many findings bandit has in a program; it reads the text in a process of its own and runs nothing."""
    bandit = [sys.executable, "-m", "bandit", "--quiet", "--format", "json", "-"]
    done = subprocess.run(bandit, input=code, capture_output=True, text=True, timeout=60)
    if done.returncode > 1:
        raise SystemExit(f"Expect bandit, actually: {done.stderr[-200:]} (pip install bandit)")
    return len(json.loads(done.stdout)["results"])


class SecureCoder:
    """A coder whose rewards are lower by a penalty for each finding.

    Args:
        coder: Who answers and learns.
        penalty: Cost of a finding.
    """

    def __init__(self, coder: Learner, penalty: float = 0.25) -> None:
        self.coder, self.penalty = coder, penalty

    def act(self, observations: Sequence[Observation]) -> Sequence[str]:
        """Answer as the coder does."""
        return self.coder.act(observations)

    def learn(self, experience: Sequence[Experience]) -> Mapping[str, float]:
        """Let the coder learn from what is left of its rewards; None stays None."""
        found = [findings(each.action) for each in experience]
        paid = [
            each
            if each.reward is None
            else dataclasses.replace(each, reward=each.reward - self.penalty * number)
            for each, number in zip(experience, found, strict=True)
        ]
        return {**self.coder.learn(paid), "findings": float(np.mean(found))}

    def save(self, path: Path) -> None:
        """Save the coder."""
        self.coder.save(path)

    def load(self, path: Path) -> None:
        """Load the coder."""
        self.coder.load(path)


def main() -> None:
    """Train the same coder with the penalty and without."""
    with Sandbox(workers=1) as sandbox:
        for penalty in (0.0, 0.25):
            inner = TabularAgent([Pool(PROBLEM, PROGRAMS)], GRPO(), np.random.default_rng(0))
            coder = SecureCoder(inner, penalty)
            tester, referee, book = GoldenTester([PROBLEM]), Referee(sandbox), MistakeBook()
            for _ in range(30):
                played = rollout([PROBLEM], coder, tester, referee, book, RolloutConfig(8, 1))
                metrics = coder.learn(played.coder_experience())
            chances = inner.policy.probabilities(PROBLEM.task_id).round(2).tolist()
            print(
                f"penalty {penalty}: eval {chances[0]}, json {chances[1]}, wrong {chances[2]}; findings {metrics['findings']}"
            )


if __name__ == "__main__":
    main()
