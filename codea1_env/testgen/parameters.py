"""A user's file -> the parameters of one function or class in it. Runs inside `Sandbox.analyse`.

Like `codea1_env.testgen.source` it is loaded alone, and imports only the standard library and the reader of literals.

A *kind* says which values a parameter takes: a tuple of a name and further kinds, such as ``("list", ("int",))``,
``("union", ("str",), ("none",))`` or ``("literal", "a", "b")``. ``("unknown",)`` is what nobody said anything
about, ``("other", "Config")`` what no plain value can stand for.
"""

from __future__ import annotations

import ast
import importlib
import random
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from codea1_env.sandbox.inside.analysis.literals import NotLiteralError, read
from codea1_env.testgen.driver import OPERATORS

Kind = tuple[Any, ...]

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_PLAIN = ("int", "float", "str", "bool", "bytes", "complex")
_OBJECTS = {"date", "datetime", "timedelta", "Decimal", "Fraction"}
_READ_AS = {
    **dict.fromkeys(
        ("list", "List", "Sequence", "Iterable", "Collection", "MutableSequence", "Reversible", "Iterator"), "list"
    ),
    **dict.fromkeys(("set", "Set", "AbstractSet", "MutableSet"), "set"),
    **dict.fromkeys(("frozenset", "FrozenSet"), "frozenset"),
    **dict.fromkeys(("tuple", "Tuple"), "tuple"),
    **dict.fromkeys(
        ("dict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "DefaultDict", "defaultdict"), "dict"
    ),
}  # fmt: skip
"""Containers that annotations name, and what is given for them."""
_ENUMS = {"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"}
_PLAIN_BASES = {"object", "Generic", "Protocol", *_ENUMS}
"""Bases that do not decide how objects are made, or of which it is known how."""
_ANYTHING = {"Any", "object", "Hashable"}
_WRAPPERS = {"Annotated", "Final", "Required", "NotRequired", "ClassVar"}
_SAMPLES: dict[str, Any] = {
    "int": 0, "str": "", "list": [], "float": 0.0, "dict": {}, "tuple": (), "set": set(), "bytes": b"",
}  # fmt: skip
"""Kinds that are guessed from the code, and what has their methods; of equals the first is tried first."""
_NUMBERS = ("int", "float")
_ITERABLES = ("list", "list", "str", "tuple", "dict", "set")
_TAKEN_BY = {
    "len|sorted|sum|min|max|enumerate|reversed|set|list|tuple": _ITERABLES,
    "range|chr|bin|hex": ("int", "int"),
    r"abs|round|math\..*": _NUMBERS,
    r"ord|re\..*": ("str", "str"),
}
"""What functions take."""
_INT: Kind = ("int",)
_FULL: dict[str, tuple[Kind, ...]] = {
    "list": (("list", _INT), ("list", ("str",)), ("list", ("union", _INT, ("list", _INT)))),
    "tuple": (("tuple", _INT, ("...",)),),
    "set": (("set", _INT),),
    "dict": (("dict", ("str",), _INT),),
}
"""What may be in containers of which only the container is known."""


def parameters(source: str, name: str) -> dict[str, Any]:
    r"""Return the parameters of a function; or those of a class and its methods.

    Returns:
        ``init`` (list of parameters), ``methods`` (name -> list of parameters, of a class), ``awaited`` (those of
        them that must be), ``attributes`` (public ones, of a class), ``sized`` (the class has a length),
        ``returns`` (the kind that is annotated), ``known`` (how objects are made: nothing is inherited from
        elsewhere that decides it).
        A parameter is a dictionary: ``name``, ``way`` ("place", "keyword", or "star" for any number of values),
        ``kinds`` (likely ones first; if annotated, only that one), ``annotated``, ``optional``, ``default`` (a
        list of one literal, or empty).

    Example:
        >>> found = parameters("def f(xs: list[int], sep='-', *, n):\n    return n % 2", "f")
        >>> for each in found["init"]:
        ...     print(each["name"], each["way"], each["kinds"][0], each["default"])
        xs place ('list', ('int',)) []
        sep place ('str',) ['-']
        n keyword ('int',) []
    """
    tree = ast.parse(source)
    classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    node = next(
        each
        for each in ast.walk(tree)
        if isinstance(each, (*_FUNCTIONS, ast.ClassDef)) and each.name == name
    )
    found: dict[str, Any] = {
        "init": [], "methods": {}, "attributes": {}, "sized": False, "awaited": [], "known": True, "enum": False,
        "returns": ("unknown",),
    }  # fmt: skip
    if isinstance(node, ast.ClassDef):
        for each in _ancestry(node, classes):
            _add_class(found, each, set(classes))
    else:
        found["init"] = _of_function(node, 0)
        found["returns"] = kind_of(node.returns or ast.Name("Any"))
    return found | {"attributes": list(found["attributes"])}


def _ancestry(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> list[ast.ClassDef]:
    """Return the class and those of its bases that the file defines, the most general first."""
    order = [node]
    for each in order:  # it grows
        bases = [classes.get(base.id) for base in each.bases if isinstance(base, ast.Name)]
        order += [base for base in bases if base is not None and base not in order]
    return order[::-1]


def _add_class(found: dict[str, Any], node: ast.ClassDef, classes: set[str]) -> None:
    marks = {ast.unparse(each).partition("(")[0].rpartition(".")[2] for each in node.decorator_list}
    bases = {ast.unparse(each).partition("[")[0].rpartition(".")[2] for each in node.bases}
    found["enum"] |= bool(bases & _ENUMS)
    found["known"] &= not node.keywords and bases <= classes | _PLAIN_BASES
    if "dataclass" in marks or "NamedTuple" in bases:
        fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
        found["init"] = [*found["init"], *filter(None, map(_of_field, fields))]
        found["attributes"] |= dict.fromkeys(each["name"] for each in found["init"])
        found["known"] = True
    for method in node.body:
        if not isinstance(method, _FUNCTIONS):
            continue
        name, kinds = (
            method.name,
            {ast.unparse(each).rpartition(".")[2] for each in method.decorator_list},
        )
        awaited = isinstance(method, ast.AsyncFunctionDef)
        if name == "__init__":
            found["init"] = _of_function(method, 1)
            found["attributes"] |= dict.fromkeys(_set_on_self(method))
            found["known"] = "ABC" not in bases and not node.keywords
        elif name == "__len__":
            found["sized"] = True
        elif kinds & {"property", "cached_property"}:
            found["attributes"] |= {} if name.startswith("_") else {name: None}
        elif _is_called(method, kinds):
            found["methods"][name] = _of_function(method, "staticmethod" not in kinds)
            found["awaited"] = [each for each in found["awaited"] if each != name] + [
                name
            ] * awaited
    if found["enum"]:
        found["init"] = [_of_members(node)]
        found["attributes"] |= {"name": None, "value": None}
        found["known"] = True


def _is_called(method: Any, marks: set[str]) -> bool:
    """Whether people call a method of an object, or an operator does that can be written."""
    if method.name in OPERATORS:
        given = method.args
        places = len([*given.posonlyargs, *given.args])
        rest = given.vararg or given.kwonlyargs or given.kwarg or given.defaults or marks
        return places == OPERATORS[method.name].count("{") and not rest
    generates = any(isinstance(each, ast.Yield) for each in ast.walk(method))
    return (
        not method.name.startswith("_")
        and not marks & {"setter", "deleter", "classmethod"}
        and not (generates and isinstance(method, ast.AsyncFunctionDef))
    )


def _of_members(node: ast.ClassDef) -> dict[str, Any]:
    """Return the parameter of an enumeration: the value of one of its members."""
    given = [
        value
        for each in node.body
        if isinstance(each, ast.Assign) and not ast.unparse(each.targets[0]).startswith("_")
        for value in _value(each.value)
    ]
    found = _parameter(
        "value", None, None, hints=[("literal", *given) if given else ("other", "a member")]
    )
    return found | {"annotated": True}


def _set_on_self(method: Any) -> list[str]:
    return [
        each.attr
        for each in ast.walk(method)
        if isinstance(each, ast.Attribute)
        and isinstance(each.ctx, ast.Store)
        and isinstance(each.value, ast.Name)
        and each.value.id == "self"
        and not each.attr.startswith("_")
    ]


def _of_field(node: ast.AnnAssign) -> dict[str, Any] | None:
    """Return a field of a dataclass as a parameter; None if it is none."""
    text = ast.unparse(node.annotation)
    if not isinstance(node.target, ast.Name) or "ClassVar" in text:
        return None
    default = node.value
    if isinstance(default, ast.Call) and "init=False" in ast.unparse(default):
        return None
    return _parameter(node.target.id, node.annotation, default, hints=[])


def _of_function(node: Any, skipped: int) -> list[dict[str, Any]]:
    """Return the parameters of a function but for the first; **kwargs are left empty."""
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    listed = [("place", *pair) for pair in zip(positional, defaults, strict=True)][skipped:]
    if arguments.vararg is not None:
        listed.append(("star", arguments.vararg, None))
    for pair in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        listed.append(("keyword", *pair))
    found = []
    for way, argument, default in listed:
        hints = [("int",)] if way == "star" else _hints(node, argument.arg)
        found.append(_parameter(argument.arg, argument.annotation, default, way=way, hints=hints))
    return found


def _parameter(
    name: str,
    annotation: ast.expr | None,
    default: ast.expr | None,
    *,
    way: str = "place",
    hints: list[Kind],
) -> dict[str, Any]:
    value = [] if default is None else _value(default)
    kinds: list[Kind] = hints
    if annotation is not None:
        kinds = [kind_of(annotation)]
    elif value and value[0] is not None:
        kinds = [kind_of_value(value[0])]
    return {
        "name": name,
        "way": way,
        "kinds": [kind for kind in kinds if kind != ("unknown",)],
        "annotated": annotation is not None and kinds != [("unknown",)],
        "optional": default is not None,
        "default": value,
    }


def _value(node: ast.expr) -> list[Any]:
    try:
        return [read(node)]
    except NotLiteralError:
        return []


def kind_of_value(value: Any) -> Kind:
    """Return the kind that an example is of.

    Example:
        >>> kind_of_value([(1, "a")])
        ('list', ('tuple', ('int',), ('str',)))
    """
    name = type(value).__name__
    if value is None:
        return ("none",)
    if name in _FULL and not value:
        return _FULL[name][0]
    if isinstance(value, tuple):
        return ("tuple", *map(kind_of_value, value))
    if isinstance(value, dict):
        return ("dict", kind_of_all(value), kind_of_all(value.values()))
    if isinstance(value, (list, set, frozenset)):
        return (name, kind_of_all(value))
    return (name,)


def kind_of_all(items: Iterable[Any]) -> Kind:
    """Return the kind that any of these examples is of."""
    kinds = list(dict.fromkeys(map(kind_of_value, items))) or [_INT]
    return kinds[0] if len(kinds) == 1 else ("union", *kinds)


def kind_of(node: ast.expr) -> Kind:
    """Return the kind that an annotation names.

    Example:
        >>> kind_of(ast.parse("Optional[Sequence[str]]", mode="eval").body)
        ('union', ('list', ('str',)), ('none',))
    """
    if isinstance(node, ast.Constant):
        if node.value is None:
            return ("none",)
        if isinstance(node.value, str):
            try:
                return kind_of(ast.parse(node.value, mode="eval").body)
            except (SyntaxError, ValueError, RecursionError):
                return ("unknown",)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union([kind_of(node.left), kind_of(node.right)])
    if isinstance(node, ast.Subscript):
        inside = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        return _generic(ast.unparse(node.value).rpartition(".")[2], inside)
    name = ast.unparse(node).rpartition(".")[2]
    return ("unknown",) if name in _ANYTHING else _generic(name, [])


def _generic(name: str, inside: list[ast.expr]) -> Kind:
    if name == "Literal":
        return ("literal", *(value for each in inside for value in _value(each)))
    kinds = [
        ("...",) if isinstance(each, ast.Constant) and each.value is Ellipsis else kind_of(each)
        for each in inside
    ]
    first = kinds[0] if kinds else _INT
    if name in _WRAPPERS and kinds:
        return first
    if name == "Optional":
        return _union([first, ("none",)])
    if name == "Union":
        return _union(kinds)
    if name == "Counter":
        return ("dict", first if kinds else ("str",), _INT)
    container = _READ_AS.get(name, "")
    if container == "tuple":
        return ("tuple", *(kinds or (_INT, ("...",))))
    if container == "dict":
        return ("dict", *(kinds if len(kinds) == 2 else (("str",), _INT)))
    if container:
        return (container, first)
    return (name,) if name in (*_PLAIN, *_OBJECTS) else ("other", name)


def _union(kinds: list[Kind]) -> Kind:
    flat = [inner for kind in kinds for inner in (kind[1:] if kind[0] == "union" else (kind,))]
    return ("union", *dict.fromkeys(flat))


def _hints(function: Any, name: str) -> list[Kind]:
    """Return what the body does with a parameter: likely kinds first."""
    votes = dict.fromkeys(_SAMPLES, 0)

    def is_it(node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id == name

    for node in ast.walk(function):
        if isinstance(node, ast.Call) and is_it(node.func):
            return [("other", "a function")]
        for kind in _fitting(node, is_it):
            votes[kind] += 1
    order = sorted(votes, key=lambda kind: -votes[kind])
    order = [kind for kind in order if votes[kind] or kind not in ("tuple", "set", "bytes")]
    first = [_FULL[kind][0] if kind in _FULL else (kind,) for kind in order]
    others = [other for kind in order[:2] for other in _FULL.get(kind, ())[1:]]
    return list(dict.fromkeys([*first[:2], *others, *first[2:]]))


def _fitting(node: ast.AST, is_it: Callable[[ast.AST], bool]) -> Sequence[str]:
    """Return the kinds that a use of a parameter fits; those that it fits best more than once."""
    match node:
        case ast.Attribute(value=it, attr=attr) if is_it(it):
            return [kind for kind, value in _SAMPLES.items() if hasattr(value, attr)]
        case ast.Call(func=ast.Name(id="isinstance"), args=[it, kinds]) if is_it(it):
            names = [each.id for each in ast.walk(kinds) if isinstance(each, ast.Name)]
            return 2 * [each for each in names if each in _SAMPLES]
        case ast.Call(func=called, args=args) if any(map(is_it, args)):
            text = ast.unparse(called)
            return next(
                (kinds for names, kinds in _TAKEN_BY.items() if re.fullmatch(names, text)), ()
            )
        case ast.For(iter=it) | ast.comprehension(iter=it) if is_it(it):
            return _ITERABLES
        case ast.Subscript(value=it) if is_it(it):
            return ("list", "str", "dict", "tuple")
        case ast.BinOp(left=one, right=other) if is_it(one) or is_it(other):
            return _alike(other if is_it(one) else one) or _NUMBERS
        case ast.AugAssign(target=it, value=other) if is_it(it):
            return _alike(other) or _NUMBERS
        case ast.Compare(left=left, ops=ops, comparators=others) if any(
            map(is_it, [left, *others])
        ):
            inside = is_it(others[0]) and isinstance(ops[0], (ast.In, ast.NotIn))
            alike = [kind for each in (left, *others) for kind in _alike(each)]
            return [*alike, *(_ITERABLES if inside else ())]
    return ()


def _alike(node: ast.AST) -> Sequence[str]:
    """Return the kinds of a literal."""
    value = _value(node) if isinstance(node, ast.expr) else []
    name = type(value[0]).__name__ if value else ""
    return _NUMBERS if name == "int" else (name,) if name in _SAMPLES else ()


# Regular expressions

# Private, but the only parser that agrees with re.
_PARSER: Any = importlib.import_module("re._parser")
_NUMBER = 8
_REPEATS = 2
_MAX = 60
_CATEGORIES = {
    "CATEGORY_DIGIT": "12037",
    "CATEGORY_SPACE": " ",
    "CATEGORY_WORD": "ab1x_",
    "CATEGORY_NOT_DIGIT": "ax-",
    "CATEGORY_NOT_SPACE": "a1-",
    "CATEGORY_NOT_WORD": " -.",
}


def samples(patterns: list[str]) -> list[str]:
    r"""Texts made from regular expressions: with as little as each allows, and with more.

    What looks ahead or behind is passed over, so that not every text has to match.

    Example:
        >>> samples([r"(?:(\d+)h)?(\d+)m"])[:3]
        ['1m', '11h11m', '0m']
        >>> samples(["("])
        []
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = _PARSER.parse(pattern)
            for number in range(_NUMBER):
                text = _Sampler(number).write(tree)
                if 0 < len(text) <= _MAX:
                    found[text] = None
        except Exception:  # no samples then: this is guesswork
            continue
    return list(found)


class _Sampler:
    """Writes one text: the shortest for the number 0, one with every part for 1, others at random."""

    def __init__(self, number: int) -> None:
        self._random = random.Random(number) if number > 1 else None
        self._more = number
        self._groups: dict[int | None, str] = {}

    def write(self, tree: Any) -> str:
        return "".join(self._part(str(kind), content) for kind, content in tree)

    def _pick(self, items: Any) -> Any:
        return items[0] if self._random is None else self._random.choice(items)

    def _part(self, kind: str, content: Any) -> str:
        match kind:
            case "LITERAL":
                return chr(content)
            case "NOT_LITERAL":
                return "a" if content != ord("a") else "b"
            case "ANY":
                return str(self._pick("a1 "))
            case "IN":
                return self._member(content)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                low, high, inner = content
                more = self._more if self._random is None else self._random.randint(0, _REPEATS)
                return "".join(self.write(inner) for _ in range(min(low + more, int(high), _MAX)))
            case "SUBPATTERN":
                self._groups[content[0]] = text = self.write(content[-1])
                return text
            case "BRANCH":
                return self.write(self._pick(content[1]))
            case "GROUPREF":
                return self._groups.get(content, "")
        return self.write(content) if kind == "ATOMIC_GROUP" else ""

    def _member(self, content: Any) -> str:
        kind, inner = self._pick(content)
        if str(kind) == "NEGATE":
            return next(
                (each for each in "a1 -_." if ord(each) not in [c for _, c in content]), "a"
            )
        if str(kind) == "RANGE":
            low, high = inner
            return chr(low if self._random is None else self._random.randint(low, high))
        if str(kind) == "CATEGORY":
            return str(self._pick(_CATEGORIES.get(str(inner), "a")))
        return chr(inner)
