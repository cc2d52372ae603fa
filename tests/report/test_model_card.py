"""Model cards: they say what is known, with intervals, and nothing else."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from run_logs import write_run

from codea1_env.report.model_card import base_model, licence_of, model_card
from codea1_env.report.runs import read_run
from codea1_env.training import PlayerConfig, TesterConfig, TrainConfig
from codea1_env.training.run_folder import HELD_OUT
from codea1_env.training.settings import apply_table

hub = pytest.importorskip("huggingface_hub")


def card_of(folder: Path, *, step: int = 3, kind: str = "adapter", **settings: Any) -> Any:
    players = {
        "coder": PlayerConfig("llm", learning_rate=2e-5),
        "tester": TesterConfig("llm", learning_rate=1e-5),
    }
    run = write_run(folder, [], **{**players, **settings})
    with (run / HELD_OUT).open("w") as log:
        for at in (0, 2, 5):
            for problem in range(4):
                row = {"task_id": f"own/{problem}", "pass_rate": problem / 4 + at / 20, "kill_rate": None, "copier_kill_rate": "x"}  # fmt: skip
                log.write(json.dumps({"step": at, **row}) + "\n")
        log.write('{"step": 3, "ta')
    return model_card(read_run(run, "run"), "tester", step, kind)


def test_a_card_says_what_a_run_was(tmp_path: Path) -> None:
    card = card_of(tmp_path / "run", problems="mbpp+")
    data = hub.ModelCard(str(card)).data
    assert data.base_model == "HuggingFaceTB/SmolLM2-135M-Instruct"
    assert (data.license, data.library_name) == ("apache-2.0", "peft")
    assert data.datasets == ["evalplus/mbppplus"]
    text = card.text
    # The last measurement up to the checkpoint, not one that came later.
    assert "| | step 0 | step 2 | problems |" in text
    label = "held-out golden tests that the coder's programs pass"
    assert f"| {label} | 0.375 [0.125, 0.625] | 0.475 [0.225, 0.725] | 4 |" in text
    assert "| held-out mutants that the tester's suites kill | - | - | 0 |" in text
    settings = text.partition("```toml\n")[2].partition("```")[0]
    again = apply_table(TrainConfig(), tomllib.loads(settings), "card")
    assert (again.problems, again.coder.learning_rate, again.max_steps) == ("mbpp+", 2e-5, 3)
    assert "output_dir" not in settings


def test_what_is_not_known_is_left_out(tmp_path: Path) -> None:
    model = tmp_path / "mine`\n<b>"
    model.mkdir()
    card = card_of(tmp_path / "run", kind="model", model=str(model))
    data = hub.ModelCard(str(card)).data
    assert (data.base_model, data.license, data.datasets) == (None, None, None)
    assert data.library_name == "transformers"
    assert "not known here" in card.text
    assert "a local folder, `` mine` <b> ``" in card.text
    assert base_model(str(model)) is None

    (model / "README.md").write_text("---\nlicense: mit\n---\n# Mine\n")
    assert licence_of(str(model)) == "mit"
    (model / "README.md").write_text("---\nlicense: [\n---\n")
    assert licence_of(str(model)) is None
    assert licence_of("no-such-owner/no-such-model") is None


def test_a_run_that_measured_nothing_says_so(tmp_path: Path) -> None:
    card = card_of(tmp_path / "run", step=-1)
    assert "Nothing was measured" in card.text
