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
    library_errors,
    unknown_name,
)
from codea1_env.support import start

COMMANDS = {
    "play": ("play:run", "Show one round between two players."),
    "train": ("train:run", "Train both players against each other."),
    "eval code": ("eval:code", "Judge programs of an agent or a file: pass@k, avg@n."),
    "eval tests": ("eval:tests", "Judge tests of an agent or a file: pass@k, mut@k, Mul."),
    "eval cross-play": ("cross_play:run", "Let every coder play against every tester."),
    "eval run": ("eval:own", "Run an evaluation of yours, FILE.py:NAME."),
    "eval compare": ("eval:compare_two", "Compare two evaluations, with intervals."),
    "bench algorithms": ("bench_algorithms:run", "Compare algorithms and baselines over seeds."),
    "bench diagnose": ("bench_diagnose:run", "Ask what a learned adversary is good for."),
    "suite run": ("suite:run_suite", "Play the frozen benchmark with an algorithm."),
    "suite tune": ("suite:run_tune", "Search its learning rates on worlds for tuning."),
    "suite score": ("suite:score", "Score what was played, beside the shipped rows."),
    "suite verify": ("suite:run_verify", "Play a share of a submission again."),
    "report": ("report:run", "Write a page about runs, benchmarks and evaluations."),
    "export": ("report:run_export", "Copy a trained language model, or episodes, out of a run."),
    "problems list": ("problems:list_problems", "List the problems of a source."),
    "problems validate": ("problems:validate", "Check a problem set."),
    "sandbox doctor": ("sandbox:doctor", "Try every layer of the sandbox on this machine."),
    "serve env": ("serve:serve_env", "Let other trainers play the game, as OpenEnv speaks it."),
}
"""Name -> `module:function` in `codea1_env.cli`, which takes arguments and returns the exit code; summary."""

_WRONG_PATH = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)


def usage(group: str = "") -> str:
    """Text of `codea1 --help`, or of a group of commands such as `codea1 eval`."""
    shown = {name: about for name, (_, about) in COMMANDS.items() if name.startswith(group)}
    width = max(map(len, shown))
    commands = "\n".join(f"  {name:<{width}}  {about}" for name, about in shown.items())
    return f"""\
usage: codea1 {group}{"NAME" if group else "COMMAND"} [OPTIONS]

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
    if list(arguments[:1]) == ["--version"]:
        print(f"codea1 {codea1_env.__version__}")
        return 0
    first, second = [*arguments[:2], "", ""][:2]
    group = f"{first} " if any(name.startswith(f"{first} ") for name in COMMANDS) else ""
    asked = second if group else first
    if asked in ("", "-h", "--help"):
        print(usage(group), end="", file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    name, rest = group + asked, arguments[2 if group else 1 :]
    try:
        if name not in COMMANDS:
            known = [each for each in COMMANDS if group] or [each.split()[0] for each in COMMANDS]
            raise unknown_name("command", name, dict.fromkeys(known))
        start.spin_briefly()
        module, _, function = COMMANDS[name][0].partition(":")
        command = getattr(importlib.import_module(f"codea1_env.cli.{module}"), function)
        start.interrupt_is_an_exception()
        with library_errors():
            code: int = command(rest)
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
