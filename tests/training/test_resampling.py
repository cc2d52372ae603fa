"""Dynamic sampling: groups that teach nothing are replaced, up to a bound, and an update keeps its size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from test_train import contents, run

from codea1_env import MistakeBook, Referee, Sandbox
from codea1_env.agents import FixedAgent, GoldenTester
from codea1_env.problems import load_problems
from codea1_env.rollout import RolloutConfig, Rollouts, rollout
from codea1_env.spaces import Observation
from codea1_env.support.logs import read_rows
from codea1_env.training import PlayerConfig, TesterConfig, TrainConfig
from codea1_env.training.problems_of_run import DynamicSampling
from codea1_env.training.run_folder import METRICS

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
    config = TrainConfig(
        coder=PlayerConfig(algorithm="dapo"),
        tester=TesterConfig("golden"),
        num_generations=2,
        num_suites=2,
    )
    names = {problem.entry_point for problem in PROBLEMS[8 - able :]} if able else set()
    sampling = DynamicSampling(config, PROBLEMS).of_step(PROBLEMS[:size], step=0)
    played = rollout(
        PROBLEMS[:size],
        SometimesRight(names),
        GoldenTester(PROBLEMS, 4, 0),
        Referee(sandbox),
        MistakeBook(),
        RolloutConfig(2, 2),
        sampling.more,
    )
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
    dapo = {"algorithm": "dapo", "max_problems": 8, "num_generations": 2}
    run(tmp_path / "whole", sandbox, **dapo)
    run(tmp_path / "parts", sandbox, **dapo, max_steps=2)
    run(tmp_path / "parts", sandbox, resume=True, **dapo)
    without = (".lock", "timings.jsonl", "config.toml", METRICS, "held_out.jsonl")
    assert contents(tmp_path / "whole", without=without) == contents(
        tmp_path / "parts", without=without
    )
    rows = list(read_rows(tmp_path / "whole" / METRICS))[1:]
    assert any(row["resampled"] for row in rows)
    assert "resampled" not in next(iter(read_rows(tmp_path / "whole" / METRICS))), (
        "nothing is played before the first step"
    )


@pytest.mark.parametrize("name", ["grpo", "rloo"])
def test_others_replace_nothing(name: str) -> None:
    assert not DynamicSampling(TrainConfig(algorithm=name), PROBLEMS).active
