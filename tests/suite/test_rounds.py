"""Payoffs by table against the game's own referee, rewards and Mistake Book."""

from __future__ import annotations

import copy
import dataclasses
from itertools import pairwise

import numpy as np
import pytest

from codea1_env.agents import make_algorithm
from codea1_env.mistake_book import MistakeBook
from codea1_env.suite import IDS, SuiteError, make, opponents
from codea1_env.suite.checking import SampleChecker
from codea1_env.suite.players import SuiteEntry, SuiteRun
from codea1_env.suite.rounds import Book, Rounds
from codea1_env.suite.tasks import SuiteTask, find_task
from codea1_env.suite.updates import in_the_loop, step

RNG = np.random.default_rng


def played(rounds: Rounds, number: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Episodes, programs and suites, in which some tests are the same and some cells are wrong."""
    rng, task = RNG(seed), rounds.task
    episodes = rounds.begin(number)
    programs = rng.integers(task.programs, size=number)
    _, index = rounds.world.at(episodes)
    tests = rng.integers(task.C, size=(number, task.K))
    faulty = rounds.world.faulty[index, programs]
    broken = faulty.any(axis=1) & (rng.random(number) < 0.5)
    tests[broken, 0] = faulty[broken].argmax(axis=1)
    tests[rng.random(number) < 0.3, -1] = tests[rng.random(number) < 0.3, 0][0]
    return episodes, programs, tests


OTHER_RULES = ["collusion/2", "collusion/4", "rare-faults/3@learnability", "validity/2@rltf", "cycling/1@passing-book"]  # fmt: skip
OTHER_RULES += ["noise/1@same-errors-of-a-program", "kinds/2", "rare-faults/1@no-book"]


def task_of(id: str) -> SuiteTask:
    return find_task(id, "diagnose" if id in OTHER_RULES else "v1")


@pytest.mark.parametrize(
    "id",
    [
        "reading/2", "rare-faults/0", "weak-golden/1", "noise/0", "validity/1", "kinds/0",
        *OTHER_RULES,
    ],
)  # fmt: skip
def test_the_real_referee_judges_as_the_tables_do(id: str) -> None:
    rounds = Rounds(task_of(id), 1000)
    checker = SampleChecker(rounds.task, rounds.world.seed)
    for part in range(3):
        # On one problem again and again, so that its book is replayed.
        episodes, programs, tests = played(rounds, 32, part)
        rounds.begin((rounds.task.problems - 1) * 32)
        paid = rounds.end(episodes, programs, tests)
        checker.add(rounds, (episodes, programs, tests, paid.replayed))
    assert paid.replayed.max(initial=-1) >= 0 or rounds.task.book == "none"
    assert checker.finish(rounds) == 96


def test_a_table_that_lies_is_found() -> None:
    rounds = Rounds(find_task("rare-faults/0"), 1001)
    rounds.world = world = copy.copy(rounds.world)
    world.faulty = world.faulty ^ (RNG(0).random(world.faulty.shape) < 0.05)
    checker = SampleChecker(rounds.task, rounds.world.seed)
    episodes, programs, tests = played(rounds, 32)
    # The text has the faults of the true world.
    true = Rounds(find_task("rare-faults/0"), 1001).world
    world.text = true.text  # type: ignore[method-assign]
    paid = rounds.end(episodes, programs, tests)
    checker.add(rounds, (episodes, programs, tests, paid.replayed))
    with pytest.raises(SuiteError, match="Expect equal judgements of episode"):
        checker.finish(rounds)


@pytest.mark.parametrize("id", [*IDS["v1"], *OTHER_RULES])
def test_rounds_in_pieces_are_those_at_once(id: str) -> None:
    task = task_of(id)
    together, apart = Rounds(task, 1000), Rounds(task, 1000)
    for part in range(3):
        episodes, programs, tests = played(together, 32 * 10, part)
        apart.begin(len(episodes))
        whole = together.end(episodes, programs, tests)
        ends = np.cumsum([0, *[1, 7, 30, 2] * 8])
        pieces = [apart.end(episodes[i:j], programs[i:j], tests[i:j]) for i, j in pairwise(ends)]
        joined = [np.concatenate(each) for each in zip(*pieces, strict=True)]
        for one, other in zip(whole, joined, strict=True):
            np.testing.assert_array_equal(one, other)


def test_the_book_is_the_games_book_without_a_bound() -> None:
    task = dataclasses.replace(find_task("cycling/0"), K=3, problems=2)
    ours, theirs = Book(task, np.zeros((2, 0), np.int64)), MistakeBook(None, stale_after=None)
    rng = RNG(0)
    for _ in range(200):
        problem = np.repeat([0, 1], 16)
        tests = np.array([rng.permutation(6)[:3] for _ in problem])
        failed, passed = rng.random((32, 3)) < 0.2, rng.random((32, 3)) < 0.6
        passed &= ours.cells[problem] >= 0
        for each in (0, 1):
            own = problem == each
            old = [ours.cells[each, place] for place in np.nonzero(passed[own])[1]]
            theirs.update(str(each), map(str, tests[own][failed[own]]), map(str, old))
        ours.update(problem, failed, tests, passed)
        for each in (0, 1):
            known = [str(cell) for cell in ours.cells[each] if cell >= 0]
            assert theirs.tests(str(each), 3) == known


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("grpo", {}), ("dr_grpo", {}), ("rloo", {}), ("reinforce", {"entropy": 0.1}), ("reinforce++", {}),
        ("ppo", {"entropy": 0.05}), ("dapo", {}), ("rrtf", {}),
    ],
)  # fmt: skip
def test_steps_on_arrays_are_those_of_the_loop(name: str, args: dict[str, float]) -> None:
    rng = RNG(3)
    logits = {way: np.zeros((4, 16)) for way in (step, in_the_loop)}
    algorithms = {way: make_algorithm(name, {"learning_rate": 1.5}, "tabular", args) for way in logits}  # fmt: skip
    for _ in range(3):
        keys, which = np.unique(np.repeat(rng.integers(4, size=6), 4), return_inverse=True)
        drawn = np.array([rng.permutation(16)[:2] for _ in which])
        rewards = rng.integers(3, size=(6, 4)) / 2
        for way, own in logits.items():
            own[keys] = way(algorithms[way], own[keys], keys, which, drawn, rewards)
    assert np.abs(logits[step]).max() > 0.05
    np.testing.assert_allclose(logits[step], logits[in_the_loop], atol=1e-9)


def test_opponents_are_functions_of_world_salt_and_episode() -> None:
    rounds = Rounds(find_task("rare-faults/1"), 1000)
    episodes = np.arange(64)
    first, again, other = (
        opponents.CoderOpponent(rounds.world, salt=salt).choose(episodes) for salt in (1, 1, 2)
    )
    assert (first == again).all()
    assert (first != other).any()
    assert (first.reshape(-1, 4) == first[::4, None]).all()  # groups of suites attack one program
    suites = opponents.TesterOpponent(rounds.world, "oracle").choose(episodes, first)
    faulty = rounds.world.faulty[rounds.world.at(episodes)[0], first]
    assert faulty[np.arange(64), suites[:, 0]].sum() == faulty.any(axis=1).sum()
    assert (suites[:, 0] != suites[:, 1]).all()


def test_a_learning_tester_reads_and_a_memory_cannot() -> None:
    task = dataclasses.replace(find_task("reading/2"), episodes=60_000 // 32 * 32)
    killed = {}
    for name in ("learns", "blind", "memory", "random"):
        entry = SuiteEntry(coder_rate=3, tester_rate=24, tester=name)
        run = SuiteRun(entry, task, 1000, "tester" if name == "learns" else "both")
        steps = [run.step()[:3] for _ in range(task.episodes // 256)][-60:]
        episodes, programs, tests = map(np.concatenate, zip(*steps, strict=True))
        faulty = run.rounds.world.faulty[run.rounds.world.at(episodes)[1], programs]
        broken = np.take_along_axis(faulty, tests, axis=1).any(axis=1)
        killed[name] = broken.sum() / faulty.any(axis=1).sum()
    assert killed["learns"] > 3 * max(killed["blind"], killed["memory"], killed["random"])


@pytest.mark.parametrize("id", ["rare-faults/1", "reading/2"])
def test_grpo_of_the_suite_is_paid_what_an_environment_pays(id: str) -> None:
    run, env = SuiteRun(SuiteEntry(), find_task(id), 1000), make(id, 1000)
    for _ in range(3):
        _, programs, tests, paid = run.step()
        for number, (program, suite) in enumerate(zip(programs, tests, strict=True)):
            env.reset()
            env.step({"coder_0": program})
            _, rewards, *_ = env.step({"tester_0": suite})
            assert rewards == {"coder_0": paid.coder[number], "tester_0": paid.tester[number]}
