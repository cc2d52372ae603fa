"""What the answers of a language model took: a row of usage.jsonl for each batch that was asked for.

A row is written before the samples of its batch. What a kill leaves of a batch without samples is dropped: the batch is
asked for again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

from codea1_env.evaluation.result_folder import USAGE, ResultFolder
from codea1_env.rollout import Agent


class Tokens(Protocol):
    """What some answers took."""

    answers: int
    untold: int
    prompt_tokens: int
    completion_tokens: int
    truncated: int


@runtime_checkable
class Metered(Protocol):
    """A player that says what its answers took."""

    def take_usage(self) -> Tokens:
        """What the answers since the last call of this method took."""
        ...


class UsageLog:
    """Keeps what each batch took.

    Args:
        folder: Where usage.jsonl is.
        batches: Batches whose samples are there.
    """

    def __init__(self, folder: ResultFolder, batches: int) -> None:
        self._folder = folder
        self._next = batches
        rows = folder.rows(USAGE)
        kept = [row for row in rows if row["batch"] < batches]
        if len(kept) < len(rows):
            folder.write_lines(USAGE, kept)

    def add(self, agent: Agent) -> None:
        """Keep what the next batch took, if its player says so."""
        if isinstance(agent, Metered):
            used = agent.take_usage()
            names = ("answers", "untold", "prompt_tokens", "completion_tokens", "truncated")
            row = {"batch": self._next} | {name: getattr(used, name) for name in names}
            self._folder.append(USAGE, [row])
        self._next += 1


def usage_of(folder: ResultFolder) -> dict[str, int] | None:
    """All that answers took, as report.json has it; None if no player said so."""
    rows = [{k: v for k, v in row.items() if k != "batch"} for row in folder.rows(USAGE)]
    return {name: sum(row[name] for row in rows) for name in rows[0]} if rows else None


def usage_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """The same in words."""
    used = report.get("usage")
    if not used:
        return
    told = used["answers"] - used["untold"]
    if not told:
        yield f"Tokens: the server told none of its {used['answers']} answers"
        return
    of = (
        f", without {used['untold']} answers that the server told none of" if used["untold"] else ""
    )
    yield (
        f"Tokens of {used['answers']} answers: {used['prompt_tokens']} of prompts, {used['completion_tokens']} of "
        f"answers, {used['completion_tokens'] / told:.0f} each{of}; {used['truncated']} answers were cut off"
    )
