"""The bundled programs that read and print: what the set promises, and how good its golden tests are."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from codea1_env.problem_sets.judging import passes, submit_to_tests
from codea1_env.problem_sets.validate import validate_problems
from codea1_env.problems import Problem, load_problems
from codea1_env.sandbox import Limits, Outcome, Sandbox

DATA = Path(__file__).parent / "data" / "starter_programs.jsonl"
EXAMPLE = re.compile(r"^Example input:\n(.*?\n)Example output:\n(.*?\n)(?:\n|\Z)", re.MULTILINE | re.DOTALL)  # fmt: skip


@pytest.fixture(scope="module")
def programs() -> dict[str, Problem]:
    return {problem.task_id: problem for problem in load_problems("starter-programs")}


@pytest.fixture(scope="module")
def written() -> dict[str, dict[str, list[str]]]:
    """For each problem inputs that are outside of its format, and wrong programs."""
    return {row["task_id"]: row for row in map(json.loads, DATA.read_text().splitlines())}


def test_size_tiers_and_splits(programs: dict[str, Problem]) -> None:
    assert {problem.kind for problem in programs.values()} == {"program"}
    found = Counter((p.metadata["difficulty"], p.metadata["split"]) for p in programs.values())
    assert found == {("easy", "train"): 12, ("easy", "eval"): 4, ("medium", "train"): 12, ("medium", "eval"): 4}  # fmt: skip
    assert len({problem.prompt for problem in programs.values()}) == 32
    assert all(problem.contract for problem in programs.values())
    tiers = [load_problems(f"starter-programs-{tier}") for tier in ("easy", "medium")]
    assert [*tiers[0], *tiers[1]] == [*programs.values()]


def test_ten_or_more_golden_inputs_and_two_examples_that_are_among_them(
    programs: dict[str, Problem],
) -> None:
    for problem in programs.values():
        inputs = [case.args[0] for case in problem.cases]
        assert len(set(inputs)) == len(inputs) >= 10, problem.task_id
        assert all(text.endswith("\n") for text in inputs)
        shown = EXAMPLE.findall(problem.prompt)
        assert shown == [(case.args[0], case.expected) for case in problem.cases[:2]]
        stated = problem.prompt.split("\n\nExample input:")[0]
        sections = ["Input", "Output"] if problem.metadata["difficulty"] == "medium" else []
        assert re.findall(r"^(\w+): ", stated, re.MULTILINE) == sections


def test_validators_take_golden_inputs_and_refuse_others(
    programs: dict[str, Problem], written: dict[str, dict[str, list[str]]], sandbox: Sandbox
) -> None:
    assert programs.keys() == written.keys()
    for problem in programs.values():
        golden = [case.args[0] for case in problem.cases]
        golden += [text.removesuffix("\n") for text in golden]
        bad = [
            *written[problem.task_id]["bad_inputs"],
            *(golden[0] + more for more in ("\n", "0\n", "a b c\n")),
            *(before + golden[0] for before in ("\n", " ", "\t", "\ufeff")),
            golden[0].replace("\n", " \n"),
            golden[0].replace("\n", "\r\n"),
            "7" * 5000,
            "[" * 5000,
        ]
        assert len(bad) >= 12
        said = sandbox.call(problem.contract, "check", [((text,), {}) for text in golden + bad])
        taken, refused = said[: len(golden)], said[len(golden) :]
        assert [each.message for each in taken if each.outcome is not Outcome.PASS] == []
        assert {each.value for each in taken} == {None}
        for text, each in zip(bad, refused, strict=True):
            assert each.outcome is Outcome.ERROR, (problem.task_id, text[:80])
            assert "AssertionError" in each.message, (problem.task_id, text[:80], each.message)


def test_references_pass_and_golden_tests_fail_mutants(sandbox: Sandbox) -> None:
    """A part; `codea1 problems validate starter-programs` looks at all of them."""
    report = validate_problems("starter-programs", sandbox, split="eval")
    assert report.findings == ()
    assert report.problems == 8
    tried = report.tried
    assert min(tried["stub"].programs, tried["constant"].programs) >= 8
    assert tried["stub"].passed == tried["constant"].passed == tried["examples"].passed == 0
    assert tried["mutant"].programs >= 40
    assert tried["mutant"].passed <= 1, "command[-1] is command[0] where a command is one word"


def test_golden_tests_fail_wrong_programs(
    programs: dict[str, Problem], written: dict[str, dict[str, list[str]]], sandbox: Sandbox
) -> None:
    limits = Limits(call_cpu_time=0.3, call_wall_time=6, run_cpu_time=0.5, run_wall_time=20)
    runs = [
        (task_id, code, submit_to_tests(programs[task_id], code, limits, sandbox, stop=True))
        for task_id, row in written.items()
        for code in row["wrong_programs"]
    ]
    assert len(runs) == 64
    assert [(name, code) for name, code, run in runs if passes(run.result())] == []


def test_the_checker_takes_every_right_pair_and_no_other(
    programs: dict[str, Problem], sandbox: Sandbox
) -> None:
    problem = programs["starter-programs/pair_with_sum"]
    some, none = "4 5\n1 4 2 3\n", "2 3\n1 1\n"
    right = [(some, "1 2\n", "3 4\n"), (some, "4 3", "1 2\n"), (none, " none \n", "none\n")]
    texts = (
        "",
        "none",
        "1 1",
        "1 3",
        "0 1",
        "1 5",
        "-4 1",
        "1",
        "1 2 3",
        "one two",
        "1.0 2",
        "01 2",
        "\u0661 2",
    )
    wrong = [(some, text, "1 2\n") for text in texts] + [(none, "1 2", "none\n"), (none, "", "none\n")]  # fmt: skip
    said = sandbox.call(problem.checker, "check", [(each, {}) for each in right + wrong])
    assert [each.value for each in said] == [True] * len(right) + [False] * len(wrong)
