"""`codea1 bench`: algorithms over seeds, questions about a learned adversary, and the sandbox."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import codea1_env
from codea1_env.cli.errors import InputError, unknown_name

USAGE = """\
usage: codea1 bench sandbox [OPTIONS]
       codea1 bench algorithms [OPTIONS]
       codea1 bench diagnose [NAME ...] [OPTIONS]

sandbox      measure the sandbox on this machine
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
    if name not in ("sandbox", "algorithms", "diagnose"):
        known = ["bench sandbox", "bench algorithms", "bench diagnose"]
        raise unknown_name("command", f"bench {name}", known)
    if name == "sandbox":
        return _of_sandbox()(rest)
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # module:Class of the user, as `python -m` would find it
    # Only now: learners and their packages take seconds to load.
    module = importlib.import_module(f"codea1_env.cli.bench_{name}")
    code: int = module.run(rest)
    return code


def _of_sandbox() -> Callable[[Sequence[str]], int]:
    """Return the benchmark of the sandbox: it lies beside the package, in the repository."""
    folder = Path(codea1_env.__file__).resolve().parents[1] / "benchmarks"
    if not (folder / "sandbox_speed").is_dir():
        raise InputError(
            "expect a checkout of the repository, actually: the installed package alone, without benchmarks/. Run "
            "`codea1 bench sandbox` where the package is installed with `pip install -e .`"
        )
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    run: Callable[[Sequence[str]], int] = importlib.import_module("sandbox_speed.command").run
    return run
