"""Methods of unittest and functions of numpy.testing that assert something -> what they say."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .predictions import UNSAID, Conditions, Names, Prediction, Tolerance, UnreadableError

_EQUAL = frozenset({
    "assertequal", "assertequals", "assertlistequal", "asserttupleequal", "assertdictequal", "assertsetequal",
    "assertsequenceequal", "assertmultilineequal", "assertarrayequal", "eq",
})  # fmt: skip


def said_by(
    conditions: Conditions, name: str, call: ast.Call, names: Names
) -> Iterator[Prediction]:
    """Yield what a call such as `self.assertEqual(f(1), 2)` says; the name is in lower case, without underscores."""
    given = {str(keyword.arg): keyword.value for keyword in call.keywords}
    parts = list(call.args)
    parts += [
        given[key] for key in ("first", "second", "expr", "actual", "desired") if key in given
    ]
    if name in _EQUAL and len(parts) >= 2:
        yield conditions.equal(parts[0], parts[1], names)
    elif name in ("asserttrue", "assert") and parts:
        yield from conditions.predictions(parts[0], names)
    elif name == "assertfalse" and parts and (found := conditions.call(parts[0], names)):
        yield Prediction(found, False)
    elif name == "assertisnone" and parts:
        yield conditions.equal(parts[0], ast.Constant(None), names)
    elif name == "assertis" and len(parts) >= 2:
        yield from conditions.predictions(ast.Compare(parts[0], [ast.Is()], [parts[1]]), names)
    elif name in ("assertalmostequal", "assertalmostequals", "assertallclose") and len(parts) >= 2:
        yield _almost(conditions, parts, given, name, names)
    else:
        raise UnreadableError(UNSAID)


def _almost(
    conditions: Conditions,
    parts: list[ast.expr],
    given: dict[str, ast.expr],
    name: str,
    names: Names,
) -> Prediction:
    if name == "assertallclose":
        relative = given.get("rtol", parts[2] if len(parts) > 2 else None)
        stated = Tolerance(
            conditions.number(given["atol"], names) if "atol" in given else None,
            1e-7 if relative is None else conditions.number(relative, names),
        )
    elif "delta" in given:
        stated = Tolerance(absolute=conditions.number(given["delta"], names))
    else:
        places = given.get("places", given.get("decimal", parts[2] if len(parts) > 2 else None))
        digits = 7.0 if places is None else conditions.number(places, names)
        stated = Tolerance(absolute=0.5 * 10.0 ** -min(digits, 300.0))
    return conditions.almost(parts[0], parts[1], stated, names)
