from __future__ import annotations

import os
import signal
import threading

import pytest

from codea1_env.training.interrupt import stop_request


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
