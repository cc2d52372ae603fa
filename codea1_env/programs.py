"""A coder's answer as the program that is run: what its task gave stands before it."""

from __future__ import annotations

import dataclasses
import re

from codea1_env.problems import Problem
from codea1_env.responses import Program, parse_program


def read_program(problem: Problem, answer: str) -> Program:
    """Finds the program in an answer, see `parse_program`, and makes it whole, see `whole_program`.

    Args:
        problem: What the answer answers.
        answer: Any text.
    """
    program = parse_program(answer, problem.entry_point)
    return dataclasses.replace(program, code=whole_program(problem, program.code))


def whole_program(problem: Problem, code: str) -> str:
    r"""A program behind what stands above the function in the prompt: imports and helpers that were given.

    Whoever is shown them may use them, and need not repeat them; a completion has them, too.

    Example:
        >>> problem = Problem("demo", "from typing import List\n\ndef f(x: List):\n", "f", "def f(x): pass")
        >>> whole_program(problem, "def f(x: List): ...")
        'from typing import List\n\n\ndef f(x: List): ...'
    """
    if problem.preamble:  # which stands before every program that is judged
        return code
    name = re.escape(problem.entry_point)
    function = re.search(rf"^(?:async +)?(?:def|class) +{name}\b", problem.prompt, re.MULTILINE)
    given = problem.prompt[: function.start()].strip() if function else ""
    # What comes from __future__ must stay at the very beginning.
    if not given or not code.strip() or given in code or "__future__" in code:
        return code
    return f"{given}\n\n\n{code}"
