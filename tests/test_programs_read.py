"""What is read from answers about programs that read and print, where one format stands in the strings of another."""

from __future__ import annotations

import json
import marshal

import pytest

from codea1_env.problems import Problem
from codea1_env.referee import Referee, Round
from codea1_env.responses import Test, parse_suite, read_program
from codea1_env.sandbox import Sandbox

ECHO = Problem("echo", "Print the line.", "", "print(input())\n")
DOUBLE = Problem("double", "def double(n):\n", "double", "def double(n):\n    return 2 * n\n")

# What coders write


@pytest.mark.parametrize("fence", ["```", "```python", "~~~", "````text"])
@pytest.mark.parametrize(
    "program",
    [
        '"""\n{}\nprint(1 + 2)\n{}\n"""\nprint(sum(map(int, input().split())))',
        "s = '''\n{}\n1 2\n{}\n'''\nprint(s)",
        "# {}\n# 1 2\n# {}\nprint(input())",
        "for _ in '''\n{}\n1 2\n{}\n''':\n    pass\nprint(input())",
    ],
)
def test_a_bare_program_with_fences_in_its_strings_is_taken_whole(
    fence: str, program: str, sandbox: Sandbox
) -> None:
    answer = program.format(fence, fence.rstrip("pythonex"))
    assert read_program(ECHO, answer, sandbox).code == answer


def test_a_bare_function_with_fences_in_its_strings_is_taken_whole(sandbox: Sandbox) -> None:
    for answer in (
        "def double(n):\n    s = '''\n```\n1 2\n```\n'''\n    return 2 * n if s else s",
        "s = '''\n```python\ndef double(n):\n    return 0\n```\n'''\ndef double(n):\n    return 2 * n",
    ):
        assert read_program(DOUBLE, answer, sandbox).code == answer


def test_prose_in_quotes_is_no_program(sandbox: Sandbox) -> None:
    """Python, but it does nothing: the program is in its fence."""
    for quotes in ('"""', "'''"):
        answer = f"{quotes}\nHere it is.\n```python\nprint(input())\n```\n{quotes}"
        assert read_program(ECHO, answer, sandbox).code == "print(input())\n"


# What testers write

LINE = '{"input": "q", "output": "r"}\n'
TEXT = f"1\n{LINE}{LINE.replace('q', 'q3')}"
ASSERTION = f'assert run("""{TEXT}""") == "b"'
ASSERTS = "1\nassert run('q') == 'r'\nassert run('q3') == 'r'\n"
OBJECT = f'[{{"input": "{ASSERTS}", "output": "b"}}]'
IN_PYTHON = {
    "alone": ASSERTION,
    "one line": ASSERTION.replace(LINE.replace("q", "q3"), ""),
    "behind a name": f'text = """{TEXT}"""\nassert run(text) == "b"',
    "a function": f"def test_it():\n    {ASSERTION}",
    "a fence": f"So:\n```python\n{ASSERTION}\n```",
    "a function in a fence": f"So:\n```\ndef test_it():\n    {ASSERTION}\n```\nDone.",
    "an indented fence": f"1. So:\n   ```python\n   {ASSERTION}\n   ```",
    "prose": f"Here it is:\n\n{ASSERTION}\n\nDon't forget it.",
    "a function in prose": f"Here it is:\n\ndef test_it():\n    {ASSERTION}\n\nDon't forget it.",
    "a list": f"So:\n[{{'input': '''{TEXT}''', 'output': 'b'}}]",
    "many lines": f'```\nassert run("""{LINE * 50}""") == "b"\n```',
}
IN_JSON = {
    "alone": OBJECT,
    "a fence": f"So:\n```json\n{OBJECT}\n```",
    "prose": f"Here it is:\n{OBJECT}\nDone.",
    "cut off": f"{OBJECT[:-1]}, {{\"input\": \"assert run('q') == 'r'\n",
    "escaped": OBJECT.replace("\n", "\\n"),
    "escaped in a fence": "```json\n{}\n```".format(OBJECT.replace("\n", "\\n")),
}


@pytest.mark.parametrize("way", IN_PYTHON)
def test_json_in_strings_of_python_is_an_input(way: str, sandbox: Sandbox) -> None:
    [test] = parse_suite(IN_PYTHON[way], ECHO, sandbox).tests
    assert LINE in inputs(test)
    assert test.value == "'b'"


@pytest.mark.parametrize("way", IN_JSON)
def test_assertions_in_strings_of_json_are_an_input(way: str, sandbox: Sandbox) -> None:
    [test] = parse_suite(IN_JSON[way], ECHO, sandbox).tests
    assert (inputs(test), test.value) == (ASSERTS, "'b'")


def inputs(test: Test) -> str:
    [text] = marshal.loads(test.call)[0]
    return str(text)


def test_an_object_without_an_output_is_no_assertion(sandbox: Sandbox) -> None:
    found = parse_suite(json.dumps([{"input": ASSERTS}]), ECHO, sandbox)
    assert not found.tests
    assert [item.reason for item in found.dropped] == ["does not say what the program prints"]


def test_a_dict_of_assertions_is_no_list(sandbox: Sandbox) -> None:
    answer = json.dumps({"assert_statements": ["assert run('the input {') == 'r'"]})
    assert [test.value for test in parse_suite(answer, ECHO, sandbox).tests] == ["'r'"]


def test_a_string_that_is_cut_off_holds_no_list(sandbox: Sandbox) -> None:
    for head in ("", "def test_it():\n    "):
        answer = f'assert run("1") == "1"\n{head}assert run("""{TEXT}'
        assert [test.value for test in parse_suite(answer, ECHO, sandbox).tests] == ["'1'"]


def test_lists_beside_assertions(sandbox: Sandbox) -> None:
    """The more count, wherever they stand: in fences, in functions, with what only JSON has."""
    both = '[{"input": "3", "output": "9"}, {"input": "4", "output": "\\ud83d\\ude00", "hidden": true}]'
    for answer in (
        f"{ASSERTION}\n{both}",
        f"```python\n{ASSERTION}\n```\n```json\n{both}\n```",
        f"{ASSERTION}\ndef test_it():\n    cases = {both}\n    check(cases)",
        f"In prose:\n{both}\n{ASSERTION}",
    ):
        found = parse_suite(answer, ECHO, sandbox).tests
        assert [test.value for test in found] == ["'9'", "'\U0001f600'"], answer


@pytest.mark.parametrize(
    "text",
    [
        '{"input":1};' * 5_000, "é;" * 20_000 + '{"input": 1}', '{"input":' * 7_000, "  ```\n  {'input':\n  1}\n  ```\n" * 2_000,
        '{"input":"' * 6_000, '{"input": ' + "9" * 60_000 + "}", "```\n{'input': 1}\n```\n" * 3_000, 'a = """\n{"input": "\n' * 3_000, "assert {'input': '{'} \"\n" * 2_500,
    ],
)  # fmt: skip
def test_hostile_lists_are_explained(text: str, sandbox: Sandbox) -> None:
    found = parse_suite(text[:65_000], ECHO, sandbox)
    assert len(found.tests) <= 64
    assert found.dropped


# Numbers, and texts without blanks


def statuses(reference: str, answer: str, sandbox: Sandbox) -> list[str]:
    problem = Problem("p", "Print.", "", reference)
    [verdict] = Referee(sandbox).judge([Round(problem, "print(0)", [[answer]])])
    return [test.status for test in verdict.suites[0].tests]


def test_printed_numbers_are_compared_as_tests_say(sandbox: Sandbox) -> None:
    answer = (
        "import math, pytest\nassert float(run('5')) == pytest.approx(2.5)\nassert pytest.approx(2) == float(run('4'))\n"
        "assert float(run('7').strip()) == pytest.approx(3.5004, abs=1e-3)\nassert math.isclose(float(run('9')), 4.5)\n"
        "assert float(run('6')) == 3\n"
        "assert float(run('11')) == pytest.approx(5.4)\nassert float(run('13')) == pytest.approx(6.5004)"
    )
    halves = "print(' ', int(input()) / 2)"
    found = statuses(halves, answer, sandbox)
    assert found == ["kept"] * 5 + ["corrected"] * 2
    assert statuses("print(' 12')", "assert int(run('1')) == 12", sandbox) == ["kept"]


def test_conversions_of_functions_have_tolerances(sandbox: Sandbox) -> None:
    answer = (
        "assert float(double(2)) == pytest.approx(4.0)\nassert round(double(3), 2) == approx(6.0)\n"
        "assert float(double(4)) == pytest.approx(8.0, abs=1)"
    )
    found = parse_suite(answer, DOUBLE, sandbox)
    assert [(test.value, test.absolute, test.relative) for test in found.tests] == [
        ("4.0", 1e-12, 1e-6),
        ("6.0", 0.005, 1e-6),
    ]
    assert [item.reason for item in found.dropped] == ["a tolerance of 1 says too little"]


@pytest.mark.parametrize(
    ("test", "status"),
    [
        ("run('a').strip() == 'b  c'", "kept"),
        ("'b  c' == run('a').rstrip().strip()", "kept"),
        ("run('a').rstrip() == ' b  c'", "kept"),
        ("run('a').rstrip() == 'b  c'", "corrected"),
        ("run('a').strip() == 'b c'", "corrected"),
        ("run('a') == 'b  c'", "corrected"),
        ("run('a') == ' b  c'", "kept"),
    ],
)
def test_what_is_stripped_is_compared_without_blanks(
    test: str, status: str, sandbox: Sandbox
) -> None:
    assert statuses("print(' b  c')", f"assert {test}", sandbox) == [status]


@pytest.mark.parametrize(
    "test",
    ["run('a').strip() == ' b'", "run('a').strip() == 'b\\n'", "run('a').rstrip() == ' b\\n'", "'b ' == run('a').strip()"],
)  # fmt: skip
def test_no_blanks_are_left_where_they_are_stripped(test: str, sandbox: Sandbox) -> None:
    found = parse_suite(f"assert {test}", ECHO, sandbox)
    assert not found.tests
    [dropped] = found.dropped
    assert dropped.invalid
    assert dropped.reason.endswith("strip() leaves no such blanks at the ends")


def test_a_name_keeps_what_was_stripped(sandbox: Sandbox) -> None:
    answer = "shown = run('a').strip()\nassert shown == 'b'\nassert shown.rstrip() == 'b'"
    assert statuses("print(' b')", answer, sandbox) == ["kept", "duplicate"]
