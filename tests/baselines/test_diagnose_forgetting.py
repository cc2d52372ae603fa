"""The experiment on forgetting: phases, books, and a reference that changes in the middle."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import pytest

from codea1_env.baselines.diagnose.books import PassingBook, make_book, stale_share
from codea1_env.baselines.diagnose.experiments import EXPERIMENTS
from codea1_env.baselines.diagnose.playing import _Run, play
from codea1_env.baselines.diagnose.remembering import RememberingReferee
from codea1_env.baselines.diagnose.testers import FixedCells
from codea1_env.mistake_book import MistakeBook
from codea1_env.problem_sets.cells import CellsConfig, cells, changed, pools_of
from codea1_env.rollout import RolloutConfig, rollout

FORGETTING = EXPERIMENTS["forgetting"]
SMALL = {"world.problems": 3, "num_generations": 4, "steps": 12, "phase": 2}


def config(setting, row, seed=1000, **changes):
    small = dataclasses.replace(FORGETTING, base={**FORGETTING.base, **SMALL, **changes})
    return small.config(setting, row, seed)


class Says(FixedCells):
    """Gives its answers in turn."""

    def __init__(self, texts):
        self._texts = texts

    def act(self, observations):
        return [self._texts[i % len(self._texts)] for i in range(len(observations))]


@pytest.mark.parametrize("row", [*FORGETTING.rows, "ppo", "learnability", "past-opponents"])
def test_a_run_is_a_function_of_its_seed(row, sandbox):
    first, again = (play(config("0.5", row), sandbox) for _ in range(2))
    assert first == again
    assert 0 <= first["solved/phases"] <= 1
    if row not in ("no-book", "past-opponents"):
        assert play(config("0.5", row, 1001), sandbox) != first


def test_testers_attack_one_half_of_the_fault_sets_at_a_time(sandbox):
    run = _Run(config("0.5", "code-a1"), sandbox, None)
    for half, tester in enumerate(run.testers):
        for name, pools in run.worlds.items():
            calls = {pools.tests.index(test) for test in tester._pools[name].items}
            assert calls == frozenset().union(*pools.families[half::2])


def test_stale_tests_leave_the_book(sandbox):
    """However often they broke programs, and though no program is ever run on them again."""
    before = cells(CellsConfig(C=16, faults=Fraction(1, 8), families=4, problems=1))[0]
    after, pools, book = changed(before, 2), pools_of(before), MistakeBook()
    book.update(before.task_id, failed=[test for test in pools.tests[:8] for _ in range(20)])
    old = {test for test in pools.tests if test not in after.tests}
    book.update(before.task_id, failed=[test for test in old for _ in range(50)])
    assert stale_share(book, [before]) == 0 < stale_share(book, [after])
    referee, players = RememberingReferee(sandbox), (Says(pools.programs), Says(pools.tests))
    for _ in range(20):
        played = rollout([after], *players, referee, book, RolloutConfig(5, 2))
        assert not old & {test.text for e in played.episodes for test in e.verdict.history}
    assert stale_share(book, [after]) == 0
    assert book.tests(after.task_id), "those that are still true stay"


def test_a_book_of_passing_tests_holds_what_broke_nothing(sandbox):
    problem = cells(CellsConfig(C=16, faults=Fraction(1, 8), families=4, problems=1))[0]
    pools, book = pools_of(problem), make_book("passing")
    assert isinstance(book, PassingBook)
    referee, every = RememberingReferee(sandbox), Says(pools.tests)
    for programs, wrong in (
        (pools.programs[:2], pools.faults[1]),
        (pools.programs[:3], pools.faults[1] | pools.faults[2]),
    ):
        played = rollout([problem], Says(programs), every, referee, book, RolloutConfig(len(programs), 16))  # fmt: skip
        book.fill(episode.verdict for episode in played.episodes)
        right = {test for cell, test in enumerate(pools.tests) if cell not in wrong}
        assert set(book.tests(problem.task_id)) == right


def test_a_separating_book_forgets_what_no_program_passes() -> None:
    book = make_book("separating")
    book.update("a", ["assert f(1) == 1", "assert f(1) == 1", "assert f(2) == 2"])
    book.update("a", [], ["assert f(2) == 2"], ["assert f(1) == 1"])
    assert book.tests("a") == []
    assert make_book("quality").replay == "quality"
