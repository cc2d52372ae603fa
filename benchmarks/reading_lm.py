"""Does a language model learn to read a program and break it, one that it has never met?

    python benchmarks/reading_lm.py --output-dir runs/reading            # six runs, one after the other; goes on where it was
    python benchmarks/reading_lm.py --output-dir runs/reading --only blind    # the other three beside them, in another shell
    python benchmarks/reading_lm.py --output-dir runs/reading --table    # the table of what is done

SmolLM2-135M (LoRA, GRPO) learns to test, against a script that plants faults in one-line functions: with the program in
view, and blind. Before and after training it meets a panel of programs that it has never met: of problems of training and of
others, with kinds of faults of training and with others. Scripts meet the same panel: one that submits the examples, one that
tests every number of the program's text.

Expected, written before the first run (docs/results.md says what came of it):

- In view, the rows `a number of the text` rise from below 0.25 to above 0.8 with each seed, also for other problems and kinds.
- Blind, no row of planted faults rises above 0.15 when the panel is shown blind.
- The script that tests every number has 1.0 on these rows: what is learned there is to copy, and no more.
- `next to a number of the text` rises (one of its kinds is trained on); `to be worked out` stays below 0.15.
- Wrong programs that a model wrote, and mutants, are not broken more often than before.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.evaluation.panel import ROWS, PanelCount
from codea1_env.training import PlayerConfig, TesterConfig, TrainConfig, train
from codea1_env.training.panel_table import PLAYERS, cell, counts_of

TESTER = TesterConfig(
    "llm",
    learning_rate=2e-4,
    sampling=SamplingConfig(
        temperature=0.9, max_prompt_length=512, max_completion_length=80, stop=("\n```\n",)
    ),
    trainer={"lr_scheduler_type": "constant", "gradient_checkpointing": False},
)
BASE = TrainConfig(
    problems="planted",
    model="smollm2-135m",
    tester_examples="hidden",
    coder=PlayerConfig("planted"),
    tester=TESTER,
    problems_per_step=2,
    num_generations=2,
    num_suites=8,
    num_tests=4,
    alpha=0.2,
    use_book=False,
    eval_steps=1000,
    eval_samples=1,
    eval_trained=4,
    eval_problems=0,
    dtype="float32",
)
WAYS = {"in view": False, "blind": True}


def main() -> None:
    """Run what is not done, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output-dir", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--panel-size", type=int, default=24)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", choices=sorted(WAYS))
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    console = Console(width=180)
    for seed in range(0 if given.table else given.seeds):
        for way, black_box in WAYS.items():
            if given.only in (None, way):
                config = replace(
                    BASE,
                    output_dir=folder_of(given.output_dir, way, seed),
                    max_steps=given.steps,
                    panel_size=given.panel_size,
                    threads=given.threads,
                    generation_threads=given.threads,
                    black_box=black_box,
                    seed=seed,
                )
                run(config, console)
    console.print(table(given.output_dir, given.seeds))


def folder_of(root: Path, way: str, seed: int) -> Path:
    """Return the folder of a run."""
    return root / f"{way.replace(' ', '_')}_{seed}"


def run(config: TrainConfig, console: Console) -> None:
    """Train, or go on; a run that is finished is left as it is."""
    folder = config.output_dir
    assert folder is not None
    begun = (folder / "config.toml").exists()
    done = [json.loads(line)["step"] for line in (folder / "metrics.jsonl").open()] if begun else []
    if config.max_steps not in done:
        train(config, resume=begun, console=console)


def table(root: Path, seeds: int) -> Table:
    """Add up the panels of all seeds."""
    columns = {
        "untrained": ("in view", "before"),
        "trained in view": ("in view", "after"),
        "trained blind": ("blind", "after"),
        **{name: ("in view", name) for name in PLAYERS},
    }
    sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for column, (way, name) in columns.items():
        for row, count in _counts(root, way, name, seeds):
            sums[row, column][0] += count.hits
            sums[row, column][1] += count.of
    found = Table("", title=f"{seeds} seeds: share, 95% interval, counts")
    for column in columns:
        found.add_column(column, justify="right")
    for row, label in ROWS.items():
        cells = (sums.get((row, column)) for column in columns)
        found.add_row(label, *(cell(PanelCount(*each)) if each else "-" for each in cells))
    return found


def _counts(root: Path, way: str, name: str, seeds: int) -> Iterator[tuple[str, PanelCount]]:
    for seed in range(seeds):
        path = folder_of(root, way, seed) / "panel.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        for row, columns in counts_of(map(json.loads, lines)).items():
            if name in columns:
                yield row, columns[name]


if __name__ == "__main__":
    main()
