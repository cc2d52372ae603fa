from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from codea1_env.support.stopping import stop_request


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
with stop_request(waits={waits}):
    print("begun", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2 * 10**9)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("waits", "signals"), [(True, 2), (False, 1)])
def test_a_long_operation_does_not_keep_the_process(waits, signals):
    process = subprocess.Popen(
        [sys.executable, "-c", BUSY.format(waits=waits)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stdout.readline() == b"begun\n"
        for number in range(signals):
            time.sleep(0.3)  # two signals at once are one
            assert process.poll() is None
            process.send_signal(signal.SIGINT)
            if number + 1 < signals:
                time.sleep(0.8)
                assert process.poll() is None  # the first one waits
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
