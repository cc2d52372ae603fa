from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from codea1_env.support.logs import LogFolder, read_rows, truncate, write_whole
from codea1_env.support.stopping import stop_request
from codea1_env.support.texts import ENTRY_CHARS, LRUCache


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_a_request(number, capfd):
    before = signal.getsignal(number)
    with stop_request() as stop:
        assert not stop.requested
        os.kill(os.getpid(), number)
        assert stop.requested
    assert "once more to stop at once" in capfd.readouterr().err
    assert signal.getsignal(number) is before


def test_the_second_signal_has_its_usual_effect():
    with stop_request() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        assert stop.requested


def test_where_nothing_is_to_be_waited_for_the_first_signal_ends_it():
    with stop_request(waits=False) as stop:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        stop.waits = True
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# One operation of several minutes that Python's handlers cannot interrupt, as backpropagation is.
BUSY = """
import hashlib
from codea1_env.support.stopping import stop_request
with stop_request():
    print("begun", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2 * 10**9)
"""


@pytest.mark.slow
def test_a_long_operation_does_not_keep_the_process():
    process = subprocess.Popen(
        [sys.executable, "-c", BUSY], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == b"begun\n"
        for wait in (0.3, 0.8):
            time.sleep(wait)  # two signals at once are one, and the first one waits
            assert process.poll() is None
            process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_what_does_not_end_by_itself_is_left_in_order():
    """An operation that takes long keeps Python's handler from running."""
    script = (
        "import hashlib, os, signal, threading\n"
        "from codea1_env.support.stopping import stop_request\n"
        "with stop_request(waits=False) as stop:\n"
        "    stop.leave = lambda: os.write(1, b'left')\n"
        "    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "    hashlib.pbkdf2_hmac('sha256', b'', b'', 2 * 10**9)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=50)
    assert (done.returncode, done.stdout) == (130, b"left")


def test_other_threads_leave_signals_alone():
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def work():
        with stop_request() as stop:
            seen.append((stop.requested, signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(False, before)]


def test_rows_are_read_up_to_one_that_was_cut_off(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    assert list(read_rows(log)) == []
    truncate(log)
    assert not log.exists()
    for tail in (b'{"n": 2}', b'{"n": 2\n{"n": 3}\n', b"[2]\n", b"\xff\n", b"[" * 99_999 + b"\n"):
        log.write_bytes(b'{"n": 0}\n{"n": 1}\n' + tail)
        assert list(read_rows(log)) == [{"n": 0}, {"n": 1}]
        assert list(read_rows(log, lambda row: row["n"] < 1)) == [{"n": 0}]
        truncate(log)
        assert log.read_bytes() == b'{"n": 0}\n{"n": 1}\n'
    truncate(log, length=1)
    assert log.read_bytes() == b'{"n": 0}\n'
    truncate(log, lambda row: row["n"] > 0)
    assert log.read_bytes() == b""


def test_rows_are_on_the_disk_before_the_folder_is_closed(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path, RuntimeError)
    folder.append("log.jsonl", [{"a": float("inf")}, {"a": "\ud800"}])
    assert (tmp_path / "log.jsonl").read_bytes() == b'{"a": Infinity}\n{"a": "\\ud800"}\n'
    folder.sync()
    with pytest.raises(RuntimeError, match="another process does"):
        LogFolder(tmp_path, RuntimeError)
    folder.close()
    LogFolder(tmp_path, RuntimeError).close()


def test_a_log_may_refuse_numbers_that_are_not_finite(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path, RuntimeError, allow_nan=False)
    with pytest.raises(ValueError, match="JSON"):
        folder.append("log.jsonl", [{"a": 1}, {"a": float("nan")}])
    folder.close()
    assert (tmp_path / "log.jsonl").read_bytes() == b""


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    write_whole(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "new \ud800")
    assert path.read_text() == "old"
    write_whole(path, "new")
    assert path.read_text() == "new"


def test_what_was_not_used_for_longest_is_forgotten_first():
    cache = LRUCache[str, int](limit=3 * ENTRY_CHARS)
    for number, name in enumerate("abc"):
        cache.put(name, number, size=0)
    assert cache.get("a") == 0
    cache.put("d", 3, size=0)
    assert [cache.get(name) for name in "abcd"] == [0, None, 2, 3]


def test_long_texts_take_more_room():
    cache = LRUCache[str, int](limit=10 * ENTRY_CHARS)
    for name in "abc":
        cache.put(name, 1, size=0)
    cache.put("long", 1, size=8 * ENTRY_CHARS)
    assert [cache.get(name) for name in ("a", "b", "c", "long")] == [None, None, 1, 1]
    cache.put("huge", 1, size=99 * ENTRY_CHARS)  # the last one stays, whatever its size
    assert [cache.get(name) for name in ("c", "long", "huge")] == [None, None, 1]


def test_entering_again_replaces():
    cache = LRUCache[str, int](limit=2 * ENTRY_CHARS)
    cache.put("other", 7, size=0)
    for number in range(100):
        cache.put("a", number, size=0)
    assert (cache.get("a"), cache.get("other")) == (99, 7)
