"""The model card of an exported player: what it was made of, how, and what was measured."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import codea1_env
from codea1_env.agents.models import DEFAULT_MODEL
from codea1_env.agents.smollm2 import HUB_ID, LICENCE
from codea1_env.evaluation.statistics import mean_over_problems
from codea1_env.problem_sets.sources import HUB_SOURCES
from codea1_env.rendering.display import fenced, in_line
from codea1_env.report.runs import NO_INFLUENCE, LoggedRun, is_number
from codea1_env.support.extras import require
from codea1_env.support.logs import every_line
from codea1_env.training.config import TrainConfig
from codea1_env.training.run_folder import HELD_OUT
from codea1_env.training.settings import flat, to_toml

_HUB_NAME = r"[\w.-]+/[\w.-]+"
_FIGURES = {
    "pass_rate": "held-out golden tests that the coder's programs pass",
    "kill_rate": "held-out mutants that the tester's suites kill",
    "copier_kill_rate": "the same of a tester that copies the examples of the problem's text",
    "new_kill_rate": "held-out mutants that copies do not kill, and the suites do",
}


def model_card(run: LoggedRun, role: str, step: int, kind: str) -> Any:
    """Make the `huggingface_hub.ModelCard` of a player at a checkpoint.

    Nothing is looked up in a network. What is not known, such as the licence of a base model that came without its own card,
    the card leaves out. `kind` is "adapter" or "model".
    """
    hub = require("huggingface_hub")
    name = run.config.model_of(role)
    base, licence = base_model(name), licence_of(name)
    data = hub.ModelCardData(
        base_model=base,
        datasets=_data_sets(run.config.problems),
        library_name="peft" if kind == "adapter" else "transformers",
        license=licence,
        pipeline_tag="text-generation",
        tags=["code-a1", "reinforcement-learning", "code", "test-generation"],
    )
    return hub.ModelCard(f"---\n{data.to_yaml()}\n---\n\n{_text(run, role, step, kind, licence)}")


def base_model(name: str) -> str | None:
    """Return the id of a model on the hub; None for a folder of this machine.

    Example:
        >>> base_model("smollm2-135m"), base_model("owner/name"), base_model("/models/mine")
        ('HuggingFaceTB/SmolLM2-135M-Instruct', 'owner/name', None)
    """
    if name == DEFAULT_MODEL:
        return HUB_ID
    here = Path(name).expanduser().exists()
    return name if re.fullmatch(_HUB_NAME, name, re.ASCII) and not here else None


def licence_of(name: str) -> str | None:
    """Return the licence that a model's own card names, where that lies on this machine; None if it is not known."""
    base = base_model(name)
    if base == HUB_ID:
        return LICENCE
    hub = require("huggingface_hub")
    card = Path(name).expanduser() / "README.md"
    if base is not None:
        found = hub.try_to_load_from_cache(base, "README.md")
        card = Path(found) if isinstance(found, str) else Path()
    if not card.is_file():
        return None
    try:
        licence = hub.ModelCard.load(str(card), ignore_metadata_errors=True).data.get("license")
    except (ValueError, OSError, require("yaml").YAMLError):  # a damaged card says nothing
        return None
    return licence if isinstance(licence, str) else None


def _data_sets(problems: str) -> list[str] | None:
    source = HUB_SOURCES[problems].path if problems in HUB_SOURCES else problems
    known = re.fullmatch(_HUB_NAME, source, re.ASCII) and not Path(source).exists()
    return [source] if known and not source.endswith((".jsonl", ".json", ".gz")) else None


def _text(run: LoggedRun, role: str, step: int, kind: str, licence: str | None) -> str:
    config = run.config
    name = config.model_of(role)
    base = base_model(name)
    loaded = (
        'PeftModel.from_pretrained(base, "DIR")'
        if kind == "adapter"
        else 'AutoModelForCausalLM.from_pretrained("DIR")'
    )
    parts = [
        f"# {role.capitalize()} of a Code-A1 run",
        f"A language model that was trained to {_DOES[role]}, against another player who "
        f"{_AGAINST[role]}: the two-player game of codea1_env (version {codea1_env.__version__} exported it). "
        f"This is {'a LoRA adapter' if kind == 'adapter' else 'a whole model'}, after step {step} of "
        f"{config.max_steps}; load it with `{loaded}`.",
        "## Made of",
        f"- Base model: {base if base else 'a local folder, ' + in_line(Path(name).name)}",
        f"- Data: {in_line(config.problems)}"
        + (f", split {in_line(config.split)}" if config.split else ""),
        f"- Licence of the base model: {licence or 'not known here; see where it came from'}. "
        "That of the data may be another one.",
        "## Command",
        "    codea1 train --config run.toml",
        "with this in `run.toml`; what it does not name has its default:",
        fenced(to_toml(_differing(config)).strip() or "# nothing", "toml"),
        "## Figures",
        *_figures(run, step),
        "## Limits",
        "It writes programs or tests for single Python functions, as the problems above ask for. What it writes is "
        "untrusted: run it in a sandbox.",
    ]
    return "\n\n".join(parts) + "\n"


_DOES = {"coder": "write programs that pass tests", "tester": "write tests that break programs"}
_AGAINST = {"coder": "writes tests to break them", "tester": "writes those programs"}


def _differing(config: TrainConfig) -> dict[str, Any]:
    defaults = flat(TrainConfig())
    table: dict[str, Any] = {}
    for name, value in flat(config).items():
        if value == defaults.get(name) or (name in NO_INFLUENCE and name != "seed"):
            continue
        *blocks, last = name.split(".")
        place = table
        for block in blocks:
            place = place.setdefault(block, {})
        place[last] = value
    return table


def _figures(run: LoggedRun, step: int) -> list[str]:
    measured = _held_out(run.path / HELD_OUT, step)
    if not measured:
        return ["Nothing was measured on what is held back."]
    first, last = min(measured), max(measured)
    lines = [f"| | step {first} | step {last} | problems |", "|---|---|---|---|"]
    for name, label in _FIGURES.items():
        cells = []
        for at in (first, last):
            values = [row[name] for row in measured[at].values() if is_number(row.get(name))]
            cells.append(str(mean_over_problems(values)) if values else "-")
        lines.append(f"| {label} | {' | '.join(cells)} | {len(values)} |")
    return [
        "\n".join(lines),
        "Means over problems that were trained on, of tests and mutants that no reward used, with 95% bootstrap "
        "intervals over these problems. They are of one run: another seed may give others. What copying the examples "
        "kills needs no skill.",
    ]


def _held_out(path: Path, step: int) -> dict[int, dict[str, Mapping[str, Any]]]:
    found: dict[int, dict[str, Mapping[str, Any]]] = {}
    for row, _ in every_line(path):
        if row is not None and type(row.get("step")) is int and row["step"] <= step:
            found.setdefault(row["step"], {})[str(row.get("task_id"))] = row
    return found
