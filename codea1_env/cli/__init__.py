"""The command `codea1`."""

from __future__ import annotations

import io
import sys


def main() -> int:
    """Run the command line with the arguments of this process; returns the exit code."""
    from codea1_env.cli.app import run

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Programs and tests are any text: what the terminal cannot show is shown as an escape.
            stream.reconfigure(errors="backslashreplace")
    return run(sys.argv[1:])
