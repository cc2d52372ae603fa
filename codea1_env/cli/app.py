"""Finds the command and runs it; turns exceptions into messages and exit codes.

Exit codes: 0 done, 1 done and something is wrong (findings, or our own failure), 2 bad input,
130 interrupted. Each command is imported only when it is called for, so that `codea1 --help` is quick.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

import codea1_env
from codea1_env.cli.errors import (
    INTERRUPTED,
    CommandLineExit,
    FailureError,
    InputError,
    in_options,
    unknown_name,
)
from codea1_env.support import start

COMMANDS = {
    "play": "Show one round between two scripted players.",
    "eval": "Measure programs (pass@k) and tests (mut@k), and compare.",
    "train": "Train both players against each other.",
    "report": "Write a page about runs, benchmarks and evaluations.",
    "export": "Copy a trained language model, or episodes, out of a run.",
    "problems": "List or check problems.",
    "sandbox": "Find out what confines programs here.",
    "serve": "Let trainers of others play the game, as OpenEnv speaks it.",
    "bench": "Compare algorithms, or diagnose adversaries.",
}
"""Name -> summary. `codea1_env.cli.NAME` has `run(arguments) -> exit code`."""
_HOMES = {"export": "report"}
"""Command -> the file of another command, which has `run_NAME`."""

_WRONG_PATH = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)


def usage() -> str:
    """Return the text of `codea1 --help`."""
    commands = "\n".join(f"  {name:<10} {summary}" for name, summary in COMMANDS.items())
    return f"""\
usage: codea1 COMMAND [OPTIONS]

A game: one player writes programs, the other writes tests to break them.

commands:
{commands}

options:
  -h, --help  Show this text. `codea1 COMMAND --help` explains every option.
  --version   Show the version.
"""


def run(arguments: Sequence[str]) -> int:
    """Run one command line; returns the exit code.

    Example:
        >>> run(["--version"])
        codea1 0.1.0
        0
    """
    if not arguments:
        print(usage(), file=sys.stderr)
        return 2
    name, *rest = arguments
    if name in ("-h", "--help"):
        print(usage(), end="")
        return 0
    if name == "--version":
        print(f"codea1 {codea1_env.__version__}")
        return 0
    try:
        if name not in COMMANDS:
            raise unknown_name("command", name, COMMANDS)
        start.spin_briefly()
        module = importlib.import_module(f"codea1_env.cli.{_HOMES.get(name, name)}")
        start.interrupt_is_an_exception()
        code: int = getattr(module, f"run_{name}" if name in _HOMES else "run")(rest)
        sys.stdout.flush()
        return code
    except InputError as error:
        print(f"codea1: {in_options(str(error), rest)}", file=sys.stderr)
        return 2
    except FailureError as error:
        print(f"codea1: {error}", file=sys.stderr)
        return 1
    except CommandLineExit:
        raise
    except SystemExit as error:
        if isinstance(
            error.__context__, BrokenPipeError
        ):  # rich ends so where the reader went away
            return 141
        from codea1_env.support.plugins import exit_of

        print(f"codea1: {exit_of(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("codea1: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader went away (`codea1 problems list | head`). Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:  # the message says what and where
        print(f"codea1: {error}", file=sys.stderr)
        return 2 if isinstance(error, _WRONG_PATH) else 1  # 1: a full disk, say
