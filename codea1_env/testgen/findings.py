"""What a program does that nobody seems to have wanted: for its author to decide."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from codea1_env.sandbox import Outcome
from codea1_env.testgen.invent import Kind
from codea1_env.testgen.observing import Seen
from codea1_env.testgen.texts import literal

_MAX_SHOWN = 200
_WRONG_KIND = ("TypeError", "AttributeError")
_SURROUNDINGS = (
    "OSError", "FileNotFoundError", "FileExistsError", "PermissionError", "IsADirectoryError",
    "NotADirectoryError", "BlockingIOError", "ConnectionError", "ConnectionRefusedError", "URLError",
    "gaierror", "EOFError", "ModuleNotFoundError", "ImportError",
)  # fmt: skip
"""Exceptions that say that the sandbox has no files, no network and no standard input."""
_ENDINGS = {
    Outcome.TIMEOUT: "does not end in time",
    Outcome.MEMORY: "needs more memory than there is",
    Outcome.OUTPUT_LIMIT: "returns more than the sandbox passes on",
    Outcome.EXITED: "ends the process",
    Outcome.SIGNALLED: "crashes the interpreter",
}


@dataclass(frozen=True)
class Finding:
    """Something that a function does, and what was expected of it."""

    source: str
    """What was called."""
    did: str
    """What came of it."""
    expected: str
    """Who expected what else."""

    def __str__(self) -> str:
        return f"{self.source} {self.did}; {self.expected}"


def what_it_did(seen: Seen) -> str:
    """The end of a trial in words.

    Example:
        >>> what_it_did(Seen(Outcome.PASS, "", {"results": [("raises", ("KeyError", "'a'"))]}))
        "raises KeyError: 'a'"
    """
    if seen.outcome is not Outcome.PASS:
        return _ENDINGS.get(seen.outcome, f"fails: {seen.message}")
    form, content = seen.last
    if form in ("raises", "breaks"):
        name, message = content
        return _short(f"raises {name}: {message}" if message else f"raises {name}")
    if form in ("repr", "type"):
        return _short(f"returns {content}")
    return _short(f"returns {literal(content)}")


def is_wrong_kind(seen: Seen) -> bool:
    """Whether an error says that the arguments were of a kind which the function does not take."""
    return any(name in _WRONG_KIND for _, name, _ in seen.errors)


def is_about_surroundings(seen: Seen) -> bool:
    """Whether a program asked for what the sandbox has not: files, the network, standard input."""
    return any(name in _SURROUNDINGS for _, name, _ in seen.errors)


def accident(
    seen: Seen, on_purpose: Iterable[str], returns: Kind, *, certain: bool
) -> tuple[int, str] | None:
    """Which result of a trial looks like an accident, and why; None if none does.

    Args:
        seen: What came of it.
        on_purpose: Exceptions that the program raises itself, or that its documentation names.
        returns: What is annotated.
        certain: The arguments are of the annotated kinds, so that no error can be blamed on them.
    """
    nowhere = "neither its code nor its docstring says that it should"
    named = set(on_purpose)
    if seen.outcome in _ENDINGS:
        wanted = seen.outcome is Outcome.EXITED and "SystemExit" in named
        return None if wanted else (0, nowhere)
    if seen.outcome is not Outcome.PASS:  # nobody knows what came of it
        return None
    for number, name, _ in seen.errors:
        if name not in named and (certain or name not in _WRONG_KIND):
            return number, nowhere
    form, content = seen.last
    if form == "value" and content is None and _excludes_none(returns):
        return 0, f"it is annotated to return {_kind_text(returns)}"
    return None


def distinct(findings: Sequence[tuple[Finding, tuple[Any, ...]]]) -> list[Finding]:
    """One finding of each sort, the shortest.

    Args:
        findings: Each with what its sort is, see `sort_of`.
    """
    chosen: dict[tuple[Any, ...], Finding] = {}
    for finding, sort in sorted(findings, key=lambda each: (len(each[0].source), each[0].source)):
        chosen.setdefault(sort, finding)
    return list(chosen.values())


def sort_of(seen: Seen, step: str) -> tuple[Any, ...]:
    """Findings that are probably the same mistake have the same sort."""
    for _, name, message in seen.errors[-1:]:
        return (step, name, re.sub(r"'[^']*'|\"[^\"]*\"|-?\d[\d.]*", "*", message))
    return (step, seen.outcome.value)


def _excludes_none(kind: Kind) -> bool:
    inside = kind[1:] if kind[0] == "union" else (kind,)
    known = {"int", "float", "str", "bool", "bytes", "list", "tuple", "dict", "set", "frozenset"}
    return all(each[0] in known for each in inside)


def _kind_text(kind: Kind) -> str:
    if kind[0] == "union":
        return " or ".join(map(_kind_text, kind[1:]))
    return str(kind[0])


def _short(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}..."
