"""Who learns from what, and what a player may report."""

from __future__ import annotations

import dataclasses
import io
import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from problem_rows import LAYOUTS, write_lines
from rich.console import Console

from codea1_env.agents import GRPO, FixedAgent, MutantCoder, TabularAgent
from codea1_env.cli.train import PRESETS, SourcesAndFolder, base_settings
from codea1_env.evaluation import hold_out, pass_rate
from codea1_env.mistake_book import MistakeBook
from codea1_env.problems import Problem, ProblemsError, load_problems
from codea1_env.referee import Referee
from codea1_env.rollout import RolloutConfig, rollout
from codea1_env.sandbox import Sandbox
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
from codea1_env.training.run_folder import HELD_OUT
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


NUMBER = 40
SETTINGS = TrainConfig(
    split=None, coder=PlayerConfig("reference"), tester=TesterConfig("golden"), problems_per_step=2, num_generations=2,
    num_suites=2, max_steps=1, eval_samples=1, eval_trained=3,
)  # fmt: skip


def write_set(path: Path, number: int = NUMBER) -> Path:
    """A problem again and again, under other names."""
    rows = [
        {
            "task_id": f"add/{i}",
            "prompt": "def add(a: int, b: int) -> int:",
            "entry_point": "add",
            "reference": f"def add(a, b):\n    return a + b + {i} - {i}",
            "tests": [f"assert add({i}, {j}) == {i + j}" for j in range(3)],
        }
        for i in range(number)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_mutants_are_made_of_the_measured_problems_alone(tmp_path, sandbox, monkeypatch) -> None:
    from codea1_env.evaluation import held_out as module

    made: list[str] = []
    generate = module.generate_mutants

    def counting(source: str, used: Sandbox) -> object:
        made.append(source)
        return generate(source, used)

    monkeypatch.setattr(module, "generate_mutants", counting)
    problems = write_set(tmp_path / "many.jsonl")
    measured = []
    for folder in ("run", "again"):
        config = replace(SETTINGS, problems=str(problems), output_dir=tmp_path / folder)
        train(config, sandbox=sandbox, console=Console(file=io.StringIO()))
        rows = list(read_rows(tmp_path / folder / HELD_OUT))
        assert [row["step"] for row in rows] == [0, 0, 0, 1, 1, 1]
        assert all(row["pass_rate"] == 1.0 for row in rows)
        measured.append([row["task_id"] for row in rows])
    assert measured[0] == measured[1]
    assert len(made) == 2 * SETTINGS.eval_trained
    assert measured[0][:3] != [f"add/{i}" for i in range(3)], "not simply the first ones"


def test_a_test_module_measures_nothing(sandbox: Sandbox) -> None:
    """Programs can forge its verdicts."""
    reference, module = (
        "def inc(n):\n    return n + 1",
        "from solution import *\ndef test_it(): pass\n",
    )
    problem = Problem("inc", "def inc(n):", "inc", reference, test_module=module)
    held_out = hold_out([problem], sandbox)
    assert (held_out[0].train_cases, held_out[0].cases) == ((), ())

    class Writes:
        def act(self, observations: object) -> list[str]:
            return [reference] * len(observations)  # type: ignore[arg-type]

    assert pass_rate(Writes(), held_out, sandbox, 1) is None


PAPER = [name for name in PRESETS if name.startswith("qwen")]


@pytest.mark.parametrize("preset", PAPER)
def test_every_problem_comes_three_times(preset: str) -> None:
    config = base_settings(SourcesAndFolder(preset=preset))
    assert (config.problems, config.difficulty) == ("kodcode", "hard")
    assert config.max_problems is not None
    epoch = config.max_problems // config.problems_per_step
    assert (epoch, config.max_steps) == (37, 111)
    assert config.coder.trainer["delta"] == config.tester.trainer["delta"] == 10.0


def rows(path: Path) -> str:
    levels = enumerate(("hard", "easy", "hard", "medium", "hard"))
    made = [{"question_id": f"Q{i}", "gpt_difficulty": level} for i, level in levels]
    return write_lines(path, *(LAYOUTS["kodcode"] | each for each in made))


def test_the_hard_part_of_a_set(tmp_path: Path) -> None:
    source = rows(tmp_path / "kodcode.jsonl")
    hard = load_problems(source, difficulty="hard")
    assert [problem.task_id for problem in hard] == ["KodCode/Q0", "KodCode/Q2", "KodCode/Q4"]
    assert hard[0].metadata["pass_percentage"] == "0.4"
    with pytest.raises(ProblemsError, match=r"one of easy, hard, medium, actually: 'harder'"):
        load_problems(source, difficulty="harder")


def test_the_release_does_not_say_how_hard_its_problems_are(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "release.jsonl", LAYOUTS["release"])
    with pytest.raises(ProblemsError, match=r"one of none .*--difficulty None"):
        load_problems(source, difficulty="hard")
    assert len(load_problems(source)) == 1
