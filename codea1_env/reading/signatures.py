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
from typing import Any

from codea1_env.sandbox.inside.analysis.literals import MAX_SOURCE, NotLiteralError, read, write

from .calls import MAX_CHARS, Call, seen_calls
from .chunks import PARSE_ERRORS, parse
from .domains import Check, Types, annotated, checker, described, shape, types_in
from .predictions import name_of

_MAX_SHOWN = 80
TOO_LONG = f"an argument or value of more than {MAX_SOURCE} characters"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

Function = ast.FunctionDef | ast.AsyncFunctionDef
Row = tuple[str, str, str | None, Any]
"""Name, kind, default and domain of a parameter. The default is None if there is none, "" if it is no literal."""


def read_signatures(problems: list[tuple[str, str, str, list[str]]]) -> list[str]:
    """Return the signatures of problems' functions, as JSON for `Signature`.

    Names and number of parameters are those of the prompt's definition, or without one of the reference's. A default
    counts where both have it; without a definition in the prompt, where a golden test leaves it out and another gives
    it. Domains are the annotations of the prompt's definition if it has any, else of the reference's; where a parameter
    has none, the shapes of its arguments in the golden tests and in the prompt's examples. Whether a function yields
    shows in its reference.
    """
    return [
        json.dumps({"parameters": _signature(*problem), "yields": _yields(problem[2], problem[1])})
        for problem in problems
    ]


def _yields(code: str, name: str) -> bool:
    function = _definition(code[:MAX_CHARS], name)
    left: list[ast.AST] = list(function.body) if type(function) is ast.FunctionDef else []
    while left:
        node = left.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (*_FUNCTIONS, ast.Lambda, ast.ClassDef)):
            left += ast.iter_child_nodes(node)
    return False


def _signature(prompt: str, entry_point: str, reference: str, tests: list[str]) -> list[Row] | None:
    prompt, reference = prompt[:MAX_CHARS], reference[:MAX_CHARS]
    try:
        asked = _definition_in_prompt(prompt, entry_point)
        solved = _definition(reference, entry_point)
        calls = seen_calls(prompt, entry_point, tests)
        texts = (reference, prompt, f"{prompt}\n    pass")
        types, names = types_in(texts), _constants(texts)
        rows: list[Row] | None = None
        for function, other in ((asked, solved), (solved, asked)):
            if function is None or (function is asked and solved and _is_open(function)):
                continue
            listed = _parameters(function, other, calls, types)
            rows = [(name, kind, _text(node, names), domain) for name, kind, node, domain in listed]
            if function is solved:
                rows = _shown(rows, _seen(listed, calls), len(calls))
            else:
                rows = _agreed(rows, _listed(solved) if solved else None, names)
            if _takes(rows, calls):
                break
        return rows
    except (*PARSE_ERRORS, TypeError, NotLiteralError):
        return None


def _is_open(function: Function) -> bool:
    """Whether a definition says nothing of its parameters: `def f(*args)`."""
    return [kind for _, kind, *_ in _listed(function)] in (["*"], ["*", "**"])


def _agreed(rows: list[Row], solved: Listed | None, names: dict[str, Any]) -> list[Row]:
    """Return the parameters that a prompt shows, without defaults that the reference has otherwise."""
    if solved is None:
        return rows
    places = [_text(default, names) for _, kind, default, _ in solved if kind in ("", "/")]
    named = {name: _text(default, names) for name, _, default, _ in solved}
    return [
        (name, kind, default if default == named.get(name, [*places[i : i + 1], None][0]) else None, domain)
        for i, (name, kind, default, domain) in enumerate(rows)
    ]  # fmt: skip


def _shown(rows: list[Row], seen: dict[str, list[Any]], calls: int) -> list[Row]:
    """Return the parameters of a reference that calls show: those that all of them give have no default, and what none gives at the end is none."""
    shown: list[Row] = []
    for name, kind, default, domain in reversed(rows if calls else ()):
        given, is_last = len(seen[name]), all(each[1] not in ("", "/") for each in shown)
        if given or default is None or (kind in ("", "/") and not is_last):
            is_said = given >= calls and kind in _ONE
            shown.append((name, kind, None if is_said else default, domain))
    return shown[::-1] if calls else rows


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
    try:
        body = parse(code)
    except PARSE_ERRORS:
        return None
    owner, _, method = name.rpartition(".")
    if owner:
        classes = [each for each in body if isinstance(each, ast.ClassDef) and each.name == owner]
        function = _bound_to(classes[-1].body, method) if classes else None
        return function and _without_self(function)
    return _bound_to(body, method)


def _bound_to(body: list[ast.stmt], name: str) -> Function | None:
    found = None
    for node in body:
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            if node.name == name:
                found = node if isinstance(node, _FUNCTIONS) else None
        elif isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == name for target in node.targets
        ):
            found = _of_lambda(node.value, name) if isinstance(node.value, ast.Lambda) else None
    return found


def _of_lambda(node: ast.Lambda, name: str) -> Function:
    return ast.FunctionDef(name=name, args=node.args, body=[], decorator_list=[], lineno=1)


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
    for text in texts:
        with contextlib.suppress(*PARSE_ERRORS):
            for node in parse(text):
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    with contextlib.suppress(NotLiteralError):
                        found.setdefault(node.targets[0].id, read(node.value))
    return found


def _parameters(
    function: Function, other: Function | None, calls: list[Call], types: Types
) -> Listed:
    """Return the parameters of a function, with domains in place of annotations."""
    listed = _listed(function)
    annotations = {name: node for name, _, _, node in listed}
    theirs = _listed(other) if other is not None else []
    if not any(annotations.values()):
        annotations = {name: node for name, _, _, node in theirs}
        if len(theirs) == len(listed):  # other names, the same places
            for (name, *_), (*_, node) in zip(listed, theirs, strict=True):
                annotations.setdefault(name, node)
    seen = _seen(listed, calls)
    return [
        (name, kind, default, annotated(annotations.get(name), seen[name], types))
        for name, kind, default, _ in listed
    ]


Listed = list[tuple[str, str, ast.expr | None, Any]]
"""Name, kind, default and annotation of parameters, or their domain in its place."""
_ONE = ("", "/", "k")
"""Kinds of parameters that take one argument."""


def _listed(function: Function) -> Listed:
    arguments = function.args
    places = [*arguments.posonlyargs, *arguments.args]
    defaults = [*[None] * (len(places) - len(arguments.defaults)), *arguments.defaults]
    kinds = ["/"] * len(arguments.posonlyargs) + [""] * len(arguments.args)
    rows = [
        *zip(places, kinds, defaults, strict=True),
        (arguments.vararg, "*", None),
        *(
            (each, "k", default)
            for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        ),
        (arguments.kwarg, "**", None),
    ]
    return [(each.arg, kind, default, each.annotation) for each, kind, default in rows if each]


def _text(default: ast.expr | None, names: dict[str, Any]) -> str | None:
    if default is None:
        return None
    try:
        return write(read(default, names)) or ""
    except NotLiteralError:
        return ""


def _seen(listed: Listed, calls: list[Call]) -> dict[str, list[Any]]:
    seen: dict[str, list[Any]] = {name: [] for name, *_ in listed}
    places = [name for name, kind, *_ in listed if kind in ("", "/")]
    rest = {kind: name for name, kind, *_ in listed}
    named = {name for name, kind, *_ in listed if kind in ("", "k")}
    for arguments, keywords in calls:
        for name, value in zip(places, arguments, strict=False):
            seen[name].append(value)
        if "*" in rest:
            seen[rest["*"]] += arguments[len(places) :]
        for name, value in keywords.items():
            if name in named:
                seen[name].append(value)
            elif "**" in rest:
                seen[rest["**"]].append(value)
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
        self._places = {row[0]: i for i, row in enumerate(self._rows)}
        self._by_name = {row[0]: i for i, row in enumerate(self._rows) if not row[1]}
        self._defaults: list[str | None] = [row[2] for row in self._rows]
        self._required = sum(default is None for default in self._defaults)
        self._named = {row[0]: row for row in rows if row[1] == "k"}
        self._rest = next((row[0] for row in rows if row[1] == "*"), None)
        self._others = next((row[0] for row in rows if row[1] == "**"), None)
        texts = [row[2] for row in rows]
        self._equal_defaults = {text: text and same_text(_value_of(text)) for text in texts}
        self._default_of = {row[0]: row[2] for row in rows if row[1] != "/"}
        self._has_odd_default = any(text != same for text, same in self._equal_defaults.items())
        self._needs_names = any(row[2] is None for row in self._named.values())
        self._checks: dict[str | None, Check | None] = {row[0]: _check(row) for row in rows}
        self._checks_of_places = [(name, self._checks[name]) for name in self._places]
        self._domains: dict[str | None, Any] = {row[0]: row[3] for row in rows}

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
        end = len(texts)
        if self._required < end <= most:
            while end > self._required and self._defaults[end - 1] == texts[end - 1]:
                end -= 1
            return arguments[:end], keywords, texts[:end]
        return arguments, keywords, texts

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
        for place in range(len(arguments), len(self._rows)):
            name, kind, default, _ = self._rows[place]
            if name in keywords and not kind:
                value = keywords.pop(name)
                if place == len(placed):
                    placed.append(value)
                elif default != write(value):  # behind a default that has no literal
                    others[name] = value
            elif default is None:
                raise BindingError(f"{name} is missing")
            elif place < last and place == len(placed) and default:
                placed.append(_value_of(default))
        for name, (_, _, default, _) in self._named.items():
            if name in keywords:
                value = keywords.pop(name)
                if default != write(value):
                    others[name] = value
            elif default is None:
                raise BindingError(f"{name} is missing")
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
        if len(texts) <= len(self._rows):
            equal = self._equal_defaults
            while (
                len(texts) > self._required and equal[self._defaults[len(texts) - 1]] == texts[-1]
            ):
                texts.pop()
        for name, value in keywords.items():
            text = same_text(value)
            if self._equal_defaults.get(self._default_of.get(name)) != text:
                texts.append(f"{name}={text}")
        return ", ".join(texts)

    def outside(self, arguments: list[Any], keywords: dict[str, Any]) -> str:
        """Why arguments are outside the domain, "" if they are not. They are as `bound` gives them."""
        for (name, check), value in zip(self._checks_of_places, arguments, strict=False):
            if check is not None and not check(value):
                return self._said(name, value)
        if keywords or len(arguments) > len(self._rows):
            rest = [(self._rest, value) for value in arguments[len(self._rows) :]]
            for name, value in (*rest, *keywords.items()):
                owner = name if name in self._checks else self._others
                check = self._checks.get(owner)
                if check is not None and not check(value):
                    return self._said(owner, value)
        return ""

    def _said(self, owner: str | None, value: Any) -> str:
        given, wanted = described(shape(value)), described(self._domains[owner])
        if given == wanted or wanted.startswith("Literal"):
            given = write(value) or given
        elif given != "None":
            given = f"{'an' if given[0] in 'aeiou' else 'a'} {given}"
        return f"{owner} is {given[:_MAX_SHOWN]}, not {wanted[:_MAX_SHOWN]}"


def same_text(value: Any) -> str:
    """Return the same text for values that are equal: 1, 1.0, 1 + 0j and True; a set that is frozen; a dict in another order."""
    return write(_plain(value)) or ""


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


_MAY_EQUAL_OTHERS = re.compile(r"\.0|e\+?[0-9]|[0-9]j|True|False|\{|set\(")


def _check(row: list[Any]) -> Check | None:
    check = checker(row[3])
    if check is None or not row[2] or check(_value_of(row[2])):
        return check
    inner, default = check, row[2]  # such as `n: int = None`
    return lambda value: inner(value) or write(value) == default


def _value_of(text: str) -> Any:
    return read(ast.parse(text, mode="eval").body)


def _written(values: list[Any]) -> list[str]:
    texts = [*map(write, values)]
    if None in texts:
        raise NotLiteralError(TOO_LONG)
    return texts  # type: ignore[return-value]
