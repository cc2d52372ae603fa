"""HumanEval+ and MBPP+: inputs and results, by few templates.

A test text is matched against the templates that the files have, and never run. What is none of them is read like any
other test module.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from codea1_env.compare import Compare
from codea1_env.problem_sets import rows
from codea1_env.problem_sets.contracts import contract_of
from codea1_env.problem_sets.golden import Golden, apart, read_module
from codea1_env.problem_sets.problem import Problem
from codea1_env.reading.golden import read_values
from codea1_env.sandbox import Case

ROOT = """\
import math


def check(args, output, expected):
    if type(output) not in (int, float):
        return False
    try:
        value = sum(c * math.pow(output, i) for i, c in enumerate(args[0]))
    except (OverflowError, ValueError):
        return False
    return abs(value) <= 1e-4
"""
"""Checker of HumanEval/32: a root of the polynomial. The published test hands the arguments over in the wrong places;
this is the condition of EvalPlus's own evaluator."""

_LIST = re.compile(r"^( *)(inputs|results) = (\[.*\])[ \t]*$", re.MULTILINE)
_LOOPS = re.compile(
    r"for i, (?:\(inp, exp\) in enumerate\(zip\(inputs, results\)\)|inp in enumerate\(inputs\)):\s+"
    r"(?:(?P<assertion>assertion\(\w+\(\*inp\), (?P<right>exp|ref_func\(\*inp\)), (?P<atol>[\d.e-]+)\))"
    r"|(?P<plain>assert \w+\(\*inp\) == exp)"
    r"|(?P<root>assert _poly\(\*\w+\(\*inp\), inp\) <= 0\.0001))\s*"
)


class EvalPlusTests(NamedTuple):
    """What a row tests."""

    cases: tuple[Case, ...]
    compare: Compare = "equal"
    atol: float = 0.0
    checker: str = ""


def read_template(test: str) -> EvalPlusTests | None:
    """Return the inputs and results of a test text; None if it has none of the known forms."""
    lists = {match[2]: match[3] for match in _LIST.finditer(test)}
    frame = _LIST.sub(lambda match: f"{match[1]}{match[2]} = @", test)
    head, loop, behind = frame.rpartition("\n    for i, ")
    if not loop:
        head, loop, behind = frame.rpartition("\nfor i, ")
    found = _LOOPS.fullmatch(f"for i, {behind}")
    if found is None or "inputs" not in lists or frame.count("= @") != len(lists):
        return None
    rule = _rule_of(head, found)
    asks_reference = bool(found["assertion"]) and found["right"] != "exp"
    if rule is None or asks_reference == ("results" in lists):
        return None
    inputs = read_list(lists["inputs"])
    results = read_list(lists["results"]) if "results" in lists else None
    return EvalPlusTests(cases_of(inputs, results), *rule)


def _rule_of(head: str, loop: re.Match[str]) -> tuple[Compare, float, str] | None:
    """Return how the text above the lists compares; None if that is not known."""
    if loop["root"]:
        return ("equal", 0.0, ROOT) if "\ndef _poly(" in head else None
    if loop["plain"]:
        return "equal", 0.0, ""
    body = _function(head, "assertion")
    for pattern, compare in _ASSERTIONS:
        if pattern.fullmatch(body):
            return compare, float(loop["atol"]), ""
    return None


def _function(text: str, name: str) -> str:
    found = re.search(rf"^def {name}\(.*\n(?:(?: .*)?\n)*", text, re.MULTILINE)
    return "\n".join(line.strip() for line in found[0].split("\n") if line.strip()) if found else ""


_CLOSE = r"assert np\.allclose\(out, exp, rtol=1e-07, atol=atol\)\nelse:\n"
_ASSERTIONS: tuple[tuple[re.Pattern[str], Compare], ...] = (
    (re.compile(
        r"def assertion\(out, exp, atol\):\nexact_match = out == exp\nif atol == 0 and is_floats\(exp\):\natol = 1e-6\n"
        rf"if not exact_match and atol != 0:\n{_CLOSE}assert exact_match"), "equal"),
    (re.compile(
        r"def assertion\(out, exp, atol\):\nif atol == 0 and is_floats\(exp\):\natol = 1e-6\n"
        rf"if out != exp and atol != 0:\n{_CLOSE}assert out == exp(?:, f\".*\")?"), "equal"),
    (re.compile(
        r"def assertion\(out, exp, atol\):\nif atol == 0 and is_floats\(exp\):\natol = 1e-6\nout = set\(out\)\nexp = set\(exp\)\n"
        rf"if out != exp and atol != 0:\n{_CLOSE}assert out == exp(?:, f\".*\")?"), "set"),
    (re.compile(
        r"def assertion\(out, exp, atol\):\nif isinstance\(out, bool\):\nexact_match = out == exp\nelse:\n"
        r"exact_match = exp == \(out is not None\)(?:\nassert exact_match)?"), "not-none"),
)  # fmt: skip
"""What `assertion` says in the published files, and in the words of `codea1_env.compare`. The last asserts nothing there,
so that every program passes; EvalPlus's own evaluator does what is meant."""


def cases_of(inputs: Sequence[Any], results: Sequence[Any] | None) -> tuple[Case, ...]:
    """Return the cases of two lists; without results the reference is asked."""
    for number, given in enumerate(inputs, 1):
        if type(given) not in (list, tuple):
            raise ValueError(
                f"Expect input {number} to be a list of arguments, actually: {rows.show(given)}"
            )
    if results is None:
        return tuple(Case(tuple(given)) for given in inputs)
    if len(inputs) != len(results):
        raise ValueError(
            f"Expect one result for each input, actually {len(results)} results for {len(inputs)} inputs"
        )
    return tuple(
        Case(tuple(given), {}, result) for given, result in zip(inputs, results, strict=True)
    )


def read_test(test: str, entry: str) -> dict[str, Any]:
    """Read a test text: cases, or a test module, as fields of a problem."""
    found = read_template(test)
    if found is not None:
        return found._asdict()
    calls = bool(re.search(r"^def check\b", test, re.MULTILINE))
    whole = test
    if calls:  # the program's own function may be called check
        renamed = re.sub(r"^def check\(", "def check_candidate(", test.rstrip(), flags=re.MULTILINE)
        whole = f"{renamed}\n\ncheck_candidate({entry})\n"
    return fields_of(read_module(whole, entry, apart), module_of_check(test, entry, calls))


def fields_of(golden: Golden, module: str = "") -> dict[str, Any]:
    """Golden tests as fields of a problem; `module` takes the place of their test module."""
    return {
        "cases": golden.cases,
        "compare": golden.compare,
        "atol": golden.atol,
        "test_module": golden.test_module and (module or golden.test_module),
    }


def module_of_check(test: str, entry: str, calls: bool) -> str:
    """Return a test text as a test module for pytest."""
    if not calls:
        return (
            f"import solution\n\n\ndef test_program():\n    exec({test!r}, dict(vars(solution)))\n"
        )
    return (
        f"from solution import *\n\n{test.strip()}\n\n\ndef test_check():\n    import solution\n\n"
        f"    check(vars(solution)[{entry!r}])\n"
    )


def convert(row: rows.Row) -> Problem:
    """Return the problem of a row of HumanEval+ or MBPP+."""
    entry, solution = rows.text_of(row, "entry_point"), rows.text_of(row, "canonical_solution")
    prompt, source, reference = rows.text_of(row, "prompt"), "humaneval+", ""
    task_id, test = rows.text_of(row, "task_id"), rows.text_of(row, "test")
    if re.search(rows.definition_of(entry), solution, re.MULTILINE):
        entry = called_by(test, solution, entry)
        imports = str(row.fields.get("imports") or "")
        description = str(row.fields.get("description") or "") or prompt
        prompt = rows.prompt_of(rows.signature_of(solution, entry), description, imports=imports)
        source, reference = "mbpp+", f"{imports}\n{solution}".lstrip("\n")
    return Problem(
        task_id=task_id,
        prompt=prompt,
        entry_point=entry,
        reference=reference or prompt + solution,
        contract=contract_of(task_id, row.fields.get("contract")),
        metadata=rows.origin(row, source, "test"),
        **read_test(test, entry),
    )


def called_by(test: str, solution: str, entry: str) -> str:
    """Return the function that a test calls; some rows name a helper of the program instead."""
    called = re.search(r"\b([^\W\d]\w*)\(\*inp\)", test)
    found = called is not None and re.search(rows.definition_of(called[1]), solution, re.MULTILINE)
    return called[1] if called is not None and found else entry


# The inputs and results: lists of literals, megabytes of them. Most are JSON, but for quotes, tuples and three constants.
# Those are read so, a few times as fast as by Python's parser and without its memory. The others go to the analysis process.

_PIECE = re.compile(r"'[^'\\\n]*+'|\"[^\"\\\n]*+\"|[^'\"]++")
_PLAIN = re.compile(r"(?:[\[\](){}:0-9\s,.eE+-]|True|False|None)*+")
_TUPLE, _COMMA = "\0(", "\0,"
_WORDS = {
    "True": "true", "False": "false", "None": "null", "(": f'{{{json.dumps(_TUPLE)}:[', ")": "]}",
    ",)": f'],{json.dumps(_COMMA)}:0}}',
}  # fmt: skip
_SHORT = 20
_WORD = re.compile(r"True|False|None|,\)|[()]")


def read_list(text: str) -> list[Any]:
    """Return the value of a list of literals."""
    found = _as_json(text)
    if found is None:
        [(found, reason)] = apart(read_values, [text])
        if reason is not None or type(found) is not list:
            raise ValueError(reason or f"a list was expected, actually: {text[:60]!r}")
    return found


def _as_json(text: str) -> list[Any] | None:
    pieces, end = [], 0
    known: dict[str, str] = {}
    for match in _PIECE.finditer(text):
        piece = match[0]
        if match.start() != end:
            return None
        end = match.end()
        written = known.get(piece)
        if written is None:
            written = _written(piece)
            if written is None:
                return None
            if len(piece) < _SHORT:
                known[piece] = written
        pieces.append(written)
    if end != len(text):
        return None
    try:
        found = json.loads(
            "".join(pieces), parse_constant=_no_constant, object_hook=_tuple_or_dict, strict=False
        )
    except (ValueError, RecursionError):  # such as 1_000 and very long integers
        return None
    return found if type(found) is list else None


def _written(piece: str) -> str | None:
    """Return a piece as JSON; None if it may be something else."""
    if piece[0] in "'\"":
        if "\0" in piece:
            return None
        return (
            f'"{piece[1:-1]}"'
            if '"' not in piece
            else json.dumps(piece[1:-1])
            if piece[0] == "'"
            else piece
        )
    return _WORD.sub(lambda word: _WORDS[word[0]], piece) if _PLAIN.fullmatch(piece) else None


def _tuple_or_dict(found: dict[str, Any]) -> Any:
    if _TUPLE not in found:
        return found
    items = found[_TUPLE]
    if len(items) == 1 and _COMMA not in found:
        raise ValueError("brackets around one value are no tuple")
    return tuple(items)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)
