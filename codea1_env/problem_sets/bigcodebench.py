"""BigCodeBench: functions that use libraries, with a unittest class for each.

One row describes two problems with one solution: to complete a function with its docstring, or to follow an
instruction (`Row.variant` "instruct").
"""

from __future__ import annotations

import re

from codea1_env.problem_sets.harness import UNITTEST_CHECK, check_program
from codea1_env.problem_sets.problem import ONE_PROCESS, Problem
from codea1_env.problem_sets.row import Row, origin, show, text_of

INSTRUCT = "instruct"


def convert(row: Row) -> Problem:
    """Return the problem that a row describes.

    Raises:
        TypeError: A field has the wrong type.
        ValueError: A field has a value that cannot be used.
    """
    entry, complete = text_of(row, "entry_point"), text_of(row, "complete_prompt")
    instruct = row.variant == INSTRUCT
    given = row.fields.get("code_prompt")
    libraries = _libraries(row.fields.get("libs"))
    return Problem(
        task_id=text_of(row, "task_id"),
        prompt=text_of(row, "instruct_prompt") if instruct else complete,
        entry_point=entry,
        reference=complete + text_of(row, "canonical_solution"),
        test_program=check_program(text_of(row, "test") + UNITTEST_CHECK, entry),
        metadata={
            **origin(row, f"bigcodebench{'-instruct' if instruct else ''}", "test"),
            **ONE_PROCESS,
            **({"packages": " ".join(libraries)} if libraries else {}),
        },
        # As in BigCodeBench's own evaluation: imports and signature, with an empty body.
        preamble="" if given is None else f"{text_of(row, 'code_prompt')}\n    pass\n",
    )


def _libraries(value: object) -> list[str]:
    """The packages in a field such as "['pandas', 'matplotlib.pyplot']", which is read but never evaluated."""
    if value is None:
        return []
    if not isinstance(value, str) or not re.fullmatch(r"\[(?:'[\w.]+'(?:, ?)?)*\]", value):
        raise TypeError(
            f"Expect 'libs' to be text like \"['pandas', 're']\", actually: {show(value)}"
        )
    return sorted({name.partition(".")[0] for name in re.findall(r"[\w.]+", value)})
