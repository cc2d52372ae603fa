from __future__ import annotations

import shutil

import numpy as np
import pytest

from codea1_env.agents import GRPO, Experience, GoldenTester, Pool, TabularAgent
from codea1_env.mistake_book import MistakeBook
from codea1_env.problems import Problem
from codea1_env.spaces import observe
from codea1_env.training import PlayerError, train
from codea1_env.training.checkpoints import (
    Books,
    checkpoints,
    load_checkpoint,
    save_checkpoint,
    step_of,
    verify,
)
from codea1_env.training.config import RunError, TrainConfig

PROBLEM = Problem("p", "def f():", "f", "def f(): return 1", tests=("assert f() == 1",))
POOL = Pool(PROBLEM, ("a", "b", "c"))


def players(seed=0):
    return TabularAgent([POOL], GRPO(), np.random.default_rng(seed)), GoldenTester([PROBLEM])


def books():
    return Books(MistakeBook(), MistakeBook())


def play(coder, tester, books, steps):
    for step in range(steps):
        answers = coder.act([observe(PROBLEM)] * 4)
        tester.act([observe(PROBLEM)])
        coder.learn([Experience(observe(PROBLEM), a, float(a == "b"), "g") for a in answers])
        for book in books:
            book.update("p", failed=[f"assert f() == {step}"])


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_restored_players_go_on_as_if_nothing_had_happened(tmp_path):
    coder, tester = players()
    own = books()
    play(coder, tester, own, 3)
    first = save_checkpoint(tmp_path / "a", 3, coder, tester, own, keep=2)
    play(coder, tester, own, 3)
    end = save_checkpoint(tmp_path / "a", 6, coder, tester, own, keep=2)

    other_coder, other_tester = players(seed=5)
    other = load_checkpoint(first, other_coder, other_tester, TrainConfig())
    play(other_coder, other_tester, other, 3)
    other_end = save_checkpoint(tmp_path / "b", 6, other_coder, other_tester, other, keep=2)
    assert contents(end) == contents(other_end)
    assert set(contents(end)) == {
        "state.json",
        "manifest.json",
        "book.sqlite",
        "past.sqlite",
        "coder/tabular.json",
        "tester/rng.json",
    }


def test_only_the_last_ones_are_kept(tmp_path):
    coder, tester = players()
    for step in (2, 4, 10):
        save_checkpoint(tmp_path, step, coder, tester, books(), keep=2)
    assert [step_of(path) for path in checkpoints(tmp_path)] == [4, 10]


def test_what_a_killed_run_left_is_no_checkpoint(tmp_path):
    coder, tester = players()
    whole = save_checkpoint(tmp_path, 2, coder, tester, books(), keep=2)
    shutil.copytree(whole, tmp_path / "checkpoints" / ".step_4.part")
    assert checkpoints(tmp_path) == [whole]
    save_checkpoint(tmp_path, 4, coder, tester, books(), keep=2)
    assert [path.name for path in sorted((tmp_path / "checkpoints").iterdir())] == [
        "step_2",
        "step_4",
    ]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: (path / "book.sqlite").write_bytes(b""), "book.sqlite was changed"),
        (lambda path: (path / "coder" / "tabular.json").unlink(), "coder/tabular.json is missing"),
        (lambda path: (path / "manifest.json").unlink(), "manifest.json: "),
        (lambda path: (path / "manifest.json").write_text("{"), "manifest.json: "),
        (lambda path: (path / "manifest.json").write_text("[]"), "book.sqlite was changed"),
        (lambda path: (path / "more").write_text(""), "more was changed"),
    ],
)
def test_damage_is_noticed(tmp_path, damage, message):
    path = save_checkpoint(tmp_path, 2, *players(), books(), keep=2)
    verify(path)
    damage(path)
    with pytest.raises(RunError, match=f"to be a complete checkpoint, actually: {message}"):
        load_checkpoint(path, *players(), TrainConfig())


def test_a_renamed_checkpoint_is_noticed(tmp_path):
    path = save_checkpoint(tmp_path, 2, *players(), books(), keep=2)
    with pytest.raises(RunError, match="it is that of step 2"):
        verify(path.rename(path.with_name("step_7")))


def test_players_with_other_pools_do_not_load(tmp_path):
    path = save_checkpoint(tmp_path, 2, *players(), books(), keep=2)
    other = TabularAgent([Pool(PROBLEM, ("a", "b"))], GRPO(), np.random.default_rng(0))
    with pytest.raises(RunError, match="to be of a player with the same pools"):
        load_checkpoint(path, other, GoldenTester([PROBLEM]), TrainConfig())


GROWN_UP = """
from codea1_env.agents import RLOO


class Counts:
    def __init__(self, learning_rate):
        self.learning_rate, self.steps = learning_rate, 0

    def update(self, policy, samples):
        self.steps += 1
        return RLOO(self.learning_rate).update(policy, samples)

    def state_dict(self):
        return {"steps": {1} if self.steps > 1 else self.steps}

    def load_state_dict(self, state):
        pass
"""


def test_a_state_that_cannot_be_saved_any_more_is_a_line_and_the_run_can_be_resumed(
    tmp_path, sandbox
):
    (tmp_path / "own.py").write_text(GROWN_UP)
    config = TrainConfig(
        algorithm=f"{tmp_path}/own.py:Counts",
        max_problems=2,
        max_steps=3,
        save_steps=1,
        num_generations=2,
        num_suites=2,
        workers=1,
        output_dir=tmp_path / "run",
    )
    said = r"Counts\.state_dict to return .* type set The run is saved after step 1.*--resume"
    with pytest.raises(PlayerError, match=said):
        train(config, sandbox=sandbox)
    assert [step_of(each) for each in checkpoints(tmp_path / "run")] == [0, 1]
