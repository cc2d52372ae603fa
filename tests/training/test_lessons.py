"""Who learns from what, and what a player may report."""

from __future__ import annotations

import dataclasses
import io
from contextlib import ExitStack

import pytest
from rich.console import Console

from codea1_env.agents import GRPO, FixedAgent, MutantCoder, TabularAgent
from codea1_env.evaluation import hold_out
from codea1_env.mistake_book import MistakeBook
from codea1_env.problems import Problem, load_problems
from codea1_env.referee import Referee
from codea1_env.rollout import RolloutConfig, rollout
from codea1_env.spaces import observe
from codea1_env.training import (
    PlayerError,
    RunError,
    TesterConfig,
    TrainConfig,
    train,
)
from codea1_env.training.checkpoints import load_run
from codea1_env.training.language_models import LanguageModels
from codea1_env.training.lessons import demonstrations
from codea1_env.training.players import make_players
from codea1_env.training.settings import replaced

SMALL = TrainConfig(
    max_problems=2,
    problems_per_step=2,
    num_generations=2,
    num_suites=2,
    max_steps=1,
    eval_samples=1,
)

IMITATION = {"tester.objective": "golden-tests"}


def run(sandbox, folder, coder=None, tester=None, **changes):
    config = replaced(SMALL, {"output_dir": folder, **changes})
    console = Console(file=io.StringIO())
    return train(config, sandbox=sandbox, coder=coder, tester=tester, console=console)


class Reports(TabularAgent):
    metrics: object = None

    def __init__(self, setting):
        super().__init__(setting.pools, GRPO(), setting.rng, setting.draws)

    def learn(self, experience):
        return self.metrics


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ({"loss": float("nan")}, r"Reports.learn to return finite numbers .* 'loss': nan"),
        (None, "Reports.learn to return metrics, a mapping .*NoneType"),
    ],
)
def test_metrics_that_no_log_can_hold(metrics, message, sandbox, tmp_path, monkeypatch):
    monkeypatch.setattr(Reports, "metrics", metrics)
    with pytest.raises(PlayerError, match=message):
        run(sandbox, tmp_path / "run", coder=Reports)


class Silent(FixedAgent):
    def act(self, observations):
        return [""] * len(observations)


def test_demonstrations_are_golden_tests_that_training_may_know(sandbox):
    config = replaced(SMALL, {**IMITATION, "num_tests": 2})
    problems = load_problems("starter", "train")[:2]
    held_out = hold_out(problems, sandbox)
    coder, config_ = MutantCoder(problems, sandbox), RolloutConfig(2, 1)
    played = rollout(problems, coder, Silent(), Referee(sandbox), MistakeBook(), config_)
    shown = demonstrations(config, played, step=3)
    assert len(shown) == 2 * config.num_suites
    known = {test for split in held_out for test in split.train_tests}
    for each in shown:
        assert each.observation["turn"] == 1
        assert set(each.action.split("\n\n")) <= known
        assert len(each.action.split("\n\n")) == 2
    assert shown == demonstrations(config, played, step=3)
    assert shown != demonstrations(config, played, step=4)
    assert demonstrations(SMALL, played, step=3) == []


def test_imitation_makes_golden_tests_likelier(sandbox, tmp_path):
    run(sandbox, tmp_path / "run", **IMITATION, max_steps=12, num_suites=4)
    with ExitStack() as stack:
        saved = load_run(tmp_path / "run", sandbox, stack)
    tester = saved.players.tester
    assert isinstance(tester, TabularAgent)
    for split in hold_out(saved.problems, sandbox, 0):
        chances = tester.policy.probabilities(split.problem.task_id)
        items = tester._pools[split.problem.task_id].items
        golden = sum(c for c, i in zip(chances, items, strict=True) if i in split.train_tests)
        assert golden > 0.8


def test_no_tester_knows_what_is_held_back(sandbox, tmp_path):
    problems = load_problems("starter", "train")[20:23]
    held_out = hold_out(problems, sandbox, 0)
    for number in (None, 3):
        golden = TesterConfig("golden")
        config = dataclasses.replace(SMALL, tester=golden, golden_tests=number, num_tests=64)
        models = LanguageModels(config, 3)
        tester = make_players(config, problems, lambda: held_out, sandbox, models=models).tester
        for split in held_out:
            (suite,) = tester.act([observe(split.problem)])
            known = split.train_tests[:number]
            assert sorted(suite.split("\n\n")) == sorted(known)


WRONG = "def double(n):\n    return n + 2"
DOUBLE = Problem("double", "def double(n):", "double", "def double(n):\n    return 2 * n")


class Programs(FixedAgent):
    def __init__(self, *programs):
        self.programs = programs

    def act(self, observations):
        return list(self.programs)


class Suite(FixedAgent):
    def act(self, observations):
        return ["assert double(3) == 5"] * len(observations)


@pytest.mark.parametrize(
    ("oracle", "programs", "rewards"),
    [
        ("reference", [WRONG, DOUBLE.reference], [0.0, 1.0]),
        ("coder", [WRONG, DOUBLE.reference], [1.0, 0.0]),
        ("coder", ["def double(", WRONG], [0.0, 1.0]),
        ("coder", ["", "def triple(n): pass"], [None, None]),
    ],
)
def test_the_coders_own_program_as_oracle(oracle, programs, rewards, sandbox):
    config = RolloutConfig(2, 1, oracle=oracle)
    referee = Referee(sandbox)
    played = rollout([DOUBLE], Programs(*programs), Suite(), referee, MistakeBook(), config)
    assert [episode.verdict.code_reward for episode in played.episodes] == rewards
    assert {episode.problem for episode in played.episodes} == {DOUBLE}


class Fails(GRPO):
    def update(self, policy, samples):
        raise ZeroDivisionError("of mine")


class FailsToBegin(GRPO):
    def __init__(self, learning_rate):
        raise OSError("no such table")


class Divides:
    def act(self, observations):
        return 1 / 0


class Returns(GRPO):
    """Forgets its metrics."""

    def update(self, policy, samples):
        return None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"algorithm": f"{__file__}:Fails"},
            r"^Expect Fails\.update to return, actually it raised ZeroDivisionError: of mine "
            r"\(\S+test_lessons\.py, line \d+\)\. It was in step 1\.$",
        ),
        (
            {"algorithm": f"{__file__}:Returns", "self_play": True},
            r"Returns.update to return metrics, .*NoneType.*Return \{\} if there are none\.",
        ),
        (
            {"coder.player": f"{__file__}:Divides"},
            r"^Expect Divides\.act to return, .* division by zero .* before the first step",
        ),
        (
            {"algorithm": f"{__file__}:FailsToBegin"},
            r"^Expect FailsToBegin\.__init__ to return, actually it raised OSError: no such table",
        ),
    ],
)
def test_what_fails_is_named(settings, message, sandbox, tmp_path):
    with pytest.raises((PlayerError, RunError), match=message):
        run(sandbox, tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()
