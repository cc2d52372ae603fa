"""The panel: what it is drawn from, and how it counts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from codea1_env.agents.planted import NumbersTester
from codea1_env.agents.scripted import CopierTester
from codea1_env.evaluation.panel import ROWS, Panel, PanelCount, PanelProgram, draw_panel
from codea1_env.problems import Problem, load_problems
from codea1_env.referee import Referee
from codea1_env.sandbox import Case, Sandbox
from codea1_env.spaces import Observation

SIZE = 4


@pytest.fixture(scope="module")
def source() -> list[Problem]:
    return load_problems("starter-easy")


@pytest.fixture(scope="module")
def panel(sandbox: Sandbox, source: list[Problem]) -> Panel:
    return draw_panel(source, source[:8], Referee(sandbox), seed=0, size=SIZE)


def test_a_panel_has_all_rows_and_nothing_that_is_trained_on(
    panel: Panel, source: list[Problem]
) -> None:
    assert {each.row for each in panel.programs} == set(ROWS)
    assert not panel.left_out
    trained = {each.task_id for each in source[:8]}
    for each in panel.programs:
        assert each.problem.task_id not in trained
        split = each.problem.metadata["split"]
        if each.kind:
            assert split == ("train" if each.row == "copied_seen" else "eval")
    counts = [sum(each.row == row for each in panel.programs) for row in ROWS]
    assert all(SIZE - 1 <= count <= SIZE for count in counts)


def test_a_seed_gives_the_same_panel(sandbox: Sandbox, panel: Panel, source: list[Problem]) -> None:
    again = draw_panel(source, source[:8], Referee(sandbox), 0, SIZE)
    assert (again, again.digest) == (panel, panel.digest)
    row = "copied_new"
    first, other = (draw_panel(source, [], Referee(sandbox), s, SIZE, [row]) for s in (0, 1))
    assert first.digest != other.digest
    assert first.programs == tuple(each for each in panel.programs if each.row == row)


def test_scripts_on_the_panel(sandbox: Sandbox, panel: Panel) -> None:
    numbers = panel.measure(NumbersTester(8), Referee(sandbox))
    assert all(numbers[row].hits == numbers[row].of > 0 for row in ROWS if row.startswith("copied"))
    assert not any(
        numbers[row].hits for row in ("worked_out_unseen", "worked_out_new", "shown_blind")
    )
    copier = panel.measure(CopierTester(8), Referee(sandbox))
    assert copier["new_mutants"].hits == 0
    assert copier["valid"].hits == copier["valid"].of


def test_blind_rows_show_no_program(sandbox: Sandbox, panel: Panel) -> None:
    shown: dict[str, set[bool]] = {}

    class Looking:
        def act(self, observations: Sequence[Observation]) -> list[str]:
            for each, seen in zip(panel.programs, observations, strict=True):
                shown.setdefault(each.row, set()).add(bool(seen["code"]))
            return [""] * len(observations)

    counts = panel.measure(Looking(), Referee(sandbox))
    assert shown.pop("shown_blind") == {False}
    assert set().union(*shown.values()) == {True}
    assert all(count.hits == 0 for count in counts.values())


def test_a_source_without_references_leaves_rows_out(sandbox: Sandbox) -> None:
    bare = Problem("bare", "def f(n):", "f", "", ["assert f(1) == 2"])
    found = draw_panel([bare], [], Referee(sandbox), seed=0, size=2)
    assert set(found.left_out) == {"new_mutants", "valid"}
    assert {each.row for each in found.programs} == set(ROWS) - set(found.left_out)


def test_references_that_judge_no_test_are_named(sandbox: Sandbox) -> None:
    """They are in no row: nobody could break their mutants, or write a right test of them."""
    head = "def f(n: int) -> int:\n"
    bodies = {
        "raises": "    raise ValueError",
        "slow": "    for _ in range(10**8): pass\n    return n + 1",
        "wrong": "    return n + 2",
        "good": "    return n + 1",
    }
    source = [
        Problem(name, head, "f", head + body, cases=[Case((n,), {}, n + 1) for n in range(3)])
        for name, body in bodies.items()
    ]
    source.append(Problem("unknown", head, "f", head + bodies["raises"], cases=[Case((2,))]))
    rows = ("new_mutants", "valid")
    found = draw_panel(source, [], Referee(sandbox), seed=0, size=9, rows=rows)
    assert {each.problem.task_id for each in found.programs} == {"good"}
    assert found.unusable.keys() == {"raises", "slow", "wrong", "unknown"}


def test_wrong_values_break_but_are_not_right(sandbox: Sandbox) -> None:
    problem = load_problems("planted")[0]
    wrong = PanelProgram("written", problem, "def add_three(n): return 0 if n == 417 else n + 3")
    right = PanelProgram("valid", problem, problem.reference)

    class Guess:
        def act(self, observations: Sequence[Observation]) -> list[str]:
            return ["assert add_three(417) == 1\n\nassert add_three(1) == 4"] * len(observations)

    counts = Panel((wrong, right)).measure(Guess(), Referee(sandbox))
    assert counts == {"written": PanelCount(1, 1, 0), "valid": PanelCount(1, 2, 1)}
    assert str(counts["valid"]) == "1 of 2"
    assert PanelCount(0, 0).share is None
