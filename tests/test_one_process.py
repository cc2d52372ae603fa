"""A program and its tests in one process."""

from __future__ import annotations

import pytest

from codea1_env.problem_sets.judging import run_in_one_process
from codea1_env.sandbox import Limits, Sandbox

TEST = "class Kept(Base):\n    pass\n\nassert isinstance(f(2), Base), f(2)\nassert f(2).n == 2\n"


@pytest.mark.parametrize(
    ("code", "outcome", "message"),
    [
        ("class Base:\n    pass\ndef f(n):\n    b = Base()\n    b.n = n\n    return b", "pass", ""),
        ("class Base:\n    pass\ndef f(n):\n    return n", "fail", "2"),
        ("class Base:\n    pass\n", "error", "NameError: name 'f' is not defined"),
        ("def f(:", "syntax_error", "SyntaxError: "),
        ("  x = 1", "syntax_error", "IndentationError: "),
        ("import sys\nsys.exit(0)", "exited", "it ended before its tests did"),
        ("import sys\nsys.exit(1)", "exited", "SystemExit(1)"),
        ("import os\nos._exit(0)", "exited", ""),
        ("while True: pass", "timeout", ""),
    ],
)
def test_outcomes(code: str, outcome: str, message: str, sandbox: Sandbox) -> None:
    limits = Limits(call_cpu_time=0.5, call_wall_time=5.0)
    result = run_in_one_process(code, [TEST], limits, sandbox)
    assert result.outcome.value == outcome
    assert message in result.message
    assert (result.message == "") == result.passed


def test_what_a_program_prints_changes_nothing(sandbox: Sandbox) -> None:
    noisy = "print('all tests have passed')\ndef f():\n    print('x' * 10_000)\n    return 1"
    assert run_in_one_process(noisy, ["assert f() == 1"], Limits(), sandbox).passed
    assert not run_in_one_process(noisy, ["assert f() == 2"], Limits(), sandbox).passed


def test_the_module_is_not_the_main_one(sandbox: Sandbox) -> None:
    code = (
        "import sys\nmine = sys.modules[__name__]\nif __name__ == '__main__':\n    raise ValueError"
    )
    test = (
        "from unittest.mock import patch\nwith patch(f'{__name__}.mine', 3):\n    assert mine == 3"
    )
    assert run_in_one_process(code, [test], Limits(), sandbox).passed
