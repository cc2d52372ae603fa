"""Programs that read and print in the game: what they do on the inputs of a suite, worked out by hand, and what is read.

The reference prints the square of a number, K is 8 and alpha 0.5, as in tests/test_transcripts.py. Each input has a
process of its own, by the paper's rule as well: only the time of its job is shared there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import pytest

from codea1_env import CODER, TESTER, judge, judge_many, parallel_env
from codea1_env.problems import Problem
from codea1_env.reading.inputs import MAX_INPUT_BYTES, deviation, format_of
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.referee import Referee, RefereeConfig, Round, Verdict
from codea1_env.responses import parse_suite, read_program
from codea1_env.rewards import RewardConfig
from codea1_env.sandbox import Case, Limits, Sandbox

SQUARE = Problem("sq", "Print the square of a number.", "", "n = int(input())\nprint(n * n)\n")
LIMITS = Limits(call_cpu_time=0.15, call_wall_time=0.4)


class Paid(NamedTuple):
    """Rewards of the program and of the suite, and the tests that the book remembers."""

    code: float | None
    test: float
    book: int


def suite(*tests: tuple[object, object]) -> str:
    return json.dumps(
        [{"input": given, "output": printed} for given, printed in tests], ensure_ascii=False
    )


def squares(*numbers: int) -> str:
    return suite(*((f"{n}\n", f"{n * n}\n") for n in numbers))


ALL = squares(*range(1, 9))


def program(condition: str, end: str, head: str = "") -> str:
    return f"{head}n = int(input())\nif {condition}:\n    {end}\nelse:\n    print(n * n)\n"


ALL_PASS, ALL_FAIL = Paid(1.0, 0.5, 0), Paid(0.0, 1.0, 8)
SIX_FAIL, ONE_FAILS = Paid(2 / 8, 0.5 + 0.5 * 6 / 8, 6), Paid(7 / 8, 0.5 + 0.5 * 1 / 8, 1)
OUTCOMES: dict[str, tuple[str, str, Paid, Paid]] = {
    "right": (SQUARE.reference, ALL, ALL_PASS, ALL_PASS),
    "another value": (program("n > 2", "print(-1)"), ALL, SIX_FAIL, SIX_FAIL),
    "raises behind the output": (program("n > 2", "print(n * n); 1 / 0"), ALL, SIX_FAIL, SIX_FAIL),
    "another status": (program("n > 2", "print(n * n); raise SystemExit(1)"), ALL, SIX_FAIL, SIX_FAIL),
    "status 0": (program("n > 2", "print(n * n); raise SystemExit"), ALL, ALL_PASS, ALL_PASS),
    "ends the process": (program("n > 2", "__import__('os')._exit(1)"), ALL, SIX_FAIL, SIX_FAIL),
    "a signal": (program("n > 2", "import os; os.kill(os.getpid(), 11)"), ALL, SIX_FAIL, SIX_FAIL),
    "blanks behind": ("n = int(input())\nprint(n * n, end='  \\n\\n')", ALL, ALL_PASS, ALL_PASS),
    "no newline": ("n = int(input())\nprint(n * n, end='')", ALL, ALL_PASS, ALL_PASS),
    "blanks before": ("n = int(input())\nprint(f' {n * n}')", ALL, ALL_FAIL, ALL_FAIL),
    "another spelling": ("n = int(input())\nprint(f'{n * n}.0')", ALL, ALL_FAIL, ALL_FAIL),
    "one line more": ("n = int(input())\nprint(n * n)\nprint(0)", ALL, ALL_FAIL, ALL_FAIL),
    "prints nothing": ("input()", ALL, ALL_FAIL, ALL_FAIL),
    "reads too much": ("n = int(input())\ninput()\nprint(n * n)", ALL, ALL_FAIL, ALL_FAIL),
    "floods": (program("n > 2", "print('x' * 10**7)"), ALL, SIX_FAIL, SIX_FAIL),
    # A run affords two whole calls; what gave no answer else pays nobody. In the paper the job ends, and all of it pays.
    "loops": (program("n > 2", "while True: pass"), ALL, Paid(2 / 8, 0.5 + 0.5 * 2 / 8, 2), SIX_FAIL),
    "loops once": (program("n == 3", "while True: pass"), ALL, ONE_FAILS, SIX_FAIL),
    "sleeps at its exit": (
        program("n == 3", "import atexit, time; print(9); atexit.register(time.sleep, 60)"), ALL, ONE_FAILS, SIX_FAIL,
    ),
    "is no Python": ("print(int(input()) **", ALL, Paid(0.0, 0.0, 8), Paid(0.0, 0.0, 8)),
    # One prediction is wrong: it attacks with the right value, and counts as invalid. v = 2, i = 1.
    "wrong prediction": (SQUARE.reference, suite(("1", "1"), ("2", "5")), Paid(1.0, 0.5 * 2 / 8, 0), Paid(1.0, 0.5 * 2 / 8, 0)),
    "it breaks": (
        program("n > 1", "print(0)"), suite(("1", "1"), ("2", "5")), Paid(0.5, 0.5 * 2 / 8 + 0.5 / 8, 1),
        Paid(0.5, 0.5 * 2 / 8 + 0.5 / 8, 1),
    ),
    # v = 1: the others are the same input, or one on which the reference fails (i = 1).
    "said again": (SQUARE.reference, suite(("3", "9"), ("3\r\n", "9"), ("3 \n\n", "9")), Paid(1.0, 0.5 / 8, 0), Paid(1.0, 0.5 / 8, 0)),
    "no number": (SQUARE.reference, suite(("3", "9"), ("x", "9")), Paid(1.0, 0.5 / 8, 0), Paid(1.0, 0.5 / 8, 0)),
    "no test": (SQUARE.reference, "[]", Paid(None, 0.0, 0), Paid(0.0, 0.0, 0)),
}  # fmt: skip


def judged(
    sandbox: Sandbox,
    code: str,
    answer: str,
    history: Sequence[str] = (),
    *,
    problem: Problem = SQUARE,
    config: RefereeConfig | None = None,
) -> Verdict:
    config = config or RefereeConfig(limits=LIMITS)
    [verdict] = Referee(sandbox, config).judge([Round(problem, code, [[answer]], history)])
    return verdict


def of(verdict: Verdict) -> Paid:
    [found] = verdict.suites
    assert found.rewards.test is not None
    return Paid(found.rewards.code, found.rewards.test, len(found.failed))


@pytest.mark.parametrize("name", OUTCOMES)
@pytest.mark.parametrize("paper", [False, True])
def test_outcomes_by_hand(name: str, paper: bool, sandbox: Sandbox) -> None:
    code, answer, *expected = OUTCOMES[name]
    config = RefereeConfig(RewardConfig(strict_paper=paper), limits=LIMITS)
    assert of(judged(sandbox, code, answer, config=config)) == expected[paper]


@pytest.mark.parametrize("kind", ["program", "function"])
def test_slow_right_calls_are_paid_alike_whatever_was_asked_before(
    kind: str, sandbox: Sandbox
) -> None:
    """A run has time for five such calls; that others are known gives it none for more."""
    if kind == "program":
        problem, suites = SQUARE, (squares(1, 2, 3), squares(6, 7, 8), ALL)
        code = "import time\ntime.sleep(0.25)\nn = int(input())\nprint(n * n)\n"
    else:
        problem = Problem("f", "Square.", "f", "def f(n):\n    return n * n\n")
        code = "import time\ndef f(n):\n    time.sleep(0.25)\n    return n * n\n"
        tests = [f"assert f({n}) == {n * n}" for n in range(1, 9)]
        suites = ("\n".join(tests[:3]), "\n".join(tests[5:]), "\n".join(tests))
    config = RefereeConfig(
        limits=Limits(call_cpu_time=0.2, call_wall_time=0.4), reuse_programs=True
    )
    referee = Referee(sandbox, config)
    found = [referee.judge([Round(problem, code, [[suite]])])[0].suites[0] for suite in suites]
    fresh = judged(sandbox, code, suites[-1], problem=problem, config=config).suites[0]
    assert sum(fresh.outcome.failed) == 3, fresh
    assert found[-1] == fresh


def test_with_the_book(sandbox: Sandbox) -> None:
    """Of eight replayed tests four are passed."""
    history = [f"assert run('{n}\\n') == '{n * n}\\n'" for n in (-1, -2, -3, -4, 9, 10, 11, 12)]
    verdict = judged(sandbox, program("n > 4", "print(0)"), ALL, history)
    assert of(verdict) == Paid((4 / 8 + 4 / 8) / 2, 0.5 + 0.5 * (4 / 8 - 4 / 8 + 1) / 2, 4)
    assert verdict.history_passed == tuple(history[:4])


def test_a_suite_is_paid_the_same_alone_and_beside_others(sandbox: Sandbox) -> None:
    for code in (
        program("n > 4", "__import__('os')._exit(1)"),
        program("n in (3, 5)", "while True: pass"),
    ):
        suites = [[ALL], [squares(5, 3, 9)], [squares(1)], [squares(2, 1, 7, 6, 5)]]
        referee = Referee(sandbox, RefereeConfig(limits=LIMITS))
        [together] = referee.judge([Round(SQUARE, code, suites)])
        for number, alone in enumerate(
            referee.judge([Round(SQUARE, code, [each]) for each in suites])
        ):
            assert alone.suites[0] == together.suites[number]


# What testers write

WAYS = {
    "json": '[{"input": "3\\n", "output": "9\\n"}, {"input": "4\\n", "output": "16\\n"}]',
    "fence": 'Two tests:\n```json\n[{"input": "3", "output": "9"}, {"input": "4", "output": "16"}]\n```\nDone.',
    "open strings": '[{"input": "3\n", "output": "9\n"}, {"input": "4\n", "output": "16"}]',
    "lines": '{"input": "3", "output": "9"}\n{"input": "4", "output": "16"}',
    "a key": '{"tests": [{"input": "3", "output": "9"}, {"input": "4", "output": "16"}]}',
    "cut off": '[{"input": "3", "output": "9"}, {"input": "4", "output": "16"}, {"input": "5", "outp',
    "other names": '[{"stdin": "3", "stdout": "9"}, {"input": "4", "expected_output": "16"}]',
    "carriage returns": '[{"input": "3\\r\\n", "output": "9\\r\\n"}, {"input": "4\\r", "output": "16"}]',
    "crlf": 'So:\r\n```json\r\n[{"input": "3", "output": "9"},\r\n{"input": "4", "output": "16"}]\r\n```\r\n',
    "python": "tests = [{'input': '3', 'output': '9'}, {'input': '4', 'output': '16'},]",
    "triple quotes": '```python\n[{"input": """3\n""", "output": """9\n"""}, {"input": """4""", "output": "16"}]\n```',
    "asserts": 'assert run("3\\n") == "9\\n"\nassert run("""4\n""") == """16"""',
    "a test function": "```python\ndef test_it():\n    for n in (3, 4):\n        assert run(f'{n}') == str(n * n)\n```",
    "joined texts": 'assert run("\\n".join(["3"])) == str(9)\nassert run("{}\\n".format(1)) == "1"\nn = 4\nassert run(f"{n}\\n") == f"{n * n}"',
    "mapped texts": 'for items in ([3], [4]):\n    assert run(" ".join(map(str, items))) == "".join(str(n * n) for n in items)',
    "behind an assertion in prose": 'As `assert run("3") == "9"` says:\n[{"input": "3", "output": "9"}, {"input": "4", "output": "16"}]',
    "by name": 'assert run(stdin="3") == "9"\nassert "16" == run("4")',
    "stripped": 'assert run("3\\n").strip() == "9"\nshown = run("4")\nassert "16" == shown.rstrip()',
    "unicode": '[{"input": "\\u0033", "output": "9"}, {"input": "4", "output": "\\u00316"}]',
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_write_a_test(way: str, sandbox: Sandbox) -> None:
    found = parse_suite(WAYS[way], SQUARE, sandbox)
    texts = [test.text.replace("\\n'", "'").replace("\\r", "") for test in found.tests]
    assert texts == ["assert run('3') == '9'", "assert run('4') == '16'"]
    assert [each.invalid for each in found.dropped] == [True] * (way == "joined texts")


def test_json_in_an_input_is_no_list_of_tests(sandbox: Sandbox) -> None:
    answer = f"assert run({WAYS['json']!r}) == '2'"
    assert [test.text for test in parse_suite(answer, SQUARE, sandbox).tests] == [
        answer.replace("]') ==", "]\\n') ==")
    ]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (suite(("3\0", "9")), "the input has a NUL"),
        ('[{"input": "\\ud800", "output": "9"}]', "the input has a lone surrogate (U+D800)"),
        (suite((3, "9")), "a program reads one text"),
        (suite((["3"], "9")), "a program reads one text"),
        ('[{"input": "3"}]', "does not say what the program prints"),
        (suite(("é" * 33_000, "9")), "the input has 66,001 bytes, of at most 65,536"),
        ('assert run("3", "4") == "9"', "a program reads one text"),
        ('assert run("3\\0") == "9"', "the input has a NUL"),
        ('assert run("%d" % 3) == "9"', "arithmetic of something else than numbers"),
        ('assert run(f"{3:>100000000}") == "9"', "the text of such a value"),
        ('assert run(f"{n}") == "9"', "the value of n is not known"),
        ('assert run(str({1, 2})) == "9"', "the text of such a value"),
        ('assert run(",".join({"1", "2"})) == "9"', "the order of a set"),
        ('assert run(("x" * 9_000).join(["a"] * 9_000)) == "9"', "too large: it has too many items"),
        ('assert run("3") in ("9", "8")', ""),
        ('assert run("3")', "does not say what the program prints"),
        ('assert not run("3")', "does not say what the program prints"),
        ('assert run(str(b"3", "utf-8")) == "9"', "str(...) with such arguments is a call"),
        ('assert run("1" * 70000) == "9"', ""),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_invalid_with_its_reason(
    answer: str, reason: str, sandbox: Sandbox
) -> None:
    found = parse_suite(answer, SQUARE, sandbox)
    assert not found.tests
    [dropped] = found.dropped
    assert dropped.invalid
    assert dropped.reason == reason or not reason


def test_an_input_of_64_kilobytes_is_played(sandbox: Sandbox) -> None:
    counts = Problem("len", "Print the number of characters.", "", "print(len(input()))")
    size = MAX_INPUT_BYTES - 200
    answer = suite(("x" * size, f"{size}\n"))
    verdict = judged(sandbox, "print(min(60000, len(input())))", answer, problem=counts)
    assert of(verdict) == Paid(0.0, 0.5 / 8 + 0.5 / 8, 1)
    # The book replays it.
    again = judged(sandbox, counts.reference, "[]", verdict.failed, problem=counts)
    assert again.history_passed == verdict.failed


def test_what_the_book_could_not_replay_is_no_test(sandbox: Sandbox) -> None:
    """The text of a test with the reference's value is longer than an answer may be."""
    echo = Problem("echo", "Print the first characters.", "", "print(input()[:900])")
    answer = suite(("x" * (MAX_INPUT_BYTES - 200), "x"))
    verdict = judged(sandbox, "print(0)", answer, problem=echo)
    [test] = verdict.suites[0].tests
    assert (test.status, test.fault) == ("invalid", InvalidReason.NO_LITERAL)
    assert not verdict.failed


def test_tests_that_count_are_as_many_as_of_functions(sandbox: Sandbox) -> None:
    found = parse_suite(squares(*range(100)), SQUARE, sandbox)
    assert len(found.tests) == 64
    assert not any(each.invalid for each in found.dropped)


def test_numbers_are_outputs_and_other_data_is_wrong(sandbox: Sandbox) -> None:
    answer = suite(("3", 9), ("4", ["16"]), ("5", True), ("6", None))
    right, *wrong = judged(sandbox, SQUARE.reference, answer).suites[0].tests
    assert (right.status, right.text) == ("kept", "assert run('3\\n') == '9\\n'")
    assert len(wrong) == 3
    for test in wrong:
        assert (test.status, test.fault, test.passed) == (
            "corrected",
            InvalidReason.WRONG_VALUE,
            True,
        )
    [found] = parse_suite("assert int(run('3')) == 9", SQUARE, sandbox).tests
    assert found.text == "assert run('3\\n') == '9'"


def test_a_number_that_is_predicted_as_one_is_right_however_it_is_printed(sandbox: Sandbox) -> None:
    half = Problem("half", "Print half of a number.", "", "print(f'{int(input()) / 2:.2f}')")
    answer = (
        "import math\nassert float(run('4')) == 2.0\nassert math.isclose(float(run('5')), 2.5)\n"
        "assert abs(float(run('7')) - 3.5004) < 1e-3\nassert float(run('9')) == 4.51\n"
        "assert run('11') == 5.5"
    )
    tests = judged(sandbox, half.reference, answer, problem=half).suites[0].tests
    assert [test.status for test in tests] == ["kept"] * 3 + ["corrected"] * 2
    assert [test.text for test in tests[:2]] == [
        "assert run('4\\n') == '2.00\\n'",
        "assert run('5\\n') == '2.50\\n'",
    ]


def test_of_as_many_tests_the_last_count(sandbox: Sandbox) -> None:
    """A list behind an assertion in the prose; not the data of assertions behind it."""
    for answer in (
        f"As `assert run('9') == '1'` says little:\n{squares(3)}",
        f"cases = {squares(7)}\nfor case in cases:\n    assert run('3' + case['input'][1:]) == '9'",
    ):
        [test] = parse_suite(answer, SQUARE, sandbox).tests
        assert test.call_text == "run('3\\n')", answer


def test_conversions_of_formatted_texts(sandbox: Sandbox) -> None:
    answer = "n, s = 3, 'é'\nassert run(f'{n!s:3}{n:3}{s!r}') == f'{s!a:>8}'"
    [test] = parse_suite(answer, SQUARE, sandbox).tests
    assert test.text == "assert run(\"3    3'é'\\n\") == \"  '\\\\xe9'\""


# Which inputs a problem is for


def golden(*inputs: str) -> tuple[Case, ...]:
    return tuple(Case((text,)) for text in inputs)


@pytest.mark.parametrize(
    ("shown", "inside", "outside"),
    [
        (["1 2\n", "-5 7\n"], ["0 0", "+1 -1\r\n", "1 2  \n\n"], ["1", "1 2 3", "1\n2", "a b", "1.5 2", "", "\n"]),
        (["3\n1 2 3\n", "1\n7\n"], ["2\n1 2", "5\n1 2"], ["0", "0\n\n", "2 2\n1 2", "2\n1 x", "1\n2\n3"]),
        (["2\nab\nc\n", "3\na\nb\nc\n"], ["1\nabc", "4\na\nb\nc\nd"], ["0", "1\n2", "2\na b\nc", "ab\n2"]),
        (["2 2\n#.\n..\n", "1 3\n.#.\n"], ["1 1\n#", "3 1\n#\n#\n#"], ["1\n#", "1 1", "1 1\n# #"]),
        (["0.5\n", "2\n"], ["7", "1e-3", ".5", "-3."], ["x", "1 2", "1\n1"]),
        (["PUSH 3\nPUSH 1\nPOP\nPOP\nPUSH 2\n", "POP\n"], ["POP\nPOP", "PUSH 4\nPUSH 5\nPOP"], ["PUSH 1 2 POP x 3", "3"]),
        (["a 1 b\n", "c\n", "1 d\n", "e 5\n", "f 1 g 2\n"], ["9 x 9 x 9 x", "x"], ["3", "1 2"]),
        (["\n", "a\n\nb\n"], ["a\n\nb"], ["1\n"]),
        (["ab\n", "xyz\n"], ["q~\r\n"], ["\u00e9", "a\ufeff", "a\u200bb", "a\x08", "a\x1ab"]),
        (["\u00e9\n"], ["\u00fc", "a"], ["\u00fc\n\u00fc"]),
    ],
)  # fmt: skip
def test_formats(shown: list[str], inside: list[str], outside: list[str]) -> None:
    known = format_of(shown)
    assert known is not None
    assert {text: deviation(text, known) for text in (*inside, *shown)} == dict.fromkeys(
        (*inside, *shown), ""
    )
    assert not [text for text in outside if not deviation(text, known)]


def test_inputs_outside_the_format_are_invalid_unless_any_is_allowed(sandbox: Sandbox) -> None:
    problem = replace(SQUARE, cases=golden("3\n", "-4\n"))
    # Both are read by the reference.
    answer = suite(("5", "25"), ("5\n6", "25"), ("5 \n\n", "25"))
    [test, outside, again] = (
        judged(sandbox, SQUARE.reference, answer, problem=problem).suites[0].tests
    )
    assert (test.status, again.status) == ("kept", "duplicate")
    assert outside.fault is InvalidReason.OUTSIDE_FORMAT
    assert outside.reason == "outside the format: it has 2 lines, the golden inputs 1"
    config = RefereeConfig(domain="any", limits=LIMITS)
    found = judged(sandbox, SQUARE.reference, answer, problem=problem, config=config)
    assert [test.status for test in found.suites[0].tests] == ["kept", "kept", "duplicate"]


CHECK = "def check(stdin):\n    n = int(stdin)\n    assert n >= 0, 'n is not negative'\n    assert n < 100\n"


def status_of(problem: Problem, given: str, sandbox: Sandbox) -> tuple[str, InvalidReason | None]:
    [test] = (
        judged(sandbox, SQUARE.reference, suite((given, "25")), problem=problem).suites[0].tests
    )
    return test.reason, test.fault


def test_a_validator_says_which_inputs_are_valid(sandbox: Sandbox) -> None:
    problem = replace(SQUARE, contract=CHECK, cases=golden("3 4\n"))  # whose format does not count
    assert status_of(problem, "5", sandbox) == ("", None)
    outside = InvalidReason.OUTSIDE_CONTRACT
    assert status_of(problem, "-5", sandbox) == ("outside the contract: n is not negative", outside)
    assert status_of(problem, "100", sandbox) == ("outside the contract: n < 100", outside)
    reason, fault = status_of(problem, "x", sandbox)
    assert reason.startswith("the contract of the problem fails: ValueError")
    assert fault is InvalidReason.RAISES


@pytest.mark.parametrize(
    ("contract", "reason", "fault"),
    [
        ("def check(stdin): return True", "check returned bool, not None", InvalidReason.RAISES),
        (
            "def check(stdin): 1 / 0",
            "the contract of the problem fails: ZeroDivisionError",
            InvalidReason.RAISES,
        ),
        (
            "def check(stdin):\n    while True: pass",
            "takes too long on the validator",
            InvalidReason.TIMEOUT,
        ),
        (
            "def check(stdin) raise",
            "the contract of the problem fails: SyntaxError",
            InvalidReason.RAISES,
        ),
        ("import os\ndef check(stdin): os._exit(0)", "ends the process", InvalidReason.LIMIT),
    ],
)
def test_a_broken_validator_takes_no_test(
    contract: str, reason: str, fault: InvalidReason, sandbox: Sandbox
) -> None:
    said, why = status_of(replace(SQUARE, contract=contract), "5", sandbox)
    assert reason in said
    assert why is fault


@pytest.mark.parametrize(
    ("reference", "reason", "fault"),
    [
        ("if input() == '5': 1 / 0\nprint(25)", "raises on the reference", InvalidReason.RAISES),
        ("input()\nprint('  ')", "the reference prints nothing", InvalidReason.NO_LITERAL),
        ("print('x' * 10**7)", "more was printed than the limit allows", InvalidReason.LIMIT),
        ("print(25)\nraise SystemExit(3)", "ends the process", InvalidReason.LIMIT),
        ("while True: pass", "takes too long on the reference", InvalidReason.TIMEOUT),
        ("print(hash('a'))", "two runs on the reference differ", InvalidReason.NON_DETERMINISTIC),
        ("input()\ninput()\nprint(25)", "EOFError", InvalidReason.RAISES),
    ],
)
def test_where_the_reference_fails_there_is_no_test(
    reference: str, reason: str, fault: InvalidReason, sandbox: Sandbox
) -> None:
    said, why = status_of(replace(SQUARE, reference=reference), "5", sandbox)
    assert reason in said
    assert why is fault


def test_a_checker_of_programs_in_the_game(sandbox: Sandbox) -> None:
    checker = "def check(stdin, output, expected):\n    return int(output) ** 2 == int(stdin)"
    problem = Problem(
        "root", "Print a root.", "", "print(int(int(input()) ** 0.5))", checker=checker
    )
    answer = suite(("9", "-3"), ("16", "5"))
    [right, wrong] = (
        judged(sandbox, "print(-int(int(input()) ** 0.5))", answer, problem=problem).suites[0].tests
    )
    assert (right.status, right.passed) == ("kept", True)
    assert (wrong.status, wrong.passed) == ("corrected", True)


def test_printed_decimals_within_a_tolerance(sandbox: Sandbox) -> None:
    problem = Problem("third", "Print a third.", "", "print(int(input()) / 3)", atol=1e-4)
    answer = suite(("1", "0.33333"), ("2", "0.667"))
    verdict = judged(sandbox, "print(round(int(input()) / 3, 5))", answer, problem=problem)
    assert [(test.status, test.passed) for test in verdict.suites[0].tests] == [
        ("kept", True),
        ("corrected", True),
    ]
    exact = replace(problem, atol=0)
    assert not judged(sandbox, "print(round(int(input()) / 3, 5))", answer, problem=exact).history
    assert [
        test.passed
        for test in judged(sandbox, "print(0.33333)", answer, problem=exact).suites[0].tests
    ] == [False] * 2


# What coders write


@pytest.mark.parametrize(
    "answer",
    [
        SQUARE.reference,
        f"Here it is:\n```python\n{SQUARE.reference}```\nAn example:\n```\n3\n```\nprints\n```python\nprint(9)\n```",
        f"The program is:\n\n{SQUARE.reference}\nIt prints the square!",
        "```\ndef main():\n    n = int(input())\n    print(n * n)\n\nif __name__ == '__main__':\n    main()\n```",
        "```python\ndef main():\n    n = int(input())\n    print(n * n)\n```\nIt is called so:\n```python\nmain()\n```",
        f"```python\n{SQUARE.reference}```\nExample:\n```python\nprint(input())\n```",
        f"```python\nprint(input())\n```\nThat is wrong. Better:\n```python\n{SQUARE.reference}```",
    ],
)
def test_programs_in_answers(answer: str, sandbox: Sandbox) -> None:
    found = read_program(SQUARE, answer, sandbox)
    assert found.problem is None
    assert of(judged(sandbox, found.code, ALL)) == ALL_PASS


def test_an_episode(sandbox: Sandbox) -> None:
    env = parallel_env(problems=[SQUARE], sandbox=sandbox, max_rounds=2)
    observations, _ = env.reset(seed=0)
    assert observations[CODER]["entry_point"] == ""
    env.step({CODER: "print(4)"})
    observations, rewards, *_ = env.step({TESTER: squares(2, 3, 4)})
    assert rewards == {CODER: 1 / 3, TESTER: pytest.approx(0.5 * 3 / 8 + 0.5 * 2 / 8)}
    assert observations[CODER]["tests"] == "assert run('3\\n') == '9\\n'"
    assert "printed '4', expected '9'" in observations[CODER]["feedback"]
    env.step({CODER: SQUARE.reference})
    *_, infos = env.step({TESTER: squares(2)})
    assert infos[CODER]["program"]["executes"]
    assert [test["outcome"] for test in infos[TESTER]["history"]] == ["pass"]


def test_the_judge_alone() -> None:
    answer = suite(("2", "4"), ("3", "9"))
    verdict = judge(SQUARE.reference, "print(4)", answer, entry_point="")
    assert (verdict.code_reward, verdict.failed) == (0.5, ("assert run('3\\n') == '9\\n'",))
    assert judge_many([(SQUARE, SQUARE.reference, answer)])[0].code_reward == 1.0


def test_spellings_of_one_input_are_one_test(sandbox: Sandbox) -> None:
    """Where no golden input has such blanks or numbers, they make no other test, and fail no right program."""
    reference = "n = int(input())\nprint(sum(map(int, input().split())))"
    cases = [("3\n1 2 3\n", "6\n"), ("1\n5\n", "5\n"), ("2\n-1 7\n", "6\n")]
    shown = tuple(Case((each,), {}, printed) for each, printed in cases)
    problem = Problem("sum", "Sum.", "", reference, cases=shown)
    spelled = [
        "3\n1 2 3",
        "03\n1 2 3",
        "+3\n1 2 3",
        " 3\n1 2 3",
        "3\n1  2 3",
        "3\n1\t2 +3",
        "3\n01 2 3",
    ]
    suite = [json.dumps([{"input": each, "output": "6"} for each in spelled])]
    strict = "input()\nprint(sum(map(int, input().split(' '))))"
    [verdict] = Referee(sandbox).judge([Round(problem, strict, [suite])])
    tests = verdict.suites[0].tests
    assert [test.status for test in tests] == ["kept", *["duplicate"] * (len(spelled) - 1)]
    assert verdict.code_reward == 1.0
    spaced = replace(problem, cases=(*shown, Case((" 2\n1  1\n",), {}, "2\n")))
    [verdict] = Referee(sandbox).judge([Round(spaced, reference, [suite])])
    assert [test.status for test in verdict.suites[0].tests].count("kept") > 1


@pytest.mark.parametrize(
    ("printed", "expected", "atol", "passed"),
    [("05", "5", 0.0, False), ("5.0000001", "5", 0.0, False), ("5 ", "5\n", 0.0, True), ("5.0000001", "5", 1e-6, True)],
)  # fmt: skip
def test_printed_numbers_are_compared_as_they_are_written(
    printed: str, expected: str, atol: float, passed: bool, sandbox: Sandbox
) -> None:
    case = Case(("",), {}, expected)
    code = f"print({printed!r})"
    [result] = sandbox.run_cases(code, "", [case], compare="lines", atol=atol)
    assert result.passed == passed
