"""Call mode: many calls with plain data, one message there, bytes back."""

from __future__ import annotations

import hashlib
import marshal
import time
from collections.abc import Sequence
from typing import Any

import pytest

from codea1_env.sandbox import (
    DIGEST,
    RETURNED,
    Answers,
    InfraError,
    Limits,
    Outcome,
    Sandbox,
    TestResult,
    encoded_arguments,
)
from codea1_env.sandbox.inside.codec.encoding import encode

QUICK = Limits(call_cpu_time=0.3, call_wall_time=1.0)


def ask(
    sandbox: Sandbox, code: str, *arguments: Any, limits: Limits | None = QUICK, seed: int = 0
) -> Answers:
    """Calls f with one argument, once for each."""
    calls = [encoded_arguments([each], {}) for each in arguments]
    return sandbox.submit_encoded(code, "f", calls, limits=limits, hash_seed=seed).result()


def ends(replies: Sequence[bytes | TestResult]) -> list[Any]:
    """Whether each call came back, or how it ended."""
    return [each.outcome if isinstance(each, TestResult) else each for each in replies]


def returned(value: Any) -> bytes:
    return RETURNED + encode(value)


VALUES = [
    None, True, 0, -1, 2**100, 0.1, 1 + 2j, "", "\u00e9\ud800\x00", b"\x00", [], [1, [2]], list(range(100)), (), (1,),
    {}, {"a": {1: [2]}}, {(1, 2): None}, set(), {1}, frozenset({1}),
]  # fmt: skip


def test_values_come_back_as_they_went(sandbox):
    answers = ask(sandbox, "def f(x): return x", *VALUES)
    assert answers.load == TestResult(Outcome.PASS)
    assert list(answers.replies) == [returned(value) for value in VALUES]
    assert 0 < answers.cpu_time < 1


def test_positional_and_keyword_arguments(sandbox):
    calls = [
        encoded_arguments([1, 2], {"k": [3]}),
        encoded_arguments((), {}),
        encoded_arguments([], {"k": 1}),
    ]
    code = "def f(*args, **kwargs): return [list(args), kwargs]"
    answers = sandbox.submit_encoded(code, "f", calls).result()
    assert list(answers.replies) == [
        returned([[1, 2], {"k": [3]}]),
        returned([[], {}]),
        returned([[], {"k": 1}]),
    ]


def test_arguments_are_copies(sandbox):
    twin: list[int] = []
    answers = ask(sandbox, "def f(x):\n    x[0].append(1)\n    return x", [twin, twin], [[], []])
    assert list(answers.replies) == [returned([[1], []])] * 2


def test_long_arguments_and_long_values(sandbox):
    long = ["x" * 1000] * 5000
    answers = ask(sandbox, "def f(x): return [x, len(x)]", long, long[:1], limits=None)
    assert list(answers.replies) == [returned([long, 5000]), returned([long[:1], 1])]


@pytest.mark.parametrize(
    ("code", "outcome", "message"),
    [
        ("def f(: return", Outcome.SYNTAX_ERROR, "SyntaxError"),
        ("def g(x): return x", Outcome.ERROR, "does not define 'f'"),
        ("raise ValueError('at import')", Outcome.ERROR, "ValueError: at import"),
        ("import sys; sys.exit(3)", Outcome.EXITED, "SystemExit(3)"),
        ("import os; os._exit(3)", Outcome.EXITED, "ended with status 3"),
        ("import os; os.kill(os.getpid(), 9)", Outcome.ERROR, "PermissionError"),
        ("import os; os.abort()", Outcome.SIGNALLED, "SIGABRT"),
        ("while True: pass", Outcome.TIMEOUT, "CPU"),
        ("import time; time.sleep(60)", Outcome.TIMEOUT, "wall-clock"),
        ("x = [0] * 10 ** 10", Outcome.MEMORY, "memory"),
        ("x = 1 # " + "x" * 20_000_000, Outcome.SYNTAX_ERROR, "more than 8000000 characters"),
        ("def f(x): return '\0'", Outcome.SYNTAX_ERROR, "null bytes"),
        ("def f(x): return '\ud800'", Outcome.SYNTAX_ERROR, "surrogates"),
        ("import nothing", Outcome.ERROR, "No module named 'nothing'"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else None,
)
def test_programs_that_do_not_load(sandbox, code, outcome, message):
    answers = ask(sandbox, code, 1, 2)
    assert answers.load.outcome is outcome
    assert message in answers.load.message
    assert list(answers.replies) == [answers.load] * 2


DIGEST_OF_X = hashlib.sha256(marshal.dumps("x" * 10**6, 2)).hexdigest()


@pytest.mark.parametrize(
    ("body", "content"),
    [
        (
            "return 1 / 0",
            ("raised", "ZeroDivisionError: division by zero", "ZeroDivisionError", ""),
        ),
        ("raise SystemExit(3)", ("exited", "SystemExit(3)", "SystemExit")),
        ("raise KeyboardInterrupt", ("raised", "KeyboardInterrupt: ", "KeyboardInterrupt", "")),
        ("raise MemoryError", ("memory", "the memory limit was reached")),
        ("return [0] * 10 ** 10", ("memory", "the memory limit was reached")),
        ("return object()", ("unencodable", "a value of type 'object' is not plain data")),
        (
            "return f(x)",
            ("raised", "RecursionError: maximum recursion depth exceeded", "RecursionError", ""),
        ),
        ("del globals()['f']", None),
        (
            "return 'x' * 10 ** 6",
            (
                "too large",
                f"the value is larger than the limit for one value; {DIGEST} {DIGEST_OF_X}",
            ),
        ),
    ],
)
def test_calls_that_do_not_return(sandbox, body, content):
    limits = Limits(call_cpu_time=1.0, memory=1 << 30, result=100_000)
    answers = ask(sandbox, f"def f(x):\n    if x: return x\n    {body}", 0, 1, limits=limits)
    assert answers.load.passed
    if content is None:
        assert answers.replies[0] == returned(None)
        assert answers.replies[1] == encode(
            ("raised", "NameError: name 'f' is not defined", "NameError")
        )
    else:
        assert list(answers.replies) == [encode(content), returned(1)]


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ("import os; os._exit(0)", Outcome.EXITED),
        ("import os; os.kill(os.getpid(), 15)", Outcome.SIGNALLED),
        ("import ctypes; ctypes.string_at(0)", Outcome.SIGNALLED),
        ("import os; os.closerange(0, 256)", Outcome.EXITED),
    ],
)
def test_a_call_that_ends_the_process_costs_only_itself(sandbox, body, outcome):
    code = f"def f(x):\n    if x % 3 == 2:\n        {body}\n    return x"
    answers = ask(sandbox, code, *range(8))
    assert ends(answers.replies) == [outcome if n % 3 == 2 else returned(n) for n in range(8)]


def test_replies_stop_at_the_first_time_limit(sandbox):
    for body in ("while True: pass", "import time; time.sleep(60)"):
        code = f"def f(x):\n    if x % 3 == 2:\n        {body}\n    return x"
        started = time.monotonic()
        answers = ask(sandbox, code, *range(8))
        assert ends(answers.replies) == [returned(0), returned(1), Outcome.TIMEOUT]
        assert time.monotonic() - started < 6
    answers = ask(
        sandbox,
        "import os\ndef f(x):\n    if x == 1: os._exit(0)\n    while x > 2: pass\n    return x",
        *range(6),
    )
    assert ends(answers.replies) == [returned(0), Outcome.EXITED, returned(2), Outcome.TIMEOUT]


def test_each_call_has_the_time_of_one_call(sandbox):
    code = "import time\ndef f(x):\n    end = time.process_time() + 0.1\n    while time.process_time() < end: pass\n    return x"
    answers = ask(sandbox, code, *range(12))
    assert list(answers.replies) == [returned(n) for n in range(12)]
    assert 1.0 < answers.cpu_time < 3.0


def test_what_is_printed_is_dropped(sandbox):
    code = "import sys\nprint('x' * 10 ** 7)\ndef f(x):\n    print('y' * 10 ** 7)\n    print('z' * 10 ** 7, file=sys.stderr)\n    return x"
    answers = ask(sandbox, code, 1, 2, limits=Limits(output=1000))
    assert list(answers.replies) == [returned(1), returned(2)]


def test_nothing_is_read(sandbox):
    code = "import sys\ndef f(x): return [sys.stdin.read(), input() if x else '']"
    first, second = ask(sandbox, code, 0, 1).replies
    assert first == returned(["", ""])
    assert b"EOFError" in second


def test_state_lives_as_long_as_the_process(sandbox):
    code = "seen = []\ndef f(x):\n    seen.append(x)\n    return len(seen)"
    for _ in range(2):
        assert list(ask(sandbox, code, 5, 5).replies) == [returned(1), returned(2)]


def test_runs_are_repeatable(sandbox):
    code = (
        "import random\ndef f(x): return [random.random(), hash('a'), list({'a', 'b', 'c', 'd'})]"
    )
    first = ask(sandbox, code, 1, 2).replies
    assert first == ask(sandbox, code, 1, 2).replies
    other = ask(sandbox, code, 1, 2, seed=1).replies
    assert first != other
    assert other == ask(sandbox, code, 1, 2, seed=1).replies


def test_numpy_is_there_for_who_mentions_it(sandbox):
    code = "import numpy as np\ndef f(x): return [np.int64(x), np.float32(0.5), np.bool_(True), np.arange(x)]"
    [reply] = ask(sandbox, code, 3, limits=None).replies
    assert isinstance(reply, bytes)
    assert reply.startswith(RETURNED)
    hidden = "import importlib\ndef f(x): return importlib.import_module('num' + 'py').int64(x) + 1"
    [reply] = ask(sandbox, hidden, 3, limits=None).replies
    assert isinstance(reply, bytes)


def test_jobs_run_side_by_side_and_keep_their_answers(sandbox):
    calls = [encoded_arguments([n], {}) for n in range(5)]
    jobs = [
        sandbox.submit_encoded(f"def f(x): return [x, {job}]", "f", calls, hash_seed=job % 2)
        for job in range(60)
    ]
    for job, future in enumerate(jobs):
        assert list(future.result().replies) == [returned([n, job]) for n in range(5)]


def test_workers_that_die_are_replaced_or_the_failure_is_raised(monkeypatch):
    """Ours, not the program's: it is tried again, and never becomes an outcome."""
    from codea1_env.sandbox import workers
    from codea1_env.sandbox.results import WorkerDiedError

    failures = 2

    def take(self: workers.Slots) -> Any:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise WorkerDiedError("killed")
        return real(self)

    real = workers.Slots.take
    monkeypatch.setattr(workers.Slots, "take", take)
    with Sandbox() as sandbox:
        assert list(ask(sandbox, "def f(x): return x", 1).replies) == [returned(1)]
        failures = 3  # then a known job succeeds
        found = sandbox.submit_encoded(
            "def f(x): return x", "f", [encoded_arguments([1], {})]
        ).result()
        assert found.load.outcome is Outcome.UNJUDGED
        assert "killed" in found.load.message
        assert [reply.outcome for reply in found.replies] == [Outcome.UNJUDGED]
        failures = 6
        with pytest.raises(InfraError, match="killed"):
            ask(sandbox, "def f(x): return x", 1)
        assert list(ask(sandbox, "def f(x): return x", 2).replies) == [returned(2)]
