"""What an update of a language model costs, beside a plain TRL GRPOTrainer on the same rows.

    python benchmarks/llm.py [--model smollm2-135m] [--rows 16] [--updates 3] [--prompt 300] [--answer 60]

Both train the same adapter on the same random tokens. The plain trainer runs its own `train()` with a
`rollout_func` that returns the rows at once; ours is driven update by update. The first update of each, which
also warms up, does not count.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
import time
from typing import Any

import numpy as np
from datasets import Dataset
from peft import LoraConfig
from rich.console import Console
from rich.table import Table
from trl import GRPOTrainer

from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.agents.llm.trainer_drive import TrainerDrive, TrainingRow
from codea1_env.agents.llm.trainer_settings import TrainerSetup, UpdateShape
from codea1_env.agents.models import load_model, load_tokenizer, resolve

Rows = list[TrainingRow]


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--updates", type=int, default=3)
    parser.add_argument("--prompt", type=int, default=300)
    parser.add_argument("--answer", type=int, default=60)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    batches = [
        random_rows(rng, given.rows, given.prompt, given.answer) for _ in range(given.updates + 1)
    ]
    plain = plain_seconds(given.model, batches)[1:]
    driven = driven_seconds(given.model, batches)[1:]
    table = Table("", "seconds an update, median", "fastest")
    for name, seconds in (("plain GRPOTrainer", plain), ("driven by this package", driven)):
        table.add_row(name, f"{statistics.median(seconds):.2f}", f"{min(seconds):.2f}")
    console = Console()
    console.print(table)
    ratio = statistics.median(driven) / statistics.median(plain)
    console.print(f"ratio of medians: {ratio:.2f}  ({given})", highlight=False)


def random_rows(rng: np.random.Generator, rows: int, prompt: int, answer: int) -> Rows:
    """Draw rows in groups of 4, with answers of different length."""
    made = []
    for index in range(rows):
        length = int(rng.integers(answer // 2, answer + 1))
        ids = rng.integers(100, 1000, prompt + length).tolist()
        made.append(TrainingRow(tuple(ids[:prompt]), tuple(ids[prompt:]), None, float(index % 4)))
    return made


def settings(folder: str, batches: list[Rows]) -> Any:
    """Return the same configuration for both."""
    shape = UpdateShape(len(batches[0]) // 4, 4, len(batches))
    fields = {"gradient_checkpointing": False, "learning_rate": 1e-5}
    return TrainerSetup(shape, SamplingConfig(), fields).config(0, folder)


def adapter() -> LoraConfig:
    """Return the adapter that both train."""
    return LoraConfig(r=16, lora_alpha=32, target_modules="all-linear")


def plain_seconds(name: str, batches: list[Rows]) -> list[float]:
    """Seconds from one request for rows to the next."""
    folder = resolve(name)
    left, times = list(batches), []

    def rollout(prompts: list[Any], trainer: Any) -> dict[str, Any]:
        times.append(time.perf_counter())
        rows = left.pop(0)
        return {
            "prompt_ids": [list(row.prompt_ids) for row in rows],
            "completion_ids": [list(row.completion_ids) for row in rows],
            "logprobs": None,
            "earned": [row.reward for row in rows],
        }

    def reward(earned: list[float], **_: Any) -> list[float]:
        return earned

    with tempfile.TemporaryDirectory() as output:
        args = settings(output, batches)
        GRPOTrainer(
            load_model(folder),
            reward,
            args,
            Dataset.from_dict({"prompt": [""] * (len(batches[0]) // 4)}),
            processing_class=load_tokenizer(folder),
            peft_config=adapter(),
            rollout_func=rollout,
        ).train()
    times.append(time.perf_counter())
    return [after - before for before, after in itertools.pairwise(times)]


def driven_seconds(name: str, batches: list[Rows]) -> list[float]:
    """Seconds of each update."""
    folder = resolve(name)
    seconds = []
    with tempfile.TemporaryDirectory() as output:
        drive = TrainerDrive(
            GRPOTrainer,
            load_model(folder),
            settings(output, batches),
            load_tokenizer(folder),
            peft_config=adapter(),
        )
        for rows in batches:
            started = time.perf_counter()
            drive.update(rows)
            seconds.append(time.perf_counter() - started)
    return seconds


if __name__ == "__main__":
    main()
