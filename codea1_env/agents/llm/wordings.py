"""Every wording of what language models are told; `codea1_env.agents.llm.prompts` chooses and fills them."""

from __future__ import annotations

from typing import NamedTuple

from codea1_env.problems import Problem


class Wordings(NamedTuple):
    """What players are told about problems of one kind, in one style."""

    coder: str
    repair: str
    tester: str
    blind: str
    """Of a tester that sees no program."""


class Example(NamedTuple):
    """A worked example."""

    problem: Problem
    wrong: str
    """A program for it that is wrong."""
    tests: list[str]
    others: tuple[Problem, ...] = ()
    """More that a coder is shown."""


PROSE_CODER = """\
{prose}

Put the whole Python program into one ```python block."""
ONLY_CODE = "Only output code in a ```python block."
ANOTHER_TEST = {
    "function": """\
Write another test of `{entry_point}` that differs from these and reaches other lines and branches of the program. \
Only output code in a ```python block.""",
    "program": """\
Write another test of the program that differs from these and reaches other lines and branches of it. Only output code \
in a ```python block.""",
}
"""Asks for one test more."""

SHORT = {
    "function": Wordings(
        coder="Write a Python function `{signature}`. {text} {only_code}",
        repair="""\
This program for `{signature}` is wrong:
{code}

`{entry_point}` must do this: {text}

It must pass:
{tests}
Write the function again. {only_code}""",
        tester="""\
A program for `{signature}`:
{code}

`{entry_point}` must do this: {text}

Write {num_tests} assert statements that test `{entry_point}`{like}{only_code}""",
        blind="""\
`{entry_point}` of `{signature}` must do this: {text}

Write {num_tests} assert statements that test `{entry_point}`{like}{only_code}""",
    ),
    "program": Wordings(
        coder="""\
Write a Python program that reads standard input.

{stated}

{only_code}""",
        repair="""\
{prose}

This Python program is wrong:
{code}

It must pass:
{tests}
Write the program again. {only_code}""",
        tester="""\
{prose}

A Python program for it:
{code}

Write {num_tests} assert statements that test the program. `run(input)` is what it prints. {only_code}""",
        blind="""\
{prose}

Write {num_tests} assert statements that test a program for it. `run(input)` is what the program prints. {only_code}""",
    ),
}
"""For small models."""

_SCRIPT_TESTS = """\
Then write {num_tests} tests as JSON: a list of objects `{{"input": "...", "output": "..."}}`, each with a whole input \
in the format of the task, and what a correct program prints for it. Write a new line as \\n. Every test must be right, \
and every input must be different; as many as possible should fail on """

DETAILED = {
    "function": Wordings(
        coder="""\
Solve this programming task in Python.

{problem}

Write a complete program that defines `{entry_point}` with the name and the arguments given above, and the \
imports that it needs. It will be run against tests that you cannot see and that look for mistakes in rare \
cases, so decide first what happens for empty, extreme and unusual arguments. Put the program into one \
```python block.""",
        repair="""\
Correct a program for this programming task.

{problem}

The program:

{code}

Tests that it fails:

{tests}

What happened:

{feedback}

Find out what is wrong, then write the complete corrected program into one ```python block.""",
        tester="""\
Find mistakes in a program by testing it. The task was:

{problem}

The program:

{code}

Think about what the task asks for and where this program does something else: empty, extreme and unusual \
arguments that the task allows, wrong order, off by one. Then write {num_tests} tests, each one statement of the form \
`assert {called}(arguments) == expected`. Every test must be right: a correct program passes it. Every \
test must be different, and as many as possible should fail on the program above. Put the tests into one \
```python block, with nothing else in it.""",
        blind="""\
Write tests for this programming task, before seeing any program:

{problem}

Think about which mistakes a program could make: empty, extreme and unusual arguments, wrong order, wrong \
type, off by one. Then write {num_tests} tests, each one statement of the form \
`assert {called}(arguments) == expected`. Every test must be right: a correct program passes it. Every \
test must be different, and as many as possible should fail on programs with a mistake. Put the tests into \
one ```python block, with nothing else in it.""",
    ),
    "program": Wordings(
        coder="""\
Solve this programming task in Python.

{prose}

Write a complete program that reads from standard input and prints to standard output exactly what is asked for, and \
nothing else. It will be run on inputs that you cannot see and that look for mistakes in rare cases, so decide first what \
happens for the smallest, the largest and unusual inputs. Put the program into one ```python block.""",
        repair="""\
Correct a program for this programming task.

{prose}

The program:

{code}

Tests that it fails; `run(input)` is what it prints:

{tests}

What happened:

{feedback}

Find out what is wrong, then write the complete corrected program into one ```python block.""",
        tester=f"""\
Find mistakes in a program by testing it. The task was:

{{prose}}

The program reads from standard input and prints:

{{code}}

Think about what the task asks for and where this program does something else: the smallest, the largest and unusual \
inputs that the task allows, wrong order, off by one. {_SCRIPT_TESTS}the program above. Put the list into one \
```json block, with nothing else in it.""",
        blind=f"""\
Write tests for this programming task, before seeing any program:

{{prose}}

Think about which mistakes a program could make: the smallest, the largest and unusual inputs, wrong order, off by one. \
{_SCRIPT_TESTS}programs with a mistake. Put the list into one ```json block, with nothing else in it.""",
    ),
}
"""For models that follow instructions."""

EXAMPLE = Problem(
    task_id="example",
    prompt='def triple(n):\n    """Return n times three.\n\n'
    '    >>> triple(4)\n    12\n    >>> triple(-1)\n    -3\n    """\n',
    entry_point="triple",
    reference="def triple(n):\n    return n * 3",
)
"""The worked example: as a coder's problem, and with `EXAMPLE_PROGRAM` as a tester's."""
EXAMPLE_PROGRAM = "def triple(n):\n    return n + 3"
EXAMPLES = {
    "function": Example(
        EXAMPLE,
        EXAMPLE_PROGRAM,
        [f"assert triple({n}) == {3 * n}" for n in (1, 0, -2, 10, 5, -7, 100, 33)],
    ),
    "program": Example(
        Problem(
            task_id="example",
            prompt="Read an integer n and print three times n. It is between -1000 and 1000.\n\n"
            "Example input:\n4\nExample output:\n12\n",
            entry_point="",
            reference="n = int(input())\nprint(n * 3)",
        ),
        "n = int(input())\nprint(n + 3)",
        [f'assert run("{n}\\n") == "{3 * n}\\n"' for n in (1, 0, -2, 10, 5, -7, 100, 33)],
        # With one example small models write functions, and words around the answer.
        (
            Problem(
                task_id="second",
                prompt="Read two integers, each from its own line, and print a times b. They are between -1000 and 1000.",
                entry_point="",
                reference="a = int(input())\nb = int(input())\nprint(a * b)",
            ),
            Problem(
                task_id="third",
                prompt="Read a word and print it in brackets. It has 1 to 30 letters.",
                entry_point="",
                reference='word = input()\nprint("(" + word + ")")',
            ),
        ),
    ),
}
