"""Whatever worker runs a program, it meets the same random numbers."""

from __future__ import annotations

from codea1_env.sandbox import Sandbox

DRAW = "import random\ndef draw(): return [random.random(), random.randrange(10**9)]"


def test_every_worker_and_every_run_starts_with_the_same_random_numbers() -> None:
    drawn = []
    for _ in range(2):  # new worker processes
        with Sandbox() as sandbox:
            drawn += [sandbox.call(DRAW, "draw", [((), {})])[0].value for _ in range(2)]
            (other,) = sandbox.call(DRAW, "draw", [((), {})], hash_seed=1)
    assert drawn[0] is not None
    assert drawn == drawn[:1] * 4
    assert other.value != drawn[0]  # so that what depends on chance does not look stable
