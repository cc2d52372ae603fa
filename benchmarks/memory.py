"""The memory table of `codea1 train --dry-run` beside the memory that a real model takes on a processor.

    python benchmarks/memory.py

Makes both players of a preset, lets the tester write answers of full length to prompts of full length, and learn from such
ones once. What the process has at most in each phase is compared with the plan of the same sizes.
Linux only: the peak is that of /proc.
"""

from __future__ import annotations

import argparse
import gc
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from rich.console import Console
from rich.table import Table

from codea1_env.agents.llm import transformers_backend
from codea1_env.agents.llm.memory import shape_of
from codea1_env.agents.llm.trainer_drive import TrainingRow
from codea1_env.agents.models import resolve
from codea1_env.cli.train_settings import SourcesAndFolder, base_settings
from codea1_env.training import TrainConfig
from codea1_env.training.language_models import LanguageModels
from codea1_env.training.memory_plan import Devices, plan_memory
from codea1_env.training.settings import replaced


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--preset", default="smollm2-cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--problems", type=int, default=4, help="problems of a step")
    parser.add_argument("--rows", type=int, default=64, help="answers written at the same time")
    options = parser.parse_args()
    base = base_settings(SourcesAndFolder(preset=options.preset))
    chosen = {"problems_per_step": options.problems, "generation_batch": options.rows}
    chosen |= dict.fromkeys(("dtype", "generation_dtype"), options.dtype)
    chosen |= dict.fromkeys(("threads", "generation_threads"), 2)
    config = replaced(base, {"time_budget": None, **chosen})
    shape = shape_of(resolve(config.model))
    assert shape is not None
    plan = plan_memory(config, {config.model: shape}, Devices(1, float("inf"), gpu=False))
    measured = measure(config)
    table = Table(title=f"{config.model}, {options.dtype}, peak of the process in GB")
    for column in ("phase", "planned", "measured", "planned / measured"):
        table.add_column(column, justify="left" if column == "phase" else "right")
    for phase, peak in measured.items():
        planned = plan.needed(phase)
        table.add_row(phase, f"{planned / 1e9:.2f}", f"{peak / 1e9:.2f}", f"{planned / peak:.2f}")
    Console().print(table)


def measure(config: TrainConfig) -> dict[str, float]:
    """Phase -> bytes that the process has at most in it."""
    models = LanguageModels(config, config.problems_per_step)
    models.player("coder", 1)
    tester: Any = models.player("tester", 2)
    rng = np.random.default_rng(0)

    def text(length: int) -> tuple[int, ...]:
        return tuple(map(int, rng.integers(100, 40_000, length)))

    sampling = config.tester.sampling
    prompt, answer = sampling.max_prompt_length, sampling.max_completion_length
    size, number = min(config.num_suites, config.eval_samples), config.generation_batch
    prompts = [text(prompt) for _ in range(-(-number // size)) for _ in range(size)][:number]
    backend = tester.agent.backend
    endless = mock.patch.object(type(backend), "_end_ids", return_value=set())
    with mock.patch.object(transformers_backend, "encode_all", return_value=prompts), endless:
        _begin()
        backend.generate([[]] * number, replace(sampling, stop=()), 0, tester.agent.adapter)
    # Before the updates: what those have freed, the process keeps.
    found = {"tester writes": _peak()}
    rows = []
    for _ in range(config.problems_per_step):
        question = text(prompt)
        rows += [
            TrainingRow(question, text(answer), (-1.0,) * answer, float(i % 2))
            for i in range(config.num_suites)
        ]
    _begin()
    tester.drive.update(rows)
    found["tester learns"] = _peak()
    return found


def _begin() -> None:
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew


def _peak() -> float:
    found = re.search(r"^VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return 1024.0 * int(found[1])


if __name__ == "__main__":
    main()
