"""Examples of docstrings that the program contradicts, as doctest finds them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codea1_env.oracle import gather
from codea1_env.sandbox import AnalysisError, Limits, Outcome, Sandbox
from codea1_env.testgen import doctests
from codea1_env.testgen.defaults import wrong_defaults
from codea1_env.testgen.findings import Finding
from codea1_env.testgen.target import Target
from codea1_env.testgen.texts import stated_test

_LIMITS = Limits(call_cpu_time=2, call_wall_time=10)
"""For all examples of a docstring."""
_RUN = "_codea1_examples"
_APPENDED = """

_codea1_doctests = {{"__name__": "codea1_doctests"}}
__import__("builtins").exec({text!r}, _codea1_doctests)


def {run}(text):
    return _codea1_doctests["run_examples"](text, globals(), {sets})
"""
_FILE = Path(doctests.__file__)
_SETS = re.compile(r"\b(?:frozen)?set[(\[]|\{[^:{}]+\bfor\b")
"""A program that makes sets, whose order may be another in every process; two of them may have the same by chance."""
_FORMS = ("value", "holds", "shown", "printed", "error")
_MAX = 200


def contradictions(target: Target, sandbox: Sandbox) -> list[Finding]:
    """Run the examples of the docstrings; what differs between two processes is none.

    Raises:
        InfraError: The sandbox failed.
    """
    texts = [inspect.cleandoc(text) for text in target.docs if ">>>" in text]
    if not texts:
        return _defaults(target, sandbox)
    text = _FILE.read_text(encoding="utf-8")
    sets = bool(_SETS.search(target.core))
    program = target.program + _APPENDED.format(text=text, run=_RUN, sets=sets)
    jobs = [
        sandbox.submit_calls(
            program,
            _RUN,
            [([each], {}) for each in texts],
            limits=_LIMITS.with_room_for(len(texts)),
            hash_seed=seed,
        )
        for seed in (0, 1)
    ]
    findings = _defaults(target, sandbox)
    for one, other in zip(*gather(jobs), strict=True):
        if one.outcome is Outcome.PASS and other.outcome is Outcome.PASS and _is_answer(one.value):
            findings += [_finding(row, target) for row in one.value if row in other.value]
    return findings


def _defaults(target: Target, sandbox: Sandbox) -> list[Finding]:
    """Default values that are documented as others."""
    if not any("default" in text.lower() for text in target.docs):
        return []
    try:
        rows = sandbox.analyse(wrong_defaults, target.source, target.name)
    except AnalysisError:  # a docstring may say anything
        return []
    found = []
    for row in rows:
        owner, name = row["owner"], row["name"]
        source = f"inspect.signature({owner}).parameters[{name!r}].default"
        test = stated_test("import inspect", source, {"value": row["says"]})
        did, says = f"is {row['value']}", f"the docstring says that it is {row['says']}"
        found.append(Finding(source, did, says, "default", "import inspect", test))
    return found


def _is_answer(value: Any) -> bool:
    """Whether it is what `doctests.run_examples` gives: it has run in the process of the program."""
    return isinstance(value, list) and all(
        isinstance(row, dict)
        and row.keys() == {"line", "source", "want", "form", "got"}
        and all(isinstance(text, str) for key, text in row.items() if key != "line")
        for row in value
    )


def _finding(row: Mapping[str, str], target: Target) -> Finding:
    says = f"says {_short(row['want'])}"
    if row["form"] == "raises" and row["got"].partition(":")[0] == row["want"].partition(":")[0]:
        says = "says otherwise"
    source, before, test = row["source"], "", None
    for each in target.examples:
        if each["source"] in (source, f"({source})", _printed(source)):
            [(form, text)] = [(key, each[key]) for key in _FORMS if key in each]
            if form == "error":
                says = f"says {text} is raised"
            before = each["before"]
            test = stated_test(before, each["source"], {form: text}, each["uses"])
            break
    if row["form"] == "prints":
        did, says = f"prints {_short(row['got'])!r}", f"prints {_short(row['want'])!r}"
    else:
        did = f"{row['form']} {_short(row['got'])}"
    return Finding(source, did, f"the docstring {says}", "example", before, test)


def _printed(source: str) -> str:
    return source.removeprefix("print(").removesuffix(")")


def _short(text: str) -> str:
    return text if len(text) <= _MAX else f"{text[: _MAX - 3]}..."
