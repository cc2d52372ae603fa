from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from codea1_env import CODER, TESTER, MistakeBook, Referee, Sandbox, parallel_env
from codea1_env.agents import FixedAgent, GoldenTester, ReferenceCoder
from codea1_env.agents.llm.completions import BackendError
from codea1_env.oracle import BrokenReferenceError
from codea1_env.problems import Problem, load_problems
from codea1_env.rollout import RolloutConfig, Rollouts, rollout
from codea1_env.spaces import Observation, observe

PROBLEMS = {problem.entry_point: problem for problem in load_problems("starter", "train")}
TWO = [PROBLEMS["is_even"], PROBLEMS["last_item"]]
WRONG = {"is_even": "def is_even(n): return True", "last_item": "def last_item(items): return 0"}
SMALL = RolloutConfig(num_generations=2, num_suites=3)


class Cycle(FixedAgent):
    """Gives the answers of a list in turn, and remembers what it was shown."""

    def __init__(self, *answers: str) -> None:
        self.answers = answers
        self.seen: list[Observation] = []

    def act(self, observations: Sequence[Observation]) -> list[str]:
        start = len(self.seen)
        self.seen += observations
        return [self.answers[(start + i) % len(self.answers)] for i in range(len(observations))]


class WrongCoder(FixedAgent):
    def act(self, observations: Sequence[Observation]) -> list[str]:
        return [WRONG[observation["entry_point"]] for observation in observations]


@pytest.fixture
def referee(sandbox: Sandbox) -> Referee:
    return Referee(sandbox)


def play(referee, coder, tester, *, problems=TWO, book=None, config=SMALL) -> Rollouts:
    return rollout(problems, coder, tester, referee, book or MistakeBook(), config)


def test_everybody_meets_everybody(referee):
    coder, tester = Cycle(RIGHT, "def is_even(n): return True"), Cycle("")
    played = play(referee, coder, tester, problems=TWO[:1])
    assert [episode.program.code for episode in played.episodes] == list(coder.answers)
    assert [len(episode.suites) for episode in played.episodes] == [3, 3]
    assert coder.seen == [observe(TWO[0])] * 2
    assert [seen["code"] for seen in tester.seen] == [coder.answers[0]] * 3 + [coder.answers[1]] * 3
    assert {seen["turn"] for seen in tester.seen} == {1}


def test_parts_are_judged_as_the_whole(referee):
    config = RolloutConfig(2, 3, overlap=2)
    suites = "assert is_even(3) == False", "assert last_item([1, 2]) == 2", "nonsense("
    tester = Cycle(*suites)
    parts = play(referee, WrongCoder(), tester, config=config)
    whole = play(referee, WrongCoder(), Cycle(*suites))
    assert parts.coder_experience() == whole.coder_experience()
    assert parts.tester_experience("all") == whole.tester_experience("all")
    assert parts.book_change == whole.book_change
    assert [seen["entry_point"] for seen in tester.seen] == ["is_even"] * 6 + ["last_item"] * 6


def test_the_coder_writes_ahead_while_the_tester_attacks(referee):
    begun = threading.Event()

    class Eager(WrongCoder):
        def act(self, observations: Sequence[Observation]) -> list[str]:
            if observations[0]["entry_point"] == "last_item":
                begun.set()
            return super().act(observations)

    class Waiting(Cycle):
        def act(self, observations: Sequence[Observation]) -> list[str]:
            assert begun.wait(20)
            return super().act(observations)

    suites = "assert is_even(3) == False", "assert last_item([1, 2]) == 2", "nonsense("
    config = RolloutConfig(2, 3, overlap=2, writes_ahead=True)
    ahead = play(referee, Eager(), Waiting(*suites), config=config)
    whole = play(referee, WrongCoder(), Cycle(*suites))
    assert ahead.coder_experience() == whole.coder_experience()
    assert ahead.tester_experience("all") == whole.tester_experience("all")


def test_a_coder_that_fails_ahead_ends_the_step(referee):
    class Fails(WrongCoder):
        def act(self, observations: Sequence[Observation]) -> list[str]:
            if observations[0]["entry_point"] == "last_item":
                raise BackendError("lost")
            return super().act(observations)

    config = RolloutConfig(2, 3, overlap=2, writes_ahead=True)
    with pytest.raises(BackendError, match="lost"):
        play(referee, Fails(), Cycle(""), config=config)


def test_a_failure_of_the_judge_comes_out(referee):
    broken = Problem("broken", "def f(n): ...", "f", "raise ValueError")
    coder, tester, config = Cycle(""), Cycle(""), RolloutConfig(2, 2, overlap=2)
    with pytest.raises(BrokenReferenceError):
        play(referee, coder, tester, problems=[broken, TWO[0]], config=config)


def test_groups_and_rewards_of_the_coder(referee):
    played = play(referee, ReferenceCoder(TWO), GoldenTester(TWO, 8))
    experience = played.coder_experience()
    groups = ["starter/is_even"] * 2 + ["starter/last_item"] * 2
    assert [item.group for item in experience] == groups
    assert [item.reward for item in experience] == [1.0] * 4
    assert [item.action for item in experience[::2]] == [problem.reference for problem in TWO]


def test_groups_and_rewards_of_the_tester(referee):
    tester = Cycle("assert is_even(3) == False", "assert is_even(2) == True", "nonsense(")
    played = play(referee, Cycle(WRONG["is_even"], "syntax error("), tester, problems=TWO[:1])
    everything = played.tester_experience("all")
    groups = ["starter/is_even#0"] * 3 + ["starter/is_even#1"] * 3
    assert [item.group for item in everything] == groups
    codes = [item.observation["code"] for item in everything[::3]]
    assert codes == [WRONG["is_even"], "syntax error("]
    rewards = [item.reward for item in everything]
    assert rewards[0] > rewards[1] > rewards[2]
    assert rewards[3:] == [0.0, 0.0, 0.0], "a program that does not run pays nobody"
    assert played.tester_experience("max-variance") == everything[:3]


def test_a_program_without_valid_tests_is_not_scored(referee):
    played = play(referee, ReferenceCoder(TWO), Cycle("assert True"))
    assert [item.reward for item in played.coder_experience()] == [None] * 4


def test_the_book_of_before_the_step_is_replayed(referee):
    shared: Any = {"problems": TWO[:1], "book": MistakeBook()}
    first = play(referee, WrongCoder(), Cycle(BREAKS), **shared)
    assert all(not episode.verdict.history for episode in first.episodes)
    second = play(referee, ReferenceCoder(TWO), Cycle("assert is_even(2) == True"), **shared)
    for episode in second.episodes:
        assert [test.text for test in episode.verdict.history] == [BREAKS]
        assert episode.verdict.history_passed == (BREAKS,)
    assert shared["book"].frequency("starter/is_even", BREAKS) == 6 - 2


def test_without_the_book_nothing_is_replayed_or_written(referee):
    book = MistakeBook()
    book.update("starter/is_even", failed=[BREAKS])
    before = book.state_dict()
    config = RolloutConfig(2, 2, use_book=False)
    tester = Cycle("assert is_even(5) == False")
    played = play(referee, WrongCoder(), tester, book=book, config=config)
    assert all(not episode.verdict.history for episode in played.episodes)
    assert book.state_dict() == before
    assert played.book_change.added == 0


BREAKS = "assert is_even(3) == False"
RIGHT = "def is_even(n): return n % 2 == 0"


class Repairs(Cycle):
    """Writes a wrong program, and the right one once it has seen a test fail."""

    def act(self, observations: Sequence[Observation]) -> list[str]:
        self.seen += observations
        return [RIGHT if seen["tests"] else WRONG["is_even"] for seen in observations]


SHOWN = "assert is_even(5) == False"


@pytest.mark.parametrize("tester_rounds", ["every", "first"])
def test_a_program_is_repaired_in_the_second_round(referee, tester_rounds):
    coder, tester = Repairs(), Cycle(f"{SHOWN}\n{BREAKS}")
    config = RolloutConfig(2, 3, max_rounds=2, tester_rounds=tester_rounds)
    played = play(referee, coder, tester, problems=TWO[:1], config=config)
    found = [(each.round, each.index, each.verdict.code_reward) for each in played.episodes]
    assert found == [(0, 0, 0.0), (0, 1, 0.0), (1, 0, 1.0), (1, 1, 1.0)]
    repair = coder.seen[2]
    assert (repair["code"], repair["tests"]) == (WRONG["is_even"], SHOWN)
    assert repair["round"] == 1
    assert "fail" in repair["feedback"]
    # The tester is asked, and paid, for its answers only.
    groups = [item.group for item in played.tester_experience("all")]
    first = ["starter/is_even#0"] * 3 + ["starter/is_even#1"] * 3
    later = ["starter/is_even/round-1#0"] * 3 + ["starter/is_even/round-1#1"] * 3
    assert groups == (first + later if tester_rounds == "every" else first)
    assert len(tester.seen) == len(groups)
    groups = [item.group for item in played.coder_experience()]
    assert groups == ["starter/is_even"] * 2 + ["starter/is_even/round-1"] * 2


def test_rounds_show_what_the_environment_shows(referee, sandbox):
    coder, tester = Repairs(), Cycle(BREAKS)
    config = RolloutConfig(1, 1, max_rounds=3)
    play(referee, coder, tester, problems=TWO[:1], config=config)
    env = parallel_env(problems=TWO[:1], sandbox=sandbox, max_rounds=3)
    observations, _ = env.reset(seed=0)
    seen = {CODER: [], TESTER: []}
    while env.agents:
        seen[CODER].append(observations[CODER])
        observations, *_ = env.step({CODER: Repairs().act([observations[CODER]])[0]})
        seen[TESTER].append(observations[TESTER])
        observations, *_ = env.step({TESTER: BREAKS})
    for player, agent in ((coder, CODER), (tester, TESTER)):
        # The environment's book remembers the test of the first round, so that it is replayed.
        assert player.seen[:2] == seen[agent][:2]
        assert [each["code"] for each in player.seen] == [each["code"] for each in seen[agent]]


def test_a_black_box_tester_sees_no_program_in_any_round(referee):
    tester = Cycle(BREAKS)
    config = RolloutConfig(1, 1, black_box=True, max_rounds=2)
    play(referee, Repairs(), tester, problems=TWO[:1], config=config)
    shown = [(seen["code"], seen["tests"], seen["feedback"]) for seen in tester.seen]
    assert shown == [("", "", "")] * 2
