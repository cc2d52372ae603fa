"""Players of problems whose programs read and print: scripts, tables, planted faults, prompts, and how they are measured."""

from __future__ import annotations

import random
from dataclasses import replace

import gymnasium
import numpy as np
import pytest

import codea1_env  # noqa: F401  registers the environments
from codea1_env.agents import FixedAgent
from codea1_env.agents.input_variants import near_inputs
from codea1_env.agents.llm.prompts import WORDINGS, OneByOne, make_wording
from codea1_env.agents.planted import NumbersTester
from codea1_env.agents.scripted import BoundaryTester, CopierTester, GoldenTester, MutantCoder
from codea1_env.agents.tabular import pool_of_programs, pool_of_tests
from codea1_env.evaluation.held_out import hold_out, kills, pass_rates
from codea1_env.evaluation.planting import KINDS, Planter
from codea1_env.evaluation.samples import SuiteSample
from codea1_env.evaluation.suites.scores import SuiteJudge
from codea1_env.mistake_book import MistakeBook
from codea1_env.problems import Problem
from codea1_env.reading.examples import split_examples
from codea1_env.reading.inputs import deviation, format_of
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.referee import Referee, Round, TestVerdict
from codea1_env.rollout import RolloutConfig, rollout
from codea1_env.sandbox import Case, Sandbox
from codea1_env.spaces import observe


def problem(name: str, text: str, reference: str, *cases: tuple[str, str]) -> Problem:
    shown = "".join(f"\nExample input:\n{a}Example output:\n{b}" for a, b in cases[:1])
    golden = tuple(Case((stdin,), {}, stdout) for stdin, stdout in cases)
    return Problem(f"t/{name}", f"{text}\n{shown}", "", reference, cases=golden)


LARGEST = problem(
    "largest", "Print the largest of n whole numbers.",
    "n = int(input())\nwords = input().split()\nassert len(words) == n\nbest = None\nfor word in words:\n    if best is None or int(word) > best:\n        best = int(word)\nprint(best)\n",
    ("3\n1 5 2\n", "5\n"), ("1\n-4\n", "-4\n"), ("2\n7 7\n", "7\n"), ("4\n-9 -1 -3 -2\n", "-1\n"), ("2\n0 8\n", "8\n"),
    ("5\n3 1 4 1 5\n", "5\n"),
)  # fmt: skip
DOUBLE = problem(
    "double", "Print twice the number n.", "n = int(input())\nprint(2 * n)\n",
    ("4\n", "8\n"), ("-1\n", "-2\n"), ("0\n", "0\n"),
)  # fmt: skip
BOTH = [LARGEST, DOUBLE]

# Examples in statements

EXAMPLES = ["assert run('3\\n1 2\\n') == '5\\n'", "assert run('6\\n') == '8\\n'"]
STATEMENTS = {
    "own": "Sum.\n\nInput: one line.\nOutput: a sum.\n\nExample input:\n3\n1 2\nExample output:\n5\n\nExample input:\n6\nExample output:\n8\n",
    "apps": "Sum.\n\n-----Input-----\n\nThe line.\n\n-----Output-----\n\nPrint it.\n\n-----Examples-----\nInput\n3\n1 2\n\nOutput\n5\n\nInput\n6\n\nOutput\n8\n\n-----Note-----\n\nNothing.",
    "codeforces": "Sum.\n\nInput\n\nThe line.\n\nOutput\n\nPrint it.\n\nExamples\n\nInput\n\n3\n1 2\n\n\nOutput\n\n5\n\n\nInput\n\n6\n\n\nOutput\n\n8\n\nNote\n\nNothing.",
    "atcoder": "Sum.\n\nInput\n\nThe Input is given.\n\nOutput\n\nPrint it.\n\nSample Input 1\n\n3\n1 2\n\nSample Output 1\n\n5\n\nSample Input 2\n\n6\n\nSample Output 2\n\n8",
    "fences": "Sum.\n\n### Example Input\n```\n3\n1 2\n```\n### Example Output\n```\n5\n```\n### Example Input\n```\n6\n```\n### Example Output\n```\n8\n```\n",
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_examples_of_a_statement(name: str) -> None:
    rest, tests = split_examples(STATEMENTS[name], "")
    assert tests == EXAMPLES
    assert rest.startswith("Sum.")
    assert "1 2" not in rest


def test_a_statement_without_examples_stays_as_it_is() -> None:
    text = "Sum.\n\nInput: two numbers.\nOutput: their sum.\n"
    assert split_examples(text, "") == (text, [])


# Scripts


def judged(tester: object, sandbox: Sandbox) -> list[tuple[TestVerdict, ...]]:
    answers = tester.act([observe(each, code="print(5)", turn=1) for each in BOTH])  # type: ignore[attr-defined]
    rounds = [Round(each, "print(5)", [[text]]) for each, text in zip(BOTH, answers, strict=True)]
    return [verdict.suites[0].tests for verdict in Referee(sandbox).judge(rounds)]


def test_scripted_testers(sandbox: Sandbox) -> None:
    golden = judged(GoldenTester(BOTH, 3, sandbox=sandbox), sandbox)
    assert [[test.status for test in each] for each in golden] == [["kept"] * 3] * 2
    copied = judged(CopierTester(), sandbox)
    assert [[test.text for test in each] for each in copied] == [[each.tests[0]] for each in BOTH]
    for near in judged(BoundaryTester(BOTH, sandbox), sandbox):
        assert len(near) == 8
        assert {test.fault for test in near} <= {None, InvalidReason.WRONG_VALUE}  # a guess
        assert any(test.broke for test in near)


@pytest.mark.parametrize(
    ("inputs", "has"),
    [
        (["3\n1 5 2\n", "1\n4\n"], ["1\n1\n", "3\n1 1 1\n", "3\n1 2 5\n", "3\n5 2 1\n", "3\n5 5 2\n", "3\n0 5 2\n"]),
        (["4 9\n", "-7 30\n"], ["0 9\n", "30 9\n", "-7 9\n", "4 0\n", "-4 9\n"]),
        (["2\nab\nc\n", "3\nx\ny\nz\n"], ["1\nab\n", "2\nba\nc\n", "2\na\nc\n"]),
        (["abc\n", "z\n"], ["a\n", "cba\n", "aaa\n"]),
        (["", ""], []),
    ],
)  # fmt: skip
def test_inputs_near_golden_ones_have_their_format(inputs: list[str], has: list[str]) -> None:
    known = format_of(inputs)
    assert known is not None
    made = near_inputs(inputs)
    assert set(has) <= set(made[0])
    assert not [text for each in made for text in each if deviation(text, known)]
    assert all(text not in each for text, each in zip(inputs, made, strict=True))


def test_mutants_of_scripts(sandbox: Sandbox) -> None:
    coder = MutantCoder([LARGEST], sandbox, seed=1)
    codes = {coder.act([observe(LARGEST)])[0] for _ in range(30)} - {LARGEST.reference}
    golden = "\n".join(LARGEST.tests)
    verdicts = Referee(sandbox).judge([Round(LARGEST, code, [[golden]]) for code in codes])
    assert len(codes) > 5
    assert sum(bool(each.failed) for each in verdicts) > len(codes) / 2


# Tables, and what is held back


def test_pools_of_tables(sandbox: Sandbox) -> None:
    [split, _] = hold_out(BOTH, sandbox)
    tests = pool_of_tests(split, sandbox).items
    held = {f"assert run({case.args[0]!r})" for case in split.cases}
    assert len(tests) > 12
    assert not [test for test in tests if test.partition(" == ")[0] in held]
    programs = pool_of_programs(split).items
    verdicts = Referee(sandbox).judge(
        [Round(LARGEST, code, [list(split.tests)]) for code in programs]
    )
    assert verdicts[0].code_reward == 1.0
    assert not verdicts[-1].code_executes
    assert any(each.code_executes and each.code_reward < 1 for each in verdicts)


class Fixed(FixedAgent):
    """Gives one answer always."""

    def __init__(self, answer: str) -> None:
        self.answer = answer

    def act(self, observations):
        return [self.answer] * len(observations)


def test_held_out_measures(sandbox: Sandbox) -> None:
    held = hold_out([LARGEST], sandbox)
    also = {
        LARGEST.task_id: ["assert run('2\\n1 2\\n') == '2\\n'", "assert run('1\\n0\\n') == '0\\n'"]
    }
    right = pass_rates(Fixed(LARGEST.reference), held, sandbox, 1, also)[LARGEST.task_id]
    assert (right.held_out, right.also) == (1.0, 1.0)
    wrong = pass_rates(Fixed("print(2)"), held, sandbox, 1, also)[LARGEST.task_id]
    assert (wrong.held_out, wrong.also) == (0.0, 0.5)
    golden = GoldenTester([LARGEST], sandbox=sandbox)
    flags = kills(golden, held, Referee(sandbox))[LARGEST.task_id]
    assert flags.count(True) > len(flags) / 2


@pytest.mark.parametrize("kind", KINDS)
def test_planted_faults(kind: str, sandbox: Sandbox) -> None:
    """Whoever tests the numbers of the text finds those that stand there."""
    rng = random.Random(3)
    words = problem("words", "Print the number of words.", "print(len(input().split()))\n", ("a b\n", "2\n"))  # fmt: skip
    planter = Planter([*BOTH, words], sandbox)
    assert planter.left_out == {words.task_id: "it reads no whole number that may have any value"}
    [made] = planter.plant([(DOUBLE, kind)], rng)
    assert made is not None
    suites = [DOUBLE.tests, [f"assert run('{made.value}\\n') == '{2 * made.value}\\n'"]]
    [verdict] = Referee(sandbox).judge([Round(DOUBLE, made.code, suites)])
    assert [bool(each.failed) for each in verdict.suites] == [False, True]
    answer = NumbersTester(None).act([observe(DOUBLE, code=made.code, turn=1)])[0]
    [verdict] = Referee(sandbox).judge([Round(DOUBLE, made.code, [[answer]])])
    assert bool(verdict.failed) == (KINDS[kind].rung == "copy")


@pytest.mark.parametrize("kind", ["equal", "table", "minus"])
def test_faults_of_numbers_that_are_read_in_a_loop(kind: str, sandbox: Sandbox) -> None:
    planter = Planter([LARGEST], sandbox)
    [made] = planter.plant([(LARGEST, kind)], random.Random(3))
    assert made is not None
    assert "def number(text):" in made.code
    suites = [LARGEST.tests, [f"assert run('2\\n1 {made.value}\\n') == '{made.value}\\n'"]]
    [verdict] = Referee(sandbox).judge([Round(LARGEST, made.code, suites)])
    assert [bool(each.failed) for each in verdict.suites] == [False, True]


# Evaluation


def test_tests_of_programs_are_scored(sandbox: Sandbox) -> None:
    judge = SuiteJudge(sandbox, 3)
    check = judge.check(LARGEST)
    assert not check.fault
    assert check.wrong
    answer = '[{"input": "3\\n1 5 2\\n", "output": "5"}, {"input": "2\\n1 2\\n", "output": "1"}, {"input": "3\\n4 x 2\\n", "output": "4"}]'
    score = judge.judge(
        LARGEST,
        check,
        SuiteSample(LARGEST.task_id, 0, {"task_id": LARGEST.task_id, "answer": answer}),
    )
    assert [test.fault and test.fault.value for test in score.tests] == [
        None,
        "wrong value",
        "outside the format",
    ]
    assert score.killed[0] > score.mutants / 2


# Prompts


@pytest.mark.parametrize("name", WORDINGS)
def test_prompts(name: str) -> None:
    wording = make_wording(name, num_tests=3)
    program = "print(42)"
    for seen, has in (
        (observe(DOUBLE), ["Print twice", "standard input", "python"]),
        (observe(DOUBLE, code=program, turn=1), ["Print twice", program, "3"]),
        (observe(DOUBLE, turn=1), ["Print twice", "3"]),
    ):
        chat = wording(seen)
        assert all(text in chat[-1]["content"] for text in has)
        assert "``" not in chat[-1]["content"].replace("```", "")
        assert "function" not in chat[-1]["content"]
    hidden = make_wording(name, tester_examples="hidden")(observe(DOUBLE, code=program, turn=1))
    assert "Example input" not in hidden[-1]["content"]
    earlier = {**observe(DOUBLE, code=program, turn=1), "tests": "assert run('1\\n') == '2\\n'"}
    assert "another test of the program" in OneByOne(wording)(earlier)[-1]["content"]


def test_what_the_examples_of_prompts_say_is_right(sandbox: Sandbox) -> None:
    from codea1_env.agents.llm.wordings import EXAMPLES

    right, wrong, tests, _ = EXAMPLES["program"]
    verdicts = Referee(sandbox).judge(
        [Round(right, code, [tests]) for code in (right.reference, wrong)]
    )
    assert [verdict.code_reward for verdict in verdicts] == [1.0, 0.0]
    assert all(test.status == "kept" for test in verdicts[0].suites[0].tests)


# Without a reference, and from one side


def test_without_a_reference_the_coder_says_what_is_right(sandbox: Sandbox) -> None:
    bare = replace(DOUBLE, reference="")
    config = RolloutConfig(num_generations=2, num_suites=1, oracle="coder", use_book=False)
    tester = Fixed('[{"input": "4\\n", "output": "8\\n"}, {"input": "5\\n", "output": "9\\n"}]')
    for answer, rewards in ((DOUBLE.reference, [1.0, 1.0]), ("no program at all", [None, None])):
        played = rollout([bare], Fixed(answer), tester, Referee(sandbox), MistakeBook(), config)
        assert [episode.verdict.code_reward for episode in played.episodes] == rewards


@pytest.mark.parametrize("kind", ["OneSide-v1", "OneSidePool-v1"])
def test_one_side(kind: str, sandbox: Sandbox) -> None:
    env = gymnasium.make(
        f"codea1_env/{kind}", side="tester", opponent="mutant", problems=BOTH, sandbox=sandbox
    )
    env.reset(seed=1, options={"problem_id": "double"})
    action = '[{"input": "4\\n", "output": "8\\n"}]' if kind == "OneSide-v1" else np.arange(8)
    _, reward, terminated, _, info = env.step(action)
    assert terminated
    assert 0 < reward <= 1
    assert any("run(" in test["text"] for test in info["tests"])
