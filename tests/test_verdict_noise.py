"""The right programs of benchmarks/verdict_noise.py are right, and its testers write what they should."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from codea1_env.problems import load_problems
from codea1_env.reading.domains import checker
from codea1_env.referee import Referee, RefereeConfig
from codea1_env.sandbox import Sandbox

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
EVERY = 24
"""Of the problems of the public sets, one in so many is checked here, of ours one in three; `--check` does it for all."""

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="needs the repository")


@pytest.fixture
def noise(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import verdict_noise

    return verdict_noise


def rows() -> list[dict[str, Any]]:
    text = (BENCHMARKS / "right_programs.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_three_different_programs_for_each_of_many_problems() -> None:
    references = {
        each.task_id: ast.dump(ast.parse(each.reference)) for each in load_problems("starter")
    }
    assert len({row["task_id"] for row in rows()}) == len(rows()) >= 66
    for row in rows():
        trees = [ast.parse(code) for code in row["programs"]]
        different = {ast.dump(tree) for tree in trees} - {references.get(row["task_id"])}
        assert len(different) == 3, row["task_id"]
        for tree in trees:
            functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
            assert row["entry_point"] in functions, row["task_id"]


def test_starter_programs_pass_all_golden_tests(noise: ModuleType, sandbox: Sandbox) -> None:
    cases = noise.right_programs(["starter"])
    assert len(cases) >= 30
    assert noise.check(cases[::3], sandbox) == []


@pytest.mark.slow
def test_programs_of_public_sets_pass_all_golden_tests(
    noise: ModuleType, sandbox: Sandbox, shared_data: Path
) -> None:
    sources = [shared_data / "humanevalplus.jsonl.gz", shared_data / "mbppplus.jsonl.gz"]
    cases = noise.right_programs([str(source) for source in sources])
    assert len(cases) >= 30
    assert {case.problem.task_id for case in cases} <= {row["task_id"] for row in rows()}
    assert noise.check(cases[::EVERY], sandbox) == []


def test_wrong_programs_lose_and_the_reference_does_not(
    noise: ModuleType, sandbox: Sandbox
) -> None:
    """A tester that never breaks anything would show no noise, either; hostile arguments are mostly odd ones."""
    [case] = noise.right_programs(["starter"])[:1]
    attacked = case._replace(
        programs=[case.problem.reference, "def add_numbers(a, b): return abs(a) + b"]
    )
    texts = noise.answers(case.problem, attacked.programs, 16, 0, sandbox)
    right, wrong = Referee(sandbox, RefereeConfig(domain="any")).judge(
        noise.rounds_of(attacked, texts, sandbox)
    )
    assert [bool(suite.failed) for suite in right.suites] == [False] * 4
    assert [bool(suite.failed) for suite in wrong.suites] == [True] * 4


def test_arguments_can_be_read_and_have_the_types_of_the_signature(noise: ModuleType) -> None:
    calls: list[Any] = [((3, "ab"), {}), ((0.5, {"a": [1]}), {})]
    made = noise.hostile_arguments(calls, 50, np.random.default_rng(0))
    assert len({tuple(texts) for texts in made}) == len(made) == 50
    for texts in made:
        ast.parse(f"f({', '.join(texts)})")
    domains = ["int", ["list", ["tuple", ["str", "float"]]], ["dict", "str", "int"]]
    signature = {"parameters": [[f"x{n}", "", None, domain] for n, domain in enumerate(domains)]}
    checks = [checker(domain) for domain in domains]
    for texts in noise.typed_arguments(signature, 50, np.random.default_rng(0)):
        for text, check in zip(texts, checks, strict=True):
            assert check is not None
            assert check(ast.literal_eval(text)), text


def test_varied_calls_keep_types_and_are_new_and_reproducible(noise: ModuleType) -> None:
    vary_calls = noise.vary_calls
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
