"""`codea1 testgen`: tests to keep, for a problem set or for a function of one's own."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

USAGE = """\
usage: codea1 testgen PACKAGE.module::NAME|FILE.py::NAME [OPTIONS]
       codea1 testgen FILE.py|FOLDER|PACKAGE [OPTIONS]
       codea1 testgen --check TARGET ... [--against GIT_REV] [OPTIONS]
       codea1 testgen FILE.py|FOLDER|PACKAGE --export problems [OPTIONS]
       codea1 testgen --problems SOURCE --agent NAME_OR_PATH [OPTIONS]

The first writes a pytest file for a function or class of your own, the second
one for each of them. The third only looks for findings. The fourth makes a
problem set of functions. The fifth writes a suite for every problem of a set,
and with them a new set to train on. All keep few tests, which kill as many
mutants as all of them.

The options are explained by
  codea1 testgen FILE.py::NAME --help
  codea1 testgen FOLDER --help
  codea1 testgen --check --help
  codea1 testgen FOLDER --export problems --help
  codea1 testgen --problems SOURCE --help
"""


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 testgen`; returns the exit code."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="", file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    one = any("::" in each for each in arguments)
    own = one or not arguments[0].startswith("-")
    check = "--check" in arguments
    export = any(each.partition("=")[0] == "--export" for each in arguments)
    if {"-h", "--help"} & set(arguments):
        arguments = ["--help"]  # beside it, what is already given would not be explained
    if check:
        arguments = [each for each in arguments if each != "--check"]
    name = (
        "testgen_check"
        if check
        else "testgen_export"
        if export
        else "testgen_function"
        if one
        else "testgen_folder"
        if own
        else ""
    )
    if not name:
        from codea1_env.cli import eval_run

        return eval_run.run("suites", arguments, "testgen")
    code: int = importlib.import_module(f"codea1_env.cli.{name}").run(arguments)
    return code
