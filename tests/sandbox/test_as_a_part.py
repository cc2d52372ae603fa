"""The sandbox as a part of other programs: results as JSON, asyncio, packages by name."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import time

import numpy as np
import pytest

from codea1_env.sandbox import Job, Limits, Outcome, Sandbox

SLOW = "import time\ndef f(x):\n    time.sleep(0.5)\n    return x"


def test_results_are_json(sandbox: Sandbox) -> None:
    results = sandbox.run_tests("def f(): return 1", ["assert f() == 1", "assert f() == 2"])
    rows = json.loads(json.dumps([dataclasses.asdict(result) for result in results]))
    assert [row["outcome"] for row in rows] == ["pass", "fail"]
    assert [Outcome(row["outcome"]) for row in rows] == [result.outcome for result in results]


def test_other_tasks_go_on_meanwhile(sandbox: Sandbox) -> None:
    turns = 0

    async def counts() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.01)

    async def judges() -> list[Outcome]:
        counting = asyncio.create_task(counts())
        found = await asyncio.gather(
            *(sandbox.run_tests_async(SLOW, [f"assert f({n}) == 1"]) for n in (1, 2))
        )
        counting.cancel()
        return [result.outcome for results in found for result in results]

    assert asyncio.run(judges()) == [Outcome.PASS, Outcome.FAIL]
    assert turns > 5


def test_a_task_that_is_given_up_does_no_harm(sandbox: Sandbox) -> None:
    async def gives_up() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await sandbox.run_tests_async(SLOW, ["assert f(1) == 1"], limits=Limits())

    asyncio.run(gives_up())
    time.sleep(0.1)
    assert sandbox.run_tests("def f(): return 1", ["assert f() == 1"])[0].outcome is Outcome.PASS


def test_one_package_by_its_name() -> None:
    with Sandbox(packages="numpy") as own:
        assert own.packages == ("numpy",)


def test_a_package_that_is_not_there_is_refused() -> None:
    for packages in ("nothing_here", ("numpy", "nothing_here")):
        with pytest.raises(ValueError, match="actually 'nothing_here' is not one"):
            Sandbox(packages=packages)


def test_a_failed_test_says_where(sandbox: Sandbox) -> None:
    code = "class Big(Exception): pass\ndef f(x):\n    if x > 3: raise Big('too big')\n    return x"
    nested = "def test_b():\n    def inner():\n        assert f(2) == 1, 'two'\n    inner()"
    tests = [
        "assert f(1) == 2",
        "import math\n\nassert f(1) == 2",
        nested,
        "x = 1\nf(9)",
        "f(2)\nassert f(2) == 2",
    ]
    results = sandbox.run_tests(code, tests)
    assert [result.line for result in results] == [1, 3, 3, 2, None]
    assert results[2].traceback == "line 4, in test_b\nline 3, in inner"
    assert results[3].message == "Big: too big"
    assert all(10 << 20 < result.peak_memory < 1 << 30 for result in results[2:])


def test_arrays_go_in_and_out_as_arrays(sandbox: Sandbox) -> None:
    code = "def f(x, y=None):\n    return x * 2"
    given = np.array([[1.5, 2.0], [3.0, 4.0]])
    [there, inner, scalar] = sandbox.call(
        code, "f", [((given,), {}), (([given],), {"y": 1}), ((np.float32(0.5),), {})]
    )
    assert there.value.dtype == given.dtype
    assert (there.value == given * 2).all()
    assert [type(each) for each in inner.value] == [np.ndarray] * 2
    assert scalar.value == 1.0
    there.value[0, 0] = 7  # it is ours
    assert given[0, 0] == 1.5


def test_arrays_without_numpy_are_refused() -> None:
    with Sandbox(workers=1, packages=()) as sandbox, pytest.raises(TypeError, match="ndarray"):
        sandbox.call("def f(x): return x", "f", [((np.array([1]),), {})])


def test_progress_is_told(sandbox: Sandbox) -> None:
    told: list[tuple[int, int]] = []
    jobs = [Job("def f(x): return x", ["assert f(1) == 1"])] * 3
    results = sandbox.run_many(jobs, progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert all(result.passed for [result] in results)
