"""Whether a crash can be blamed on the arguments: on how they fit together, or on an option that nobody would set so."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from codea1_env.testgen.findings import Accident
from codea1_env.testgen.invent import Parameter
from codea1_env.testgen.observing import Seen
from codea1_env.testgen.target import Target
from codea1_env.testgen.texts import Trial

_SMALL, _SHORT = 100, 4
_ORDINARY = (bool, type(None))
"""Kinds of options with no odd values."""


def weighed(found: Accident, trial: Trial, seen: Seen, target: Target) -> Accident:
    """The accident; a doubtful one if the arguments may be to blame.

    An index that is out of range says little of a number that may be one, and where several arguments have to fit
    together, such as a table and the number of its rows. What an optional argument does that somebody has set to
    something odd, such as an empty alphabet, was asked for. An index out of range where the
    docstring names no argument is mostly that of a helper, whose callers give no empty text. Some functions only take long with large arguments, and
    some objects stand for what has no end.

    Args:
        found: What looks like an accident.
        trial: The call, up to where it went wrong.
        seen: What came of it.
        target: What was called.
    """
    if found.kind not in ("crash", "endless"):
        return found
    given = [*_given(trial.arguments, trial.keywords, target.parameters)]
    for name, passed, words in trial.steps[-1:]:
        given += _given(passed, words, target.methods.get(name, ()))
    values = [value for _, value in given if type(value) not in _ORDINARY]
    if found.kind == "endless":
        blamed = bool(trial.steps) or any(map(_is_large, values))
    else:
        is_index = any(name == "IndexError" for _, name, _ in seen.errors)
        blamed = is_index and (
            len(values) > 1
            or any(type(value) is int for value in values)
            or not _is_documented([each for each, _ in given if each], target.docs)
        )
    if blamed or any(_is_odd(*each) for each in given):
        return replace(found, kind="exception")
    return found


def _is_documented(parameters: Sequence[Parameter], docs: Sequence[str]) -> bool:
    """Whether a docstring names one of the parameters, if there are any."""
    words = set(re.findall(r"\w+", " ".join(docs)))
    return not parameters or any(each.name in words for each in parameters)


def _given(
    values: Sequence[Any], words: Mapping[str, Any], parameters: Sequence[Parameter]
) -> Iterator[tuple[Parameter | None, Any]]:
    """Each argument with its parameter; None for one of ``*args``."""
    places = [each for each in parameters if each.way == "place"]
    for number, value in enumerate(values):
        yield (places[number] if number < len(places) else None), value
    named = {each.name: each for each in parameters}
    for word, value in words.items():
        yield named.get(word), value


def _is_large(value: Any) -> bool:
    """Whether it may take long to do something with it: no number or text that anybody would call small."""
    if isinstance(value, (int, float)):
        return abs(value) > _SMALL
    return hasattr(value, "__len__") and len(value) > _SHORT


def _is_odd(parameter: Parameter | None, value: Any) -> bool:
    """Whether an option has another value than its default, and none of two or three that everybody uses."""
    return (
        parameter is not None
        and parameter.optional
        and type(value) not in _ORDINARY
        and parameter.default != (value,)
        and not any(kind[0] == "literal" for kind in parameter.kinds)
    )
