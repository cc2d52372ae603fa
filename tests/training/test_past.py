"""Opponents from the past, and groups that teach nothing and are replaced."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_train import SMALL, Interrupting, contents, run

from codea1_env import MistakeBook
from codea1_env.agents import CopierTester, FixedAgent, GoldenTester, ReferenceCoder
from codea1_env.agents.llm.agent import LanguagePlayer
from codea1_env.evaluation import HeldOut, hold_out, pass_rates
from codea1_env.problems import load_problems
from codea1_env.referee import Referee, RefereeConfig
from codea1_env.rewards import RewardConfig
from codea1_env.rollout import Agent, RolloutConfig, Rollouts, rollout
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import Observation
from codea1_env.support.logs import read_rows
from codea1_env.training import PlayerConfig, TesterConfig
from codea1_env.training.config import TrainConfig
from codea1_env.training.measuring import Unseen, _solved, unseen_problems
from codea1_env.training.past import NOBODY, PastOpponents
from codea1_env.training.players import Players
from codea1_env.training.problems_of_run import DynamicSampling
from codea1_env.training.run_folder import METRICS
from codea1_env.training.settings import replaced

PAST = {"opponents": "past", "past_steps": 1, "past_limit": 3, "past_share": 0.7, "max_steps": 8}


def opponents(folder: Path, **changes: object) -> PastOpponents:
    return PastOpponents(replaced(SMALL, {**PAST, **changes}), folder, None)


def test_the_oldest_and_the_newest_stay(tmp_path: Path) -> None:
    kept = [[0], [0, 1], [0, 1, 2], [0, 2, 3], [0, 3, 4]]
    assert [opponents(tmp_path).kept(step) for step in range(5)] == kept
    assert opponents(tmp_path, opponents="current").kept(5) == []


@pytest.mark.parametrize(("sampling", "expected"), [("latest", {4}), ("uniform", {0, 3, 4})])
def test_who_plays_follows_from_seed_and_step(tmp_path: Path, sampling, expected) -> None:
    past = opponents(tmp_path, past_sampling=sampling, past_steps=1)
    sides = [past.of_step(4) for _ in range(3)]
    assert len(set(sides)) == 1
    many = [
        opponents(tmp_path, past_sampling=sampling, seed=seed).of_step(4) for seed in range(200)
    ]
    share = np.mean([side != NOBODY for side in many])
    assert abs(share - 0.7) < 4 * (0.7 * 0.3 / 200) ** 0.5
    assert {side.step for side in many if side.role} == expected
    assert {side.role for side in many} == {"", "coder", "tester"}


def test_who_wins_plays_more_often(tmp_path: Path) -> None:
    past = opponents(tmp_path, past_sampling="win-rate")
    past._results = {f"{role}/{step}": [1, float(step == 3)] for role in ("coder", "tester") for step in (0, 3, 4)}  # fmt: skip
    rng = np.random.default_rng(0)
    drawn = [past._drawn("coder", [0, 3, 4], rng) for _ in range(100)]
    assert drawn.count(3) > 95


def test_an_interrupted_run_goes_on_to_the_same_bytes(sandbox: Sandbox, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    settings = {**PAST, "eval_steps": 20, "save_steps": 3}
    run(whole, sandbox, player=Interrupting(signal.SIGINT, after=-1), **settings)
    run(parts, sandbox, player=Interrupting(signal.SIGINT, after=6), **settings)
    run(parts, sandbox, resume=True, player=Interrupting(signal.SIGINT, after=-1), **settings)
    for row in list(read_rows(whole / METRICS))[1:]:  # who is of the past does not learn
        before = {role for role in ("coder", "tester") if row[f"past/{role}_of"] is not None}
        assert ("coder/loss" in row) == ("coder" not in before)
        assert len(before) < 2
    ours, theirs = contents(parts), contents(whole)
    for name, data in theirs.items():
        if "checkpoints" not in name or "step_8" in name:
            assert ours[name] == data, name


@pytest.mark.parametrize("tester_rounds", ["every", "first"])
def test_repair_rounds_are_measured(sandbox: Sandbox, tmp_path: Path, tester_rounds) -> None:
    run(tmp_path / "run", sandbox, max_rounds=2, tester_rounds=tester_rounds, max_steps=2)
    for row in list(read_rows(tmp_path / "run" / METRICS))[1:]:
        both = [row["reward/coder/round_1"], row["reward/coder/round_2"]]
        assert row["reward/coder/mean"] == pytest.approx(np.mean(both))
        assert row["coder/repaired"] is None or 0 <= row["coder/repaired"] <= 1


PROBLEMS = load_problems("starter", "train")[:8]


class SometimesRight(FixedAgent):
    """Solves every other time what it can do at all, and nothing else ever."""

    def __init__(self, able: set[str]) -> None:
        self.able = able

    def act(self, observations: Sequence[Observation]) -> list[str]:
        right = {problem.entry_point: problem.reference for problem in PROBLEMS}
        return [
            right[name] if name in self.able and i % 2 else f"def {name}(*a): return 'no'"
            for i, name in enumerate(seen["entry_point"] for seen in observations)
        ]


def play(sandbox: Sandbox, able: int, size: int = 2) -> tuple[Rollouts, list[list[str]]]:
    """Play problems of which none can be solved; only the last so many others can. Returns what each role learns from."""
    dapo, golden = PlayerConfig(algorithm="dapo"), TesterConfig("golden")
    config = TrainConfig(coder=dapo, tester=golden, num_generations=2, num_suites=2)
    names = {problem.entry_point for problem in PROBLEMS[8 - able :]} if able else set()
    sampling = DynamicSampling(config, PROBLEMS).of_step(PROBLEMS[:size], step=0)
    players = SometimesRight(names), GoldenTester(PROBLEMS, 4, 0), Referee(sandbox), MistakeBook()
    played = rollout(PROBLEMS[:size], *players, RolloutConfig(2, 2), sampling.more)
    lessons = [sampling.lesson(role, played) for role in ("coder", "tester")]
    assert [len(lesson) for lesson in lessons] == [2 * size, 2 * size]
    return played, [list(dict.fromkeys(each.group for each in lesson)) for lesson in lessons]


def test_groups_that_differ_take_the_place_of_those_that_do_not(sandbox: Sandbox) -> None:
    played, (coder, tester) = play(sandbox, able=6)
    own = [problem.task_id for problem in PROBLEMS[:2]]
    assert len(played.episodes) == 2 * 4, "as many others as were lacking, once"
    assert not set(coder) & set(own)
    assert [group.partition("#")[0] for group in tester] == own, "a script learns nothing"
    assert played.book_change.added > 0
    assert len({episode.problem.task_id for episode in played.episodes}) == 4


def test_there_is_an_end_to_it(sandbox: Sandbox) -> None:
    played, (coder, _) = play(sandbox, able=0)
    assert len(played.episodes) == 2 * 8, "three rounds of two others"
    assert coder == [problem.task_id for problem in PROBLEMS[:2]]
    played, (coder, _) = play(sandbox, able=1, size=6)
    assert len(played.episodes) == 2 * 8, "all there are"
    assert coder[0] == PROBLEMS[7].task_id
    assert coder[1:] == [problem.task_id for problem in PROBLEMS[:5]]


def test_a_resumed_run_replaces_the_same(tmp_path: Path, sandbox: Sandbox) -> None:
    dapo = {
        "algorithm": "dapo",
        "max_problems": 8,
        "num_generations": 2,
        "max_steps": 3,
        "eval_steps": 9,
    }
    run(tmp_path / "whole", sandbox, **dapo)
    run(tmp_path / "parts", sandbox, **{**dapo, "max_steps": 2})
    run(tmp_path / "parts", sandbox, resume=True, **dapo)
    without = (".lock", "timings.jsonl", "config.toml", METRICS, "held_out.jsonl")
    whole, parts = (contents(tmp_path / name, without=without) for name in ("whole", "parts"))
    assert whole == parts
    rows = list(read_rows(tmp_path / "whole" / METRICS))[1:]
    assert any(row["resampled"] for row in rows)


TRAINED = load_problems("starter", "train")[30:50]


def config(**changes: Any) -> TrainConfig:
    models = {
        "coder": PlayerConfig("llm", learning_rate=1e-5),
        "tester": TesterConfig("llm", learning_rate=1e-5),
    }
    return TrainConfig(**({"eval_problems": 5, "eval_samples": 3} | models | changes))


class StandIn(LanguagePlayer):
    """A stand-in for a language model: another player's answers."""

    def __init__(self, player: Agent) -> None:
        self._player = player

    def act(self, observations: Sequence[Observation]) -> list[str]:
        return list(self._player.act(observations))


def players(coder: Any, tester: Any) -> Players:
    return Players(coder, tester, coder_learns=False, tester_learns=False)


def test_they_are_others_as_hard_and_bounded_in_number() -> None:
    found = unseen_problems(config(), TRAINED)
    assert len(found) == 5
    assert {problem.metadata["split"] for problem in found} == {"eval"}
    levels = {problem.metadata["difficulty"] for problem in TRAINED}
    assert {problem.metadata["difficulty"] for problem in found} <= levels
    assert found == unseen_problems(config(seed=1), TRAINED), "seeds have the same problems"
    assert unseen_problems(config(eval_problems=0), TRAINED) == []
    assert unseen_problems(TrainConfig(eval_problems=5), TRAINED) == []  # tables answer no others


def test_without_a_split_they_are_what_is_left() -> None:
    everything = load_problems("starter")
    found = unseen_problems(config(split=None, eval_problems=200), everything[:10])
    assert found
    assert not {each.task_id for each in found} & {each.task_id for each in everything[:10]}


def test_who_knows_everything_gets_everything(sandbox: Sandbox) -> None:
    settings = config()
    problems = unseen_problems(settings, TRAINED)
    whole = RefereeConfig(RewardConfig(num_tests=64))
    unseen = Unseen(problems, Referee(sandbox, whole), settings)
    golden = StandIn(GoldenTester(problems, None))
    row, rows = unseen.measure(players(StandIn(ReferenceCoder(problems)), golden))
    assert [each["task_id"] for each in rows] == [problem.task_id for problem in problems]
    assert {each["pass_rate"] for each in rows} == {1.0}
    assert {each["kill_rate"] for each in rows} - {None} == {1.0}, "None: it has no mutants"
    for name in ("pass_rate", "kill_rate", "new_kill_rate"):
        assert row[f"unseen/{name}"] == 1.0
    assert row["unseen/copier_kill_rate"] < 1.0


def test_a_copier_gets_nothing_beyond_itself(sandbox: Sandbox) -> None:
    settings = config()
    problems = unseen_problems(settings, TRAINED)
    unseen = Unseen(problems, Referee(sandbox), settings)
    row, _ = unseen.measure(players(ReferenceCoder(problems), StandIn(CopierTester(None))))
    assert row["unseen/kill_rate"] == row["unseen/copier_kill_rate"]
    assert row["unseen/new_kill_rate"] == 0.0
    assert row["unseen/pass_rate"] is None  # no language model


@pytest.fixture(scope="module")
def held_out(sandbox: Sandbox) -> list[HeldOut]:
    return hold_out(load_problems("starter", "train")[:3], sandbox)


class Sometimes(FixedAgent):
    """Answers right so many times of four for each problem."""

    def __init__(self, held_out: Sequence[HeldOut], right: Sequence[int]) -> None:
        self.answers = [
            f"```python\n{item.problem.reference if number < times else 'def nothing(): pass'}\n```"
            for item, times in zip(held_out, right, strict=True)
            for number in range(4)
        ]

    def act(self, observations: Sequence[Observation]) -> Any:
        return self.answers


def test_pass_at_k(held_out: list[HeldOut], sandbox: Sandbox) -> None:
    rates = pass_rates(Sometimes(held_out, [4, 1, 0]), held_out, sandbox, 4)
    assert [each.held_out for each in rates.values()] == [1.0, 0.25, 0.0]
    assert _solved(rates.values(), 4) == {
        "held_out/pass@1": pytest.approx(5 / 12),
        "held_out/pass@4": pytest.approx(2 / 3),
    }


def test_old_tests_of_methods_are_measured(sandbox: Sandbox) -> None:
    problem = next(each for each in load_problems("starter") if "." in each.entry_point)
    held_out = hold_out([problem], sandbox)
    also = {problem.task_id: held_out[0].train_tests}
    [rates] = pass_rates(Sometimes(held_out, [1]), held_out, sandbox, 4, also).values()
    assert (rates.held_out, rates.also) == (0.25, 0.25)
