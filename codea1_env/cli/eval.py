"""`codea1 eval`: finds the evaluation."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from codea1_env.cli.errors import unknown_name

USAGE = """\
usage: codea1 eval code [OPTIONS]
       codea1 eval tests [OPTIONS]
       codea1 eval best-of-n --programs DIR [OPTIONS]
       codea1 eval compare A B

code       judge programs: pass@k and avg@n of an agent, or of a file of samples
tests      judge tests: pass@k, mut@k, Mul and coverage of a tester, or of a file of suites
best-of-n  choose among the programs of an evaluation by generated tests: what it gains
compare    two evaluations of the same problems: what has changed, with intervals

`codea1 eval NAME --help` explains the options of each.
"""

_NAMES = ("code", "tests", "best-of-n", "compare")
"""`codea1_env.cli.eval_NAME` has `run(arguments) -> exit code`; with `_` for `-`."""


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 eval`; returns the exit code."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="", file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    if arguments[0] not in _NAMES:
        known = [f"eval {name}" for name in _NAMES]
        raise unknown_name("command", f"eval {arguments[0]}", known)
    name = arguments[0].replace("-", "_")
    module = importlib.import_module(f"codea1_env.cli.eval_{name}")
    code: int = module.run(arguments[1:])
    return code
