"""The starter set: what it promises, and how good its golden tests are."""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from codea1_env.problem_sets.fuzz import vary, vary_calls
from codea1_env.problem_sets.validate import validate_problems
from codea1_env.problems import Problem, load_problems
from codea1_env.sandbox import Sandbox

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
TIERS = ("easy", "medium", "hard")


@pytest.fixture(scope="module")
def starter() -> list[Problem]:
    return load_problems("starter")


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    if not BENCHMARKS.is_dir():
        pytest.skip("needs the repository")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import starter_kill_rate

    return starter_kill_rate


def test_size_tiers_and_splits(starter: list[Problem]) -> None:
    assert len(starter) >= 96
    tiers = Counter(problem.metadata["difficulty"] for problem in starter)
    assert set(tiers) == set(TIERS)
    assert min(tiers.values()) >= 24
    for tier in TIERS:
        splits = Counter(p.metadata["split"] for p in starter if p.metadata["difficulty"] == tier)
        assert set(splits) == {"train", "eval"}
        assert 0.2 <= splits["eval"] / tiers[tier] <= 0.3
    assert len(load_problems("starter", "train")) + len(load_problems("starter", "eval")) == len(
        starter
    )


def test_ids_entry_points_and_prompts_are_unique(starter: list[Problem]) -> None:
    for field in ("task_id", "entry_point", "prompt", "reference"):
        assert len({getattr(problem, field) for problem in starter}) == len(starter)
    for problem in starter:
        assert problem.task_id == f"starter/{problem.entry_point}"
        assert problem.metadata["source"] == "starter"


def test_golden_tests_are_ten_or_more_distinct_lines(starter: list[Problem]) -> None:
    for problem in starter:
        assert len(set(problem.tests)) == len(problem.tests) >= 10, problem.task_id
        for test in problem.tests:
            assert "\n" not in test
            assert test.startswith(f"assert {problem.entry_point}("), test


def test_prompts_are_signatures_with_docstrings(starter: list[Problem]) -> None:
    for problem in starter:  # the bundled texts are our own: parsing them here is safe
        function = ast.parse(problem.prompt).body[-1]
        assert isinstance(function, ast.FunctionDef)
        assert function.name == problem.entry_point
        assert function.returns is not None
        docstring = ast.get_docstring(function)
        assert docstring is not None
        assert docstring.count(f">>> {problem.entry_point}(") >= 2, problem.task_id


def test_examples_in_prompts_hold(starter: list[Problem], sandbox: Sandbox) -> None:
    for problem in starter:
        lines = problem.prompt.split("\n")
        tests = [
            f"assert ({line.strip()[4:]}) == {after.strip()}"
            for line, after in itertools.pairwise(lines)
            if line.strip().startswith(f">>> {problem.entry_point}(")
            and after.strip()
            and not after.strip().startswith((">>>", '"""'))
        ]
        results = sandbox.run_tests(problem.reference, tests, entry_point=problem.entry_point)
        assert all(result.passed for result in results), (problem.task_id, tests)


def test_references_pass_and_are_deterministic(sandbox: Sandbox) -> None:
    report = validate_problems("starter", sandbox)
    assert report.findings == ()
    assert report.problems >= 96


@pytest.mark.parametrize("tier", TIERS)
def test_golden_tests_kill_mutants(
    tier: str, starter: list[Problem], sandbox: Sandbox, benchmark: ModuleType
) -> None:
    """A sample; benchmarks/starter_kill_rate.py prints the table for all problems and mutants."""
    problems = [problem for problem in starter if problem.metadata["difficulty"] == tier][::6]
    rng = np.random.default_rng(0)
    rates = [
        benchmark.kill_rate(problem, sandbox, rng, limit=20, calls=100) for problem in problems
    ]
    assert sum(rate.mutants for rate in rates) >= 5 * len(rates)
    assert np.mean([rate.adjusted for rate in rates]) >= 0.9
    assert np.mean([rate.raw for rate in rates]) >= 0.85


def clip(tests: list[str]) -> Problem:
    code = "def clip(x):\n    if x < 0:\n        return 0\n    return min(x, 9)\n"
    return Problem("demo/clip", "def clip(x: int) -> int: ...", "clip", code, tuple(tests))


def test_kill_rate_tells_gaps_from_equivalent_mutants(
    sandbox: Sandbox, benchmark: ModuleType
) -> None:
    """`x <= 0` and `x < 1` compute the same here; what else survives is a gap in the tests."""
    weak = benchmark.kill_rate(clip(["assert clip(5) == 5"]), sandbox, np.random.default_rng(0))
    strong = benchmark.kill_rate(
        clip(
            [
                f"assert clip({x}) == {y}"
                for x, y in [(5, 5), (1, 1), (-1, 0), (-9, 0), (9, 9), (50, 9)]
            ]
        ),
        sandbox,
        np.random.default_rng(0),
    )
    for rate in (weak, strong):
        assert rate.mutants == rate.killed + len(rate.survivors)
        alike = {s.mutant.description for s in rate.survivors if s.witness is None}
        assert alike == {"x < 0 -> x <= 0", "0 -> 1"}
        assert rate.equivalent == 2
    assert strong.raw < strong.adjusted == 1
    assert weak.raw < weak.adjusted < 0.8
    gap = next(s for s in weak.survivors if s.mutant.description == "if x < 0: ... -> pass")
    assert gap.witness is not None
    assert gap.witness.startswith("clip(-")
    assert " is 0, not -" in gap.witness


def test_kill_rate_counts_endless_mutants(sandbox: Sandbox, benchmark: ModuleType) -> None:
    code = "def f(n):\n    while n > 0:\n        n = n - 1\n    return n\n"
    problem = Problem(
        "demo/f", "def f(n): ...", "f", code, ("assert f(3) == 0", "assert f(-2) == -2")
    )
    rate = benchmark.kill_rate(problem, sandbox, np.random.default_rng(0))
    assert rate.timeouts >= 1
    assert rate.killed >= rate.timeouts


def test_varied_calls_keep_types_and_are_new_and_reproducible() -> None:
    calls: list[Any] = [(([3, -1], "ab", {"a": 1}), {"n": 2}), (([], "", {}), {"n": 5})]
    made = vary_calls(calls, 200, np.random.default_rng(1))
    assert made == vary_calls(calls, 200, np.random.default_rng(1))
    assert len({repr(call) for call in made}) == 200
    assert not [call for call in made if call in calls]
    for (items, text, table), keywords in made:
        assert all(type(item) is int for item in items)
        assert (type(items), type(text), type(table)) == (list, str, dict)
        assert type(keywords["n"]) is int
    assert calls[0] == (([3, -1], "ab", {"a": 1}), {"n": 2}), "arguments are not changed in place"


def test_no_variations_of_nothing() -> None:
    rng = np.random.default_rng(0)
    assert vary_calls([], 10, rng) == []
    assert vary_calls([((), {})], 10, rng) == []
    assert len(vary_calls([((True,), {})], 10, rng)) == 1
    assert vary(None, rng) is None
    # Varied before, where all others are empty.
    assert {type(vary("ab", np.random.default_rng(n), [""])) for n in range(60)} == {str}
