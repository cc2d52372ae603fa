"""Signs that a run does not learn what it could, told when they come, with what to change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from codea1_env.training.metrics import Row

_STEPS = 3


@dataclass(frozen=True)
class _Sign:
    metric: str
    """After the name of the role."""
    above: float
    text: str
    """With the role, and the value."""


_SIGNS = (
    _Sign(
        "truncated",
        0.5,
        "{value:.0%} of the {role}'s answers are cut off: raise {role}.sampling.max_completion_length",
    ),
    _Sign(
        "frac_reward_zero_std",
        0.5,
        "{value:.0%} of the {role}'s groups have equal rewards, which teach nothing: take other problems, or more answers a "
        "group",
    ),
    _Sign(
        "sampling/sampling_logp_difference/mean",
        0.1,
        "the engine's log probabilities of the {role}'s tokens differ by {value:.2f} from the trained model's: its weights "
        "may not follow",
    ),
    _Sign(
        "copied",
        0.9,
        '{value:.0%} of the {role}\'s tests are copies of the examples: set tester_examples = "hidden"',
    ),
)


def signs(rows: Iterable[Row]) -> list[str]:
    """Return what a run has said about its health, from its rows of metrics.jsonl in order."""
    health = Health()
    return [line for row in rows for line in health.news(row)]


class Health:
    """Says each sign of each role once: when the mean of three steps shows it, as one step is too few to tell.

    Example:
        >>> health = Health()
        >>> [line for step in (1, 2, 3, 4) for line in health.news({"step": step, "coder/truncated": 0.75})]
        ["Step 3: 75% of the coder's answers are cut off: raise coder.sampling.max_completion_length."]
    """

    def __init__(self) -> None:
        self._values: dict[str, list[float]] = defaultdict(list)
        self._said: set[str] = set()

    def news(self, row: Row) -> list[str]:
        """Return a sentence for each sign that shows with this row of metrics.jsonl for the first time."""
        found = []
        for role in ("coder", "tester"):
            for sign in _SIGNS:
                name = f"{role}/{sign.metric}"
                if row.get(name) is None or name in self._said:
                    continue
                self._values[name] = [*self._values[name], row[name]][-_STEPS:]
                mean = sum(self._values[name]) / _STEPS
                if len(self._values[name]) == _STEPS and mean > sign.above:
                    self._said.add(name)
                    text = sign.text.format(role=role, value=mean)
                    found.append(f"Step {row['step']}: {text}.")
        return found
