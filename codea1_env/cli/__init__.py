"""The command `codea1`."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line with the arguments of this process; returns the exit code."""
    from codea1_env.cli.app import run

    return run(sys.argv[1:])
