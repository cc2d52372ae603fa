"""What can be wrong with a test, as a closed list."""

from __future__ import annotations

import enum


class InvalidReason(enum.Enum):
    """Why a test does not count. The reason beside it says more, in words.

    Example:
        >>> InvalidReason("wrong value") is InvalidReason.WRONG_VALUE
        True
    """

    UNPARSABLE = "unparsable"
    """The text is no Python, or cannot be called."""
    UNREADABLE = "unreadable"
    """It is no call with arguments and the value that it returns, in a form that is read."""
    OUTSIDE_SIGNATURE = "outside the signature"
    """The function does not take such arguments, as its signature and the golden tests say."""
    OUTSIDE_FORMAT = "outside the format"
    """The input has another shape than the golden inputs of a program without a validator."""
    OUTSIDE_CONTRACT = "outside the contract"
    """The problem does not speak of such arguments, as its contract says."""
    NEVER_CALLS = "never calls"
    """It does not call the function under test."""
    WRONG_VALUE = "wrong value"
    """Its assertion is false on the reference."""
    RAISES = "raises"
    """It raises something on the reference, or the reference or its contract does."""
    NOT_INSTALLED = "not installed"
    """It imports a package that programs and tests do not have."""
    TIMEOUT = "timeout"
    """It takes too long on the reference."""
    LIMIT = "limit"
    """It needs too much memory, prints too much, ends the process, or tries what is forbidden."""
    UNENCODABLE = "unencodable"
    """The reference returns something that is no plain data, and that the test compares with plain data."""
    NON_DETERMINISTIC = "non-deterministic"
    """Two runs on the reference differ."""
    NOT_FINITE = "not finite"
    """The reference returns inf or nan for arguments that are finite: it overflows, and another program need not."""
    TOO_MANY = "too many"
    """It comes after as many tests as are looked at."""
    NO_LITERAL = "no literal"
    """The reference returns what no test can state, or not within the length of an answer."""
