"""A function under test that is equal to everything, and tells what it was compared with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codea1_env.sandbox.inside.analysis.literals import write


class Result:
    """What the function under test returns."""

    def __init__(self, call: str, saw: list[str]) -> None:
        self.call, self.saw, self.is_changed = call, saw, False

    def __eq__(self, other: object) -> bool:
        if not self.is_changed:
            self.saw.append(f"{self.call} == {write(other)}")
        return True

    def __hash__(self) -> int:
        return id(self)

    def change(self, *_: Any) -> Any:
        self.is_changed = True
        return self

    append = sort = __iadd__ = __setitem__ = __delitem__ = pop = change


def recording(saw: list[str]) -> Callable[..., Result]:
    """Make a function whose results note their comparisons in a list."""

    def f(*arguments: Any, **keywords: Any) -> Result:
        given = [write(each) or "" for each in arguments]
        given += [f"{name}={write(each)}" for name, each in keywords.items()]
        return Result(f"f({', '.join(given)})", saw)

    return f
