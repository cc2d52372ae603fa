"""Ctrl-C while the command `codea1` is loading: it ends at once, with the exit code that shells have for it.

Python would show where it was in the imports, which helps nobody. Whoever imports the package gets nothing of this.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

_INTERRUPTED = 130


def begin() -> None:
    """Leave quietly on Ctrl-C from now on, if this process is the command."""
    words = sys.orig_argv[1:3]  # sys.argv has only "-m" by now
    command = words == ["-m", "codea1_env.cli"] or Path(*words[:1]).name == "codea1"
    # A shell that puts the command into the background has it ignore Ctrl-C: that stays.
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if command and is_default and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _leave)


def end() -> None:
    """Let Ctrl-C be an exception again: what runs now has something to tidy up."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(*_: object) -> None:
    os._exit(_INTERRUPTED)
