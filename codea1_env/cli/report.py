"""`codea1 report`, `codea1 export`, `codea1 rejudge`: what becomes of runs that have been."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from codea1_env.cli.errors import InputError, library_errors, user_input
from codea1_env.cli.parsing import SandboxLevel, parse
from codea1_env.cli.tables import progress_bar, say
from codea1_env.rendering.display import counted_of
from codea1_env.report.rejudging import Rejudged, changed_rules, rejudge
from codea1_env.sandbox import Sandbox
from codea1_env.support.extras import MissingExtraError
from codea1_env.support.logs import every_line, write_whole
from codea1_env.training import RunError
from codea1_env.training.checkpoints import find_weights, step_of
from codea1_env.training.config import rules_of
from codea1_env.training.metrics import mean
from codea1_env.training.run_folder import EPISODES, read_config


@dataclass(frozen=True)
class ReportCommand:
    """Write one HTML page, which needs no network and no other file.

    Runs that differ only by their seed are one group, with intervals over seeds; other groups stand beside each other.
    Of a run that is still going the page shows what it has logged so far.
    """

    folders: Annotated[
        tuple[Path, ...],
        tyro.conf.Positional,
        tyro.conf.arg(metavar="FOLDER ...", help_behavior_hint="(one or more)"),
    ]
    """Folders of runs (`codea1 train`), and of `codea1 bench algorithms`, `codea1 bench diagnose` and `codea1 eval`."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="FILE")] = Path("report.html")
    """The page."""
    force: bool = False
    """Write over --output if it exists."""


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 report`; returns the exit code."""
    command = parse(ReportCommand, arguments, name="report")
    if not command.folders:
        raise InputError("expect the folder of a run, a benchmark or an evaluation, actually: none")
    if command.output.is_dir():
        raise InputError(f"expect --output to be a file, actually {command.output} is a folder")
    if command.output.exists() and not command.force:
        raise InputError(
            f"expect --output to be a new file, actually {command.output} exists. Name another, or add --force"
        )
    if not command.output.absolute().parent.is_dir():
        raise InputError(
            f"expect --output to be a file in a folder, actually there is no {command.output.parent}"
        )
    # Here, so that a wrong word is told before all that is read.
    from codea1_env.report.document import check_extras, document
    from codea1_env.report.folders import ReportError, read_folders

    try:
        check_extras()
        found = read_folders(command.folders)
        said = "Reading " + ", ".join(map(str, command.folders))
        with Console(stderr=True).status(escape(said)):  # nothing, where no terminal is
            page = document(found)
    except (MissingExtraError, ReportError) as error:
        raise InputError(str(error)) from error
    write_whole(command.output, page)
    say(Console(), f"Wrote {command.output} ({len(page) / 1e6:.1f} MB)")
    return 0


_TOKENIZER = ("*token*.json", "vocab*", "merges.txt", "tokenizer.model", "chat_template*")
_EPISODES = 1000
"""Episodes of a log, all of which inspect_ai keeps in memory while it writes them."""


@dataclass(frozen=True)
class ExportCommand:
    """Copy a player's adapter or model out of a run, or its episodes.

    An adapter goes to DIR as `peft.PeftModel.from_pretrained(base, DIR)` loads it, a whole model as
    `transformers.AutoModelForCausalLM.from_pretrained(DIR)` does, with a model card. Episodes go to a log in DIR, which
    `inspect view --log-dir DIR` shows, or to a data set with a card: "sft" has answers that did their work, "preference"
    pairs of answers to one prompt.
    """

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of the run."""
    output_dir: Annotated[Path, tyro.conf.arg(metavar="DIR")]
    """A new folder; for episodes it may hold other logs."""
    format: Literal["model", "inspect", "sft", "preference"] = "model"
    """What is exported: a player, episodes as a log of inspect_ai, or a data set of both players' answers."""
    file: Literal["jsonl", "parquet"] | None = None
    """The kind of file of a data set; None for jsonl."""
    role: Literal["coder", "tester"] | None = None
    """The player; None for the coder."""
    step: int | None = None
    """The checkpoint; None for the latest."""
    max_episodes: int | None = None
    """Episodes of a log; of more, so many are drawn from all steps alike. None for 1000."""


def run_export(arguments: Sequence[str]) -> int:
    """Run `codea1 export`; returns the exit code."""
    command = parse(ExportCommand, arguments, name="export")
    fits = {"model": ("role", "step"), "inspect": ("max_episodes",)}.get(command.format, ("file",))
    for name in ("role", "step", "max_episodes", "file"):
        if name not in fits and getattr(command, name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"expect no {option} with --format {command.format}: leave it out")
    try:
        if command.format == "model":
            text = _export_model(command)
        elif command.format == "inspect":
            text = _export_episodes(command)
        else:
            text = _export_data(command, command.format)
    except (RunError, MissingExtraError, FileExistsError) as error:
        raise InputError(str(error)) from error
    say(Console(), text)
    return 0


def _export_episodes(command: ExportCommand) -> str:
    from codea1_env.report.inspect_log import write_inspect_log
    from codea1_env.report.runs import read_run

    most = _EPISODES if command.max_episodes is None else command.max_episodes
    if most < 1:
        raise InputError(f"expect --max-episodes to be 1 or more, actually: {most}")
    if command.output_dir.is_file():
        raise InputError(
            f"expect --output-dir to be a folder, actually {command.output_dir} is a file"
        )
    found = read_run(command.run, command.run.resolve().name)
    written = write_inspect_log(found, command.output_dir, most)
    return f"Wrote {written.path} ({counted_of(written.episodes, written.total, 'episodes')})"


def _export_data(command: ExportCommand, kind: Literal["sft", "preference"]) -> str:
    from codea1_env.report.rollout_data import write_rollouts
    from codea1_env.report.runs import read_run

    if command.output_dir.exists():
        raise InputError(f"expect {command.output_dir} to be a new folder, actually: it exists")
    run = read_run(command.run, command.run.resolve().name)
    said: list[str] = []
    rows = write_rollouts(run, kind, command.output_dir, command.file or "jsonl", said.append)
    return " ".join([f"Wrote {command.output_dir} ({rows} rows).", *filter(None, said)])


def _export_model(command: ExportCommand) -> str:
    from codea1_env.report.model_card import model_card
    from codea1_env.report.runs import read_run

    role = command.role or "coder"
    source = find_weights(command.run, role, command.step)
    if command.output_dir.exists():
        raise InputError(f"expect {command.output_dir} to be a new folder, actually: it exists")
    run = read_run(command.run, command.run.resolve().name)
    card = model_card(run, role, step_of(source.parents[1]), source.name)
    shutil.copytree(source, command.output_dir)
    _copy_tokenizer(source, command.output_dir)
    card.save(command.output_dir / "README.md")
    return f"Wrote {command.output_dir}"


def _copy_tokenizer(weights: Path, target: Path) -> None:
    """Put the files of the tokenizer beside an adapter, as peft's users expect, where its base is a folder here."""
    with suppress(OSError, ValueError, KeyError):
        settings = json.loads((weights / "adapter_config.json").read_text(encoding="utf-8"))
        for pattern in _TOKENIZER:
            for file in Path(settings["base_model_name_or_path"]).glob(pattern):
                shutil.copy(file, target / file.name)


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


def run_rejudge(arguments: Sequence[str]) -> int:
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
    _show_rejudged(found, command)
    return 0


def _show_rejudged(found: Sequence[Rejudged], command: RejudgeCommand) -> None:
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
    say(console, f"Paid otherwise: {counted_of(len(changed), len(found), 'episodes')}.")
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
