"""Opponents from the past: who answers, and who learns."""

from __future__ import annotations

import numpy as np

from codea1_env.agents import GRPO, Experience, Pool, TabularAgent
from codea1_env.baselines.diagnose.past import WithPast
from codea1_env.problems import Problem
from codea1_env.spaces import observe

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
    notes = []
    for _ in range(200):
        (answer,) = one.act([SEEN])
        notes.append(getattr(answer, "note", None))
    assert 60 < notes.count("past") < 140
    one.share = 1.0
    assert {"a", "b"} <= {one.act([SEEN])[0] for _ in range(100)}
    one.sampling = "latest"
    assert {one.act([SEEN])[0] for _ in range(50)} == {"b"}


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


def test_moments_are_few_and_reach_far_back():
    one = player(every=1, most=4)
    taught(one, "a", 40)
    assert len(one._moments) <= 4
    assert one.every == 16
