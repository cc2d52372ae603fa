"""`codea1 rejudge`: the episodes of a finished run paid again, as after a change of rules."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.table import Table

from codea1_env.cli.errors import InputError, library_errors, user_input
from codea1_env.cli.parsing import SandboxLevel, parse
from codea1_env.cli.tables import progress_bar, say
from codea1_env.report.rejudging import Rejudged, changed_rules, rejudge
from codea1_env.sandbox import Sandbox
from codea1_env.support.logs import every_line
from codea1_env.training import RunError
from codea1_env.training.config import rules_of
from codea1_env.training.metrics import mean
from codea1_env.training.run_folder import EPISODES, read_config

_SHOWN = 10


@dataclass(frozen=True)
class RejudgeCommand:
    """Pay the logged episodes of a run again, and say what changes.

    A run logs one program of each problem and step. Without options the rules are those of the run: then nothing should
    change.
    """

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of the run."""
    rewards: Annotated[str | None, tyro.conf.arg(metavar="NAME|FILE.py:NAME")] = None
    """Who pays: a name in `codea1_env.rewards.REWARDS`, or a function of yours."""
    alpha: float | None = None
    """Share of validity in the tester's reward."""
    num_tests: int | None = None
    """Tests of a suite that count."""
    strict_paper: bool | None = None
    """Judge and pay as the release does."""
    wrong_oracle: Literal["correct", "drop"] | None = None
    """What becomes of tests that predict another value than the reference returns."""
    domain: Literal["signature", "any"] | None = None
    """Which arguments a test may use."""
    float_tolerance: float | None = None
    """Relative and absolute tolerance for floats; 0 compares exactly."""
    output: Annotated[Path | None, tyro.conf.arg(metavar="FILE.jsonl")] = None
    """A new file for the rewards of each episode, before and now."""
    json: bool = False
    """Print the summary as one JSON object."""
    sandbox_level: SandboxLevel = None


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 rejudge`; returns the exit code."""
    command = parse(RejudgeCommand, arguments, name="rejudge")
    if command.output is not None and command.output.exists():
        raise InputError(f"expect {command.output} to be a new file, actually: it exists")
    with user_input():
        config = read_config(command.run)
        paid = {
            "function": command.rewards,
            "alpha": command.alpha,
            "num_tests": command.num_tests,
            "strict_paper": command.strict_paper,
        }
        others = {
            name: getattr(command, name) for name in ("wrong_oracle", "domain", "float_tolerance")
        }
        if command.strict_paper is not None:  # what follows from it does so anew
            others = {"domain": None, "float_tolerance": None} | others
        rules = changed_rules(rules_of(config), paid, others)
    console = Console(stderr=True)
    found: list[Rejudged] = []
    try:
        with (
            library_errors(),
            Sandbox(level=command.sandbox_level) as sandbox,
            progress_bar(console, "episodes") as bar,
        ):
            lines = every_line(command.run / EPISODES)
            task = bar.add_task("", total=sum(1 for _ in lines), state="")
            said: list[str] = []
            found += rejudge(
                command.run, rules, sandbox, lambda n: bar.advance(task, n), said.append
            )
    except RunError as error:
        raise InputError(str(error)) from error
    for remark in filter(None, said):
        say(console, remark)
    if command.output is not None:
        rows = (json.dumps(each.row()) + "\n" for each in found)
        command.output.parent.mkdir(parents=True, exist_ok=True)
        command.output.write_text("".join(rows))
    _show(found, command)
    return 0


def _show(found: Sequence[Rejudged], command: RejudgeCommand) -> None:
    changed = [each for each in found if each.changed]
    testers = [pair for each in found for pair in each.tester]
    summary: dict[str, Any] = {
        "episodes": len(found),
        "changed": len(changed),
        "reward/coder/mean": [mean(each.coder[i] for each in found) for i in (0, 1)],
        "reward/tester/mean": [mean(pair[i] for pair in testers) for i in (0, 1)],
    }
    console = Console()
    if command.json:
        print(json.dumps(summary))
        return
    say(console, f"{len(changed)} of {len(found)} episodes are paid otherwise.")
    table = Table("mean reward", "before", "now", box=None)
    for name in ("coder", "tester"):
        shown = ["-" if each is None else f"{each:.4f}" for each in summary[f"reward/{name}/mean"]]
        table.add_row(name, *shown)
    console.print(table)
    for each in changed[:_SHOWN]:
        pairs = [("coder", each.coder), *(("tester", pair) for pair in each.tester)]
        texts = [
            f"{name} {_paid(pair[0])} -> {_paid(pair[1])}"
            for name, pair in pairs
            if pair[0] != pair[1]
        ]
        say(console, f"step {each.step}, {each.task_id}: {', '.join(texts)}")
    if len(changed) > _SHOWN:
        say(console, f"and {len(changed) - _SHOWN} more; --output FILE.jsonl writes them all")


def _paid(reward: float | None) -> str:
    return "-" if reward is None else f"{reward:.6g}"
