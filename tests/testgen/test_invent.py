"""Values and calls that are made up."""

from __future__ import annotations

import datetime
from fractions import Fraction

import numpy as np
import pytest

from codea1_env.testgen.invent import (
    calls,
    can_be_called,
    plans,
    values,
    with_examples,
)
from codea1_env.testgen.parameters import kind_of_value
from codea1_env.testgen.target import Hints, Parameter


def parameter(name, kind, way="place", default=None):
    has = default is not None
    return Parameter(name, way, (kind,) if kind else (), bool(kind), has, (default,) if has else ())


@pytest.mark.parametrize(
    ("kind", "kinds"),
    [
        (("int",), {int}),
        (("float",), {float}),
        (("str",), {str}),
        (("bool",), {bool}),
        (("union", ("int",), ("none",)), {int, type(None)}),
        (("list", ("int",)), {list}),
        (("set", ("str",)), {set}),
        (("tuple", ("int",), ("str",)), {tuple}),
        (("dict", ("str",), ("list", ("int",))), {dict}),
        (("date",), {datetime.date}),
        (("Fraction",), {Fraction}),
    ],
)
def test_values_are_of_their_kind_and_distinct(kind, kinds):
    made = values(kind, Hints())
    assert len(made) >= 2
    assert {type(value) for value in made} == kinds
    assert len({repr(value) for value in made}) == len(made)


def test_hints_are_tried_with_their_neighbours():
    assert {59, 60, 61} <= set(values(("int",), Hints(numbers=(60,))))
    assert {"kg", "1kg"} <= set(values(("str",), Hints(words=("kg",))))
    assert {19, 20, 21} <= {len(text) for text in values(("str",), Hints(numbers=(20,)))}


def test_calls_are_distinct_and_the_same_for_the_same_seed():
    listed = [
        parameter("a", ("list", ("int",))),
        parameter("b", ("str",), default="x"),
        parameter("c", ("int",), way="keyword"),
    ]
    one, other = (
        calls(listed, plans(listed)[0], Hints(), np.random.default_rng(7), 50) for _ in range(2)
    )
    assert one == other
    assert 30 <= len({repr(call) for call in one}) == len(one) <= 50
    assert all(
        set(words) == {"c"} or set(words) == {"b", "c"} or len(args) == 2 for args, words in one
    )
    assert any(len(args) == 1 for args, _ in one)  # the default stays


def test_any_number_of_arguments():
    listed = [parameter("numbers", ("int",), way="star")]
    made = calls(listed, plans(listed)[0], Hints(), np.random.default_rng(0), 20)
    assert {len(args) for args, _ in made} >= {0, 1, 2, 3}


def test_parameters_without_annotation_have_several_plans():
    listed = [parameter("a", None), parameter("b", None)]
    options = plans(listed)
    assert options[0] == (("int",), ("int",))
    assert len(set(options)) == len(options) == 36


def test_examples_say_what_parameters_take():
    listed = [parameter("a", None), parameter("b", ("int",))]
    first, second = with_examples(listed, [(([1, 2], "x"), {}), ((["a"], "y"), {})])
    assert first.kinds == (("union", ("list", ("int",)), ("list", ("str",))),)
    assert second.kinds == (("int",),)
    assert kind_of_value({"a": (1, None)}) == ("dict", ("str",), ("tuple", ("int",), ("none",)))


def test_what_cannot_be_made_up_is_named():
    assert can_be_called([parameter("a", ("int",))]) == ""
    socket = parameter("channel", ("other", "Socket"))
    assert can_be_called([socket]) == "no value can be made up for channel (Socket)"
    assert calls([socket], plans([socket])[0], Hints(), np.random.default_rng(0), 9) == []
