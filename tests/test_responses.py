"""Answers of models: what becomes a program, what becomes tests, and what is said of the rest."""

from __future__ import annotations

import os
import random
import signal
import string
import threading
import time
from pathlib import Path

import pytest

from codea1_env.problems import Problem
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.responses import (
    MAX_ACTION_CHARS,
    Dropped,
    Program,
    Suite,
    nonprintable_ratio,
    parse_program,
    parse_programs,
    parse_suite,
    parse_suites,
)
from codea1_env.sandbox import InfraError, Sandbox, encoded_arguments
from codea1_env.sandbox.inside import codec

ADD = "def add(a, b):\n    return a + b\n"
F = "```"
DOUBLE = Problem(
    "demo", "def f(n: int, by: int = 2) -> int:\n", "f", "def f(n, by=2):\n    return by * n"
)
PLAIN = Problem("plain", "def f(x):\n", "f", "def f(x):\n    return x")


# Programs


@pytest.mark.parametrize(
    "text",
    [
        f"```python\n{ADD}```", f"```\n{ADD}```", f"```py\n{ADD}```\n", f"``` Python\n{ADD}```",
        f"```python title='a'\n{ADD}```", f"~~~python\n{ADD}~~~", f"````\n{ADD}````", f"```python\n{ADD}",
        f"Sure! Here it is:\n\n```python\n{ADD}```\n\nIt adds.", f"The code: ```python\n{ADD}```",
        f"1. In a list:\n   ```python\n   {ADD.replace(chr(10), chr(10) + '   ').strip()}\n   ```\n",
        f"```bash\npip install add\n```\n```python\n{ADD}```\n```text\n3\n```",
        ADD, f"```{{.python}}\n{ADD}```", f"```python\n{ADD.rstrip()}```", f"{F}python\n{ADD}{F}<|im_end|>",
        f"<think>\ndef add(a, b):\n    return a - b\n</think>{F}python\n{ADD}{F}",
        f"<think>\n{F}python\ndef add(a, b):\n    return a - b\n{F}</think>\n{F}python\n{ADD}{F}",
        f"<think>use `a + b`</think>\n{F}python\n{ADD}{F}",
        f"{F}python\n{ADD}{F}\n<think>was that right?</think>\n",
        f"Some prose (with a bracket.\n\n{ADD}\nAnd it's done.",
    ],
)  # fmt: skip
def test_the_program_is_found(sandbox: Sandbox, text: str) -> None:
    program = parse_program(text, "add", sandbox)
    assert program.code.strip() == ADD.strip()
    assert program.problem is None


def test_code_is_taken_byte_for_byte(sandbox: Sandbox) -> None:
    code = "def f():\r\n\treturn 'é\\n'  \r\n\r\n"
    for text in (f"```python\r\n{code}```\r\n", code):
        assert parse_program(text, "f", sandbox).code == code


def test_of_several_programs_the_last_real_one_counts(sandbox: Sandbox) -> None:
    first, second = "def f():\n    return 1\n", "def f():\n    return 2\n"
    usage, tests = "print(f())\n", "def test_f():\n    assert f() == 2\n"
    blocks = "".join(f"```python\n{code}```\n" for code in (first, second, usage, tests))
    assert parse_program(blocks, "f", sandbox).code == second
    assert parse_program(blocks, None, sandbox).code == second
    assert parse_program(f"```\n{usage}```\n```\n1\n```", None, sandbox).code == "1\n"
    assert parse_program(f"```\n{ADD}```", "f", sandbox).code == ADD


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("```python\n\n```", "empty"),
        ("<think>\n" + ADD, "nothing but reasoning"),
        ("x" * (MAX_ACTION_CHARS + 1), "too long: 65537 characters, of at most 65536"),
        ("x" * 10_000_000, "too long"),
        ("x = '\0'", "null byte"),
        ("```python\nx = '\ud800'\n```", r"lone surrogate (U+D800)"),
    ],
)
def test_answers_without_a_program_are_explained(sandbox: Sandbox, text: str, problem: str) -> None:
    assert problem in str(parse_program(text, "f", sandbox).problem)


# Tests


def texts(suite: Suite) -> list[str]:
    return [test.text for test in suite.tests if test.fault is None]


def test_a_suite(sandbox: Sandbox) -> None:
    text = (
        "Tests:\n```python\nimport math\nx = [1]\nassert f(x) == math.inf, 'why'\n"
        "for i in x:\n    assert f(i)\nprint('ok')\n```\nand\n```\nassert f(x) == 2\nassert f(\n```"
    )
    suite = parse_suite(text, PLAIN, sandbox)
    assert texts(suite) == [
        "assert f([1]) == float('inf')",
        "assert f(1) == True",
        "assert f([1]) == 2",
    ]
    reason = "cannot be parsed: '(' was never closed"
    assert suite.dropped == (Dropped(reason, "assert f(", True, InvalidReason.UNPARSABLE, 3),)
    first = suite.tests[0]
    assert first.call == encoded_arguments([[1]], {})
    assert codec.decode(first.predicted) == float("inf")
    assert (first.call_text, first.value, first.absolute) == ("f([1])", "float('inf')", None)
    assert suite.nonprintable_ratio == 0


def test_one_call_has_one_text(sandbox: Sandbox) -> None:
    written = ["2", "n=2", "1 + 1", "2, 2", "2, by=2", "by=2, n=2", "*[2]", "**{'n': 2}", "n", "0b10", "len('ab')"]  # fmt: skip
    text = "n = 2\n" + "\n".join(f"assert f({each}) == 4" for each in written)
    suite = parse_suite(text, DOUBLE, sandbox)
    assert len(suite.tests) == len(written)
    calls = {(test.call, test.call_text) for test in suite.tests}
    assert calls == {(encoded_arguments([2], {}), "f(2)")}
    other = parse_suite("assert f(by=3, n=1) == 3", DOUBLE, sandbox)
    assert texts(other) == ["assert f(1, 3) == 3"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the answer is empty"),
        ("```python\n```", "the answer holds no test"),
        (
            "x" * (MAX_ACTION_CHARS + 1),
            "the answer is too long: 65537 characters, of at most 65536",
        ),
        ("I cannot do that.", "cannot be parsed: invalid syntax"),
        ("assert g(1) == 2\n" * 9, "the answer holds no test"),
        ("<think>assert f(1) == 2", "the answer is nothing but reasoning"),
    ],
)
def test_answers_without_tests_are_explained(sandbox: Sandbox, text: str, reason: str) -> None:
    suite = parse_suite(text, PLAIN, sandbox)
    assert suite.tests == ()
    assert [item.reason for item in suite.dropped] == [reason]
    assert not suite.dropped[0].invalid


BAD = {
    "null byte": "'\0'", "surrogate": "'\ud800'", "brackets": "(" * 30_000, "exit": "exit()", "digits": "1" * 60_000,
    "hexadecimal": "0x" + "f" * 60_000, "repeated": "[0] * 10**9", "power": "10**10**10", "signs": "-" * 60_000 + "1",
    "sum": "+".join("1" * 30_000), "own call": "f(1)", "own call deep": "[{1: f(2)}]", "lambda": "lambda: 1",
    "walrus": "(x := 1)", "name": "unknown", "comprehension": "[i for i in range(10**9)]", "star": "*[0] * 10**9",
    "attribute": "x" + ".a" * 20_000, "format": "'%9999999999d' % 1", "keyword": "**{1: 2}", "string": "'" * 3,
}  # fmt: skip


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_hostile_parts_harm_only_themselves(sandbox: Sandbox, bad: str) -> None:
    started = time.monotonic()
    text = f"assert f(1) == 2\nassert f({bad}) == 1\nassert f(2) == 3\n"
    suite = parse_suite(text, PLAIN, sandbox)
    assert texts(suite) == ["assert f(1) == 2", "assert f(2) == 3"]
    assert [item.invalid for item in suite.dropped] == [True]
    assert suite.dropped[0].reason
    assert time.monotonic() - started < 20


HOSTILE = {
    "10 MB": "assert f(1) == 2\n" * 600_000, "brackets": "[" * 100_000, "brackets that fit": "(" * 65_000,
    "names": "a=[0]*20000\n" + "b=a*1\n" * 8_000, "doubling": "a=[1]\n" + "a=[a,a]\n" * 5_000,
    "loops": "".join(" " * i + f"for i{i} in range(999):\n" for i in range(20)) + " " * 20 + "f(1)\n",
    "tables": "@pytest.mark.parametrize('n', range(1000))\n" * 1_000 + "def test(n):\n    assert f(n) > 0\n",
    "prose": "word word (\n" * 5_000, "defs": "def test_a(:\n    assert f(1) == 2\n" * 1_500, "open": "assert f([\n" * 5_000,
    "quotes": '"""\n' * 16_000, "fences": "```\n" * 16_000, "both": '```\n"""\n```\n' * 4_500, "tags": "<think>" * 9_000,
    "and": "assert " + " and ".join(["f(1) == 2"] * 4_000), "chain": "assert f(1)" + " == 1" * 12_000,
    "json": "{" * 60_000 + '"assert_statements"', "json list": '{"assert_statements": ' + "[" * 60_000,
    "json texts": '{"assert_statements": [' + '"assert f(1) == 2", ' * 3_000, "spaces": " " * 65_000 + "~~~`",
    "tildes": "~~~ " * 16_000 + "`", "backticks": "`" * 65_000, "carriage returns": "\r" * 65_000,
    "hashes": f"assert f({{{','.join(str(i * (2**61 - 1)) for i in range(2_500))}}}) == 1",
    "methods": "class T:\n  x = f(1)\n" + "  x.y = 1\n" * 6_000, "names forgotten": "".join(f"a{i}=[]\na{i}.b()\n" for i in range(2_400)),
    "many": "".join(f"assert f({i})==1\n" for i in range(3_000)),
    "much": "x='a'*19000\n" + "".join(f"assert f(x*{i}) == 1\n" for i in range(99)),
    "memory": "x='a'*19000\n" + "".join(f"assert f([x]*{19_000 - i}) == 1\n" for i in range(99)),
    "indents": "".join(" " * i + "if x:\n" for i in range(300)), "at": "@\n" * 30_000, "not": "assert " + "not " * 15_000 + "f(1)",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_answers_cost_little_and_are_explained(sandbox: Sandbox, text: str) -> None:
    started = time.monotonic()
    suite = parse_suite(text, PLAIN, sandbox)
    program = parse_program(text, "f", sandbox)
    assert time.monotonic() - started < 20
    assert suite.tests or suite.dropped
    assert len(suite.tests) <= 64
    assert sum(len(test.text) for test in suite.tests) < 200_000
    assert isinstance(program.code, str)


def test_a_batch_is_the_same_as_one_by_one(sandbox: Sandbox) -> None:
    answers = [
        ("assert f(1) == 2\nassert g(2) == 3", PLAIN),
        ("", PLAIN),
        ("(" * 60_000, DOUBLE),
        ("assert f(1) == '\0'", DOUBLE),
        *((f"y = {n}\nassert f(y) == {n}\n" * 300, DOUBLE) for n in range(5)),
    ]
    assert parse_suites(answers, sandbox) == [parse_suite(*each, sandbox) for each in answers]
    assert parse_suites([], sandbox) == []
    programs = [(text, "f") for text, _ in answers]
    assert parse_programs(programs, sandbox) == [parse_program(*each, sandbox) for each in programs]


def test_nonprintable_ratio_is_of_the_whole_answer(sandbox: Sandbox) -> None:
    assert nonprintable_ratio("") == 0
    assert nonprintable_ratio(string.printable) == 0
    assert nonprintable_ratio("ab\0é") == 0.5
    assert parse_suite("é: ```f(1)```", PLAIN, sandbox).nonprintable_ratio == 1 / 13
    assert parse_suite("é" * 70_000, PLAIN, sandbox).nonprintable_ratio == 1


def test_random_texts_never_raise(sandbox: Sandbox) -> None:
    rng = random.Random(0)
    parts = [
        "```", "~~~", "python", "\n", "assert f(1) == 1", "def f():", "\0", "\ud800", " ", "(", '"""', "\r", "    ",
        "for x in [1]:", "<think>", "</think>", '{"assert_statements": ["', "class T:", "self.assertEqual(f(2), 3)",
        "x = ", "@pytest.mark.parametrize('x', [1])", "with pytest.raises(E):", "def test_a(x):", "assert", "f(x)", "- ",
    ]  # fmt: skip
    answers = ["".join(rng.choices(parts, k=rng.randrange(30))) for _ in range(300)]
    answers += ["\n".join(rng.choices(parts, k=rng.randrange(30))) for _ in range(300)]
    programs = parse_programs([(text, "f") for text in answers], sandbox)
    assert all(isinstance(program, Program) for program in programs)
    suites = parse_suites([(text, PLAIN) for text in answers], sandbox)
    assert all(isinstance(suite, Suite) for suite in suites)
    assert any(suite.tests for suite in suites)
    assert not any("Error:" in item.reason for suite in suites for item in suite.dropped)


# Failures of ours


def analysts() -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        try:
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if parent == os.getpid() and "analyst" in (folder / "cmdline").read_text():
                found.append(int(folder.name))
        except (OSError, ValueError, IndexError):
            continue
    return found


@pytest.mark.slow
def test_a_killed_analysis_process_changes_nothing() -> None:
    text = "\n".join(f"assert f({k}) == {2 * k}" for k in range(40)) + "\n# x" * 10_000
    with Sandbox(workers=1) as own:
        wanted = parse_suite(text, DOUBLE, own)
        for number in (1, 6):

            def kill(delay: float = 0.001 * number) -> None:
                time.sleep(delay)
                for process in analysts():
                    os.kill(process, signal.SIGKILL)

            thread = threading.Thread(target=kill)
            thread.start()
            found = parse_suites([(text, DOUBLE)] * 9, own)
            thread.join()
            assert found == [wanted] * 9


def test_what_is_always_killed_is_raised_and_not_remembered(monkeypatch):
    problem = Problem("fresh", "def f(n: int):\n", "f", "def f(n):\n    return n  # only here")
    with Sandbox(workers=1) as own:

        def fails(*_: object) -> None:
            raise InfraError("killed")

        with monkeypatch.context() as patch:
            patch.setattr(own, "analyse", fails)
            with pytest.raises(InfraError):
                parse_suite("assert f(1) == 1", problem, own)
            with pytest.raises(InfraError):
                parse_program("def f(): pass", "f", own)
        assert texts(parse_suite("assert f(1) == 1", problem, own)) == ["assert f(1) == 1"]
