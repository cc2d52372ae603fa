"""Public sets of contest problems: rows with lists of inputs and outputs. docs/problems.md has a table of the layouts.

Lists and objects may be JSON text. Where a function is named, inputs are its arguments; else programs read them. The
reference is the first solution in Python 3, by its text: these fields are what a data set calls right, and `codea1 problems
validate` runs it. What can be read in two ways is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from codea1_env.problem_sets.contest_cases import Tests, called_cases, check_sizes, printed_cases
from codea1_env.problem_sets.golden import apart
from codea1_env.problem_sets.livecodebench import PREAMBLE, json_of, prompt_for_class
from codea1_env.problem_sets.problem import Problem
from codea1_env.problem_sets.program_cases import check_values
from codea1_env.problem_sets.rows import Row, origin, prompt_of, show, signature_of, unix
from codea1_env.reading.python3 import first_python3
from codea1_env.sandbox import AnalysisError


def convert(row: Row) -> Problem:
    """Return the problem that a row describes."""
    tests = _tests(row)
    if len(tests.inputs) != len(tests.outputs):
        raise ValueError(
            f"Expect as many outputs as inputs, actually: {len(tests.inputs)} inputs and {len(tests.outputs)} outputs"
        )
    name = tests.function
    reference = _reference(row, PREAMBLE if name else "")
    text = _first_text(row, "question", "problem", "prompt", "description")
    about: Any = {"task_id": _task_id(row), "reference": reference, "metadata": _metadata(row)}
    if not name:
        cases = tuple(printed_cases(tests))
        return Problem(prompt=text, entry_point="", cases=cases, compare="loose-lines", **about)
    starter = _plain(row, "starter_code")
    signature = signature_of(starter or reference, name)
    in_class = "class Solution" in (starter or reference)
    problem = Problem(
        prompt=prompt_for_class(text, starter) if in_class else prompt_of(signature, text),
        entry_point=f"Solution.{name}" if in_class else name,
        cases=tuple(called_cases(tests, starter)),
        compare="exact",
        preamble=PREAMBLE,
        **about,
    )
    # What is no plain data, such as lists that are nested too deep, is named with its row.
    check_sizes(problem.encoded.calls)
    check_values(problem)
    return problem


# Where tests, texts and solutions stand


def _tests(row: Row) -> Tests:
    fields = row.fields
    if "public_tests" in fields:
        for name, usual in (("input_file", "stdin"), ("output_file", "stdout")):
            if fields.get(name) not in (None, "", usual):
                raise ValueError(
                    f"Expect a program that uses {usual}, actually {name} is {show(fields[name])}"
                )
        kinds = ("public_tests", "private_tests", "generated_tests")
        parts = [_listed(kind, _data(row, kind)) for kind in kinds]
        inputs = [each for part in parts for each in part.inputs]
        return Tests(inputs, [each for part in parts for each in part.outputs])
    if "input_output" in fields:
        return _listed("input_output", _data(row, "input_output"))
    if "verification_info" in fields:
        info = _data(row, "verification_info")
        return _listed("test_cases", info.get("test_cases") if isinstance(info, Mapping) else info)
    if "tests" in fields:
        about = _data(row, "metadata")
        function = _name(about, "func_name") if isinstance(about, Mapping) else ""
        return _listed("tests", _data(row, "tests"), function)
    lists = {name: _data(row, name) for name in ("inputs", "outputs")}
    return _listed("the row", {**fields, **lists})


def _listed(name: str, given: Any, function: str = "") -> Tests:
    if given is None:
        return Tests([], [])
    if isinstance(given, Mapping):
        ending = "s" if "inputs" in given or "outputs" in given else ""
        both = (given.get(each + ending) for each in ("input", "output"))
        inputs, outputs = ([] if each is None else each for each in both)
        if not (isinstance(inputs, (list, tuple)) and isinstance(outputs, (list, tuple))):
            raise TypeError(
                f"Expect {name!r} to have lists of inputs and outputs, actually: {show(given)}"
            )
        return Tests(inputs, outputs, _name(given))
    items = list(given) if isinstance(given, (list, tuple)) else [given]
    for item in items:
        if not isinstance(item, Mapping) or not {"input", "output"} <= item.keys():
            raise TypeError(
                f"Expect {name!r} to be a list of objects with input and output, actually: {show(item)}"
            )
    types = {str(item.get("type") or item.get("testtype") or "stdin") for item in items}
    if len({_KINDS.get(each) for each in types}) > 1 or types - _KINDS.keys():
        raise ValueError(
            f"Expect the tests of {name!r} to have one type of {', '.join(_KINDS)}, "
            f"actually: {', '.join(sorted(types)):.100}"
        )
    called = any(_KINDS[each] for each in types)
    names = {_name(item) or function or "" for item in items} if called else {""}
    if len(names) != 1 or (called and names == {""}):
        raise ValueError(
            f"Expect the tests of {name!r} to name one function, actually: {show(sorted(names))}"
        )
    return Tests([item["input"] for item in items], [item["output"] for item in items], names.pop())


def _name(tests: Mapping[str, Any], field: str = "fn_name") -> str:
    name = tests.get(field) or ""
    if not isinstance(name, str):
        raise TypeError(f"Expect {field!r} to be the name of a function, actually: {show(name)}")
    return name


_KINDS = {"stdin": False, "stdin_stdout": False, "functional": True, "function_call": True}
"""Types of tests, and whether they call a function."""


def _data(row: Row, name: str) -> Any:
    """Return a field that may be JSON text; None where it is empty."""
    value = row.fields.get(name)
    if isinstance(value, str):
        return json_of(name, value) if value.strip() else None
    return value


def _plain(row: Row, name: str) -> str:
    value = row.fields.get(name)
    if not isinstance(value, (str, type(None))):
        raise TypeError(f"Expect {name!r} to be text, actually: {show(value)}")
    return unix(value or "").strip("\n")


def _first_text(row: Row, *names: str) -> str:
    name = next((each for each in names if each in row.fields), None)
    if name is None:
        raise ValueError(f"Expect one of the fields {', '.join(names)}")
    text = _plain(row, name)
    if not text.strip():
        raise ValueError(f"Expect {name!r} not to be empty")
    return f"{text.rstrip()}\n"


def _task_id(row: Row) -> str:
    """Return the set with the problem's own name, or with the number of the row where it has none."""
    names = map(row.fields.get, ("task_id", "problem_id", "question_id", "id"))
    own = next((each for each in names if each not in (None, "")), None)
    source = _source(row)
    if own is None and source == "CodeContests":
        own = row.fields.get("name")
    number = re.findall(r"\d+", row.where)[-1:] or ["0"]
    split = [] if row.split is None else [row.split]
    return "/".join([source, *split, str(number[0] if own is None else own)])


def _source(row: Row) -> str:
    if "public_tests" in row.fields:
        return "CodeContests"
    if "input_output" in row.fields:
        return "TACO" if "raw_tags" in row.fields else "APPS"
    if "verification_info" in row.fields:
        return "PrimeIntellect"
    return "DeepCoder" if "tests" in row.fields else "programs"


def _metadata(row: Row) -> dict[str, str]:
    about = origin(row, _source(row).lower(), "train")
    difficulty = row.fields.get("difficulty")
    if isinstance(difficulty, int) and 0 < difficulty <= len(_DIFFICULTIES):
        difficulty = _DIFFICULTIES[difficulty - 1]
    if isinstance(difficulty, str) and difficulty.strip():
        about["difficulty"] = difficulty.strip().lower()[:100]
    limit = row.fields.get("time_limit")
    if isinstance(limit, Mapping):
        parts = [limit.get(name) or 0 for name in ("seconds", "nanos")]
        known = all(isinstance(each, (int, float)) for each in parts)
        limit = f"{parts[0] + parts[1] / 1e9:g} seconds" if known else None
    if isinstance(limit, str) and limit.strip():
        about["time_limit"] = limit[:100]
    return about


_DIFFICULTIES = ("easy", "medium", "hard", "harder", "hardest", "external")
"""What CodeContests numbers from 1; greater numbers are letters of a contest."""


def _reference(row: Row, preamble: str) -> str:
    """Return the first solution in Python 3; "" for none."""
    name, given = _solutions(row)
    if isinstance(given, Mapping):
        languages, texts = (given.get(each) for each in ("language", "solution"))
        if not (isinstance(languages, (list, tuple)) and isinstance(texts, (list, tuple))):
            raise TypeError(
                f"Expect {name!r} to have lists of languages and solutions, actually: {show(given)}"
            )
        if len(languages) != len(texts):
            raise ValueError(
                f"Expect {name!r} to have as many languages as solutions, "
                f"actually: {len(languages)} languages and {len(texts)} solutions"
            )
        pairs = zip(languages, texts, strict=True)
        given = [text for language, text in pairs if _PYTHON_3.fullmatch(str(language).strip())]
    given = [given] if isinstance(given, str) else given or []
    if not isinstance(given, (list, tuple)) or not all(isinstance(each, str) for each in given):
        raise TypeError(f"Expect {name!r} to be a list of texts, actually: {show(given)}")
    programs = [_FENCE.sub(r"\1", unix(each.removeprefix("\ufeff"))) for each in given]
    written = [each for each in programs if each.strip()]
    # Mostly the first is it, and no other need be sent.
    found = _first(written[:1], preamble) if written else ""
    return found or (_first(written[1:], preamble) if written[1:] else "")


def _solutions(row: Row) -> tuple[str, Any]:
    """Return the field of solutions, and what it holds."""
    names = ("solutions", "solution", "gold_standard_solution")
    name = next((each for each in names if row.fields.get(each) not in (None, "", [])), names[0])
    given = row.fields.get(name)
    if isinstance(given, str) and given.lstrip()[:1] in ("[", "{"):
        given = _data(row, name)
    return name, given


def _first(programs: list[str], preamble: str) -> str:
    """Return the first program in Python 3; one that breaks the parser is none."""
    try:
        place = apart(first_python3, programs, preamble)
    except AnalysisError:
        half = len(programs) // 2
        return (
            _first(programs[:half], preamble) or _first(programs[half:], preamble) if half else ""
        )
    return "" if place < 0 else programs[place]


_FENCE = re.compile(r"\A\s*```(?:py[^\n`]*|[ \t]*)\n(.*?\n?)```\s*\Z", re.DOTALL | re.IGNORECASE)
"""Around a program in Python; a program in another one is no Python."""
_PYTHON_3 = re.compile(r"(?:(?:pypy|python|py)[ _-]*)?3(?:\.\d+)*", re.IGNORECASE)
"""What CodeContests numbers 3."""
