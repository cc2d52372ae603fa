"""Runs a program and calls its functions: what every process of a candidate does."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from ..codec.encoding import encode
from ..codec.formats import EncodeError, Numpy, SizeError
from ..errors import MAX_MESSAGE, describe_error, message_of

MODULE_NAME = "program"
RETURNED = encode(("ok",)).replace(b"\1", b"\2", 1)
"""What stands before a value in a reply: both are a pair."""


def load(code: str) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Execute a program as a module.

    Returns:
        The reply, whose first item is "ok" when the program ran to its end, and its namespace.
    """
    module = types.ModuleType(MODULE_NAME)
    sys.modules[MODULE_NAME] = module
    namespace = module.__dict__
    try:
        compiled = compile(code, f"<{MODULE_NAME}>", "exec", dont_inherit=True)
    except MemoryError as error:
        return ("memory", message_of(error)), namespace
    except BaseException as error:  # SyntaxError, ValueError for null bytes, RecursionError, ...
        name = type(error).__name__
        return ("syntax", f"{name}: {message_of(error)}"[:MAX_MESSAGE], name), namespace
    try:
        exec(compiled, namespace)
    except BaseException as error:  # SystemExit and KeyboardInterrupt included
        return describe_error(error), namespace
    return ("ok",), namespace


class Caller:
    """Calls functions of the program and encodes what they return.

    Args:
        namespace: The program's names.
        limit: Bytes of a reply.
        numpy: Numpy, where it is there.
        offers: Whether what stands under a name may be called; None where the only name is the one under test.
    """

    def __init__(
        self,
        namespace: dict[str, Any],
        limit: int,
        numpy: Numpy | None,
        offers: Callable[[str, Any], bool] | None = None,
    ) -> None:
        self.namespace = namespace
        self._offers = offers
        self.limit = limit
        self.numpy = numpy

    def answer(self, name: str, arguments: list[Any], keywords: dict[str, Any]) -> bytes:
        """Make one call."""
        known = name in self.namespace
        if not known or (self._offers is not None and not self._offers(name, self.namespace[name])):
            return encode(("raised", f"NameError: name {name!r} is not defined", "NameError"))
        try:
            value = self.namespace[name](*arguments, **keywords)
        except BaseException as error:  # SystemExit and KeyboardInterrupt included
            return encode(describe_error(error))
        try:
            return RETURNED + encode(value, numpy=self.numpy, limit=self.limit)
        except SizeError as error:
            return encode(("too large", str(error)))
        except EncodeError as error:
            return encode(("unencodable", str(error)))
        except MemoryError as error:
            return encode(describe_error(error))


def loaded_numpy(numbers: bool = True) -> Numpy | None:
    """This process's numpy, if it has one. In a worker called before foreign code runs."""
    module = sys.modules.get("numpy")
    return Numpy(module, numbers) if module is not None else None


def loaded(code: str, entry_point: str | None) -> tuple[tuple[str, ...], dict[str, Any]]:
    """As `load`; the reply says so where the program does not define the entry point."""
    reply, namespace = load(code)
    if reply == ("ok",) and entry_point is not None and entry_point not in namespace:
        missing = f"NameError: the program does not define {entry_point!r}"
        reply = ("raised", missing, "NameError")
    return reply, namespace
