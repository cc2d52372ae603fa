"""A coder's answer as the program that is run: what its task gave stands before it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from codea1_env.problem_sets.wording import above, behind
from codea1_env.problems import Problem
from codea1_env.responses import Program, parse_programs
from codea1_env.sandbox import Sandbox


def read_program(problem: Problem, answer: str, sandbox: Sandbox) -> Program:
    """Find the program in an answer. See `read_programs`."""
    return read_programs([problem], [answer], sandbox)[0]


def read_programs(
    problems: Sequence[Problem], answers: Sequence[str], sandbox: Sandbox
) -> list[Program]:
    """Find the programs in answers, see `parse_programs`, and make them whole, see `whole_program`.

    Args:
        problems: What the answers answer, one for each.
        answers: Any texts.
        sandbox: Where they are read.
    """
    asked = [
        (answer, problem.entry_point) for problem, answer in zip(problems, answers, strict=True)
    ]
    return [
        Program(whole_program(problem, _with_head(problem, program.code)), program.problem)
        for problem, program in zip(problems, parse_programs(asked, sandbox), strict=True)
    ]


def _with_head(problem: Problem, code: str) -> str:
    """A body alone, as a completion of the prompt, behind the head that the prompt has."""
    first = next((line for line in code.split("\n") if line.strip()), "")
    if first[:1] not in (" ", "\t") or not re.search(
        rf"^def +{re.escape(problem.entry_point)}\b", problem.prompt, re.MULTILINE
    ):
        return code
    return f"{problem.prompt.rstrip()}\n{code}"


def whole_program(problem: Problem, code: str) -> str:
    r"""A program behind what its problem gives: the preamble, or what stands above the function in the prompt.

    Whoever is shown imports and helpers may use them, and need not repeat them; a completion has them, too.

    Example:
        >>> problem = Problem("demo", "from typing import List\n\ndef f(x: List):\n", "f", "def f(x): pass")
        >>> whole_program(problem, "def f(x: List): ...")
        'from typing import List\n\n\ndef f(x: List): ...'
    """
    return behind(problem.preamble or above(problem.prompt, problem.entry_point), code)
