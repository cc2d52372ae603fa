"""Train a language model on golden tests with TRL's SFTTrainer: the tester that the paper calls SFT.

Needs the extra `llm`.

    python examples/sft_tester.py [MODEL]
    codea1 eval tests --agent runs/sft-tester
"""

import sys

import torch
from datasets import Dataset
from peft import LoraConfig
from trl import SFTConfig, SFTTrainer

from codea1_env import load_problems
from codea1_env.agents.llm.prompts import DEFAULT, in_block
from codea1_env.agents.models import load_model, load_tokenizer, resolve
from codea1_env.evaluation import train_tests
from codea1_env.spaces import observe


def main(model: str = "smollm2-135m", *, to: str = "runs/sft-tester", max_steps: int = 24) -> None:
    """Train an adapter, and save it in the folder `to`."""
    rows = []
    for problem in load_problems("starter", "train"):
        prompt = DEFAULT(observe(problem, code=problem.reference, turn=1))
        tests = in_block("\n".join(train_tests(problem)[:4]))  # none that measures a coder
        rows.append({"prompt": prompt, "completion": [{"role": "assistant", "content": tests}]})
    base, lora = resolve(model), LoraConfig(r=16, lora_alpha=32, target_modules="all-linear")
    own = {"max_steps": max_steps, "learning_rate": 2e-4, "use_cpu": not torch.cuda.is_available()}
    args = SFTConfig(to, **own, save_strategy="no", report_to="none")
    more = {"processing_class": load_tokenizer(base), "peft_config": lora}
    trainer = SFTTrainer(load_model(base), args, train_dataset=Dataset.from_list(rows), **more)
    trainer.train()
    trainer.save_model(to)


if __name__ == "__main__":
    main(*sys.argv[1:2])
