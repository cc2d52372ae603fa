"""What the other side of a connection may do with an object of ours.

Both sides are hostile. A test must not learn how a program is written (it could be valid on the reference
and fail exactly this program), nor run code inside the program's process other than by calling it. A
program must not learn anything of a test through a callback, nor reach an object that it was not given.
So requests are served only on objects that were handed over, and only for their public surface.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator
from typing import Any

# Public names that lead to the frame, the code or the globals behind an object.
_REVEALING = ("gi_", "cr_", "ag_", "f_", "tb_", "co_", "func_")


class RefusedError(Exception):
    """A request that is not served."""


def is_opaque_callable(value: Any, home: str) -> bool:
    """Whether an object offers nothing but calls: functions, methods, partials, wrappers of all kinds.

    Args:
        value: The object.
        home: Name of the module whose own classes offer more: "program" or "test".
    """
    return callable(value) and not isinstance(value, type) and type(value).__module__ != home


class Gate:
    """Decides which requests are served.

    Args:
        home: Name of the module that defines our side's classes: "program" or "test".
    """

    def __init__(self, home: str) -> None:
        self.home = home

    def _is_ours(self, value: Any) -> bool:
        kind = value if isinstance(value, type) else type(value)
        return kind.__module__ == self.home

    def check_call(self, target: Any) -> None:
        """Refuses to call what is not callable or is a type of the standard library.

        Raises:
            RefusedError: It is refused.
        """
        if not callable(target) or (isinstance(target, type) and not self._is_ours(target)):
            raise RefusedError("only functions and classes of its own can be called from outside")

    def check_attribute(self, target: Any, name: Any) -> None:
        """Refuses attributes that are not part of an object's public surface.

        Raises:
            RefusedError: It is refused.
        """
        if type(name) is not str or name.startswith(("_", *_REVEALING)):
            raise RefusedError(f"the attribute {name!r:.80} is not public")
        if is_opaque_callable(target, self.home) or isinstance(target, types.ModuleType):
            raise RefusedError("a function offers nothing but calls")
        kind = target if isinstance(target, type) else type(target)
        if issubclass(kind, str) and name in ("format", "format_map"):
            # "{0.__globals__}": it reads any attribute of its arguments. Whoever holds the text can do it.
            raise RefusedError("text of the other side is formatted there")
        if self.home == "test" and not self._is_ours(target):
            raise RefusedError("only objects of the test's own classes have attributes here")

    def check_operation(self, name: str, operands: tuple[Any, ...]) -> None:
        """Refuses operations on what is not an object with operations of its own.

        Raises:
            RefusedError: It is refused.
        """
        if name == "dir":
            raise RefusedError("the names of private attributes are not public")
        if self.home == "test":
            iterating = name in ("next", "iter") and isinstance(operands[0], Iterator)
            if not iterating and not any(self._is_ours(operand) for operand in operands):
                raise RefusedError("only objects of the test's own classes have operations here")
        if name == "await" and not inspect.isawaitable(operands[0]):
            raise RefusedError("only coroutines can be awaited")
        if name != "await" and any(is_opaque_callable(value, self.home) for value in operands):
            raise RefusedError("a function offers nothing but calls")
