"""What a handle does not say of its object: its type and its fields."""

from __future__ import annotations

from typing import NoReturn

from ..errors import RemoteUnencodable


class HandleType(type):
    """Only so that looking at the type of a handle is not answered wrongly without a word."""

    hidden = False

    @property
    def __name__(cls) -> str:  # type: ignore[override]
        cls._refuse()
        return str(type.__dict__["__name__"].__get__(cls))

    def __eq__(cls, other: object) -> bool:
        if type(other) is cls:
            cls._refuse()
        return cls is other

    __hash__ = type.__hash__

    def _refuse(cls) -> None:
        if cls.hidden:
            raise RemoteUnencodable("the type of an object of the program is not known")


def hide_type() -> None:
    """Let no code of this process look at the type of a handle. Where foreign code runs."""
    HandleType.hidden = True


class Unanswered:
    """Stands where a library looks for what is not known of an object of the program."""

    def __get__(self, handle: object, kind: type) -> NoReturn:
        raise RemoteUnencodable("the fields of an object of the program are not known")
