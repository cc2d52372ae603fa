"""Which values a parameter takes: from annotations, or from the shapes of values that were seen.

A domain is plain data, so that it can be sent as JSON: "any", "int", "float" (finite ones, and integers no larger than those),
"nonfinite" (all floats: where nan or an infinity was seen), "str", ...,
["list", D], ["set", D], ["frozenset", D], ["dict", K, V], ["tuple", [D, ...]], ["tuple*", D] (of any length),
["sequence", D], ["iterable", D], ["literal", [text, ...]], ["union", [D, ...]], ["instance", name] (of a class that no
literal has: no value). "never" is what is not known of something that was only seen empty.
"""

from __future__ import annotations

import ast
import contextlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from codea1_env.sandbox.inside.analysis.literals import NotLiteralError, read, write

from .chunks import PARSE_ERRORS, parse
from .predictions import name_of

Domain = Any
Check = Callable[[Any], bool]

_LARGEST = int(sys.float_info.max)
_WIDER = {
    ("float", "int"), ("nonfinite", "int"), ("nonfinite", "float"), ("complex", "int"), ("complex", "float"),
}  # fmt: skip
_MAX_SEEN = 200
"""Items of a container that are looked at."""
_MAX_ALTERNATIVES = 8
_MAX_DEPTH = 6
_ATOMS: dict[type, str] = {
    bool: "bool", int: "int", float: "float", complex: "complex", str: "str", bytes: "bytes", type(None): "None",
}  # fmt: skip
_NAMES: dict[str, Domain] = {
    "int": "int", "float": "float", "complex": "complex", "str": "str", "Text": "str", "AnyStr": "str",
    "bytes": "bytes", "bool": "bool", "None": "None", "NoneType": "None", "Number": "float", "Real": "float",
    "Any": "any", "object": "any",
    "Hashable": ["union", ["complex", "str", "bytes", "bool", "None", ["tuple*", "any"], ["frozenset", "any"]]],
}  # fmt: skip
_KINDS = {
    "list": "list", "List": "list", "MutableSequence": "list", "tuple": "tuple", "Tuple": "tuple", "dict": "dict",
    "Dict": "dict", "Mapping": "dict", "MutableMapping": "dict", "set": "set", "Set": "set", "MutableSet": "set",
    "AbstractSet": "set", "frozenset": "frozenset", "FrozenSet": "frozenset", "Sequence": "sequence",
    "Iterable": "iterable", "Collection": "iterable", "Container": "iterable",
}  # fmt: skip
_TYPES: dict[str, tuple[type, ...]] = {
    "list": (list,), "tuple": (tuple,), "dict": (dict,), "set": (set,), "frozenset": (frozenset,),
    "sequence": (list, tuple, str), "iterable": (list, tuple, set, frozenset, str),
}  # fmt: skip


_BARE: dict[str, Domain] = {"tuple": ["tuple*", "any"], "dict": ["dict", "any", "any"]}
_INSTANCES = frozenset({
    "AsyncIterator", "Awaitable", "BinaryIO", "Callable", "ChainMap", "Coroutine", "Counter", "DefaultDict", "Deque",
    "Generator", "IO", "Iterator", "Match", "OrderedDict", "Pattern", "TextIO", "Type", "type",
})  # fmt: skip
"""Types that no literal has, whatever a text says of these names."""
_TYPING = frozenset(
    {"typing", "typing_extensions", "collections.abc", "numbers", "abc", "__future__"}
)
_MAX_NAMED = 200


class Types:
    """What the names of types stand for in a text: an annotation, or None for a class that no literal has."""

    def __init__(self) -> None:
        self.named: dict[str, ast.expr | None] = {}
        self.left = _MAX_NAMED
        """How often a name may be looked up: one may stand for itself."""

    def __contains__(self, name: str) -> bool:
        self.left -= 1
        return self.left > 0 and name in self.named


def types_in(texts: Iterable[str]) -> Types:
    """Return the types that some texts define or import at the top. What is no Python defines none."""
    found = Types()
    for text in texts:
        with contextlib.suppress(*PARSE_ERRORS):
            for node in parse(text):
                for name, kind in _types_by(node):
                    found.named.setdefault(name, kind)
    return found


def _types_by(node: ast.stmt) -> Iterator[tuple[str, ast.expr | None]]:
    if isinstance(node, ast.ClassDef):
        bases = {name_of(base) for base in node.bases}
        if "TypedDict" in bases:
            yield node.name, ast.Name("dict")
        elif "Protocol" not in bases:
            yield node.name, None
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        module = node.module if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            is_known = (module or alias.name) in _TYPING or name in _NAMES or name in _KINDS
            if not is_known:
                yield name, None
    elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        value = node.value
        if (
            isinstance(value, ast.Call)
            and name_of(value.func) == "NewType"
            and len(value.args) == 2
        ):
            value = value.args[1]
        if isinstance(target, ast.Name) and isinstance(value, _ANNOTATIONS):
            yield target.id, value


_ANNOTATIONS = (ast.Name, ast.Attribute, ast.Subscript, ast.BinOp)


def annotated(node: ast.expr | None, seen: Sequence[Any], types: Types | None = None) -> Domain:
    """Return the domain of a parameter, from its annotation and values that it has in golden tests.

    A container without its kind of items (`list`) takes its items from the values that were seen, as a parameter
    without annotation takes all of it; `list[Any]` says that it takes anything. So does a type that is not known, or that
    no literal has; where nothing was seen the latter takes nothing. A value that was seen is always in the domain,
    whatever the annotation says of it.
    """
    seen = seen[:_MAX_SEEN]
    if node is None:
        return known(merged(map(shape, seen)))
    domain = known(_Annotations(types or Types()).resolved(node, seen, 0))
    check = checker(domain)
    odd = [shape(value) for value in seen if check is not None and not check(value)]
    return known(merged([domain, *odd])) if odd else domain


class _Annotations:
    """Reads annotations of one text."""

    def __init__(self, types: Types) -> None:
        self._types = types

    def resolved(self, node: ast.expr, seen: Sequence[Any], depth: int) -> Domain:
        if depth > _MAX_DEPTH:
            return "any"
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str) and len(node.value) < 1000:
                with contextlib.suppress(*PARSE_ERRORS):
                    return self.resolved(ast.parse(node.value, mode="eval").body, seen, depth + 1)
            return "None" if node.value is None else "any"
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            parts = node.left, node.right
            return merged([self.resolved(each, seen, depth + 1) for each in parts])
        name = name_of(node)
        if isinstance(node, ast.Name) and name in self._types:
            named = self._types.named[name]
            return (
                self._unknown(node, seen)
                if named is None
                else self.resolved(named, seen, depth + 1)
            )
        if name in _NAMES:
            return _NAMES[name]
        if name in _KINDS:
            kind = _KINDS[name]
            shapes = [shape(value) for value in seen if type(value) in _TYPES[kind] and len(value)]
            return merged(shapes) if shapes else [*_BARE.get(kind, [kind, "any"])]
        if isinstance(node, ast.Subscript) and name_of(node.value) not in self._types:
            return self._subscripted(node, seen, depth + 1)
        return self._unknown(node, seen)

    def _unknown(self, node: ast.expr, seen: Sequence[Any]) -> Domain:
        """Return the domain of a type that is not known: what was seen; if nothing was, none if no literal has the type."""
        if seen:
            return merged(map(shape, seen))
        root = node.value if isinstance(node, ast.Subscript) else node
        name = name_of(root)
        while isinstance(root, ast.Attribute):
            root = root.value
        types, home = self._types.named, name_of(root)
        is_instance = name in _INSTANCES or (home in types and types[home] is None)
        return ["instance", name] if is_instance else "any"

    def _subscripted(self, node: ast.Subscript, seen: Sequence[Any], depth: int) -> Domain:
        name, inner = name_of(node.value), node.slice
        parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        if name in ("Optional", "Union"):
            domains = [self.resolved(part, seen, depth) for part in parts]
            return merged([*domains, "None"] if name == "Optional" else domains)
        if name in ("Annotated", "Final") and parts:
            return self.resolved(parts[0], seen, depth)
        if name == "Literal":
            try:
                texts = [write(read(part)) for part in parts]
            except NotLiteralError:
                return "any"
            return "any" if None in texts else ["literal", texts]
        kind = _KINDS.get(name)
        if kind is None or not parts:
            return ["tuple", []] if kind == "tuple" else self._unknown(node, seen)
        if kind == "dict" and len(parts) != 2:
            return [*_BARE[kind]]
        values = [value for value in seen if type(value) in _TYPES[kind]]
        dots = len(parts) == 2 and isinstance(parts[1], ast.Constant) and parts[1].value is Ellipsis
        if kind == "tuple" and not dots:
            columns = [[value[i] for value in values if i < len(value)] for i in range(len(parts))]
            pairs = zip(parts, columns, strict=True)
            return ["tuple", [self.resolved(*pair, depth) for pair in pairs]]
        items = [item for value in values if type(value) is not str for item in value]
        first = self.resolved(parts[0], items, depth)
        if kind != "dict":
            return ["tuple*" if kind == "tuple" else kind, first]
        items = [item for value in values for item in value.values()]
        return ["dict", first, self.resolved(parts[1], items, depth)]


def shape(value: Any, depth: int = 0) -> Domain:
    """Return the domain of values like this one.

    A tuple keeps its length if it is short or its items differ; a longer one of items of one kind may have any.

    Example:
        >>> shape([1, 2]), shape([(1, "a")]), shape([])
        (['list', 'int'], ['list', ['tuple', ['int', 'str']]], ['list', 'never'])
    """
    kind = type(value)
    if kind is float and not math.isfinite(value):
        return "nonfinite"
    if kind in _ATOMS:
        return _ATOMS[kind]
    if depth >= _MAX_DEPTH:
        return "any"
    if kind is dict:
        halves = [*value][:_MAX_SEEN], [*value.values()][:_MAX_SEEN]
        return ["dict", *(merged([shape(each, depth + 1) for each in half]) for half in halves)]
    if kind is tuple:
        shapes = [shape(item, depth + 1) for item in value[:_MAX_SEEN]]
        if 0 < len(value) <= 3 or (len(value) < 20 and _homogeneous(shapes) is None):
            return ["tuple", shapes]
        return ["tuple*", merged(shapes)]
    if kind in (list, set, frozenset):
        return [kind.__name__, merged([shape(item, depth + 1) for item in [*value][:_MAX_SEEN]])]
    return "any"


def _homogeneous(shapes: Sequence[Domain]) -> Domain | None:
    domain = merged(shapes)
    return None if type(domain) is list and domain[0] == "union" else domain


def merged(domains: Iterable[Domain]) -> Domain:
    """Return the domain that takes what any of some domains takes; lists of one kind of items stay so.

    Example:
        >>> merged(["int", "float"]), merged([["list", "int"], ["list", "never"], ["list", "str"]])
        ('float', ['union', [['list', 'int'], ['list', 'str']]])
    """
    flat: list[Domain] = []
    for domain in domains:
        for each in domain[1] if type(domain) is list and domain[0] == "union" else [domain]:
            if each == "any":
                return "any"
            if each not in flat:
                flat.append(each)
    tuples = [each for each in flat if each[0] in ("tuple", "tuple*")]
    lengths = {len(each[1]) if each[0] == "tuple" else -1 for each in tuples}
    if len(lengths) > 1:  # those of one kind of items may have any length
        for place, each in enumerate(flat):
            inner = _homogeneous(each[1]) if each[0] == "tuple" else None
            if inner is not None:
                flat[place] = ["tuple*", inner]
    kept: list[Domain] = []
    for place, each in enumerate(flat):
        others = [*kept, *flat[place + 1 :]]
        if not any(_includes(other, each) for other in others):
            kept.append(each)
    if len(kept) > _MAX_ALTERNATIVES:
        return "any"
    if len(kept) == 1:
        return kept[0]
    return ["union", kept] if kept else "never"


def _includes(wide: Domain, narrow: Domain) -> bool:
    if wide == narrow or wide == "any" or narrow == "never":
        return True
    if type(narrow) is list and narrow[0] == "union":
        return all(_includes(wide, each) for each in narrow[1])
    if type(wide) is list and wide[0] == "union":
        return any(_includes(each, narrow) for each in wide[1])
    if type(wide) is str or type(narrow) is str:
        return type(wide) is type(narrow) and (wide, narrow) in _WIDER
    if wide[0] == "tuple*" and narrow[0] == "tuple":
        return all(_includes(wide[1], each) for each in narrow[1])
    if wide[0] != narrow[0] or wide[0] in ("literal", "instance"):
        return False
    if wide[0] == "tuple":
        pairs = zip(wide[1], narrow[1], strict=False)
        return len(wide[1]) == len(narrow[1]) and all(_includes(a, b) for a, b in pairs)
    return all(_includes(a, b) for a, b in zip(wide[1:], narrow[1:], strict=True))


def known(domain: Domain) -> Domain:
    """Return a domain in which what was never seen may be anything."""
    if domain == "never":
        return "any"
    if type(domain) is not list or domain[0] in ("literal", "instance"):
        return domain
    if domain[0] in ("union", "tuple"):
        inner = [known(each) for each in domain[1]]
        return "any" if domain[0] == "union" and "any" in inner else [domain[0], inner]
    return [domain[0], *map(known, domain[1:])]


def checker(domain: Domain) -> Check | None:
    """Return a function that says whether a value is in a domain; None where every value is."""
    if type(domain) is str:
        return _ATOM_CHECKS[domain]
    if domain[0] == "dict":
        return _dict_checker(domain)
    head, inner = domain
    if head == "literal":
        texts = frozenset(inner)
        return lambda value: write(value) in texts
    if head == "instance":
        return lambda value: False
    if head == "union":
        checks = [each for each in map(checker, inner) if each is not None]
        return lambda value: any(check(value) for check in checks)
    if head == "tuple":
        places = [checker(each) for each in inner]
        return lambda value: (
            type(value) is tuple
            and len(value) == len(places)
            and all(c is None or c(item) for c, item in zip(places, value, strict=True))
        )
    of_items = checker(inner)
    if head in ("sequence", "iterable"):  # a text is a sequence of texts
        kinds = _TYPES[head]
        return lambda value: (
            type(value) in kinds
            and (
                of_items is None
                or (of_items("") if type(value) is str else all(map(of_items, value)))
            )
        )
    kind: Any = tuple if head == "tuple*" else _TYPES[head][0]
    if of_items is None:
        return lambda value: type(value) is kind
    only = next(
        (frozenset({each}) for each, name in _ATOMS.items() if name == inner not in _WIDE), None
    )
    if only is not None:  # much faster
        return lambda value: type(value) is kind and only.issuperset(map(type, value))
    return lambda value: type(value) is kind and all(map(of_items, value))


def _dict_checker(domain: Domain) -> Check:
    of_keys, of_values = checker(domain[1]), checker(domain[2])
    return lambda value: (
        type(value) is dict
        and (of_keys is None or all(map(of_keys, value)))
        and (of_values is None or all(map(of_values, value.values())))
    )


def _is_of(kind: type) -> Check:
    return lambda value: type(value) is kind


_WIDE = ("float", "complex")


def _is_float(value: Any) -> bool:
    if type(value) is float:
        return math.isfinite(value)
    return type(value) is int and abs(value) <= _LARGEST  # what a float can be, too


_ATOM_CHECKS: dict[str, Check | None] = {
    **{name: _is_of(kind) for kind, name in _ATOMS.items()},
    "any": None,
    "never": lambda value: False,
    "nonfinite": lambda value: type(value) in (float, int),
    "float": _is_float,
    "complex": lambda value: type(value) is complex or _is_float(value),
}


def described(domain: Domain) -> str:
    """Return a domain in words, in the notation of annotations.

    Example:
        >>> described(["union", [["list", "int"], "None"]])
        'list[int] | None'
    """
    if type(domain) is str:
        return {"any": "Any", "never": "Any", "nonfinite": "float"}.get(domain, domain)
    head = domain[0]
    if head == "union":
        return " | ".join(map(described, domain[1]))
    if head == "instance":
        return str(domain[1])
    if head == "literal":
        return f"Literal[{', '.join(domain[1])}]"
    if head == "tuple":
        return f"tuple[{', '.join(map(described, domain[1])) or '()'}]"
    if head == "tuple*":
        return f"tuple[{described(domain[1])}, ...]"
    name = {"sequence": "Sequence", "iterable": "Iterable"}.get(head, head)
    inner = ", ".join(map(described, domain[1:]))
    return name if inner in ("Any", "Any, Any") else f"{name}[{inner}]"
