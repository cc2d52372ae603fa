"""Tokens per second of generation on this processor: ours beside `generate` of transformers, by turns.

    python benchmarks/generation.py [--rounds 5] [--threads 2] [--dtype float32]
    python benchmarks/generation.py --busy 1      # beside one process that computes all the time
    GOMP_SPINCOUNT=300000 python benchmarks/generation.py --busy 1      # threads that wait as torch's do by themselves

SmolLM2 with an adapter answers the prompts of a step of the preset smollm2-cpu: 8 programs to 2 problems, and 32 suites
to 8 programs. The limit beside them is how often the memory could deliver all weights in a second, times the rows.
"""

from __future__ import annotations

import argparse
import copy
import os
import statistics
import time
from contextlib import nullcontext
from typing import Any

from codea1_env.support.start import spin_briefly

spin_briefly()

import torch  # noqa: E402
from attack_repetitions import busy  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from codea1_env import load_problems  # noqa: E402
from codea1_env.agents.llm.agent import LLMAgent  # noqa: E402
from codea1_env.agents.llm.completions import SamplingConfig, encode_chat  # noqa: E402
from codea1_env.agents.llm.computing import Dtype, fastest_format  # noqa: E402
from codea1_env.agents.llm.transformers_backend import TransformersBackend  # noqa: E402
from codea1_env.agents.models import load_model, load_tokenizer, resolve  # noqa: E402
from codea1_env.spaces import observe  # noqa: E402

SAMPLING = SamplingConfig(
    temperature=0.9, max_prompt_length=512, max_completion_length=96, stop=("\n```\n",)
)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default=fastest_format())
    parser.add_argument("--busy", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    agent, model = player(given.dtype, given.threads)
    merged = copy.deepcopy(model).merge_and_unload().to(getattr(torch, given.dtype)).eval()
    table = Table("", "ours, tokens/s", "transformers", "ratio", "memory's limit")
    with busy(given.busy) if given.busy else nullcontext():
        for role, chats in (("coder", programs(agent)), ("tester", suites(agent))):
            pairs = [(rate(agent, chats), plain_rate(merged, chats)) for _ in range(given.rounds)]
            ours, plain = (statistics.median(rates) for rates in zip(*pairs, strict=True))
            most = len(chats) * reads_per_second(model)
            table.add_row(role, f"{ours:.1f}", f"{plain:.1f}", f"{ours / plain:.2f}", f"{most:.0f}")
    console = Console()
    console.print(table)
    spins = os.environ.get("GOMP_SPINCOUNT")
    console.print(f"medians of {given.rounds}; GOMP_SPINCOUNT={spins}; {given}", highlight=False)


def player(dtype: Dtype, threads: int) -> tuple[LLMAgent, Any]:
    """Return SmolLM2 with an adapter as training has it, and the model itself."""
    from peft import LoraConfig, get_peft_model

    folder = resolve("smollm2-135m")
    model = load_model(folder, dtype=dtype)
    model = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, target_modules="all-linear"))
    backend = TransformersBackend(
        model, load_tokenizer(folder), compute_dtype=dtype, threads=threads
    )
    return LLMAgent(backend, SAMPLING, 0, adapter="default"), model


def programs(agent: LLMAgent) -> list[Any]:
    """Chats of 8 programs."""
    return [agent.chat(observe(each)) for each in load_problems("starter")[:2] for _ in range(4)]


def suites(agent: LLMAgent) -> list[Any]:
    """Chats of 32 suites."""
    return [
        agent.chat(observe(each, code=f"{each.reference}\n# {number}", turn=1))
        for each in load_problems("starter")[:2]
        for number in range(4)
        for _ in range(4)
    ]


def rate(agent: LLMAgent, chats: list[Any]) -> float:
    """Tokens per second of one call of ours."""
    started = time.perf_counter()
    answers = agent.backend.generate(chats, SAMPLING, 7, agent.adapter)
    return sum(len(each.completion_ids) for each in answers) / (time.perf_counter() - started)


def plain_rate(model: Any, chats: list[Any]) -> float:
    """Tokens per second of `model.generate` with transformers' static cache and a merged adapter."""
    tokenizer: Any = load_tokenizer(resolve("smollm2-135m"))
    texts = [encode_chat(tokenizer, each) for each in chats]
    longest = max(map(len, texts))
    ids = torch.tensor([[0] * (longest - len(each)) + list(each) for each in texts])
    mask = torch.tensor([[0] * (longest - len(each)) + [1] * len(each) for each in texts])
    end = tokenizer.eos_token_id
    started = time.perf_counter()
    found = model.generate(
        input_ids=ids, attention_mask=mask, do_sample=True, temperature=SAMPLING.temperature, top_k=0,
        max_new_tokens=SAMPLING.max_completion_length, cache_implementation="static",
        disable_compile=True, stop_strings=list(SAMPLING.stop), tokenizer=tokenizer, pad_token_id=end,
    )  # fmt: skip
    seconds = time.perf_counter() - started
    return int((found[:, longest:] != end).sum()) / seconds


def reads_per_second(model: Any) -> float:
    """How often one thread reads all weights in a second."""
    weights = torch.ones(32 << 20)
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        weights.sum()
        seconds.append(time.perf_counter() - started)
    size = sum(weight.numel() * weight.element_size() for weight in model.parameters())
    return float(weights.numel() * 4 / min(seconds) / size)


if __name__ == "__main__":
    main()
