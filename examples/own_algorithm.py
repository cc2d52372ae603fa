"""An algorithm of your own for a language model: rejection sampling instead of GRPO.

    python examples/own_algorithm.py [MODEL]

A learner is any class with `act`, `learn`, `save` and `load`. This one keeps the best program of each group and
trains on it as if it were given ("expert iteration"). Needs the extra `llm`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import peft
import torch
from safetensors.torch import load_file, save_file

from codea1_env.agents import Experience
from codea1_env.agents.llm.agent import LLMAgent
from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.agents.llm.transformers_backend import TransformersBackend
from codea1_env.agents.models import load_model, load_tokenizer, resolve
from codea1_env.spaces import Observation
from codea1_env.training import TesterConfig, TrainConfig, TrainResult, train


class BestOfGroup:
    """Learns the best answer of each group by heart."""

    def __init__(self, name: str, learning_rate: float = 0.02) -> None:
        folder = resolve(name)
        settings = peft.LoraConfig(r=16, lora_alpha=32, target_modules="all-linear")
        self.model: Any = peft.get_peft_model(load_model(folder), settings)
        backend = TransformersBackend(self.model, load_tokenizer(folder))
        sampling = SamplingConfig(temperature=0.9, max_completion_length=96, stop=("\n```\n",))
        self.agent = LLMAgent(backend, sampling, adapter="default")
        self.trained = [p for p in self.model.parameters() if p.requires_grad]
        # Without momentum there is no state to save.
        self.optimizer = torch.optim.SGD(self.trained, lr=learning_rate)
        self._tokens: dict[tuple[str, str], list[int]] = {}

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Answer, and remember the tokens."""
        answers = self.agent.act(observations)
        for seen, sampled in zip(observations, self.agent.completions, strict=True):
            key = (seen["entry_point"], sampled.text)
            self._tokens[key] = [*sampled.prompt_ids, *sampled.completion_ids]
        return answers

    def learn(self, experience: Sequence[Experience]) -> Mapping[str, float]:
        """Raise the likelihood of the best answers; groups whose answers are equally good teach nothing."""
        groups: dict[str, list[Experience]] = {}
        for item in experience:
            if item.reward is not None:
                groups.setdefault(item.group, []).append(item)
        best = [
            max(group, key=lambda item: item.reward or 0.0)
            for group in groups.values()
            if len({item.reward for item in group}) > 1
        ]
        losses = []
        for item in best:
            ids = torch.tensor([self._tokens[item.observation["entry_point"], item.action]])
            loss = self.model(ids, labels=ids).loss / len(best)
            loss.backward()
            losses.append(float(loss.detach()))
        self.optimizer.step()
        self.optimizer.zero_grad()
        self._tokens.clear()
        return {"loss": sum(losses), "groups": float(len(best))}

    def save(self, path: Path) -> None:
        """Write the adapter and the state of the draws."""
        save_file(peft.get_peft_model_state_dict(self.model), path / "adapter.safetensors")
        self.agent.save(path)

    def load(self, path: Path) -> None:
        """Restore what `save` wrote."""
        peft.set_peft_model_state_dict(self.model, load_file(path / "adapter.safetensors"))
        self.agent.load(path)


def main(model: str = "smollm2-135m", max_steps: int = 4) -> TrainResult:
    """Train a coder against a script that submits the problem's own tests."""
    config = TrainConfig(
        tester=TesterConfig("golden"),
        use_book=False,
        max_problems=12,
        problems_per_step=4,
        num_generations=4,
        num_suites=2,
        max_steps=max_steps,
        eval_steps=max_steps,
        eval_samples=1,
        output_dir=Path(tempfile.mkdtemp(prefix="codea1-")) / "run",
    )
    return train(config, coder=BestOfGroup(model))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "smollm2-135m")
