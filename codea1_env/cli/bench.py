"""`codea1 bench`: finds the benchmark."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import codea1_env
from codea1_env.cli.errors import InputError, unknown_name

USAGE = """\
usage: codea1 bench sandbox [OPTIONS]
       codea1 bench algorithms [OPTIONS]
       codea1 bench cross-play [OPTIONS]

sandbox      measure the sandbox on this machine
algorithms   compare algorithms and baselines over seeds
cross-play   let every coder play against every tester

`codea1 bench NAME --help` explains the options of each.
"""


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 bench`; returns the exit code."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="", file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    if arguments[0] == "algorithms":
        from codea1_env.cli import bench_algorithms

        return bench_algorithms.run(arguments[1:])
    if arguments[0] == "cross-play":
        from codea1_env.cli import bench_cross_play

        return bench_cross_play.run(arguments[1:])
    if arguments[0] != "sandbox":
        known = ["bench sandbox", "bench algorithms", "bench cross-play"]
        raise unknown_name("command", f"bench {arguments[0]}", known)
    return _benchmark()(arguments[1:])


def _benchmark() -> Callable[[Sequence[str]], int]:
    """The benchmark of the sandbox: it lies beside the package, in the repository."""
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
