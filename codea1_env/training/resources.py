"""What a step took beside time: tokens per second of language models, and memory."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from codea1_env.agents.llm.agent import Usage
from codea1_env.training.metrics import Row

_MIB = 1 << 20


class Throughput:
    """Tokens per second of each role, step by step.

    Args:
        row: The last row of metrics.jsonl, of a run that goes on.
    """

    def __init__(self, row: Row) -> None:
        self._learned: dict[str, float] = {}
        self._remember(row)

    def of_step(
        self, usages: Mapping[str, Usage], row: Row, seconds: Mapping[str, float]
    ) -> dict[str, float]:
        """Measure a step.

        Args:
            usages: Role -> what its answers took.
            row: The step's row of metrics.jsonl.
            seconds: Phase -> seconds.

        Returns:
            For each role that is a language model, `speed/ROLE/generation`: tokens that were generated per second;
            and, if it learns, `speed/ROLE/update`: tokens of prompts and answers that the update went through.
        """
        found: dict[str, float] = {}
        before = dict(self._learned)
        self._remember(row)
        for role, usage in usages.items():
            if usage.seconds > 0:
                found[f"speed/{role}/generation"] = usage.completion_tokens / usage.seconds
            spent = seconds.get(f"learn_{role}", 0.0)
            if role in self._learned and spent > 0:
                learned = self._learned[role] - before.get(role, 0.0)
                found[f"speed/{role}/update"] = learned / spent
        return found

    def _remember(self, row: Row) -> None:
        """Trainers count the tokens of all their updates so far."""
        for role in ("coder", "tester", "model"):
            if (tokens := row.get(f"{role}/num_tokens")) is not None:
                self._learned[role] = tokens


def peak_memory() -> dict[str, float]:
    """The most memory that this process has had, in MiB, and that of a GPU if it computes on one.

    Sandbox processes are others, and not counted.
    """
    found = {}
    with suppress(OSError):
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        if peak := re.search(r"^VmHWM:\s*(\d+) kB", status, re.MULTILINE):
            found["memory/process_peak"] = int(peak[1]) * 1024 / _MIB
    torch = sys.modules.get("torch")  # who computes on a GPU has loaded it
    if torch is not None and torch.cuda.is_initialized():
        found["memory/gpu_peak"] = torch.cuda.max_memory_allocated() / _MIB
    return found
