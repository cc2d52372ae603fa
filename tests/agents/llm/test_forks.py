"""Work divided among forks: what comes back, and what happens to forks that die, hang or lose their parent."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import psutil
import pytest
import torch
from tiny import tiny_model

from codea1_env.agents.llm import forks
from codea1_env.agents.llm.completions import BackendError
from codea1_env.agents.llm.forks import shares, side_by_side


@pytest.fixture(autouse=True)
def no_child_is_left():
    before = set(psutil.Process().children())
    yield
    assert set(psutil.Process().children()) <= before


@pytest.mark.parametrize(
    ("rows", "cores", "sizes"),
    [(8, 2, [4, 4]), (9, 2, [4, 5]), (3, 2, [3]), (1, 8, [1]), (8, 1, [8]), (5, 16, [2, 3])],
)
def test_neighbours_stay_together_and_all_are_there(rows, cores, sizes) -> None:
    found = shares(range(rows), cores)
    assert [len(each) for each in found] == sizes
    assert [row for each in found for row in each] == list(range(rows))


def test_works_are_done_by_different_processes_in_order() -> None:
    found = side_by_side([lambda i=i: (i, os.getpid()) for i in range(4)])
    assert [number for number, _ in found] == [0, 1, 2, 3]
    assert len({pid for _, pid in found}) == 4
    assert found[0][1] == os.getpid()


def test_large_answers_of_several_forks_come_whole() -> None:
    found = side_by_side([lambda i=i: bytes([i]) * (5 << 20) for i in range(4)])
    assert [(len(each), each[0]) for each in found] == [(5 << 20, i) for i in range(4)]


def test_forks_compute_with_torch_after_threads_have() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(max(2, before))
    try:
        numbers = torch.randn(512, 512)
        expected = (numbers @ numbers).sum().item()  # the threads are there now
        torch.set_num_threads(1)
        found = side_by_side([lambda: (numbers @ numbers).sum().item()] * 3)
    finally:
        torch.set_num_threads(before)
    assert found == pytest.approx([expected] * 3, rel=1e-4)


def _raise(error: Exception) -> NoReturn:
    raise error


class NotSentError(Exception):
    def __reduce__(self) -> NoReturn:
        raise TypeError


class NotMadeAgainError(Exception):
    def __init__(self, one: str, two: str) -> None:
        super().__init__(one)


@pytest.mark.parametrize(
    "error",
    [ValueError("no"), MemoryError("no"), NotSentError("no"), NotMadeAgainError("no", "yes")],
)
def test_what_a_fork_raises_is_raised_here(error: Exception) -> None:
    kind = RuntimeError if isinstance(error, (NotSentError, NotMadeAgainError)) else type(error)
    with pytest.raises(kind, match="no"):
        side_by_side([int, partial(_raise, error), int])


def _die(mark: Path, times: int, how: Any) -> int:
    with mark.open("a") as file:
        file.write("x")
    if len(mark.read_text()) <= times:
        how()
    return 7


@pytest.mark.parametrize("how", [lambda: os.kill(os.getpid(), signal.SIGKILL), lambda: os._exit(0)])
def test_rows_of_a_fork_that_died_are_made_again(tmp_path: Path, how: Any) -> None:
    mark = tmp_path / "tries"
    assert side_by_side([int, partial(_die, mark, 2, how)]) == [0, 7]
    assert mark.read_text() == "xxx"


def test_after_three_times_it_is_said(tmp_path: Path) -> None:
    def how() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(BackendError, match=r"died 3 times, by signal 9.*--threads 1"):
        side_by_side([int, partial(_die, tmp_path / "tries", 9, how)])
    assert (tmp_path / "tries").read_text() == "xxx"


def test_a_fork_that_stands_still_is_taken_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "_STANDS_STILL", 0.1)
    with pytest.raises(BackendError, match="died 3 times"):
        side_by_side([int, partial(time.sleep, 1000)])


def test_a_fork_that_computes_long_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "_STANDS_STILL", 0.2)

    def compute() -> int:
        ends = time.process_time() + 0.5
        while time.process_time() < ends:
            pass
        return 7

    assert side_by_side([int, compute]) == [0, 7]


def test_forks_end_with_an_interrupted_parent() -> None:
    def interrupt() -> NoReturn:
        raise KeyboardInterrupt

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        side_by_side([interrupt, partial(time.sleep, 1000), partial(time.sleep, 1000)])
    assert time.monotonic() - started < 60  # and nothing is left, see above


def test_without_a_process_for_it_the_work_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> NoReturn:
        raise BlockingIOError(
            11, "Resource temporarily unavailable"
        )  # as a limit of processes does

    monkeypatch.setattr(os, "fork", refuse)
    descriptors = len(os.listdir("/proc/self/fd"))
    assert side_by_side([int, os.getpid]) == [0, os.getpid()]
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_descriptors_of_any_number() -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limits[1] < 1100:
        pytest.skip("this process may have few descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limits[0], 1100), limits[1]))
    taken = [os.open("/dev/null", os.O_RDONLY) for _ in range(1024)]
    try:
        assert side_by_side([int, lambda: 7]) == [0, 7]
    finally:
        for each in taken:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_parent_that_ignores_the_end_of_children() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert side_by_side([partial(time.sleep, 0.1), lambda: 7])[1] == 7
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_signals_come_as_before() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    inside = side_by_side([int, lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [])])[1]
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before == inside


def test_what_the_parent_handles_does_not_reach_its_forks(tmp_path: Path) -> None:
    heard = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append(os.getpid()))

    def work() -> int:
        for each in (signal.SIGTERM, signal.SIGINT):
            os.kill(os.getpid(), each)
        (tmp_path / "tries").open("a").write("x")
        return len(heard)

    try:
        assert side_by_side([int, work]) == [0, 0]
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (tmp_path / "tries").read_text() == "x"


def test_forks_end_with_a_killed_parent(tmp_path: Path) -> None:
    code = (
        "import os, sys, time\n"
        "from codea1_env.agents.llm.forks import side_by_side\n"
        "def work():\n"
        f"    open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        "    time.sleep(1000)\n"
        "side_by_side([lambda: time.sleep(1000), work])\n"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as parent:
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            assert parent.poll() is None
            time.sleep(0.01)
        parent.kill()
    fork = Path("/proc") / (tmp_path / "pid").read_text()
    while fork.exists() and " Z " not in (fork / "stat").read_text():
        time.sleep(0.01)


def test_what_a_fork_changes_stays_in_it() -> None:
    model = tiny_model()
    weight = model.lm_head.weight

    def spoil() -> None:
        with torch.no_grad():
            weight.fill_(1.0)

    before = weight.detach().clone()
    side_by_side([int, spoil])
    assert torch.equal(weight, before)
