"""The sandbox as a part of other programs: asyncio, packages by name, where a test failed."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from codea1_env.sandbox import Job, Limits, Outcome, Sandbox

SLOW = "import time\ndef f(x):\n    time.sleep(0.1)\n    return x"


def test_asyncio_waits_for_a_job_beside_other_tasks(sandbox: Sandbox) -> None:
    async def judges() -> list[Outcome]:
        futures = [
            sandbox.submit(sandbox.judge, Job(SLOW, [f"assert f({n}) == 1"])) for n in (1, 2)
        ]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(
                asyncio.wrap_future(sandbox.submit(sandbox.judge, Job(SLOW, ["assert f(3) == 3"]))),
                0.01,
            )
        found = await asyncio.gather(*map(asyncio.wrap_future, futures))
        return [result.outcome for job in found for result in job.tests]

    assert asyncio.run(judges()) == [Outcome.PASS, Outcome.FAIL]


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


def test_arrays_go_in_and_out_as_lists(sandbox: Sandbox) -> None:
    code = "def f(x, y=None):\n    return x * 2"
    given = np.array([[1.5, 2.0], [3.0, 4.0]])
    found = sandbox.call(
        code, "f", [((given,), {}), (([given],), {"y": 1}), ((np.float32(0.5),), {})]
    )
    rows = given.tolist()
    assert [each.value for each in found] == [rows * 2, [rows] * 2, 1.0]


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
