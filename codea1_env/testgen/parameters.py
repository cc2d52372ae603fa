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
import warnings
from typing import Any

from codea1_env.sandbox.inside.analysis.literals import NotLiteralError, read

Kind = tuple[Any, ...]

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_PLAIN = ("int", "float", "str", "bool", "bytes", "complex")
_SEQUENCES = {
    "list", "List", "Sequence", "Iterable", "Collection", "MutableSequence", "Reversible", "Iterator",
}  # fmt: skip
_SETS = {"set", "Set", "AbstractSet", "MutableSet"}
_MAPPINGS = {
    "dict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "DefaultDict", "defaultdict",
}  # fmt: skip
_OBJECTS = {"date", "datetime", "timedelta", "Decimal", "Fraction"}
_ENUMS = {"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"}
_PLAIN_BASES = {"Generic", "Protocol", *_ENUMS}
"""Bases that do not decide how objects are made, or of which it is known how."""
_ANYTHING = {"Any", "object", "Hashable"}
_OPERATORS = {
    "__getitem__": 1, "__setitem__": 2, "__delitem__": 1, "__contains__": 1, "__iter__": 0, "__next__": 0,
    "__reversed__": 0, "__str__": 0, "__repr__": 0, "__bool__": 0, "__int__": 0, "__float__": 0,
}  # fmt: skip
"""Methods that an operator or a built-in function calls, with how many arguments; see `driver.OPERATORS`."""
_WRAPPERS = {"Annotated", "Final", "Required", "NotRequired", "ClassVar"}
_SAMPLES: dict[str, Any] = {
    "str": "", "list": [], "dict": {}, "set": set(), "int": 0, "float": 0.0, "tuple": (), "bytes": b"",
}  # fmt: skip
_ITERABLE = ("list", "str", "tuple", "dict", "set")
_TAKING_ITERABLES = {
    "len", "sorted", "sum", "min", "max", "enumerate", "reversed", "set", "list", "tuple",
}  # fmt: skip
_NAMES = {
    "int": "n i j k m count size index num number length limit width height depth level age year month day "
    "a b x y low high start stop end step base exponent amount quantity minutes seconds hours days",
    "str": "s t text string word name line sentence char c letter message path url pattern prefix suffix key "
    "title email code token query label separator sep delimiter source",
    "list": "xs ys lst items values numbers nums array arr data elements sequence seq list words rows "
    "points scores prices intervals",
    "dict": "d mapping dictionary table config settings record row counts graph tree",
    "float": "price rate ratio weight temperature fraction percent percentage probability tolerance",
    "bool": "flag verbose strict reverse ascending inclusive enabled",
}
"""What people call values of a kind, where nothing else tells."""
_BY_NAME = {name: kind for kind, names in _NAMES.items() for name in names.split()}
_INT: Kind = ("int",)
_FULL: dict[str, tuple[Kind, ...]] = {
    "list": (("list", _INT), ("list", ("str",)), ("list", ("union", _INT, ("list", _INT)))),
    "tuple": (("tuple", _INT, ("...",)),),
    "set": (("set", _INT),),
    "frozenset": (("frozenset", _INT),),
    "dict": (("dict", ("str",), _INT),),
}
"""What may be in containers of which only the container is known."""


def parameters(source: str, name: str) -> dict[str, Any]:
    r"""The parameters of a function; or those of a class and its methods.

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
    if not isinstance(node, ast.ClassDef):
        returns = ("unknown",) if node.returns is None else kind_of(node.returns)
        return {
            "init": _of_function(node, 0), "methods": {}, "attributes": [], "sized": False, "returns": returns,
            "awaited": [], "known": True,
        }  # fmt: skip
    found: dict[str, Any] = {
        "init": [], "methods": {}, "attributes": [], "sized": False, "awaited": [], "known": True, "enum": False,
    }  # fmt: skip
    for each in _ancestry(node, classes):
        _add_class(found, each, set(classes))
    return found | {"returns": ("unknown",), "attributes": list(dict.fromkeys(found["attributes"]))}


def _ancestry(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> list[ast.ClassDef]:
    """The class and those of its bases that the file defines, the most general first."""
    order = [node]
    for each in order:  # it grows
        bases = [classes.get(base.id) for base in each.bases if isinstance(base, ast.Name)]
        order += [base for base in bases if base is not None and base not in order]
    return order[::-1]


def _add_class(found: dict[str, Any], node: ast.ClassDef, classes: set[str]) -> None:
    marks = {ast.unparse(each).partition("(")[0].rpartition(".")[2] for each in node.decorator_list}
    bases = {ast.unparse(each).partition("[")[0].rpartition(".")[2] for each in node.bases}
    found["enum"] = found["enum"] or bool(bases & _ENUMS)
    found["known"] = (
        found["known"] and not node.keywords and bases <= {*classes, "object", *_PLAIN_BASES}
    )
    if "dataclass" in marks or "NamedTuple" in bases:
        fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
        found["init"] = [*found["init"], *filter(None, map(_of_field, fields))]
        found["attributes"] += [each["name"] for each in found["init"]]
        found["known"] = True
    for method in node.body:
        if not isinstance(method, _FUNCTIONS):
            continue
        kinds = {ast.unparse(each).rpartition(".")[2] for each in method.decorator_list}
        if method.name == "__init__":
            found["init"] = _of_function(method, 1)
            found["attributes"] += _set_on_self(method)
            found["known"] = "ABC" not in bases and not node.keywords
        elif method.name == "__len__":
            found["sized"] = True
        elif method.name in _OPERATORS:
            if _takes(method, _OPERATORS[method.name]):
                found["methods"][method.name] = _of_function(method, 1)
        elif method.name.startswith("_"):
            continue
        elif kinds & {"property", "cached_property"}:
            found["attributes"].append(method.name)
        elif not kinds & {"setter", "deleter", "classmethod"}:
            awaited = isinstance(method, ast.AsyncFunctionDef)
            if awaited and any(isinstance(each, ast.Yield) for each in ast.walk(method)):
                continue  # an asynchronous generator
            found["methods"][method.name] = _of_function(method, "staticmethod" not in kinds)
            others = [each for each in found["awaited"] if each != method.name]
            found["awaited"] = [*others, method.name] if awaited else others
    if found["enum"]:
        found["init"] = [_of_members(node)]
        found["attributes"] += ["name", "value"]
        found["known"] = True


def _takes(method: Any, number: int) -> bool:
    """Whether a method takes exactly so many arguments, by position."""
    given = method.args
    names = [*given.posonlyargs, *given.args]
    rest = (
        given.vararg or given.kwonlyargs or given.kwarg or given.defaults or method.decorator_list
    )
    return len(names) == number + 1 and not rest and isinstance(method, ast.FunctionDef)


def _of_members(node: ast.ClassDef) -> dict[str, Any]:
    """The parameter of an enumeration: the value of one of its members."""
    given = [
        value
        for each in node.body
        if isinstance(each, ast.Assign) and not ast.unparse(each.targets[0]).startswith("_")
        for value in _value(each.value)
    ]
    kind: Kind = ("literal", *given) if given else ("other", "a member")
    return {
        "name": "value", "way": "place", "kinds": [kind], "annotated": True, "optional": False, "default": [],
    }  # fmt: skip


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
    """A field of a dataclass as a parameter; None if it is none."""
    text = ast.unparse(node.annotation)
    if not isinstance(node.target, ast.Name) or "ClassVar" in text:
        return None
    default = node.value
    if isinstance(default, ast.Call) and "init=False" in ast.unparse(default):
        return None
    return _parameter(node.target.id, node.annotation, default, hints=[])


def _of_function(node: Any, skipped: int) -> list[dict[str, Any]]:
    """The parameters of a function but for the first; **kwargs are left empty."""
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
        kinds = [_kind_of_value(value[0])]
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


def _kind_of_value(value: Any) -> Kind:
    name = type(value).__name__
    return _FULL[name][0] if name in _FULL else (name,)


def kind_of(node: ast.expr) -> Kind:
    """The kind that an annotation names.

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
    if name in _ANYTHING:
        return ("unknown",)
    if name in _PLAIN:
        return (name,)
    return _generic(name, [])


def _generic(name: str, inside: list[ast.expr]) -> Kind:
    if name == "Literal":
        return ("literal", *(value for each in inside for value in _value(each)))
    kinds = [
        ("...",) if isinstance(each, ast.Constant) and each.value is Ellipsis else kind_of(each)
        for each in inside
    ]
    first = kinds[0] if kinds else ("int",)
    if name in _WRAPPERS and kinds:
        return first
    if name == "Optional":
        return _union([first, ("none",)])
    if name == "Union":
        return _union(kinds)
    if name in _SEQUENCES:
        return ("list", first)
    if name in ("tuple", "Tuple"):
        return ("tuple", *kinds) if kinds else ("tuple", ("int",), ("...",))
    if name in _SETS:
        return ("set", first)
    if name in ("frozenset", "FrozenSet"):
        return ("frozenset", first)
    if name == "Counter":
        return ("dict", first if kinds else ("str",), ("int",))
    if name in _MAPPINGS:
        return ("dict", *(kinds if len(kinds) == 2 else (("str",), ("int",))))
    if name in _OBJECTS:
        return (name,)
    return ("other", name)


def _union(kinds: list[Kind]) -> Kind:
    flat = [inner for kind in kinds for inner in (kind[1:] if kind[0] == "union" else (kind,))]
    return ("union", *dict.fromkeys(flat))


def _hints(function: Any, name: str) -> list[Kind]:
    """What the body does with a parameter, and what it is called: likely kinds first."""
    votes: dict[str, int] = {}

    def vote(kinds: Any, weight: int = 4) -> None:
        for kind in kinds:
            votes[kind] = votes.get(kind, 0) + weight

    def is_it(node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id == name

    for node in ast.walk(function):
        if isinstance(node, ast.Call) and is_it(node.func):
            return [("other", "a function")]
        if isinstance(node, ast.Attribute) and is_it(node.value):
            vote([kind for kind, value in _SAMPLES.items() if hasattr(value, node.attr)])
        elif isinstance(node, ast.Call) and any(map(is_it, node.args)):
            _vote_for_call(ast.unparse(node.func), node, is_it, vote)
        elif isinstance(node, (ast.For, ast.comprehension)) and is_it(node.iter):
            vote([*_ITERABLE, *_ITERABLE, "list"], 2)
        elif isinstance(node, ast.Subscript) and is_it(node.value):
            vote(["list", "str", "dict", "tuple"], 3)
        elif isinstance(node, ast.BinOp) and (is_it(node.left) or is_it(node.right)):
            other = node.right if is_it(node.left) else node.left
            vote(_alike(other) or ["int", "float"])
        elif isinstance(node, ast.Compare) and any(map(is_it, [node.left, *node.comparators])):
            for other in [node.left, *node.comparators]:
                vote(_alike(other), 4)
            if is_it(node.comparators[0]) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
                vote([*_ITERABLE, *_ITERABLE, "list"], 2)
        elif isinstance(node, ast.AugAssign) and is_it(node.target):
            vote(_alike(node.value) or ["int", "float"])
    called = _BY_NAME.get(name.lower().rpartition("_")[2]) or (
        "list" if name.endswith("s") and len(name) > 3 else ""
    )
    if called:
        vote([called], 2)  # less than anything that the body says
    for rank, kind in enumerate(["int", "str", "list", "float", "dict"]):
        votes[kind] = votes.get(kind, 0) * 10 + 5 - rank
    order = sorted(votes, key=lambda kind: -votes[kind])
    first = [_FULL[kind][0] if kind in _FULL else (kind,) for kind in order]
    others = [other for kind in order[:2] for other in _FULL.get(kind, ())[1:]]
    return list(dict.fromkeys([*first[:2], *others, *first[2:]]))


def _vote_for_call(called: str, node: ast.Call, is_it: Any, vote: Any) -> None:
    if called == "isinstance" and len(node.args) == 2 and is_it(node.args[0]):
        kinds = {each.id for each in ast.walk(node.args[1]) if isinstance(each, ast.Name)}
        vote(kinds & set(_SAMPLES), 5)
    elif called in _TAKING_ITERABLES:
        vote([*_ITERABLE, *_ITERABLE, "list"], 2)
    elif called in ("range", "chr", "bin", "hex"):
        vote(["int"], 5)
    elif called in ("abs", "round") or called.startswith("math."):
        vote(["int", "float"])
    elif called == "ord" or called.startswith("re."):
        vote(["str"], 5)


def _alike(node: ast.AST) -> list[str]:
    """The kinds of a literal."""
    value = _value(node) if isinstance(node, ast.expr) else []
    name = type(value[0]).__name__ if value else ""
    return ["int", "float"] if name == "int" else [name] if name in _SAMPLES else []


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
        self._groups: dict[int, str] = {}

    def write(self, tree: Any) -> str:
        return "".join(self._part(str(kind), content) for kind, content in tree)

    def _pick(self, items: Any) -> Any:
        return items[0] if self._random is None else self._random.choice(items)

    def _part(self, kind: str, content: Any) -> str:
        if kind == "LITERAL":
            return chr(content)
        if kind == "NOT_LITERAL":
            return "a" if content != ord("a") else "b"
        if kind == "ANY":
            return str(self._pick("a1 "))
        if kind == "IN":
            return self._member(content)
        if kind in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            low, high, inner = content
            more = self._more if self._random is None else self._random.randint(0, _REPEATS)
            return "".join(self.write(inner) for _ in range(min(low + more, int(high), _MAX)))
        if kind == "SUBPATTERN":
            text = self.write(content[-1])
            if content[0] is not None:
                self._groups[content[0]] = text
            return text
        if kind == "BRANCH":
            return self.write(self._pick(content[1]))
        if kind == "GROUPREF":
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
