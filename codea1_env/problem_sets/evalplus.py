"""HumanEval+ and MBPP+ in the layout of the EvalPlus releases."""

from __future__ import annotations

import re

from codea1_env.problem_sets.harness import check_program
from codea1_env.problem_sets.problem import Problem
from codea1_env.problem_sets.row import Row, origin, text_of
from codea1_env.problem_sets.wording import definition_of, prompt_of, signature_of


def convert(row: Row) -> Problem:
    """Return the problem that a row describes.

    Raises:
        TypeError: A field has the wrong type.
        ValueError: A field has a value that cannot be used.
    """
    entry, solution = text_of(row, "entry_point"), text_of(row, "canonical_solution")
    task_id, test = text_of(row, "task_id"), corrected(text_of(row, "test"))
    if re.search(definition_of(entry), solution, re.MULTILINE):
        entry = called_by(test, solution, entry)
        imports = str(row.fields.get("imports") or "")
        description = str(row.fields.get("description") or "") or text_of(row, "prompt")
        return Problem(
            task_id=task_id,
            prompt=prompt_of(signature_of(solution, entry), description, imports=imports),
            entry_point=entry,
            reference=f"{imports}\n{solution}".lstrip("\n"),
            test_program=check_program(test, entry),
            metadata=origin(row, "mbpp+", "test"),
        )
    prompt = text_of(row, "prompt")
    return Problem(
        task_id=task_id,
        prompt=prompt,
        entry_point=entry,
        reference=prompt + solution,
        test_program=check_program(test, entry),
        metadata=origin(row, "humaneval+", "test"),
    )


def called_by(test: str, solution: str, entry: str) -> str:
    """Return the function that a test calls; some rows name a helper of the program instead."""
    called = re.search(r"\b([^\W\d]\w*)\(\*inp\)", test)
    found = called is not None and re.search(definition_of(called[1]), solution, re.MULTILINE)
    return called[1] if called is not None and found else entry


def corrected(test: str) -> str:
    """Return a published test with the conditions of EvalPlus's own evaluator where the two differ."""
    # The test of HumanEval/32 hands the arguments over in the wrong places, and no program can pass it.
    test = test.replace(
        "assert _poly(*candidate(*inp), inp) <= 0.0001",
        "assert abs(_poly(*inp, candidate(*inp))) <= 0.0001",
    )
    # The tests of MBPP/737, 787 and 794 compare, and say nothing: every program passes.
    test = test.replace(
        "        exact_match = exp == (out is not None)\n",
        "        exact_match = exp == (out is not None)\n    assert exact_match\n",
    )
    # An empty list counts as one of floats, and numpy finds anything close to it.
    test = test.replace(
        "    if isinstance(x, (list, tuple)):\n        return all(",
        "    if isinstance(x, (list, tuple)) and x:\n        return all(",
    )
    # numpy also compares values of different types and lengths.
    return re.sub(
        r"^( +)assert np\.allclose\(out, exp, ",
        r"\1assert type(out) == type(exp)\n"
        r"\1assert not isinstance(exp, (list, tuple)) or len(out) == len(exp)\n\g<0>",
        test,
        flags=re.MULTILINE,
    )
