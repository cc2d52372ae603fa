"""Which values a parameter takes: from annotations, or from the shapes of values that were seen.

A domain is plain data, so that it can be sent as JSON: "any", "int", "float" (finite ones, and integers no larger than those),
"nonfinite" (all floats: where nan or an infinity was seen), "str", ...,
["list", D], ["set", D], ["frozenset", D], ["dict", K, V], ["tuple", [D, ...]], ["tuple*", D] (of any length),
["sequence", D], ["iterable", D], ["literal", [text, ...]], ["union", [D, ...]], ["instance", name] (of a class that no
literal has: no value). "never" is what is not known of something that was only seen empty.
"""

from __future__ import annotations

import ast
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from codea1_env.sandbox.inside.analysis.literals import NotLiteralError, read, write

from .syntax import expression, name_of, parsed

Domain = Any

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


def types_in(texts: Iterable[str]) -> Types:
    """Return the types that some texts define or import at the top. What is no Python defines none."""
    named: dict[str, ast.expr | None] = {}
    for text in texts:
        for node in parsed(text) or ():
            for name, kind in _types_by(node):
                named.setdefault(name, kind)
    return Types(named)


def _types_by(node: ast.stmt) -> Iterator[tuple[str, ast.expr | None]]:
    match node:
        case ast.ClassDef(name=name, bases=bases):
            if "TypedDict" in (names := set(map(name_of, bases))):
                yield name, ast.Name("dict")
            elif "Protocol" not in names:
                yield name, None
        case ast.Import() | ast.ImportFrom():
            module = getattr(node, "module", None)
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                is_known = (module or alias.name) in _TYPING or name in _NAMES or name in _KINDS
                if not is_known:
                    yield name, None
        case ast.Assign(targets=[ast.Name(id=name), *_]) | ast.AnnAssign(target=ast.Name(id=name)):
            value = node.value
            if isinstance(value, ast.Call) and name_of(value.func) == "NewType":
                value = value.args[1] if len(value.args) == 2 else None
            if isinstance(value, (ast.Name, ast.Attribute, ast.Subscript, ast.BinOp)):
                yield name, value


class Types:
    """What the names of types stand for in some texts: an annotation, or None for a class that no literal has."""

    def __init__(self, named: dict[str, ast.expr | None]) -> None:
        self._named = named
        self._left = _MAX_NAMED  # lookups: a name may stand for itself

    def domain(self, node: ast.expr | None, seen: Sequence[Any]) -> Domain:
        """Return the domain of a parameter, from its annotation and values that it has in golden tests.

        A container without its kind of items (`list`) takes its items from the values that were seen, as a parameter
        without annotation takes all of it; `list[Any]` says that it takes anything. So does a type that is not known, or that
        no literal has; where nothing was seen the latter takes nothing. A value that was seen is always in the domain,
        whatever the annotation says of it.
        """
        seen = seen[:_MAX_SEEN]
        if node is None:
            return known(merged(map(shape, seen)))
        domain = known(self._resolved(node, seen, 0))
        odd = [shape(value) for value in seen if not is_in(value, domain)]
        return known(merged([domain, *odd])) if odd else domain

    def _defines(self, name: str) -> bool:
        self._left -= 1
        return self._left > 0 and name in self._named

    def _resolved(self, node: ast.expr, seen: Sequence[Any], depth: int) -> Domain:
        if depth > _MAX_DEPTH:
            return "any"
        name = name_of(node)
        match node:
            case ast.Constant(value=str(text)):
                inner = expression(text) if len(text) < 1000 else None
                return "any" if inner is None else self._resolved(inner, seen, depth + 1)
            case ast.Constant(value=value):
                return "None" if value is None else "any"
            case ast.BinOp(op=ast.BitOr()):
                parts = node.left, node.right
                return merged([self._resolved(each, seen, depth + 1) for each in parts])
            case ast.Name() if self._defines(name):
                named = self._named[name]
                return (
                    self._resolved(named, seen, depth + 1) if named else self._unknown(node, seen)
                )
        if name in _NAMES:
            return _NAMES[name]
        if name in _KINDS:
            kind = _KINDS[name]
            shapes = [shape(value) for value in seen if type(value) in _TYPES[kind] and len(value)]
            return merged(shapes) if shapes else [*_BARE.get(kind, [kind, "any"])]
        if isinstance(node, ast.Subscript) and not self._defines(name_of(node.value)):
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
        is_instance = name in _INSTANCES or self._named.get(name_of(root), root) is None
        return ["instance", name] if is_instance else "any"

    def _subscripted(self, node: ast.Subscript, seen: Sequence[Any], depth: int) -> Domain:
        name, inner = name_of(node.value), node.slice
        parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        if name in ("Optional", "Union"):
            domains = [self._resolved(part, seen, depth) for part in parts]
            return merged([*domains, "None"] if name == "Optional" else domains)
        if name in ("Annotated", "Final") and parts:
            return self._resolved(parts[0], seen, depth)
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
            return ["tuple", [self._resolved(*pair, depth) for pair in pairs]]
        items = [item for value in values if type(value) is not str for item in value]
        first = self._resolved(parts[0], items, depth)
        if kind != "dict":
            return ["tuple*" if kind == "tuple" else kind, first]
        items = [item for value in values for item in value.values()]
        return ["dict", first, self._resolved(parts[1], items, depth)]


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


def is_in(value: Any, domain: Domain) -> bool:
    """Whether a value is in a domain."""
    kind = type(value)
    match domain:
        case "any":
            return True
        case "float":  # an integer that a float can be is one, too
            return math.isfinite(value) if kind is float else kind is int and abs(value) <= _LARGEST
        case "nonfinite":
            return kind is float or kind is int
        case "complex":
            return kind is complex or is_in(value, "float")
        case str():
            return _ATOMS.get(kind) == domain
        case ["instance", _]:
            return False
        case ["literal", texts]:
            return write(value) in texts
        case ["union", parts]:
            return any(is_in(value, each) for each in parts)
        case ["tuple", parts]:
            fits = kind is tuple and len(value) == len(parts)
            return fits and all(map(is_in, value, parts))
        case ["dict", keys, values]:
            return kind is dict and all(
                is_in(key, keys) and is_in(each, values) for key, each in value.items()
            )
        case ["sequence" | "iterable", inner] if kind is str:  # a sequence of texts
            return is_in("", inner)
        case [head, inner]:
            kinds = _TYPES[head.removesuffix("*")]
            return kind in kinds and (inner == "any" or all(is_in(each, inner) for each in value))
    raise AssertionError(f"no domain: {domain}")


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
