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
from codea1_env.support.logs import read_rows
from codea1_env.training import (
    PlayerConfig,
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
from codea1_env.training.run_folder import METRICS
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
        ({"loss": "low"}, "'loss': 'low'"),
        ({3: 0.5}, "3: 0.5"),
        (None, "Reports.learn to return metrics, a mapping .*NoneType"),
    ],
)
def test_metrics_that_no_log_can_hold(metrics, message, sandbox, tmp_path, monkeypatch):
    monkeypatch.setattr(Reports, "metrics", metrics)
    with pytest.raises(PlayerError, match=message):
        run(sandbox, tmp_path / "run", coder=Reports)


def test_what_cannot_be_combined(sandbox, tmp_path):
    with pytest.raises(ValueError, match="Expect self_play with the same kind"):
        replaced(SMALL, {"self_play": True, "coder.freeze": True})
    with pytest.raises(ValueError, match=r"Expect tester\.objective='rewards' with self_play"):
        replaced(SMALL, {"self_play": True, **IMITATION})
    with pytest.raises(RunError, match="no player of your own with self_play"):
        run(sandbox, tmp_path / "a", coder=Reports, self_play=True)
    with pytest.raises(RunError, match=r"with a method imitate .* Silent"):
        run(sandbox, tmp_path / "b", tester=Silent(), **IMITATION)


@pytest.mark.parametrize("changes", [{"num_suites": 3}, {"tester.model": "other/model"}])
def test_a_language_model_in_both_roles_has_one_size_of_groups_and_one_model(changes):
    model = {"coder": PlayerConfig("llm", learning_rate=1e-4), "self_play": True}
    model["tester"] = TesterConfig("llm", learning_rate=1e-4)
    with pytest.raises(ValueError, match=r"Expect one model and groups of one size for self_play"):
        replaced(SMALL, {**model, "num_generations": 2, **changes})


class Silent(FixedAgent):
    def act(self, observations):
        return [""] * len(observations)


def test_demonstrations_are_golden_tests_that_training_may_know(sandbox):
    config = replaced(SMALL, {**IMITATION, "num_tests": 2})
    problems = load_problems("starter", "train")[:2]
    held_out = hold_out(problems, sandbox)
    played = rollout(
        problems, MutantCoder(problems, sandbox), Silent(), Referee(sandbox), MistakeBook(),
        RolloutConfig(2, 1),
    )  # fmt: skip
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


@pytest.mark.parametrize("content", [None, "[", "unknown = 3\n"])
def test_what_is_not_a_run_is_not_loaded(content, sandbox, tmp_path):
    if content is not None:
        (tmp_path / "config.toml").write_text(content)
    with ExitStack() as stack, pytest.raises(RunError, match=r"Expect .*, actually: "):
        load_run(tmp_path, sandbox, stack)


class Returns(GRPO):
    """An algorithm that forgets its metrics, or fails otherwise."""

    def update(self, policy, samples):
        return None


class Fails(GRPO):
    def update(self, policy, samples):
        raise ZeroDivisionError("of mine")


@pytest.mark.parametrize("self_play", [False, True])
def test_an_algorithm_without_metrics_is_told_what_was_expected(self_play, sandbox, tmp_path):
    name = f"{__file__}:Returns"
    changes = {"algorithm": name, "self_play": self_play}
    message = r"^Expect Returns.update to return metrics, .*NoneType.*Return \{\} if there are none\. It was in step 1\.$"
    with pytest.raises(PlayerError, match=message):
        run(sandbox, tmp_path / "run", **changes)


class FailsToBegin(GRPO):
    def __init__(self, learning_rate):
        raise OSError("no such table")


class Divides:
    def act(self, observations):
        return 1 / 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"algorithm": f"{__file__}:Fails"},
            r"^Expect Fails\.update to return, actually it raised ZeroDivisionError: of mine "
            r"\(\S+test_lessons\.py, line \d+\)\. It was in step 1\.$",
        ),
        (
            {"coder.player": f"{__file__}:Divides"},
            r"^Expect Divides\.act to return, .* division by zero \(\S+test_lessons.* before the first step",
        ),
        (
            {"algorithm": f"{__file__}:FailsToBegin"},
            r"^Expect FailsToBegin\.__init__ to return, actually it raised OSError: no such table",
        ),
    ],
)
def test_what_raises_is_named_with_its_line(settings, message, sandbox, tmp_path):
    with pytest.raises((PlayerError, RunError), match=message):
        run(sandbox, tmp_path / "run", **settings)
    assert run(sandbox, tmp_path / "run").finished


class FailsLater(GRPO):
    updates = 0

    def update(self, policy, samples):
        FailsLater.updates += 1
        return {} if FailsLater.updates < 3 else None


def test_a_later_failure_leaves_what_was_done(sandbox, tmp_path):
    changes = {"algorithm": f"{__file__}:FailsLater", "max_steps": 4, "eval_steps": 4}
    with pytest.raises(PlayerError, match=r"The run is saved after step 0\. .*--resume"):
        run(sandbox, tmp_path / "run", **changes)
    rows = read_rows(tmp_path / "run" / METRICS)
    assert [row["step"] for row in rows] == [0, 1, 2]
