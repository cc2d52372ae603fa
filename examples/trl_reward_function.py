"""A plain TRL GRPOTrainer for a coder, whose reward function is the referee with a live tester.

    python examples/trl_reward_function.py [MAX_STEPS]

TRL samples the programs. For each program the same model, without its adapter, writes tests that are meant to
break it; the referee runs both in the sandbox and pays the program. Needs the extra `llm`.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from datasets import Dataset
from peft import LoraConfig
from trl import GRPOConfig, GRPOTrainer

from codea1_env import Referee, Round, Sandbox, load_problems
from codea1_env.agents.llm.agent import LLMAgent
from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.agents.llm.prompts import DEFAULT
from codea1_env.agents.llm.transformers_backend import TransformersBackend
from codea1_env.agents.models import load_model, load_tokenizer, resolve
from codea1_env.responses import parse_suites, read_programs
from codea1_env.spaces import observe

SUITES = 2


def main(model_name: str = "smollm2-135m", max_steps: int = 10) -> None:
    """Train an adapter for the coder."""
    folder = resolve(model_name)
    model, tokenizer = load_model(folder), load_tokenizer(folder)
    problems = {problem.task_id: problem for problem in load_problems("starter", "train")[:12]}
    sampling = SamplingConfig(temperature=0.9, max_completion_length=96, stop=("\n```\n",))
    tester = LLMAgent(TransformersBackend(load_model(folder), tokenizer), sampling)
    rows = [
        {"prompt": DEFAULT(observe(problem)), "task_id": name} for name, problem in problems.items()
    ]

    with Sandbox() as sandbox:
        referee = Referee(sandbox)

        def reward(completions: Any, task_id: list[str], **_: Any) -> list[float | None]:
            played = [problems[name] for name in task_id]
            programs = read_programs(
                played, [answer[0]["content"] for answer in completions], sandbox
            )
            seen = [
                observe(problem, code=program.code, turn=1)
                for problem, program in zip(played, programs, strict=True)
                for _ in range(SUITES)
            ]
            of = [problem for problem in played for _ in range(SUITES)]
            suites = parse_suites(list(zip(tester.act(seen), of, strict=True)), sandbox)
            rounds = [
                Round(problem, program, suites[i * SUITES : (i + 1) * SUITES], ())
                for i, (problem, program) in enumerate(zip(played, programs, strict=True))
            ]
            return [verdict.code_reward for verdict in referee.judge(rounds)]

        args = GRPOConfig(
            "runs/trl-reward-function", max_steps=max_steps, learning_rate=2e-4, temperature=0.9,
            per_device_train_batch_size=8, num_generations=4, max_completion_length=96,
            gradient_checkpointing=False, logging_steps=1, save_strategy="no", report_to="none",
            use_cpu=not torch.cuda.is_available(),
        )  # fmt: skip
        adapter = LoraConfig(r=16, lora_alpha=32, target_modules="all-linear")
        GRPOTrainer(
            model, reward, args, Dataset.from_list(rows), processing_class=tokenizer, peft_config=adapter
        ).train()  # fmt: skip


if __name__ == "__main__":
    main(max_steps=int(sys.argv[1]) if len(sys.argv) > 1 else 10)
