"""What a user can get wrong, told apart from what we got wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from codea1_env.support.extras import explained

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


class InputError(Exception):
    """Bad input from the user: ends the command with this message, no traceback, and exit code 2."""


class FailureError(Exception):
    """Our own failure, or the machine's: ends the command with this message and exit code 1."""


class CommandLineExit(SystemExit):
    """`--help` was shown, or a command line refused. Any other `SystemExit` is of the user's own code."""


@contextmanager
def library_errors() -> Iterator[None]:
    """Tell a user in one line what the library raises.

    Errors of this package that are a ValueError are the user's mistake, others are a failure. Any other exception is a bug, and
    keeps its traceback.
    """
    from codea1_env.sandbox import AnalysisError, LevelUnavailableError, SandboxError

    try:
        yield
    except (InputError, FailureError):
        raise
    except ImportError as error:
        raise InputError(str(explained(error))) from error
    except AnalysisError as error:
        cause = error.__cause__ if isinstance(error.__cause__, AnalysisError) else error
        raise InputError(
            f"expect every reference to be a Python program, actually: {cause}. "
            "`codea1 problems validate` names the problem, file and line"
        ) from error
    except Exception as error:
        if not type(error).__module__.startswith("codea1_env."):
            raise
        if isinstance(error, ValueError | LevelUnavailableError):
            raise InputError(str(error)) from error
        said = f"the sandbox failed: {error}" if isinstance(error, SandboxError) else str(error)
        raise FailureError(said) from error


@contextmanager
def user_input() -> Iterator[None]:
    """Turn what a block that only looks at the user's input raises about it into an `InputError`."""
    try:
        yield
    except KeyError as error:
        raise InputError(str(error.args[0]) if error.args else "unknown name") from error
    except BrokenPipeError:  # whoever reads has seen enough
        raise
    except ImportError as error:
        raise InputError(str(explained(error))) from error
    except (ValueError, TypeError, OSError) as error:
        raise InputError(str(error)) from error


def check_least(command: object, **least: int) -> None:
    """Refuse options that are given and too small: `check_least(command, workers=1)`. Raises a ValueError if one is."""
    for name, number in least.items():
        value = getattr(command, name)
        if value is not None and value < number:
            option = name.replace("_", "-")
            raise ValueError(f"Expect --{option} to be at least {number}, actually: {value}")


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InputError:
    """Return the error for a name that does not exist, with the nearest ones that do.

    Example:
        >>> str(unknown_name("command", "trian", ["play", "train"]))
        "unknown command 'trian'. Did you mean 'train'?"
    """
    from codea1_env.game import did_you_mean

    return InputError(f"unknown {kind} {name!r}{did_you_mean(name, list(known))}")


def in_options(message: str, arguments: Sequence[str]) -> str:
    """Call settings as the command line does, if they were given there.

    Example:
        >>> in_options("Expect max_steps to be greater than 0, actually: 0", ["--max-steps", "0"])
        'Expect --max-steps to be greater than 0, actually: 0'
        >>> in_options("Expect problems to play, actually: none", ["--problems=mine.py:none"])
        'Expect problems to play, actually: none'
    """
    options = [word.partition("=")[0] for word in arguments if word.startswith("--")]
    for option in dict.fromkeys(options):
        name = re.escape(option.removeprefix("--").replace("-", "_"))
        # A name of one plain word is also a word: it is the setting only where a sentence begins with it.
        place = (
            rf"(?<![\w.-]){name}(?![\w=])"
            if re.search("[_.]", name)
            else rf"(?<=^.xpect ){name}(?= (?:not )?to be )"
        )
        message = re.sub(place, option, message)
    return message
