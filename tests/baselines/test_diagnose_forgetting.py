"""The experiment on forgetting: phases, books, a reference that changes in the middle; and opponents from the past."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from codea1_env.agents import GRPO, Experience, Pool, TabularAgent
from codea1_env.baselines.diagnose.experiments import EXPERIMENTS
from codea1_env.baselines.diagnose.play_config import PassingBook, make_book, stale_share
from codea1_env.baselines.diagnose.playing import _Run, play
from codea1_env.baselines.diagnose.remembering import RememberingReferee
from codea1_env.baselines.diagnose.testers import FixedCells, WithPast
from codea1_env.mistake_book import MistakeBook
from codea1_env.problem_sets.cells import CellsConfig, cells, changed, pools_of
from codea1_env.problems import Problem
from codea1_env.rollout import RolloutConfig, rollout
from codea1_env.spaces import observe

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


@pytest.fixture(scope="module")
def memory(sandbox) -> RememberingReferee:
    """What the sandbox says of the worlds here, asked once."""
    return RememberingReferee(sandbox)


@pytest.mark.parametrize(
    "row", ["code-a1", "half-book", "passing-book", "random-tests", "past-opponents"]
)
def test_a_run_is_a_function_of_its_seed(row, sandbox, memory):
    first, again = (play(config("0.5", row), sandbox, memory) for _ in range(2))
    assert first == again
    assert 0 <= first["solved/phases"] <= 1
    if row not in ("no-book", "past-opponents"):
        assert play(config("0.5", row, 1001), sandbox, memory) != first


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


PROBLEM = Problem("p", "def f():", "f", "def f(): return 1")
SEEN = observe(PROBLEM)
OTHER = observe(PROBLEM, code="x", turn=1)


def player(**settings):
    table = TabularAgent([Pool(PROBLEM, ("a", "b", "c", "d"))], GRPO(4.0), np.random.default_rng(0))
    return WithPast(table, np.random.default_rng(1), **settings)


def taught(one, best, steps):
    for _ in range(steps):
        answers = one.act([SEEN] * 8)
        one.learn([Experience(SEEN, a, float(a == best), "g") for a in answers])


def test_the_past_answers_its_share_of_the_questions_as_it_was():
    one = player(share=0.5, every=5)
    taught(one, "a", 10)
    one.policy.logits["p"][:] = [0.0, 50.0, 0.0, 0.0]
    taught(one, "b", 30)
    notes = [getattr(one.act([SEEN])[0], "note", None) for _ in range(200)]
    assert 60 < notes.count("past") < 140
    one.share = 1.0
    assert {"a", "b"} <= {one.act([SEEN])[0] for _ in range(100)}


def test_answers_to_one_question_are_of_one_moment_and_nobody_learns_from_the_past():
    one = player(share=0.5, every=1)
    taught(one, "a", 3)
    for _ in range(20):
        answers = one.act([SEEN] * 4 + [OTHER] * 4)
        notes = [getattr(each, "note", None) for each in answers]
        assert len(set(notes[:4])) == len(set(notes[4:])) == 1
    one.share = 1.0
    before = one.policy.state_dict()
    taught(one, "b", 5)
    assert one.policy.state_dict() == before
