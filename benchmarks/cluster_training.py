"""What it saves on a cluster that both roles learn at the same time, and that the next step is played meanwhile.

    python benchmarks/cluster_training.py --steps 8
    python benchmarks/cluster_training.py --steps 8 --staleness

Two nodes on this machine, a process of one thread for each role, a model with random weights. Updates of both roles at
once and one after the other alternate in one run. With --staleness whole steps with max_staleness 0 and 1 (for which
each role has another process, that writes) alternate in short runs. Times are measured where the loop is. On a machine
with fewer idle cores than processes there is nothing to save. Needs the extras llm and ray.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from statistics import median
from typing import Any

from cluster import nodes_here

from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.agents.models import load_tokenizer, resolve
from codea1_env.support.logs import read_rows
from codea1_env.support.machine import this_machine
from codea1_env.training import PlayerConfig, TesterConfig, TrainConfig, loop, train
from codea1_env.training.lessons import Lesson, Taught, teach
from codea1_env.training.run_folder import TIMINGS
from codea1_env.training.settings import replaced


def make_model(folder: Path, tokenizer_of: Path, hidden: int, layers: int) -> None:
    """Write a model with random weights and the tokenizer of another one."""
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = load_tokenizer(tokenizer_of)
    tokenizer.save_pretrained(folder)
    shape = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=hidden, intermediate_size=3 * hidden,
        num_hidden_layers=layers, num_attention_heads=hidden // 64, num_key_value_heads=hidden // 64,
        max_position_embeddings=4096, pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id, bos_token_id=None, tie_word_embeddings=True,
    )  # fmt: skip
    LlamaForCausalLM(shape).save_pretrained(folder)


def whole_steps(config: TrainConfig, number: int, stale: int, folder: Path) -> list[float]:
    """Wall-clock times of the steps of a run.

    Without the first, which warms up, and the last, beside which nothing is played.
    """
    changes = {"max_steps": number, "max_staleness": stale, "output_dir": folder}
    train(replaced(config, changes))
    rows = list(read_rows(folder / TIMINGS))[1:-1]
    phases = ("coder", "tester", "judge", "learn", "wait")
    return [sum(row.get(f"seconds/{phase}", 0.0) for phase in phases) for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--model", help="a real one, or the tokenizer for random weights")
    parser.add_argument("--hidden", type=int, default=256, help="0 for the real model's weights")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--staleness", action="store_true")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each max_staleness")
    parser.add_argument("--tokens", type=int, default=24, help="of an answer")
    arguments = parser.parse_args()
    seconds: dict[str, list[float]] = {}
    names = (
        ("max_staleness 1", "max_staleness 0") if arguments.staleness else ("at once", "in turn")
    )

    def alternating(
        lessons: Mapping[str, Lesson],
        phase: Callable[[str], AbstractContextManager[None]],
        elsewhere: Collection[str] = (),
    ) -> Taught:
        way = names[sum(map(len, seconds.values())) % 2]
        started = time.perf_counter()
        taught = teach(lessons, phase, elsewhere if way == "at once" else ())
        seconds.setdefault(way, []).append(time.perf_counter() - started)
        return taught

    with nodes_here() as cluster:
        for number in (3, 4):
            cluster.add_node(num_cpus=2, node_ip_address=f"127.0.0.{number}")
        with tempfile.TemporaryDirectory() as folder:
            model = str(resolve(arguments.model or "smollm2-135m"))
            if arguments.hidden:
                random = Path(folder) / "model"
                make_model(random, Path(model), arguments.hidden, arguments.layers)
                model = str(random)
            sampling = SamplingConfig(
                max_prompt_length=1000, max_completion_length=arguments.tokens
            )
            learner: dict[str, Any] = {"learning_rate": 1e-4, "sampling": sampling}
            config = TrainConfig(
                model=model,
                max_problems=2,
                problems_per_step=2,
                num_generations=4,
                num_suites=4,
                coder=PlayerConfig("llm", **learner),
                tester=TesterConfig("llm", **learner),
                dtype="float32",
                threads=1,
                max_steps=2 * arguments.steps + 2,
                eval_steps=1000,
                eval_samples=1,
                eval_problems=0,
                save_steps=1000,
                workers=1,
                engine="ray",
                address=cluster.address,
                output_dir=Path(folder) / "run",
            )
            if arguments.staleness:
                for number in range(2 * arguments.rounds):
                    stale = 1 - number % 2
                    steps = whole_steps(
                        config, arguments.steps + 2, stale, Path(folder) / f"{number}"
                    )
                    seconds.setdefault(names[number % 2], []).extend(steps)
            else:
                loop_module: Any = loop
                loop_module.teach = alternating
                train(config)
                # The first of each warms up.
                seconds = {way: seconds[way][1:] for way in names}
    print(this_machine())
    for way, each in seconds.items():
        print(
            f"{way}: {median(each):.2f} s (from {min(each):.2f} to {max(each):.2f}) in {len(each)} steps"
        )
    first, second = (seconds[way] for way in names)
    pairs = [a / b for a, b in zip(first, second, strict=True)]
    print(
        f"{' / '.join(names)}: {median(pairs):.2f}, median of {len(pairs)} pairs; load {os.getloadavg()[0]:.1f}"
    )


if __name__ == "__main__":
    main()
