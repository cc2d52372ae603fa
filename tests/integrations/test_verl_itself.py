"""Answers paid by verl's own loader and reward manager, which need no GPU. Its trainer does, and is not run here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("verl")
manager: Any = pytest.importorskip("verl.experimental.reward_loop.reward_manager")
reward: Any = pytest.importorskip("verl.trainer.ppo.reward")
import pandas as pd  # noqa: E402
import torch  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402
from verl import DataProto  # noqa: E402

from codea1_env.integrations import verl_reward  # noqa: E402
from codea1_env.integrations.side import OneSide, Side, SideAnswer  # noqa: E402


class Letters:
    """A tokenizer whose tokens are characters."""

    def decode(self, ids: Any, **_: Any) -> str:
        return "".join(map(chr, ids.tolist()))


def item(row: dict[str, Any], answer: str) -> Any:
    responses = torch.tensor([[ord(letter) for letter in answer] + [0, 0]])
    mask = (responses > 0).long()
    names = ("data_source", "reward_model", "extra_info")
    return DataProto.from_dict(
        tensors={"prompts": responses[:, :1], "responses": responses, "attention_mask": mask},
        non_tensors={name: np.array([row[name]], dtype=object) for name in names},
    )


@pytest.mark.parametrize("role", ["coder", "tester"])
def test_answers_are_paid_as_by_us(role: Side, tmp_path: Path) -> None:
    side = OneSide(role, "copier" if role == "coder" else "reference")
    pd.DataFrame(verl_reward.verl_rows(side)).to_parquet(tmp_path / "train.parquet")
    rows = pd.read_parquet(tmp_path / "train.parquet").to_dict("records")
    [row] = [row for row in rows if row["extra_info"]["task_id"] == "starter/add_numbers"]
    settings = {"path": verl_reward.__file__, "name": "compute_score", "reward_kwargs": {}}
    config = OmegaConf.create({"reward": {"custom_reward_function": settings}})
    paid = manager.get_reward_manager_cls("naive")(
        config, Letters(), reward.get_custom_reward_fn(config)
    )
    answers = {
        "coder": ("def add_numbers(a, b): return a + b", "def add_numbers(a, b): return a", "?"),
        "tester": ("assert add_numbers(1, 2) == 3", "assert add_numbers(1, 2) == 4", "?"),
    }[role]
    code = side.problems["starter/add_numbers"].reference if role == "tester" else ""
    asked = [SideAnswer("starter/add_numbers", text, code) for text in answers]
    expected = [score.reward or 0.0 for score in side.judge(asked)]
    found = [
        paid.loop.run_until_complete(paid.run_single(item(row, text)))["reward_score"]
        for text in answers
    ]
    assert found == expected
    assert len(set(expected)) > 1
