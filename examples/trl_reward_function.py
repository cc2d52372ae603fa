"""A plain TRL GRPOTrainer for one side of the game: the referee is its reward function, or the game its environment.

    python examples/trl_reward_function.py [MAX_STEPS] [coder|tester] [environment]

Against a coder the same model, without its adapter, writes tests that are meant to break its programs. With
"environment" the model hands in its program with a tool. Needs the extra `llm`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
import trl
from datasets import Dataset
from peft import LoraConfig
from trl import GRPOConfig, GRPOTrainer

from codea1_env import load_problems
from codea1_env.agents.llm.agent import LLMAgent
from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.agents.llm.transformers_backend import TransformersBackend
from codea1_env.agents.models import load_model, load_tokenizer, resolve
from codea1_env.integrations.side import OneSide, Side
from codea1_env.integrations.trl_training import (
    AnswerRewards,
    GameFactory,
    dataset_rows,
    environment_rows,
    episode_rewards,
)


def main(
    model_name: str = "smollm2-135m",
    max_steps: int = 10,
    side: Side = "coder",
    environment: bool = False,
) -> None:
    """Train an adapter for one side."""
    folder = resolve(model_name)
    model, tokenizer = load_model(folder), load_tokenizer(folder)
    sampling = SamplingConfig(temperature=0.9, max_completion_length=96, stop=("\n```\n",))
    live: Any = "mutant"
    if side == "coder":
        live = LLMAgent(TransformersBackend(load_model(folder), tokenizer), sampling)
    game = OneSide(side, live, problems=load_problems("starter", "train")[:12])
    more: dict[str, Any] = {}
    rows = dataset_rows(game)
    rewards: Any = AnswerRewards(game)
    if environment:
        # SmolLM2's own template knows no tools; that of Qwen2.5 has the same marks around turns.
        templates = Path(trl.__file__).parent / "chat_templates"
        tokenizer.chat_template = (templates / "qwen2_5.jinja").read_text()
        rows, rewards = environment_rows(game), episode_rewards
        more = {"environment_factory": GameFactory(game)}
    args = GRPOConfig(
        "runs/trl-reward-function", max_steps=max_steps, learning_rate=2e-4, temperature=0.9,
        per_device_train_batch_size=8, num_generations=4, max_completion_length=96,
        gradient_checkpointing=False, logging_steps=1, save_strategy="no", report_to="none",
        use_cpu=not torch.cuda.is_available(),
    )  # fmt: skip
    adapter = LoraConfig(r=16, lora_alpha=32, target_modules="all-linear")
    GRPOTrainer(
        model, rewards, args, Dataset.from_list(rows), processing_class=tokenizer, peft_config=adapter, **more
    ).train()  # fmt: skip


if __name__ == "__main__":
    words = dict(zip(("steps", "side", "environment"), sys.argv[1:], strict=False))
    chosen: Side = "tester" if words.get("side") == "tester" else "coder"
    main(max_steps=int(words.get("steps", 10)), side=chosen, environment="environment" in words)
