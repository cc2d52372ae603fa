"""Runs a test in the process of the program. Its text is appended to the program; see `OwnCodeSandbox`."""

from __future__ import annotations

import types
from typing import Any

_MOST = 500
"""Characters of a message."""


def judge(test: str, name: str | None, program: dict[str, Any]) -> tuple[str, str, str]:
    """Run a test, and the functions that it defines as pytest would find them.

    Args:
        test: Its text.
        name: The only name of the program that it sees; None for all.
        program: The names of the program.

    Returns:
        "pass", "fail" or "error", a message, and the name of the exception of an error.
    """
    if name is not None:
        space = {name: program[name]}
    else:
        space = {key: value for key, value in program.items() if not key.startswith("_codea1")}
    space["__name__"] = "test"
    before = dict(space)
    try:
        exec(compile(test, "<test>", "exec", dont_inherit=True), space)
        for key, value in list(space.items()):
            is_new = before.get(key) is not value and type(value) is types.FunctionType
            if is_new and key.startswith("test") and not value.__code__.co_argcount:
                value()
    except AssertionError as error:
        return "fail", _text(error), ""
    except (SystemExit, Exception) as error:
        kind = type(error).__name__
        return "error", f"{kind}: {_text(error)}"[:_MOST], kind
    return "pass", "", ""


def _text(error: BaseException) -> str:
    try:
        return str(error)[:_MOST]
    except Exception:
        return ""
