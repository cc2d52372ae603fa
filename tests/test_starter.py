"""The starter set: what it promises, and how good its golden tests are."""

from __future__ import annotations

import ast
import itertools
import json
from collections import Counter
from pathlib import Path

import pytest

import codea1_env
from codea1_env.problem_sets.cells import CellsConfig, cells, pools_of
from codea1_env.problem_sets.judging import passes, submit_to_tests
from codea1_env.problem_sets.validate import validate_problems
from codea1_env.problems import Problem, ProblemsError, load_problems
from codea1_env.referee import Referee, Round
from codea1_env.sandbox import Limits, Outcome, Sandbox

WRONG = (
    Path(__file__).parent / "data" / "wrong_programs.jsonl",  # written by us
    Path(codea1_env.__file__).parent / "problem_sets" / "starter" / "written.jsonl",  # by a model
)
TIERS = ("easy", "medium", "hard")


@pytest.fixture(scope="module")
def starter() -> list[Problem]:
    return load_problems("starter")


def called(problem: Problem) -> str:
    """Return how the function of a problem is called: a method on a new instance."""
    owner, _, method = problem.entry_point.rpartition(".")
    return f"{owner}().{method}" if owner else method


def test_size_tiers_and_splits(starter: list[Problem]) -> None:
    assert len(starter) == 128
    assert load_problems("starter-104") == starter[:104]
    assert [each for tier in TIERS for each in load_problems(f"starter-{tier}")] == starter[:104]
    tiers = Counter(problem.metadata["difficulty"] for problem in starter)
    assert set(tiers) == set(TIERS)
    assert min(tiers.values()) >= 24
    for tier in TIERS:
        splits = Counter(p.metadata["split"] for p in starter if p.metadata["difficulty"] == tier)
        assert set(splits) == {"train", "eval"}
        assert 0.2 <= splits["eval"] / tiers[tier] <= 0.3
    parts = [len(load_problems("starter", split)) for split in ("train", "eval")]
    assert sum(parts) == len(starter)


def test_golden_tests_are_ten_or_more_distinct_lines(starter: list[Problem]) -> None:
    for problem in starter:
        assert len(set(problem.tests)) == len(problem.tests) >= 10, problem.task_id
        for test in problem.tests:
            assert "\n" not in test
            assert test.startswith(f"assert {called(problem)}("), test


def test_prompts_are_signatures_with_docstrings(starter: list[Problem]) -> None:
    for problem in starter:  # the bundled texts are our own: parsing them here is safe
        *owner, name = problem.entry_point.split(".")
        function = ast.parse(problem.prompt).body[-1]
        if owner:
            assert isinstance(function, ast.ClassDef)
            assert function.name == owner[0]
            assert ast.get_docstring(function)
            function = function.body[-1]
        assert isinstance(function, ast.FunctionDef)
        assert function.name == name
        assert function.returns is not None
        docstring = ast.get_docstring(function)
        assert docstring is not None
        assert docstring.count(f">>> {called(problem)}(") >= 2, problem.task_id


def test_examples_in_prompts_hold(starter: list[Problem], sandbox: Sandbox) -> None:
    for problem in starter:
        lines = problem.prompt.split("\n")
        tests = [
            f"assert ({line.strip()[4:]}) == {after.strip()}"
            for line, after in itertools.pairwise(lines)
            if line.strip().startswith(f">>> {called(problem)}(")
            and after.strip()
            and not after.strip().startswith((">>>", '"""'))
        ]
        results = sandbox.run_tests(
            problem.reference, tests, entry_point=problem.entry_point.partition(".")[0]
        )
        assert results
        assert all(result.passed for result in results), (problem.task_id, tests)


def test_references_pass_and_are_deterministic(sandbox: Sandbox) -> None:
    """A part; `codea1 problems validate starter` looks at all of them."""
    report = validate_problems("starter", sandbox, split="eval")
    assert report.findings == ()
    assert report.problems >= 24
    tried = report.tried
    assert min(tried["stub"].programs, tried["constant"].programs, tried["examples"].programs) >= 24
    assert tried["stub"].passed == tried["constant"].passed == tried["examples"].passed == 0
    assert tried["mutant"].programs >= 150
    assert tried["mutant"].passed <= 0.02 * tried["mutant"].programs, "some changes are no faults"


def test_golden_tests_fail_wrong_programs(starter: list[Problem], sandbox: Sandbox) -> None:
    """Plausible ones of ours for the second part, and answers of SmolLM2-135M-Instruct that pass the most tests."""
    problems = {problem.task_id: problem for problem in starter}
    rows = [json.loads(line) for path in WRONG for line in path.read_text().splitlines()]
    limits = Limits(call_cpu_time=0.3, call_wall_time=6, run_cpu_time=0.5, run_wall_time=20)
    runs = [
        (row["task_id"], code, submit_to_tests(problems[row["task_id"]], code, limits, sandbox, stop=True))
        for row in rows
        for code in row["programs"]
    ]  # fmt: skip
    assert [(name, code) for name, code, run in runs if passes(run.result())] == []
    second = {problem.task_id for problem in starter[len(load_problems("starter-104")) :]}
    assert len(second) >= 24
    for task_id in second:
        assert sum(len(row["programs"]) for row in rows if row["task_id"] == task_id) >= 2, task_id
    assert {row["by"] for row in rows} == {"us", "SmolLM2-135M-Instruct"}


WORLD = "cells:C=32,faults=1/8,families=4,problems=2,valid=3/4,seed=5"


@pytest.mark.parametrize("world", [f"{WORLD},disjoint=0", f"{WORLD},holes=3,right=0"])
def test_every_verdict_of_the_referee_is_what_the_pools_say(world, sandbox):
    problems = load_problems(world)
    for problem in problems:
        pools = pools_of(problem)
        tests = [[test] for test in pools.tests]
        verdicts = Referee(sandbox).judge([Round(problem, each, tests) for each in pools.programs])
        for verdict, faults in zip(verdicts, pools.faults, strict=True):
            found = [suite.tests[0] for suite in verdict.suites]
            assert {i for i, test in enumerate(found) if test.outcome is not Outcome.PASS} == faults
            assert tuple(test.status == "kept" for test in found) == pools.valid


def test_fault_sets():
    pools = pools_of(load_problems(WORLD)[1])
    assert [len(faults) for faults in pools.faults] == [0, 4, 4, 4, 4]
    assert len(frozenset().union(*pools.families)) == 16
    assert sum(pools.valid) == 24
    holes = pools_of(load_problems(f"{WORLD},holes=2,right=0")[0])
    assert [len(faults) for faults in holes.faults] == [8, 8, 8, 8]
    assert holes.faults[3] == holes.families[3] | holes.families[0]
    assert len(set(holes.programs)) == 4


def test_a_world_follows_from_its_name():
    assert load_problems(WORLD) == load_problems(WORLD) == cells(CellsConfig.read(WORLD[6:]))
    assert pools_of(load_problems(WORLD)[0]) == pools_of(load_problems(WORLD)[0])
    assert load_problems(WORLD) != load_problems(WORLD.replace("seed=5", "seed=6"))
    assert len(load_problems("cells")) == 8


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("C=1", "C from 2 to 4096, actually: 1"),
        ("fault=1/8", "actually 'fault=1/8'. Did you mean faults?"),
        ("x", "actually 'x'. Known: C, faults, "),
        ("C=8,C=16", "Expect C once, actually twice"),
        ("C=many", "C to be of type int, actually: 'many'"),
        ("families=0", "families from 1 to 1024, actually: 0"),
        ("faults=1/2,families=3", "3 disjoint fault sets of 128 cells to fit into C=256"),
    ],
)  # fmt: skip
def test_worlds_that_cannot_be(said, message):
    with pytest.raises(ProblemsError) as caught:
        load_problems(f"cells:{said}")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
