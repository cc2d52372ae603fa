"""LiveCodeBench: problems of programming contests, with tests but without solutions.

Programs read standard input and print, or complete a class `Solution` with one method. Before either, its
evaluator puts imports that contest programs take for granted. Private tests are base64 of zlib of a pickle of one str.
Nothing is unpickled: a pickle is a program. The one of a single str needs few of its instructions; any other is refused.
"""

from __future__ import annotations

import base64
import binascii
import json
import pickletools
import zlib
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from codea1_env.compare import Compare
from codea1_env.problem_sets.problem import Problem
from codea1_env.problem_sets.program_cases import check_values, first_of_inputs
from codea1_env.problem_sets.rows import Row, origin, show, text_of
from codea1_env.sandbox import Case

STDIN, FUNCTIONAL = _KINDS = "stdin", "functional"

_MODULES = (
    "string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics",
    "itertools", "functools", "operator", "io", "sys", "json",
)  # fmt: skip
PREAMBLE = "".join(
    [
        *(f"from {module} import *\n" for module in (*_MODULES, "builtins", "typing")),
        *(f"import {module}\n" for module in _MODULES),
        "sys.setrecursionlimit(50000)\n",
        "sys.set_int_max_str_digits(50000)\n",
    ]
)
"""In this order, which decides who has names such as `open`, `pow` and `datetime`. The number of digits is what the
process of its evaluator allows."""

_READS_INPUT = """\
{content}

Write a program that reads from standard input and prints the answer to standard output.
"""
_COMPLETES_CLASS = """\
{content}

Complete this class:

```python
{starter}
```
"""


def convert(row: Row) -> Problem:
    """Return the problem that a row describes."""
    packed = text_of(row, "private_test_cases")
    # Of some versions plain JSON, of others packed.
    try:
        plain = packed if packed.lstrip()[:1] == "[" else unpack_text(packed)
    except ValueError as error:
        raise ValueError(
            f"Expect 'private_test_cases' to be JSON or packed JSON. {error}"
        ) from error
    tests = _tests("public_test_cases", text_of(row, "public_test_cases"))
    tests += _tests("private_test_cases", plain)
    kinds = {test["testtype"] for test in tests}
    if len(kinds) != 1:
        raise ValueError(
            f"Expect tests of one kind, actually: {', '.join(sorted(kinds)) or 'no tests'}"
        )
    about = origin(row, "livecodebench", "test")
    for name in ("platform", "difficulty", "contest_date"):
        value = row.fields.get(name)
        if value is not None:
            about[name] = (value.isoformat() if isinstance(value, date) else str(value))[:100]
    content = text_of(row, "question_content").rstrip()
    rule: Compare
    if kinds == {STDIN}:
        prompt, name, rule = _READS_INPUT.format(content=content), "", "loose-lines"
        cases = [Case((test["input"],), {}, test["output"]) for test in tests]
        first_of_inputs(cases, loose=True)
    else:
        starter, name, rule = (
            text_of(row, "starter_code").rstrip(),
            f"Solution.{_method(row)}",
            "exact",
        )
        prompt = prompt_for_class(content, starter)
        cases = [_case(test) for test in tests]
    problem = Problem(
        f"LiveCodeBench/{text_of(row, 'question_id')}",
        prompt,
        name,
        "",
        metadata=about,
        cases=tuple(cases),
        compare=rule,
        preamble=PREAMBLE,
    )
    if name:
        check_values(problem)
    return problem


def _tests(field: str, text: str) -> list[dict[str, str]]:
    found = json_of(field, text)
    tests: list[dict[str, str]] = found if isinstance(found, list) else [found]
    for test in tests:
        texts = isinstance(test, dict) and [test.get("input"), test.get("output")]
        if not texts or set(map(type, texts)) != {str} or test.get("testtype") not in _KINDS:
            raise TypeError(
                f"Expect a test in {field!r} to have the texts input, output and testtype "
                f"({' or '.join(_KINDS)}), actually: {show(test)}"
            )
    return tests


def _method(row: Row) -> str:
    about = json_of("metadata", text_of(row, "metadata"))
    name = about.get("func_name") if isinstance(about, Mapping) else None
    if not isinstance(name, str) or not name.isidentifier():
        raise TypeError(
            f"Expect 'metadata' to name the method of functional tests as func_name, actually: {show(about)}"
        )
    return name


def _case(test: dict[str, str]) -> Case:
    arguments = (json_of("input", line) for line in test["input"].split("\n"))
    return Case(tuple(arguments), {}, json_of("output", test["output"]))


def prompt_for_class(content: str, starter: str) -> str:
    """Return a text that asks for the method of a class."""
    return _COMPLETES_CLASS.format(content=content.rstrip(), starter=starter)


def json_of(what: str, text: str) -> Any:
    """Read JSON text of a field; a ValueError names the field."""
    if len(text) > MAX_TEXT:
        raise ValueError(
            f"Expect {what!r} to have at most {MAX_TEXT:,} characters, actually: {len(text):,}"
        )
    try:
        return json.loads(text, parse_constant=_no_constant, parse_int=_integer)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"Expect {what!r} to be JSON, actually: {error} in {text[:60]!r}"
        ) from error


def _integer(digits: str) -> int:
    """Return an integer of up to 50,000 digits, ten times what Python reads by itself."""
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"an integer of {len(digits):,} digits, of at most {MAX_DIGITS:,}")
    return int(Decimal(digits))


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


MAX_DIGITS = 50_000
MAX_TEXT = 256 << 20
"""Bytes: a few kB can unpack to something that fills the memory."""
_FRAMING = frozenset({"PROTO", "FRAME", "PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"})
"""Instructions that do not build anything: version, framing, and a note for later use."""
_STRING = frozenset({"UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"})


def unpack_text(packed: str) -> str:
    """Return the text."""
    try:
        data = base64.b64decode(packed, validate=True)
    except (ValueError, binascii.Error) as error:
        raise ValueError(f"Expect base64, actually: {error}") from error
    return _pickled_text(_decompressed(data))


def _decompressed(data: bytes) -> bytes:
    stream = zlib.decompressobj()
    try:
        pickled = stream.decompress(data, MAX_TEXT + 1)
    except zlib.error as error:
        raise ValueError(f"Expect data that zlib can unpack, actually: {error}") from error
    if len(pickled) > MAX_TEXT:
        raise ValueError(f"Expect at most {MAX_TEXT:,} bytes when unpacked, actually more")
    if not stream.eof or stream.unused_data:
        raise ValueError("Expect one whole zlib stream, actually it is cut off or goes on")
    return pickled


def _pickled_text(pickled: bytes) -> str:
    found: list[str] = []
    end = -1
    try:
        for opcode, argument, position in pickletools.genops(pickled):
            if opcode.name in _STRING:
                found.append(str(argument))
            elif opcode.name == "STOP":
                end = position or 0
            elif opcode.name not in _FRAMING:
                raise ValueError(f"the instruction {opcode.name}, which is not executed")
    except (ValueError, IndexError, OverflowError) as error:
        raise ValueError(f"Expect the pickle of one str, actually: {error}") from error
    if len(found) != 1 or end != len(pickled) - 1:
        raise ValueError(
            f"Expect the pickle of one str and nothing else, actually: {len(found)} texts in {len(pickled)} bytes"
        )
    return found[0]
