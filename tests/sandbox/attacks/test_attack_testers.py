"""Hostile tests: they must not judge what they were not asked to, and harm nobody but themselves."""

from __future__ import annotations

from attacking import LITTLE

from codea1_env.sandbox import Job, Limits, Outcome

RIGHT = "def f(x=0, *rest): return x + 1"

ENDINGS = {
    "exit in an argument": ("assert f(exit()) == 1", Outcome.EXITED),
    "sys.exit in an argument": ("import sys\nassert f(sys.exit(0)) == 1", Outcome.EXITED),
    "_exit in an argument": ("assert f(__import__('os')._exit(0)) == 1", Outcome.EXITED),
    "_exit in a test": ("import os\nf(1)\nos._exit(0)", Outcome.EXITED),
    "SystemExit": ("f(1)\nraise SystemExit(0)", Outcome.EXITED),
    "ends itself": ("import signal\nf(1)\nsignal.raise_signal(15)", Outcome.SIGNALLED),
    "crashes": ("import ctypes\nf(1)\nctypes.string_at(0)", Outcome.SIGNALLED),
    "spins": ("f(1)\nwhile True: pass", Outcome.TIMEOUT),
    "spins in an argument": ("assert f(sum(iter(int, 1))) == 1", Outcome.TIMEOUT),
    "sleeps in an argument": ("import time\nassert f(time.sleep(60)) == 1", Outcome.TIMEOUT),
    "prints": ("f(1)\nwhile True: print('x' * 1000)", Outcome.TIMEOUT),
    "eats memory": ("f(1)\nbytearray(1 << 40)", Outcome.MEMORY),
    "closes its channels": ("import os\nf(1)\nos.closerange(0, 64)", Outcome.EXITED),
    "keyboard interrupt": ("f(1)\nraise KeyboardInterrupt", Outcome.ERROR),
}


def test_how_a_test_ends_is_its_own_fault(arena):
    tests = [test for test, _ in ENDINGS.values()]
    results = arena.sandbox.run_tests(RIGHT, tests, entry_point="f", limits=LITTLE)
    found = {name: result.outcome for name, result in zip(ENDINGS, results, strict=True)}
    expected = {name: outcome for name, (_, outcome) in ENDINGS.items()}
    assert found == expected


def test_innocent_tests_beside_hostile_ones(arena):
    """Each test is judged on its own: what one does reaches none of its neighbours."""
    hostile = [
        "import builtins\nbuiltins.len = builtins.sum = lambda *a: 1\nf(1)\nassert False",
        "import sys\nsys.modules['math'] = None\nf(1)\nassert False",
        "import math\nmath.isclose = lambda *a, **k: False\nf(1)\nassert False",
        "globals()['f'] = None\nassert False",
        "f.__code__ = None\nassert False",
        "f.__defaults__ = (100,)\nassert False",
        "import os\nf(1)\nos._exit(1)",
        "assert f([]) == 1",
    ]
    innocent = [
        "assert f(1) == 2",
        "import math\nfor x in [1]:\n    assert math.isclose(f(x), 2)",
        "assert f() == 1",
        "values = [f(x) for x in range(3)]\nassert len(values) == 3 and sum(values) == 6",
    ]
    tests = [test for bad in hostile for test in (bad, *innocent)]
    results = arena.sandbox.run_tests(RIGHT, tests, entry_point="f")
    passed = [result.outcome is Outcome.PASS for result in results]
    assert passed == [False, True, True, True, True] * len(hostile)


COUNTERS = {
    "builtins": (
        "import builtins\nbuiltins.count = getattr(builtins, 'count', 0) + 1\n"
        "assert f(1) == 2 and builtins.count == 1"
    ),
    "modules": "import sys\nf(1)\nassert 'attack' not in sys.modules\nsys.modules['attack'] = sys",
    "environment": "import os\nf(1)\nassert 'SEEN' not in os.environ\nos.environ['SEEN'] = '1'",
    "class attributes": "import decimal\nf(1)\nassert decimal.getcontext().prec == 28\ndecimal.getcontext().prec = 5",
}


def test_a_test_cannot_count_its_evaluations(arena):
    for name, test in COUNTERS.items():
        found = [arena.outcome(RIGHT, test) for _ in range(3)]
        assert found == [Outcome.PASS] * 3, name


UNSTEADY = {
    "order of a set": "f(1)\nraise LookupError(''.join(set('abcdefghij')))",
    "hash": "f(1)\nraise LookupError(hash('attack'))",
}


def test_what_depends_on_the_hash_seed_shows(arena):
    for name, test in UNSTEADY.items():
        messages = set()
        for seed in (0, 1):
            job = Job(RIGHT, [test], "f", hash_seed=seed)
            messages.add(arena.sandbox.judge(job).tests[0].message)
        assert len(messages) == 2, name


def test_honest_randomness_gives_the_same_verdict_every_time(arena):
    test = "import random, numpy\nassert f(1) == 2\nassert random.random() < {0} and numpy.random.rand() < {0}"
    for bound in (0.2, 0.5, 0.8):
        assert len({arena.outcome(RIGHT, test.format(bound)) for _ in range(3)}) == 1


RECURSIVE = "def f(x): return 0 if x == 0 else 1 + f(x - 1)"
HEAVY = {
    "recursion": ("assert f(100_000) == 100_000", {Outcome.ERROR}),
    "negative recursion": ("assert f(-1) == 0", {Outcome.ERROR}),
    "a long list": (
        "assert f([0] * 10**8) == 0",
        {Outcome.MEMORY, Outcome.UNENCODABLE, Outcome.TIMEOUT},
    ),
    "a long range": ("assert f(list(range(10**9))) == 0", {Outcome.MEMORY, Outcome.TIMEOUT}),
    "a power": ("assert f(9**9**9) == 0", {Outcome.TIMEOUT, Outcome.MEMORY}),
    "a power of powers": ("assert f((2**999)**999**9) == 0", {Outcome.TIMEOUT, Outcome.MEMORY}),
    "a shift": ("assert f(1 << 10**12) == 0", {Outcome.MEMORY, Outcome.ERROR}),
    "a string": ("assert f('x' * 10**12) == 0", {Outcome.MEMORY}),
}


def test_heavy_tests_hurt_only_themselves(arena):
    limits = Limits(call_cpu_time=0.3, memory=256 << 20, calls_per_test=1)
    tests = []
    for test, _ in HEAVY.values():
        tests += [test, "assert f(3) == 3"]
    results = arena.sandbox.run_tests(RECURSIVE, tests, entry_point="f", limits=limits)
    assert [result.outcome for result in results[1::2]] == [Outcome.PASS] * len(HEAVY)
    for (name, (_, allowed)), result in zip(HEAVY.items(), results[::2], strict=True):
        assert result.outcome in allowed, name


def test_wrong_names_are_the_tests_fault(arena):
    results = arena.sandbox.run_tests(
        RIGHT, ["assert g(1) == 2", "for x in [1]:\n    assert g(x) == 2"], entry_point="f"
    )
    assert [result.outcome for result in results] == [Outcome.ERROR] * 2
