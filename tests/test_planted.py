"""Planted faults: what they are wrong on, who finds them, and where none can be planted."""

from __future__ import annotations

import random
from typing import Any

import pytest

from codea1_env.agents.planted import NumbersTester, PlantedCoder
from codea1_env.agents.scripted import CopierTester
from codea1_env.evaluation.planting import SPARRING, Planter
from codea1_env.mutation.planted import KINDS, place_of
from codea1_env.problems import Problem, load_problems
from codea1_env.referee import Referee, Round
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import observe

PLANTED = load_problems("planted")
INPUTS = [*range(-60, 1200), *range(1200, 10_000, 7)]
"""Every value that a fault of any kind but `digits` is planted on."""


def values(code: str, entry_point: str) -> list[Any]:
    """Run one of the set's own programs here, whose text is ours."""
    space: dict[str, Any] = {}
    exec(code, space)
    return [space[entry_point](n) for n in INPUTS]


def test_the_set_has_two_equal_halves() -> None:
    assert len(PLANTED) == 48
    assert len(load_problems("planted", "train")) == len(load_problems("planted", "eval")) == 24


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_is_on_few_values_which_only_the_text_names(kind: str, sandbox: Sandbox) -> None:
    problems = PLANTED[::6]
    made = Planter(problems, sandbox).plant([(each, kind) for each in problems], random.Random(7))
    assert None not in made
    for problem, planted in zip(problems, made, strict=True):
        assert planted is not None
        right = values(problem.reference, problem.entry_point)
        pairs = zip(INPUTS, right, values(planted.code, problem.entry_point), strict=True)
        wrong = [n for n, a, b in pairs if a != b]
        if KINDS[kind].rung == "blind":
            assert all(n >= planted.value for n in wrong)
        elif kind != "digits":
            assert planted.value in wrong
            assert len(wrong) <= 3
        named = str(planted.value) in planted.code
        assert named == (KINDS[kind].rung == "copy" or (kind == "after" and named))


def test_the_same_seed_plants_the_same_faults(sandbox: Sandbox) -> None:
    asked = [(each, kind) for each, kind in zip(PLANTED, SPARRING * 12, strict=True)]
    found = [Planter(PLANTED, sandbox).plant(asked, random.Random(n)) for n in (1, 1, 2)]
    assert found[0] == found[1] != found[2]


def test_scripts_reach_their_rung_of_the_ladder(sandbox: Sandbox) -> None:
    asked = [(each, kind) for each in PLANTED[::8] for kind in KINDS]
    made = Planter(PLANTED, sandbox).plant(asked, random.Random(3))
    found: dict[tuple[str, str], list[bool]] = {}
    for name, tester in (("numbers", NumbersTester(8)), ("copier", CopierTester(8))):
        pairs = [
            (each, kind, fault) for (each, kind), fault in zip(asked, made, strict=True) if fault
        ]
        seen = [observe(each, code=fault.code, turn=1) for each, _, fault in pairs]
        answers = tester.act(seen)
        rounds = [
            Round(each, fault.code, [answer.split("\n\n")])
            for (each, _, fault), answer in zip(pairs, answers, strict=True)
        ]
        for (_, kind, _), verdict in zip(pairs, Referee(sandbox).judge(rounds), strict=True):
            found.setdefault((name, KINDS[kind].rung), []).append(bool(verdict.failed))
    assert all(found["numbers", "copy"])
    assert not any(found["numbers", "work"])
    assert not any(any(found["copier", rung]) for rung in ("copy", "work", "blind"))


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("def f(n):\n    return n + 3\n", (("n",), 1, "    ", "n + 3")),
        ('def f(n):\n    """Text."""\n    m = n\n    return m\n', (("n",), 2, "    ", "")),
        ("def f(n): return n", None),
        ("class S:\n    def f(self, n):\n        return n", None),
        ("f = int", None),
    ],
)
def test_where_a_fault_can_be_planted(source: str, place: tuple[Any, ...] | None) -> None:
    assert place_of(source, "f") == place


def test_problems_without_a_place_are_named_with_the_reason(sandbox: Sandbox) -> None:
    tests = ["assert f('a') == 'b'", "assert f('b') == 'c'"]
    words = Problem("words", "def f(text):", "f", "def f(text):\n    return 'b'", tests)
    bare = Problem("bare", "def f(n):", "f", "", ["assert f(1) == 2", "assert f(2) == 3"])
    hostile = Problem(
        "hostile", "def f(n):", "f", "def f(:", ["assert f(1) == 2", "assert f(2) == 3"]
    )
    planter = Planter([words, bare, hostile, PLANTED[0]], sandbox)
    assert planter.left_out["words"] == "it takes no whole number"
    assert planter.left_out["bare"].startswith("it has no reference")
    assert planter.left_out["hostile"].startswith("its reference cannot be read")
    made = planter.plant([(words, "equal"), (PLANTED[0], "equal")], random.Random(0))
    assert [each is None for each in made] == [True, False]


def test_the_coder_goes_on_where_it_was_saved(sandbox: Sandbox, tmp_path: Any) -> None:
    coder = PlantedCoder(PLANTED[:4], sandbox, seed=5)
    seen = [observe(each) for each in PLANTED[:4]]
    coder.act(seen)
    coder.save(tmp_path)
    after = coder.act(seen)
    other = PlantedCoder(PLANTED[:4], sandbox, seed=6)
    other.load(tmp_path)
    assert other.act(seen) == after
    words = Problem("words", "def f(text):", "f", "def f(text):\n    return text")
    assert PlantedCoder([words], sandbox).act([observe(words)]) == [words.reference]


def test_the_script_of_numbers_writes_nothing_where_it_has_no_example() -> None:
    bare = Problem("bare", "def f(n):", "f", "f = int")
    assert NumbersTester().act([observe(bare, code="def f(n): return n + 417", turn=1)]) == [""]
