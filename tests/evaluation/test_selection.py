"""Choices from matrices that can be worked out by hand."""

from __future__ import annotations

import pytest

from codea1_env.evaluation.choosing import (
    CHOICES,
    Matrix,
    best_program,
    codet,
    codet_released,
    most_tests,
    random_choice,
)

SELECTIONS = {name: CHOICES[name] for name in ("codet", "codet_released", "most_tests")}


def matrix(right: str, rows: list[str], weights: list[int] | None = None) -> Matrix:
    tests = len(rows[0])
    return Matrix(tuple(sign == "1" for sign in right), tuple(rows), tuple(weights or [1] * tests))


def test_agreement_beats_the_program_that_passes_a_wrong_test() -> None:
    # Three right programs pass the two right tests; a wrong one passes one of them, and both wrong tests.
    four = matrix("1110", ["1100", "1100", "1100", "1011"])
    assert random_choice(four) == 0.75
    assert best_program(four) == 1
    assert codet(four) == 1  # 3 x 2 against 1 x 3
    assert codet_released(four) == 1  # 1.73 x 2 against 1 x 3
    assert most_tests(four) == 0  # 2 against 3


def test_the_square_root_counts_tests_for_more() -> None:
    # Two that fail together: 2 x 2 = 4 against 1 x 3 = 3, but 1.41 x 2 = 2.83 against 3.
    three = matrix("001", ["110", "110", "111"])
    assert codet(three) == 0
    assert codet_released(three) == 1
    assert most_tests(three) == 1


def test_tests_that_were_written_twice_count_twice() -> None:
    # Without weights 2 against 1; with them 2 against 3.
    rows = ["110", "001"]
    assert [choose(matrix("10", rows)) for choose in SELECTIONS.values()] == [1, 1, 1]
    assert [choose(matrix("10", rows, [1, 1, 3])) for choose in SELECTIONS.values()] == [0, 0, 0]


def test_ties_are_shared() -> None:
    # Sets {a, b}: 2 x 1; {c}: 1 x 2; {d}: 1 x 1. The first two are tied for codet: one right in three.
    four = matrix("1001", ["100", "100", "011", "010"])
    assert codet(four) == pytest.approx(1 / 3)
    assert codet_released(four) == 0  # 1.41 against 2
    assert most_tests(four) == 0


@pytest.mark.parametrize("rows", [["", "", ""], ["00", "00", "00"], ["11", "11", "11"]])
def test_tests_that_tell_nothing_are_a_random_choice(rows: list[str]) -> None:
    three = matrix("100", rows)
    for choose in SELECTIONS.values():
        assert choose(three) == random_choice(three) == pytest.approx(1 / 3)


def test_programs_that_pass_no_test_do_not_outnumber_one_that_does() -> None:
    three = matrix("001", ["00", "00", "01"])
    assert [choose(three) for choose in SELECTIONS.values()] == [1, 1, 1]


def test_no_choice_beats_the_best_program_nor_makes_up_a_right_one() -> None:
    for right in ("000", "010", "111"):
        three = matrix(right, ["10", "01", "11"])
        for choose in SELECTIONS.values():
            assert 0 <= choose(three) <= best_program(three)
            if right != "010":
                assert choose(three) == random_choice(three)
