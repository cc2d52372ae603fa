"""What came of a run, where its time and memory went, and signs that it does not learn what it could: from its logs alone."""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rich.table import Table

from codea1_env.agents.llm.agent import Usage
from codea1_env.training.metrics import Row, mean

_MIB = 1 << 20


@dataclass(frozen=True)
class TrainResult:
    """What `train` returns."""

    output_dir: Path
    """The folder of the run."""
    step: int
    """Steps done."""
    finished: bool
    """Whether all steps are done, or the time of the run is over. One that was interrupted is resumed to go on."""
    start: Row
    """Rewards of the first tenth of the steps; measurements before the first step."""
    end: Row
    """Rewards of the last tenth of the steps; the last measurements."""
    problems: Mapping[str, int]
    """Measurement -> problems that it is a mean over."""


SUMMARY = {
    "reward/coder/mean": "reward of the coder",
    "reward/tester/mean": "reward of the tester",
    "held_out/pass_rate": "held-out golden tests that the coder passes",
    "held_out/kill_rate": "held-out mutants that the tester kills",
    "held_out/copier_kill_rate": "  that the copier kills",
    "held_out/new_kill_rate": "  that the tester kills, and the copier does not",
    "held_out/youden_j": "Youden's J of one drawn test, as it was written",
    "unseen/pass_rate": "golden tests of other problems that the coder passes",
    "unseen/kill_rate": "mutants of other problems that the tester kills",
    "unseen/copier_kill_rate": "  that the copier kills",
    "unseen/new_kill_rate": "  that the tester kills, and the copier does not",
    "tester/copied": "tests that the problem's text shows",
    "tester/validity": "validity of suites",
    "book/size": "tests in the Mistake Book",
    "book/share_of_breaks": "share of breaking tests that came from the book",
}
"""Metric -> what it is, of those that sum up a run; a control stands below what it controls."""


def start_and_end(rows: Sequence[Row]) -> tuple[Row, Row]:
    """Compare the means of the first and the last tenth of the steps; the first and the last value of what is measured."""
    steps = [row for row in rows if row["step"] > 0]
    tenth = max(1, len(steps) // 10)
    start: Row = {}
    end: Row = {}
    for name in SUMMARY:
        if name.startswith(("held_out/", "unseen/")) or name == "book/size":
            values = [row[name] for row in rows if row.get(name) is not None]
            start[name], end[name] = (values[0], values[-1]) if values else (None, None)
        else:
            start[name] = mean(row.get(name) for row in steps[:tenth])
            end[name] = mean(row.get(name) for row in steps[-tenth:])
    return start, end


def measured_problems(prefix: str, rows: Iterable[Row]) -> dict[str, int]:
    """Count the problems that each measurement is a mean over, from the rows of held_out.jsonl or unseen.jsonl.

    Example:
        >>> rows = [{"step": 0, "task_id": "a", "pass_rate": 1.0}, {"step": 0, "task_id": "b", "pass_rate": None}]
        >>> measured_problems("held_out", rows)
        {'held_out/pass_rate': 1}
    """
    found: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        for name, value in row.items():
            if value is not None and f"{prefix}/{name}" in SUMMARY:
                found[f"{prefix}/{name}"].add(row["task_id"])
    return {name: len(tasks) for name, tasks in found.items()}


def summary_table(result: TrainResult) -> Table:
    """Show a result as a table."""
    title = f"{result.step} steps" if result.finished else f"interrupted after {result.step} steps"
    table = Table(title=title, title_justify="left")
    table.add_column("")
    table.add_column("start", justify="right")
    table.add_column("end", justify="right")
    table.add_column("n", justify="right")
    for name, label in SUMMARY.items():
        if name.startswith("unseen/") and result.end[name] is None:
            continue  # only language models answer other problems
        number = result.problems.get(name)
        shown = "" if number is None else str(number)
        table.add_row(label, _figure(result.start[name]), _figure(result.end[name]), shown)
    if result.end.get("held_out/new_kill_rate") is not None:
        table.caption = "Only 'and the copier does not' shows what a tester learned. n: problems."
        table.caption_justify = "left"
    return table


def _figure(value: float | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.3f}"


class PhaseTotal(NamedTuple):
    """What a phase took over a whole run."""

    name: str
    seconds: float
    share: float
    tokens: int
    """Tokens that were generated, or, of an update, those of prompts and answers that it went through."""
    speed: float | None
    """Tokens per second; None where there are none."""


def phase_totals(timings: Iterable[Row], metrics: Iterable[Row]) -> list[PhaseTotal]:
    """Add up the phases of a run, the longest first.

    Example:
        >>> phase_totals([{"seconds/coder": 3.0, "seconds/judge": 1.0}], [{"coder/tokens/completion": 60}])[0]
        PhaseTotal(name='coder', seconds=3.0, share=0.75, tokens=60, speed=20.0)
    """
    seconds: Counter[str] = Counter()
    for row in timings:
        for name, value in row.items():
            if name.startswith("seconds/"):
                seconds[name.removeprefix("seconds/")] += value
    tokens: Counter[str] = Counter()
    for row in metrics:
        for role in ("coder", "tester", "model"):
            tokens[role] += row.get(f"{role}/tokens/completion", 0)
            # Of all updates so far.
            tokens[f"learn_{role}"] = int(row.get(f"{role}/num_tokens", tokens[f"learn_{role}"]))
    # Where both learn at the same time.
    tokens["learn"] = tokens["learn_coder"] + tokens["learn_tester"]
    whole = seconds.total()
    return [
        PhaseTotal(
            name,
            value,
            value / whole if whole else 0.0,
            tokens[name],
            tokens[name] / value if tokens[name] and value else None,
        )
        for name, value in seconds.most_common()
    ]


def phases_table(timings: Iterable[Row], metrics: Iterable[Row]) -> Table:
    """Show the phases of a run as a table: see `phase_totals`."""
    table = Table("phase", title="where the time went", title_justify="left")
    for heading in ("seconds", "share", "tokens/s"):
        table.add_column(heading, justify="right")
    for name, seconds, share, _, speed in phase_totals(timings, metrics):
        shown = "-" if speed is None else f"{speed:.0f}"
        table.add_row(name, f"{seconds:.1f}", f"{share:.1%}", shown)
    return table


class Throughput:
    """Tokens per second of each role, step by step, from the row of the step before the first."""

    def __init__(self, row: Row) -> None:
        roles = ("coder", "tester", "model")
        self._learned = {role: row.get(f"{role}/num_tokens") or 0.0 for role in roles}
        """Trainers count the tokens of all their updates so far."""

    def of_step(
        self, usages: Mapping[str, Usage], row: Row, seconds: Mapping[str, float]
    ) -> dict[str, float]:
        """Return `speed/ROLE/generation` and, if it learns, `speed/ROLE/update`: tokens per second."""
        found: dict[str, float] = {}
        for role, usage in usages.items():
            if usage.seconds > 0:
                found[f"speed/{role}/generation"] = usage.completion_tokens / usage.seconds
            tokens, spent = row.get(f"{role}/num_tokens"), seconds.get(f"learn_{role}", 0.0)
            if tokens is not None and spent > 0:
                found[f"speed/{role}/update"] = (tokens - self._learned[role]) / spent
                self._learned[role] = tokens
        return found


def peak_memory() -> dict[str, float]:
    """Return the most memory that this process has had, in MiB, and that of a GPU if it computes on one.

    Sandbox processes are others, and not counted.
    """
    found = {}
    with suppress(OSError):
        status = Path("/proc/self/status").read_bytes()  # the name may be no text
        if peak := re.search(rb"^VmHWM:\s*(\d+) kB", status, re.MULTILINE):
            found["memory/process_peak"] = int(peak[1]) * 1024 / _MIB
    torch = sys.modules.get("torch")  # who computes on a GPU has loaded it
    if torch is not None and torch.cuda.is_initialized():
        found["memory/gpu_peak"] = torch.cuda.max_memory_allocated() / _MIB
    return found


_STEPS = 3


_SIGNS = {
    "truncated": (0.5, "{value:.0%} of the {role}'s answers are cut off: raise {role}.sampling.max_completion_length"),
    "frac_reward_zero_std": (0.5, "{value:.0%} of the {role}'s groups have equal rewards, which teach nothing: take other problems, or more answers a group"),
    "sampling/sampling_logp_difference/mean": (0.1, "the engine's log probabilities of the {role}'s tokens differ by {value:.2f} from the trained model's: its weights may not follow"),
    "copied": (0.9, '{value:.0%} of the {role}\'s tests are copies of the examples: set tester_examples = "hidden"'),
}  # fmt: skip
"""Metric, after the name of the role -> the value above which it is a sign, and what is said then."""


def signs(rows: Iterable[Row]) -> list[str]:
    """Warnings about the health of a run, from its rows of metrics.jsonl in order."""
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
            for metric, (most, text) in _SIGNS.items():
                name = f"{role}/{metric}"
                if row.get(name) is None or name in self._said:
                    continue
                self._values[name] = [*self._values[name], row[name]][-_STEPS:]
                mean = sum(self._values[name]) / _STEPS
                if len(self._values[name]) == _STEPS and mean > most:
                    self._said.add(name)
                    found.append(f"Step {row['step']}: {text.format(role=role, value=mean)}.")
        return found
