"""The game compares as its problem says: by its rule, its tolerance, its checker; as released under strict_paper."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from codea1_env import compare
from codea1_env.compare import check_replies
from codea1_env.game import Game, act_together
from codea1_env.oracle import BrokenReferenceError, Oracle
from codea1_env.problems import Problem, read_problems
from codea1_env.referee import Referee, RefereeConfig, Round, Verdict
from codea1_env.responses import parse_suites
from codea1_env.rewards import RewardConfig
from codea1_env.sandbox import CallResult, Case, Limits, Outcome, Sandbox
from codea1_env.subjects import Subject

WORDS = [chr(97 + n) * 3 for n in range(24)]
PAIRS = [((*WORDS[n : n + 4],), (*WORDS[n + 1 : n + 5],)) for n in range(20)]
PAIRS += [((n, n * 7, n + 9), (n + 9, n * 7, "x")) for n in range(20, 60)]
ORDERED = "def {}(a, b):\n    return [x for x in reversed(a) if x in b] * 2\n"


def judge(
    sandbox: Sandbox, problem: Problem, code: str, tests: list[str], **options: Any
) -> Verdict:
    options.setdefault("rewards", RewardConfig(num_tests=64))
    referee = Referee(sandbox, RefereeConfig(domain="any", **options))
    [verdict] = referee.judge([Round(problem, code, [tests])])
    return verdict


def outcomes(verdict: Verdict) -> list[tuple[str, str | None]]:
    return [(test.status, test.outcome and test.outcome.value) for test in verdict.suites[0].tests]


def problem(code: str, **fields: Any) -> Problem:
    return Problem("demo", "def f(n): ...", "f", f"def f(n): {code}", **fields)


@pytest.mark.parametrize(("file", "rule"), [("mbpp", None), ("mbppplus", "set")])
def test_whoever_has_another_order_loses_nothing(sandbox, shared_data: Path, file, rule):
    """MBPP/2: what two tuples share. In the tests of EvalPlus as a set; in the first ones as a tuple."""
    problems = (each.problem for each in read_problems(shared_data / f"{file}.jsonl.gz"))
    shared = next(each for each in problems if each.task_id == "MBPP/2")
    shared = shared if rule else dataclasses.replace(shared, compare="set")
    name = shared.entry_point
    tests = [f"assert {name}({a}, {b}) == {[x for x in a if x in b]}" for a, b in PAIRS]
    verdict = judge(sandbox, shared, ORDERED.format(name), tests)
    assert len(PAIRS) == 60
    assert outcomes(verdict) == [("kept", "pass")] * 60
    assert (verdict.failed, verdict.code_reward) == ((), 1.0)
    wrong = judge(sandbox, shared, ORDERED.format(name).replace("* 2", "[1:]"), tests)
    assert len(wrong.failed) == 60
    assert wrong.code_reward == 0.0


def test_two_runs_of_a_reference_agree_by_the_rule(sandbox):
    letters = problem("return list({*n})", compare="set")
    oracle = Oracle(sandbox, sandbox.limits)
    [suite] = parse_suites([("assert f('abcdefgh') == []", letters)], sandbox)
    for by_rule, fault in ((True, None), (False, "non-deterministic")):
        subject = Subject.of(letters, with_rule=by_rule)
        truth = oracle.ask({subject: [suite.tests]})[subject]["f('abcdefgh')"]
        assert (truth.fault and truth.fault.value) == fault


@pytest.mark.parametrize(
    ("reference", "fields", "program", "predicted", "status", "passed"),
    [
        ("return (n, 2)", {}, "return [n, 2]", "(1, 2)", "kept", False),
        ("return (n, 2)", {}, "return (n, 2.0)", "[1, 2]", "corrected", True),
        ("return (n, 2)", {"compare": "exact"}, "return [n, 2]", "[1, 2]", "kept", True),
        ("return 0.3", {"compare": "exact"}, "return 0.1 + 0.2", "0.1 + 0.2", "corrected", False),
        ("return 0.3", {}, "return 0.3 + 1e-3", "0.3", "kept", False),
        ("return 0.3", {"atol": 0.01}, "return 0.3 + 1e-3", "0.301", "kept", True),
        ("return [n, 2]", {"compare": "not-none"}, "return object()", "7", "kept", True),
        ("return [n, 2]", {"compare": "not-none"}, "return None", "None", "corrected", False),
        ("return None", {"compare": "not-none"}, "return 0", "None", "kept", False),
    ],
)
def test_rules_decide_of_programs_and_predictions(
    sandbox, reference, fields, program, predicted, status, passed
):
    demo = problem(reference, **fields)
    verdict = judge(sandbox, demo, f"def f(n): {program}", [f"assert f(1) == {predicted}"])
    [(found, outcome)] = outcomes(verdict)
    assert (found, outcome == "pass") == (status, passed)


def test_as_released_there_is_one_rule(sandbox):
    tests = ["assert f(4) == [4, 2, 1]"]
    for fields in ({"compare": "set"}, {"checker": "def check(*_): return True"}):
        demo = problem("return [1, 2, n]", **fields)
        program = "def f(n): return [n, 2, 1]"
        assert outcomes(judge(sandbox, demo, program, tests)) == [("kept", "pass")]
        strict = judge(sandbox, demo, program, tests, rewards=RewardConfig(strict_paper=True))
        assert outcomes(strict) == [("corrected", "fail")]


FENCED = "Like ```this```:\n```python\n\ndef f(n): return {}\n```\nor\n```python\ndef f(n): return {}\n```"


@pytest.mark.parametrize(
    ("answer", "first", "last"),
    [
        (FENCED.format(1, 2), "def f(n): return 1", "def f(n): return 2\n"),
        ("def f(n): return 3\n", "def f(n): return 3", "def f(n): return 3\n"),
        ("```python\ndef f(n): return 4", "```python\ndef f(n): return 4", "def f(n): return 4"),
        ("```\ndef f(n): return 5\n```", "```\ndef f(n): return 5\n```", "def f(n): return 5\n"),
    ],
)
def test_as_released_the_first_block_is_the_program(sandbox, answer, first, last):
    """The release takes what stands behind the first ```python, if a fence closes it, or all of the text."""
    for strict, code in ((True, first), (False, last)):
        config = RefereeConfig(RewardConfig(strict_paper=strict))
        [program] = Referee(sandbox, config).read_programs([problem("return n")], [answer])
        game = Game(problems=[problem("return n")], referee=config, sandbox=sandbox)
        game.reset(seed=0)
        act_together([game], [answer])
        assert program.code == game.observation()["code"] == code
        assert (game.book.max_tests_per_problem is None) is strict


ROOT = problem(
    "return int(n**0.5)",
    checker="def check(args, output, expected):\n    assert type(args) is tuple\n    return type(output) is int and output**2 == args[0]\n",
)


def test_a_checker_takes_any_right_answer(sandbox, monkeypatch):
    asked: list[int] = []
    call = Sandbox.call

    def counted(self: Sandbox, code: str, name: str, calls: Any, **options: Any) -> Any:
        asked.append(len(calls))
        return call(self, code, name, calls, **options)

    monkeypatch.setattr(Sandbox, "call", counted)
    program = "def f(n): return -int(n**0.5) if n < 50 else [1] * 10_000 if n < 80 else 1 / 0"
    tests = [f"assert f({n * n}) == {-n}" for n in range(1, 11)] + ["assert f(121) == 12"]
    verdict = judge(sandbox, ROOT, program, tests)
    assert outcomes(verdict) == (
        [("kept", "pass")] * 7 + [("kept", "fail")] + [("kept", "error")] * 2
        + [("corrected", "error")]
    )  # fmt: skip
    assert asked == [
        11,
        8,
    ]  # all predictions, and all replies of the run that differ from the reference's
    assert "checker" in verdict.suites[0].tests[7].message
    del asked[:]
    assert outcomes(judge(sandbox, ROOT, program, tests[::-1])) == outcomes(verdict)[::-1]
    assert asked == []


LISTED = problem(
    "return [n]",
    checker="import time\ndef check(args, output, expected):\n    end = time.process_time() + 0.05 * len(output)\n"
    "    while time.process_time() < end: pass\n    return sum(output) == args[0]\n",
)


def test_the_time_of_a_checker_is_that_of_a_run(sandbox, monkeypatch):
    """Other suites decide nothing: neither in the batch, nor in the same round, nor judged before."""
    limits = Limits(1.2, 20.0, run_cpu_time=1.2, run_wall_time=20.0)
    monkeypatch.setattr(compare, "_CHECKER_LIMITS", limits)
    program = "def f(n): return [1] * n"
    suites = [[f"assert f({n}) == [{n}]" for n in (2 + s, 3 + s)] for s in range(0, 8, 2)]
    rounds = [Round(LISTED, program, [suite]) for suite in suites]
    alone = [Referee(sandbox).judge([each])[0].suites for each in rounds]
    assert [suite.rewards.code for [suite] in alone] == [1.0] * 4
    assert [each.suites for each in Referee(sandbox).judge(rounds)] == alone
    referee = Referee(sandbox)
    for _ in range(2):
        [beside] = referee.judge([Round(LISTED, program, suites)])
        assert list(beside.suites) == [suite for [suite] in alone]


def test_a_checker_that_gives_no_answer_finds_nothing_right(sandbox):
    broken = dataclasses.replace(ROOT, checker="def check(*_): return 1 / 0")
    verdict = judge(sandbox, broken, "def f(n): return -2 if n == 4 else 3", ["assert f(4) == 2", "assert f(9) == 3"])  # fmt: skip
    assert outcomes(verdict) == [("kept", "fail"), ("kept", "pass")]


def test_a_checker_that_hangs_on_golden_cases_is_asked_once(sandbox, monkeypatch):
    """Of what players write nothing has been asked, and is not in a later batch, either."""
    checker = (
        "def check(args, output, expected):\n    while output != expected: pass\n    return True"
    )
    cases = [Case((4,), {}, 2), Case((9,), {}, 3)]
    broken = dataclasses.replace(ROOT, checker=checker, cases=cases)
    asked, call = [], Sandbox.call
    monkeypatch.setattr(
        Sandbox, "call", lambda *args, **kw: asked.append(args) or call(*args, **kw)
    )
    for _ in range(2):
        with pytest.raises(BrokenReferenceError, match="no answer on test 1"):
            judge(sandbox, broken, "def f(n): return 2", ["assert f(16) == 5"])
    assert len(asked) == 1


@pytest.mark.parametrize("body", ["return 1 / 0", "return None", "return False", "exit()"])
def test_a_checker_that_accepts_no_golden_output_is_an_error_in_the_data(body: str, sandbox: Sandbox) -> None:  # fmt: skip
    """Whoever said something else than the reference would be failed, and a tester paid."""
    cases = [Case((4,), {}, 2), Case((9,), {}, 3)]
    broken = dataclasses.replace(ROOT, checker=f"def check(*_): {body}", cases=cases)
    with pytest.raises(BrokenReferenceError, match="find expected outputs right"):
        judge(sandbox, broken, "def f(n): return 2", ["assert f(16) == 4"])


def test_what_no_checker_could_judge_pays_nobody(sandbox, monkeypatch):
    demo = dataclasses.replace(ROOT, checker=ROOT.checker + "# unjudged")
    failed = [CallResult(Outcome.UNJUDGED, "lost")]
    monkeypatch.setattr(Sandbox, "call", lambda self, code, name, calls, **_: failed * len(calls))
    verdict = judge(sandbox, demo, "def f(n): return -2", ["assert f(4) == 2"])
    assert outcomes(verdict) == [("not made", "unjudged")]
    assert verdict.code_reward is None
    verdict = judge(sandbox, demo, "def f(n): return 2", ["assert f(4) == -2"])
    assert outcomes(verdict) == [("not made", "unjudged")]
    assert not check_replies("", [], sandbox)


@pytest.mark.parametrize("contract", ["", "assert n < 9"])
def test_a_function_that_yields_is_called_as_a_list(sandbox: Sandbox, contract: str) -> None:
    first = problem("\n    yield from range(n)", contract=contract)
    tests = ["assert list(f(3)) == [0, 1, 2]", "assert f(1) == [0]", "assert f(2) == [1, 2]"]
    [verdict, listing, wrong] = Referee(sandbox).judge(
        [
            Round(first, code, [tests], ["assert list(f(4)) == [0, 1, 2, 3]"])
            for code in (first.reference, "def f(n): return [*range(n)]", "def f(n): return n")
        ]
    )
    assert [test.text for test in verdict.suites[0].tests] == [
        "assert list(f(3)) == [0, 1, 2]", "assert list(f(1)) == [0]", "assert list(f(2)) == [0, 1]"
    ]  # fmt: skip
    right = [("kept", "pass"), ("kept", "pass"), ("corrected", "pass")]
    assert outcomes(verdict) == outcomes(listing) == right
    assert [len(each.history_passed) for each in (verdict, listing, wrong)] == [1, 1, 0]
    assert len(wrong.failed) == 3


def test_a_helper_that_yields_makes_no_list(sandbox: Sandbox) -> None:
    inner = problem("\n    def g():\n        yield n\n    return sum(g())")
    assert outcomes(judge(sandbox, inner, inner.reference, ["assert f(3) == 3"])) == [
        ("kept", "pass")
    ]
