"""Operators of handles: what is calculated here, what there, and what is refused.

An object with data of a builtin type is calculated with here. For others the other side is asked, with plain data only about
what a test has made itself; the result has then seen the data, and no number can be made of it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from . import handles
from .bases import base_of, is_exact
from .handles import Handle, ask, check_mixed, check_own, held, is_constant
from .operations import ARITHMETIC, ORDER


def _unary(name: str, here: Callable[[Any], Any]) -> Callable[..., Any]:
    def method(self: Handle) -> Any:
        if base_of(self._codea1_code) and not self._codea1_marks & handles.OURS:
            check_own(self, name)
            return here(held(self))
        return ask(self, name)

    return method


def _round(self: Handle, digits: int | None = None) -> Any:
    return round(self._codea1_data, digits) if is_constant(self) else ask(self, "round", digits)


def _forwarded(name: str, of_results: bool) -> Callable[..., Any]:
    """Return what is only asked for; `of_results`: also of what arithmetic with plain data has made."""

    def method(self: Handle, *operands: Any) -> Any:
        peer = self._codea1_peer
        return peer.ask(name, self, *operands) if of_results else ask(self, name, *operands)

    return method


def _binary(name: str) -> Callable[..., Any]:
    reflected = name.startswith("r") and name != "rshift"
    plain = name[1:] if reflected else name
    here: Callable[[Any, Any], Any] = divmod if plain == "divmod" else getattr(operator, plain)
    deciding = plain in dict(ORDER)

    def method(self: Handle, other: Any) -> Any:
        peer = self._codea1_peer
        with_data = type(other) is not Handle and not peer.trusting
        if with_data and base_of(self._codea1_code):
            check_own(self, plain)
            return here(other, held(self)) if reflected else here(held(self), other)
        if with_data:
            check_mixed(self, other, plain, deciding)
        if deciding:
            return peer.ask(name, self, other)
        return _calculated(self, other, name, with_data)

    return method


def _in_place(name: str) -> Callable[..., Any]:
    fallback = _binary(name if hasattr(operator, name) else f"{name}_")

    def method(self: Handle, other: Any) -> Any:
        with_data = type(other) is not Handle and not self._codea1_peer.trusting
        base = base_of(self._codea1_code)
        if with_data and (is_constant(self) or (base and not is_exact(self._codea1_code))):
            return fallback(self, other)
        if with_data and not base:
            check_mixed(self, other, name, deciding=False)
        result = _calculated(self, other, f"i{name}", with_data and not base)
        if with_data and base and result is not self:
            self._codea1_peer.fail("a container that is another one after it was changed in place")
        return result

    return method


def _calculated(handle: Handle, other: Any, name: str, with_data: bool) -> Any:
    """Has something calculated. What has seen data of ours stays marked, and nothing old becomes better by it."""
    references, made = handle._codea1_peer.references, handle._codea1_marks & handles.OURS
    marks = handle._codea1_marks | (other._codea1_marks if type(other) is Handle else 0)
    mixed = with_data or bool(marks & handles.MIXED)
    references.newest = None
    result = handle._codea1_peer.ask(name, handle, other)
    if type(result) is not Handle:
        if mixed:
            handle._codea1_peer.fail("arithmetic with plain data that returns plain data")
        return result
    if result is references.newest or result is handle:
        in_place = result is handle and name.startswith("i")
        handles.mark(result, made if in_place else handles.derived(made), removed=handles.OURS)
    if mixed:
        handles.mark(result, handles.MIXED)
    return result


class _Union(tuple[Any, ...]):
    """Classes that `isinstance` takes, of both sides."""

    __slots__ = ()

    def __or__(self, other: Any) -> _Union:
        return _Union((*self, type(None) if other is None else other))


def _of_annotations(operator_of_values: Callable[..., Any]) -> Callable[..., Any]:
    """Return the operator of `Node | None`, in an annotation, and of values."""

    def method(self: Handle, other: Any) -> Any:
        if self._codea1_marks & handles.IS_CLASS and (other is None or isinstance(other, type)):
            return _Union((self, type(None) if other is None else other))
        return operator_of_values(self, other)

    return method


def add_operators() -> None:
    """Give handles the operators of the table, and what is only asked for."""
    for name in ("aiter", "delitem", "enter", "next", "setitem"):
        setattr(Handle, f"__{name}__", _forwarded(name, of_results=False))
    for name in ("format", "repr", "str"):
        setattr(Handle, f"__{name}__", _forwarded(name, of_results=True))
    conversions: dict[str, Callable[[Any], Any]] = {
        "abs": abs, "complex": complex, "float": float, "index": operator.index, "int": int,
        "invert": operator.invert, "neg": operator.neg, "pos": operator.pos,
    }  # fmt: skip
    for name, here in conversions.items():
        setattr(Handle, f"__{name}__", _unary(name, here))
    Handle.__round__ = _round  # type: ignore[attr-defined]
    for name, _ in (*ORDER, ("divmod", "")):
        setattr(Handle, f"__{name}__", _binary(name))
    for name, _ in ARITHMETIC:
        plain = name.rstrip("_")
        setattr(Handle, f"__i{plain}__", _in_place(plain))
        setattr(Handle, f"__{plain}__", _binary(name))
        setattr(Handle, f"__r{plain}__", _binary(f"r{name}"))
    for special in ("__or__", "__ror__"):
        setattr(Handle, special, _of_annotations(getattr(Handle, special)))
