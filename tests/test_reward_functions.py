"""Rewards of one's own: by name, from a file, or as a function, wherever both players are paid."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

from codea1_env import RewardConfig, SuiteOutcome, parallel_env, suite_rewards
from codea1_env.cli.app import run
from codea1_env.rewards import REWARDS, code_a1, find_reward, mutation_score
from codea1_env.sandbox import Sandbox
from codea1_env.support.logs import read_rows
from codea1_env.support.plugins import name_of
from codea1_env.training import TrainConfig, train
from codea1_env.training.run_folder import METRICS, read_config

pytestmark = pytest.mark.usefixtures("sandboxes_stay_open")

FILE = """
def stakes(outcome, config):
    broken = any(outcome.failed)
    return (0.0 if broken else 0.75), (0.5 if broken else 0.25)
"""


def stakes(outcome: SuiteOutcome, config: RewardConfig) -> tuple[float | None, float]:
    broken = any(outcome.failed)
    return (0.0 if broken else 0.75), (0.5 if broken else 0.25)


@pytest.fixture
def named(tmp_path: Path) -> str:
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return f"{path}:stakes"


def test_the_default_is_the_papers() -> None:
    outcome = SuiteOutcome(True, [True, False, True], 1, 3, 8, 0.01)
    default = suite_rewards(outcome)
    assert default == suite_rewards(outcome, RewardConfig(function=code_a1))
    assert default.code == pytest.approx((1 / 3 + 3 / 8) / 2)


@pytest.mark.parametrize("name", REWARDS)
def test_every_reward_is_bounded_and_none_where_nothing_is_known(name: str) -> None:
    config = RewardConfig(num_tests=4, function=name)
    for failed in ([], [True], [False] * 4, [True] * 9):
        for runs in (True, False):
            paid = suite_rewards(SuiteOutcome(runs, failed, 0, 0, 0), config)
            assert (paid.code is None) == (not failed)
            assert (-1 if name == "rltf" else 0) <= (paid.code or 0) <= 1
            assert 0 <= paid.test <= (1 if runs else 0)


def test_breaking_twice_pays_once() -> None:
    config = RewardConfig(num_tests=4)
    once, twice, never = (
        mutation_score(SuiteOutcome(True, failed, 0, 0, 0), config)
        for failed in ([True, False, False, False], [True, True, False, False], [False] * 4)
    )
    assert once == twice == (0.0, 1.0)
    assert never == (1.0, 0.5)
    late = SuiteOutcome(True, [False] * 4 + [True], 0, 0, 0)
    assert mutation_score(late, config) == never
    assert mutation_score(SuiteOutcome(True, [False] * 4, 0, 1, 2), config)[0] == 0.0


def played(sandbox: Sandbox, rewards: object) -> dict[str, float]:
    env = parallel_env(sandbox=sandbox, rewards=rewards)
    env.reset(seed=0, options={"problem_id": "starter/add_numbers"})
    env.step({"coder_0": "def add_numbers(a, b):\n    return a - b"})
    return env.step({"tester_0": "assert add_numbers(2, 2) == 4"})[1]


@pytest.mark.slow
def test_the_environment_pays_them(sandbox: Sandbox, named: str) -> None:
    expected = {"coder_0": 0.0, "tester_0": 0.5}
    for rewards in (named, stakes, f"{__name__}:stakes"):
        assert played(sandbox, rewards) == expected
    assert played(sandbox, None) != expected
    assert played(sandbox, "mutation-score")["coder_0"] == 0.0


def quick(folder: Path, **changes: object) -> TrainConfig:
    return TrainConfig(
        max_problems=2, problems_per_step=2, max_steps=2, eval_steps=2, save_steps=2, num_tests=2,
        output_dir=folder, **changes,
    )  # fmt: skip


@pytest.mark.slow
def test_training_pays_them_and_a_run_is_repeated_with_them(tmp_path, sandbox, named):
    train(quick(tmp_path / "one", rewards=named), sandbox=sandbox)
    rows = list(read_rows(tmp_path / "one" / METRICS))
    paid = [row["reward/tester/mean"] for row in rows if "reward/tester/mean" in row]
    assert all(0.25 <= each <= 0.5 for each in paid)
    again = read_config(tmp_path / "one")
    assert again.rewards == named
    train(quick(tmp_path / "two", rewards=stakes), sandbox=sandbox)
    assert (tmp_path / "two" / METRICS).read_bytes() == (tmp_path / "one" / METRICS).read_bytes()
    assert read_config(tmp_path / "two").rewards == name_of(stakes)


@pytest.mark.slow
def test_the_command_line_takes_them(named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["play", "--json", "--coder", "reference", "--rewards", named]) == 0
    turns = json.loads(capsys.readouterr().out)["turns"]
    assert turns[-1]["rewards"] == {"coder_0": 0.75, "tester_0": 0.25}
    assert run(["train", "--dry-run", "--rewards", named]) == 0
    assert f'rewards = "{named}"' in capsys.readouterr().out
    assert run(["train", "--dry-run", "--rewards", "kode"]) == 2
    assert "one of code-a1" in capsys.readouterr().err


WRONG = {
    "kode": (ValueError, "one of code-a1, execution-first, mutation-score"),
    "codea1_env.rewards:code_b1": (ValueError, "to define the function 'code_b1'. Did you mean"),
    "nowhere.py:f": (ValueError, "there is no such file"),
    "codea1_env.rewards:REWARDS": (TypeError, "to be a function"),
}


@pytest.mark.parametrize("paid", [None, (0.0, float("nan")), (0.5, True)])
def test_what_is_no_reward_is_named(paid: object) -> None:
    config = RewardConfig(function=lambda outcome, config: paid)
    with pytest.raises(ValueError, match="to return the program's reward"):
        suite_rewards(SuiteOutcome(True, [True], 0, 0, 0), config)


@pytest.mark.parametrize(
    ("history", "expected"), [((1, 1), (0.5, 1.0)), ((0, 1), (0.0, 0.5)), ((0, 0), (0.0, 1.0))]
)
def test_a_program_that_the_book_breaks_pays_no_suite_again(history, expected):
    outcome = SuiteOutcome(True, [True, True], 0, *history)
    paid = find_reward("incremental")(outcome, RewardConfig(num_tests=2))
    assert paid == pytest.approx(expected)


@pytest.mark.slow
def test_the_example_of_secure_code_prefers_what_a_static_analyser_accepts(capsys) -> None:
    runpy.run_path("examples/secure_coder.py", run_name="__main__")
    without, paid = (
        [float(number) for number in re.findall(r"(?:eval|json) ([\d.]+)", line)]
        for line in capsys.readouterr().out.splitlines()
    )
    assert without[0] > 0.2  # tests do not tell the two programs apart
    assert paid[1] > 0.9


def test_a_program_that_is_hard_to_break_pays_more_to_who_breaks_it() -> None:
    config = RewardConfig(num_tests=2, function="difficulty-weighted")
    paid = [
        suite_rewards(SuiteOutcome(True, [True, False], 0, passed, 4), config).test
        for passed in range(5)
    ]
    assert paid == sorted(paid)
    assert paid[0] < paid[4]
