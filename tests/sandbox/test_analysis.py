"""The analysis process: our own functions on hostile text, and what becomes of it when the text wins."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from analysed import (
    allocate,
    count_names,
    crash,
    echo,
    environment,
    kill_itself,
    leave,
    nap,
    open_descriptors,
    parse,
    raise_it,
    spin,
    unplain,
)

from codea1_env.sandbox import AnalysisError, InfraError
from codea1_env.sandbox.analysis import Analyst
from codea1_env.sandbox.inside.analysis.plan import plan_test


@pytest.fixture(scope="module")
def analyst() -> Iterator[Analyst]:
    analyst = Analyst()
    yield analyst
    analyst.close()


def test_functions_run_there_and_their_values_come_back(analyst: Analyst) -> None:
    value = [None, True, 1, 2.5, "é\ud800", b"\0", [1], (2,), {"a": {3}}, frozenset({4})]
    assert analyst.analyse(echo, value) == value
    assert analyst.analyse(count_names, "a = b + c") == 3
    assert analyst.analyse(plan_test, "assert f(1) == 2")[0] == "value"


def test_only_plain_data_goes_in_and_out(analyst: Analyst) -> None:
    with pytest.raises(Exception, match="not plain data"):
        analyst.analyse(echo, object())
    with pytest.raises(AnalysisError, match="plain data"):
        analyst.analyse(unplain)
    assert analyst.analyse(echo, 1) == 1


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (raise_it, ("ValueError", "a\nmessage"), r"ValueError: a\\nmessage"),
        (raise_it, ("RecursionError", "deep"), "RecursionError"),
        (raise_it, ("SystemExit", "3"), "ended"),
        (parse, ("(" * 100_000,), "Error"),
        (parse, ("\0",), "null bytes"),
        (parse, ("-" * 100_000 + "1",), "Error|died|ended"),
        (crash, (), "died from signal 11"),
        (leave, (3,), "status 3"),
        (allocate, (1 << 40,), "MemoryError"),
    ],
)
def test_what_goes_wrong_is_an_analysis_error(
    analyst: Analyst, function: Any, arguments: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(AnalysisError, match=message):
        analyst.analyse(function, *arguments)
    assert analyst.analyse(echo, "next") == "next"


def test_what_takes_too_long_is_ended(analyst: Analyst) -> None:
    started = time.monotonic()
    with pytest.raises(AnalysisError, match=r"within 0.3 s"):
        analyst.analyse(spin, timeout=0.3)
    assert time.monotonic() - started < 15.0
    assert analyst.analyse(echo, "next") == "next"


def test_it_sees_nothing_of_ours(analyst: Analyst, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hf_abc")
    fresh = Analyst()
    try:
        assert "SECRET_TOKEN" not in fresh.analyse(environment)
        assert len(fresh.analyse(open_descriptors)) <= 6
    finally:
        fresh.close()


def test_many_threads(analyst: Analyst) -> None:
    errors: list[object] = []

    def work(number: int) -> None:
        for index in range(20):
            text = f"{number}/{index}" * (1 + 1000 * (index % 3))
            if analyst.analyse(echo, text) != text:
                errors.append(text)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_closing_ends_it_and_it_can_start_again() -> None:
    before = _children()
    analyst = Analyst()
    assert _children() == before
    analyst.analyse(echo, 1)
    (helper,) = set(_children()) - set(before)
    os.kill(helper, signal.SIGKILL)
    time.sleep(0.05)
    assert analyst.analyse(echo, 2) == 2
    analyst.close()
    assert _children() == before


def test_a_helper_that_is_killed_from_outside_is_replaced() -> None:
    analyst = Analyst()
    killed = []

    def kill_once() -> None:
        while not killed:
            for helper in set(_children()) - before:
                killed.append(helper)
                time.sleep(0.1)  # it is at work then
                os.kill(helper, signal.SIGKILL)
                return

    before = set(_children())
    try:
        thread = threading.Thread(target=kill_once)
        thread.start()
        assert analyst.analyse(nap, 0.4) == "awake"
        thread.join()
        assert len(killed) == 1
    finally:
        analyst.close()


def test_a_helper_that_is_killed_each_time_is_our_failure() -> None:
    analyst = Analyst()
    try:
        with pytest.raises(InfraError, match=r"tried 3 times: .*died from signal 9"):
            analyst.analyse(kill_itself)
        assert analyst.analyse(echo, 2) == 2
    finally:
        analyst.close()


def test_a_helper_that_gets_no_time_is_our_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codea1_env.sandbox.analysis._WALL_FACTOR", 1.0)
    analyst = Analyst()
    try:
        with pytest.raises(InfraError, match=r"no answer within 0\.2 s of a busy machine"):
            analyst.analyse(nap, 30.0, timeout=0.2)
    finally:
        analyst.close()


def _children() -> list[int]:
    tasks = Path("/proc/self/task").iterdir()
    return [int(word) for task in tasks for word in (task / "children").read_text().split()]
