"""One tabular model in both roles."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from codea1_env.agents import GRPO, Experience, Pool, TabularSelfPlayer
from codea1_env.problems import Problem
from codea1_env.responses import parse_suites
from codea1_env.spaces import observe

PROGRAMS = (
    "def inc(n):\n    return n + 1",
    "def inc(n):\n    return n + 2",
    "def inc(n):\n    return (",
)
TESTS = ("assert inc(1) == 2", "assert inc(5) == 0", "assert inc(3) == 4")
PROBLEM = Problem("inc", "def inc(n):", "inc", PROGRAMS[0])


def player(sandbox, seed=0, draws=3):
    return TabularSelfPlayer(
        [Pool(PROBLEM, PROGRAMS)],
        [Pool(PROBLEM, TESTS)],
        sandbox,
        GRPO(),
        GRPO(learning_rate=4.0),
        np.random.default_rng(seed),
        draws,
    )


def believe(one, program):
    one.policies["programs"].logits["inc"][:] = -50.0
    one.policies["programs"].logits["inc"][program] = 50.0


def suite(one, sandbox, code=""):
    (text,) = one.act([observe(PROBLEM, code=code, turn=1)])
    (parsed,) = parse_suites([(str(text), PROBLEM)], sandbox)
    assert parsed.dropped == ()
    return {test.text for test in parsed.tests}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "tests"),
    [
        (0, {"assert inc(1) == 2", "assert inc(5) == 6", "assert inc(3) == 4"}),
        (2, set(TESTS)),  # a program that does not run says nothing
    ],
)
def test_its_tests_predict_what_its_program_returns(sandbox, program, tests):
    one = player(sandbox)
    believe(one, program)
    assert one.act([observe(PROBLEM)]) == [PROGRAMS[program]]
    assert suite(one, sandbox) == tests


def test_it_may_believe_the_program_it_is_shown(sandbox):
    one = player(sandbox)
    believe(one, 0)
    one.policies["trust"].logits["shown"][:] = [-50.0, 50.0]
    assert "assert inc(1) == 3" in suite(one, sandbox, code=PROGRAMS[1])
    assert "assert inc(1) == 2" in suite(one, sandbox, code="def inc(n):\n    return n - 1")


def test_its_tests_depend_on_the_program_it_is_shown(sandbox):
    one = player(sandbox, draws=1)
    seen = [observe(PROBLEM, code=each, turn=1) for each in PROGRAMS[:2]]
    for _ in range(40):
        suites = one.act(seen * 8)
        calls = ("inc(1)", "inc(5)") * 8
        earned = [float(call in text) for call, text in zip(calls, suites, strict=True)]
        one.learn([Experience(o, t, r, o["code"]) for o, t, r in zip(seen * 8, suites, earned, strict=True)])  # fmt: skip
    suites = one.act(seen * 20)
    assert sum("inc(1)" in each for each in suites[::2]) > 15
    assert sum("inc(5)" in each for each in suites[1::2]) > 15


def test_what_the_tester_earns_changes_the_programs(sandbox):
    one = player(sandbox)
    seen = observe(PROBLEM, turn=1)
    for _ in range(30):
        suites = one.act([seen] * 8)
        earned = [float("assert inc(1) == 3" in text) for text in suites]
        one.learn([Experience(seen, t, r, "g") for t, r in zip(suites, earned, strict=True)])
    assert one.policies["programs"].probabilities("inc")[1] > 0.9


def test_a_restored_one_goes_on_as_if_nothing_had_happened(sandbox, tmp_path):
    one, other = player(sandbox), player(sandbox, seed=7)
    seen = [observe(PROBLEM), observe(PROBLEM, code=PROGRAMS[1], turn=1)] * 4
    one.learn([Experience(o, a, float(i), "g") for i, (o, a) in enumerate(zip(seen, one.act(seen), strict=True))])  # fmt: skip
    one.save(tmp_path)
    other.load(tmp_path)
    assert other.act(seen) == one.act(seen)


def test_others_cannot_be_loaded(sandbox, tmp_path):
    player(sandbox).save(tmp_path)
    longer = dataclasses.replace(Pool(PROBLEM, TESTS), items=(*TESTS, "inc(4)"))
    programs = [Pool(PROBLEM, PROGRAMS)]
    rng = np.random.default_rng(0)
    other = TabularSelfPlayer(programs, [longer], sandbox, GRPO(), GRPO(), rng, 3)
    with pytest.raises(ValueError, match="with the same pools"):
        other.load(tmp_path)
