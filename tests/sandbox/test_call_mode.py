"""Call mode: many calls with plain data, one message there, bytes back."""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Sequence
from typing import Any

import pytest

from codea1_env.sandbox import (
    DIGEST,
    RETURNED,
    UNANSWERED,
    Answers,
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
    return sandbox.run_calls(code, "f", calls, limits=limits, hash_seed=seed)


def ends(replies: Sequence[bytes | TestResult]) -> list[Any]:
    """Whether each call came back, or how it ended."""
    return [each.outcome if isinstance(each, TestResult) else each for each in replies]


def returned(value: Any) -> bytes:
    return RETURNED + encode(value)


def test_values_come_back_as_they_went(sandbox):
    answers = ask(sandbox, "def f(x): return x", None, [1, (2,)], {"a": {3}})
    assert answers.load == TestResult(Outcome.PASS)
    assert list(answers.replies) == [returned(value) for value in (None, [1, (2,)], {"a": {3}})]
    assert 0 < answers.cpu_time < 1
    calls = [encoded_arguments([1, 2], {"k": [3]}), encoded_arguments((), {})]
    code = "def f(*args, **kwargs): return [list(args), kwargs]"
    replies = sandbox.run_calls(code, "f", calls).replies
    assert list(replies) == [returned([[1, 2], {"k": [3]}]), returned([[], {}])]


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
        ("import os; os.abort()", Outcome.SIGNALLED, "SIGABRT"),
        ("while True: pass", Outcome.TIMEOUT, "CPU"),
        ("x = [0] * 10 ** 10", Outcome.MEMORY, "memory"),
        ("x = 1 # " + "x" * 20_000_000, Outcome.SYNTAX_ERROR, "more than 8000000 characters"),
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


def test_calls_behind_a_limit_are_made_while_the_run_can_afford_it(sandbox):
    answers = ask(
        sandbox,
        "import os\ndef f(x):\n    if x == 1: os._exit(0)\n    while x > 2: pass\n    return x",
        *range(6),
    )
    late = [Outcome.TIMEOUT] * 3
    assert ends(answers.replies) == [returned(0), Outcome.EXITED, returned(2), *late]
    assert [each is UNANSWERED for each in answers.replies] == [False] * 5 + [True]


def test_state_lives_as_long_as_the_process(sandbox):
    code = "seen = []\ndef f(x):\n    seen.append(x)\n    return len(seen)"
    for _ in range(2):
        assert list(ask(sandbox, code, 5, 5).replies) == [returned(1), returned(2)]


def test_runs_are_repeatable_whatever_worker_runs_them(sandbox):
    code = "import random\ndef f(x): return [random.random()]"
    hashes = "def f(x): return [hash('a'), list({'a', 'b', 'c', 'd'})]"
    with Sandbox(workers=1) as another:
        for each in (code, hashes):
            one, other = (ask(sandbox, each, 1, 2, seed=seed).replies for seed in (0, 1))
            assert one != other  # so that what depends on chance does not look stable
            for there in (sandbox, another):
                assert one == ask(there, each, 1, 2).replies
                assert other == ask(there, each, 1, 2, seed=1).replies


@pytest.mark.slow
def test_numpy_is_there_for_who_mentions_it(sandbox):
    code = "import numpy as np\ndef f(x): return [np.int64(x), np.float32(0.5), np.bool_(True), np.arange(x)]"
    hidden = "import importlib\ndef f(x): return importlib.import_module('num' + 'py').int64(x) + 1"
    for each, returns in ((code, True), (hidden, False)):
        [reply] = ask(sandbox, each, 3, limits=None).replies
        assert isinstance(reply, bytes)
        assert reply.startswith(RETURNED) is returns
