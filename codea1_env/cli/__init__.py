"""The command `codea1`."""

from __future__ import annotations

import io
import os
import sys
import warnings


def main() -> int:
    """Run the command line with the arguments of this process; returns the exit code."""
    from codea1_env.cli.app import run

    _open_standard_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Programs and tests are any text: what the terminal cannot show is shown as an escape.
            stream.reconfigure(errors="backslashreplace")
    warnings.formatwarning = lambda message, *_: f"codea1: warning: {message}\n"
    return run(sys.argv[1:])


def _open_standard_streams() -> None:
    """Where the shell closed a stream (`>&-`), put /dev/null: the next pipe would get its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  stays open
