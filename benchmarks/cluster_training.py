"""What it saves that both roles learn at the same time on a cluster, beside one after the other.

    python benchmarks/cluster_training.py --steps 8

Two nodes on this machine, a process of one thread for each role, a model with random weights. Steps alternate between
both ways, in one run; an update's wall-clock time is measured where the loop is. On a machine with fewer idle cores than
roles there is nothing to save. Needs the extras llm and ray.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from statistics import median
from typing import Any

from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.agents.models import load_tokenizer, resolve
from codea1_env.training import PlayerConfig, TesterConfig, TrainConfig, loop, train
from codea1_env.training.lessons import Lesson
from codea1_env.training.teaching import Taught, teach

SAMPLING = SamplingConfig(max_prompt_length=1000, max_completion_length=24)


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--model", help="a real one, or the tokenizer for random weights")
    parser.add_argument("--hidden", type=int, default=256, help="0 for the real model's weights")
    parser.add_argument("--layers", type=int, default=8)
    arguments = parser.parse_args()
    os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_worker_niceness": "0"}
    import ray
    from ray.cluster_utils import Cluster

    seconds: dict[str, list[float]] = {"at once": [], "in turn": []}

    def alternating(
        lessons: Mapping[str, Lesson],
        phase: Callable[[str], AbstractContextManager[None]],
        elsewhere: Collection[str] = (),
    ) -> Taught:
        count = sum(map(len, seconds.values()))
        way = "at once" if count % 2 else "in turn"
        started = time.perf_counter()
        taught = teach(lessons, phase, elsewhere if way == "at once" else ())
        seconds[way].append(time.perf_counter() - started)
        return taught

    loop_module: Any = loop
    loop_module.teach = alternating
    head = {"num_cpus": 0, "include_dashboard": False, "node_ip_address": "127.0.0.2"}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        for number in (3, 4):
            cluster.add_node(num_cpus=1, node_ip_address=f"127.0.0.{number}")
        with tempfile.TemporaryDirectory() as folder:
            model = str(resolve(arguments.model or "smollm2-135m"))
            if arguments.hidden:
                random = Path(folder) / "model"
                make_model(random, Path(model), arguments.hidden, arguments.layers)
                model = str(random)
            learner: dict[str, Any] = {"learning_rate": 1e-4, "sampling": SAMPLING}
            train(
                TrainConfig(
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
            )
    finally:
        ray.shutdown()
        cluster.shutdown()
    print(f"{os.cpu_count()} cores, {platform.platform()}, Python {platform.python_version()}")
    found = {way: each[1:] for way, each in seconds.items()}  # the first of each warms up
    for way, each in found.items():
        print(
            f"{way}: {median(each):.2f} s (from {min(each):.2f} to {max(each):.2f}) in {len(each)} steps"
        )
    pairs = [a / b for a, b in zip(found["at once"], found["in turn"], strict=True)]
    print(
        f"at once / in turn: {median(pairs):.2f}, median of {len(pairs)} pairs; load {os.getloadavg()[0]:.1f}"
    )


if __name__ == "__main__":
    main()
