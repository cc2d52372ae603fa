from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from codea1_env.agents import (
    ALGORITHMS,
    GRPO,
    Answer,
    Experience,
    Pool,
    TabularAgent,
    make_algorithm,
    pool_of_programs,
)
from codea1_env.agents import pool_of_tests as make_pool_of_tests
from codea1_env.agents.algorithms import teaches
from codea1_env.agents.policy import MAX_SHOWN, AlgorithmError, Sample, SoftmaxPolicy, updated
from codea1_env.agents.tabular import TEST_SEPARATOR
from codea1_env.evaluation import hold_out
from codea1_env.mistake_book import MistakeBook
from codea1_env.problems import Problem, load_problems
from codea1_env.referee import Referee
from codea1_env.rollout import RolloutConfig, rollout
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import observe

PROBLEM = Problem("p", "def f():", "f", "def f(): return 1")
TESTS = tuple(f"assert f() == {value}" for value in range(6))
SEEN = observe(PROBLEM)


def make_tester(algorithm="grpo", draws=2, seed=0):
    made = make_algorithm(algorithm, {"learning_rate": 1.0})
    return TabularAgent([Pool(PROBLEM, TESTS)], made, np.random.default_rng(seed), draws)


@pytest.mark.parametrize(
    "algorithm", [name for name, kind in ALGORITHMS.items() if teaches(kind, "tabular")]
)
def test_learns_which_tests_to_put_into_a_suite(algorithm):
    agent = make_tester(algorithm)

    def good(suite):
        return sum(test in suite.split(TEST_SEPARATOR) for test in (TESTS[1], TESTS[4]))

    assert np.mean([good(suite) for suite in agent.act([SEEN] * 100)]) < 1.0
    for _ in range(60):
        suites = agent.act([SEEN] * 8)
        agent.learn([Experience(SEEN, suite, float(good(suite)), "g") for suite in suites])
    assert np.mean([good(suite) for suite in agent.act([SEEN] * 100)]) > 1.8


def test_answers_of_others_are_refused():
    with pytest.raises(ValueError, match="answers of this player, actually: 'assert f"):
        make_tester().learn([Experience(SEEN, "assert f() == 99", 1.0, "g")])


def test_a_coder_may_use_the_separator_in_a_program():
    programs = ("def f():\n\n    return 1", "def f():\n\n    return 2")
    agent = TabularAgent([Pool(PROBLEM, programs)], GRPO(), np.random.default_rng(0))
    answers = agent.act([SEEN] * 6)
    agent.learn([Experience(SEEN, answer, float("1" in answer), "g") for answer in answers])
    assert agent.policy.logits["p"][0] > agent.policy.logits["p"][1]


@pytest.fixture(scope="module")
def splits(sandbox: Sandbox):
    return hold_out(load_problems("starter", "train")[10:40:10], sandbox, seed=0)


def test_pools_hold_nothing_back_and_give_nothing_away(splits, sandbox: Sandbox):
    for split in splits:
        programs = pool_of_programs(split, 16).items
        tests = make_pool_of_tests(split, sandbox, size=32).items
        assert programs[0] == split.problem.reference
        assert not set(programs) & set(split.mutants)
        assert not set(tests) & set(split.tests)
        hidden_calls = [test.removeprefix("assert ").rpartition(" == ")[0] for test in split.tests]
        assert not any(call in test for call in hidden_calls for test in tests)
        assert set(split.tests) | set(split.train_tests) == set(split.problem.tests)


def test_pools_are_the_same_every_time(splits, sandbox: Sandbox):
    again = hold_out([split.problem for split in splits], sandbox, seed=0)
    assert again == splits
    assert hold_out([split.problem for split in splits], sandbox, seed=1) != splits
    for split in splits:
        pools = [make_pool_of_tests(split, sandbox, size=32, seed=5) for _ in range(2)]
        assert pools[0].fingerprint == pools[1].fingerprint


def test_pools_contain_good_and_bad(splits, sandbox: Sandbox):
    for split in splits:
        programs = pool_of_programs(split, 16).items
        results = [sandbox.run_tests(program, split.problem.tests) for program in programs]
        passed = [all(result.passed for result in each) for each in results]
        assert passed[0]
        assert passed.count(False) >= 3
        tests = make_pool_of_tests(split, sandbox, size=32).items
        right = [result.passed for result in sandbox.run_tests(split.problem.reference, tests)]
        assert any(right)
        assert right.count(False) >= 3


def test_a_pool_of_tests_needs_golden_tests(sandbox: Sandbox):
    problem = Problem("p", "def f(): ...", "f", "def f(): ...")
    split = hold_out([problem], sandbox)[0]
    with pytest.raises(ValueError, match=r"golden test .* actually none in 'p'"):
        make_pool_of_tests(split, sandbox)


SHOWN = {name: observe(PROBLEM, code=f"def f(): return {name}", turn=1) for name in ("1", "2")}


def learned(agent, seen, best, steps=40):
    for _ in range(steps):
        suites = agent.act([seen] * 8)
        agent.learn([Experience(seen, s, float(TESTS[best] in s), "g") for s in suites])


def chances(agent, seen):
    return agent.policy.probabilities(agent.policy.table("p", seen["code"]))


def test_a_tester_answers_each_program_that_it_sees_with_a_test_of_its_own():
    agent = make_tester(draws=1)
    for _ in range(3):
        learned(agent, SHOWN["1"], 1)
        learned(agent, SHOWN["2"], 4)
    assert chances(agent, SHOWN["1"])[1] > 0.8
    assert chances(agent, SHOWN["2"])[4] > 0.8


def test_a_share_of_what_is_learned_against_a_program_goes_to_programs_not_seen_yet():
    agent, carried = make_tester(draws=1), 0.1
    agent.policy.carried = carried
    learned(agent, SHOWN["1"], 1)
    change = agent.policy.logits[agent.policy.table("p", SHOWN["1"]["code"])]
    assert agent.policy.logits[agent.policy.table("p", "def f(): return 3")] == pytest.approx(carried * change)  # fmt: skip
    assert agent.policy.logits["p"] == pytest.approx(carried * change)


def test_a_coder_that_repairs_sees_what_failed():
    agent = TabularAgent([Pool(PROBLEM, ("a", "b"))], GRPO(), np.random.default_rng(0))
    repairs = {
        best: observe(PROBLEM, code="def f(): return 0", tests=broke, round=1)
        for best, broke in (("a", "assert f() == 1"), ("b", "assert f() == 2"))
    }
    for _ in range(20):
        for best, seen in repairs.items():
            answers = agent.act([seen] * 8)
            agent.learn([Experience(seen, each, float(each == best), "g") for each in answers])
    for best, seen in repairs.items():
        assert agent.act([seen] * 50).count(best) > 40


def test_tables_of_shown_programs_are_saved(tmp_path):
    first, second = make_tester(seed=3), make_tester(seed=4)
    learned(first, SHOWN["1"], 1, 5)
    learned(first, SHOWN["2"], 4, 5)
    first.save(tmp_path)
    second.load(tmp_path)
    seen = [*SHOWN.values(), SEEN] * 10
    assert second.act(seen) == first.act(seen)
    learned(first, SHOWN["2"], 4, 5)
    learned(second, SHOWN["2"], 4, 5)
    assert second.policy.state_dict() == first.policy.state_dict()


@pytest.mark.slow
def test_no_coder_can_make_a_tester_hold_more_and_more_tables():
    agent = make_tester()
    for number in range(MAX_SHOWN + 200):
        seen = observe(PROBLEM, code=f"def f(): return {number}", turn=1)
        agent.learn([Experience(seen, s, float(i), "g") for i, s in enumerate(agent.act([seen] * 2))])  # fmt: skip
    assert MAX_SHOWN < len(agent.policy.state_dict()["shown"]) <= MAX_SHOWN + 64


def test_experience_carries_what_the_player_put_into_its_answer(sandbox):
    (problem,) = load_problems("cells:C=4,families=1,faults=1/4,problems=1")

    class Noting(TabularAgent):
        def act(self, observations):
            return [Answer(text, len(text)) for text in super().act(observations)]

    pools = [Pool(problem, (problem.reference, "def f(x): return 0"))]
    coder = Noting(pools, GRPO(), np.random.default_rng(0))
    tester = Noting([Pool(problem, ("assert f(1) == 2",))], GRPO(), np.random.default_rng(0))
    played = rollout([problem], coder, tester, Referee(sandbox), MistakeBook(), RolloutConfig(2, 2))
    for item in (*played.coder_experience(), *played.tester_experience()):
        assert item.note == len(item.action)


@pytest.fixture
def policy() -> SoftmaxPolicy:
    policy = SoftmaxPolicy({"t": 4}, draws=2)
    policy.logits["t"] = np.array([1.0, 0.0, -1.0, 0.5])
    return policy


def test_log_probs_are_those_of_plackett_and_luce(policy):
    weights = np.exp(policy.logits["t"])
    expected = [weights[2] / weights.sum(), weights[0] / (weights.sum() - weights[2])]
    assert np.exp(policy.log_probs("t", (2, 0))) == pytest.approx(expected)


def test_draws_follow_the_log_probs(policy):
    rng = np.random.default_rng(0)
    number = 3000
    drawn = [policy.draw("t", rng) for _ in range(number)]
    for pair in itertools.permutations(range(4), 2):
        chance = math.exp(policy.log_probs("t", pair).sum())
        error = 4 * math.sqrt(chance * (1 - chance) / number)
        assert drawn.count(pair) / number == pytest.approx(chance, abs=error), pair


def test_gradients_are_derivatives(policy):
    for drawn in [(0, 1), (3, 2), (2, 0)]:
        gradients = policy.gradients("t", drawn)
        for index in range(4):
            step = np.zeros(4)
            step[index] = 1e-6
            ahead = policy.log_probs("t", drawn, policy.logits["t"] + step)
            behind = policy.log_probs("t", drawn, policy.logits["t"] - step)
            assert gradients[:, index] == pytest.approx((ahead - behind) / 2e-6, abs=1e-8)


def test_extreme_logits_stay_finite():
    policy = SoftmaxPolicy({"t": 3}, draws=3)
    policy.logits["t"] = np.array([1000.0, 0.0, -1000.0])
    assert np.isfinite(policy.log_probs("t", (2, 1, 0))).all()
    assert np.isfinite(policy.gradients("t", (0, 1, 2))).all()
    assert policy.entropy("t") == 0.0


class _Breaks:
    learning_rate = 1.0

    def __init__(self, logits: object) -> None:
        self._logits = logits

    def update(self, policy, samples):
        policy.logits["a"] = self._logits
        return {}


@pytest.mark.parametrize(
    ("logits", "what"), [(np.array([0.0, np.nan, 0.0]), "nan"), (np.zeros(2), r"shape \(2,\)")]
)
def test_an_algorithm_that_breaks_the_policy_is_named(logits, what):
    policy = SoftmaxPolicy({"a": 3})
    with pytest.raises(AlgorithmError, match=f"_Breaks.update to leave finite logits .* {what}"):
        updated(_Breaks(logits), policy, [Sample("a", (0,), 1.0, "g")])
