"""The sandbox as a part of other programs: asyncio, packages by name, what was printed, where a test failed."""

from __future__ import annotations

import asyncio
import time

import numpy as np
import pytest

from codea1_env.sandbox import Job, Limits, Outcome, Sandbox

SLOW = "import time\ndef f(x):\n    time.sleep(0.5)\n    return x"


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


def test_a_package_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="actually 'nothing_here' is not one"):
        Sandbox(packages=("numpy", "nothing_here"))


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
    assert "in test_b" in results[2].traceback
    assert "in inner" in results[2].traceback
    assert results[3].message == "Big: too big"
    assert [result.judged for result in results] == ["outside"] * 2 + ["inside"] * 3


PRINTS = """
import os, sys
print("loading")
def f(x):
    print("f", x)
    sys.stderr.write("warned")
    while x == 9: pass
    if x == 8: os._exit(3)
    while x == 7: print("z" * 10_000)
    return x
"""


@pytest.mark.parametrize("level", ["kernel", "namespaces"])
def test_what_is_printed_can_be_kept(level: str) -> None:
    tests = ["print('here')\nassert f(1) == 2", *(f"assert f({x}) == {x}" for x in (1, 9, 8, 7))]
    limits = Limits(call_cpu_time=0.3, calls_per_test=1, output=50_000)
    with Sandbox(workers=1, level=level) as one:
        results = one.run_tests(PRINTS, tests, limits=limits, capture_output=True)
        [failed] = one.run_tests("print('a')\n1 / 0", ["assert f()"], capture_output=True)
        assert one.run_tests(PRINTS, tests[:2])[0].stdout == ""
    outcomes = ["fail", "pass", "timeout", "exited", "timeout"]
    assert [result.outcome.value for result in results] == outcomes
    printed = ["here\nf 1\n", "f 1\n", "f 9\n", "f 8\n", "f 7\n"]
    for result, text in zip(results, printed, strict=True):
        assert result.stdout.startswith("loading\n" + text)
        assert result.stderr == "warned"
    assert len(results[4].stdout) == 50_000
    assert (failed.outcome, failed.stdout) == (Outcome.ERROR, "a\n")


def test_arrays_go_in_and_out_as_lists(sandbox: Sandbox) -> None:
    code = "def f(x, y=None):\n    return x * 2"
    given = np.array([[1.5, 2.0], [3.0, 4.0]])
    found = sandbox.call(
        code, "f", [((given,), {}), (([given],), {"y": 1}), ((np.float32(0.5),), {})]
    )
    rows = given.tolist()
    assert [each.value for each in found] == [rows * 2, [rows] * 2, 1.0]


def test_progress_is_told(sandbox: Sandbox) -> None:
    told: list[tuple[int, int]] = []
    jobs = [Job("def f(x): return x", ["assert f(1) == 1"])] * 3
    results = sandbox.run_many(jobs, progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert all(result.passed for [result] in results)


def test_loading_at_the_limit_is_a_timeout(sandbox: Sandbox) -> None:
    limits = Limits(call_cpu_time=0.05, calls_per_test=1)
    code = "import time\nend = time.process_time() + 0.05\nwhile time.process_time() < end: pass\ndef f(): return 1"
    for _ in range(3):
        [result] = sandbox.run_tests(code, ["x = f()\nassert x == 1"], limits=limits)
        assert result.outcome in (Outcome.TIMEOUT, Outcome.PASS), result


def test_packages_behind_a_link_are_found(tmp_path, monkeypatch) -> None:
    from codea1_env.sandbox import packages

    real = tmp_path / "real"
    (real / "linked_package").mkdir(parents=True)
    (real / "linked_package" / "__init__.py").write_text("")
    (tmp_path / "link").symlink_to(real)
    monkeypatch.syspath_prepend(str(tmp_path / "link"))
    assert packages.locate(["linked_package"]) == {"linked_package": str(real)}
