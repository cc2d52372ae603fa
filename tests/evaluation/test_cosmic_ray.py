"""Mutants of cosmic-ray, made in the sandbox: those of the tool itself."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence

import pytest

from codea1_env.evaluation.suites import cosmic_ray
from codea1_env.evaluation.suites.cosmic_ray import cosmic_ray_mutants
from codea1_env.mutation import Mutant
from codea1_env.problems import load_problems
from codea1_env.sandbox import AnalysisError, Outcome

pytest.importorskip("cosmic_ray")

PROGRAMS = {
    "all kinds": '''import functools
from math import *


@functools.lru_cache(maxsize=None)
@staticmethod
def f(a: int | None, *rest, k=-1, **more):
    """Text with 1 + 1."""
    total: int = 0
    for i, x in enumerate(rest):
        if not x and i is not None or k == 3:
            continue
        while x > 0 and True:
            x -= 1
            if x in (2, 0x10, 1.5):
                break
        else:
            return ~x
    try:
        total += a ** 2 // 3 % 5 << 1 >> 1 & 7 | 8 ^ 9
    except (ValueError, KeyError) as error:
        raise error
    return [*rest][1:-1] if total >= 1 else {**more, "é": f"{a + 1}"}, lambda y: y * 2 - 1
''',
    "carriage returns": "def f(x):\r\n    return x + 1\r\n",
    "nothing": "def f(x):\n    return x\n",
    "no end of line": "def f(x):\n    return x < 1",
    "that cannot be compiled": "def f(x, /, *, y):\n    print(*x, y)\n    return x[::2]\n",
    "longest": max((each.reference for each in load_problems("starter")), key=len),
}


Mutation = tuple[str, int, int]
"""Operator, occurrence and line."""


@pytest.fixture(scope="module")
def of_the_tool(tmp_path_factory) -> dict[str, list[Mutation]]:
    """What a new session of the tool has for each program."""
    folder = tmp_path_factory.mktemp("session")
    names = {name: f"program_{number}.py" for number, name in enumerate(PROGRAMS)}
    for name, file in names.items():
        (folder / file).write_text(PROGRAMS[name], encoding="utf-8", newline="")
    (folder / "config.toml").write_text(
        f"[cosmic-ray]\nmodule-path = {list(names.values())}\ntimeout = 1\nexcluded-modules = []\n"
        'test-command = "true"\n[cosmic-ray.distributor]\nname = "local"\n'
    )
    command = [sys.executable, "-m", "cosmic_ray.cli"]
    for arguments in (["init", "config.toml", "session.sqlite"], ["dump", "session.sqlite"]):
        done = subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    found: dict[str, list[Mutation]] = {name: [] for name in PROGRAMS}
    by_file = {file: name for name, file in names.items()}
    for line in done.stdout.splitlines():
        (each,) = json.loads(line)[0]["mutations"]
        operator = each["operator_name"].removeprefix("core/")
        mutation = (operator, each["occurrence"], each["start_pos"][0])
        found[by_file[each["module_path"]]].append(mutation)
    return {name: sorted(mutations) for name, mutations in found.items()}


def occurrences(mutants: Sequence[Mutant]) -> list[tuple[Mutation, str]]:
    """Each mutant as the tool counts it, and its text."""
    seen: Counter[str] = Counter()
    found = []
    for mutant in mutants:
        found.append(((mutant.operator, seen[mutant.operator], mutant.line), mutant.code))
        seen[mutant.operator] += 1
    return sorted(found)


def mutated_by_the_tool(code: str, operator: str, occurrence: int) -> str:
    import parso  # noqa: F401 - cosmic-ray's own order of imports is a circle without it
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.operators.provider import OperatorProvider

    found: str = mutate_code(code.replace("\r\n", "\n"), OperatorProvider()[operator](), occurrence)
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_mutants_as_the_tool(name: str, of_the_tool) -> None:
    mutants = occurrences(cosmic_ray_mutants(PROGRAMS[name]))
    assert [mutation for mutation, _ in mutants] == of_the_tool[name]
    for (operator, occurrence, _), code in mutants[:: 4 if name == "longest" else 1]:
        assert code == mutated_by_the_tool(PROGRAMS[name], operator, occurrence)
    assert (len(mutants) > 100) == (name in ("all kinds", "longest"))
    assert (len(mutants) == 0) == (name == "nothing")


def test_mutants_that_cannot_be_compiled_are_killed(sandbox) -> None:
    code = PROGRAMS["that cannot be compiled"]
    outcomes = [
        sandbox.run_tests(each.code, ["assert f('abc', y=1) == 'ac'"])[0].outcome
        for each in cosmic_ray_mutants(code)
    ]
    assert Outcome.SYNTAX_ERROR in outcomes
    assert Outcome.FAIL in outcomes


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def f(:", "SyntaxError"),
        ("(" * 100_000, "nested"),
        ("-" * 100_000 + "1", "memory|Recursion"),
        ("x = 1\0", "null bytes"),
        ("x = 1\n" * 30_000, "timeout"),
    ],
)
def test_hostile_texts_are_explained(text: str, why: str, monkeypatch) -> None:
    limits = cosmic_ray.Limits(call_cpu_time=1, run_cpu_time=2)
    monkeypatch.setattr(cosmic_ray, "_LIMITS", limits)
    with pytest.raises(AnalysisError, match=why):
        cosmic_ray_mutants(text)


def test_a_missing_extra_is_named(monkeypatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(cosmic_ray, "_sandbox", cosmic_ray._sandbox.__wrapped__)
    with pytest.raises(ImportError, match=r"codea1-env\[evaluation\]"):
        cosmic_ray_mutants("x = 1")
