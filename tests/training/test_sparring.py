"""Sparring and the panel in a run: what the tester learns from, what is measured, and what neither changes."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from codea1_env import Sandbox
from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.evaluation.panel import RUN_ROWS
from codea1_env.mistake_book import BookChange
from codea1_env.referee import Referee
from codea1_env.spaces import Observation
from codea1_env.training import PlayerConfig, TesterConfig, TrainConfig, train
from codea1_env.training.panel_table import panel_table
from codea1_env.training.run_folder import EPISODES, METRICS, PANEL
from codea1_env.training.settings import replaced
from codea1_env.training.sparring import Sparring, sparring_metrics
from codea1_env.training.trainer_arguments import sparring_groups, update_shape

sys.path.insert(0, str(Path(__file__).parents[1] / "agents" / "llm"))

SHORT = SamplingConfig(max_prompt_length=1000, max_completion_length=8)
TRAINER = {"gradient_checkpointing": False, "lr_scheduler_type": "constant"}
MODELS = TrainConfig(
    max_problems=2,
    problems_per_step=2,
    num_generations=2,
    num_suites=2,
    coder=PlayerConfig("mutant"),
    tester=TesterConfig("llm", learning_rate=1e-3, sampling=SHORT, trainer=TRAINER),
    lora_rank=2,
    dtype="float32",
    threads=1,
    max_steps=2,
    eval_steps=2,
    eval_samples=1,
    eval_problems=0,
    panel_size=1,
    save_steps=1,
)


class FromText:
    """Tests every number of a program's text, with 0 as its value."""

    def act(self, observations: Sequence[Observation]) -> list[str]:
        numbers = [
            [word for word in seen["code"].split() if word.rstrip(":,)").isdigit()]
            for seen in observations
        ]
        return [
            "\n\n".join(f"assert {seen['entry_point']}({each.rstrip(':,)')}) == 0" for each in some)
            for seen, some in zip(observations, numbers, strict=True)
        ]


def test_groups_are_planted_and_leave_no_trace(sandbox: Sandbox) -> None:
    config = TrainConfig(
        sparring=0.5,
        num_suites=3,
        coder=PlayerConfig("mutant"),
        tester=TesterConfig("llm", learning_rate=1e-4),
    )
    sparring = Sparring(config, Referee(sandbox))
    played = sparring.play(FromText(), step=3, groups=30)  # more than there are problems
    again = Sparring(config, Referee(sandbox)).play(FromText(), step=3, groups=30)
    assert [each.program for each in played.episodes] == [each.program for each in again.episodes]
    names = {each.problem.metadata["split"] for each in played.episodes}
    assert names == {"train"}
    assert len(played.episodes) >= 30
    assert all(len(each.suites) == 3 for each in played.episodes)
    assert played.book_change == BookChange(0, 0, 0)
    assert 0 < sparring_metrics(played)["sparring/found"] <= 1


@pytest.mark.parametrize(
    ("share", "selection", "own", "added"),
    [
        (0.5, "max-variance", 3, 3),
        (0.5, "all", 12, 12),
        (0.75, "max-variance", 3, 9),
        (0.01, "max-variance", 3, 1),
    ],
)
def test_sparring_comes_beside_the_groups_of_the_coder(
    share: float, selection: Any, own: int, added: int
) -> None:
    config = TrainConfig(
        sparring=share,
        suite_selection=selection,
        num_generations=4,
        tester=TesterConfig("llm", learning_rate=1e-4),
    )
    assert sparring_groups(config, 3) == added
    assert update_shape(config, "tester", 3) == (own + added, config.num_suites)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("trl")
    from tiny import save_tiny

    return save_tiny(tmp_path_factory.mktemp("model"))


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def run(folder: Path, sandbox: Sandbox, model: str, resume: bool = False, **changes: Any) -> str:
    out = io.StringIO()
    config = replaced(MODELS, {"output_dir": folder, "model": model, **changes})
    train(config, resume=resume, sandbox=sandbox, console=Console(file=out, width=200))
    return out.getvalue()


def test_a_run_with_sparring_and_panel(tmp_path: Path, sandbox: Sandbox, model: str) -> None:
    whole, plain, parts = (tmp_path / name for name in ("whole", "plain", "parts"))
    said = run(whole, sandbox, model, sparring=0.5)
    assert "what the tester breaks" in said
    counts = rows(whole, PANEL)
    assert {(each["step"], each["player"]) for each in counts} == {
        (0, "tester"), (0, "copier"), (0, "numbers"), (2, "tester"),
    }  # fmt: skip
    assert {each["row"] for each in counts} == set(RUN_ROWS)
    assert len({each["panel"] for each in counts}) == 1
    measured = rows(whole, METRICS)
    assert "panel/copied_new" in measured[0]
    assert "sparring/found" in measured[1]
    assert {each.get("sparring", False) for each in rows(whole, EPISODES)} == {True, False}

    # What sparring plays counts nowhere else: the first step, which everybody plays untrained, is the same.
    run(plain, sandbox, model, max_steps=1, panel_size=0)
    [_, first] = rows(plain, METRICS)
    same = (
        "reward/",
        "tester/validity",
        "tester/adversarial",
        "book/",
        "coder/",
        "frac_reward_zero_std",
    )
    for name in first:
        if name.startswith(same) and "tokens" not in name:
            assert measured[1][name] == first[name], name

    run(parts, sandbox, model, sparring=0.5, max_steps=1)
    assert "its end is measured" not in run(parts, sandbox, model, resume=True, sparring=0.5)
    for name in (EPISODES,):
        assert (parts / name).read_bytes() == (whole / name).read_bytes()


def test_an_old_run_without_a_panel_is_measured_on_todays_and_says_so(
    tmp_path: Path, sandbox: Sandbox, model: str
) -> None:
    run(tmp_path, sandbox, model, max_steps=1)
    (tmp_path / PANEL).unlink()
    said = run(tmp_path, sandbox, model, resume=True)
    assert "its end is measured on that of today" in said
    assert {each["step"] for each in rows(tmp_path, PANEL)} == {2}


def test_a_run_on_planted_problems_spars_on_the_same(
    tmp_path: Path, sandbox: Sandbox, model: str
) -> None:
    own = {"problems": "planted", "coder": PlayerConfig("planted"), "split": None}
    own |= {
        "max_problems": None,
        "eval_trained": 1,
    }  # no problem is left for the row of right programs
    said = run(tmp_path / "run", sandbox, model, sparring=0.9, max_steps=1, **own)
    [start, first] = rows(tmp_path / "run", METRICS)
    assert first["tester/num_tokens"] > 0
    assert "Left out of the panel: right programs: tests that are right" in said
    assert "panel/valid" not in start | first


def test_the_table_shows_counts_with_intervals() -> None:
    counts = [
        {
            "step": step,
            "player": player,
            "panel": panel,
            "row": "copied_new",
            "hits": hits,
            "of": 24,
            "right": 3,
        }
        for panel, step, player, hits in (
            ("of another version", 0, "tester", 24),
            ("today", 0, "tester", 2),
            ("today", 0, "copier", 0),
            ("today", 0, "numbers", 24),
            ("today", 20, "tester", 23),
        )
    ]
    table = panel_table(counts)
    assert table is not None
    out = io.StringIO()
    Console(file=out, width=200).print(table)
    for cell in ("0.08 [0.02, 0.26] 2/24", "0.96 [0.80, 0.99] 23/24", "0.00 [0.00, 0.14] 0/24"):
        assert cell in out.getvalue()
    assert panel_table([]) is None


@pytest.mark.parametrize(
    "tester",
    [
        TesterConfig(),
        TesterConfig("golden"),
        TesterConfig("llm", learning_rate=1e-4, freeze=True),
    ],
)
def test_only_language_models_that_learn_spar(tester: TesterConfig) -> None:
    config = TrainConfig(sparring=0.5, tester=tester)
    assert not config.spars
    assert sparring_groups(config, 8) == 0
