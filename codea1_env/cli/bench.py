"""`codea1 bench`: algorithms over seeds, and questions about a learned adversary."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from codea1_env.cli.errors import unknown_name

USAGE = """\
usage: codea1 bench algorithms [OPTIONS]
       codea1 bench diagnose [NAME ...] [OPTIONS]

algorithms   compare algorithms and baselines over seeds
diagnose     ask what a learned adversary is good for, one question at a time

`codea1 bench NAME --help` explains the options of each.
"""


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 bench`; returns the exit code."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="", file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    name, *rest = arguments
    if name not in ("algorithms", "diagnose"):
        raise unknown_name("command", f"bench {name}", ["bench algorithms", "bench diagnose"])
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # module:Class of the user, as `python -m` would find it
    # Only now: learners and their packages take seconds to load.
    module = importlib.import_module(f"codea1_env.cli.bench_{name}")
    code: int = module.run(rest)
    return code
