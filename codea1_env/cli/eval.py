"""`codea1 eval`: finds the evaluation."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from codea1_env.cli import eval_compare, eval_run
from codea1_env.cli.errors import InputError, unknown_name
from codea1_env.cli.eval_options import EvaluationOptions
from codea1_env.cli.parsing import parse
from codea1_env.evaluation.registry import evaluation_names

USAGE = """\
usage: codea1 eval code [OPTIONS]
       codea1 eval tests [OPTIONS]
       codea1 eval best-of-n --programs DIR [OPTIONS]
       codea1 eval run FILE.py:NAME [OPTIONS]
       codea1 eval compare A B

code       judge programs: pass@k and avg@n of an agent, or of a file of samples
tests      judge tests: pass@k, mut@k, Mul and coverage, of a tester or a file
best-of-n  what choosing among programs by generated tests gains
run        an evaluation of yours: docs/evaluation.md says how to write one
compare    what has changed between two evaluations, with intervals

`codea1 eval NAME --help` explains the options of each.
"""


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 eval`; returns the exit code."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="", file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    name, *rest = arguments
    if name == "compare":
        return eval_compare.run(rest)
    if name == "run":
        if rest[:1] in (["-h"], ["--help"]):
            parse(EvaluationOptions, rest, name="eval run FILE.py:NAME")
        if not rest or rest[0].startswith("-"):
            raise InputError("expect the evaluation behind run: FILE.py:NAME, and then its options")
        name, *rest = rest
    elif name not in evaluation_names():
        known = [f"eval {each}" for each in (*evaluation_names(), "compare", "run")]
        raise unknown_name("command", f"eval {name}", known)
    return eval_run.run(name, rest)
