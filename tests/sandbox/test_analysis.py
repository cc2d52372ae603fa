"""The analysis process: our own functions on hostile text, and what becomes of it when the text wins."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import analysed
import pytest
from analysed import echo
from processes import children

from codea1_env.sandbox import AnalysisError, InfraError
from codea1_env.sandbox.analysis import Analyst


@pytest.fixture(scope="module")
def shared() -> Iterator[Analyst]:
    analyst = Analyst()
    yield analyst
    analyst.close()


@pytest.fixture
def analyst() -> Iterator[Analyst]:
    """One of a test's own, whose helper has not started."""
    analyst = Analyst()
    yield analyst
    analyst.close()


def test_functions_run_there_and_their_values_come_back(shared: Analyst) -> None:
    value = [None, True, 1, 2.5, "é\ud800", b"\0", [1], (2,), {"a": {3}}, frozenset({4})]
    assert shared.analyse(echo, value) == value
    assert shared.analyse(analysed.parse, "a = b + c") == 1


def test_only_plain_data_goes_in_and_out(shared: Analyst) -> None:
    with pytest.raises(Exception, match="not plain data"):
        shared.analyse(echo, object())
    with pytest.raises(AnalysisError, match="plain data"):
        shared.analyse(analysed.unplain)
    assert shared.analyse(echo, 1) == 1


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (analysed.raise_it, ("ValueError", "a\nmessage"), r"ValueError: a\\nmessage"),
        (analysed.raise_it, ("SystemExit", "3"), "ended"),
        (analysed.parse, ("(" * 100_000,), "Error"),
        (analysed.crash, (), "died from signal 11"),
        (analysed.leave, (3,), "status 3"),
        (analysed.allocate, (1 << 40,), "MemoryError"),
    ],
)
def test_what_goes_wrong_is_an_analysis_error(
    shared: Analyst, function: Any, arguments: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(AnalysisError, match=message):
        shared.analyse(function, *arguments)
    assert shared.analyse(echo, "next") == "next"


@pytest.mark.slow
def test_what_takes_too_long_is_ended(shared: Analyst) -> None:
    started = time.monotonic()
    with pytest.raises(AnalysisError, match=r"within 0.3 s"):
        shared.analyse(analysed.spin, timeout=0.3)
    assert time.monotonic() - started < 15.0
    assert shared.analyse(echo, "next") == "next"


def test_it_sees_nothing_of_ours(analyst: Analyst, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hf_abc")
    environment, descriptors = analyst.analyse(analysed.surroundings)
    assert "SECRET_TOKEN" not in environment
    assert len(descriptors) <= 6


def test_many_threads(shared: Analyst) -> None:
    texts = [f"{number}/" * (1 + 1000 * (number % 3)) for number in range(120)]
    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(lambda text: shared.analyse(echo, text), texts)) == texts


def test_closing_ends_it_and_it_can_start_again() -> None:
    before = children()
    analyst = Analyst()
    assert children() == before
    analyst.analyse(echo, 1)
    (helper,) = children() - before
    os.kill(helper, signal.SIGKILL)
    time.sleep(0.05)
    assert analyst.analyse(echo, 2) == 2
    analyst.close()
    assert children() == before


@pytest.mark.slow
def test_a_helper_that_is_killed_from_outside_is_replaced(analyst: Analyst) -> None:
    before, killed = children(), []

    def kill_once() -> None:
        while not killed:
            killed.extend(children() - before)
        time.sleep(0.1)  # it is at work then
        os.kill(killed[0], signal.SIGKILL)

    thread = threading.Thread(target=kill_once)
    thread.start()
    assert analyst.analyse(analysed.nap, 0.4) == "awake"
    thread.join()
    assert len(killed) == 1


def test_a_helper_that_is_killed_each_time_is_our_failure(analyst: Analyst) -> None:
    with pytest.raises(InfraError, match=r"tried 3 times: .*died from signal 9"):
        analyst.analyse(analysed.kill_itself)
    assert analyst.analyse(echo, 2) == 2


def test_a_text_that_always_has_its_helper_killed_with_much_memory_is_the_reason(
    analyst: Analyst,
) -> None:
    """As the kernel does where memory is short: no text ends more than its own analysis."""
    with pytest.raises(AnalysisError, match="died from signal 9"):
        analyst.analyse(analysed.kill_itself, 200 << 20)
    assert analyst.analyse(echo, 2) == 2


@pytest.mark.slow
def test_a_helper_that_gets_no_time_is_our_failure(
    analyst: Analyst, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codea1_env.sandbox.analysis._WALL_FACTOR", 1.0)
    with pytest.raises(InfraError, match=r"no answer within 0\.2 s of a busy machine"):
        analyst.analyse(analysed.nap, 30.0, timeout=0.2)
