"""The files of the paper's own release: KodCode problems to train on, HumanEval+ and MBPP+ to measure with.

A row's `GT_code` is a whole program, or the body of the function that `problem` begins; `test` defines
`check(candidate)`, is a pytest module, or asserts at once; `extra_info` is an object, or JSON of one.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping
from typing import Any

from codea1_env.problem_sets.contracts import contract_of
from codea1_env.problem_sets.evalplus import called_by, fields_of, read_test
from codea1_env.problem_sets.golden import apart, read_module, read_statements
from codea1_env.problem_sets.problem import Problem
from codea1_env.problem_sets.rows import (
    Row,
    above,
    behind,
    definition_of,
    origin,
    prompt_of,
    show,
    signature_of,
    text_of,
    texts_of,
    unix,
    with_setup,
)

_SOURCES = {"humanevalplus": "humaneval+", "mbppplus": "mbpp+", "kodcode_light": "kodcode"}
"""What the release calls the sets that it was made from, and what they are called here."""
_ASSERT = re.compile(r"assert\b.*[^\\\s(\[{,]\s*")
"""One assert that may end with its line."""


_CHECK = re.compile(r"^def check\b", re.MULTILINE)
_PYTEST = re.compile(r"^(?:(?:async )?def test|class Test)", re.MULTILINE)


def convert(row: Row) -> Problem:
    """Return the problem that a row describes."""
    info = _info(row)
    entry, task = _named(info, "function_name"), _named(info, "question_id")
    solution, test = unix(text_of(row, "GT_code")), _tests(row)
    if not solution.strip():
        raise ValueError("Expect 'GT_code' to hold the reference solution, actually it is blank")
    whole = _is_whole(solution, entry)
    if whole and isinstance(test, str):
        entry = called_by(test, solution, entry)
    imports = _imports(info)
    prompt = _prompt(row, info, entry, imports, whole)
    if whole:
        reference = behind(above(prompt, entry), f"{imports}\n{solution}".lstrip("\n"))
    elif solution.lstrip("\n")[:1].isspace():
        reference = prompt + solution
    else:
        reference = prompt + textwrap.indent(solution, "    ")
    tests = _golden(test, entry, imports)
    source = str(row.fields.get("data_source") or "code-a1")
    source = _SOURCES.get(source, source)
    if source == "kodcode" and "/" not in task:
        task = f"KodCode/{task}"
    return Problem(
        task_id=task,
        prompt=prompt,
        entry_point=entry,
        reference=reference,
        metadata=origin(row, source, "test" if source in ("humaneval+", "mbpp+") else "train"),
        contract=contract_of(task),
        **tests,
    )


def _info(row: Row) -> Mapping[str, Any]:
    info = row.fields["extra_info"]
    if isinstance(info, str):
        info = _json("extra_info", "an object", info)
    if not isinstance(info, Mapping):
        raise TypeError(f"Expect 'extra_info' to be an object, actually: {show(info)}")
    return info


def _json(name: str, what: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"Expect {name!r} to be {what} or JSON of it, actually: {error} in {show(text)}"
        ) from error


def _named(info: Mapping[str, Any], name: str) -> str:
    value = info.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip():
        raise TypeError(f"Expect 'extra_info' to hold a {name}, actually: {show(value)}")
    return value.strip()


def _imports(info: Mapping[str, Any]) -> str:
    value = info.get("imports")
    lines = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(lines, (list, tuple)) or not all(isinstance(line, str) for line in lines):
        raise TypeError(
            f"Expect 'imports' in 'extra_info' to be text or a list of texts, actually: {show(value)}"
        )
    text = "\n".join(unix(line).strip() for line in lines if line.strip())
    if text and not re.match(r"(?:import|from)\b|#", text):
        raise ValueError(
            f"Expect 'imports' in 'extra_info' to be import statements, actually: {show(text)}"
        )
    return text


def _is_whole(solution: str, entry: str) -> bool:
    if re.search(definition_of(entry), solution, re.MULTILINE):
        return True
    if solution.lstrip("\n")[:1].isspace() or re.search(r"^(?:return|yield)\b", solution, re.M):
        return False
    others = re.findall(r"^(?:async +)?(?:def|class) +(\w+)", solution, re.MULTILINE)
    if others:
        raise ValueError(
            f"Expect 'GT_code' to define {entry!r}, the function_name in 'extra_info', or to be its body, "
            f"actually it defines {', '.join(others[:5])}"
        )
    return False


def _prompt(row: Row, info: Mapping[str, Any], entry: str, imports: str, whole: bool) -> str:
    """The prompt: `problem` where that is the beginning of a program.

    In the rows of MBPP+ it is not: their docstrings are not indented. They get signature and docstring anew.
    """
    problem, solution = unix(text_of(row, "problem")), unix(text_of(row, "GT_code"))
    opened = re.search(
        rf"^(?:(?:async )?def|class) {re.escape(entry)}\b *(?:\((?:[^()]|\([^()]*\))*\))?(?: *->[^:\n]+)?"
        r" *:[ \t]*(?:#.*)?\n",
        problem,
        re.MULTILINE,
    )
    if opened and re.match(r"\s*\n[ \t]|[ \t]", problem[opened.end() :]):
        known = problem if whole else problem + solution
        missing = [line for line in imports.split("\n") if line not in known]
        return behind("\n".join(missing), problem.rstrip("\n") + "\n")
    declaration = unix(str(info.get("function_declaration") or "")).strip()
    if not re.search(definition_of(entry), declaration, re.MULTILINE):
        if not whole:
            raise ValueError(
                f"Expect 'problem' or the function_declaration in 'extra_info' to declare {entry!r}, whose body "
                f"'GT_code' is, actually: {show(declaration)}"
            )
        declaration = signature_of(solution, entry)
    missing = [line for line in imports.split("\n") if line not in declaration]
    description = str(row.fields.get("description") or "").strip() or problem
    return prompt_of(declaration, description, imports="\n".join(missing))


def _tests(row: Row) -> str | list[str]:
    value = row.fields["test"]
    if isinstance(value, str) and value.lstrip()[:1] == "[":
        row = row._replace(fields={"test": _json("test", "a list of texts", value)})
    elif isinstance(value, str):
        return unix(value)
    return [unix(test) for test in texts_of(row, "test")]


def _golden(test: str | list[str], entry: str, imports: str) -> dict[str, Any]:
    if isinstance(test, str):
        if _CHECK.search(test):
            return read_test(test, entry)
        if _PYTEST.search(test):
            return fields_of(read_module(test, entry, apart))
        lines = [line for line in test.split("\n") if line.strip() and line[0] != "#"]
        whole = lines and not all(_ASSERT.fullmatch(line) for line in lines)
        test = [test] if whole else lines
    return fields_of(
        read_statements([_with_imports(imports, _asserting(each)) for each in test], entry, apart)
    )


def _asserting(test: str) -> str:
    """Return a test that says something when it is run; of another one, every program would pass."""
    found = re.search(r"^\s*(?:assert|raise)\b", test, re.MULTILINE)
    if not found or _CHECK.search(test) or _PYTEST.search(test):
        raise ValueError(
            "Expect 'test' to be a text that defines check(candidate) or test functions, or texts that assert "
            f"something, actually: {show(test)}"
        )
    return test


def _with_imports(imports: str, test: str) -> str:
    lines = imports.split("\n") if "(" not in imports else [imports]
    words = set(re.findall(r"\w+", test))
    needed = [line for line in lines if words & {*re.findall(r"\w+", line.rpartition("import")[2])}]
    return with_setup("\n".join(needed), test)
