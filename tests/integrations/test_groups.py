"""The row decides: eight rollouts of one row answer one prompt, in every adapter; rows of other seeds have others."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from codea1_env import Sandbox
from codea1_env.agents import GRPO, Pool, TabularAgent
from codea1_env.integrations.one_side import OneSideEnv, OneSideVectorEnv
from codea1_env.integrations.opponents import PastPlayers
from codea1_env.integrations.side import OneSide
from codea1_env.integrations.trl_training import GameFactory, dataset_rows, environment_rows
from codea1_env.integrations.verl_reward import verl_rows
from codea1_env.problems import load_problems
from codea1_env.spaces import Observation

PROBLEMS = [p for p in load_problems("starter") if p.entry_point in ("is_even", "add_numbers")]
SEEDS, ROLLOUTS = range(6), 8


class Counting:
    """Writes another program each time, whatever it is told: what a model does."""

    def __init__(self) -> None:
        self.number = itertools.count()

    def act(self, observations: Sequence[Observation]) -> list[str]:
        return [f"def {each['entry_point']}(*given): return {next(self.number)}" for each in observations]  # fmt: skip


class Drawing(Counting):
    """Draws, from Python's own generator."""

    def __init__(self) -> None:
        self.rng: Any = random.Random(0)

    @property
    def number(self) -> Any:
        return iter([self.rng.randrange(1000)])


class Reset(Counting):
    """Can be set back."""

    def reset(self, *, seed: int | None = None) -> None:
        self.number = itertools.count(seed or 0)


class Seeded(Reset):
    reset = None  # type: ignore[assignment]

    def seed(self, number: int) -> None:
        self.number = itertools.count(number)


def table() -> TabularAgent:
    programs = [
        Pool(each, tuple(f"def {each.entry_point}(*given): return {n}" for n in range(9)))
        for each in PROBLEMS
    ]
    return TabularAgent(programs, GRPO(), np.random.default_rng(0))


OPPONENTS: dict[str, Callable[[], Any]] = {
    "mutant": lambda: "mutant",
    "table": table,
    "random": Drawing,
    "reset": Reset,
    "seed": Seeded,
    "past": lambda: PastPlayers([table(), Reset(), Drawing()], "coder", 0),
    "counting": Counting,
}


@pytest.fixture(params=OPPONENTS)
def side(request: pytest.FixtureRequest, sandbox: Sandbox) -> OneSide:
    return OneSide("tester", OPPONENTS[request.param](), problems=PROBLEMS, sandbox=sandbox)


def check(prompts: Callable[[str, int], Sequence[str]]) -> None:
    """The prompts of a group are one; those of several seeds are several."""
    for problem in PROBLEMS:
        groups = [set(prompts(problem.task_id, seed)) for seed in SEEDS]
        assert all(len(group) == 1 for group in groups)
        assert len(set.union(*groups)) > 1


def test_questions(side: OneSide) -> None:
    check(lambda name, seed: [side.question_one(name, seed).code for _ in range(ROLLOUTS)])
    with ThreadPoolExecutor(ROLLOUTS) as threads:
        asked = threads.map(lambda _: side.question_one(PROBLEMS[0].task_id, 77).code, range(40))
        assert len(set(asked)) == 1
    known = {(each.task_id, each.seed): each.code for each in side.questions(seeds=SEEDS)}
    assert len(known) == len(PROBLEMS) * len(SEEDS)
    for (name, seed), code in known.items():
        assert side.question_one(name, seed).code == code


def test_another_process_has_the_same_rows(sandbox: Sandbox) -> None:
    for make in (OPPONENTS["mutant"], table):
        sides = [OneSide("tester", make(), problems=PROBLEMS, sandbox=sandbox) for _ in range(2)]
        sides[0].question_one(PROBLEMS[1].task_id, 9)  # one was asked something before
        first, second = (each.questions(seeds=SEEDS) for each in sides)
        assert first == second


def test_rows_of_trl_and_of_verl(sandbox: Sandbox) -> None:
    side = OneSide("tester", "mutant", problems=PROBLEMS, sandbox=sandbox)
    for rows in (
        [(row["task_id"], row["code"]) for row in dataset_rows(side, seeds=SEEDS)],
        [
            (truth["task_id"], truth["code"])
            for row in verl_rows(side, problems="starter", seeds=SEEDS)
            for truth in [json.loads(row["reward_model"]["ground_truth"])]
        ],
    ):
        assert len(rows) == len(PROBLEMS) * len(SEEDS)
        assert len(set(rows)) > 2 * len(PROBLEMS)
    assert dataset_rows(side, seeds=SEEDS) == dataset_rows(side, seeds=SEEDS)


def test_environments_of_trl(side: OneSide) -> None:
    group = [GameFactory(side)() for _ in range(ROLLOUTS)]
    rows = {(row["task_id"], row["seed"]): row for row in environment_rows(side, SEEDS)}
    check(lambda name, seed: [each.reset(**rows[name, seed]) for each in group])
    [first] = {each.reset(task_id=PROBLEMS[0].task_id) for each in group}
    assert first == group[0].reset(task_id=PROBLEMS[0].task_id, seed=0), "the row has no seed"


def test_sessions_of_openenv(side: OneSide) -> None:
    pytest.importorskip("openenv")
    from codea1_env.integrations.openenv_game import ServedGame

    group = [ServedGame(side) for _ in range(ROLLOUTS)]
    check(lambda name, seed: [each.reset(seed=seed, task_id=name).code for each in group])


def test_tasks_of_inspect() -> None:
    pytest.importorskip("inspect_ai")
    from codea1_env.integrations.inspect_tasks import code_a1

    made = [code_a1("tester", "mutant", seed=seed).dataset for seed in (0, 0, 1)]
    first, again, other = ([each.metadata["code"] for each in one] for one in made)
    assert first == again != other


def test_tasks_of_verifiers() -> None:
    vf = pytest.importorskip("verifiers.v1")
    from chat_server import chat_server

    from codea1_env.integrations.verifiers_env import load_environment

    env = load_environment("tester", "mutant", "starter", "eval", seeds=3)

    async def played(url: str) -> list[Any]:
        context = vf.ModelContext("m", vf.EvalClientConfig(base_url=url, api_key_var="NO_KEY"))
        tasks = [each for each in env.taskset if each.data.task_id == "starter/get_count"]
        assert len(tasks) == 3
        async with env.serving():
            slots = [slot for task in tasks for slot in env.slots(task, ROLLOUTS)]
            return await asyncio.gather(*(env.run_slot(slot, context) for slot in slots))

    with chat_server(lambda _: "no tests") as server:
        traces = [trace for each in asyncio.run(played(server.url)) for trace in each.traces]
    rows: dict[int, set[str]] = {}
    for trace in traces:
        rows.setdefault(trace.task.data.seed, set()).add(trace.task.data.code)
    assert [len(group) for group in rows.values()] == [1, 1, 1]
    assert len(set.union(*rows.values())) > 1


@pytest.mark.parametrize("max_rounds", [1, 2])
def test_one_side_of_gymnasium(max_rounds: int, sandbox: Sandbox) -> None:
    for make in (table, Drawing, Reset, Seeded, OPPONENTS["mutant"]):
        env = OneSideEnv("tester", make(), problems=PROBLEMS, sandbox=sandbox, max_rounds=max_rounds)  # fmt: skip
        many = OneSideVectorEnv(3, "tester", make(), problems=PROBLEMS, sandbox=sandbox, max_rounds=max_rounds)  # fmt: skip
        runs = [list(played(env, seed)) for seed in (5, 5, 6)]
        assert runs[0] == runs[1] != runs[2]
        assert len({code for run in runs for code in run}) > 2
        seen, _ = many.reset(seed=4)
        assert seen["code"][1] == runs[0][0], "whoever plays beside it"


def played(env: OneSideEnv, seed: int) -> Any:
    for number in range(4):  # without further seeds the episodes follow from the first
        over, (seen, _) = False, env.reset(seed=None if number else seed)
        while not over:
            yield seen["code"]
            seen, _, over, _, _ = env.step("no tests")


@pytest.mark.filterwarnings("ignore")
def test_gymnasium_finds_nothing_wrong_with_tables(sandbox: Sandbox) -> None:
    tests = [Pool(each, each.tests) for each in PROBLEMS]
    testers = TabularAgent(tests, GRPO(), np.random.default_rng(0), draws=2)
    for side, opponent in (("coder", testers), ("tester", table())):
        env = OneSideEnv(side, opponent, problems=PROBLEMS, sandbox=sandbox)  # type: ignore[arg-type]
        check_env(env, skip_render_check=True)
