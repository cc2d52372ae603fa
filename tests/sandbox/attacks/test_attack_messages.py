"""Attacks on what a process of a test module says: it has run a hostile program, which may say anything in its place."""

from __future__ import annotations

import time

import pytest

from codea1_env.sandbox import Limits, Outcome, Sandbox

SAYS = """
import sys

def _say(message):
    frame = sys._getframe()
    while frame:
        send = frame.f_locals.get("send")
        if callable(send):
            return send(message)
        frame = frame.f_back

for message in {messages}:
    _say(message)

def g(x): return x
"""
TEST = "from solution import g\ndef test_x():\n    assert g(1) == 2"
TEXT = "class A:\n    pass\nassert g(A()) is None"


def says(*messages: str) -> str:
    return SAYS.format(messages=f"[{', '.join(messages)}]")


@pytest.fixture(scope="module", autouse=True)
def _packages_are_found(sandbox: Sandbox) -> None:
    """Which takes its time, once."""
    assert sandbox.run_test_module("def g(x): return 2", TEST).passed


def test_long_texts_are_cut_before_anybody_reads_them(sandbox: Sandbox) -> None:
    lines = "'\\n' * 10_000_000"
    finding = f"('fail', {lines}, None, {lines}, 'E', '')"
    said = says("('collected', ['t'])", f"('test', 0, {finding}, {lines}, {lines})", "('end',)")
    cpu = time.process_time()
    [result] = sandbox.run_test_module(said, TEST, limits=Limits(output=1000))
    assert time.process_time() - cpu < 1.0
    assert (result.outcome, len(result.stdout), len(result.stderr)) == (Outcome.FAIL, 1000, 1000)
    assert len(result.traceback) <= 8000


@pytest.mark.parametrize(
    "messages",
    [
        ["('collected', ['t'], range(10**8))"],
        ["('collected', [range(10**8)])"],
        ["('collected', [10**40])"],
        ["('collected', range(10**30))"],
        ["('collected', ['t'])", "('test', 0, (), '', '')"],
        [
            "('collected', ['t'])",
            "('test', 2**61 - 1, ('pass', '', None, '', '', ''), '', '')",
        ],
        ["('collected', ['t'])", "('test', 0, ('pass', '', 10**40, '', '', ''), '', '', 1)"],
        ["('failed', ())"],
        ["('failed', b'')"],
        ["('failed', ('pass', '', None, '', '', ''))"],
        ["('unloaded', ('pass', '', None, '', '', ''))"],
        ["('unloaded', range(10**9))"],
        ["()"],
        ["range(10**9)"],
        ["{'collected': 1}"],
    ],
)
def test_what_is_said_costs_nothing_and_raises_nothing(
    sandbox: Sandbox, messages: list[str]
) -> None:
    limits = Limits(call_cpu_time=0.3, run_cpu_time=1, calls_per_test=1)
    begun, cpu = time.monotonic(), time.process_time()
    results = list(sandbox.run_test_module(says(*messages), TEST, limits=limits))
    [text] = sandbox.run_tests(says(*messages), [TEXT], limits=limits)
    assert time.process_time() - cpu < 2
    assert time.monotonic() - begun < 60
    assert all(result.judged == "inside" for result in (*results, text))
    assert not any(result.outcome is Outcome.PASS for result in results)
