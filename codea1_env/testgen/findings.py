"""What a program does that nobody seems to have wanted: for its author to decide."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from codea1_env.sandbox import Limit, Outcome
from codea1_env.testgen.observing import Seen
from codea1_env.testgen.parameters import Kind
from codea1_env.testgen.target import Parameter, Target
from codea1_env.testgen.texts import GeneratedTest, Shape, Trial, literal, observed_test, trial_text

Evidence = Literal[
    "example", "tester", "difference", "crash", "annotation", "exception", "endless", "property", "state", "default"
]  # fmt: skip
"""What a finding rests on; see docs/testgen.md."""
DOUBTFUL: frozenset[Evidence] = frozenset({"exception", "property", "tester"})
"""Of these most are no mistakes: they are questions unless somebody asks for all findings."""
Sort = tuple[Any, ...]
_NEVER_MEANT = (
    "IndexError", "ZeroDivisionError", "UnboundLocalError", "NameError", "SystemError", "RecursionError",
)  # fmt: skip
"""Nobody lets these be raised on purpose without saying so, as people do with ValueError, KeyError and TypeError."""
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
_KINDS: dict[Outcome, Evidence] = {Outcome.SIGNALLED: "crash", Outcome.EXITED: "exception"}
"""Nobody ends the process by accident: programs that read their arguments do it."""


@dataclass(frozen=True)
class Finding:
    """Something that a function does, and what was expected of it."""

    source: str
    """What was called."""
    did: str
    """What came of it."""
    expected: str
    """Who expects what else, or why it is surprising."""
    kind: Evidence = "tester"
    before: str = ""
    """Statements that must run first."""
    test: GeneratedTest | None = None
    """What the file asks: a test that holds if those are right who expect something else; or, where only the author
    can know, if what the function does is right."""

    def __str__(self) -> str:
        return f"{self.source} {self.did}; {self.expected}"


def what_it_did(seen: Seen) -> str:
    """Return the end of a trial in words.

    Example:
        >>> what_it_did(Seen(Outcome.PASS, "", {"results": [("raises", ("KeyError", "'a'"))]}))
        "raises KeyError: 'a'"
    """
    if seen.outcome is not Outcome.PASS:
        return _ENDINGS.get(seen.outcome, f"fails: {seen.message}")
    form, content = seen.last
    if form in ("raises", "breaks"):
        name, message = content
        return short(f"raises {name}: {message}" if message else f"raises {name}")
    if form in ("repr", "type"):
        return short(f"returns {content}")
    return short(f"returns {literal(content)}")


def is_wrong_kind(seen: Seen) -> bool:
    """Whether an error says that the arguments were of a kind which the function does not take."""
    return any(name in _WRONG_KIND for _, name, _ in seen.errors)


def is_about_surroundings(seen: Seen) -> bool:
    """Whether a program asked for what the sandbox has not: files, the network, standard input."""
    return any(name in _SURROUNDINGS for _, name, _ in seen.errors)


@dataclass(frozen=True)
class Accident:
    """Which result of a trial looks like an accident."""

    number: int
    """Of the step."""
    kind: Evidence
    why: str


def accident(
    seen: Seen, on_purpose: Iterable[str], returns: Kind, *, certain: bool
) -> Accident | None:
    """Whether a result of a trial looks like an accident.

    Args:
        seen: What came of it.
        on_purpose: Exceptions that the program raises itself, or that its documentation names.
        returns: What is annotated.
        certain: The arguments are of the annotated kinds, so that no error can be blamed on them.
    """
    kind: Evidence
    nowhere = "neither its code nor its docstring says that it should"
    named = set(on_purpose)
    if seen.outcome in _ENDINGS:
        if seen.outcome is Outcome.EXITED and "SystemExit" in named:
            return None
        # What only waits may wait for something that it would get outside: it is a question.
        kind = "exception" if seen.limit is Limit.WALL_TIME else _KINDS.get(seen.outcome, "endless")
        return Accident(0, kind, nowhere)
    if seen.outcome is not Outcome.PASS:  # nobody knows what came of it
        return None
    for number, name, _ in seen.errors:
        if name not in named and (certain or name not in _WRONG_KIND):
            kind = "crash" if certain and name in _NEVER_MEANT else "exception"
            return Accident(number, kind, nowhere)
    form, content = seen.last
    if form == "value" and not is_of_kind(content, returns):
        return Accident(0, "annotation", f"it is annotated to return {kind_text(returns)}")
    return None


def question(trial: Trial, seen: Seen, why: str, kind: Evidence, shape: Shape) -> Finding:
    """Return the finding that asks whether what a trial gave is right; of one that did not end only the trial."""
    source = trial_text(trial, shape)
    if seen.outcome is Outcome.PASS:
        test = observed_test(trial, {**seen.found, "attributes": {}}, shape)
    else:
        shown = source.replace("; ", "\n") if trial.steps else source
        test = GeneratedTest(source, shown, "observed")
    return Finding(source, what_it_did(seen), why, kind, test=test)


def distinct(findings: Sequence[tuple[Finding, Sort]]) -> list[Finding]:
    """One finding of each sort: the shortest of those that are no questions, if there are any.

    Args:
        findings: Each with what its sort is, see `sort_of`.
    """
    chosen: dict[Sort, Finding] = {}
    ranked = sorted(
        findings, key=lambda each: (each[0].kind in DOUBTFUL, len(each[0].source), each[0].source)
    )
    for finding, sort in ranked:
        chosen.setdefault(sort, finding)
    return list(chosen.values())


def sort_of(seen: Seen, step: str) -> Sort:
    """Return the sort of a finding: those that are probably the same mistake have the same one."""
    for _, name, message in seen.errors[-1:]:
        # Messages begin with what was wrong, and end with what is wrong with it; or the other way round.
        words = re.sub(r"'[^']*'|\"[^\"]*\"|-?\d[\d.]*", "*", message).split()
        return (step, name, " ".join(words[-3:]))
    return (step, seen.outcome.value)


def is_of_kind(value: Any, kind: Kind) -> bool:
    """Whether an annotation allows a value; where it says what this cannot know, it does.

    Example:
        >>> is_of_kind(None, ("int",)), is_of_kind(True, ("float",)), is_of_kind((1, ""), ("tuple", ("int",), ("str",)))
        (False, True, True)
        >>> is_of_kind([1, None], ("list", ("union", ("int",), ("none",)))), is_of_kind(None, ("other", "Config"))
        (True, True)
    """
    name, inside = kind[0], kind[1:]
    if name == "union":
        return any(is_of_kind(value, each) for each in inside)
    if name == "literal":
        return value in inside
    if name == "tuple" and isinstance(value, tuple) and inside[1:] != (("...",),):
        return len(inside) == len(value)
    return isinstance(value, _ALLOWED.get(name, object))


_ALLOWED: dict[str, tuple[type, ...]] = {
    "none": (type(None),), "int": (int,), "float": (float, int), "complex": (complex, float, int), "str": (str,),
    "bool": (bool,), "bytes": (bytes,), "tuple": (tuple,), "set": (set, frozenset), "frozenset": (frozenset,),
    "dict": (dict,), "list": (list, tuple, str, bytes, set, frozenset, dict),
}  # fmt: skip
"""What annotations allow. Sequences and iterables are read as lists, so that a list says little."""


def kind_text(kind: Kind) -> str:
    """Return a kind in words.

    Example:
        >>> kind_text(("union", ("int",), ("none",)))
        'int or None'
    """
    if kind[0] == "union":
        return " or ".join(map(kind_text, kind[1:]))
    if kind[0] == "literal":
        return " or ".join(map(repr, kind[1:]))
    return str(kind[0]).replace("none", "None")


def short(text: str) -> str:
    """Return the text, cut where it is longer than anybody reads."""
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}..."


_SMALL, _SHORT = 100, 4
_ORDINARY = (bool, type(None))
"""Kinds of options with no odd values."""


def weighed(found: Accident, trial: Trial, seen: Seen, target: Target) -> Accident:
    """Return the accident; a doubtful one if the arguments may be to blame.

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
    given = _given(trial.arguments, trial.keywords, target.parameters)
    for name, passed, words in trial.steps[-1:]:
        given += _given(passed, words, target.methods.get(name, ()))
    values = [value for _, value in given if type(value) not in _ORDINARY]
    blamed = any(_is_odd(*each) for each in given)
    if found.kind == "endless":
        blamed |= bool(trial.steps) or any(map(_is_large, values))
    elif any(name == "IndexError" for _, name, _ in seen.errors):
        known = {each.name for each, _ in given if each is not None}
        documented = not known or known & set(re.findall(r"\w+", " ".join(target.docs)))
        blamed |= len(values) > 1 or any(type(value) is int for value in values) or not documented
    is_doubtful = blamed and found.kind in ("crash", "endless")
    return replace(found, kind="exception") if is_doubtful else found


def _given(
    values: Sequence[Any], words: Mapping[str, Any], parameters: Sequence[Parameter]
) -> list[tuple[Parameter | None, Any]]:
    """Each argument with its parameter; None for one of ``*args``."""
    places = [*(each for each in parameters if each.way == "place"), *[None] * len(values)]
    named = {each.name: each for each in parameters}
    return [
        *zip(places, values, strict=False),
        *((named.get(word), value) for word, value in words.items()),
    ]


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
        and [*parameter.default] != [value]
        and not any(kind[0] == "literal" for kind in parameter.kinds)
    )


def one_line(finding: Finding, target: Target, folder: Path | None = None) -> str:
    """Return a command that shows what a finding says. It runs the program as you, in no sandbox.

    Args:
        finding: What was found.
        target: The function or class that it was found in.
        folder: Where the command will run; None for the current one.
    """
    test = finding.test
    names = [target.name, *(test.uses if test else ())]
    imports = [f"import {each}" for each in (test.modules if test else ())]
    imports += [f"from {module} import {', '.join(some)}" for module, some in target.imports(names)]
    *steps, last = finding.source.split("; ") if target.is_class else [finding.source]
    if target.asynchronous:
        imports, last = ["import asyncio", *imports], f"asyncio.run({last})"
    lines = [*imports, *finding.before.splitlines(), *steps]
    # A statement that shows something, such as a loop that prints, is run as it is.
    shown = f"print(repr({last}))" if _is_call(last) else last
    simple = not any(line[:1].isspace() or line.rstrip().endswith(":") for line in lines)
    text = ("; " if simple else "\n").join([*lines, shown])
    away = os.path.relpath(target.home.root, folder or Path.cwd())
    path = "" if away == "." or target.home.installed else f"PYTHONPATH={shlex.quote(away)} "
    return f"{path}python -c {shlex.quote(text)}"


def as_data(finding: Finding, target: Target) -> dict[str, Any]:
    """Return a finding for a report."""
    names = ("source", "did", "expected", "kind")
    return {name: getattr(finding, name) for name in names} | {
        "reproduction": one_line(finding, target)
    }


def _is_call(text: str) -> bool:
    return (
        not text.startswith(("print(", "for ", "with ", "if ", "while ", "try:"))
        and "\n" not in text
    )
