"""Problems -> what their functions take: parameters to bind calls by, and the domain of each.

Problems come from anywhere: their texts are bounded here, and nothing of them raises. A call is bound as the signature
says: the same arguments are the same call, however they were written.
"""

from __future__ import annotations

import ast
import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from codea1_env.sandbox.inside.analysis.literals import MAX_SOURCE, NotLiteralError, read, write

from .calls import MAX_CHARS, Call, seen_calls
from .domains import described, is_in, shape, types_in
from .syntax import PARSE_ERRORS, attempt, bound_by, in_scope, name_of, parsed, tree_of

_MAX_SHOWN = 80
TOO_LONG = f"an argument or value of more than {MAX_SOURCE} characters"
_PLACED = ("", "/")
"""Kinds of parameters that have a place."""
_OPEN = (["*"], ["*", "**"])

Function = ast.FunctionDef | ast.AsyncFunctionDef
Row = tuple[str, str, str | None, Any]
"""Name, kind, default and domain of a parameter. The default is None if there is none, "" if it is no literal."""


class _Parameter(NamedTuple):
    name: str
    kind: str
    """ "", "/" and "k" for those that take one argument, by name or place, by place, or by name; "*"; "**"."""
    default: ast.expr | None
    annotation: ast.expr | None


def read_signatures(problems: list[tuple[str, str, str, list[str]]]) -> list[str]:
    """Return the signatures of problems' functions, as JSON for `Signature`.

    Names and number of parameters are those of the prompt's definition, or without one of the reference's. A default
    counts where both have it; without a definition in the prompt, where a golden test leaves it out and another gives
    it. Domains are the annotations of the prompt's definition if it has any, else of the reference's; where a parameter
    has none, the shapes of its arguments in the golden tests and in the prompt's examples. Whether a function yields
    shows in its reference.
    """
    return [json.dumps(_signature(*problem)) for problem in problems]


def _signature(prompt: str, entry_point: str, reference: str, tests: list[str]) -> dict[str, Any]:
    prompt, reference = prompt[:MAX_CHARS], reference[:MAX_CHARS]
    solved = _definition(reference, entry_point)
    inner = in_scope(solved.body if isinstance(solved, ast.FunctionDef) else ())
    yields = any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in inner)
    try:
        asked = _definition_in_prompt(prompt, entry_point)
        calls = seen_calls(prompt, entry_point, tests)
        rows = _parameters(asked, solved, calls, (reference, prompt, f"{prompt}\n    pass"))
    except (*PARSE_ERRORS, TypeError, NotLiteralError):
        rows = None
    return {"parameters": rows, "yields": yields}


def _parameters(
    asked: Function | None, solved: Function | None, calls: list[Call], texts: Sequence[str]
) -> list[Row] | None:
    types, names = types_in(texts), _constants(texts)
    of_prompt = _listed(asked) if asked else None
    of_reference = _listed(solved) if solved else None
    rows: list[Row] | None = None
    for listed, theirs in ((of_prompt, of_reference), (of_reference, of_prompt)):
        if listed is None:
            continue
        if listed is of_prompt and theirs is not None and [each.kind for each in listed] in _OPEN:
            continue  # it says nothing of its parameters
        seen = _seen(listed, calls)
        annotations = _annotations(listed, theirs or [])
        rows = [
            (name, kind, _text(default, names), types.domain(annotations.get(name), seen[name]))
            for name, kind, default, _ in listed
        ]
        if listed is of_reference:
            rows = _shown(rows, seen, len(calls))
        elif theirs is not None:
            rows = _agreed(rows, theirs, names)
        if _takes(rows, calls):
            break
    return rows


def _annotations(listed: list[_Parameter], theirs: list[_Parameter]) -> dict[str, ast.expr | None]:
    """Return the annotations of parameters, or those of the other definition if they have none."""
    if any(each.annotation for each in listed):
        theirs = listed
    annotations = {each.name: each.annotation for each in theirs}
    if len(theirs) == len(listed):  # other names, the same places
        for ours, their in zip(listed, theirs, strict=True):
            annotations.setdefault(ours.name, their.annotation)
    return annotations


def _agreed(rows: list[Row], solved: list[_Parameter], names: dict[str, Any]) -> list[Row]:
    """Return the parameters that a prompt shows, without defaults that the reference has otherwise."""
    named = {each.name: _text(each.default, names) for each in solved}
    places = [named[each.name] for each in solved if each.kind in _PLACED]
    agreed = []
    for place, (name, kind, default, domain) in enumerate(rows):
        theirs = named.get(name, places[place] if place < len(places) else None)
        agreed.append((name, kind, default if default == theirs else None, domain))
    return agreed


def _shown(rows: list[Row], seen: dict[str, list[Any]], calls: int) -> list[Row]:
    """Return the parameters of a reference that calls show: those that all of them give have no default, and what none gives at the end is none."""
    if not calls:
        return rows
    shown: list[Row] = []
    for name, kind, default, domain in reversed(rows):
        given, is_last = len(seen[name]), all(each[1] not in _PLACED for each in shown)
        if given or default is None or (kind in _PLACED and not is_last):
            is_said = given >= calls and "*" not in kind
            shown.append((name, kind, None if is_said else default, domain))
    return shown[::-1]


def _takes(rows: list[Row], calls: list[Call]) -> bool:
    signature = Signature(json.dumps({"parameters": rows}))
    try:
        for arguments, keywords in calls:
            with contextlib.suppress(NotLiteralError):  # a long one
                signature.bound(arguments, {**keywords})
    except BindingError:
        return False
    return True


def _definition(code: str, name: str) -> Function | None:
    """Return the function or method that a program defines under a name, if a definition is the last thing that binds it."""
    body = attempt(code)
    if isinstance(body, BaseException):
        return None
    owner, _, method = name.rpartition(".")
    if owner:
        classes = [each for each in body if isinstance(each, ast.ClassDef) and each.name == owner]
        function = _bound_to(classes[-1].body, method) if classes else None
        return function and _without_self(function)
    return _bound_to(body, method)


def _bound_to(body: list[ast.stmt], name: str) -> Function | None:
    found: Function | None = None
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if node.name == name:
                found = node
            case ast.ClassDef() if node.name == name:
                found = None
            case ast.Assign() if any(name in bound_by(target) for target in node.targets):
                found = None
                if isinstance(node.value, ast.Lambda):
                    found = ast.FunctionDef(name, node.value.args, body=[], decorator_list=[])
    return found


def _without_self(function: Function) -> Function:
    decorators = {name_of(each) for each in function.decorator_list}
    first = function.args.posonlyargs or function.args.args
    if "staticmethod" not in decorators and first:
        del first[0]
    return function


def _definition_in_prompt(prompt: str, name: str) -> Function | None:
    """Return the same of a prompt, which may hold prose, or a function without a body."""
    owner, _, method = name.rpartition(".")
    for text in _attempts(prompt, method):
        found = _definition(text, name)
        if found is None and owner and (alone := _definition(text, method)):
            found = _without_self(alone)
        if found is not None:
            return found
    return None


def _attempts(prompt: str, name: str) -> Iterator[str]:
    """Texts that may be Python: the whole, and the first lines from the head of the function on."""
    yield prompt
    yield f"{prompt}\n    pass"
    lines = prompt.split("\n")
    head = re.compile(rf"\s*(?:async\s+)?def\s+{re.escape(name)}\s*\(")
    first = next((place for place, line in enumerate(lines) if head.match(line)), len(lines))
    text = ""
    for line in lines[first : first + 40]:
        text += line.strip() + "\n"
        for end in (" pass", ": pass"):
            yield text.rstrip() + end


def _constants(texts: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for node in [node for text in texts for node in parsed(text) or ()]:
        match node:
            case ast.Assign(targets=[ast.Name(id=name), *_]):
                with contextlib.suppress(NotLiteralError):
                    found.setdefault(name, read(node.value))
    return found


def _listed(function: Function) -> list[_Parameter]:
    arguments = function.args
    places = [*arguments.posonlyargs, *arguments.args]
    kinds = ["/"] * len(arguments.posonlyargs) + [""] * len(arguments.args)
    defaults = [*[None] * (len(places) - len(arguments.defaults)), *arguments.defaults]
    named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    rows = [
        *zip(places, kinds, defaults, strict=True),
        (arguments.vararg, "*", None),
        *((each, "k", default) for each, default in named),
        (arguments.kwarg, "**", None),
    ]
    return [
        _Parameter(each.arg, kind, default, each.annotation) for each, kind, default in rows if each
    ]


def _text(default: ast.expr | None, names: dict[str, Any]) -> str | None:
    if default is None:
        return None
    try:
        return write(read(default, names)) or ""
    except NotLiteralError:
        return ""


def _seen(listed: list[_Parameter], calls: list[Call]) -> dict[str, list[Any]]:
    """Return the values that each parameter has in calls."""
    seen: dict[str, list[Any]] = {each.name: [] for each in listed}
    places = [each.name for each in listed if each.kind in _PLACED]
    named = {each.name for each in listed if each.kind in ("", "k")}
    rest = {each.kind: each.name for each in listed}
    for arguments, keywords in calls:
        more: list[Any] = [rest.get("*")] * (len(arguments) - len(places))
        given = [*zip([*places, *more], arguments, strict=False)]
        given += [(k if k in named else rest.get("**"), value) for k, value in keywords.items()]
        for name, value in given:
            if name is not None:
                seen[name].append(value)
    return seen


class BindingError(Exception):
    """The signature does not take these arguments. The message says why."""


class Signature:
    """What a function takes, from the JSON of `read_signatures`.

    Example:
        >>> signature = Signature('{"parameters": [["n", "", null, "int"], ["by", "", "2", "int"]]}')
        >>> signature.bound([1], {"by": 2}), signature.bound([], {"by": 3, "n": 1})
        (([1], {}, ['1']), ([1, 3], {}, ['1', '3']))
        >>> signature.outside(["a", 1], {})
        'n is a str, not int'
    """

    fault = "outside the signature"
    """What is wrong with arguments that are outside."""
    longest = MAX_SOURCE
    """Characters of all arguments as literals."""

    def __init__(self, text: str) -> None:
        parameters = json.loads(text)["parameters"]
        self.binds = parameters is not None
        rows = parameters or []
        self._rows = [row for row in rows if row[1] in ("", "/")]
        self._by_name = {row[0]: i for i, row in enumerate(self._rows) if not row[1]}
        self._defaults: list[str | None] = [row[2] for row in self._rows]
        self._required = sum(default is None for default in self._defaults)
        self._named = {row[0]: row for row in rows if row[1] == "k"}
        self._rest = next((row[0] for row in rows if row[1] == "*"), None)
        self._others = next((row[0] for row in rows if row[1] == "**"), None)
        self._same_places = [_same_default(row[2]) for row in self._rows]
        self._same_named = {row[0]: _same_default(row[2]) for row in rows if row[1] != "/"}
        self._has_odd_default = any(row[2] != _same_default(row[2]) for row in rows)
        self._needs_names = any(row[2] is None for row in self._named.values())
        self._row_of: dict[str | None, list[Any]] = {row[0]: row for row in rows}

    def bound(
        self, arguments: list[Any], keywords: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any], list[str]]:
        """Arguments and keyword arguments in the one form of their call, and the texts of the former.

        What can stand by its place does; defaults at the end are left out, and others filled in.

        Raises:
            BindingError: The function does not take them.
            NotLiteralError: One of them has no text, or too long a one.
        """
        if not self.binds:
            return arguments, dict(sorted(keywords.items())), _written(arguments)
        given, most = len(arguments), len(self._rows)
        if given > most and self._rest is None:
            raise BindingError(
                f"it takes at most {most} argument{'s' * (most != 1)}, not {len(arguments)}"
            )
        if keywords or given < self._required or self._needs_names:
            arguments, keywords = self._placed(arguments, keywords)
        texts = _written(arguments)
        end = self._end(texts, self._defaults)
        return arguments[:end], keywords, texts[:end]

    def _end(self, texts: list[str], defaults: list[str | None]) -> int:
        """Return how many arguments are left without the defaults at the end."""
        end = len(texts)
        while self._required < end <= len(self._rows) and defaults[end - 1] == texts[end - 1]:
            end -= 1
        return end

    def _placed(
        self, arguments: list[Any], keywords: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        last = -1  # place that a keyword gives
        for name in keywords:
            place = self._by_name.get(name)
            if place is not None:
                if place < len(arguments):
                    raise BindingError(f"{name} is given twice")
                last = max(last, place)
            elif name not in self._named and self._others is None:
                raise BindingError(f"it has no parameter {name[:_MAX_SHOWN]}")
        placed, others = list(arguments), {}
        rows = [*self._rows[len(arguments) :], *self._named.values()]
        for place, (name, kind, default, _) in enumerate(rows, len(arguments)):
            if name in keywords and kind != "/":
                value = keywords.pop(name)
                if not kind and place == len(placed):
                    placed.append(value)
                elif default != write(
                    value
                ):  # behind a default that has no literal, or by name only
                    others[name] = value
            elif default is None:
                raise BindingError(f"{name} is missing")
            elif place < last and place == len(placed) and default:
                placed.append(_value_of(default))
        return placed, others | {name: keywords[name] for name in sorted(keywords)}

    @staticmethod
    def as_returned(value: Any) -> Any:
        """A predicted value as the function returns it."""
        return value

    def same_as(self, arguments: list[Any], keywords: dict[str, Any], source: str) -> str:
        """Return the same text for the same call, as `bound` gives it: with 1 for 1.0, or a default said again."""
        if not self._has_odd_default and not _MAY_EQUAL_OTHERS.search(source):
            return source
        texts = [same_text(each) for each in arguments]
        end = self._end(texts, self._same_places)
        named = {name: same_text(value) for name, value in keywords.items()}
        others = [f"{k}={text}" for k, text in named.items() if self._same_named.get(k) != text]
        return ", ".join([*texts[:end], *others])

    def outside(self, arguments: list[Any], keywords: dict[str, Any]) -> str:
        """Why arguments are outside the domain, "" if they are not. They are as `bound` gives them."""
        places = len(self._rows)
        given: list[tuple[str | None, Any]] = [
            *((row[0], value) for row, value in zip(self._rows, arguments, strict=False)),
            *((self._rest, value) for value in arguments[places:]),
            *keywords.items(),
        ]
        for name, value in given:
            row = self._row_of.get(name) or self._row_of.get(self._others)
            if row is not None and not is_in(value, row[3]):
                if row[2] and write(value) == row[2]:  # such as `n: int = None`
                    continue
                return _said(row, value)
        return ""


def _said(row: list[Any], value: Any) -> str:
    given, wanted = described(shape(value)), described(row[3])
    if given == wanted or wanted.startswith("Literal"):
        given = write(value) or given
    elif given != "None":
        given = f"{'an' if given[0] in 'aeiou' else 'a'} {given}"
    return f"{row[0]} is {given[:_MAX_SHOWN]}, not {wanted[:_MAX_SHOWN]}"


def _same_default(text: str | None) -> str | None:
    return text and same_text(_value_of(text))


def same_text(value: Any) -> str:
    """Return the same text for values that are equal: 1, 1.0, 1 + 0j and True; a set that is frozen; a dict in another order."""
    return write(_plain(value)) or ""


_MAY_EQUAL_OTHERS = re.compile(r"\.0|e\+?[0-9]|[0-9]j|True|False|\{|set\(")


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind is bool or (kind is float and value.is_integer()):
        return int(value)
    if kind is complex and value.imag == 0:
        return _plain(value.real)
    if kind is list or kind is tuple:
        return kind([_plain(each) for each in value])
    if kind is set or kind is frozenset:
        return frozenset([_plain(each) for each in value])
    if kind is dict:
        items = [(_plain(key), _plain(each)) for key, each in value.items()]
        return dict(sorted(items, key=lambda item: write(item[0]) or ""))
    return value


def _value_of(text: str) -> Any:
    return read(tree_of(text, "eval").body)


def _written(values: list[Any]) -> list[str]:
    texts = [*map(write, values)]
    if None in texts:
        raise NotLiteralError(TOO_LONG)
    return texts  # type: ignore[return-value]
