"""What came of one test, in the process that has run it."""

from __future__ import annotations

from typing import NamedTuple

from ..errors import describe_error, missing_module

_MAX_TRACEBACK = 4000
_MAX_TEXT = 500


class HowItEnded(NamedTuple):
    """How a test ended. Plain data, on its way out."""

    kind: str
    """"pass", "fail", "error", "skip", "memory", "exited" or "syntax"."""
    message: str = ""
    line: int | None = None
    traceback: str = ""
    error: str = ""
    """The class of the exception."""
    missing: str = ""
    """The module that was not found."""


def finding_of(
    error: BaseException | None,
    kind: str,
    line: int | None = None,
    traceback: str = "",
    text: str = "",
) -> HowItEnded:
    """Return what an exception says of a test."""
    name = type(error).__name__ if error is not None else ""
    if error is not None:
        said = describe_error(error)
        text = text or said[1]
        if said[0] in ("memory", "exited"):
            kind = said[0]
        elif isinstance(error, SyntaxError) and kind == "error":
            kind = "syntax"
    message = " ".join(text.split())[:_MAX_TEXT]
    missing = missing_module(error) if error is not None else ""
    return HowItEnded(
        kind, message, line, traceback[-_MAX_TRACEBACK:], name if kind != "fail" else "", missing
    )
