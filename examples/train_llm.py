"""Train two language models against each other from Python, and play one round with what they have learned.

    python examples/train_llm.py [MODEL]

MODEL is a name, a hub id or a folder, as `--model` of `codea1 train`. Needs the extra `llm`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.training import PlayerConfig, TesterConfig, TrainConfig, TrainResult, train


def main(model: str = "smollm2-135m", max_steps: int = 8) -> TrainResult:
    """Train, and print where the run is."""
    sampling = SamplingConfig(temperature=0.9, max_completion_length=96, stop=("\n```\n",))
    trainer = {"gradient_checkpointing": False, "lr_scheduler_type": "constant"}
    config = TrainConfig(
        model=model,
        coder=PlayerConfig(
            "llm",
            learning_rate=2e-4,
            sampling=sampling,
            trainer=trainer,  # any field of trl.GRPOConfig
        ),
        tester=TesterConfig(
            "llm", learning_rate=2e-4, sampling=sampling, trainer={**trainer, "beta": 0.01}
        ),
        max_problems=12,  # the first are the easiest
        problems_per_step=4,
        num_generations=4,
        num_suites=4,
        max_steps=max_steps,
        eval_steps=max_steps,
        eval_samples=1,
        output_dir=Path(tempfile.mkdtemp(prefix="codea1-")) / "run",
    )
    result = train(config)
    print(f"codea1 export {result.output_dir} --role tester --output-dir tester-adapter")
    return result


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "smollm2-135m")
