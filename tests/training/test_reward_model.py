"""A reward model in the place of verdicts."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from codea1_env.sandbox import Sandbox
from codea1_env.spaces import Observation
from codea1_env.training import PlayerError, TrainConfig, train
from codea1_env.training.reward_model import NgramRidge, PaidProgram

SMALL = {
    "max_problems": 2, "problems_per_step": 2, "num_generations": 4, "num_suites": 2, "num_tests": 2, "max_steps": 4,
    "save_steps": 1, "eval_steps": 9, "eval_samples": 1, "workers": 1, "reward_model_after": 2,
}  # fmt: skip
HOME = sys.modules[__name__].__file__


class StandInForALanguageModel:
    """Takes the place of a language model's scorer: half a point for a short program, and no verdict needed."""

    def __init__(self, judged: list[PaidProgram]) -> None:
        self.judged = judged

    def score(self, problem: str, program: str) -> float:
        assert problem
        return 0.5 if len(program) < 100 else 0.25


class OutOfRange(StandInForALanguageModel):
    def score(self, problem: str, program: str) -> float:
        return 1.5


class Raising(StandInForALanguageModel):
    def score(self, problem: str, program: str) -> float:
        raise KeyError("weights")


def rewards(folder: Path) -> list[tuple[int, float, str]]:
    rows = map(json.loads, (folder / "episodes.jsonl").read_text().splitlines())
    return [(row["step"], row["reward"], row["code"]) for row in rows]


def test_the_first_steps_are_judged_and_the_others_scored(tmp_path: Path, sandbox: Sandbox) -> None:
    name = f"{HOME}:StandInForALanguageModel"
    train(TrainConfig(**SMALL, reward_model=name, output_dir=tmp_path / "own"), sandbox=sandbox)
    train(TrainConfig(**SMALL, output_dir=tmp_path / "plain"), sandbox=sandbox)
    own, plain = rewards(tmp_path / "own"), rewards(tmp_path / "plain")
    assert [row for row in own if row[0] <= 2] == [row for row in plain if row[0] <= 2]
    scored = [(reward, code) for step, reward, code in own if step > 2]
    assert scored
    assert all(reward == (0.5 if len(code) < 100 else 0.25) for reward, code in scored)
    verdicts = map(json.loads, (tmp_path / "own" / "verdicts.jsonl").read_text().splitlines())
    assert {row["step"] for row in verdicts} == {1, 2}
    assert not (tmp_path / "plain" / "verdicts.jsonl").exists()


def test_a_resumed_run_fits_the_same_model(tmp_path: Path, sandbox: Sandbox) -> None:
    # A run that ends earlier measures then, which draws: both measure after each step.
    settings = {**SMALL, "reward_model": "ngrams", "eval_steps": 1}
    for name, steps in (("whole", 4), ("parts", 3)):
        run = TrainConfig(**{**settings, "max_steps": steps}, output_dir=tmp_path / name)
        train(run, sandbox=sandbox)
    train(TrainConfig(**settings, output_dir=tmp_path / "parts"), resume=True, sandbox=sandbox)
    for name in ("verdicts.jsonl", "episodes.jsonl"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()


@pytest.mark.parametrize(("name", "said"), [("OutOfRange", "1.5"), ("Raising", "weights")])
def test_a_model_that_fails_is_said_in_a_line(name, said, tmp_path, sandbox) -> None:
    config = {**SMALL, "reward_model": f"{HOME}:{name}", "reward_model_after": 0}
    with pytest.raises(PlayerError, match=rf"{name}\.score.*{said}"):
        train(TrainConfig(**config, output_dir=tmp_path / "run"), sandbox=sandbox)


@pytest.mark.parametrize("name", ["nothing", f"{HOME}:Missing", f"{HOME}:rewards"])
def test_a_name_that_is_none_is_refused_before_the_run(name: str) -> None:
    with pytest.raises(ValueError, match="Expect"):
        TrainConfig(reward_model=name)


@pytest.mark.parametrize(("answer", "reward"), [("", 0), ("```python\n```", 0), ("prose", 0.5)])
def test_an_answer_without_a_program_earns_nothing(answer, reward, tmp_path, sandbox) -> None:
    class Says:
        def act(self, observations: Sequence[Observation]) -> list[str]:
            return [answer] * len(observations)

    name = f"{HOME}:StandInForALanguageModel"
    changes = {"max_steps": 1, "reward_model": name, "reward_model_after": 0}
    config = TrainConfig(**{**SMALL, **changes}, output_dir=tmp_path / "run")
    train(config, coder=Says(), sandbox=sandbox)
    assert {row[1] for row in rewards(tmp_path / "run")} == {reward}


def test_scores_follow_what_was_seen() -> None:
    text = "def f(n): return n {} 1"
    seen = [PaidProgram("p", text.format(sign), float(sign == "+")) for sign in "+-*" * 5]
    model = NgramRidge(seen)
    good, bad, new = (model.score("p", text.format(sign)) for sign in "+-/")
    assert good > 0.7 > new > bad
    assert NgramRidge([]).score("p", "\ud800 anything") == 0.5
