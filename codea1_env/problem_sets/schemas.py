"""Rows of public data sets, made into problems.

Every layout is recognised by its fields, so that a file needs no label. Texts from data sets are only
cut and joined here, never parsed or run: that happens in the sandbox. A field that cannot be used raises TypeError or
ValueError, here and in the modules of single layouts; `to_problem` names file and row.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from codea1_env.problem_sets import contests, evalplus, livecodebench, release
from codea1_env.problem_sets.contracts import contract_of
from codea1_env.problem_sets.evalplus import fields_of, read_test
from codea1_env.problem_sets.golden import (
    Ask,
    Golden,
    apart,
    module_of,
    read_module,
    read_statements,
)
from codea1_env.problem_sets.problem import Problem, ProblemsError, statement
from codea1_env.problem_sets.program_cases import own_program_cases, program_row
from codea1_env.problem_sets.rows import (
    Row,
    imports_for,
    origin,
    prompt_of,
    show,
    signature_of,
    text_of,
    texts_of,
    unix,
    with_setup,
)
from codea1_env.reading.calls import literal_calls
from codea1_env.reading.examples import RUN
from codea1_env.sandbox import UNKNOWN, Case
from codea1_env.sandbox.inside import codec


class Schema(NamedTuple):
    """One layout of rows."""

    name: str
    fields: str
    """A row has this layout if it has at least these fields."""
    convert: Callable[[Row], Problem]

    def lacking(self, row: Row) -> set[str]:
        """Return the fields that a row lacks."""
        return set(self.fields.split()).difference(row.fields)


def to_problem(row: Row, ask: Ask = apart) -> Problem:
    r"""Return the problem that a row describes, whatever known layout it has; `ask` reads statements of the own layout.

    Raises a ProblemsError if the layout is unknown, or a field has a value that cannot be used.

    Example:
        >>> row = {"task_id": 7, "text": "Double it.", "code": "def f(x):\r\n  return 2 * x",
        ...        "test_list": ["assert f(1) == 2"], "test_setup_code": "", "challenge_test_list": []}
        >>> problem = to_problem(Row(row, "demo.jsonl, line 1"))
        >>> problem.task_id, problem.entry_point, problem.metadata["split"]
        ('MBPP/7', 'f', 'prompt')
    """
    if not isinstance(row.fields, Mapping):
        raise ProblemsError(row.where, f"Expect a JSON object, actually: {show(row.fields)}.")
    schema = next((schema for schema in SCHEMAS if not schema.lacking(row)), None)
    if schema is None:
        near = min(SCHEMAS, key=lambda each: len(each.lacking(row)) / len(each.fields.split()))
        missing = ", ".join(sorted(near.lacking(row)))
        raise ProblemsError(
            row.where,
            f"Expect the fields of a known layout, actually: {', '.join(sorted(map(str, row.fields)))}. "
            f"The nearest layout, {near.name}, also has: {missing}. Add them, or write the fields of Problem.",
        )
    try:
        return _own(row, ask) if schema.convert is _own else schema.convert(row)
    except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise ProblemsError(row.where, f"{error}. Correct this row.") from error


_OWN = {each.name: None for each in dataclasses.fields(Problem)}
"""Fields of a row in the own layout."""


def _own(row: Row, ask: Ask = apart) -> Problem:
    unknown = sorted(map(str, row.fields.keys() - _OWN))
    if unknown:
        raise ValueError(
            f"Expect only the fields {', '.join(sorted(_OWN))}, actually also: {', '.join(unknown)}"
        )
    values = {name: value for name, value in row.fields.items() if value is not None}
    if values.get("kind", "function") not in ("function", "program"):
        raise ValueError(
            f'Expect the field \'kind\' to be "function" or "program", actually: {show(values["kind"])}'
        )
    is_program = values.get("kind") == "program" or values.get("entry_point") == ""
    if is_program:
        values.setdefault("entry_point", "")
    absent = sorted({"task_id", "prompt", "entry_point", "reference"} - values.keys())
    if absent:
        raise TypeError(f"Expect the field {absent[0]!r} to be a text, actually: null")
    metadata = values.get("metadata", {})
    if isinstance(metadata, Mapping) and row.split is not None:
        values["metadata"] = {"split": row.split, **metadata}
    read_cases = own_program_cases if is_program else _own_cases
    values["cases"] = read_cases(values.get("cases", []))
    values.pop("tests", None)
    _add(values, read_statements(texts_of(row, "tests"), str(values["entry_point"]) or RUN, ask))
    problem = Problem(**values)
    if row.fields.get("cases"):
        _ = (
            problem.encoded
        )  # what is no plain data, such as lists that are nested too deep, is named with its row
    return problem


def _add(values: dict[str, Any], golden: Golden) -> None:
    if golden.cases and values.get("compare", "equal") == "equal":
        theirs, own = (golden.compare, golden.atol), ("equal", values.get("atol") or 0.0)
        if values["cases"] and theirs not in (own, ("equal", 0.0)):
            raise ValueError(
                f"Expect tests that are compared as the other cases are, actually by {theirs[0]!r} within {theirs[1]:g}"
            )
        values |= {"compare": theirs[0], "atol": values.get("atol") or theirs[1]}
    modules = filter(None, (values.get("test_module", ""), golden.test_module))
    values["cases"] = (*values["cases"], *golden.cases)
    values["test_module"] = "\n\n\n".join(modules)


def _own_cases(given: object) -> tuple[Case, ...]:
    if not isinstance(given, (list, tuple)):
        raise TypeError(f"Expect 'cases' to be a list of objects, actually: {show(given)}")
    cases = []
    for number, item in enumerate(given, 1):
        if not isinstance(item, Mapping) or item.keys() - {"args", "kwargs", "expected"}:
            raise TypeError(
                f"Expect case {number} to be an object with the fields args, kwargs and expected, actually: {show(item)}"
            )
        args, kwargs = item.get("args", []), item.get("kwargs") or {}
        if not isinstance(args, (list, tuple)) or not isinstance(kwargs, Mapping):
            raise TypeError(
                f"Expect args of case {number} to be a list, kwargs an object, actually: {show(item)}"
            )
        cases.append(Case(tuple(args), dict(kwargs), item.get("expected", UNKNOWN)))
    return tuple(cases)


def row_of(problem: Problem) -> dict[str, Any]:
    """Return a problem as a row of the own layout, which JSON can hold.

    Raises a ValueError if a case is neither a statement nor JSON.

    Example:
        >>> row_of(Problem("a", "def f(x):", "f", "def f(x): return x", ["assert f((1,)) == (1,)"]))["tests"]
        ['assert f((1,)) == (1,)']
    """
    values = {each.name: getattr(problem, each.name) for each in dataclasses.fields(problem)}
    values["metadata"] = dict(problem.metadata)
    texts = [statement(problem.entry_point, case) for case in problem.cases]
    values["tests"], values["cases"] = texts, []
    if problem.kind == "program":
        values["tests"], values["cases"] = [], list(map(program_row, problem.cases))
    elif None in texts:
        values["tests"], values["cases"] = [], list(map(_json_case, problem.cases))
    usual: dict[str, Any] = {"compare": "equal", "kind": "function"}
    if problem.kind == "program":
        usual = {"compare": "lines", "entry_point": "", "tests": []}
    always = [name for name in _ALWAYS if name not in usual]
    return {
        name: value
        for name, value in values.items()
        if name in always or (value and value != usual.get(name))
    }


_ALWAYS = ("task_id", "prompt", "entry_point", "reference", "tests", "metadata")


def _json_case(case: Case) -> dict[str, Any]:
    row: dict[str, Any] = {"args": list(case.args)}
    row |= {"kwargs": dict(case.kwargs)} if case.kwargs else {}
    row |= {} if case.expected is UNKNOWN else {"expected": case.expected}
    if json.loads(json.dumps(row)) != row:
        raise ValueError(f"Expect a case that is a statement or JSON, actually: {case!r:.200}")
    return row


def _mbpp_plus_hub(row: Row) -> Problem:
    """MBPP+ in the layout of the hub: a test script whose first inputs are those of the original set."""
    code, tests = unix(text_of(row, "code")), texts_of(row, "test_list")
    entry = _entry_point(code, tests)
    imports = "\n".join(texts_of(row, "test_imports"))
    task_id = f"MBPP/{row.fields['task_id']}"
    problem = Problem(
        task_id=task_id,
        prompt=prompt_of(signature_of(code, entry), text_of(row, "prompt"), tests[0]),
        entry_point=entry,
        reference=code,
        metadata=origin(row, "mbpp+", "test"),
        contract=contract_of(task_id, row.fields.get("contract")),
        **read_test(unix(text_of(row, "test")), entry),
    )
    calls = apart(literal_calls, [with_setup(imports, test) for test in tests], entry)
    base = [(list(case.args), dict(case.kwargs)) for case in problem.cases[: len(tests)]]
    given = [(list(args), kwargs) for args, kwargs in calls]
    if list(map(codec.encode, given)) == list(map(codec.encode, base)):
        return dataclasses.replace(problem, base=len(tests))
    first = read_statements([with_setup(imports, test) for test in tests], entry, apart)
    if first.cases and (first.compare, first.atol) != (problem.compare, problem.atol):
        first = Golden(test_module=module_of(tests))
    modules = filter(None, (first.test_module, problem.test_module))
    return dataclasses.replace(
        problem,
        cases=(*first.cases, *problem.cases),
        test_module="\n\n\n".join(modules),
        base=0 if first.test_module else len(first.cases),
    )


def _mbpp(row: Row) -> Problem:
    code, number = unix(text_of(row, "code")), row.fields.get("task_id")
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"Expect 'task_id' to be an int, actually: {show(number)}")
    tests = [*texts_of(row, "test_list"), *texts_of(row, "challenge_test_list")]
    setup = "\n".join(
        [*texts_of(row, "test_imports"), str(row.fields.get("test_setup_code") or "")]
    )
    entry = _entry_point(code, tests)
    example = tests[0]
    modules = re.findall(r"^import (\w+) *$", code, re.MULTILINE)
    tests = [imports_for(modules, unix(test), "") + unix(test) for test in tests]
    text = text_of(row, "text" if "text" in row.fields else "prompt")
    split = "test" if 10 < number <= 510 else "validation" if 510 < number <= 600 else "train"
    return Problem(
        task_id=f"MBPP/{number}",
        prompt=prompt_of(signature_of(code, entry), text, example),
        entry_point=entry,
        reference=code,
        metadata=origin(row, "mbpp", "prompt" if number <= 10 else split),
        **fields_of(
            read_statements([with_setup(unix(setup), each) for each in tests], entry, apart)
        ),
    )


def _ult(row: Row) -> Problem:
    """UnLeakedTestBench: functions to write tests for.

    The tests in `test_list` are left out: a model wrote them, and few hold. Its harness imports modules for the functions.
    """
    code, entry = unix(text_of(row, "code")), text_of(row, "func_name")
    return Problem(
        task_id=f"ULT/{row.fields.get('task_id')}",
        prompt=prompt_of(signature_of(code, entry), text_of(row, "prompt")),
        entry_point=entry,
        reference=imports_for(_ULT_MODULES, code, code) + code,
        metadata=origin(row, "ult", "test"),
    )


def _kodcode(row: Row) -> Problem:
    """KodCode: the tests are a pytest module that imports the function from a module `solution`."""
    info: Any = row.fields["test_info"]
    info = json.loads(info) if isinstance(info, str) else info
    info = info[0] if isinstance(info, (list, tuple)) and info else info
    if not isinstance(info, Mapping) or not isinstance(info.get("function_name"), str):
        raise TypeError(f"Expect 'test_info' to hold a function_name, actually: {show(info)}")
    entry, code = info["function_name"], text_of(row, "solution")
    declaration = str(info.get("function_declaration") or "") or signature_of(code, entry)
    test = text_of(row, "test_code" if "test_code" in row.fields else "test")
    names = map(row.fields.get, ("question_id", "task_id", "id"))
    name = next((each for each in names if each is not None), None)
    if name is None:
        raise ValueError("Expect a field question_id, task_id or id")
    extra = {"difficulty": row.fields.get("gpt_difficulty"), "subset": row.fields.get("subset")}
    passed = row.fields.get("gpt_pass_percentage")
    if isinstance(passed, (int, float)) and not isinstance(passed, bool):
        extra["pass_percentage"] = str(passed)
    return Problem(
        task_id=f"KodCode/{name}",
        prompt=prompt_of(declaration, text_of(row, "question")),
        entry_point=entry,
        reference=code,
        metadata=origin(row, "kodcode", "train")
        | {key: value for key, value in extra.items() if isinstance(value, str)},
        **fields_of(read_module(unix(test), entry, apart)),
    )


def _entry_point(code: str, tests: list[str]) -> str:
    if not tests:
        raise ValueError("Expect at least one test in 'test_list', actually: none")
    names = re.findall(r"^(?:async )?(?:def|class) +(\w+)", code, re.MULTILINE)
    calls = re.findall(r"\b([^\W\d]\w*) *\(", tests[0])
    for call in calls:
        if call in names:
            return str(call)
    raise ValueError(
        f"Expect the first test to call a function of the program ({', '.join(names) or 'it has none'}), "
        f"actually: {show(tests[0])}"
    )


_ULT_MODULES = (
    "bisect", "collections", "copy", "datetime", "functools", "itertools", "json", "logging", "math",
    "operator", "os", "random", "re", "string", "sys", "time", "warnings", "np: import numpy as np",
)  # fmt: skip


def _bigcodebench(row: Row) -> Problem:
    """BigCodeBench: functions that use libraries, with a unittest class for each."""
    entry, complete = text_of(row, "entry_point"), text_of(row, "complete_prompt")
    given = row.fields.get("code_prompt")
    libraries = _libraries(row.fields.get("libs"))
    return Problem(
        task_id=text_of(row, "task_id"),
        prompt=complete,
        entry_point=entry,
        reference=complete + text_of(row, "canonical_solution"),
        # Its own evaluator runs test and program as one text.
        test_module=f"from solution import *\n\n{unix(text_of(row, 'test'))}",
        metadata={
            **origin(row, "bigcodebench", "test"),
            **({"packages": " ".join(libraries)} if libraries else {}),
        },
        # As in BigCodeBench's own evaluation: imports and signature, with an empty body.
        preamble="" if given is None else f"{text_of(row, 'code_prompt')}\n    pass\n",
    )


def _libraries(value: object) -> list[str]:
    """Return the packages in a field such as "['pandas', 'matplotlib.pyplot']", which is read but never evaluated."""
    if value is None:
        return []
    if not isinstance(value, str) or not re.fullmatch(r"\[(?:'[\w.]+'(?:, ?)?)*\]", value):
        raise TypeError(
            f"Expect 'libs' to be text like \"['pandas', 're']\", actually: {show(value)}"
        )
    return sorted({name.partition(".")[0] for name in re.findall(r"[\w.]+", value)})


SCHEMAS = (
    Schema("codea1", "task_id prompt entry_point reference", _own),
    Schema("codea1 program", "task_id prompt kind reference", _own),
    Schema("bigcodebench", "complete_prompt canonical_solution test entry_point", _bigcodebench),
    Schema(
        "livecodebench",
        "question_id question_content public_test_cases private_test_cases",
        livecodebench.convert,
    ),
    Schema("evalplus", "prompt canonical_solution test entry_point", evalplus.convert),
    Schema("ult", "func_name code prompt test_list", _ult),
    Schema("mbpp+", "task_id code prompt test_list test", _mbpp_plus_hub),
    Schema("mbpp", "task_id text code test_list", _mbpp),
    Schema("mbpp sanitized", "task_id prompt code test_list", _mbpp),
    Schema("code-a1 release", "problem GT_code test extra_info", release.convert),
    Schema("kodcode", "question solution test_info", _kodcode),
    Schema("apps, taco", "question input_output", contests.convert),
    Schema("codecontests", "description public_tests", contests.convert),
    Schema("deepcoder", "problem tests", contests.convert),
    Schema("primeintellect", "prompt verification_info", contests.convert),
    Schema("inputs and outputs", "inputs outputs", contests.convert),
)
"""The known layouts; the first that fits is taken."""
