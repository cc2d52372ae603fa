"""A coder's answer as the program that is run: what its task gave stands before it."""

from __future__ import annotations

import dataclasses

from codea1_env.data.wording import above, behind
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
    r"""A program behind what its problem gives: the preamble, or what stands above the function in the prompt.

    Whoever is shown imports and helpers may use them, and need not repeat them; a completion has them, too.

    Example:
        >>> problem = Problem("demo", "from typing import List\n\ndef f(x: List):\n", "f", "def f(x): pass")
        >>> whole_program(problem, "def f(x: List): ...")
        'from typing import List\n\n\ndef f(x: List): ...'
    """
    return behind(problem.preamble or above(problem.prompt, problem.entry_point), code)
